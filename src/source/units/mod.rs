//! Decoded units of formats that decode many rows at once: spans of row groups, record batches, chunks, shards.
//!
//! Decoding a unit for a single row costs as much as for all rows. Recently used units are kept, up to a budget. If the
//! budget is smaller than all units, passes [announce](Units::tell) the rows that they will read. An evicted unit then
//! leaves a copy of its announced rows, so the unit is decoded once for all of them, in any order. A window of rows
//! takes far less memory than the units that contain these rows. Many more rows therefore share a decoding.

mod kept;
mod keys;
#[cfg(all(test, feature = "formats"))]
mod pipelines;
#[cfg(test)]
mod tests;
mod told;

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use self::kept::Kept;
use self::keys::ByKey;
use self::told::Told;
use crate::cx::turn::take_turn;
use crate::dataset::map::{Decoded, Many, Shuffled};
use crate::dataset::run::upcoming::FURTHEST;
use crate::dataset::{Blocks, Upcoming};
use crate::error::{Error, Result};
use crate::fork::OwnLock;
use crate::startup::making;

/// A part of the data and a unit in it, such as a row group and a span, or a file and a chunk.
pub(crate) type Key = (usize, u64);

/// Rows that are decoded together.
pub(crate) trait Unit: Sized + Send + Sync {
    /// Returns the size in memory, in bytes.
    fn memory(&self) -> usize;

    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Returns a copy of these rows, in ascending order. Returns `None` if a copy would not save memory.
    fn only(&self, rows: &[u32]) -> Option<Self>;
}

/// A unit, or a copy of some of its rows.
pub(crate) struct Held<U> {
    pub(crate) unit: Arc<U>,
    /// The held rows, in ascending order; `None` for a whole unit.
    rows: Option<Arc<[u32]>>,
}

clone_as!(<U> Held<U>, |self| Self { unit: self.unit.clone(), rows: self.rows.clone() });

impl<U> Held<U> {
    /// Holds all rows of a unit.
    pub(crate) fn whole(unit: Arc<U>) -> Self {
        Self { unit, rows: None }
    }

    /// Returns true if the whole unit is held.
    pub(crate) fn is_whole(&self) -> bool {
        self.rows.is_none()
    }

    /// Reads a row with `read`.
    fn read<T>(&self, row: usize, index: u64, read: impl Fn(&U, usize, u64) -> Result<T>) -> Result<T> {
        let place = self.place(row).ok_or_else(|| Error::data("is not where it was kept").record(index))?;
        read(&self.unit, place, index)
    }

    /// Returns the place of a row of the unit among the held rows. Returns `None` if the row is not held.
    pub(crate) fn place(&self, row: usize) -> Option<usize> {
        if let Some(rows) = &self.rows { rows.binary_search(&u32::try_from(row).ok()?).ok() } else { Some(row) }
    }
}

/// The units of a source that are in memory, shared by all threads.
pub(crate) struct Units<U> {
    pub(crate) budget: usize,
    /// Number of rows in all units.
    rows: u64,
    /// Separate in each process, because a fork would wait for a decoding thread of its parent.
    inner: OwnLock<Inner<U>>,
    /// Number of rows to announce ahead.
    window: AtomicU64,
    /// Estimated size of all units in bytes.
    bytes: AtomicU64,
    decoded: AtomicU64,
    decoded_rows: AtomicU64,
    read_rows: AtomicU64,
}

struct Inner<U> {
    kept: Kept<U>,
    told: Told,
    /// Units that are being decoded. Other threads wait for a unit here.
    loading: ByKey<Arc<Mutex<()>>>,
    /// Number of decoded rows and their bytes, for the average size of a row. Estimated from the files at first.
    seen_rows: u64,
    seen_bytes: u64,
    /// Maximum window in rows. Lowered when more rows turn out not to fit.
    most: u64,
    /// Number of rows read by all passes, and the number at which `most` is adjusted again.
    read: u64,
    judged_at: u64,
    /// Number of announced rows whose copies were dropped since the last adjustment.
    lost: u64,
}

impl<U> Default for Inner<U> {
    fn default() -> Self {
        let (kept, told, loading) = (Kept::new(), Told::default(), ByKey::default());
        Self { kept, told, loading, seen_rows: 0, seen_bytes: 0, most: MOST, read: 0, judged_at: 0, lost: 0 }
    }
}

