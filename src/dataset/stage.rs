//! The trait of every pipeline node, and pipelines in words.

use super::node::{Node, Work};
use crate::cx::StageId;

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
/// ```
/// use gristmill::{Stage, dataset::{Node, Role}};
///
/// struct EveryNth<D> {
///     parent: D,
///     n: u64,
/// }
///
/// impl<D: Stage> Stage for EveryNth<D> {
///     fn node(&self) -> Node<'_> {
///         Node { describe: &self.n, ..Node::new("every_nth", Role::Stateful) }
///     }
///     fn parents(&self) -> Vec<&dyn Stage> {
///         vec![&self.parent]
///     }
/// }
///
/// let ds = EveryNth { parent: gristmill::dataset::map::Range::new(0, 9), n: 2 };
/// assert_eq!((&ds as &dyn Stage).lines(), ["range(0, 9, 1)", "every_nth(2)"]);
/// ```
pub trait Stage {
    /// Returns the facts of the stage. The fingerprint contains its name and arguments.
    fn node(&self) -> Node<'_>;

    /// Returns the datasets that the stage reads, first to last.
    fn parents(&self) -> Vec<&dyn Stage>;
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

/// Returns true if a stage of a stream may hold elements between two batches.
pub(in crate::dataset) fn may_hold(stage: &dyn Stage) -> bool {
    match stage.node().work {
        Work::Chunks => stage.role() == Role::FanOut,
        _ => !matches!(stage.name(), "batch" | "limit"),
    }
}

/// Returns the id of a stage that reads `parents`. In post-order, the stage comes directly after all of them.
pub fn stage_after(parents: &[&dyn Stage]) -> StageId {
    StageId(parents.iter().map(|p| p.count()).sum::<usize>() as u32)
}

/// Forwards the methods of [`Stage`] to an inner stage.
macro_rules! same_stage {
    ($($inner:tt)+) => {
        fn node(&self) -> $crate::dataset::Node<'_> {
            self$($inner)+.node()
        }
        fn parents(&self) -> Vec<&dyn $crate::dataset::Stage> {
            self$($inner)+.parents()
        }
    };
}
pub(crate) use same_stage;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::{Mix, Range};
    use crate::{IterDatasetExt, MapDatasetExt};

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
