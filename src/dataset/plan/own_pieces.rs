//! The maker of planned elements of a prefix that yields several elements per index.

use std::sync::Arc;

use super::again::Again;
use super::keys::PrefixKeys;
use super::own::{Slots, only};
use super::{Make, Member, Planning};
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::map::MapDataset;
use crate::error::{Error, Result};
use crate::exec::Failed;

/// Makes the elements of a prefix that yields several elements per index. Evaluates an index once for all its elements
/// that are requested close together.
pub(in crate::dataset) struct OwnPieces<D: MapDataset<Item = Vec<T>>, T: 'static> {
    slots: Slots<D>,
    /// The elements of evaluated indices.
    again: Again<u64, Pieces<T>>,
}

/// The elements of an index that have not been taken yet, or the mark of a failed index.
pub(super) enum Pieces<T> {
    Whole(Vec<Option<T>>),
    Failed,
}

impl<T> Pieces<T> {
    /// Returns true if element number `piece` is available, or if the index failed.
    pub(super) fn gives(&self, piece: u32) -> bool {
        match self {
            Self::Whole(pieces) => pieces.get(piece as usize).is_some_and(Option::is_some),
            Self::Failed => true,
        }
    }

    /// Takes element number `piece`. Returns `None` if the index failed.
    pub(super) fn give(&mut self, piece: u32, slot: u64) -> Result<Option<T>> {
        let Self::Whole(pieces) = self else { return Ok(None) };
        let given = pieces.get_mut(piece as usize).and_then(Option::take);
        given.map(Some).ok_or_else(|| Error::state(format!("element {slot} has no piece {piece}")))
    }
}

impl<D, T> OwnPieces<D, T>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    pub(in crate::dataset) fn new(
        dataset: Arc<D>,
        keys: Arc<PrefixKeys>,
        stage: StageId,
        planning: &Planning<'_>,
    ) -> Result<Self> {
        Ok(Self { slots: Slots::new(dataset, keys, stage, planning)?, again: Again::default() })
    }

    /// Returns the elements of an index, and evaluates the index unless they are kept.
    fn pieces(&mut self, slot: u64, failed: &Failed, cx: &mut Cx) -> Result<&mut Pieces<T>> {
        if self.again.get(&slot).is_none() {
            let pieces = match self.slots.next(slot, failed, cx)? {
                Some(pieces) => {
                    self.slots.check_count(pieces.len(), slot, cx)?;
                    Pieces::Whole(pieces.into_iter().map(Some).collect())
                }
                None => Pieces::Failed,
            };
            self.again.put(slot, pieces);
        }
        self.again.get(&slot).ok_or_else(|| Error::state(format!("element {slot} is not kept")))
    }
}

impl<D, T> Make<T> for OwnPieces<D, T>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    fn expect(&mut self, recipe: &[Member]) {
        for &Member { id: ElementId { index, piece, .. }, .. } in recipe {
            if self.again.expect(index, Some(piece), |pieces| pieces.gives(piece)) {
                self.slots.expect(index);
            }
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<T>> {
        let id = only(recipe)?;
        let given = self.pieces(id.index, failed, cx)?.give(id.piece, id.index)?;
        self.again.used(&id.index);
        if let Some(given) = &given {
            self.slots.check(given, id, cx)?;
        }
        Ok(given)
    }

    fn sample(&mut self, recipe: &[Member]) -> Result<Option<T>> {
        Ok(self.slots.sample(only(recipe)?.index)?.and_then(|pieces| pieces.into_iter().next()))
    }

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        self.slots.lens(id, lens)
    }

    fn forget(&mut self) -> Result<()> {
        self.again.forget();
        self.slots.forget()
    }
}