/// Memory of an announcement in bytes per row.
const ROW_COST: u64 = 24;
/// Maximum number of rows to announce ahead.
const MOST: u64 = 1 << 22;
/// Minimum number of rows to announce ahead. A smaller window costs more than it saves.
const LEAST: u64 = 256;

impl<U: Unit> Units<U> {
    /// Creates the cache for units with `rows` rows and about `bytes` bytes in total. Recently used units are kept up
    /// to `budget` bytes; the last used unit is kept regardless of its size.
    pub(crate) fn new(budget: usize, rows: u64, bytes: u64) -> Self {
        let expected = bytes;
        let [window, bytes, decoded, decoded_rows, read_rows] = [0; 5].map(AtomicU64::new);
        let units = Self { budget, rows, inner: OwnLock::default(), window, bytes, decoded, decoded_rows, read_rows };
        let mut inner = units.lock();
        // Sizes from the files are estimates, and are discarded when the first unit is decoded.
        (inner.seen_rows, inner.seen_bytes) = (rows, expected);
        units.set_window(&mut inner);
        (inner.seen_rows, inner.seen_bytes) = (0, 0);
        drop(inner);
        units
    }

    /// Returns the number of rows to [announce](Self::tell) ahead. Returns 0 if all units fit in the budget.
    fn window(&self) -> u64 {
        self.window.load(Relaxed)
    }

    /// Returns the number of rows to announce ahead, for a source that may be remote: see
    /// [`RandomAccess::looks_ahead`](crate::dataset::map::RandomAccess::looks_ahead).
    pub(crate) fn looks_ahead(&self, far: bool) -> u64 {
        match self.window() {
            window if !far => window,
            0 => FURTHEST,
            window => window.min(FURTHEST),
        }
    }

    /// Returns the number of announced rows that were not read yet.
    #[cfg(test)]
    pub(crate) fn told(&self) -> u64 {
        self.lock().told.len()
    }

    /// Returns the cost of random order, for a source with this number of `units`. Returns `None` if all units fit in
    /// the budget, or if a unit is decoded fewer than two times on average.
    pub(crate) fn if_shuffled(&self, units: u64) -> Option<Shuffled> {
        let (window, units) = (self.window(), units.max(1));
        let bytes = self.bytes.load(Relaxed);
        let (rows, all) = (self.rows as f64 / units as f64, self.rows as f64);
        // A decoding serves a single row, and the unit's share of the rows in the window.
        let times = all / (units + window) as f64;
        let is_dear = bytes > self.budget as u64 && times >= 2.0;
        is_dear.then_some(Shuffled { units, records: rows as u64, bytes, budget: self.budget as u64, times })
    }

    /// Returns the units, with these numbers of rows, as blocks of the source. Also returns the number of decoded rows
    /// that fit in the budget.
    pub(crate) fn blocks(&self, rows: impl IntoIterator<Item = u64>) -> Option<Blocks> {
        let (bytes, budget) = (u128::from(self.bytes.load(Relaxed)), self.budget as u128);
        let room = (bytes > budget).then(|| (budget * u128::from(self.rows) / bytes) as u64);
        Some(Blocks::of(rows)?.with_room(room))
    }

    /// Returns the counts of decoded units, decoded rows and read rows since the last call. Returns `None` if nothing
    /// was decoded and fewer than 64 rows were read; a later call counts these rows.
    pub(crate) fn take_decoded(&self) -> Option<Decoded> {
        const FEW: u64 = 64;
        if self.decoded.load(Relaxed) == 0 && self.read_rows.load(Relaxed) < FEW {
            return None;
        }
        let take = |counter: &AtomicU64| counter.swap(0, Relaxed);
        Some(Decoded { units: take(&self.decoded), records: take(&self.decoded_rows), read: take(&self.read_rows) })
    }

    /// Announces rows that will be read. `find` returns the unit of an index and the row in the unit.
    pub(crate) fn tell(&self, next: Upcoming<'_>, find: impl Fn(u64) -> Option<(Key, usize)>) {
        // Blocks are read whole, so a copy of the announced rows would contain all rows.
        if self.window() == 0 || next.is_in_blocks() {
            return;
        }
        let place = |&index: &u64| {
            let (key, row) = find(index)?;
            Some((index, key, u32::try_from(row).ok()?))
        };
        let places: Vec<_> = next.indices().iter().filter_map(place).collect();
        self.lock().told.add(next.wanted(), places);
    }

