use std::borrow::Cow;

use super::order::{Order, Ordered};
use crate::dataset::stage::Stage;
use crate::dataset::{INFINITE, Period};
use crate::error::{Error, Result};

/// See [`MapDatasetExt::repeat`](super::MapDatasetExt::repeat).
pub type Repeat<D> = Ordered<D, RepeatOrder>;

/// The order of [`Repeat`]: consecutive epochs.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct RepeatOrder {
    pub(super) num_epochs: Option<u64>,
    pub(super) reseed: bool,
    pub(super) parent_len: u64,
}

impl<D> Repeat<D> {
    /// Sets whether each epoch is shuffled and draws random numbers anew (the default). If not, each epoch repeats the
    /// first.
    pub fn reseed_each_epoch(mut self, reseed: bool) -> Self {
        self.order.reseed = reseed;
        self
    }
}

impl Order for RepeatOrder {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    facts! { name: "repeat" }

    fn params(&self) -> String {
        let epochs = self.num_epochs.map_or_else(|| "forever".to_owned(), |n| n.to_string());
        if self.reseed { epochs } else { format!("{epochs}, reseed_each_epoch=false") }
    }
    fn len(&self, parent: u64) -> u64 {
        match self.num_epochs {
            None if parent == 0 => 0,
            None => INFINITE,
            Some(n) => n.saturating_mul(parent).min(INFINITE),
        }
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        Ok(if self.reseed { Some(index) } else { index.checked_rem(self.parent_len) })
    }
    fn places<'a>(&self, indices: &'a [u64]) -> Option<Cow<'a, [u64]>> {
        if self.reseed {
            return Some(indices.into());
        }
        indices.iter().map(|index| index.checked_rem(self.parent_len)).collect()
    }
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        Ok((self.reseed || place < self.parent_len).then_some(place))
    }
    fn period(&self) -> Option<Period> {
        (!self.reseed).then_some(Period { parent: self.parent_len, len: self.parent_len })
    }
    fn remark(&self, parent: &dyn Stage) -> Option<String> {
        let differ = self.reseed && self.num_epochs != Some(1);
        (differ && slices_a_shuffle(parent, false)).then(|| {
            "it repeats a slice of a shuffled dataset, which has other elements in each epoch: if another slice is held out, use \
             `split` before `shuffle` instead"
                .to_owned()
        })
    }
    fn check(&self) -> Result<()> {
        match self.num_epochs {
            Some(0) => Err(Error::config("the number of epochs is 0, and must be 1 or more")),
            _ if self.parent_len >= INFINITE => {
                Err(Error::config("it repeats a dataset that never ends").help("remove one of the two `repeat`s"))
            }
            None if self.parent_len == 0 => Err(Error::config("it repeats an empty dataset forever")
                .help("check the paths and filters before it: there is nothing to read")),
            _ => Ok(()),
        }
    }
}

/// Returns true if `stage` takes a contiguous slice of a shuffle that has other elements, too. Slices with a step are
/// usually shards.
fn slices_a_shuffle(stage: &dyn Stage, sliced: bool) -> bool {
    let shuffles = || stage.name() == "shuffle" || stage.node().describe.mixing().is_some();
    match stage.name() {
        _ if sliced && shuffles() => return true,
        // After `split`, every epoch equals the first epoch.
        "split" => return false,
        "repeat" if stage.params().contains("reseed_each_epoch=false") => return false,
        _ => {}
    }
    let slices = stage.name() == "slice" && stage.params().matches(':').count() == 1 && stage.params() != ":";
    stage.parents().iter().any(|parent| slices_a_shuffle(*parent, sliced || slices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cx;
    use crate::dataset::Stage;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};

    fn globals(len: i64) -> impl MapDataset<Item = u64> {
        Range::new(0, len).map_with_index(|i, _| i.global)
    }

    #[test]
    fn epochs_follow_each_other_or_start_again() {
        assert_eq!(globals(3).repeat(2).collect().unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(globals(3).repeat(2).reseed_each_epoch(false).collect().unwrap(), [0, 1, 2, 0, 1, 2]);
        // Indices continue past the last epoch.
        assert_eq!(globals(3).repeat(2).get(100, &mut Cx::default()).unwrap(), Some(100));
        assert_eq!(globals(3).repeat(2).reseed_each_epoch(false).get(100, &mut Cx::default()).unwrap(), Some(1));
    }

    #[test]
    fn forever_has_no_length() {
        let ds = Range::new(0, 3).repeat(None);
        assert_eq!(ds.len(), INFINITE);
        assert_eq!(ds.get(INFINITE - 1, &mut Cx::default()).unwrap(), Some(0));
        assert_eq!(Range::new(0, 3).repeat(u64::MAX).len(), INFINITE);
        assert_eq!(ds.node().describe.params(), "forever");
        assert_eq!(
            Range::new(0, 3).repeat(2).reseed_each_epoch(false).node().describe.params(),
            "2, reseed_each_epoch=false"
        );
    }

    #[test]
    fn a_repeated_slice_of_a_shuffle_is_remarked() {
        let shuffled = || Range::new(0, 10).shuffle(1);
        let remark = |ds: &dyn Stage| ds.node().describe.remark();
        let told = remark(&shuffled().slice(..9).map(|x| x + 1).repeat(None)).unwrap();
        assert!(told.starts_with("it repeats a slice of a shuffled dataset"), "{told}");
        assert!(remark(&shuffled().slice(-1..).boxed().repeat(2)).is_some());
        let sizes = crate::dataset::map::SplitSizes::new([0.5]);
        let quiet: [&dyn Stage; 7] = [
            &shuffled().slice(..9).repeat(1),
            &shuffled().slice(..9).repeat(None).reseed_each_epoch(false),
            &shuffled().slice(..9),
            &shuffled().slice_step(1.., 2).repeat(None),
            &shuffled().slice(..).repeat(None),
            &Range::new(0, 10).slice(..9).shuffle(1).repeat(None),
            &shuffled().slice(..9).split(&sizes, 0).shuffle(1).repeat(None),
        ];
        quiet.iter().for_each(|ds| assert_eq!(remark(*ds), None, "{:?}", ds.lines()));
    }

    #[test]
    fn what_cannot_be_repeated_is_refused() {
        assert!(Range::new(0, 3).repeat(0).node().describe.check().is_err());
        assert!(
            Range::new(0, 3)
                .repeat(None)
                .repeat(2)
                .node()
                .describe
                .check()
                .unwrap_err()
                .message()
                .contains("never ends")
        );
        assert!(Range::new(0, 0).repeat(None).node().describe.check().is_err());
        let empty = Range::new(0, 0).repeat(3).reseed_each_epoch(false);
        assert!(empty.node().describe.check().is_ok());
        assert_eq!((empty.len(), empty.get(5, &mut Cx::default()).unwrap()), (0, None));
    }
}
