//! Keys in memory.

use crate::error::{Error, Result};

/// Key of a slot: the outcome of its record, as far as a plan needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// The record yields this number of elements: usually 1, 0 if a filter drops the record, several after `flat_map`.
    Elements(u32),
    /// The record is bad: its evaluation fails, and a policy may skip it.
    Bad,
}

impl Key {
    /// Maximum number of elements of a slot.
    pub const MOST: u32 = u32::MAX - 1;

    /// Returns the number of elements that the slot yields.
    #[inline]
    pub fn elements(self) -> u32 {
        match self {
            Self::Elements(elements) => elements,
            Self::Bad => 0,
        }
    }

    /// Returns the code of the key: small for frequent keys. Counts above [`MOST`](Self::MOST) have no distinct code.
    #[inline]
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Elements(elements @ 0..2) => elements,
            Self::Bad => BAD,
            Self::Elements(elements) => elements.saturating_add(1),
        }
    }

    /// Returns the key of a code.
    #[inline]
    pub(super) fn of_code(code: u32) -> Self {
        match code {
            0..BAD => Self::Elements(code),
            BAD => Self::Bad,
            _ => Self::Elements(code - 1),
        }
    }
}

/// Code of [`Key::Bad`].
const BAD: u32 = 2;
/// Code of a slot with one element.
pub(super) const ONE: u32 = 1;

/// Keys of consecutive slots, with the lengths of their elements.
///
/// A block of a key file has [`BLOCK`](super::BLOCK) slots, or fewer if it is the last. A block in memory may have any number of slots.
/// A length takes 4 bytes of memory. Each slot takes 4 more bytes unless every slot of the block yields one element.
///
/// ```
/// use gristmill::keys::{Key, KeyBlock};
///
/// let mut block = KeyBlock::new(1);
/// block.push(1, &[512])?;
/// block.push(0, &[])?;
/// block.push_bad();
/// block.push(2, &[40, 7])?;
/// let keys: Vec<_> = block.iter().collect();
/// assert_eq!(keys, [(Key::Elements(1), &[512][..]), (Key::Elements(0), &[]), (Key::Bad, &[]), (Key::Elements(2), &[40, 7])]);
/// assert_eq!((block.len(), block.elements()), (4, 3));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KeyBlock {
    columns: usize,
    slots: usize,
    elements: u64,
    /// Code of each slot; empty while every slot yields one element.
    codes: Vec<u32>,
    /// Lengths, element by element; each element has one length per column.
    lens: Vec<u32>,
}

impl KeyBlock {
    /// Creates an empty block whose elements have a length in each of `columns` columns.
    pub fn new(columns: usize) -> Self {
        Self { columns, slots: 0, elements: 0, codes: Vec::new(), lens: Vec::new() }
    }

    /// Adds a slot that yields `yields` elements. `lens` holds their lengths, element by element, with one length per column.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the number of lengths is wrong, or if there are more than [`Key::MOST`] elements.
    #[inline]
    pub fn push(&mut self, yields: u32, lens: &[u32]) -> Result<()> {
        if yields > Key::MOST || lens.len() as u64 != u64::from(yields) * self.columns as u64 {
            return Err(self.refused(yields, lens));
        }
        self.lens.extend_from_slice(lens);
        self.push_key(Key::Elements(yields));
        Ok(())
    }

    /// Adds a slot whose record is bad.
    #[inline]
    pub fn push_bad(&mut self) {
        self.push_key(Key::Bad);
    }