    /// Returns a unit that is in memory with all of these rows. Counts the rows as read.
    pub(crate) fn get(&self, key: Key, rows: impl Iterator<Item = usize> + Clone) -> Option<Held<U>> {
        let mut inner = self.lock();
        let held = inner.kept.get(key)?;
        if !held.is_whole() && !rows.clone().all(|row| held.place(row).is_some()) {
            return None;
        }
        self.note_read(&mut inner, key, rows);
        Some(held)
    }

    /// Counts rows as read by a caller that already holds their unit.
    pub(crate) fn note(&self, key: Key, rows: impl Iterator<Item = usize>) {
        if self.window() == 0 {
            self.read_rows.fetch_add(rows.count() as u64, Relaxed);
        } else {
            self.note_read(&mut self.lock(), key, rows);
        }
    }

    /// Keeps a decoded unit. Counts these rows as read.
    pub(crate) fn put(&self, key: Key, unit: U, rows: impl Iterator<Item = usize>) -> Held<U> {
        let (len, memory) = (unit.len() as u64, unit.memory());
        self.decoded.fetch_add(1, Relaxed);
        self.decoded_rows.fetch_add(len, Relaxed);
        let unit = Arc::new(unit);
        let mut inner = self.lock();
        inner.seen_rows += len;
        inner.seen_bytes = inner.seen_bytes.saturating_add(memory as u64);
        inner.kept.put(key, unit.clone(), memory);
        self.note_read(&mut inner, key, rows);
        let gone = inner.make_room(self.budget);
        self.set_window(&mut inner);
        drop(inner);
        // Copied without the lock, so that other threads can read other units.
        let thinned: Vec<_> = gone.into_iter().filter_map(|(key, unit, rows)| thin(key, &unit, rows)).collect();
        if !thinned.is_empty() {
            let mut inner = self.lock();
            thinned.into_iter().for_each(|(key, held, memory)| inner.kept.put_thin(key, held, memory));
            inner.drop_thin(self.budget);
            self.set_window(&mut inner);
        }
        Held::whole(unit)
    }

    /// Returns a unit with these rows, from memory or from `decode`. Counts the rows as read. Other threads that need
    /// this unit wait until it is decoded.
    pub(crate) fn get_or_decode(
        &self,
        key: Key,
        rows: impl Iterator<Item = usize> + Clone,
        decode: impl FnOnce() -> Result<U>,
    ) -> Result<Held<U>> {
        if let Some(held) = self.get(key, rows.clone()) {
            return Ok(held);
        }
        let turn = self.lock().loading.entry(key).or_default().clone();
        let mine = take_turn(&turn);
        if let Some(held) = self.get(key, rows.clone()) {
            return Ok(held);
        }
        let decoded = making("a group of records decoded", decode);
        let held = decoded.map(|unit| self.put(key, unit, rows));
        drop(mine);
        if let Entry::Occupied(entry) = self.lock().loading.entry(key)
            && Arc::ptr_eq(entry.get(), &turn)
        {
            entry.remove();
        }
        held
    }

    /// Reads the rows at `indices` with `read`, and returns them in this order. Each unit is looked up once for all of
    /// its rows. `find` returns the place of a row. `decode` and `read` receive an index for their errors; `read` also
    /// receives the place among the held rows. `one` reads a row separately, if `find` misses a row or if the unit
    /// failed to decode for another row.
    pub(crate) fn read_many<T>(
        &self,
        indices: &[u64],
        find: impl Fn(u64) -> Option<(Key, usize)>,
        decode: impl Fn(u64) -> Result<U>,
        read: impl Fn(&U, usize, u64) -> Result<T>,
        one: impl Fn(u64) -> Result<T>,
    ) -> Many<T> {
        let place = |(to, &index): (usize, &u64)| find(index).map(|(key, row)| (key, row, to));
        let Some(mut wanted) = indices.iter().enumerate().map(place).collect::<Option<Vec<_>>>() else {
            // Each row is read separately, to return a separate error.
            return Many::one_by_one(indices, |index| one(index).map(Some));
        };
        if !wanted.is_sorted_by_key(|(key, ..)| *key) {
            wanted.sort_by_key(|(key, ..)| *key);
        }
        let mut slots: Vec<_> = indices.iter().map(|_| Ok(None)).collect();
        for rows in wanted.chunk_by(|a, b| a.0 == b.0) {
            let (key, _, first) = rows[0];
            match self.get_or_decode(key, rows.iter().map(|(_, row, _)| *row), || decode(indices[first])) {
                Ok(held) => {
                    for &(_, row, to) in rows {
                        slots[to] = held.read(row, indices[to], &read).map(Some);
                    }
                }
                Err(error) => {
                    slots[first] = Err(error);
                    rows[1..].iter().for_each(|&(_, _, to)| slots[to] = one(indices[to]).map(Some));
                }
            }
        }
        slots.into_iter().collect()
    }

