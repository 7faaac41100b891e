//! Decoded units of formats that are decoded many rows at a time: spans of row groups, record batches, chunks, shards.
//!
//! Decoding a unit for one of its rows costs as much as for all of them. Units that were used last are kept, up to a budget. Where
//! that is less than all units take, and a pass tells which rows it will [ask for](Units::tell), a unit that must go leaves behind a
//! copy of those of its rows that are asked for soon: it is then decoded once for all of them, in whatever order they come. A
//! window of rows takes far less memory than the units that they lie in, and so many more of them share a decoding.

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

/// A part of the data, and a unit of it: a row group and a span, a file and a chunk.
pub(crate) type Key = (usize, u64);

/// Rows that are decoded together.
pub(crate) trait Unit: Sized + Send + Sync {
    /// Bytes that it holds in memory.
    fn memory(&self) -> usize;

    /// Rows in it.
    fn len(&self) -> usize;

    /// A copy of these rows, which ascend; `None` where that cannot be had in less memory.
    fn only(&self, rows: &[u32]) -> Option<Self>;
}

/// A unit, or a copy of some of its rows.
pub(crate) struct Held<U> {
    unit: Arc<U>,
    /// The rows that are there, in ascending order; all of them without this.
    rows: Option<Arc<[u32]>>,
}

impl<U> Clone for Held<U> {
    fn clone(&self) -> Self {
        Self { unit: self.unit.clone(), rows: self.rows.clone() }
    }
}

impl<U> Held<U> {
    /// All rows of a unit.
    pub(crate) fn whole(unit: Arc<U>) -> Self {
        Self { unit, rows: None }
    }

    #[cfg(feature = "columns")]
    pub(crate) fn unit(&self) -> &U {
        &self.unit
    }

    /// Whether all rows are where they are in the unit.
    pub(crate) fn is_whole(&self) -> bool {
        self.rows.is_none()
    }

    /// Reads a row by `read`.
    #[cfg_attr(
        not(any(feature = "array_record", feature = "mds")),
        allow(dead_code, reason = "files of columns are read by spans")
    )]
    fn read<T>(&self, row: usize, index: u64, read: impl Fn(&U, usize, u64) -> Result<T>) -> Result<T> {
        let place = self.place(row).ok_or_else(|| Error::data("is not where it was kept").record(index))?;
        read(&self.unit, place, index)
    }

    /// The place of a row of the unit in what is held; `None` if it is not there.
    pub(crate) fn place(&self, row: usize) -> Option<usize> {
        match &self.rows {
            None => Some(row),
            Some(rows) => rows.binary_search(&u32::try_from(row).ok()?).ok(),
        }
    }
}

/// The units of a source that are in memory, shared by all threads.
pub(crate) struct Units<U> {
    budget: usize,
    /// Rows of all units together.
    rows: u64,
    /// Of each process: a fork would wait for a thread of its parent that was decoding.
    inner: OwnLock<Inner<U>>,
    /// Rows ahead that it is worth to be told of.
    window: AtomicU64,
    /// About the bytes of all units together.
    bytes: AtomicU64,
    decoded: AtomicU64,
    decoded_rows: AtomicU64,
    read_rows: AtomicU64,
}

struct Inner<U> {
    kept: Kept<U>,
    told: Told,
    /// Units that are being decoded: others that want them wait.
    #[cfg_attr(
        not(any(feature = "array_record", feature = "arrow", feature = "mds")),
        allow(dead_code, reason = "groups of Parquet are decoded in a way of their own")
    )]
    loading: ByKey<Arc<Mutex<()>>>,
    /// Rows and bytes of what was decoded, to know how large a row is; at first as far as the files tell.
    seen_rows: u64,
    seen_bytes: u64,
    /// The window is not to be larger: more rows have turned out not to fit.
    most: u64,
    /// Rows that were read of all passes, and their number when `most` is judged again.
    read: u64,
    judged_at: u64,
    /// Rows whose copies had to go since it was judged, although they were asked for.
    lost: u64,
}

impl<U> Default for Inner<U> {
    fn default() -> Self {
        let (kept, told, loading) = (Kept::new(), Told::default(), ByKey::default());
        Self { kept, told, loading, seen_rows: 0, seen_bytes: 0, most: MOST, read: 0, judged_at: 0, lost: 0 }
    }
}

