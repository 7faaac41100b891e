//! The makers at a border: evaluate the planned elements of a prefix, and no others.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::make::only;
use super::measure::{as_element, check_lens, stale};
use super::prefix_keys::PrefixKeys;
use super::reuse::Reuse;
use super::{Keyed, Make, Member, Planning};
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::BoxMap;
use crate::dataset::iter::left_out;
use crate::dataset::map::{MapDataset, Order, Ordered};
use crate::dataset::run::chunks::Roots;
use crate::dataset::run::evaluate::caught;
use crate::element::Name;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Failed;
use crate::keys::Key;
use crate::sync::Locked;

/// A border of a plan, with the prefix before it.
pub(in crate::dataset) struct Border<'a, D> {
    pub(in crate::dataset) dataset: &'a Arc<D>,
    /// The keys of the prefix.
    pub(in crate::dataset) keys: Arc<PrefixKeys>,
    pub(in crate::dataset) stage: StageId,
    pub(in crate::dataset) planning: &'a Planning<'a>,
}

impl<D: MapDataset> Border<'_, D> {
    /// Returns the stand-ins `S` of the prefix. The thread that plans reads them.
    pub(in crate::dataset) fn stand_ins<S>(&self) -> Result<Roots<Keyed<S>>>
    where
        Keyed<S>: MapDataset<Item: Send + 'static> + 'static,
    {
        let keyed = Keyed::new(self.keys.clone(), self.dataset.len(), self.planning);
        Roots::new(Arc::new(keyed), None, &self.planning.run.on_one_thread(), self.stage)
    }
}

/// Indices in the order in which their elements will be requested. The list grows at its end.
#[derive(Clone, Debug, Default)]
struct Listed {
    list: Arc<Mutex<List>>,
    /// True if the indices are a small part of all indices.
    apart: bool,
}

#[derive(Debug, Default)]
struct List {
    /// The position of the first index in `indices`.
    first: u64,
    indices: VecDeque<u64>,
}

impl Listed {
    /// Appends an index. Returns the end position of the list.
    fn push(&self, index: u64) -> u64 {
        let mut list = self.list.locked();
        list.indices.push_back(index);
        list.first + list.indices.len() as u64
    }

    /// Drops the indices before position `place`.
    fn forget(&self, place: u64) {
        let mut list = self.list.locked();
        let gone = place.saturating_sub(list.first).min(list.indices.len() as u64);
        list.indices.drain(..gone as usize);
        list.first += gone;
    }

    /// Drops all indices. Returns the position of the next index.
    fn clear(&self) -> u64 {
        let mut list = self.list.locked();
        list.first += list.indices.len() as u64;
        list.indices.clear();
        list.first
    }
}

impl Order for Listed {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    fn name(&self) -> &'static str {
        "part"
    }

    /// Returns `u64::MAX`, because [`Roots::end_at`] limits the pass.
    fn len(&self, _: u64) -> u64 {
        u64::MAX
    }

    fn place(&self, place: u64) -> Result<Option<u64>> {
        let list = self.list.locked();
        let at = place.checked_sub(list.first).and_then(|at| usize::try_from(at).ok());
        // Positions past the end of the list were cancelled.
        Ok(at.and_then(|at| list.indices.get(at).copied()))
    }

    fn is_apart(&self) -> bool {
        self.apart
    }

    fn inverse(&self, _: u64) -> Result<Option<u64>> {
        Ok(None)
    }

    fn listed(&self, places: Range<u64>) -> Option<Vec<u64>> {
        let list = self.list.locked();
        let at = |place: u64| usize::try_from(place.saturating_sub(list.first)).unwrap_or(usize::MAX);
        let start = at(places.start).min(list.indices.len());
        let end = at(places.end).clamp(start, list.indices.len());
        Some(list.indices.range(start..end).copied().collect())
    }
}

/// Maximum number of indices evaluated to find a sample element after a failure.
const SAMPLES: u64 = 256;

/// Makes the elements of a prefix that yields at most one element per index, in the order of the announcements.
pub(in crate::dataset) struct ElementMaker<D: MapDataset<Item: 'static>> {
    dataset: Arc<D>,
    /// Boxed, so that the evaluation is compiled once per item type, not once per prefix.
    roots: Roots<BoxMap<D::Item>>,
    listed: Listed,
    keys: Arc<PrefixKeys>,
    names: Vec<Name>,
    stage: StageId,
}

