//! Elements of one's own: those that were planned, and no others.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::keys::PrefixKeys;
use super::records::{as_element, length};
use super::{Make, Member, Planning};
use crate::cx::{Cx, StageId};
use crate::dataset::map::{MapDataset, Order, Ordered};
use crate::dataset::run::chunks::Roots;
use crate::element::Name;
use crate::error::{Error, Result};
use crate::keys::Key;
use crate::sync::Locked;

/// Indices in the order in which their elements will be asked for: a list that grows at its end.
#[derive(Clone, Debug, Default)]
struct Listed(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    /// The place of the first that is kept.
    first: u64,
    indices: VecDeque<u64>,
}

impl Listed {
    /// Adds one, and gives the number of places.
    fn push(&self, index: u64) -> u64 {
        let mut list = self.0.locked();
        list.indices.push_back(index);
        list.first + list.indices.len() as u64
    }

    /// Keeps none in front of this place.
    fn forget(&self, place: u64) {
        let mut list = self.0.locked();
        let gone = place.saturating_sub(list.first).min(list.indices.len() as u64);
        list.indices.drain(..gone as usize);
        list.first += gone;
    }

    /// Forgets all, and gives the place of the next.
    fn clear(&self) -> u64 {
        let mut list = self.0.locked();
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

    /// As many as there ever are: the pass is told how far it may go.
    fn len(&self, _: u64) -> u64 {
        u64::MAX
    }

    fn place(&self, place: u64) -> Result<Option<u64>> {
        let list = self.0.locked();
        let at = place.checked_sub(list.first).and_then(|at| usize::try_from(at).ok());
        // What is behind the list was called off.
        Ok(at.and_then(|at| list.indices.get(at).copied()))
    }

    fn inverse(&self, _: u64) -> Result<Option<u64>> {
        Ok(None)
    }

    fn listed(&self, places: Range<u64>) -> Option<Vec<u64>> {
        let list = self.0.locked();
        let at = |place: u64| usize::try_from(place.saturating_sub(list.first)).unwrap_or(usize::MAX);
        let start = at(places.start).min(list.indices.len());
        let end = at(places.end).clamp(start, list.indices.len());
        Some(list.indices.range(start..end).copied().collect())
    }
}

/// The indices of a prefix that were planned, in order.
struct Slots<D: MapDataset> {
    roots: Roots<Ordered<Arc<D>, Listed>>,
    listed: Listed,
    keys: Arc<PrefixKeys>,
    names: Vec<Name>,
    stage: StageId,
}

impl<D> Slots<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    fn new(dataset: Arc<D>, keys: Arc<PrefixKeys>, stage: StageId, planning: &Planning<'_>) -> Result<Self> {
        let listed = Listed::default();
        let ordered = Arc::new(Ordered::new(dataset, |_| listed.clone()));
        let mut roots = Roots::new(ordered, None, &planning.run, stage)?;
        roots.end_at(0);
        Ok(Self { roots, listed, keys, names: planning.names.to_vec(), stage })
    }

    fn expect(&mut self, slot: u64) {
        self.roots.end_at(self.listed.push(slot));
    }

    /// The next of them, which is `slot`.
    fn next(&mut self, slot: u64, cx: &mut Cx) -> Result<D::Item> {
        let next = self.roots.next(cx);
        self.listed.forget(self.roots.position());
        match next {
            Some(Ok(Some(element))) => Ok(element),
            // The index is that of the pipeline, by which its record is found.
            Some(Err(error)) => Err(error.map_index(|_| slot)),
            Some(Ok(None)) => Err(self.stale("it is dropped, and its key says that it is kept", slot, cx)),
            None => Err(Error::state(format!("element {slot} was not planned"))),
        }
    }

    /// Checks that the element number `piece` of `slot` is as long as its key says.
    fn check(&self, element: &dyn Any, slot: u64, piece: u32, cx: &mut Cx) -> Result<()> {
        if self.names.is_empty() {
            return Ok(());
        }
        let Some(element) = as_element(element).transpose()? else { return Ok(()) };
        let mut lens = Vec::new();
        self.keys.key(slot, &mut lens)?;
        for (name, expected) in self.names.iter().zip(lens.get(piece as usize * self.names.len()..).unwrap_or_default())
        {
            let len = length(&element, name)?;
            if len != *expected as usize {
                return Err(self.stale(&format!("{name:?} has {len} cells, and its key says {expected}"), slot, cx));
            }
        }
        Ok(())
    }

