//! The trait of every node of a pipeline: enough for seeds, fingerprints, reports and errors.

use super::blocks::Blocks;
use super::map::Shuffled;
use super::memory::{Memory, Sample};
use super::run::upcoming::{Record, Upcoming};
use crate::cx::StageId;
use crate::error::Result;

/// The way in which a stage changes the stream, from the gentlest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// Yields elements out of nothing: a file, a range.
    Source,
    /// Changes only which index is read: shuffle, slice, repeat, mix.
    Order,
    /// One element in, one out, each on its own: map, tokenise.
    Elementwise,
    /// Each element on its own, but it may vanish: filter.
    MayDrop,
    /// Each element on its own becomes any number: flat_map.
    FanOut,
    /// Elements that depend on those before them: pack, batch, window_shuffle.
    Stateful,
}

impl Role {
    /// The role in words, as `gristmill explain` prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Order => "order",
            Self::Elementwise => "elementwise",
            Self::MayDrop => "elementwise, may drop",
            Self::FanOut => "elementwise, fans out",
            Self::Stateful => "stateful",
        }
    }
}

/// A node of a pipeline. Every dataset is one.
///
/// [`name`](Self::name) and [`params`](Self::params) together are what the fingerprint sees: `params` must name
/// everything that changes the data, except closures, which have no name that lasts.
pub trait Stage {
    /// The name of the method that makes the stage: `shuffle`.
    fn name(&self) -> &'static str;

    /// The arguments that shape the data, `seed=42`; empty if there are none.
    fn params(&self) -> String {
        String::new()
    }

    /// The way in which it changes the stream.
    fn role(&self) -> Role;

    /// The datasets it reads from, first to last.
    fn parents(&self) -> Vec<&dyn Stage>;

    /// The seed it sets for the stages after it, if it is `seed`.
    fn seed_root(&self) -> Option<u32> {
        None
    }

    /// Whether it is the border between the two worlds: what is below may run on many threads, what is above runs on one.
    fn is_border(&self) -> bool {
        false
    }

    /// Whether it is the end of what an executor evaluates in front of the border: the stages behind it are evaluated by whoever
    /// reads the stream. It changes nothing else.
    #[doc(hidden)]
    fn is_cut(&self) -> bool {
        false
    }

    /// Whether it is a stage of a stream that applies a function to each element alone: threads do that, in chunks.
    #[doc(hidden)]
    fn is_each(&self) -> bool {
        false
    }

    /// Whether its own work calls no function and no source of the user's: then nobody can tell when it is done, and it may be
    /// done before it is asked for.
    fn is_native(&self) -> bool {
        false
    }

    /// Whether it reads many elements in less time than one after the other: then as many as a batch are asked for at once,
    /// however long they take.
    fn reads_together(&self) -> bool {
        false
    }

    /// Whether that is because it waits for a store most of the time: then ranges may take as long as the way there and back
    /// several times over.
    fn reads_far(&self) -> bool {
        false
    }

    /// The number of its elements ahead that its sources want to be [told](Self::will_read) of by now; `None` where no source ever does.
    fn looks_ahead(&self) -> Option<u64> {
        self.parents().iter().filter_map(|parent| parent.looks_ahead()).max()
    }

    /// Says which of its elements will be asked for next, so that sources far away fetch what they need for them ahead, and
    /// those that decode many records at once do it once for all that are wanted. It changes nothing else: where it is wrong, something
    /// is fetched or kept in vain.
    ///
    /// Stages whose elements are found elsewhere than at their own indices say so here; those that pass elements on or drop
    /// them need not. It is only said where a source [looks ahead](Self::looks_ahead). The records that an index is made of are found by the same
    /// way: see [`record_of`](super::record_of).
    fn will_read(&self, next: Upcoming<'_>) {
        if self.keeps_places() {
            self.parents().iter().for_each(|parent| parent.will_read(next));
        }
    }

