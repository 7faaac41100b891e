//! Reuse of block memory. Fresh memory from the system costs a page fault per 4 KiB, which takes as long as writing the
//! block.

use std::sync::{Arc, Mutex};

use crate::element::{Buffer, BufferMut, Owner};
use crate::error::Result;
use crate::sync::Locked;

/// Maximum number of free blocks per worker: one is filled while the previous block is sent.
const KEPT: usize = 2;

/// Pool of a worker's free blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks(Mutex<Vec<BufferMut>>);

impl Blocks {
    /// Returns a block of `len` bytes; its content is unspecified.
    ///
    /// # Errors
    /// If the system is out of memory.
    pub(super) fn take(&self, len: usize) -> Result<BufferMut> {
        let mut kept = self.0.locked();
        if let Some(at) = kept.iter().position(|block| block.as_bytes().len() == len) {
            Ok(kept.swap_remove(at))
        } else {
            drop(kept);
            BufferMut::try_zeroed(len)
        }
    }

    /// Returns the first `used` bytes of `block`, shared; the block is reused after its last view is dropped.
    pub(super) fn lend(self: &Arc<Self>, block: BufferMut, used: usize) -> Buffer {
        let lent = Lent { block: Some(block), home: self.clone() };
        Buffer::from_owner(Arc::new(lent)).slice(0..used).unwrap_or(Buffer::EMPTY)
    }

    /// Takes back a block and drops the oldest if too many are kept. Consecutive tasks mostly use blocks of equal
    /// length.
    fn give_back(&self, block: BufferMut) {
        let mut kept = self.0.locked();
        let gone = (kept.len() >= KEPT).then(|| kept.remove(0));
        kept.push(block);
        drop(kept);
        drop(gone);
    }
}

/// A block that returns to its pool on drop.
struct Lent {
    /// `None` after the drop.
    block: Option<BufferMut>,
    home: Arc<Blocks>,
}

impl Owner for Lent {
    fn bytes(&self) -> &[u8] {
        self.block.as_ref().map_or(&[], BufferMut::as_bytes)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.home.give_back(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_when_its_last_view_is_gone() {
        let blocks = Arc::new(Blocks::default());
        let mut block = blocks.take(1 << 20).unwrap();
        block.as_mut_bytes()[5] = 7;
        let at = block.as_bytes().as_ptr();
        let lent = blocks.lend(block, 10);
        assert_eq!(lent.as_bytes(), [0, 0, 0, 0, 0, 7, 0, 0, 0, 0]);
        assert_ne!(blocks.take(1 << 20).unwrap().as_bytes().as_ptr(), at, "it is in use");
        let view = lent.slice(2..6).unwrap();
        drop(lent);
        assert_eq!(view.as_bytes(), [0, 0, 0, 7]);
        drop(view);
        assert_eq!(blocks.take(1 << 20).unwrap().as_bytes().as_ptr(), at);
    }

    #[test]
    fn no_more_blocks_are_kept_than_are_filled_at_a_time() {
        let blocks = Arc::new(Blocks::default());
        let taken = [100, 200, 300].map(|len| blocks.take(len).unwrap());
        drop(taken.map(|block| blocks.lend(block, 1)));
        let kept: Vec<usize> = blocks.0.locked().iter().map(|block| block.as_bytes().len()).collect();
        assert_eq!(kept, [200, 300]);
        // The range is longer than the block.
        assert!(blocks.lend(blocks.take(100).unwrap(), 101).is_empty());
    }
}
