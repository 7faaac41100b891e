//! The trait of every pipeline node, with the facts for seeds, fingerprints, reports and errors.

use super::blocks::Blocks;
use super::map::Shuffled;
use super::memory::{Memory, Sample};
use super::run::upcoming::{Record, Upcoming};
use crate::cx::StageId;
use crate::error::Result;

/// Kind of change that a stage makes to the stream, from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// Yields elements without a parent: a file, a range.
    Source,
    /// Changes only the indices that are read: shuffle, slice, repeat, mix.
    Order,
    /// Makes one element of each element, separately: map, tokenise.
    Elementwise,
    /// Keeps or drops each element, separately: filter.
    MayDrop,
    /// Makes any number of elements of each element, separately: flat_map.
    FanOut,
    /// Makes elements that depend on earlier elements: pack, batch, window_shuffle.
    Stateful,
}

impl Role {
    /// Returns the role in words, as printed by `gristmill explain`.
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

/// A node of a pipeline. Every dataset is a stage.
///
/// The fingerprint contains [`name`](Self::name) and [`params`](Self::params). `params` must contain every argument
/// that changes the data, except closures, which have no lasting name.
pub trait Stage {
    /// Returns the name of the method that makes the stage: `shuffle`.
    fn name(&self) -> &'static str;

    /// Returns the arguments that shape the data, such as `seed=42`; empty if there are none.
    fn params(&self) -> String {
        String::new()
    }

    /// Returns the kind of change that the stage makes to the stream.
    fn role(&self) -> Role;

    /// Returns the datasets that the stage reads, first to last.
    fn parents(&self) -> Vec<&dyn Stage>;

    /// Returns the seed that the stage sets for later stages, if the stage is `seed`.
    fn seed_root(&self) -> Option<u32> {
        None
    }

    /// Returns true for the border between map datasets and streams: many threads before it, one thread after it.
    fn is_border(&self) -> bool {
        false
    }

    /// Returns true for the last stage that an executor evaluates before the border. The process that reads the stream
    /// evaluates all later stages. Changes nothing else.
    #[doc(hidden)]
    fn is_cut(&self) -> bool {
        false
    }

    /// Returns true for a stage of a stream that applies a function to single elements. Threads evaluate it in chunks.
    #[doc(hidden)]
    fn is_each(&self) -> bool {
        false
    }

    /// Returns true if the stage's own work calls no function and no source of the user. The user cannot observe when
    /// such work happens, so it may happen early.
    fn is_native(&self) -> bool {
        false
    }

    /// Returns true if reading many elements at once takes less time than one by one. Executors then read a batch of
    /// elements at once, however long that takes.
    fn reads_together(&self) -> bool {
        false
    }

    /// Returns true if the stage mostly waits for an object store, and therefore [reads
    /// together](Self::reads_together). A chunk may then take several round trips.
    fn reads_far(&self) -> bool {
        false
    }

    /// Returns the number of elements to announce ahead by [`will_read`](Self::will_read); `None` if no source uses it.
    fn looks_ahead(&self) -> Option<u64> {
        self.parents().iter().filter_map(|parent| parent.looks_ahead()).max()
    }

    /// Announces the next elements. Remote sources then prefetch them, and sources that decode many records at once
    /// decode each block once. Has no other effect: a wrong announcement only wastes a fetch or memory.
    ///
    /// Implement this method if elements come from other indices than their own. Stages that pass on or drop elements
    /// need not. Called if a source [looks ahead](Self::looks_ahead), and by [`record_of`](super::record_of).
    fn will_read(&self, next: Upcoming<'_>) {
        if self.keeps_places() {
            self.parents().iter().for_each(|parent| parent.will_read(next));
        }
    }

    /// Returns the index of the element made of `record` in read number `epoch` of the source, from 0; `None` if it is
    /// left out or unknown. Inverse of [`will_read`](Self::will_read), for [`index_of`](super::index_of).
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        match self.records() {
            Some(len) => record.index_in(self.name(), len, epoch),
            None if self.keeps_places() => self.parents().iter().find_map(|parent| parent.comes_at(record, epoch)),
            None => None,
        }
    }

