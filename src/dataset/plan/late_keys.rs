//! Keys of a stage after the border, and the pass over stand-ins that uses them.

use std::any::Any;
use std::sync::Arc;

use super::leaf::{Leaf, OfLeaf};
use super::stale::{check_lens, failed, stale};
use super::stand_in::{stand_in, tag_of};
use super::visit::{as_element, key_of_one, lengths, texts};
use super::{Member, Planning};
use crate::dataset::facts::Facts;
use crate::dataset::map::Each;
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::keys::{FAILED, Key};

/// Keys of a stage after the border: which elements the stage keeps, and their lengths.
pub(in crate::dataset) struct LateKeys {
    leaves: Vec<OfLeaf>,
    /// The arrays whose lengths are requested, as names and as texts.
    names: Vec<Name>,
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
        Ok(Some(Self { leaves: found, names: planning.names.to_vec(), texts: texts(planning.names) }))
    }

    /// Notes the key of the element that the stage made, if keys are noted. `made` is `None` if the stage dropped the
    /// element. `slot` is an index before border `leaf` that yielded a single element.
    pub(super) fn note(&self, leaf: u32, slot: u64, made: Option<&dyn Any>) {
        let Ok(OfLeaf { noted: Some((stage, notes)), .. }) = self.of(leaf) else { return };
        let mut lens = Vec::new();
        match made.map(|made| key_of_one(made, &self.texts, &mut lens)) {
            Some(Ok(key)) => notes.note(*stage, slot, key, &lens),
            None => notes.note_end(*stage, slot, Key::Elements(0)),
            // Errors other than bad data do not describe the record.
            Some(Err(_)) => {}
        }
    }

    /// Appends the lengths of an element after the stage to `lens`.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(in crate::dataset) fn lens(&self, member: &Member, lens: &mut Vec<u32>) -> Result<()> {
        let leaf = self.of(member.leaf)?;
        if !leaf.is_traced {
            return leaf.keys.lens(member.slot, member.piece, self.names.len(), lens);
        }
        let pieces = self.pieces(leaf, member.slot)?;
        lens.extend_from_slice(&self.piece(&pieces, member)?[1..]);
        Ok(())
    }

    /// Returns the origin of an element.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(in crate::dataset) fn origin(&self, member: &Member) -> Result<Origin> {
        let leaf = self.of(member.leaf)?;
        if !leaf.is_traced {
            let Key::Elements(count) = leaf.keys.key(member.slot, &mut Vec::new())? else { return Err(failed()) };
            return Ok(Origin { piece: 0, at: member.piece, count });
        }
        let pieces = self.pieces(leaf, member.slot)?;
        let piece = self.piece(&pieces, member)?[0];
        let mut origin = Origin { piece, at: 0, count: 0 };
        for (number, _) in (0..).zip(pieces.chunks_exact(self.width())).filter(|(_, other)| other[0] == piece) {
            origin.at += u32::from(number < member.piece);
            origin.count += 1;
        }
        Ok(origin)
    }

    /// Returns the input element that replaces `member` in requests to the parent. Returns `None` if both have equal
    /// numbers.
    ///
    /// # Errors
    /// Errors of the key lookup.
    pub(in crate::dataset) fn parent(&self, member: &Member) -> Result<Option<Member>> {
        match self.of(member.leaf)?.is_traced {
            true => Ok(Some(Member { piece: self.origin(member)?.piece, ..member.clone() })),
            false => Ok(None),
        }
    }

    /// Checks an element against its key. `made` is `None` if the stage dropped the element.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the element was dropped or a length differs.
    pub(in crate::dataset) fn check<T: 'static>(&self, made: Option<&T>, member: &Member) -> Result<()> {
        let Some(made) = made else { return Err(stale("it is dropped, but was kept when its key was made")) };
        if self.names.is_empty() {
            return Ok(());
        }
        let Some(element) = as_element(made).transpose()? else { return Ok(()) };
        let mut lens = Vec::new();
        self.lens(member, &mut lens)?;
        check_lens(&element, &self.names, &lens)
    }

    /// Notes a key of an index before border `leaf`, if keys are noted.
    pub(super) fn note_key(&self, leaf: u32, slot: u64, key: Key, lens: &[u32]) {
        if let Ok(OfLeaf { noted: Some((stage, notes)), .. }) = self.of(leaf) {
            notes.note(*stage, slot, key, lens);
        }
    }

    /// Appends the lengths of an element to `lens`. Returns false if the lengths cannot be measured.
    pub(super) fn add_lens(&self, element: &dyn Any, lens: &mut Vec<u32>) -> bool {
        lengths(element, &self.texts, lens).is_ok()
    }

    fn of(&self, leaf: u32) -> Result<&OfLeaf> {
        let found = self.leaves.iter().find(|found| found.number == leaf);
        found.ok_or_else(|| Error::state("an element was planned for a border that does not exist"))
    }

    /// Numbers stored per piece: the number of the input element, and the lengths.
    fn width(&self) -> usize {
        1 + self.names.len()
    }

    /// Returns the numbers of all pieces in the key of an index, consecutively.
    fn pieces(&self, leaf: &OfLeaf, slot: u64) -> Result<Vec<u32>> {
        let mut pieces = Vec::new();
        match leaf.keys.key(slot, &mut pieces)? {
            Key::Elements(_) => Ok(pieces),
            Key::Bad => Err(failed()),
        }
    }

    /// Returns the numbers of the planned piece.
    fn piece<'a>(&self, pieces: &'a [u32], member: &Member) -> Result<&'a [u32]> {
        let piece = pieces.chunks_exact(self.width()).nth(member.piece as usize);
        piece.filter(|piece| piece[0] < FAILED).ok_or_else(|| {
            let Member { slot, piece, .. } = member;
            Error::state(format!("element {slot} was planned, but its key lacks piece {piece}"))
        })
    }

    /// Returns stand-ins for the elements that the stage makes from the element of a stand-in.
    fn stand_ins(&self, element: &Element) -> Result<Vec<Element>> {
        let [slot, place] = tag_of(element)?;
        let leaf = self.of((place >> 32) as u32)?;
        let made = match leaf.is_traced {
            true => self.pieces_of(leaf, slot, place as u32),
            false => leaf.keys.stand_ins(leaf.number, slot, &self.names),
        };
        made.map_err(|error| error.index(slot))
    }

    /// Like [`stand_ins`](Self::stand_ins), for element number `piece` of an index.
    fn pieces_of(&self, leaf: &OfLeaf, slot: u64, piece: u32) -> Result<Vec<Element>> {
        let pieces = self.pieces(leaf, slot)?;
        let of = |made: &[u32]| made[0] & !FAILED;
        let made = (0..).zip(pieces.chunks_exact(self.width()));
        made.filter(|(_, made)| of(made) == piece)
            .map(|(number, made)| match made[0] < FAILED {
                true => stand_in(leaf.number, slot, number, &self.names, &made[1..]),
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

impl Each<Element> for ByKey {
    type Out = Element;

    fn apply(&self, _: u64, element: Element) -> Result<Option<Element>> {
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

impl Each<Element> for PiecesByKey {
    type Out = Vec<Element>;

    fn apply(&self, _: u64, element: Element) -> Result<Option<Vec<Element>>> {
        self.keys.stand_ins(&element).map(Some)
    }
}
