use super::order::{passed, ragged, stacked};
use super::{GetStacked, Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::INFINITE;
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::element::{Name, Ragged, Stack};
use crate::error::{Error, Result};

/// See [`MapDataset::repeat`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Repeat<D> {
    parent: D,
    num_epochs: Option<u64>,
    reseed: bool,
    parent_len: u64,
    stage: StageId,
}

impl<D: MapDataset> Repeat<D> {
    pub(super) fn new(parent: D, num_epochs: Option<u64>) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent_len: parent.len(), parent, num_epochs, reseed: true, stage }
    }

    /// Whether each epoch is shuffled, and draws its random numbers, anew (the default), or every epoch is the first again.
    pub fn reseed_each_epoch(mut self, reseed: bool) -> Self {
        self.reseed = reseed;
        self
    }

    /// Where `indices` are found, if that is elsewhere.
    fn places(&self, indices: &[u64]) -> Option<Vec<u64>> {
        let again = !self.reseed && self.parent_len > 0;
        again.then(|| indices.iter().map(|index| index % self.parent_len).collect())
    }
}

impl<D: MapDataset> Stage for Repeat<D> {
    fn name(&self) -> &'static str {
        "repeat"
    }
    fn params(&self) -> String {
        let epochs = self.num_epochs.map_or_else(|| "forever".to_owned(), |n| n.to_string());
        if self.reseed { epochs } else { format!("{epochs}, reseed_each_epoch=false") }
    }
    fn role(&self) -> Role {
        Role::Order
    }
    fn is_native(&self) -> bool {
        true
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn will_read(&self, next: Upcoming<'_>) {
        match self.places(next.indices()) {
            Some(places) => self.parent.will_read(next.at(&places)),
            None => self.parent.will_read(next),
        }
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

impl<D: MapDataset> MapDataset for Repeat<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        match self.num_epochs {
            None if self.parent_len == 0 => 0,
            None => INFINITE,
            Some(n) => n.saturating_mul(self.parent_len).min(INFINITE),
        }
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let at = if self.reseed { index } else { index.checked_rem(self.parent_len).unwrap_or(0) };
        let element = self.parent.get(at, cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        let places = self.places(indices);
        passed(&self.parent, places.as_deref().unwrap_or(indices), self.stage, cx)
    }

    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<D::Item>
    where
        D::Item: Stack,
    {
        let places = self.places(indices);
        stacked(&self.parent, places.as_deref().unwrap_or(indices), self.stage, cx)
    }

    fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        let places = self.places(indices);
        ragged(&self.parent, places.as_deref().unwrap_or(indices), names, self.stage, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;

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
