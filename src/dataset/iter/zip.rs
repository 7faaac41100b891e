use serde::{Deserialize, Serialize};

use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::memory::Memory;
use crate::dataset::node::{Describe, Node};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::siblings::Siblings;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// Policy for a zip whose datasets have different lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZipLength {
    /// Fails if a dataset ends before the others, and names it: Grain's `strict=True`.
    #[default]
    Equal,
    /// Ends with the shortest dataset.
    Shortest,
}

impl Describe for ZipLength {
    fn params(&self) -> String {
        match self {
            Self::Equal => "equal".into(),
            Self::Shortest => "shortest".into(),
        }
    }
}

/// See [`IterDatasetExt::zip`](super::IterDatasetExt::zip).
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct IterZip<A, B> {
    first: A,
    second: B,
    length: ZipLength,
    stage: StageId,
}

impl<A: Stage, B: Stage> IterZip<A, B> {
    pub(super) fn new(first: A, second: B, length: ZipLength) -> Self {
        let stage = stage_after(&[&first, &second]);
        Self { first, second, length, stage }
    }
}

impl<A: Stage, B: Stage> Stage for IterZip<A, B> {
    fn node(&self) -> Node<'_> {
        Node { describe: &self.length, memory: Some(Memory::NOTHING), ..Node::new("zip", Role::Stateful) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.first, &self.second]
    }
}

impl<A: IterDataset, B: IterDataset> IterDataset for IterZip<A, B> {
    type Item = (A::Item, B::Item);
    type Iter = IterZipIter<A::Iter, B::Iter>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let offset = (&self.first as &dyn Stage).count();
        let (first, second) = (self.first.iter(run)?, self.second.iter(&run.offset(offset))?);
        Ok(IterZipIter { first, second, offset, length: self.length, stop: false, stage: self.stage })
    }
}

/// A pass over [`IterZip`].
#[doc(hidden)]
pub struct IterZipIter<A, B> {
    first: A,
    second: B,
    offset: usize,
    length: ZipLength,
    stop: bool,
    stage: StageId,
}

/// Position of a zip.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZipState<S> {
    /// Position of each parent.
    pub parents: S,
    /// True if a parent has ended. No parent is read after that.
    pub stop: bool,
}

impl<A: DatasetIterator, B: DatasetIterator> DatasetIterator for IterZipIter<A, B> {
    type Item = (A::Item, B::Item);
    type State = ZipState<(A::State, B::State)>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        if self.stop {
            return Ok(None);
        }
        // Reads the second side even if the first fails, so that both stay aligned.
        let first = self.first.next(cx);
        if self.length == ZipLength::Shortest && matches!(first, Ok(None)) {
            self.stop = true;
            return Ok(None);
        }
        let second = cx.within(self.offset, |cx| self.second.next(cx));
        match (first?, second?) {
            (Some(first), Some(second)) => {
                cx.produced(self.stage, 1, 0);
                Ok(Some((first, second)))
            }
            (a, b) => {
                self.stop = true;
                self.length.end(&[a.is_some(), b.is_some()]).map_err(|e| cx.blame(self.stage, "zip", e)).map(|()| None)
            }
        }
    }

    fn state(&self) -> Self::State {
        ZipState { parents: (self.first.state(), self.second.state()), stop: self.stop }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.stop = state.stop;
        let (first, second) = state.parents;
        self.first.restore(first, cx)?;
        cx.within(self.offset, |cx| self.second.restore(second, cx))
    }
}

impl ZipLength {
    /// Checks the end. `more[k]` is true if dataset `k` still had an element.
    fn end(self, more: &[bool]) -> Result<()> {
        let shorter = more.iter().position(|more| !more);
        let longer = more.iter().position(|more| *more);
        match (self, shorter, longer) {
            (Self::Equal, Some(shorter), Some(longer)) => {
                let text = format!("zip argument {} is shorter than argument {}", shorter + 1, longer + 1);
                Err(Error::data(text).help("zip to the shortest if that is intended"))
            }
            _ => Ok(()),
        }
    }
}

debug_name!(IterZipIter<A, B>);

/// See [`zip_all`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct IterZipAll<D> {
    parents: Vec<D>,
    length: ZipLength,
    stage: StageId,
}

/// Joins the elements of all `datasets` side by side, into vectors with an element of each dataset.
///
/// ```
/// use gristmill::{dataset::iter::{ZipLength, zip_all}, dataset::map::Range, prelude::*};
/// let ds = [0, 10, 20].map(|start| Range::new(start, start + 2).to_iter());
/// assert_eq!(zip_all(ds, ZipLength::Equal).collect()?, [[0, 10, 20], [1, 11, 21]]);
/// # Ok::<(), gristmill::Error>(())
/// ```
/// # Errors
/// As [`IterDatasetExt::zip_with`](super::IterDatasetExt::zip_with); [`ErrorKind::Config`](crate::ErrorKind::Config) if
/// there are no datasets.
pub fn zip_all<D: IterDataset>(datasets: impl IntoIterator<Item = D>, length: ZipLength) -> IterZipAll<D> {
    let parents: Vec<D> = datasets.into_iter().collect();
    let nodes: Vec<&dyn Stage> = parents.iter().map(|p| p as &dyn Stage).collect();
    let stage = stage_after(&nodes);
    IterZipAll { parents, length, stage }
}

impl<D: Stage> Stage for IterZipAll<D> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, memory: Some(Memory::NOTHING), ..Node::new("zip", Role::Stateful) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.iter().map(|p| p as &dyn Stage).collect()
    }
}

