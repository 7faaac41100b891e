//! Keys of what a stage behind borders makes of elements, and its pass over stand-ins by those.

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

/// Keys of what a stage behind borders makes of elements: which it keeps, and how long they are then.
pub(in crate::dataset) struct LateKeys {
    leaves: Vec<OfLeaf>,
    /// The arrays whose lengths are asked for, and the same as texts.
    names: Vec<Name>,
    texts: Vec<String>,
}

/// The place of an element among those that were made of another one of its record.
pub(in crate::dataset) struct Origin {
    /// The number of that one.
    pub(super) piece: u32,
    /// The number of the element among those that were made of it.
    pub(super) at: u32,
    /// The number of those.
    pub(super) count: u32,
}

impl LateKeys {
    /// The keys of `leaves` with the lengths that are asked for; `None` where one has none.
    ///
    /// # Errors
    /// Those of looking for keys.
    pub(in crate::dataset) fn find<T: 'static>(leaves: &[Leaf<T>], planning: &Planning<'_>) -> Result<Option<Self>> {
        let mut found = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let Some(keys) = leaf.keys(planning)? else { return Ok(None) };
            found.push(keys);
        }
        Ok(Some(Self { leaves: found, names: planning.names.to_vec(), texts: texts(planning.names) }))
    }

    /// Notes the key of what was made of the one element of an index in front of border `leaf`, where keys are noted; `None` is what was dropped.
    pub(super) fn note(&self, leaf: u32, slot: u64, made: Option<&dyn Any>) {
        let Ok(OfLeaf { noted: Some((stage, notes)), .. }) = self.of(leaf) else { return };
        let mut lens = Vec::new();
        match made.map(|made| key_of_one(made, &self.texts, &mut lens)) {
            Some(Ok(key)) => notes.note(*stage, slot, key, &lens),
            None => notes.note_end(*stage, slot, Key::Elements(0)),
            // It says nothing of the record.
            Some(Err(_)) => {}
        }
    }

    /// Puts the lengths that an element will have behind `lens`.
    ///
    /// # Errors
    /// Those of looking its key up.
    pub(in crate::dataset) fn lens(&self, member: &Member, lens: &mut Vec<u32>) -> Result<()> {
        let leaf = self.of(member.leaf)?;
        if !leaf.is_traced {
            return leaf.keys.lens(member.slot, member.piece, self.names.len(), lens);
        }
        let pieces = self.pieces(leaf, member.slot)?;
        lens.extend_from_slice(&self.piece(&pieces, member)?[1..]);
        Ok(())
    }

    /// Finds of which element one was made, and which of those it is.
    ///
    /// # Errors
    /// Those of looking its key up.
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

    /// The element of which one was made that is to be asked for in its place; `None` where they have the same number.
    ///
    /// # Errors
    /// Those of looking its key up.
    pub(in crate::dataset) fn parent(&self, member: &Member) -> Result<Option<Member>> {
        match self.of(member.leaf)?.is_traced {
            true => Ok(Some(Member { piece: self.origin(member)?.piece, ..member.clone() })),
            false => Ok(None),
        }
    }

    /// Checks that what was made is as long as its key says; `None` is what was dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where it is not.
    pub(in crate::dataset) fn check<T: 'static>(&self, made: Option<&T>, member: &Member) -> Result<()> {
        let Some(made) = made else { return Err(stale("it is dropped, and its key says that it is kept")) };
        if self.names.is_empty() {
            return Ok(());
        }
        let Some(element) = as_element(made).transpose()? else { return Ok(()) };
        let mut lens = Vec::new();
        self.lens(member, &mut lens)?;
        check_lens(&element, &self.names, &lens)
    }

    /// Notes this key of an index in front of border `leaf`, where keys are noted.
    pub(super) fn note_key(&self, leaf: u32, slot: u64, key: Key, lens: &[u32]) {
        if let Ok(OfLeaf { noted: Some((stage, notes)), .. }) = self.of(leaf) {
            notes.note(*stage, slot, key, lens);
        }
    }

    /// Puts the lengths of an element behind `lens`, unless they cannot be told.
    pub(super) fn add_lens(&self, element: &dyn Any, lens: &mut Vec<u32>) -> bool {
        lengths(element, &self.texts, lens).is_ok()
    }

    fn of(&self, leaf: u32) -> Result<&OfLeaf> {
        let found = self.leaves.iter().find(|found| found.number == leaf);
        found.ok_or_else(|| Error::state("an element was planned of a border that is not there"))
    }

    /// Numbers of each piece: of which it was made, and its lengths.
    fn width(&self) -> usize {
        1 + self.names.len()
    }

    /// What the key of an index says of each piece, one behind the other.
    fn pieces(&self, leaf: &OfLeaf, slot: u64) -> Result<Vec<u32>> {
        let mut pieces = Vec::new();
        match leaf.keys.key(slot, &mut pieces)? {
            Key::Elements(_) => Ok(pieces),
            Key::Bad => Err(failed()),
        }
    }

    /// What it says of the one that was planned.
    fn piece<'a>(&self, pieces: &'a [u32], member: &Member) -> Result<&'a [u32]> {
        let piece = pieces.chunks_exact(self.width()).nth(member.piece as usize);
        piece.filter(|piece| piece[0] < FAILED).ok_or_else(|| {
            let Member { slot, piece, .. } = member;
            Error::state(format!("element {slot} was planned, and its key does not say what its piece {piece} is"))
        })
    }

    /// Stands for what becomes of the element that `element` stands for.
    fn stand_ins(&self, element: &Element) -> Result<Vec<Element>> {
        let [slot, place] = tag_of(element)?;
        let leaf = self.of((place >> 32) as u32)?;
        let made = match leaf.is_traced {
            true => self.pieces_of(leaf, slot, place as u32),
            false => leaf.keys.stand_ins(leaf.number, slot, &self.names),
        };
        made.map_err(|error| error.index(slot))
    }

    /// The same of the element number `piece` of an index.
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

/// Keeps what stands for elements that a stage keeps, as long as they are then: its pass over stand-ins.
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

/// The same of a stage that makes any number of each.
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
