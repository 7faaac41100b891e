//! Keys that are made when they are asked for.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::Key;
use super::find::{KeySource, Keyed, Keys};
use crate::error::{Error, Result};
use crate::sync::Locked;

/// Keys that each host makes for itself, of all records, as it comes to them: right for any prefix that gives the same of the same
/// record whenever it is evaluated, and cheap where that is.
///
/// # Cost
/// Every host evaluates the whole prefix once, and its own elements once more. It holds the keys of a few thousand records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recompute;

/// Records whose keys are made together, where they are asked for in their own order.
const TOGETHER: u64 = 64;
/// Keys that are kept.
const KEPT: usize = 4096;

impl KeySource for Recompute {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        let kept = Kept { keys: vec![None; KEPT], next: 0 };
        Ok(Some(Arc::new(Made { keyed: keyed.clone(), kept: Mutex::new(kept) })))
    }
}

struct Made {
    keyed: Arc<dyn Keyed>,
    kept: Mutex<Kept>,
}

/// A record, its key, and the lengths of its elements.
type Entry = (u64, Key, Box<[u32]>);

/// Keys that were made last, each at the place that its record gives it.
struct Kept {
    keys: Vec<Option<Entry>>,
    /// The record behind the last that was made.
    next: u64,
}

impl Kept {
    fn get(&self, record: u64) -> Option<(Key, &[u32])> {
        match &self.keys[record as usize % KEPT] {
            Some((kept, key, lens)) if *kept == record => Some((*key, lens)),
            _ => None,
        }
    }

    fn make(&mut self, records: Range<u64>, keyed: &dyn Keyed) -> Result<()> {
        let mut at = records.start;
        keyed.make(records, &mut |key, lens| {
            self.keys[at as usize % KEPT] = Some((at, key, lens.into()));
            at += 1;
        })?;
        self.next = at;
        Ok(())
    }
}

impl Keys for Made {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let mut kept = self.kept.locked();
        if kept.get(record).is_none() {
            let together = if record == kept.next { TOGETHER } else { 1 };
            kept.make(record..self.keyed.records().min(record.saturating_add(together)), &*self.keyed)?;
        }
        let (key, lengths) = kept.get(record).ok_or_else(|| Error::state(format!("there is no record {record}")))?;
        lens.extend_from_slice(lengths);
        Ok(key)
    }
}
