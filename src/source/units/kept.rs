//! Units in memory: whole ones, least recently used out first, and copies of some rows of others, oldest out first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{Held, Key};

pub(super) struct Kept<U> {
    units: HashMap<Key, Entry<U>>,
    /// When units were used, in order. Only the last time of each counts: those before it are passed over.
    uses: VecDeque<(u64, Key)>,
    /// Copies of rows as they came, with the same rule.
    thin: VecDeque<(u64, Key)>,
    clock: u64,
    whole: usize,
    whole_bytes: usize,
    thin_bytes: usize,
}

struct Entry<U> {
    held: Held<U>,
    memory: usize,
    /// Its number in `uses` or `thin`.
    used: u64,
    /// Rows of a copy that were told of and not read.
    left: usize,
}

impl<U> Kept<U> {
    pub(super) fn new() -> Self {
        Self {
            units: HashMap::new(),
            uses: VecDeque::new(),
            thin: VecDeque::new(),
            clock: 0,
            whole: 0,
            whole_bytes: 0,
            thin_bytes: 0,
        }
    }

    /// A unit, which is then the one that was used last.
    pub(super) fn get(&mut self, key: Key) -> Option<Held<U>> {
        let entry = self.units.get_mut(&key)?;
        let held = entry.held.clone();
        if held.is_whole() && entry.used != self.clock {
            self.clock += 1;
            entry.used = self.clock;
            self.uses.push_back((self.clock, key));
            self.forget_old_uses();
        }
        Some(held)
    }

    pub(super) fn put(&mut self, key: Key, unit: Arc<U>, memory: usize) {
        self.clock += 1;
        self.uses.push_back((self.clock, key));
        let entry = Entry { held: Held::whole(unit), memory, used: self.clock, left: 0 };
        self.replace(key, entry);
        self.forget_old_uses();
    }

    pub(super) fn put_thin(&mut self, key: Key, held: Held<U>, memory: usize) {
        // It may have been decoded again meanwhile.
        if self.units.contains_key(&key) {
            return;
        }
        self.clock += 1;
        self.thin.push_back((self.clock, key));
        let left = held.rows.as_ref().map_or(0, |rows| rows.len());
        self.replace(key, Entry { held, memory, used: self.clock, left });
    }

    /// So many rows were read that were told of: a copy that has no others goes.
    pub(super) fn used_up(&mut self, key: Key, rows: usize) {
        let Some(entry) = self.units.get_mut(&key).filter(|entry| rows > 0 && !entry.held.is_whole()) else { return };
        entry.left = entry.left.saturating_sub(rows);
        if entry.left == 0 {
            self.remove(key);
        }
    }

    /// Takes out the whole unit that was not used for the longest time, if whole ones take more than so many bytes and are several.
    pub(super) fn pop_whole(&mut self, most: usize) -> Option<(Key, Arc<U>)> {
        if self.whole_bytes <= most || self.whole < 2 {
            return None;
        }
        while let Some((used, key)) = self.uses.pop_front() {
            if self.units.get(&key).is_some_and(|entry| entry.used == used) {
                return Some((key, self.remove(key)?.held.unit));
            }
        }
        None
    }

    /// Drops the oldest copies until they take so many bytes at most; says which, and how many of their rows were not read.
    pub(super) fn drop_thin_to(&mut self, most: usize) -> Vec<(Key, usize)> {
        let mut gone = Vec::new();
        while self.thin_bytes > most
            && let Some((used, key)) = self.thin.pop_front()
        {
            if self.units.get(&key).is_some_and(|entry| entry.used == used) {
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

    /// Keeps the lists of uses about as long as there are units.
    fn forget_old_uses(&mut self) {
        const FEW: usize = 64;
        if self.uses.len() > 2 * self.units.len() + FEW {
            let units = &self.units;
            let is_last = |&(used, key): &(u64, Key)| units.get(&key).is_some_and(|entry| entry.used == used);
            self.uses.retain(is_last);
            self.thin.retain(is_last);
        }
    }
}
