//! The bytes of an extent, accessed through a single pointer by all writers.
//!
//! A chunk writer puts words and bytes there. Between two writes, foreign code such as NumPy may write to blocks of the
//! extent that were reserved for its arrays. No reference to the whole extent may exist during either, and both derive
//! their pointers from this one pointer.
#![expect(unsafe_code, reason = "memory shared with foreign code is written by address")]

use std::marker::PhantomData;

/// Writable bytes, borrowed for the lifetime of the region.
pub(super) struct Region<'a> {
    start: *mut u8,
    pub(super) len: usize,
    _borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: it stands for an exclusive borrow of bytes, which may go to another thread.
unsafe impl Send for Region<'_> {}

impl<'a> Region<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), _borrowed: PhantomData }
    }

    /// Exposes and returns the address of the first byte, for foreign pointers into the region.
    pub(super) fn expose(&self) -> usize {
        self.start.expose_provenance()
    }

    /// Copies `bytes` to `at`, or does nothing if they do not fit. `bytes` may be part of the region.
    #[inline]
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        if at.checked_add(bytes.len()).is_some_and(|end| end <= self.len) {
            // SAFETY: the range lies inside the region (checked), which is borrowed exclusively. `bytes` can be read; where they
            // lie in the region, they are of an array that foreign code has there, and `copy` allows for any overlap.
            unsafe { std::ptr::copy(bytes.as_ptr(), self.start.add(at), bytes.len()) };
        }
    }
}

/// Fills a foreign block as foreign code would, through a pointer without any reference.
#[cfg(test)]
pub(super) fn fill(start: *mut u8, len: usize, byte: u8) {
    // SAFETY: tests fill blocks that they have allocated, all of them, before anybody reads there.
    unsafe { start.write_bytes(byte, len) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_where_they_fit_and_nowhere_else() {
        let mut memory = [0u8; 8];
        let mut region = Region::new(&mut memory);
        region.put(2, &[1, 2, 3]);
        region.put(6, &[9, 9, 9]);
        region.put(usize::MAX, &[9]);
        region.put(8, &[]);
        assert_eq!(region.len, 8);
        assert_eq!(memory, [0, 0, 1, 2, 3, 0, 0, 0]);
        let mut none = Region::new(&mut []);
        none.put(0, &[1]);
    }
}
