use serde::{Deserialize, Serialize};

use super::combine::{IterCombine, IterCombined, Parents};
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::siblings::{Passes, Reads};
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

/// See [`IterDatasetExt::zip`](super::IterDatasetExt::zip).
pub type IterZip<A, B> = IterCombined<(A, B), ZipLength>;

/// See [`zip_all`].
pub type IterZipAll<D> = IterCombined<Vec<D>, ZipLength>;

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
    IterCombined::new(datasets.into_iter().collect(), length)
}

impl<P: Parents<Passes: Passes + 'static>> IterCombine<P> for ZipLength {
    type Pass = IterZipIter<P::Passes>;

    facts! { name: "zip" }

    fn params(&self) -> String {
        match self {
            Self::Equal => "equal".into(),
            Self::Shortest => "shortest".into(),
        }
    }
    fn check(&self, count: usize) -> Result<()> {
        let none = || Error::config("the number of datasets to zip is 0, and must be 1 or more");
        if count > 0 { Ok(()) } else { Err(none()) }
    }
    fn start(&self, parents: P::Passes, stage: StageId, _: &Runtime) -> Result<Self::Pass> {
        Ok(IterZipIter { parents, length: *self, stop: false, stage })
    }
}

/// A pass over [`IterZip`] or [`IterZipAll`].
#[doc(hidden)]
pub struct IterZipIter<P> {
    parents: P,
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

impl<P: Passes> DatasetIterator for IterZipIter<P> {
    type Item = P::Row;
    type State = ZipState<P::States>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        if self.stop {
            return Ok(None);
        }
        let mut reads = Reads { to_shortest: self.length == ZipLength::Shortest, ..Reads::default() };
        let row = self.parents.row(&mut reads, cx);
        if let Some(error) = reads.failed {
            return Err(error);
        }
        self.stop = row.is_none();
        cx.produced(self.stage, u64::from(!self.stop), 0);
        if let (ZipLength::Equal, Some(shorter), Some(longer)) = (self.length, reads.shorter, reads.longer) {
            let text = format!("zip argument {shorter} is shorter than argument {longer}");
            let error = Error::data(text).help("zip to the shortest if that is intended");
            Err(cx.blame(self.stage, "zip", error))
        } else {
            Ok(row)
        }
    }

    fn state(&self) -> Self::State {
        ZipState { parents: self.parents.states(), stop: self.stop }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.stop = state.stop;
        self.parents.restore(state.parents, cx).map_err(|error| cx.blame(self.stage, "zip", error))
    }
}

debug_name!(IterZipIter<P>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IterDatasetExt;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
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
