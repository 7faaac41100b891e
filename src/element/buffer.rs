//! Reference-counted bytes of any owner.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::spare;
use crate::error::{Error, Result};
use crate::units::Bytes;

/// Memory that a [`Buffer`] can view: the heap, a file mapping, an Arrow buffer, a leased shared-memory slot.
///
/// Dropping the last view drops the owner, which returns a lease.
pub trait Owner: Send + Sync {
    /// Returns the bytes, whose address and length never change while the owner lives.
    fn bytes(&self) -> &[u8];

    /// Returns the bytes, writable, for the sole holder of the owner; `None` for files and shared memory.
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }
}

impl<T: Pod + Send + Sync> Owner for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(bytemuck::cast_slice_mut(self))
    }
}

/// Alignment in bytes of memory that gristmill allocates: a cache line. JAX and Arrow take over such memory without a copy.
const ALIGNMENT: usize = 64;

/// Smallest size in bytes that is probed before allocation, so that a refusal is an error instead of an abort.
const PROBED: usize = 1 << 20;

/// The unit of allocation, with the default alignment of allocators. A larger alignment makes allocators several times
/// slower and prevents them from handing out pages that the system already zeroed.
pub(super) type Word = u128;
const WORD: usize = size_of::<Word>();

/// Returns the number of words for `len` bytes plus any padding for alignment.
fn words_for(len: usize) -> usize {
    len.div_ceil(WORD) + ALIGNMENT / WORD - 1
}

/// Returns the number of words before the first word at a multiple of [`ALIGNMENT`]. Such a word exists if words are
/// aligned to their size.
fn words_before(first: *const Word) -> usize {
    first.align_offset(ALIGNMENT).min(ALIGNMENT / WORD - 1)
}

/// Memory that gristmill allocated, 64-byte aligned, writable because it has a single holder.
///
/// Freeze it into a [`Buffer`] to share it.
pub struct BufferMut {
    words: Vec<Word>,
    /// Offset of the first byte in `words`.
    start: usize,
    len: usize,
    /// Whether the memory returns to the pool when its last view is dropped.
    lent: bool,
}

impl BufferMut {
    /// Allocates `len` bytes of 0. The system zeroes large allocations lazily, so they cost nothing until touched.
    pub fn zeroed(len: usize) -> Self {
        let words: Vec<Word> = vec![0; words_for(len)];
        Self::over(words, len, false)
    }

    /// Wraps the first `len` aligned bytes of `words`.
    fn over(words: Vec<Word>, len: usize, lent: bool) -> Self {
        let start = WORD * words_before(words.as_ptr());
        Self { words, start, len, lent }
    }

    /// Allocates `len` bytes of 0, for a length chosen by a user or a file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the system does not have enough memory.
    pub fn try_zeroed(len: usize) -> Result<Self> {
        refuse_too_many(len, words_for(len))?;
        Ok(Self::zeroed(len))
    }

    /// Allocates `len` bytes that the caller overwrites completely. Large memory may come from the pool, with the contents
    /// of an earlier array. Pooled memory is not zeroed, and its pages take no new page faults.
    ///
    /// # Errors
    /// Fails like [`try_zeroed`](Self::try_zeroed).
    pub(super) fn try_used(len: usize) -> Result<Self> {
        if !spare::is_large(len) {
            return Ok(Self::zeroed(len));
        }
        let count = words_for(spare::rounded(len));
        if let Some(words) = spare::old_words(count) {
            return Ok(Self::over(words, len, true));
        }
        refuse_too_many(len, count)?;
        Ok(Self::over(vec![0; count], len, true))
    }

    /// Allocates `count` numbers of type `T`, all 0.
    pub fn zeroed_for<T: Pod>(count: usize) -> Self {
        Self::zeroed(count * size_of::<T>())
    }

    /// Returns the bytes, writable.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[self.start..self.start + self.len]
    }

    /// Returns the bytes as numbers of type `T`, writable.
    ///
    /// # Panics
    /// Panics if the length is not a multiple of the size of `T`. This is a bug in the caller, which chose the length.
    pub fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.as_mut_bytes())
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[self.start..self.start + self.len]
    }

    /// Turns the memory into a shareable [`Buffer`] without a copy.
    pub fn freeze(self) -> Buffer {
        let Self { words, start, len, lent } = self;
        let owner: Arc<dyn Owner> = if lent { spare::lend(words) } else { Arc::new(words) };
        Buffer(Repr::Shared { owner, start, len })
    }
}

