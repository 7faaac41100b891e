//! Reference-counted bytes, whoever owns them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::spare;
use crate::error::{Error, Result};
use crate::units::Bytes;

/// Memory that a [`Buffer`] can view: the heap, a file mapping, an Arrow buffer, a leased shared-memory slot.
///
/// Dropping the last view drops the owner: that is how a lease returns.
pub trait Owner: Send + Sync {
    /// The bytes: always the same place and length for the life of the owner.
    fn bytes(&self) -> &[u8];

    /// The same bytes, where whoever holds the owner alone may write to them; files and shared memory stay as they are.
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

/// The alignment in bytes of what gristmill allocates: a cache line, and what JAX and Arrow take over without a copy.
const ALIGNMENT: usize = 64;

/// Whether so many bytes can be had is found out before they are taken.
const PROBED: usize = 1 << 20;

/// The unit of allocation, as aligned as memory comes anyway: asking for more takes allocators several times as long,
/// and keeps them from handing out pages that are zero already.
pub(super) type Word = u128;
const WORD: usize = size_of::<Word>();

/// Words that hold `len` bytes wherever the first of them has to lie.
fn words_for(len: usize) -> usize {
    len.div_ceil(WORD) + ALIGNMENT / WORD - 1
}

/// Words in front of the first that lies at a multiple of [`ALIGNMENT`]; there is one where words are aligned as they are long.
fn words_before(first: *const Word) -> usize {
    first.align_offset(ALIGNMENT).min(ALIGNMENT / WORD - 1)
}

/// Memory that gristmill allocated, 64-byte aligned, still writable because it has one holder.
///
/// Freeze it into a [`Buffer`] to share it.
pub struct BufferMut {
    words: Vec<Word>,
    /// Bytes in front of the first.
    start: usize,
    len: usize,
    /// Whether the memory is used again once nobody has it.
    lent: bool,
}

impl BufferMut {
    /// `len` bytes of 0. Large allocations come zeroed from the system and cost nothing until touched.
    pub fn zeroed(len: usize) -> Self {
        let words: Vec<Word> = vec![0; words_for(len)];
        Self::over(words, len, false)
    }

    /// The first `len` bytes of `words` that begin where they should.
    fn over(words: Vec<Word>, len: usize, lent: bool) -> Self {
        let start = WORD * words_before(words.as_ptr());
        Self { words, start, len, lent }
    }

    /// The same, for a length that a user or a file has chosen.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the system has not as much memory.
    pub fn try_zeroed(len: usize) -> Result<Self> {
        refuse_too_many(len, words_for(len))?;
        Ok(Self::zeroed(len))
    }

    /// `len` bytes that are all to be written: what is large may have been another array's, and have what that had. It is
    /// neither zeroed nor, where it was in use before, handed out anew by the system page by page.
    ///
    /// # Errors
    /// As for [`try_zeroed`](Self::try_zeroed).
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

    /// Room for `count` numbers of type `T`, all 0.
    pub fn zeroed_for<T: Pod>(count: usize) -> Self {
        Self::zeroed(count * size_of::<T>())
    }

    /// The bytes, writable.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[self.start..self.start + self.len]
    }

    /// The bytes as numbers of type `T`.
    ///
    /// # Panics
    /// If the length is not a multiple of the size of `T`, which is a bug of the caller: it chose the length.
    pub fn as_mut_slice<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.as_mut_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[self.start..self.start + self.len]
    }

    /// Makes them shareable, without a copy.
    pub fn freeze(self) -> Buffer {
        let Self { words, start, len, lent } = self;
        let owner: Arc<dyn Owner> = if lent { spare::lend(words) } else { Arc::new(words) };
        Buffer(Repr::Shared { owner, start, len })
    }
}

/// Checks that the system has memory for `len` bytes, which are to lie in so many words.
fn refuse_too_many(len: usize, words: usize) -> Result<()> {
    // Memory that is 0 from the start can only be asked for in a way that ends the program where it is refused. So more
    // than a little is asked for first as it comes, which costs nothing: nobody writes to it.
    if len >= PROBED {
        let mut probe: Vec<Word> = Vec::new();
        let refused = probe.try_reserve_exact(words).is_err();
        if refused {
            return Err(Error::config(format!("{} of memory for one array cannot be had", Bytes(len as u64)))
                .help("smaller or fewer rows: of a batch, a window, or packed together"));
        }
    }
    Ok(())
}

impl fmt::Debug for BufferMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferMut({} bytes)", self.len)
    }
}

/// Bytes that many holders share; a clone or a slice copies nothing.
///
/// Up to 8 bytes (a scalar) lie in the handle itself. What [`BufferMut`] allocated starts 64-byte aligned; a view
/// of foreign memory starts where it starts, and typed access checks that.
#[derive(Clone)]
pub struct Buffer(Repr);

#[derive(Clone)]
enum Repr {
    Inline { words: [u64; 1], len: u8 },
    Shared { owner: Arc<dyn Owner>, start: usize, len: usize },
}

impl Buffer {
    /// No bytes.
    pub const EMPTY: Self = Self(Repr::Inline { words: [0], len: 0 });

    /// All bytes of `owner`.
    pub fn from_owner(owner: Arc<dyn Owner>) -> Self {
        let len = owner.bytes().len();
        Self(Repr::Shared { owner, start: 0, len })
    }

    /// Up to 8 bytes, the lowest of `word` first; what is above them does not count.
    #[cfg(any(all(feature = "workers", target_os = "linux"), feature = "columns", feature = "csv"))]
    #[inline(always)]
    pub(crate) fn from_word(word: u64, len: usize) -> Self {
        let len = len.min(8);
        let kept = if len == 8 { word } else { word & ((1 << (8 * len)) - 1) };
        Self(Repr::Inline { words: [kept.to_le()], len: len as u8 })
    }

    /// `len` bytes from `start` on of `owner`, which has them: where it has not, reading them panics.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    #[inline(always)]
    pub(crate) fn part_of(owner: &Arc<dyn Owner>, start: usize, len: usize) -> Self {
        Self(Repr::Shared { owner: owner.clone(), start, len })
    }

    /// The numbers of a vector, without a copy.
    pub fn from_vec<T: Pod + Send + Sync>(vec: Vec<T>) -> Self {
        Self::from_owner(Arc::new(vec))
    }

    /// A copy of `bytes`, 64-byte aligned.
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

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { words, len } => &bytemuck::bytes_of(words)[..usize::from(*len)],
            Repr::Shared { owner, start, len } => &owner.bytes()[*start..*start + *len],
        }
    }

    /// The bytes, writable: `None` if anybody else views their memory, or if it is not the heap's.
    pub fn as_mut_bytes(&mut self) -> Option<&mut [u8]> {
        match &mut self.0 {
            Repr::Inline { words, len } => Some(&mut bytemuck::bytes_of_mut(words)[..usize::from(*len)]),
            Repr::Shared { owner, start, len } => Arc::get_mut(owner)?.bytes_mut()?.get_mut(*start..*start + *len),
        }
    }

    /// The same bytes on the heap, for this holder alone: a copy only if they are anybody else's, too.
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

    /// The bytes as numbers, or `None` if they are misaligned for `T` or no whole number of them.
    pub fn as_slice<T: Pod>(&self) -> Option<&[T]> {
        bytemuck::try_cast_slice(self.as_bytes()).ok()
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        match &self.0 {
            Repr::Inline { len, .. } => usize::from(*len),
            Repr::Shared { len, .. } => *len,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A view of `range` that shares the memory, or `None` if it does not lie inside.
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

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

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

    /// Files and shared memory.
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
