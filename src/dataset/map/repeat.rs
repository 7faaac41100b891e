use std::borrow::Cow;

use super::order::{Order, Ordered};
use crate::dataset::INFINITE;
use crate::error::{Error, Result};

/// See [`MapDataset::repeat`](super::MapDataset::repeat).
pub type Repeat<D> = Ordered<D, RepeatOrder>;

/// The order of [`Repeat`]: one epoch after the other.
#[derive(Clone, Copy, Debug)]
pub struct RepeatOrder {
    num_epochs: Option<u64>,
    reseed: bool,
    parent_len: u64,
}

impl RepeatOrder {
    pub(super) fn new(parent_len: u64, num_epochs: Option<u64>) -> Self {
        Self { num_epochs, reseed: true, parent_len }
    }
}

impl<D> Repeat<D> {
    /// Whether each epoch is shuffled, and draws its random numbers, anew (the default), or every epoch is the first again.
    pub fn reseed_each_epoch(mut self, reseed: bool) -> Self {
        self.order.reseed = reseed;
        self
    }
}

impl Order for RepeatOrder {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    fn name(&self) -> &'static str {
        "repeat"
    }
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
    fn check(&self) -> Result<()> {
        match self.num_epochs {
            Some(0) => Err(Error::config("0 epochs, and it must be 1 or more")),
            _ if self.parent_len >= INFINITE => {
                Err(Error::config("it repeats a dataset that never ends").help("remove one of the two `repeat`s"))
            }
            None if self.parent_len == 0 => Err(Error::config("it repeats an empty dataset forever")
                .help("look at the paths and filters before it: there is nothing to read")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cx;
    use crate::dataset::Stage;
    use crate::dataset::map::{MapDataset, Range};

    fn globals(len: i64) -> impl MapDataset<Item = u64> {
        Range::new(0, len).map_with_index(|i, _| i.global)
    }

    #[test]
    fn epochs_follow_each_other_or_start_again() {
        assert_eq!(globals(3).repeat(2).collect().unwrap(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(globals(3).repeat(2).reseed_each_epoch(false).collect().unwrap(), [0, 1, 2, 0, 1, 2]);
        // Past the last epoch the count just goes on.
        assert_eq!(globals(3).repeat(2).get(100, &mut Cx::default()).unwrap(), Some(100));
        assert_eq!(globals(3).repeat(2).reseed_each_epoch(false).get(100, &mut Cx::default()).unwrap(), Some(1));
    }

    #[test]
    fn forever_has_no_length() {
        let ds = Range::new(0, 3).repeat(None);
        assert_eq!(ds.len(), INFINITE);
        assert_eq!(ds.get(INFINITE - 1, &mut Cx::default()).unwrap(), Some(0));
        assert_eq!(Range::new(0, 3).repeat(u64::MAX).len(), INFINITE);
        assert_eq!(ds.params(), "forever");
        assert_eq!(Range::new(0, 3).repeat(2).reseed_each_epoch(false).params(), "2, reseed_each_epoch=false");
    }

    #[test]
    fn what_cannot_be_repeated_is_refused() {
        assert!(Range::new(0, 3).repeat(0).check().is_err());
        assert!(Range::new(0, 3).repeat(None).repeat(2).check().unwrap_err().message().contains("never ends"));
        assert!(Range::new(0, 0).repeat(None).check().is_err());
        let empty = Range::new(0, 0).repeat(3).reseed_each_epoch(false);
        assert!(empty.check().is_ok());
        assert_eq!((empty.len(), empty.get(5, &mut Cx::default()).unwrap()), (0, None));
    }
}