    /// The index of its element that is made of `record`, the `epoch`th time that the source is read; `None` where it is left out, and where
    /// it cannot be told. It is the inverse of [`will_read`](Self::will_read), and [`index_of`](super::index_of) asks for it.
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        match self.records() {
            Some(len) => record.index_in(self.name(), len, epoch),
            None if self.keeps_places() => self.parents().iter().find_map(|parent| parent.comes_at(record, epoch)),
            None => None,
        }
    }

    /// Whether the element at an index is made of those that all of its parents have there, or dropped.
    #[doc(hidden)]
    fn keeps_places(&self) -> bool {
        self.is_by_element() || matches!(self.role(), Role::Elementwise | Role::MayDrop)
    }

    /// Whether it gives batches without making their elements, see [`MapDataset::get_stacked`](super::MapDataset::get_stacked):
    /// a source that has columns, or an elementwise stage that does to a batch what it does to elements.
    fn has_columns(&self) -> bool {
        false
    }

    /// Whether it yields an element for every index, whatever its parents drop.
    fn has_every_index(&self) -> bool {
        false
    }

    /// Whether each of its elements is made of the one that its only parent has at the same index, and is the same at whatever index that
    /// stands.
    #[doc(hidden)]
    fn is_by_element(&self) -> bool {
        false
    }

    /// The records that it has, if it is a source whose index `i` is record `i`, again and again.
    fn records(&self) -> Option<u64> {
        None
    }

    /// Bytes that its record of this number takes up where it is stored, if it is a source and knows.
    #[doc(hidden)]
    fn record_bytes(&self, record: u64) -> Option<u64> {
        let _ = record;
        None
    }

    /// The place of its record of this number for people, if it is a source and knows.
    #[doc(hidden)]
    fn record_in_words(&self, record: u64) -> Option<String> {
        let _ = record;
        None
    }

    /// Whether those are views of mapped memory: see `SourceFacts::is_mapped`.
    #[doc(hidden)]
    fn is_mapped(&self) -> bool {
        false
    }

    /// The place of the stage in memory, by which one is told from another of the same name.
    #[doc(hidden)]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// Memory that it may hold while it runs, besides one element; `None` if it does not say.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// The size of its first elements, which are read for it; `None` where only the compiler knows what they are. Type
    /// erasure gives it for [`Element`](crate::Element)s.
    fn sample(&self) -> Option<Sample> {
        None
    }

    /// The runs of its elements that its source fetches or decodes together, where its elements are those of the source in their order:
    /// what [`block_shuffle`](super::MapDataset::block_shuffle) moves as one.
    fn blocks(&self) -> Option<Blocks> {
        match self.parents().as_slice() {
            [parent] if self.keeps_places() => parent.blocks(),
            _ => None,
        }
    }

    /// The files that a source reads, in their order: name, size and a hash of each, as on any machine that has them. They are looked at for it; none where a source has no
    /// files, or keeps no account of them.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// The quality of its order, in words, for `explain`: of stages whose order is not that of a shuffle of everything.
    fn mixing(&self) -> Option<String> {
        None
    }

    /// The cost of reading it in random order, where it is a source that then decodes the same records again and again.
    fn if_shuffled(&self) -> Option<Shuffled> {
        None
    }

    /// A remark for the user, in the report: that it works, but slower than it could, or not as it is often meant, and why.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Whether elements can leave worker processes wherever such would evaluate them, here and in its parents; asked before any is
    /// started.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) that names the type that cannot.
    #[doc(hidden)]
    fn check_crossing(&self) -> Result<()> {
        self.parents().iter().try_for_each(|parent| parent.check_crossing())
    }

    /// Whether its own arguments make sense; asked before the first element is read.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) that gives value and limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl dyn Stage + '_ {
    /// Nodes in the pipeline that ends here.
    pub fn count(&self) -> usize {
        1 + self.parents().iter().map(|p| p.count()).sum::<usize>()
    }

    /// Calls `visit` for every node in post-order, parents first; the position is the node's stage id.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(usize, &'a dyn Stage)) {
        fn go<'a>(node: &'a (dyn Stage + 'a), next: &mut usize, visit: &mut dyn FnMut(usize, &'a dyn Stage)) {
            for parent in node.parents() {
                go(parent, next, visit);
            }
            visit(*next, node);
            *next += 1;
        }
        go(self, &mut 0, visit);
    }

    /// `name(params)` of every node, in post-order: what a fingerprint is made of.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(&mut |_, node| lines.push(label(node)));
        lines
    }

    /// The same as fingerprints saw it when a border stood where its prefix is cut: checkpoints of then are still read.
    pub(crate) fn lines_with_cuts(&self) -> Vec<String> {
        let (mut lines, mut cut) = (Vec::new(), None);
        self.walk(&mut |_, node| {
            match cut.take_if(|_| node.is_border()) {
                Some(at) => lines.insert(at, label(node)),
                None => lines.push(label(node)),
            }
            if node.is_cut() {
                cut = Some(lines.len());
            }
        });
        lines
    }

    /// Whether an index may yield no element.
    pub fn may_drop(&self) -> bool {
        let dropped = || self.role() >= Role::MayDrop || self.parents().iter().any(|p| p.may_drop());
        !self.has_every_index() && dropped()
    }

    /// Whether elements are those of one source, as they are, in whatever order.
    pub(crate) fn only_orders(&self) -> bool {
        match (self.role(), self.parents().as_slice()) {
            (Role::Source, _) => true,
            (Role::Order, [parent]) => parent.only_orders(),
            _ => false,
        }
    }

    /// Whether all of its work is [native](Stage::is_native).
    pub fn all_native(&self) -> bool {
        self.is_native() && self.parents().iter().all(|p| p.all_native())
    }

    /// Whether any of its sources [reads many at once](Stage::reads_together).
    pub fn any_reads_together(&self) -> bool {
        self.reads_together() || self.parents().iter().any(|p| p.any_reads_together())
    }

    /// Whether any of its sources [reads from a store](Stage::reads_far).
    pub fn any_reads_far(&self) -> bool {
        self.reads_far() || self.parents().iter().any(|p| p.any_reads_far())
    }

    /// Whether its source [has columns](Stage::has_columns), and all behind it changes nothing but their order and names.
    pub fn stacks(&self) -> bool {
        match (self.role(), self.parents().as_slice()) {
            (Role::Source, _) => self.has_columns(),
            (Role::Order, [parent]) => parent.stacks(),
            (Role::Elementwise, [parent]) => self.has_columns() && parent.stacks(),
            _ => false,
        }
    }

    /// Whether elements that come out of it have left workers for good: those that workers made in front of a border, and all behind a cut.
    pub(in crate::dataset) fn leaves_workers(&self) -> bool {
        self.is_border() || self.is_cut() || self.parents().iter().any(|p| p.leaves_workers())
    }

    /// Whether workers evaluate any of it: elements in front of a border, or functions of a stream that this process reads.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn employs_workers(&self) -> bool {
        let is_fed = self.is_each() && !self.parents().iter().any(|p| p.leaves_workers());
        is_fed || self.is_border() || self.parents().iter().any(|p| p.employs_workers())
    }

    /// Whether an executor evaluates only a part of it: see [`is_cut`](Stage::is_cut).
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(in crate::dataset) fn any_cut(&self) -> bool {
        self.is_cut() || self.parents().iter().any(|p| p.any_cut())
    }

    /// Calls `visit` for every node in post-order, as [`walk`](Self::walk) does, and with whether it runs where the stream is read, in order:
    /// neither in front of a border nor as a function of single elements.
    pub(crate) fn walk_in_order<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Stage, bool)) {
        fn go<'a>(node: &'a (dyn Stage + 'a), below: bool, visit: &mut dyn FnMut(&'a dyn Stage, bool)) {
            for parent in node.parents() {
                go(parent, below || node.is_border(), visit);
            }
            let is_order = node.is_border() && node.role() == Role::Order;
            visit(node, !below && !is_order && !node.is_each());
        }
        go(self, false, visit);
    }

    /// Checks every node, naming the one that fails.
    pub fn check_all(&self) -> Result<()> {
        let mut result = Ok(());
        self.walk(&mut |id, node| {
            if result.is_ok() {
                result = node.check().map_err(|e| e.stage(format!("{id} {}", node.name())));
            }
        });
        result
    }
}