impl<D> Describe for IterZipAll<D> {
    fn params(&self) -> String {
        self.length.params()
    }
    fn check(&self) -> Result<()> {
        if self.parents.is_empty() {
            Err(Error::config("the number of datasets to zip is 0, and must be 1 or more"))
        } else {
            Ok(())
        }
    }
}

impl<D: IterDataset> IterDataset for IterZipAll<D> {
    type Item = Vec<D::Item>;
    type Iter = IterZipAllIter<D::Iter>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let parents = Siblings::start(&self.parents, run)?;
        Ok(IterZipAllIter { parents, length: self.length, stop: false, stage: self.stage })
    }
}

/// A pass over [`IterZipAll`].
#[doc(hidden)]
pub struct IterZipAllIter<I> {
    parents: Siblings<I>,
    length: ZipLength,
    stop: bool,
    stage: StageId,
}

impl<I: DatasetIterator> DatasetIterator for IterZipAllIter<I> {
    type Item = Vec<I::Item>;
    type State = ZipState<Vec<I::State>>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        if self.stop {
            return Ok(None);
        }
        let mut row = Vec::with_capacity(self.parents.len());
        let mut failed = None;
        for k in 0..self.parents.len() {
            match self.parents.next(k, cx) {
                Ok(element) => row.push(element),
                // Continues with the other datasets, so that all stay aligned.
                Err(error) => failed = failed.or(Some(error)),
            }
            if self.length == ZipLength::Shortest && matches!(row.last(), Some(None)) {
                break;
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let more: Vec<bool> = row.iter().map(Option::is_some).collect();
        match row.into_iter().collect::<Option<Vec<_>>>().filter(|row| !row.is_empty()) {
            Some(row) => {
                cx.produced(self.stage, 1, 0);
                Ok(Some(row))
            }
            None => {
                self.stop = true;
                self.length.end(&more).map_err(|e| cx.blame(self.stage, "zip", e)).map(|()| None)
            }
        }
    }

    fn state(&self) -> Self::State {
        ZipState { parents: self.parents.states(), stop: self.stop }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.stop = state.stop;
        self.parents.restore(state.parents, cx).map_err(|e| cx.blame(self.stage, "zip", e))
    }
}

debug_name!(IterZipAllIter<I>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IterDatasetExt;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{ErrorKind, MapDatasetExt};

    #[test]
    fn pairs_of_different_types() {
        let texts = Range::new(0, 5).map(|x| x.to_string()).to_iter().filter(|x| x != "9");
        let ds = Range::new(0, 5).to_iter().zip(texts.map(|x| x + "!"));
        assert_eq!(laws::check(&ds), (0..5).map(|x| (x, format!("{x}!"))).collect::<Vec<_>>());
    }

    #[test]
    fn the_shorter_one_is_named_or_ends_it() {
        let short = || Range::new(0, 2).to_iter();
        let long = || Range::new(0, 4).to_iter();
        let error = short().zip(long()).collect().unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Data, "zip argument 1 is shorter than argument 2"));
        let error = zip_all([long(), long(), short()], ZipLength::Equal).collect().unwrap_err();
        assert_eq!(error.message(), "zip argument 3 is shorter than argument 1");
        assert_eq!(laws::check(&long().zip_with(short(), ZipLength::Shortest)), [(0, 0), (1, 1)]);
        assert_eq!(laws::check(&short().zip_with(long(), ZipLength::Shortest)), [(0, 0), (1, 1)]);
        assert_eq!(laws::check(&zip_all([long(), short()], ZipLength::Shortest)), [[0, 0], [1, 1]]);
        assert_eq!(laws::check(&zip_all([long(), long()], ZipLength::Equal)).len(), 4);
    }

    #[test]
    fn behind_the_end_nothing_is_read() {
        let bad = || Range::new(0, 4).try_map(|x| if x == 3 { Err(Error::data("bad")) } else { Ok(x) }).to_iter();
        let short = Range::new(0, 2).to_iter();
        assert_eq!(laws::check(&bad().zip_with(short, ZipLength::Shortest)), [(0, 0), (1, 1)]);
        let rows = zip_all([bad().boxed(), Range::new(0, 2).to_iter().boxed()], ZipLength::Shortest);
        assert_eq!(laws::check(&rows).len(), 2);
    }

    #[test]
    fn an_error_on_one_side_keeps_the_sides_together() {
        let bad = || Range::new(0, 4).try_map(|x| if x == 1 { Err(Error::data("bad")) } else { Ok(x) }).to_iter();
        let pairs = Range::new(0, 4).to_iter().zip(bad());
        let (mut iter, mut cx) = (pairs.iter(&Runtime::inline()).unwrap(), Cx::default());
        let all: Vec<_> = (0..4).map(|_| iter.next(&mut cx).ok().flatten()).collect();
        assert_eq!(all, [Some((0, 0)), None, Some((2, 2)), Some((3, 3))]);
        let rows = zip_all([bad(), bad()], ZipLength::Shortest);
        let mut iter = rows.iter(&Runtime::inline()).unwrap();
        assert!((0..4).map(|_| iter.next(&mut cx).is_err()).eq([false, true, false, false]));
    }

    #[test]
    fn stage_ids_go_on_in_the_second_dataset() {
        let bad = Range::new(0, 4).try_map(|x| if x == 1 { Err(Error::data("bad")) } else { Ok(x) });
        let error = Range::new(0, 4).to_iter().zip(bad.to_iter()).collect().unwrap_err();
        assert_eq!(error.to_string(), "stage 3 map: element 1: bad");
    }

    #[test]
    fn no_datasets_are_a_config_error() {
        let none = zip_all(Vec::<crate::dataset::iter::Stream<Range>>::new(), ZipLength::Shortest);
        assert_eq!(none.collect().unwrap_err().kind(), ErrorKind::Config);
    }
}