    /// Returns true if each element is made of the elements of all parents at an equal index, or dropped.
    #[doc(hidden)]
    fn keeps_places(&self) -> bool {
        self.is_by_element() || matches!(self.role(), Role::Elementwise | Role::MayDrop)
    }

    /// Returns true if the stage makes batches without making elements; see
    /// [`MapDataset::get_stacked`](super::MapDataset::get_stacked). True for sources with columns, and for elementwise
    /// stages that also work on whole batches.
    fn has_columns(&self) -> bool {
        false
    }

    /// Returns true if the stage yields an element for every index, even if its parents drop elements.
    fn has_every_index(&self) -> bool {
        false
    }

    /// Returns true if each element is made of the only parent's element at an equal index, independent of the index.
    #[doc(hidden)]
    fn is_by_element(&self) -> bool {
        false
    }

    /// Returns the number of records, if the stage is a source whose index `i` is record `i` modulo this number.
    fn records(&self) -> Option<u64> {
        None
    }

    /// Returns the stored size of a record in bytes, if the stage is a source and the size is known.
    #[doc(hidden)]
    fn record_bytes(&self, record: u64) -> Option<u64> {
        let _ = record;
        None
    }

    /// Returns the place of a record for messages, if the stage is a source and the place is known.
    #[doc(hidden)]
    fn record_in_words(&self, record: u64) -> Option<String> {
        let _ = record;
        None
    }

    /// Returns true if records are views of mapped memory: see `SourceFacts::is_mapped`.
    #[doc(hidden)]
    fn is_mapped(&self) -> bool {
        false
    }

    /// Returns the address of the stage, which distinguishes stages of equal name.
    #[doc(hidden)]
    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// Returns the memory that the stage may hold while it runs, besides one element; `None` if unknown.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Reads the first elements and returns their size; `None` for a typed dataset. Boxing a dataset implements this
    /// method for [`Element`](crate::Element)s.
    fn sample(&self) -> Option<Sample> {
        None
    }

    /// Returns the runs of elements that the source fetches or decodes together; `None` if elements are not in the
    /// source's order. [`block_shuffle`](super::MapDataset::block_shuffle) moves each run as a unit.
    fn blocks(&self) -> Option<Blocks> {
        match self.parents().as_slice() {
            [parent] if self.keeps_places() => parent.blocks(),
            _ => None,
        }
    }

    /// Returns name, size and hash of each file of a source, in order and independent of the machine. Examines the
    /// files. Empty if the source has no files, or keeps no account of them.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Describes the quality of the order for `explain`, if the order is not a shuffle of everything.
    fn mixing(&self) -> Option<String> {
        None
    }

    /// Returns the cost of random order, if the stage is a source that would decode records repeatedly.
    fn if_shuffled(&self) -> Option<Shuffled> {
        None
    }

    /// Returns a remark for the report, with the reason, if the stage is slower than possible or often misused.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Checks that elements can leave worker processes if this stage or its parents run there. Called before workers
    /// start.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) that names the unsupported type.
    #[doc(hidden)]
    fn check_crossing(&self) -> Result<()> {
        self.parents().iter().try_for_each(|parent| parent.check_crossing())
    }

    /// Checks the stage's own arguments. Called before the first element is read.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the value and the limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl dyn Stage + '_ {
    /// Returns the number of nodes in the pipeline that ends here.
    pub fn count(&self) -> usize {
        1 + self.parents().iter().map(|p| p.count()).sum::<usize>()
    }

    /// Calls `visit` for every node in post-order, parents first. The position is the node's stage id.
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