/// `name(params)`, or just the name.
pub fn label(stage: &dyn Stage) -> String {
    let params = stage.params();
    if params.is_empty() { stage.name().to_owned() } else { format!("{}({params})", stage.name()) }
}

/// All stages of a pipeline in one line, first to last: `range(0..9) → shuffle(seed=1) → batch(4, remainder=keep)`.
///
/// Of a long one the middle is left out, and of many parents all but the first.
pub fn chain(last: &dyn Stage) -> String {
    chain_of(last, MOST_NESTED)
}

/// Stages of one line that are shown.
const MOST_STAGES: usize = 24;
/// Parents of one stage that are shown.
const MOST_PARENTS: usize = 3;
/// Stages with several parents inside each other.
const MOST_NESTED: usize = 3;

fn chain_of(last: &dyn Stage, nested: usize) -> String {
    let (mut texts, mut next) = (Vec::new(), Some(last));
    while let Some(stage) = next {
        texts.push(label(stage));
        let parents = stage.parents();
        next = match parents.as_slice() {
            &[parent] => Some(parent),
            several => {
                texts.extend(side_by_side(several, nested));
                None
            }
        };
    }
    texts.reverse();
    if texts.len() > MOST_STAGES {
        let left = texts.len() - MOST_STAGES;
        texts.splice(MOST_STAGES / 2..MOST_STAGES / 2 + left, [format!("… {left} stages …")]);
    }
    texts.join(" → ")
}

