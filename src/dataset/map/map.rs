use std::fmt;

use super::{Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;

/// See [`MapDataset::map`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Map<D, F> {
    parent: D,
    f: F,
    stage: StageId,
}

impl<D: Stage, F> Map<D, F> {
    pub(super) fn new(parent: D, f: F) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, f, stage }
    }
}

impl<D: Stage, F> Stage for Map<D, F> {
    fn name(&self) -> &'static str {
        "map"
    }
    fn role(&self) -> Role {
        Role::Elementwise
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, U, F> MapDataset for Map<D, F>
where
    D: MapDataset,
    F: Fn(D::Item) -> U + Send + Sync,
{
    type Item = U;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        let element = self.parent.get(index, cx)?;
        Ok(element.map(|element| cx.timed(self.stage, || (self.f)(element))))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let many = self.parent.get_many(indices, cx);
        cx.timed_many(self.stage, many.items().len(), || many.map(|_, element| (self.f)(element)))
    }
}

impl<D: fmt::Debug, F> fmt::Debug for Map<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("parent", &self.parent).finish_non_exhaustive()
    }
}

/// See [`MapDataset::try_map`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct TryMap<D, F> {
    parent: D,
    f: F,
    stage: StageId,
}

impl<D: Stage, F> TryMap<D, F> {
    pub(super) fn new(parent: D, f: F) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, f, stage }
    }
}

impl<D: Stage, F> Stage for TryMap<D, F> {
    fn name(&self) -> &'static str {
        "map"
    }
    fn role(&self) -> Role {
        Role::Elementwise
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, U, F> MapDataset for TryMap<D, F>
where
    D: MapDataset,
    F: Fn(D::Item) -> Result<U> + Send + Sync,
{
    type Item = U;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.get(index, cx)? else { return Ok(None) };
        match cx.timed(self.stage, || (self.f)(element)) {
            Ok(mapped) => Ok(Some(mapped)),
            Err(error) => Err(cx.blame(self.stage, "map", error)),
        }
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let many = self.parent.get_many(indices, cx);
        let blame = cx.blamer(self.stage, "map");
        let apply = |_, element| (self.f)(element).map(Some).map_err(blame);
        cx.timed_many(self.stage, many.items().len(), || many.filter_map(apply))
    }
}

impl<D: fmt::Debug, F> fmt::Debug for TryMap<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryMap").field("parent", &self.parent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;
    use crate::error::Error;

    #[test]
    fn an_error_names_the_stage() {
        let ds = Range::new(0, 3).map(|x| x + 1).try_map(|x| if x == 2 { Err(Error::user("no twos")) } else { Ok(x) });
        let mut cx = Cx::default();
        assert_eq!(ds.get(0, &mut cx).unwrap(), Some(1));
        assert_eq!(ds.get(1, &mut cx).unwrap_err().to_string(), "stage 2 map: no twos");
    }
}
