use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::DatasetIterator;
use super::flow::{Flow, Flowing, Start};
use crate::cx::{Cx, StageId};
use crate::dataset::facts::Facts;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::error::Result;

/// See [`IterDatasetExt::scan`](super::IterDatasetExt::scan).
pub type IterScan<D, S, F> = Flowing<D, ScanFlow<S, F>>;

/// [`Flow`] of [`IterScan`].
#[doc(hidden)]
pub struct ScanFlow<S, F> {
    pub(super) initial: S,
    pub(super) f: Arc<F>,
}

impl<S: Serialize + Send + Sync, F: Send + Sync> Facts for ScanFlow<S, F> {
    facts! { name: "scan", role: Role::Stateful }

    fn params(&self) -> String {
        serde_json::to_string(&self.initial).map_or_else(|_| String::new(), |json| format!("initial={json}"))
    }
}

impl<I, S, U, F> Flow<I> for ScanFlow<S, F>
where
    I: DatasetIterator,
    S: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
    F: Fn(&mut S, I::Item) -> Result<U> + Send + Sync,
{
    type Pass = IterScanIter<I, S, F>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        Ok(IterScanIter { parent, value: self.initial.clone(), f: self.f.clone(), stage })
    }

    fn unplanned(&self) -> &'static str {
        "makes an element from all elements before it"
    }
}

/// A pass over [`IterScan`].
#[doc(hidden)]
pub struct IterScanIter<I, S, F> {
    parent: I,
    value: S,
    f: Arc<F>,
    stage: StageId,
}

/// Position of an [`IterScanIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanState<P, S> {
    /// Position of the parent.
    pub parent: P,
    /// State of the function.
    pub value: S,
}

impl<I, S, U, F> DatasetIterator for IterScanIter<I, S, F>
where
    I: DatasetIterator,
    S: Clone + Send + Sync + Serialize + DeserializeOwned + 'static,
    F: Fn(&mut S, I::Item) -> Result<U> + Send + Sync,
{
    type Item = U;
    type State = ScanState<I::State, S>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.next(cx)? else { return Ok(None) };
        let made = cx.consumed(self.stage, || (self.f)(&mut self.value, element));
        let made = made.map_err(|error| cx.blame(self.stage, "scan", error))?;
        cx.produced(self.stage, 1, 0);
        Ok(Some(made))
    }

    fn state(&self) -> Self::State {
        ScanState { parent: self.parent.state(), value: self.value.clone() }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.value = state.value;
        self.parent.restore(state.parent, cx)
    }
}

debug_name!(ScanFlow<S, F>);
debug_name!(IterScanIter<I, S, F>);

#[cfg(test)]
mod tests {
    use crate::dataset::iter::{IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::{Error, MapDatasetExt};

    #[test]
    fn the_state_of_the_function_is_part_of_the_position() {
        let sums = |sum: &mut i64, x: i64| {
            *sum += x;
            Ok(*sum)
        };
        assert_eq!(laws::check(&Range::new(0, 6).to_iter().scan(10, sums)), [10, 11, 13, 16, 20, 25]);
        // Each epoch starts at the initial state.
        let ds = Range::new(1, 4).to_iter().filter(|x| x % 2 == 1).scan(0, sums).repeat(2);
        assert_eq!(laws::check(&ds), [1, 4, 1, 4]);
    }

    #[test]
    fn an_error_has_the_stage_and_consumes_its_element() {
        let fails = |count: &mut u64, x: i64| {
            *count += 1;
            if x == 1 { Err(Error::data(format!("element {count}"))) } else { Ok(*count) }
        };
        let ds = Range::new(0, 3).to_iter().scan(0, fails);
        assert_eq!(ds.collect().unwrap_err().to_string(), "stage 2 scan: element 2");
    }
}
