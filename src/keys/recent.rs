//! Cache of recently decoded blocks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::block::KeyBlock;
use crate::sync::Locked;

/// Maximum number of cached blocks.
const BLOCKS: usize = 8;
/// Maximum memory of cached blocks, in lengths. The newest block is cached regardless of its size.
const LENS: usize = 16 << 20;

/// Least-recently-used cache of a few blocks, keyed by block number; the newest is first.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<(u64, Arc<KeyBlock>)>>);

impl Recent {
    /// Returns the block of this number, if it is cached.
    pub(super) fn get(&self, number: u64) -> Option<Arc<KeyBlock>> {
        let mut kept = self.0.locked();
        let at = kept.iter().position(|(other, _)| *other == number)?;
        let found = kept.remove(at)?;
        kept.push_front(found);
        kept.front().map(|(_, block)| block.clone())
    }

    /// Caches a block, and evicts the least recently used blocks above the limits.
    pub(super) fn keep(&self, number: u64, block: &Arc<KeyBlock>) {
        let mut kept = self.0.locked();
        // Two threads may have decoded the block at once.
        kept.retain(|(other, _)| *other != number);
        kept.push_front((number, block.clone()));
        kept.truncate(BLOCKS);
        while kept.len() > 1 && kept.iter().map(|(_, block)| block.lens().len()).sum::<usize>() > LENS {
            kept.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_asked_for_last_are_kept() {
        let recent = Recent::default();
        let block = || Arc::new(KeyBlock::new(0));
        let kept = || {
            (0..20).filter(|&number| recent.0.locked().iter().any(|(other, _)| *other == number)).collect::<Vec<_>>()
        };
        (0..BLOCKS as u64).for_each(|number| recent.keep(number, &block()));
        assert!(recent.get(0).is_some() && recent.get(9).is_none());
        recent.keep(9, &block());
        recent.keep(9, &block());
        assert_eq!(kept(), [0, 2, 3, 4, 5, 6, 7, 9]);
        let mut large = KeyBlock::new(1);
        large.lens_mut().resize(LENS + 1, 0);
        recent.keep(10, &Arc::new(large));
        assert_eq!(kept(), [10]);
        let more = recent.get(10);
        assert!(more.is_some_and(|block| block.lens().len() > LENS));
    }
}