    /// Adds a slot with the given key.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_of(&mut self, key: Key, lens: &[u32]) -> Result<()> {
        match key {
            Key::Elements(elements) => self.push(elements, lens),
            Key::Bad => {
                self.push_bad();
                Ok(())
            }
        }
    }

    #[cold]
    fn refused(&self, yields: u32, lens: &[u32]) -> Error {
        if yields > Key::MOST {
            return Error::config(format!("a slot yields {yields} elements, and a key holds {} at most", Key::MOST));
        }
        Error::config(format!("a key of {yields} elements and {} columns has {} lengths", self.columns, lens.len()))
    }

    /// Adds a slot whose lengths are already in [`lens_mut`](Self::lens_mut).
    #[inline]
    pub(super) fn push_key(&mut self, key: Key) {
        if key.code() != ONE || !self.codes.is_empty() {
            self.codes.resize(self.slots, ONE);
            self.codes.push(key.code());
        }
        self.slots += 1;
        self.elements += u64::from(key.elements());
    }

    /// Returns the lengths, to which the caller may append the lengths of the next slot.
    #[inline]
    pub(super) fn lens_mut(&mut self) -> &mut Vec<u32> {
        &mut self.lens
    }

    /// Removes all slots and keeps the allocated memory.
    pub fn clear(&mut self) {
        (self.slots, self.elements) = (0, 0);
        self.codes.clear();
        self.lens.clear();
    }

    /// Returns the number of slots.
    pub fn len(&self) -> usize {
        self.slots
    }

    /// Returns true if the block has no slots.
    pub fn is_empty(&self) -> bool {
        self.slots == 0
    }

    /// Returns the number of columns: the lengths per element.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the total number of elements of all slots.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns the lengths of all elements, element by element, with one length per column.
    pub fn lens(&self) -> &[u32] {
        &self.lens
    }

    /// Iterates over the slots: the key of each, and the lengths of its elements as in [`push`](Self::push).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Key, &[u32])> {
        let mut rest = self.lens.as_slice();
        (0..self.slots).map(move |slot| {
            let key = Key::of_code(self.code(slot));
            let (lens, behind) = rest.split_at(key.elements() as usize * self.columns);
            rest = behind;
            (key, lens)
        })
    }

    /// Returns true if every slot yields one element.
    pub(crate) fn is_one_each(&self) -> bool {
        self.codes.is_empty()
    }

    /// Adds `slots` slots that yield one element each, whose lengths are already in [`lens_mut`](Self::lens_mut).
    #[inline]
    pub(super) fn push_ones(&mut self, slots: usize) {
        if !self.codes.is_empty() {
            self.codes.resize(self.slots + slots, ONE);
        }
        self.slots += slots;
        self.elements += slots as u64;
    }

    /// Returns the code of a slot's key.
    #[inline]
    pub(super) fn code(&self, slot: usize) -> u32 {
        self.codes.get(slot).copied().unwrap_or(ONE)
    }
}

debug_as!(KeyBlock, |self, f| {
    write!(f, "KeyBlock({} slots, {} elements, {} columns)", self.slots, self.elements, self.columns)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_number_of_its_own() {
        let keys = [0, 1, 2, 3, Key::MOST].map(Key::Elements).into_iter().chain([Key::Bad]);
        for key in keys.clone() {
            assert_eq!(Key::of_code(key.code()), key);
            assert_eq!(keys.clone().filter(|other| other.code() == key.code()).count(), 1, "{key:?}");
        }
        assert_eq!(Key::Elements(1).code(), ONE);
    }

    #[test]
    fn keys_of_one_element_take_no_numbers() {
        let mut block = KeyBlock::new(2);
        block.push(1, &[5, 6]).unwrap();
        block.push(1, &[7, 8]).unwrap();
        assert!(block.codes.is_empty());
        block.push_bad();
        block.push(1, &[9, 0]).unwrap();
        assert_eq!(block.codes, [1, 1, 2, 1]);
        assert_eq!(block.iter().last(), Some((Key::Elements(1), &[9, 0][..])));
        block.clear();
        assert_eq!((block.len(), block.elements(), block.iter().count()), (0, 0, 0));
        assert_eq!(block, KeyBlock::new(2));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let mut block = KeyBlock::new(2);
        let error = block.push(2, &[1, 2, 3]).unwrap_err();
        assert_eq!(error.to_string(), "a key of 2 elements and 2 columns has 3 lengths");
        assert!(block.push(u32::MAX, &[]).is_err() && block.is_empty());
        let mut bare = KeyBlock::new(0);
        bare.push(Key::MOST, &[]).unwrap();
        assert_eq!(
            (bare.elements(), bare.iter().next()),
            (Key::MOST.into(), Some((Key::Elements(Key::MOST), &[][..])))
        );
        assert!(bare.push(1, &[1]).is_err());
    }
}
