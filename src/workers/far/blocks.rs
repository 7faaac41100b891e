//! Memory of blocks that is used again: what the system hands out anew takes a fault for every 4 KiB, and as long again as writing there.

use std::sync::{Arc, Mutex};

use crate::element::{Buffer, BufferMut, Owner};
use crate::error::Result;
use crate::sync::Locked;

/// Blocks that one worker keeps: one is filled while the one before is handed on.
const KEPT: usize = 2;

/// Blocks of one worker that nobody looks at any more.
#[derive(Debug, Default)]
pub(super) struct Blocks(Mutex<Vec<BufferMut>>);

impl Blocks {
    /// Room for `len` bytes, with whatever the block had that lay there before.
    ///
    /// # Errors
    /// The system has not as much memory.
    pub(super) fn take(&self, len: usize) -> Result<BufferMut> {
        let mut kept = self.0.locked();
        match kept.iter().position(|block| block.as_bytes().len() == len) {
            Some(at) => Ok(kept.swap_remove(at)),
            None => {
                drop(kept);
                BufferMut::try_zeroed(len)
            }
        }
    }

    /// The first `used` bytes of `block`, shared; its memory comes back when the last view of them is gone.
    pub(super) fn lend(self: &Arc<Self>, block: BufferMut, used: usize) -> Buffer {
        let lent = Lent { block: Some(block), home: self.clone() };
        Buffer::from_owner(Arc::new(lent)).slice(0..used).unwrap_or(Buffer::EMPTY)
    }

    /// Takes back a block. Those go that have been here longest: tasks ask for blocks of one length, until they ask for those of another.
    fn give_back(&self, block: BufferMut) {
        let mut kept = self.0.locked();
        let gone = (kept.len() >= KEPT).then(|| kept.remove(0));
        kept.push(block);
        drop(kept);
        drop(gone);
    }
}

/// A block that goes home when this is dropped.
struct Lent {
    /// `None` once it is dropped.
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
        // Too long, and no more than that.
        assert!(blocks.lend(blocks.take(100).unwrap(), 101).is_empty());
    }
}
