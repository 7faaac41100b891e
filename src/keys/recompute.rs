//! Keys that are computed on demand.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::find::{KeySource, Keyed, Keys};
use super::{Key, KeyBlock};
use crate::error::{Error, Result};
use crate::sync::Locked;

/// Key source that computes the keys of all records on each host, on demand.
///
/// Correct for any prefix whose result for a record is deterministic, and cheap if the prefix is cheap.
///
/// # Cost
/// Every host evaluates the whole prefix once, and its own elements a second time. A few thousand keys are held in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recompute;

/// Number of records whose keys are computed together, if they are requested in order.
const TOGETHER: u64 = 64;
/// Number of records that are looked up together.
const LOOKED_UP: usize = 256;
/// Number of cached keys.
const KEPT: usize = 4096;

impl KeySource for Recompute {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        let kept = Kept { keys: (0..KEPT).map(|_| Entry::default()).collect(), next: 0 };
        Ok(Some(Arc::new(Made { keyed: keyed.clone(), kept: Mutex::new(kept) })))
    }
}

struct Made {
    keyed: Arc<dyn Keyed>,
    kept: Mutex<Kept>,
}

/// Cached key of a record and the lengths of its elements. The buffer is reused by later records.
#[derive(Default)]
struct Entry {
    /// `None` until the first record is cached here.
    key: Option<(u64, Key)>,
    lens: Vec<u32>,
}

/// Direct-mapped cache of recent keys: a record's place is its number modulo [`KEPT`].
struct Kept {
    keys: Vec<Entry>,
    /// Record after the last record that was evaluated.
    next: u64,
}

impl Kept {
    fn get(&self, record: u64) -> Option<(Key, &[u32])> {
        let entry = &self.keys[record as usize % KEPT];
        entry.key.filter(|(kept, _)| *kept == record).map(|(_, key)| (key, entry.lens.as_slice()))
    }

    fn keep(&mut self, record: u64, key: Key, lens: &[u32]) {
        let entry = &mut self.keys[record as usize % KEPT];
        entry.key = Some((record, key));
        entry.lens.clear();
        entry.lens.extend_from_slice(lens);
        // Frees the buffer of an unusually long record.
        entry.lens.shrink_to(4 * lens.len().max(16));
        self.next = record + 1;
    }

    fn make(&mut self, records: Range<u64>, keyed: &dyn Keyed) -> Result<()> {
        let mut numbers = records.clone();
        keyed.make(records, &mut |key, lens| {
            if let Some(record) = numbers.next() {
                self.keep(record, key, lens);
            }
        })
    }

    /// Appends the keys of a few records to a block. Keys that are not cached are computed together.
    fn gather(&mut self, records: &[u64], keyed: &dyn Keyed, into: &mut KeyBlock) -> Result<()> {
        if records.iter().all(|&record| self.get(record).is_none()) {
            let (mut numbers, mut pushed) = (records.iter(), Ok(()));
            keyed.make_each(records, &mut |key, lens| {
                if pushed.is_ok() {
                    pushed = into.push_of(key, lens);
                }
                numbers.next().into_iter().for_each(|record| self.keep(*record, key, lens));
            })?;
            return pushed;
        }
        let missing: Vec<u64> = records.iter().copied().filter(|&record| self.get(record).is_none()).collect();
        let (mut made, mut pushed) = (KeyBlock::new(into.columns()), Ok(()));
        keyed.make_each(&missing, &mut |key, lens| {
            if pushed.is_ok() {
                pushed = made.push_of(key, lens);
            }
        })?;
        pushed?;
        // A new key may evict a requested key, so keys are cached only after all have been appended.
        let mut new = missing.iter().zip(made.iter()).peekable();
        for record in records {
            if let Some((_, (key, lens))) = new.next_if(|(next, _)| *next == record) {
                into.push_of(key, lens)?
            } else {
                let (key, lens) = self.get(*record).ok_or_else(|| missing_record(*record))?;
                into.push_of(key, lens)?;
            }
        }
        missing.iter().zip(made.iter()).for_each(|(record, (key, lens))| self.keep(*record, key, lens));
        Ok(())
    }
}

#[cold]
fn missing_record(record: u64) -> Error {
    Error::state(format!("there is no record {record}"))
}

impl Keys for Made {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let mut kept = self.kept.locked();
        if kept.get(record).is_none() {
            let together = if record == kept.next { TOGETHER } else { 1 };
            kept.make(record..self.keyed.records().min(record.saturating_add(together)), &*self.keyed)?;
        }
        let (key, lengths) = kept.get(record).ok_or_else(|| missing_record(record))?;
        lens.extend_from_slice(lengths);
        Ok(key)
    }

    fn gather(&self, records: &[u64], into: &mut KeyBlock) -> Result<()> {
        let mut kept = self.kept.locked();
        records.chunks(LOOKED_UP).try_for_each(|some| kept.gather(some, &*self.keyed, into))
    }
}
