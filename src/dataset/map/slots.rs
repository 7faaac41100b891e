use super::{Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;

/// See [`MapDataset::slots`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Slots<D> {
    parent: D,
    stage: StageId,
}

impl<D: Stage> Slots<D> {
    pub(super) fn new(parent: D) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, stage }
    }
}

impl<D: Stage> Stage for Slots<D> {
    fn name(&self) -> &'static str {
        "slots"
    }
    fn role(&self) -> Role {
        Role::Elementwise
    }
    fn is_native(&self) -> bool {
        true
    }
    fn has_every_index(&self) -> bool {
        true
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: MapDataset> MapDataset for Slots<D> {
    type Item = Option<D::Item>;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Self::Item>> {
        let slot = self.parent.get(index, cx)?;
        cx.produced(self.stage, 1, 0);
        Ok(Some(slot))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Self::Item> {
        let many = match self.parent.get_many(indices, cx).dense() {
            Ok(items) => items.into_iter().map(Some).collect::<Vec<_>>().into(),
            Err(many) => many.into_iter().map(|slot| slot.map(Some)).collect::<Many<_>>(),
        };
        cx.produced(self.stage, many.items().len() as u64, 0);
        many
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::dataset::map::Range;

    #[test]
    fn an_empty_slot_is_an_element() {
        let ds = Range::new(0, 6).filter(|x| x % 3 == 1).slots();
        assert_eq!(ds.collect().unwrap(), [None, Some(1), None, None, Some(4), None]);
        assert_eq!(ds.get(7, &mut Cx::default()).unwrap(), Some(Some(1)));
        assert!(!(&ds as &dyn Stage).may_drop());
        // What comes behind may drop again.
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
