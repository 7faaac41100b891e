//! Keys of a stage after the border, and the pass over stand-ins that uses them.

use std::any::Any;
use std::sync::Arc;

use super::Planning;
use super::leaf::{Leaf, OfLeaf};
use super::stale::{check_lens, failed, stale};
use super::stand_in::StandIn;
use super::visit::{as_element, key_of_one, lengths, texts};
use crate::cx::ElementId;
use crate::dataset::facts::Facts;
use crate::dataset::map::Each;
use crate::element::Name;
use crate::error::{Error, Result};
use crate::keys::{FAILED, Key};

/// Keys of a stage after the border: which elements the stage keeps, and their lengths.
pub(in crate::dataset) struct LateKeys {
    leaves: Vec<OfLeaf>,
    /// The arrays whose lengths are requested, as names and as texts.
    names: Arc<[Name]>,
    texts: Vec<String>,
}

/// The origin of an element that a stage made from another element of the record.
pub(in crate::dataset) struct Origin {
    /// The number of the input element.
    pub(super) piece: u32,
    /// The element's position among the elements made from the input element.
    pub(super) at: u32,
    /// The number of elements made from the input element.
    pub(super) count: u32,
}

impl LateKeys {
    /// Finds the keys of `leaves`, with the requested lengths. Returns `None` if a leaf has no keys.
    ///
    /// # Errors
    /// Errors of the search for keys.
    pub(in crate::dataset) fn find<T: 'static>(leaves: &[Leaf<T>], planning: &Planning<'_>) -> Result<Option<Self>> {
        let mut found = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let Some(keys) = leaf.keys(planning)? else { return Ok(None) };
            found.push(keys);
        }
        Ok(Some(Self { leaves: found, names: planning.names.into(), texts: texts(planning.names) }))
    }

    /// Notes the key of the element that the stage made, if keys are noted. `made` is `None` if the stage dropped the
    /// element. `of` is the single element of its index.
    pub(super) fn note(&self, of: ElementId, made: Option<&dyn Any>) {
        let Ok(OfLeaf { noted: Some((stage, notes)), .. }) = self.of(of) else { return };
        let mut lens = Vec::new();
        match made.map(|made| key_of_one(made, &self.texts, &mut lens)) {
            Some(Ok(key)) => notes.note(*stage, of.index, key, &lens),
            None => notes.note_end(*stage, of.index, Key::Elements(0)),
            // Errors other than bad data do not describe the record.
            Some(Err(_)) => {}
        }
    }

    /// Appends the lengths of an element after the stage to `lens`.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(in crate::dataset) fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        let leaf = self.of(id)?;
        if !leaf.is_traced {
            return leaf.keys.lens(id.index, id.piece, self.names.len(), lens);
        }
        let pieces = self.pieces(leaf, id.index)?;
        lens.extend_from_slice(&self.piece(&pieces, id)?[1..]);
        Ok(())
    }

    /// Returns the origin of an element.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(in crate::dataset) fn origin(&self, id: ElementId) -> Result<Origin> {
        let leaf = self.of(id)?;
        if !leaf.is_traced {
            let Key::Elements(count) = leaf.keys.key(id.index, &mut Vec::new())? else { return Err(failed()) };
            return Ok(Origin { piece: 0, at: id.piece, count });
        }
        let pieces = self.pieces(leaf, id.index)?;
        let piece = self.piece(&pieces, id)?[0];
        let mut origin = Origin { piece, at: 0, count: 0 };
        for (number, _) in (0..).zip(pieces.chunks_exact(self.width())).filter(|(_, other)| other[0] == piece) {
            origin.at += u32::from(number < id.piece);
            origin.count += 1;
        }
        Ok(origin)
    }

    /// Returns the input element that replaces `id` in requests to the parent. Returns `None` if both have equal
    /// numbers.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(in crate::dataset) fn parent(&self, id: ElementId) -> Result<Option<ElementId>> {
        match self.of(id)?.is_traced {
            true => Ok(Some(ElementId { piece: self.origin(id)?.piece, ..id })),
            false => Ok(None),
        }
    }

    /// Checks an element against its key. `made` is `None` if the stage dropped the element.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the element was dropped or a length differs.
    pub(in crate::dataset) fn check<T: 'static>(&self, made: Option<&T>, id: ElementId) -> Result<()> {
        let Some(made) = made else { return Err(stale("it is dropped, but was kept when its key was made")) };
        if self.names.is_empty() {
            return Ok(());
        }
        let Some(element) = as_element(made).transpose()? else { return Ok(()) };
        let mut lens = Vec::new();
        self.lens(id, &mut lens)?;
        check_lens(&element, &self.names, &lens)
    }

    /// Notes the key of an index, whose single element is `of`, if keys are noted.
    pub(super) fn note_key(&self, of: ElementId, key: Key, lens: &[u32]) {
        if let Ok(OfLeaf { noted: Some((stage, notes)), .. }) = self.of(of) {
            notes.note(*stage, of.index, key, lens);
        }
    }

    /// Appends the lengths of an element to `lens`. Returns false if the lengths cannot be measured.
    pub(super) fn add_lens(&self, element: &dyn Any, lens: &mut Vec<u32>) -> bool {
        lengths(element, &self.texts, lens).is_ok()
    }

    fn of(&self, id: ElementId) -> Result<&OfLeaf> {
        let found = self.leaves.iter().find(|found| found.number == id.border);
        found.ok_or_else(|| Error::state("an element was planned for a border that does not exist"))
    }

    /// Numbers stored per piece: the number of the input element, and the lengths.
    fn width(&self) -> usize {
        1 + self.names.len()
    }

    /// Returns the numbers of all pieces in the key of an index, consecutively.
    fn pieces(&self, leaf: &OfLeaf, index: u64) -> Result<Vec<u32>> {
        let mut pieces = Vec::new();
        match leaf.keys.key(index, &mut pieces)? {
            Key::Elements(_) => Ok(pieces),
            Key::Bad => Err(failed()),
        }
    }

    /// Returns the numbers of the planned piece.
    fn piece<'a>(&self, pieces: &'a [u32], id: ElementId) -> Result<&'a [u32]> {
        let piece = pieces.chunks_exact(self.width()).nth(id.piece as usize);
        piece.filter(|piece| piece[0] < FAILED).ok_or_else(|| {
            let ElementId { index, piece, .. } = id;
            Error::state(format!("element {index} was planned, but its key lacks piece {piece}"))
        })
    }

    /// Returns stand-ins for the elements that the stage makes from the element of a stand-in.
    fn stand_ins(&self, element: &StandIn) -> Result<Vec<StandIn>> {
        let id = element.id()?;
        let leaf = self.of(id)?;
        let made = match leaf.is_traced {
            true => self.pieces_of(leaf, id),
            false => leaf.keys.stand_ins(id.border, id.index, &self.names),
        };
        made.map_err(|error| error.index(id.index))
    }

    /// Like [`stand_ins`](Self::stand_ins), for keys with origins.
    fn pieces_of(&self, leaf: &OfLeaf, id: ElementId) -> Result<Vec<StandIn>> {
        let pieces = self.pieces(leaf, id.index)?;
        let of = |made: &[u32]| made[0] & !FAILED;
        let made = (0..).zip(pieces.chunks_exact(self.width()));
        made.filter(|(_, made)| of(made) == id.piece)
            .map(|(number, made)| match made[0] < FAILED {
                true => Ok(StandIn::new(ElementId { piece: number, ..id }, &self.names, &made[1..])),
                false => Err(failed()),
            })
            .collect()
    }
}

/// The pass over stand-ins: keeps the stand-ins of elements that the stage keeps, with their lengths after the stage.
pub(in crate::dataset) struct ByKey {
    pub(in crate::dataset) keys: Arc<LateKeys>,
    /// The name of the stage.
    pub(in crate::dataset) name: &'static str,
}

impl Facts for ByKey {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Each<StandIn> for ByKey {
    type Out = StandIn;

    fn apply(&self, _: u64, element: StandIn) -> Result<Option<StandIn>> {
        Ok(self.keys.stand_ins(&element)?.pop())
    }
}

/// Like [`ByKey`], for a stage that makes several elements from each element.
pub(in crate::dataset) struct PiecesByKey {
    pub(super) keys: Arc<LateKeys>,
    pub(super) name: &'static str,
}

impl Facts for PiecesByKey {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Each<StandIn> for PiecesByKey {
    type Out = Vec<StandIn>;

    fn apply(&self, _: u64, element: StandIn) -> Result<Option<Vec<StandIn>>> {
        self.keys.stand_ins(&element).map(Some)
    }
}
