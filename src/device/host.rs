//! Host memory as the source of transfers.

use std::ops::Range;
use std::sync::Arc;

use super::slots::Slot;
use crate::element::Buffer;

/// Alignment in bytes of memory that devices can read without a copy: a cache line.
pub(super) const ALIGNMENT: usize = 64;

/// Bytes that stay unchanged while any clone of the handle lives.
#[derive(Clone)]
pub(super) struct HostBytes {
    memory: Memory,
    range: Range<usize>,
}

#[derive(Clone)]
enum Memory {
    /// Memory of a batch from the pipeline, possibly a lease of a worker's slab.
    Shared(Buffer),
    /// A slot, filled before the handle was made.
    Slot(Arc<Slot>),
}

impl HostBytes {
    /// Wraps all of `buffer`. Copies buffers of up to 8 bytes: they are stored inline, and moving the handle moves
    /// them.
    pub(super) fn shared(buffer: &Buffer) -> Self {
        let moves = buffer.len() <= size_of::<u64>();
        let buffer = if moves { Buffer::from_vec(buffer.as_bytes().to_vec()) } else { buffer.clone() };
        let range = 0..buffer.len();
        Self { memory: Memory::Shared(buffer), range }
    }

    /// Returns `range` of a filled slot.
    pub(super) fn slot(slot: &Arc<Slot>, range: Range<usize>) -> Self {
        Self { memory: Memory::Slot(slot.clone()), range }
    }

    /// Returns `range` of these bytes.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        let (start, end) = (self.range.start + range.start, self.range.start + range.end);
        debug_assert!(start <= end && end <= self.range.end);
        Self { memory: self.memory.clone(), range: start..end }
    }

    /// Returns the bytes. Their address is fixed while any clone lives.
    pub(super) fn bytes(&self) -> &[u8] {
        let all = match &self.memory {
            Memory::Shared(buffer) => buffer.as_bytes(),
            Memory::Slot(slot) => slot.bytes(),
        };
        &all[self.range.clone()]
    }
}

debug_as!(HostBytes, |self, f| {
    let kind = match self.memory {
        Memory::Shared(_) => "shared",
        Memory::Slot(_) => "slot",
    };
    write!(f, "HostBytes({kind}, {:?})", self.range)
});

#[cfg(test)]
mod tests {
    use super::*;

    /// Inline bytes have a fixed address, too.
    #[test]
    fn bytes_stay_where_they_are() {
        for bytes in [&[][..], &[1, 2, 3], &[7; 200]] {
            let host = HostBytes::shared(&Buffer::copy_from(bytes));
            let (at, moved) = (host.bytes().as_ptr(), Box::new(host.clone()));
            drop(host);
            assert_eq!((moved.bytes().as_ptr(), moved.bytes()), (at, bytes));
        }
        let part = HostBytes::shared(&Buffer::from_vec((0..100u8).collect())).part(10..20).part(2..4);
        assert_eq!(part.bytes(), [12, 13]);
    }
}