/// Bytes of the note of a row that is told of.
const ROW_COST: u64 = 24;
/// More rows are never told of.
const MOST: u64 = 1 << 22;
/// A smaller window is not worth its own cost.
const LEAST: u64 = 256;

impl<U: Unit> Units<U> {
    /// For units of so many `rows`, which take about `bytes`; those that were used last stay up to `budget` bytes, and the very last
    /// whatever its size.
    pub(crate) fn new(budget: usize, rows: u64, bytes: u64) -> Self {
        let expected = bytes;
        let [window, bytes, decoded, decoded_rows, read_rows] = [0; 5].map(AtomicU64::new);
        let units = Self { budget, rows, inner: OwnLock::default(), window, bytes, decoded, decoded_rows, read_rows };
        let mut inner = units.lock();
        // What the files tell is a guess, and forgotten with the first unit.
        (inner.seen_rows, inner.seen_bytes) = (rows, expected);
        units.set_window(&mut inner);
        (inner.seen_rows, inner.seen_bytes) = (0, 0);
        drop(inner);
        units
    }

    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// Rows ahead of which it wants to be [told](Self::tell) of; none while all units have room.
    fn window(&self) -> u64 {
        self.window.load(Relaxed)
    }

    /// The same for a source that has these units, and may be far away: see
    /// [`RandomAccess::looks_ahead`](crate::dataset::map::RandomAccess::looks_ahead).
    pub(crate) fn looks_ahead(&self, far: bool) -> u64 {
        match self.window() {
            window if !far => window,
            0 => FURTHEST,
            window => window.min(FURTHEST),
        }
    }

    /// Rows that were told of and not read.
    #[cfg(test)]
    pub(crate) fn told(&self) -> u64 {
        self.lock().told.len()
    }

    /// The cost of random order with so many units, where they have no room all together.
    pub(crate) fn if_shuffled(&self, units: u64) -> Option<Shuffled> {
        let (window, units) = (self.window(), units.max(1));
        let bytes = self.bytes.load(Relaxed);
        let (rows, all) = (self.rows as f64 / units as f64, self.rows as f64);
        // Each decoding serves a row, and of those in the window the unit's share.
        let times = all / (units + window) as f64;
        let is_dear = bytes > self.budget as u64 && times >= 2.0;
        is_dear.then_some(Shuffled { units, records: rows as u64, bytes, budget: self.budget as u64, times })
    }

    /// Units of these rows each, as blocks of the source, with the rows that have room decoded.
    pub(crate) fn blocks(&self, rows: impl IntoIterator<Item = u64>) -> Option<Blocks> {
        let (bytes, budget) = (u128::from(self.bytes.load(Relaxed)), self.budget as u128);
        let room = (bytes > budget).then(|| (budget * u128::from(self.rows) / bytes) as u64);
        Some(Blocks::of(rows)?.with_room(room))
    }

    /// Counts of what was decoded since this was last asked, if anything was, and what was read: a few rows that needed no decoding wait for
    /// more of them.
    pub(crate) fn take_decoded(&self) -> Option<Decoded> {
        const FEW: u64 = 64;
        if self.decoded.load(Relaxed) == 0 && self.read_rows.load(Relaxed) < FEW {
            return None;
        }
        let take = |counter: &AtomicU64| counter.swap(0, Relaxed);
        Some(Decoded { units: take(&self.decoded), records: take(&self.decoded_rows), read: take(&self.read_rows) })
    }