/// Checks that the system has memory for `len` bytes, allocated as `words` words.
fn refuse_too_many(len: usize, words: usize) -> Result<()> {
    // A zeroed allocation aborts the program if it is refused. So larger requests first reserve uninitialized memory,
    // which costs nothing because its pages are never touched.
    if len >= PROBED {
        let mut probe: Vec<Word> = Vec::new();
        let refused = probe.try_reserve_exact(words).is_err();
        if refused {
            return Err(Error::config(format!("cannot allocate {} of memory for one array", Bytes(len as u64)))
                .help("use smaller or fewer rows in a batch, a window or a packed row"));
        }
    }
    Ok(())
}

debug_as!(BufferMut, |self, f| write!(f, "BufferMut({} bytes)", self.len));

/// Bytes shared by many holders; a clone or a slice copies nothing.
///
/// Up to 8 bytes (a scalar) are stored inline. Memory from [`BufferMut`] is 64-byte aligned. A view of foreign memory
/// may have any alignment, which typed access checks.
#[derive(Clone)]
pub struct Buffer(Repr);

#[derive(Clone)]
enum Repr {
    Inline { words: [u64; 1], len: u8 },
    Shared { owner: Arc<dyn Owner>, start: usize, len: usize },
}

impl Buffer {
    /// A buffer without bytes.
    pub const EMPTY: Self = Self(Repr::Inline { words: [0], len: 0 });

    /// Returns a view of all bytes of `owner`.
    pub fn from_owner(owner: Arc<dyn Owner>) -> Self {
        let len = owner.bytes().len();
        Self(Repr::Shared { owner, start: 0, len })
    }

    /// Makes a buffer of the `len` lowest bytes of `word`, at most 8, lowest first. Higher bytes are ignored.
    #[inline(always)]
    pub(crate) fn from_word(word: u64, len: usize) -> Self {
        let len = len.min(8);
        let kept = if len == 8 { word } else { word & ((1 << (8 * len)) - 1) };
        Self(Repr::Inline { words: [kept.to_le()], len: len as u8 })
    }

    /// Returns a view of `len` bytes of `owner` from `start` on. Reading the view panics if the range is out of bounds.
    #[inline(always)]
    pub(crate) fn part_of(owner: &Arc<dyn Owner>, start: usize, len: usize) -> Self {
        Self(Repr::Shared { owner: owner.clone(), start, len })
    }

    /// Takes over the numbers of a vector without a copy.
    pub fn from_vec<T: Pod + Send + Sync>(vec: Vec<T>) -> Self {
        Self::from_owner(Arc::new(vec))
    }

    /// Copies `bytes` to memory with 64-byte alignment, or inline up to 8 bytes.
    #[inline]
    pub fn copy_from(bytes: &[u8]) -> Self {
        Self::inline(bytes).unwrap_or_else(|| Self::aligned(bytes))
    }

    fn aligned(bytes: &[u8]) -> Self {
        let mut words = Vec::with_capacity(words_for(bytes.len()));
        words.resize(words_before(words.as_ptr()), 0);
        let start = WORD * words.len();
        let (whole, rest) = bytes.as_chunks::<WORD>();
        words.extend(whole.iter().map(|word| Word::from_ne_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; WORD];
            last[..rest.len()].copy_from_slice(rest);
            words.push(Word::from_ne_bytes(last));
        }
        BufferMut { words, start, len: bytes.len(), lent: false }.freeze()
    }

    #[inline]
    fn inline(bytes: &[u8]) -> Option<Self> {
        let mut words = [0u64; 1];
        bytemuck::bytes_of_mut(&mut words).get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self(Repr::Inline { words, len: bytes.len() as u8 }))
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { words, len } => &bytemuck::bytes_of(words)[..usize::from(*len)],
            Repr::Shared { owner, start, len } => &owner.bytes()[*start..*start + *len],
        }
    }

    /// Returns the bytes, writable; `None` if the memory has other views or is not on the heap.
    pub fn as_mut_bytes(&mut self) -> Option<&mut [u8]> {
        match &mut self.0 {
            Repr::Inline { words, len } => Some(&mut bytemuck::bytes_of_mut(words)[..usize::from(*len)]),
            Repr::Shared { owner, start, len } => Arc::get_mut(owner)?.bytes_mut()?.get_mut(*start..*start + *len),
        }
    }

    /// Moves the bytes to heap memory that has no other views. Copies if they are shared, inline or not on the heap.
    pub fn into_exclusive(mut self) -> Self {
        let lent = self.as_mut_bytes().is_some();
        match self.0 {
            Repr::Shared { .. } if lent => self,
            Repr::Inline { words, len } => {
                Self(Repr::Shared { owner: Arc::new(words.to_vec()), start: 0, len: len.into() })
            }
            Repr::Shared { .. } if self.len() > size_of::<u64>() => Self::copy_from(self.as_bytes()),
            Repr::Shared { .. } => Self::copy_from(self.as_bytes()).into_exclusive(),
        }
    }

    /// Returns the bytes as numbers; `None` if they are misaligned for `T` or their length is not a multiple of its size.
    pub fn as_slice<T: Pod>(&self) -> Option<&[T]> {
        bytemuck::try_cast_slice(self.as_bytes()).ok()
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline { len, .. } => usize::from(*len),
            Repr::Shared { len, .. } => *len,
        }
    }

    /// Returns true if the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a view of `range` that shares the memory; `None` if `range` is out of bounds.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        if range.start > range.end || range.end > self.len() {
            return None;
        }
        match &self.0 {
            Repr::Inline { .. } => Self::inline(&self.as_bytes()[range]),
            Repr::Shared { owner, start, .. } => {
                Some(Self(Repr::Shared { owner: owner.clone(), start: start + range.start, len: range.len() }))
            }
        }
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Buffer {}

