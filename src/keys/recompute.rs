//! Keys that are made when they are asked for.

use std::sync::{Arc, Mutex};

use super::find::{Key, KeySource, Keyed, Keys};
use crate::error::{Error, Result};
use crate::sync::Locked;

/// Keys that each host makes for itself, of all records, as it comes to them: right for any prefix that gives the same of the same
/// record whenever it is evaluated, and cheap where that is.
///
/// # Cost
/// Every host evaluates the whole prefix once, and its own elements once more. It holds the keys of a few thousand records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recompute;

/// Records whose keys are made together.
const BLOCK: u64 = 64;
/// Blocks that are kept.
const KEPT: usize = 64;

impl KeySource for Recompute {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        let blocks = (0..KEPT).map(|_| Mutex::default()).collect();
        Ok(Some(Arc::new(Made { keyed: keyed.clone(), blocks })))
    }
}

/// Keys of the blocks that were asked for last, each at the place that its number gives it.
struct Made {
    keyed: Arc<dyn Keyed>,
    blocks: Vec<Mutex<Option<Arc<Block>>>>,
}

struct Block {
    number: u64,
    /// Each with the place behind the last of its lengths.
    keys: Vec<(Key, usize)>,
    lens: Vec<u32>,
}

impl Made {
    fn block(&self, number: u64) -> Result<Arc<Block>> {
        let mut kept = self.blocks[number as usize % KEPT].locked();
        if let Some(block) = kept.as_ref().filter(|block| block.number == number) {
            return Ok(block.clone());
        }
        let start = number * BLOCK;
        let mut block = Block { number, keys: Vec::new(), lens: Vec::new() };
        self.keyed.make(start..self.keyed.records().min(start + BLOCK), &mut |key, lens| {
            block.lens.extend_from_slice(lens);
            block.keys.push((key, block.lens.len()));
        })?;
        Ok(kept.insert(Arc::new(block)).clone())
    }
}

impl Keys for Made {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let (block, at) = (self.block(record / BLOCK)?, (record % BLOCK) as usize);
        let &(key, end) = block.keys.get(at).ok_or_else(|| Error::state(format!("there is no record {record}")))?;
        let start = at.checked_sub(1).map_or(0, |before| block.keys[before].1);
        lens.extend_from_slice(&block.lens[start..end]);
        Ok(key)
    }
}
