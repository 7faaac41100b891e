use serde::{Deserialize, Serialize};

use super::each::{Each, Mapped};
use crate::dataset::facts::Facts;
use crate::dataset::iter::{IterMapped, Watch};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::error::Result;

/// See [`MapDatasetExt::filter`](super::MapDatasetExt::filter).
pub type Filter<D, P> = Mapped<D, FilterFn<P>>;

/// See [`IterDatasetExt::filter`](crate::IterDatasetExt::filter).
pub type IterFilter<D, P> = IterMapped<D, FilterFn<P>, Watch>;

/// The function of [`Filter`].
#[doc(hidden)]
#[derive(Clone)]
pub struct FilterFn<P>(pub(in crate::dataset) P);

impl<P: Send + Sync> Facts for FilterFn<P> {
    facts! { name: "filter", role: Role::MayDrop }
}

impl<T, P: Fn(&T) -> bool + Send + Sync> Each<T> for FilterFn<P> {
    type Out = T;

    #[inline]
    fn apply(&self, _: u64, element: T) -> Result<Option<T>> {
        Ok(self.0(&element).then_some(element))
    }
}

debug_name!(FilterFn<P>);

/// Position of a filter in a stream.
///
/// Deserializes a bare state of the parent as an empty window. Earlier versions, whose filters kept no counts, wrote
/// such states.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written<S>")]
pub struct FilterState<S> {
    /// The parent's position.
    pub parent: S,
    /// Elements seen in the current window of the thresholds.
    pub seen: u64,
    /// Dropped elements in this window.
    pub dropped: u64,
}

/// Accepted forms of a state.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written<S> {
    Whole(Whole<S>),
    Parent(S),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole<S> {
    parent: S,
    seen: u64,
    dropped: u64,
}

impl<S> From<Written<S>> for FilterState<S> {
    fn from(written: Written<S>) -> Self {
        match written {
            Written::Whole(Whole { parent, seen, dropped }) => Self { parent, seen, dropped },
            Written::Parent(parent) => Self { parent, seen: 0, dropped: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FilterState;
    use crate::ErrorKind;
    use crate::cx::Cx;
    use crate::dataset::Stage;
    use crate::dataset::iter::{DatasetIterator, FilterThresholds, IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};
    use crate::exec::Runtime;

    #[test]
    fn a_dropped_element_leaves_its_slot() {
        let ds = Range::new(0, 6).filter(|x| x % 3 == 1);
        assert_eq!(ds.len(), 6);
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap(), None);
        assert_eq!(ds.collect().unwrap(), [1, 4]);
    }

    #[test]
    fn keeps_what_the_predicate_says() {
        let ds = IterDatasetExt::filter(Range::new(0, 2500).to_iter(), |x| x % 3 == 0);
        assert_eq!(laws::check(&ds), (0..2500).step_by(3).collect::<Vec<_>>());
    }

    #[test]
    fn fails_where_too_much_is_dropped_also_after_a_restore() {
        let thresholds = FilterThresholds { raise: Some(0.9), ..Default::default() };
        // Drops 950 of the second thousand.
        let ds = Range::new(0, 3000).to_iter().filter_with(|x| !(1000..1950).contains(x), thresholds);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        for _ in 0..1010 {
            iter.next(&mut cx).unwrap().unwrap();
        }
        let mut resumed = ds.iter(&Runtime::inline()).unwrap();
        resumed.restore(iter.state(), &mut cx).unwrap();
        for iter in [&mut iter, &mut resumed] {
            for x in 1960..1999 {
                assert_eq!(iter.next(&mut cx).unwrap(), Some(x));
            }
            let error = iter.next(&mut cx).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data);
            assert!(error.to_string().starts_with("stage 2 filter: 95.0 % of the last 1000"), "{error}");
            assert_eq!(iter.next(&mut cx).unwrap(), Some(2000));
        }
    }

    #[test]
    fn a_state_from_before_it_counted_is_read() {
        let ds = IterDatasetExt::filter(Range::new(0, 9).to_iter(), |x| x % 2 == 1);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let whole = serde_json::to_value(iter.state()).unwrap();
        let state: FilterState<_> = serde_json::from_value(whole["parent"].clone()).unwrap();
        assert_eq!((state.seen, state.dropped), (0, 0));
        iter.restore(state, &mut Cx::default()).unwrap();
        assert_eq!(iter.next(&mut Cx::default()).unwrap(), Some(1));
    }

    #[test]
    fn only_what_changes_the_data_is_in_the_fingerprint() {
        let lines = |t| (&Range::new(0, 9).to_iter().filter_with(|_| true, t) as &dyn Stage).lines();
        assert_eq!(lines(FilterThresholds::OFF), lines(FilterThresholds::default()));
        assert_eq!(lines(FilterThresholds { warn: None, raise: Some(0.5) })[2], "filter(raise=0.5)");
    }
}