debug_as!(Buffer, |self, f| write!(f, "Buffer({} bytes)", self.len()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_aligned_and_slices_share_it() {
        let mut b = BufferMut::zeroed_for::<i32>(100);
        b.as_mut_slice::<i32>()[50] = 7;
        let b = b.freeze();
        assert_eq!(b.as_bytes().as_ptr().align_offset(64), 0);
        let view = b.slice(200..204).unwrap();
        assert_eq!(view.as_slice::<i32>().unwrap(), [7]);
        assert_eq!(view.as_bytes().as_ptr(), b.as_bytes()[200..].as_ptr());
        assert!(b.slice(398..401).is_none());
    }

    #[test]
    fn scalars_live_in_the_handle() {
        let b = Buffer::copy_from(&7u64.to_le_bytes());
        assert!(matches!(b.0, Repr::Inline { .. }));
        assert_eq!(b.as_slice::<u64>().unwrap(), [7]);
        assert_eq!(b.slice(0..1).unwrap().as_bytes(), [7]);
        assert!(b.as_slice::<[u8; 3]>().is_none());
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    #[test]
    fn a_word_is_as_long_as_it_is_said_to_be() {
        let word = 0x0807_0605_0403_0201;
        for len in 0..=8 {
            assert_eq!(Buffer::from_word(word, len), Buffer::copy_from(&word.to_le_bytes()[..len]));
        }
        let owner: Arc<dyn Owner> = Arc::new(vec![1u8, 2, 3, 4]);
        assert_eq!(Buffer::part_of(&owner, 1, 2).as_bytes(), [2, 3]);
    }

    #[test]
    fn what_one_holder_has_may_be_written_to() {
        let mut alone = Buffer::copy_from(&[1; 100]);
        alone.as_mut_bytes().unwrap()[99] = 7;
        let mut view = alone.slice(90..100).unwrap();
        assert!(alone.as_mut_bytes().is_none() && view.as_mut_bytes().is_none());
        let (place, copied) = (view.as_bytes().as_ptr(), view.clone().into_exclusive());
        assert_ne!(copied.as_bytes().as_ptr(), place);
        drop(alone);
        let mut same = view.into_exclusive();
        assert_eq!((same.as_bytes().as_ptr(), same.as_mut_bytes().unwrap()[9]), (place, 7));
        let mut short = Buffer::copy_from(&[1, 2, 3]).into_exclusive();
        assert!(matches!(short.0, Repr::Shared { .. }));
        assert_eq!(short.as_mut_bytes().unwrap(), [1, 2, 3]);
        let mut part = Buffer::from_vec(vec![4u8; 50]).slice(0..4).unwrap().into_exclusive();
        assert_eq!(part.as_mut_bytes().unwrap(), [4; 4]);
    }

    /// An owner without writable bytes, like a file or shared memory.
    #[test]
    fn what_an_owner_does_not_lend_is_copied() {
        struct Sealed([u8; 9]);
        impl Owner for Sealed {
            fn bytes(&self) -> &[u8] {
                &self.0
            }
        }
        let mut sealed = Buffer::from_owner(Arc::new(Sealed([5; 9])));
        assert!(sealed.as_mut_bytes().is_none());
        assert_eq!(sealed.into_exclusive().as_mut_bytes().unwrap(), [5; 9]);
    }

    #[test]
    fn the_owner_goes_with_the_last_view() {
        let owner: Arc<dyn Owner> = Arc::new(vec![1u8; 64]);
        let weak = Arc::downgrade(&owner);
        let b = Buffer::from_owner(owner);
        let view = b.slice(3..9).unwrap();
        drop(b);
        assert!(weak.upgrade().is_some());
        drop(view);
        assert!(weak.upgrade().is_none());
    }
}