    /// Takes in which rows will be asked for: `find` says where each lies.
    pub(crate) fn tell(&self, next: Upcoming<'_>, find: impl Fn(u64) -> Option<(Key, usize)>) {
        // Whole blocks stay whole: copies of the rows that are told of would be of all of them.
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

    /// A unit that is here with all of these rows, which are read now.
    pub(crate) fn get(&self, key: Key, rows: impl Iterator<Item = usize> + Clone) -> Option<Held<U>> {
        let mut inner = self.lock();
        let held = inner.kept.get(key)?;
        if !held.is_whole() && !rows.clone().all(|row| held.place(row).is_some()) {
            return None;
        }
        self.note_read(&mut inner, key, rows);
        Some(held)
    }

    /// Notes that rows of a unit are read by somebody who has it already.
    #[cfg(feature = "columns")]
    pub(crate) fn note(&self, key: Key, rows: impl Iterator<Item = usize>) {
        if self.window() == 0 {
            self.read_rows.fetch_add(rows.count() as u64, Relaxed);
        } else {
            self.note_read(&mut self.lock(), key, rows);
        }
    }

    /// Keeps a unit that was decoded, of which these rows are read now.
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
        // Not under the lock: others read other units meanwhile.
        let thinned: Vec<_> = gone.into_iter().filter_map(|(key, unit, rows)| thin(key, &unit, rows)).collect();
        if !thinned.is_empty() {
            let mut inner = self.lock();
            thinned.into_iter().for_each(|(key, held, memory)| inner.kept.put_thin(key, held, memory));
            inner.drop_thin(self.budget);
            self.set_window(&mut inner);
        }
        Held::whole(unit)
    }

    /// A unit with these rows, which are read now: one that is here, or else what `decode` makes. Others that want the same unit
    /// wait for it.
    #[cfg_attr(
        not(any(feature = "array_record", feature = "arrow", feature = "mds")),
        allow(dead_code, reason = "groups of Parquet are decoded in a way of their own")
    )]
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

    /// Reads the rows at `indices` by `read`, in that order, unit by unit: each is looked up once for all of its rows. `find` says
    /// where a row lies; `decode` and `read` are given an index for their errors, and `read` the row's place in what is held. `one`
    /// reads a row that `find` does not know, or whose unit another row could not have.
    #[cfg_attr(
        not(any(feature = "array_record", feature = "mds")),
        allow(dead_code, reason = "files of columns are read by spans")
    )]
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
            // Each says itself what is wrong with it.
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

    /// Reads one row, which lies there.
    #[cfg_attr(
        not(any(feature = "array_record", feature = "mds")),
        allow(dead_code, reason = "files of columns are read by spans")
    )]
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

    /// Rows are read: nobody need keep them for those who told of them.
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

/// Of the budget, what whole units may take where copies are made of rows that are asked for soon: those that are read at the moment.
/// A unit that goes is still in the processor's cache then, and the next one is decoded into the same memory.
fn whole_budget(budget: usize) -> usize {
    (budget / 8).min(1 << 20)
}

/// Of the budget, what such copies may take.
fn thin_budget(budget: usize) -> usize {
    budget - whole_budget(budget)
}

/// Copies what is left of a unit that must go; nothing where none of its rows is asked for soon.
fn thin<U: Unit>(key: Key, unit: &Arc<U>, rows: Vec<u32>) -> Option<(Key, Held<U>, usize)> {
    if rows.is_empty() {
        return None;
    }
    let copy = unit.only(&rows)?;
    let memory = copy.memory();
    (memory < unit.memory()).then(|| (key, Held { unit: Arc::new(copy), rows: Some(rows.into()) }, memory))
}

impl<U: Unit> Inner<U> {
    /// Takes out the whole units that have no room, and says which of their rows are asked for soon.
    fn make_room(&mut self, budget: usize) -> Vec<(Key, Arc<U>, Vec<u32>)> {
        let is_told = self.told.is_live();
        if !is_told {
            // Those who wanted these rows are gone.
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

    /// Drops copies of rows that have no room, the oldest first.
    fn drop_thin(&mut self, budget: usize) {
        let gone = self.kept.drop_thin_to(thin_budget(budget));
        self.lost += gone.into_iter().map(|(key, left)| left.min(self.told.rows(key).len()) as u64).sum::<u64>();
    }

    /// Tells fewer rows ahead where copies had to go, and a few more where none had to; `fit` is as many as should have room.
    ///
    /// Rows that were told of stay told: it is judged only once half of them are read, as no change shows before.
    fn learn_window(&mut self, fit: u64) {
        if self.read < self.judged_at {
            return;
        }
        self.judged_at = self.read + self.told.len() / 2;
        let now = self.most.min(fit);
        self.most = match std::mem::take(&mut self.lost) {
            // What went wrong once may have been chance: back up by small steps.
            0 => (now + now / 32 + 1).min(MOST),
            lost => now.saturating_sub((lost / 2).min(now / 2)).max(LEAST),
        };
    }
}