    /// Reads a single row, at this place.
    pub(crate) fn read_one<T>(
        &self,
        index: u64,
        (key, row): (Key, usize),
        decode: impl FnOnce() -> Result<U>,
        read: impl Fn(&U, usize, u64) -> Result<T>,
    ) -> Result<T> {
        let held = self.get_or_decode(key, std::iter::once(row), decode)?;
        held.read(row, index, read)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<U>> {
        self.inner.lock()
    }

    /// Counts rows as read. Their copies are no longer needed by the passes that announced them.
    fn note_read(&self, inner: &mut Inner<U>, key: Key, rows: impl Iterator<Item = usize>) {
        let (mut read, mut known) = (0, 0);
        for row in rows {
            read += 1;
            known += usize::from(inner.told.remove(key, row));
        }
        self.read_rows.fetch_add(read, Relaxed);
        inner.read += read;
        inner.kept.used_up(key, known);
    }

    fn set_window(&self, inner: &mut Inner<U>) {
        let each = inner.seen_bytes / inner.seen_rows.max(1);
        let all = each.saturating_mul(self.rows);
        let is_pressed = all > self.budget as u64;
        self.bytes.store(all, Relaxed);
        let fit = thin_budget(self.budget) as u64 / (each + ROW_COST);
        inner.learn_window(fit);
        let fit = fit.min(inner.most);
        self.window.store(if is_pressed && fit >= LEAST { fit } else { 0 }, Relaxed);
    }
}

/// Returns the part of the budget for whole units while rows are announced. This part holds only the units that are
/// being read. An evicted unit is then still in the processor's cache, and the next unit is decoded into its memory.
fn whole_budget(budget: usize) -> usize {
    (budget / 8).min(1 << 20)
}

/// Returns the part of the budget for copies of announced rows.
fn thin_budget(budget: usize) -> usize {
    budget - whole_budget(budget)
}

/// Copies the announced rows of an evicted unit. Returns `None` if there are none, or if a copy saves no memory.
fn thin<U: Unit>(key: Key, unit: &Arc<U>, rows: Vec<u32>) -> Option<(Key, Held<U>, usize)> {
    if rows.is_empty() {
        return None;
    }
    let copy = unit.only(&rows)?;
    let memory = copy.memory();
    (memory < unit.memory()).then(|| (key, Held { unit: Arc::new(copy), rows: Some(rows.into()) }, memory))
}

impl<U: Unit> Inner<U> {
    /// Evicts the whole units that do not fit. Returns each unit with its announced rows.
    fn make_room(&mut self, budget: usize) -> Vec<(Key, Arc<U>, Vec<u32>)> {
        let is_told = self.told.is_live();
        if !is_told {
            // The passes that announced these rows have ended.
            self.kept.drop_thin_to(budget);
        }
        let room = if is_told { whole_budget(budget) } else { budget };
        let mut gone = Vec::new();
        while let Some((key, unit)) = self.kept.pop_whole(room) {
            let rows = self.told.rows(key).into_iter().filter(|&row| (row as usize) < unit.len()).collect();
            gone.push((key, unit, rows));
        }
        gone
    }

    /// Drops copies that do not fit, the oldest first.
    fn drop_thin(&mut self, budget: usize) {
        let gone = self.kept.drop_thin_to(thin_budget(budget));
        self.lost += gone.into_iter().map(|(key, left)| left.min(self.told.rows(key).len()) as u64).sum::<u64>();
    }

    /// Reduces the window if copies were dropped, and enlarges it slightly otherwise. `fit` is the number of rows that
    /// should fit.
    ///
    /// Announced rows stay announced, so a change has no effect at first. The next adjustment waits until half of them
    /// are read.
    fn learn_window(&mut self, fit: u64) {
        if self.read < self.judged_at {
            return;
        }
        self.judged_at = self.read + self.told.len() / 2;
        let now = self.most.min(fit);
        self.most = match std::mem::take(&mut self.lost) {
            // The drops may have been chance, so the window grows again in small steps.
            0 => (now + now / 32 + 1).min(MOST),
            lost => now.saturating_sub((lost / 2).min(now / 2)).max(LEAST),
        };
    }
}