impl<D> ElementMaker<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    /// Creates the maker of a border.
    pub(in crate::dataset) fn new(border: Border<'_, D>) -> Result<Self> {
        let Border { dataset, keys, stage, planning } = border;
        let listed = Listed { apart: planning.run.is_apart(), ..Listed::default() };
        let ordered = BoxMap::new(Ordered::new(dataset.clone(), |_| listed.clone()));
        let mut roots = Roots::new(Arc::new(ordered), None, &planning.run, stage)?;
        roots.end_at(0);
        Ok(Self { dataset: dataset.clone(), roots, listed, keys, names: planning.names.to_vec(), stage })
    }

    /// Checks that an element has the lengths recorded in its key.
    fn check(&self, element: &dyn Any, id: ElementId, cx: &mut Cx) -> Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let Some(element) = as_element(element).transpose()? else { return Ok(()) };
        let mut lens = Vec::new();
        self.lens(id, &mut lens)?;
        check_lens(&element, &self.names, &lens).map_err(|error| self.blame(error, id.index, cx))
    }

    /// Checks the number of elements of an index against its key.
    fn check_count(&self, count: usize, index: u64, cx: &mut Cx) -> Result<()> {
        match self.keys.key(index, &mut Vec::new())? {
            Key::Elements(expected) if expected as usize == count => Ok(()),
            _ => {
                let error = stale(&format!("it became {count} elements, which is not the number in its key"));
                Err(self.blame(error, index, cx))
            }
        }
    }

    #[cold]
    fn blame(&self, error: Error, index: u64, cx: &Cx) -> Error {
        cx.blame(self.stage, "to_iter", error.index(index))
    }
}

impl<D> Make<D::Item> for ElementMaker<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    fn expect(&mut self, recipe: &[Member]) {
        recipe.iter().for_each(|member| self.roots.end_at(self.listed.push(member.id.index)));
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<D::Item>> {
        let (id, next) = (only(recipe)?, self.roots.next(cx));
        let index = id.index;
        self.listed.forget(self.roots.position());
        match next {
            Some(Ok(Some(element))) => {
                self.check(&element, id, cx)?;
                Ok(Some(element))
            }
            // The error gets the index of the pipeline, by which its record is found.
            Some(Err(error)) => failed.pad(error.map_index(|_| index)).map(|()| None),
            Some(Ok(None)) if self.keys.are_of_indices() => {
                Err(cx.blame(self.stage, "to_iter", left_out().index(index)))
            }
            Some(Ok(None)) => Err(self.blame(stale("it is dropped, but was kept when its key was made"), index, cx)),
            None => Err(Error::state(format!("element {index} was not planned"))),
        }
    }

    /// Evaluates later indices until an index yields an element.
    fn sample(&mut self, recipe: &[Member]) -> Result<Option<D::Item>> {
        let (first, len) = (only(recipe)?.index, self.dataset.len());
        for index in (1..len.min(SAMPLES)).map(|more| (first + more) % len) {
            match caught(|| self.dataset.get(index, &mut Cx::default())) {
                Ok(Some(element)) => return Ok(Some(element)),
                Err(error) if error.kind() != ErrorKind::Data => return Err(error.index(index)),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(None)
    }

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        self.keys.lens(id.index, id.piece, self.names.len(), lens)
    }

    fn lens_of(&self, ids: &[ElementId], lens: &mut Vec<u32>) -> Result<()> {
        self.keys.lens_of(ids, self.names.len(), lens)
    }

    fn forget(&mut self) -> Result<()> {
        let place = self.listed.clear();
        self.roots.end_at(place);
        self.roots.seek(place)
    }
}

/// Makes the elements of a prefix that yields several elements per index. Evaluates an index once for all its elements
/// that are requested close together.
pub(in crate::dataset) struct PieceMaker<D: MapDataset<Item = Vec<T>>, T: 'static> {
    indices: ElementMaker<D>,
    /// The elements of evaluated indices.
    reuse: Reuse<u64, Pieces<T>>,
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
    pub(super) fn give(&mut self, piece: u32, index: u64) -> Result<Option<T>> {
        let Self::Whole(pieces) = self else { return Ok(None) };
        let given = pieces.get_mut(piece as usize).and_then(Option::take);
        given.map(Some).ok_or_else(|| Error::state(format!("element {index} has no piece {piece}")))
    }
}

impl<D, T> PieceMaker<D, T>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    /// Creates the maker of a border.
    pub(in crate::dataset) fn new(border: Border<'_, D>) -> Result<Self> {
        Ok(Self { indices: ElementMaker::new(border)?, reuse: Reuse::default() })
    }
}

impl<D, T> Make<T> for PieceMaker<D, T>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    fn expect(&mut self, recipe: &[Member]) {
        for member in recipe {
            let ElementId { index, piece, .. } = member.id;
            if self.reuse.expect(index, Some(piece), |pieces| pieces.gives(piece)) {
                self.indices.expect(std::slice::from_ref(member));
            }
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<T>> {
        let id = only(recipe)?;
        let ElementId { index, piece, .. } = id;
        let pieces = self.reuse.get_or_put(index, || {
            let Some(pieces) = self.indices.make(recipe, failed, cx)? else { return Ok(Pieces::Failed) };
            self.indices.check_count(pieces.len(), index, cx)?;
            Ok(Pieces::Whole(pieces.into_iter().map(Some).collect()))
        });
        let given = pieces?.give(piece, index)?;
        self.reuse.used(&index);
        if let Some(given) = &given {
            self.indices.check(given, id, cx)?;
        }
        Ok(given)
    }

    fn sample(&mut self, recipe: &[Member]) -> Result<Option<T>> {
        Ok(self.indices.sample(recipe)?.and_then(|pieces| pieces.into_iter().next()))
    }

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        self.indices.lens(id, lens)
    }

    fn forget(&mut self) -> Result<()> {
        self.reuse.forget();
        self.indices.forget()
    }
}
