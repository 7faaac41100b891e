use super::Many;
use super::each::{Each, Mapped};
use crate::dataset::facts::Facts;
use crate::error::{Error, Result};

/// See [`MapDatasetExt::slots`](super::MapDatasetExt::slots).
pub type Slots<D> = Mapped<D, SlotsFn>;

/// The function of [`Slots`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SlotsFn;

impl Facts for SlotsFn {
    facts! { name: "slots", is_native: true, has_every_index: true }
}

impl<T> Each<T> for SlotsFn {
    type Out = Option<T>;

    #[inline]
    fn apply(&self, _: u64, element: T) -> Result<Option<Self::Out>> {
        Ok(Some(Some(element)))
    }

    fn apply_many(&self, _: &[u64], many: Many<T>, _: impl Fn(Error) -> Error + Copy) -> Many<Self::Out> {
        match many.dense() {
            Ok(items) => items.into_iter().map(Some).collect::<Vec<_>>().into(),
            Err(many) => many.into_iter().map(|slot| slot.map(Some)).collect(),
        }
    }

    #[inline]
    fn of_none(&self) -> Option<Self::Out> {
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use crate::Error;
    use crate::cx::Cx;
    use crate::dataset::Stage;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};

    #[test]
    fn an_empty_slot_is_an_element() {
        let ds = Range::new(0, 6).filter(|x| x % 3 == 1).slots();
        assert_eq!(ds.collect().unwrap(), [None, Some(1), None, None, Some(4), None]);
        assert_eq!(ds.get(7, &mut Cx::default()).unwrap(), Some(Some(1)));
        assert!(!(&ds as &dyn Stage).may_drop());
        // Later stages may drop elements again.
        assert!((&ds.filter(|slot| slot.is_some()) as &dyn Stage).may_drop());
    }

    #[test]
    fn an_error_stays_one() {
        let ds = Range::new(0, 3).try_map(|x| if x == 1 { Err(Error::data("bad")) } else { Ok(x) }).slots();
        let many = ds.get_many(&[0, 1, 2], &mut Cx::default());
        assert_eq!((many.len(), many.items()), (3, [Some(0), Some(2)].as_slice()));
        assert!(ds.get(1, &mut Cx::default()).is_err());
    }
}