    /// Returns `name(params)` of every node, in post-order: the content of a fingerprint.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.walk(&mut |_, node| lines.push(label(node)));
        lines
    }

    /// Returns the lines of older fingerprints, which are still accepted: each border is at its prefix's cut.
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

    /// Returns true if an index may yield no element.
    pub fn may_drop(&self) -> bool {
        let dropped = || self.role() >= Role::MayDrop || self.parents().iter().any(|p| p.may_drop());
        !self.has_every_index() && dropped()
    }

    /// Returns true if the pipeline yields the elements of a single source unchanged, in any order.
    pub(crate) fn only_orders(&self) -> bool {
        match (self.role(), self.parents().as_slice()) {
            (Role::Source, _) => true,
            (Role::Order, [parent]) => parent.only_orders(),
            _ => false,
        }
    }

    /// Returns true if all work of the pipeline is [native](Stage::is_native).
    pub fn all_native(&self) -> bool {
        self.is_native() && self.parents().iter().all(|p| p.all_native())
    }

    /// Returns true if any source [reads many at once](Stage::reads_together).
    pub fn any_reads_together(&self) -> bool {
        self.reads_together() || self.parents().iter().any(|p| p.any_reads_together())
    }

    /// Returns true if any source [reads from a store](Stage::reads_far).
    pub fn any_reads_far(&self) -> bool {
        self.reads_far() || self.parents().iter().any(|p| p.any_reads_far())
    }

    /// Returns true if the source [has columns](Stage::has_columns), and later stages change only order and names.
    pub fn stacks(&self) -> bool {
        match (self.role(), self.parents().as_slice()) {
            (Role::Source, _) => self.has_columns(),
            (Role::Order, [parent]) => parent.stacks(),
            (Role::Elementwise, [parent]) => self.has_columns() && parent.stacks(),
            _ => false,
        }
    }

    /// Returns true if elements have left the workers, because this or an earlier stage is a border or a cut.
    pub(in crate::dataset) fn leaves_workers(&self) -> bool {
        self.is_border() || self.is_cut() || self.parents().iter().any(|p| p.leaves_workers())
    }

    /// Returns true if workers evaluate any stage: before a border, or functions of a stream that this process reads.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn employs_workers(&self) -> bool {
        let is_fed = self.is_each() && !self.parents().iter().any(|p| p.leaves_workers());
        is_fed || self.is_border() || self.parents().iter().any(|p| p.employs_workers())
    }

    /// Returns true if an executor evaluates only a part of the pipeline: see [`is_cut`](Stage::is_cut).
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(in crate::dataset) fn any_cut(&self) -> bool {
        self.is_cut() || self.parents().iter().any(|p| p.any_cut())
    }

    /// Calls `visit` for every node in post-order, like [`walk`](Self::walk). The flag is true if the node runs in
    /// order, in the reader of the stream: neither before a border nor as a function of single elements.
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

    /// Checks every node. The error names the node that failed.
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

/// Returns `name(params)`, or just the name.
pub fn label(stage: &dyn Stage) -> String {
    let params = stage.params();
    if params.is_empty() { stage.name().to_owned() } else { format!("{}({params})", stage.name()) }
}

/// Returns all stages of a pipeline in one line: `range(0..9) → shuffle(seed=1) → batch(4, remainder=keep)`.
///
/// Omits the middle of a long pipeline, and all but the first few of many parents.
pub fn chain(last: &dyn Stage) -> String {
    chain_of(last, MOST_NESTED)
}

/// Maximum number of stages in one line.
const MOST_STAGES: usize = 24;
/// Maximum number of parents shown for one stage.
const MOST_PARENTS: usize = 3;
/// Maximum nesting of stages with several parents.
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

/// Returns several parents in brackets; `None` for a source.
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

/// Returns the id of a stage that reads `parents`. In post-order, the stage comes directly after all of them.
pub fn stage_after(parents: &[&dyn Stage]) -> StageId {
    StageId(parents.iter().map(|p| p.count()).sum::<usize>() as u32)
}

/// Forwards all methods of [`Stage`] except [`sample`](Stage::sample) to an inner stage; with `@but_cut`,
/// [`is_cut`](Stage::is_cut) is not forwarded either.
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
