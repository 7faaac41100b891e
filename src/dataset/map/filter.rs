use std::fmt;

use super::{Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;

/// See [`MapDataset::filter`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Filter<D, P> {
    parent: D,
    predicate: P,
    stage: StageId,
}

impl<D: Stage, P> Filter<D, P> {
    pub(super) fn new(parent: D, predicate: P) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, predicate, stage }
    }
}

impl<D: Stage, P> Stage for Filter<D, P> {
    fn name(&self) -> &'static str {
        "filter"
    }
    fn role(&self) -> Role {
        Role::MayDrop
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, P> MapDataset for Filter<D, P>
where
    D: MapDataset,
    P: Fn(&D::Item) -> bool + Send + Sync,
{
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let Some(element) = self.parent.get(index, cx)? else { return Ok(None) };
        if !cx.consumed(self.stage, || (self.predicate)(&element)) {
            return Ok(None);
        }
        cx.produced(self.stage, 1, 0);
        Ok(Some(element))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        let many = self.parent.get_many(indices, cx);
        let keep = |_, element| Ok((self.predicate)(&element).then_some(element));
        let kept = cx.consumed_many(self.stage, many.items().len(), || many.filter_map(keep));
        cx.produced(self.stage, kept.items().len() as u64, 0);
        kept
    }
}

impl<D: fmt::Debug, P> fmt::Debug for Filter<D, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("parent", &self.parent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;

    #[test]
    fn a_dropped_element_leaves_its_slot() {
        let ds = Range::new(0, 6).filter(|x| x % 3 == 1);
        assert_eq!(ds.len(), 6);
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap(), None);
        assert_eq!(ds.collect().unwrap(), [1, 4]);
    }
}