/// Several parents in brackets; `None` for a source.
fn side_by_side(parents: &[&dyn Stage], nested: usize) -> Option<String> {
    if parents.is_empty() {
        return None;
    }
    let Some(nested) = nested.checked_sub(1) else { return Some("[…]".to_owned()) };
    let mut texts: Vec<_> = parents.iter().take(MOST_PARENTS).map(|parent| chain_of(*parent, nested)).collect();
    if parents.len() > MOST_PARENTS {
        texts.push(format!("… {} more", parents.len() - MOST_PARENTS));
    }
    Some(format!("[{}]", texts.join(", ")))
}

/// The id of a stage on top of `parents`: post-order puts it right after all of them.
pub fn stage_after(parents: &[&dyn Stage]) -> StageId {
    StageId(parents.iter().map(|p| p.count()).sum::<usize>() as u32)
}

/// Forwards all methods of [`Stage`] but [`sample`](Stage::sample) to an inner stage; with `@but_cut`, not [`is_cut`](Stage::is_cut) either.
macro_rules! same_stage {
    (@call $this:ident [$($inner:tt)+] $method:ident $args:tt) => {
        $this$($inner)+.$method $args
    };
    (@of $inner:tt $($method:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?;)*) => {$(
        fn $method(&self $(, $arg: $type)*) $(-> $out)? {
            $crate::dataset::same_stage!(@call self $inner $method ($($arg),*))
        }
    )*};
    (@but_cut $($inner:tt)+) => {
        $crate::dataset::same_stage! { @of [$($inner)+]
            name() -> &'static str;
            params() -> String;
            role() -> $crate::dataset::Role;
            parents() -> Vec<&dyn $crate::dataset::Stage>;
            seed_root() -> Option<u32>;
            is_border() -> bool;
            is_each() -> bool;
            is_native() -> bool;
            reads_together() -> bool;
            reads_far() -> bool;
            looks_ahead() -> Option<u64>;
            will_read(next: $crate::dataset::Upcoming<'_>);
            comes_at(record: &$crate::dataset::Record, epoch: u64) -> Option<u64>;
            has_columns() -> bool;
            has_every_index() -> bool;
            keeps_places() -> bool;
            is_by_element() -> bool;
            records() -> Option<u64>;
            record_bytes(record: u64) -> Option<u64>;
            record_in_words(record: u64) -> Option<String>;
            is_mapped() -> bool;
            address() -> usize;
            memory() -> Option<$crate::dataset::Memory>;
            blocks() -> Option<$crate::dataset::Blocks>;
            files() -> Vec<String>;
            mixing() -> Option<String>;
            if_shuffled() -> Option<$crate::dataset::map::Shuffled>;
            remark() -> Option<String>;
            check_crossing() -> $crate::error::Result<()>;
            check() -> $crate::error::Result<()>;
        }
    };
    ($($inner:tt)+) => {
        $crate::dataset::same_stage! { @of [$($inner)+] is_cut() -> bool; }
        $crate::dataset::same_stage! { @but_cut $($inner)+ }
    };
}
pub(crate) use same_stage;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::{Mix, Range};
    use crate::{IterDataset, MapDataset};

    #[test]
    fn a_chain_names_its_stages_from_the_first_to_the_last() {
        let ds = Range::new(0, 9).map(|x| x + 1).shuffle(3).to_iter().skip(2).batch(4);
        assert_eq!(chain(&ds), "range(0, 9, 1) → map → shuffle(seed=3) → to_iter → skip(2) → batch(4, remainder=keep)");
    }

    #[test]
    fn of_many_stages_and_parents_some_are_shown() {
        let long = (0..40).fold(Range::new(0, 9).boxed(), |ds, seed| ds.seed(seed).boxed());
        let text = chain(&long);
        assert!(text.starts_with("range(0, 9, 1) → seed(0) → ") && text.ends_with(" → seed(39)"), "{text}");
        assert_eq!((text.matches(" → ").count(), text.contains("… 17 stages …")), (MOST_STAGES, true), "{text}");
        let mixed = Mix::new((1..7).map(|n| Range::new(0, n)).collect::<Vec<_>>());
        let text = chain(&mixed);
        assert!(text.starts_with("[range(0, 1, 1), range(0, 2, 1), range(0, 3, 1), … 3 more] → mix"), "{text}");
    }
}