    /// Checks how many elements `slot` has yielded.
    fn check_count(&self, count: usize, slot: u64, cx: &mut Cx) -> Result<()> {
        match self.keys.key(slot, &mut Vec::new())? {
            Key::Elements(expected) if expected as usize == count => Ok(()),
            _ => Err(self.stale(&format!("it has become {count} elements, and its key says otherwise"), slot, cx)),
        }
    }

    #[cold]
    fn stale(&self, why: &str, slot: u64, cx: &Cx) -> Error {
        let error = Error::data(format!("the keys are stale: {why}"))
            .help("make them again with `gristmill index --keys`; functions must give the same of the same record whenever they are called");
        cx.blame(self.stage, "to_iter", error.index(slot))
    }

    fn forget(&mut self) -> Result<()> {
        let place = self.listed.clear();
        self.roots.end_at(place);
        self.roots.seek(place)
    }
}

/// Makes elements of a prefix that yields one at most for each index.
pub(in crate::dataset) struct Own<D: MapDataset>(Slots<D>);

impl<D> Own<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    pub(in crate::dataset) fn new(
        dataset: Arc<D>,
        keys: Arc<PrefixKeys>,
        stage: StageId,
        planning: &Planning<'_>,
    ) -> Result<Self> {
        Slots::new(dataset, keys, stage, planning).map(Self)
    }
}

impl<D> Make<D::Item> for Own<D>
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
{
    fn expect(&mut self, recipe: &[Member]) {
        recipe.iter().for_each(|member| self.0.expect(member.slot));
    }

    fn make(&mut self, recipe: &[Member], cx: &mut Cx) -> Result<D::Item> {
        let Member { slot, piece, .. } = *only(recipe)?;
        let element = self.0.next(slot, cx)?;
        self.0.check(&element, slot, piece, cx)?;
        Ok(element)
    }

    fn forget(&mut self) -> Result<()> {
        self.0.forget()
    }
}

/// Makes elements of a prefix that yields any number for each index.
pub(in crate::dataset) struct OwnPieces<D: MapDataset<Item = Vec<T>>, T> {
    slots: Slots<D>,
    /// The index whose elements are given out, and the number of the last one: where those are expected, and where they are made.
    expected: Option<(u64, u32)>,
    open: Option<(u64, u32)>,
    pieces: Vec<Option<T>>,
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
        let slots = Slots::new(dataset, keys, stage, planning)?;
        Ok(Self { slots, expected: None, open: None, pieces: Vec::new() })
    }
}

/// Whether an element is one of those that were evaluated with the one before it, of which each is given out once.
fn is_beside(open: Option<(u64, u32)>, member: &Member) -> bool {
    open.is_some_and(|(slot, piece)| slot == member.slot && piece < member.piece)
}

impl<D, T> Make<T> for OwnPieces<D, T>
where
    D: MapDataset<Item = Vec<T>> + 'static,
    T: Send + 'static,
{
    fn expect(&mut self, recipe: &[Member]) {
        for member in recipe {
            if !is_beside(self.expected, member) {
                self.slots.expect(member.slot);
            }
            self.expected = Some((member.slot, member.piece));
        }
    }

    fn make(&mut self, recipe: &[Member], cx: &mut Cx) -> Result<T> {
        let member = only(recipe)?;
        if !is_beside(self.open, member) {
            (self.open, self.pieces) = (None, Vec::new());
            let pieces = self.slots.next(member.slot, cx)?;
            self.slots.check_count(pieces.len(), member.slot, cx)?;
            self.pieces = pieces.into_iter().map(Some).collect();
        }
        self.open = Some((member.slot, member.piece));
        let piece = self.pieces.get_mut(member.piece as usize).and_then(Option::take);
        let piece =
            piece.ok_or_else(|| Error::state(format!("element {} has no piece {}", member.slot, member.piece)))?;
        self.slots.check(&piece, member.slot, member.piece, cx)?;
        Ok(piece)
    }

    fn forget(&mut self) -> Result<()> {
        (self.expected, self.open, self.pieces) = (None, None, Vec::new());
        self.slots.forget()
    }
}

/// The one element of a recipe.
fn only(recipe: &[Member]) -> Result<&Member> {
    match recipe {
        [only] => Ok(only),
        _ => Err(Error::state(format!("{} elements are planned where one was to be", recipe.len()))),
    }
}
