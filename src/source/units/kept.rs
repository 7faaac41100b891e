//! Units in memory. Whole units are evicted oldest first, but a recently used unit gets a second chance. Copies of some
//! rows of other units are evicted oldest first.

use std::collections::VecDeque;
use std::sync::Arc;

use super::keys::ByKey;
use super::{Held, Key};

pub(super) struct Kept<U> {
    units: ByKey<Entry<U>>,
    /// Whole units in eviction order. A unit that was used since it was queued moves from the front to the end. Only
    /// the last entry of a unit is valid; earlier entries are skipped.
    uses: VecDeque<(u64, Key)>,
    /// Copies of rows in order of arrival. Only the last entry of a copy is valid.
    thin: VecDeque<(u64, Key)>,
    clock: u64,
    whole: usize,
    whole_bytes: usize,
    thin_bytes: usize,
}

struct Entry<U> {
    held: Held<U>,
    memory: usize,
    /// Number of the valid entry in `uses` or `thin`.
    number: u64,
    /// True if the unit was used since it was queued in `uses`.
    used: bool,
    /// Number of announced rows of a copy that were not read yet.
    left: usize,
}

impl<U> Kept<U> {
    pub(super) fn new() -> Self {
        Self {
            units: ByKey::default(),
            uses: VecDeque::new(),
            thin: VecDeque::new(),
            clock: 0,
            whole: 0,
            whole_bytes: 0,
            thin_bytes: 0,
        }
    }

    /// Returns a unit, and marks it as used.
    pub(super) fn get(&mut self, key: Key) -> Option<Held<U>> {
        let entry = self.units.get_mut(&key)?;
        entry.used = true;
        Some(entry.held.clone())
    }

    pub(super) fn put(&mut self, key: Key, unit: Arc<U>, memory: usize) {
        self.clock += 1;
        self.uses.push_back((self.clock, key));
        let entry = Entry { held: Held::whole(unit), memory, number: self.clock, used: true, left: 0 };
        self.replace(key, entry);
        self.forget_old_uses();
    }

    pub(super) fn put_thin(&mut self, key: Key, held: Held<U>, memory: usize) {
        // The unit may have been decoded again meanwhile.
        if self.units.contains_key(&key) {
            return;
        }
        self.clock += 1;
        self.thin.push_back((self.clock, key));
        let left = held.rows.as_ref().map_or(0, |rows| rows.len());
        self.replace(key, Entry { held, memory, number: self.clock, used: false, left });
    }

    /// Counts announced rows of a copy that were read. Drops the copy after its last announced row.
    pub(super) fn used_up(&mut self, key: Key, rows: usize) {
        if rows == 0 {
            return;
        }
        let Some(entry) = self.units.get_mut(&key).filter(|entry| !entry.held.is_whole()) else { return };
        entry.left = entry.left.saturating_sub(rows);
        if entry.left == 0 {
            self.remove(key);
        }
    }

    /// Evicts a whole unit if there are at least two, and if all whole units together exceed `most` bytes.
    pub(super) fn pop_whole(&mut self, most: usize) -> Option<(Key, Arc<U>)> {
        if self.whole_bytes <= most || self.whole < 2 {
            return None;
        }
        while let Some((number, key)) = self.uses.pop_front() {
            let Some(entry) = self.units.get_mut(&key).filter(|entry| entry.number == number) else { continue };
            if !std::mem::take(&mut entry.used) {
                return Some((key, self.remove(key)?.held.unit));
            }
            self.uses.push_back((number, key));
        }
        None
    }

    /// Drops the oldest copies until all copies take at most `most` bytes. Returns the dropped copies, each with the
    /// number of rows that were not read.
    pub(super) fn drop_thin_to(&mut self, most: usize) -> Vec<(Key, usize)> {
        let mut gone = Vec::new();
        while self.thin_bytes > most
            && let Some((number, key)) = self.thin.pop_front()
        {
            if self.units.get(&key).is_some_and(|entry| entry.number == number) {
                gone.extend(self.remove(key).map(|entry| (key, entry.left)));
            }
        }
        gone
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.whole_bytes + self.thin_bytes
    }

    fn replace(&mut self, key: Key, entry: Entry<U>) {
        self.remove(key);
        if entry.held.is_whole() {
            self.whole += 1;
            self.whole_bytes += entry.memory;
        } else {
            self.thin_bytes += entry.memory;
        }
        self.units.insert(key, entry);
    }

    fn remove(&mut self, key: Key) -> Option<Entry<U>> {
        let entry = self.units.remove(&key)?;
        if entry.held.is_whole() {
            self.whole -= 1;
            self.whole_bytes -= entry.memory;
        } else {
            self.thin_bytes -= entry.memory;
        }
        Some(entry)
    }

    /// Removes invalid entries if there are more than twice as many entries as units.
    fn forget_old_uses(&mut self) {
        const FEW: usize = 64;
        if self.uses.len() > 2 * self.units.len() + FEW {
            let units = &self.units;
            let is_last = |&(number, key): &(u64, Key)| units.get(&key).is_some_and(|entry| entry.number == number);
            self.uses.retain(is_last);
            self.thin.retain(is_last);
        }
    }
}
