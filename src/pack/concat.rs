//! Concatenation of all sequences, cut into rows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::arena::{Arena, ArenaPool, Layout, Mark};
use super::feature::{self, Feature, measure, over_long};
use super::stats::PackStats;
use super::writer::Group;
use crate::error::{Error, Result};

/// First position of a continuation, which is the rest of a sequence that was cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positions {
    /// Positions restart at 0, as in Grain (whose documentation states the opposite).
    #[default]
    Restart,
    /// Positions continue after the previous piece: each is the index in the uncut sequence.
    Continue,
}

/// Options of a [`ConcatThenSplit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcatOptions {
    /// Whether an element that fills a row alone is cut like any other.
    /// If false, it becomes a separate row, yielded after the row under construction.
    pub split_full: bool,
    /// First position of a continuation.
    pub positions: Positions,
    /// Feature number and bytes of the cell that replaces the first cell of every piece.
    pub bos: Vec<(usize, Vec<u8>)>,
    /// Maximum number of full rows that wait. At the limit, the open row is closed early, padded and counted.
    pub max_waiting: usize,
}

impl Default for ConcatOptions {
    fn default() -> Self {
        Self { split_full: true, positions: Positions::Restart, bos: Vec::new(), max_waiting: 256 }
    }
}

/// Progress within an element: cells per feature that are already in rows, empty before the first piece.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(Vec<usize>);

impl Cursor {
    /// Resets to the start of an element and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the number of pieces, for a cursor that counts pieces.
    pub(super) fn single(&self) -> usize {
        self.0.first().copied().unwrap_or(0)
    }

    pub(super) fn set_single(&mut self, pieces: usize) {
        self.0.clear();
        if pieces > 0 {
            self.0.push(pieces);
        }
    }
}

/// Result of feeding an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// The whole element is in rows.
    Taken,
    /// The row is full, and the cursor contains the progress.
    /// Take the rows with [`ConcatThenSplit::finish`], then feed the element again.
    Full,
}

/// Packer that concatenates sequences and cuts the stream into rows. Only the last row has padding.
///
/// With several features, a row ends when any feature is full. The other features are padded,
/// and every feature continues in the next row at its cut. Meta features are not cut: every piece repeats them whole.
/// If a meta feature has no room left, the row is closed early and counted.
///
/// # Differences from Grain
/// - An element of several features that spans three or more rows keeps every token. Grain ignores the start of
///   a piece when it cuts a feature, so tokens are lost and repeated.
/// - An empty sequence gets no beginning-of-sequence token. Grain writes the token into a neighboring cell.
/// - With `split_full: false`, sequences longer than a row are cut. Grain fails.
///   At most `max_waiting` full rows wait for the open row. Grain waits forever if no short element arrives.
/// # Source
/// Order and rows as in Grain's `ConcatThenSplitIterDataset`.
#[derive(Debug)]
pub struct ConcatThenSplit {
    layout: Arc<Layout>,
    options: ConcatOptions,
    pool: ArenaPool,
    arena: Option<Arena>,
    /// Used cells of the row under construction, per feature.
    used: Vec<usize>,
    /// Number of sequences in the row under construction.
    count: i32,
    /// Number of full rows that wait for the row under construction.
    waiting: usize,
    lens: Vec<usize>,
    takes: Vec<usize>,
    tokens: u64,
    stats: PackStats,
}

impl ConcatThenSplit {
    /// Creates a packer with an empty row.
    ///
    /// # Errors
    /// `Config` if a feature is invalid or aligned, or a beginning-of-sequence cell fits no feature.
    pub fn new(features: &[Feature], options: ConcatOptions) -> Result<Self> {
        feature::check(features)?;
        if let Some(Feature { name, align, .. }) = features.iter().find(|f| f.align != 1) {
            return Err(Error::config(format!("feature {name:?}: concat-then-split has no alignment, got {align}")));
        }
        for (at, cell) in &options.bos {
            let feature = features.get(*at).filter(|f| !f.meta && f.cell == cell.len());
            if feature.is_none() {
                let bytes = cell.len();
                return Err(Error::config(format!("feature number {at} cannot take a first token of {bytes} bytes")));
            }
        }
        let waiting = if options.split_full { 0 } else { options.max_waiting.max(1) };
        let layout = Layout::new(features, 1 + waiting)?;
        Ok(Self {
            pool: ArenaPool::new(layout.clone()),
            layout,
            options: ConcatOptions { max_waiting: waiting, ..options },
            arena: None,
            used: vec![0; features.len()],
            count: 0,
            waiting: 0,
            lens: Vec::with_capacity(features.len()),
            takes: Vec::with_capacity(features.len()),
            tokens: 0,
            stats: PackStats::default(),
        })
    }

    /// Packs the rest of an element, up to the end of the row. `element` holds a byte string per feature.
    ///
    /// # Errors
    /// `Data` if a feature is not a whole number of cells, a meta feature is longer than its row, or the cursor does not match.
    pub fn feed(&mut self, element: &[&[u8]], cursor: &mut Cursor) -> Result<Fed> {
        self.feed_noting(element, cursor, |_, _, _| {})
    }

    /// Like [`feed`](Self::feed), and reports the write to `wrote`.
    /// The arguments are the row, and for each feature the first cell in the element and the number of cells.
    pub(super) fn feed_noting(
        &mut self,
        element: &[&[u8]],
        cursor: &mut Cursor,
        wrote: impl FnOnce(usize, &[usize], &[usize]),
    ) -> Result<Fed> {
        measure(self.layout.features(), element, &mut self.lens)?;
        if cursor.0.is_empty() {
            if self.is_full_row() {
                let fed = self.pass_through(element)?;
                if fed == Fed::Taken {
                    wrote(self.waiting, &vec![0; self.lens.len()], &self.takes);
                }
                return Ok(fed);
            }
            cursor.0.resize(self.lens.len(), 0);
        }
        if cursor.0.len() != self.lens.len() || cursor.0.iter().zip(&self.lens).any(|(at, len)| at > len) {
            return Err(Error::data(format!("cut at {:?} of an element of {:?} cells", cursor.0, self.lens)));
        }
        if !self.meta_fits()? {
            self.stats.closed_early += 1;
            return Ok(Fed::Full);
        }
        let (taken, left) = self.plan(cursor);
        if taken == 0 && left > 0 {
            return Ok(Fed::Full);
        }
        let first_piece = cursor.0.iter().all(|&at| at == 0);
        wrote(0, &cursor.0, &self.takes);
        self.write_piece(element, cursor)?;
        if left == 0 {
            return Ok(Fed::Taken);
        }
        self.stats.splits += u64::from(first_piece);
        Ok(Fed::Full)
    }

    /// Writes part of an element into the row under construction, as [reported](Self::feed_noting) by an earlier pass.
    ///
    /// The part is `takes` cells of each feature, starting at cell `from`.
    /// # Errors
    /// `Data` if the element has no such cells, or the row has no room for them.
    pub(super) fn write_part(&mut self, element: &[&[u8]], from: &[usize], takes: &[usize]) -> Result<()> {
        measure(self.layout.features(), element, &mut self.lens)?;
        let features = self.layout.features().iter().zip(&self.used).zip(&self.lens);
        let fits = features.zip(from.iter().zip(takes)).all(|(((feature, used), len), (from, take))| {
            from.checked_add(*take).is_some_and(|end| end <= *len) && *take <= feature.length - used
        });
        if !fits || from.len() != self.lens.len() || takes.len() != from.len() {
            return Err(Error::data(format!(
                "cannot take {takes:?} cells from {from:?} on: the element has {:?}",
                self.lens
            )));
        }
        self.takes.clear();
        self.takes.extend_from_slice(takes);
        self.write_piece(element, &mut Cursor(from.to_vec()))
    }

    /// Writes padding for part of an element, `takes` cells of each feature, into the row under construction.
    ///
    /// The gap counts as a sequence, so later sequences in the row keep their segment ids and places.
    /// # Errors
    /// `Data` if the row has no room for the cells.
    pub(super) fn leave_part(&mut self, takes: &[usize]) -> Result<()> {
        let features = self.layout.features();
        let fits = |f: usize| takes.get(f).is_some_and(|take| *take <= features[f].length - self.used[f]);
        if !(0..features.len()).all(fits) {
            return Err(Error::data(format!("{takes:?} cells in a row of which {:?} are used", self.used)));
        }
        let arena = self.pool.begun(&mut self.arena)?;
        self.count += 1;
        for (f, take) in takes.iter().enumerate() {
            arena.pad(f, 0, self.used[f]..self.used[f] + take);
            self.used[f] += take;
        }
        Ok(())
    }

    /// Returns true if the element fills a row alone and must not be cut.
    fn is_full_row(&self) -> bool {
        let mut lens = self.layout.features().iter().zip(&self.lens);
        !self.options.split_full
            && lens.clone().any(|(feature, &len)| len == feature.length)
            && lens.all(|(feature, &len)| len <= feature.length)
    }

    /// Writes the element as a separate row after the row under construction.
    fn pass_through(&mut self, element: &[&[u8]]) -> Result<Fed> {
        if self.waiting == self.options.max_waiting {
            self.stats.closed_early += u64::from(self.count > 0);
            return Ok(Fed::Full);
        }
        self.pool.begun(&mut self.arena)?;
        self.waiting += 1;
        self.takes.clone_from(&self.lens);
        for (f, cells) in element.iter().enumerate() {
            self.write(f, self.waiting, 0, 1, cells, 0)?;
            self.pool.begun(&mut self.arena)?.end_row(f, self.waiting, self.takes[f]);
        }
        self.stats.sequences += 1;
        Ok(Fed::Taken)
    }

    /// Returns true if the open row has room for the meta features.
    fn meta_fits(&self) -> Result<bool> {
        for (f, feature) in self.layout.features().iter().enumerate() {
            if feature.meta && self.lens[f] > feature.length - self.used[f] {
                return if self.count == 0 { Err(over_long(feature, self.lens[f])) } else { Ok(false) };
            }
        }
        Ok(true)
    }

    /// Sets the number of cells of each feature that go into the row. Returns the sums of taken and remaining cells.
    fn plan(&mut self, cursor: &Cursor) -> (usize, usize) {
        let (mut taken, mut left) = (0, 0);
        self.takes.clear();
        for (f, feature) in self.layout.features().iter().enumerate() {
            if feature.meta {
                self.takes.push(self.lens[f]);
                continue;
            }
            let rest = self.lens[f] - cursor.0[f];
            let take = rest.min(feature.length - self.used[f]);
            self.takes.push(take);
            taken += take;
            left += rest - take;
        }
        (taken, left)
    }

    fn write_piece(&mut self, element: &[&[u8]], cursor: &mut Cursor) -> Result<()> {
        self.pool.begun(&mut self.arena)?;
        self.count += 1;
        for (f, cells) in element.iter().enumerate() {
            let (from, take) = (cursor.0[f], self.takes[f]);
            let Feature { cell, meta, .. } = self.layout.features()[f];
            let cells = &cells[from * cell..(from + take) * cell];
            let position = if self.options.positions == Positions::Continue { from as i32 } else { 0 };
            self.write(f, 0, self.used[f], self.count, cells, position)?;
            self.used[f] += take;
            // Every piece repeats a meta feature from its start.
            cursor.0[f] += if meta { 0 } else { take };
        }
        self.stats.sequences += 1;
        Ok(())
    }

    fn write(&mut self, f: usize, row: usize, at: usize, segment: i32, cells: &[u8], position: i32) -> Result<()> {
        let len = self.takes[f];
        let arena = self.pool.begun(&mut self.arena)?;
        arena.write(f, row, at, cells, Mark { len, segment, position });
        if len > 0
            && let Some((_, bos)) = self.options.bos.iter().find(|(feature, _)| *feature == f)
        {
            arena.cell_mut(f, row, at).copy_from_slice(bos);
        }
        self.tokens += if self.layout.features()[f].meta { 0 } else { len as u64 };
        Ok(())
    }

    /// Returns true if no row was begun.
    pub fn is_empty(&self) -> bool {
        self.arena.is_none()
    }

    /// Closes and returns the row under construction and the full rows after it; `None` if there are no rows.
    pub fn finish(&mut self) -> Option<Group> {
        let mut arena = self.arena.take()?;
        let rows = usize::from(self.count == 0)..1 + self.waiting;
        let mut cells = 0;
        for (f, feature) in self.layout.features().iter().enumerate() {
            if self.count > 0 {
                arena.end_row(f, 0, self.used[f]);
            }
            cells += if feature.meta { 0 } else { (rows.len() * feature.length) as u64 };
        }
        let tokens = std::mem::take(&mut self.tokens);
        self.stats.tokens += tokens;
        self.stats.padding += cells - tokens;
        self.stats.rows += rows.len() as u64;
        self.used.fill(0);
        (self.count, self.waiting) = (0, 0);
        Some(Group { arena: self.pool.lend(arena), rows })
    }

    /// Returns counts of the rows returned so far, and of all splits.
    pub fn stats(&self) -> PackStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::arena::Part;
    use super::*;

    const PARTS: [Part; 3] = [Part::Values, Part::SegmentIds, Part::Positions];

    /// Packs elements and returns rows as `[feature][values, ids, positions]`.
    fn pack(
        features: &[Feature],
        options: ConcatOptions,
        elements: &[Vec<Vec<i32>>],
    ) -> (Vec<Vec<Vec<Vec<i32>>>>, PackStats) {
        let mut packer = ConcatThenSplit::new(features, options).unwrap();
        let mut out = Vec::new();
        let mut put_out = |group: Group| {
            for row in group.rows {
                let part = |f, part| group.arena.row_i32(f, part, row).to_vec();
                out.push((0..features.len()).map(|f| PARTS.map(|p| part(f, p)).to_vec()).collect());
            }
        };
        for element in elements {
            let element: Vec<&[u8]> = element.iter().map(|tokens| bytemuck::cast_slice(tokens)).collect();
            let mut cursor = Cursor::default();
            while packer.feed(&element, &mut cursor).unwrap() == Fed::Full {
                put_out(packer.finish().unwrap());
            }
        }
        packer.finish().into_iter().for_each(&mut put_out);
        assert!(packer.is_empty());
        (out, packer.stats())
    }

    fn numbered(lens: impl IntoIterator<Item = usize>) -> Vec<Vec<Vec<i32>>> {
        let mut next = 1;
        let mut sequence = |len: usize| {
            next += len as i32;
            vec![(next - len as i32..next).collect()]
        };
        lens.into_iter().map(&mut sequence).collect()
    }

    /// DIFFERENCE: every row of `b` continues at its cut, and no token appears twice. Grain loses and repeats tokens.
    #[test]
    fn two_features_keep_every_token() {
        let features = [Feature::new("a", 4), Feature::new("b", 4)];
        let element = vec![(100..110).collect(), (200..206).collect()];
        let (rows, stats) = pack(&features, ConcatOptions::default(), &[element]);
        let values = |f: usize| rows.iter().map(|row: &Vec<Vec<Vec<i32>>>| row[f][0].clone()).collect::<Vec<_>>();
        assert_eq!(values(0), [[100, 101, 102, 103], [104, 105, 106, 107], [108, 109, 0, 0]]);
        assert_eq!(values(1), [[200, 201, 202, 203], [204, 205, 0, 0], [0, 0, 0, 0]]);
        assert_eq!((stats.tokens, stats.padding, stats.splits, stats.sequences), (16, 8, 1, 3));
    }

    proptest! {
        /// All tokens of all features appear once, in order. With a single feature, only the last row has padding.
        #[test]
        fn nothing_is_lost_or_repeated(
            lengths in prop::collection::vec(1usize..9, 1..4),
            raw in prop::collection::vec(prop::collection::vec(0usize..30, 3), 0..20),
        ) {
            let features: Vec<_> =
                lengths.iter().enumerate().map(|(f, &length)| Feature::new(f.to_string(), length)).collect();
            let mut token = 0;
            let mut fresh = |len: usize| (0..len).map(|_| { token += 1; token }).collect::<Vec<i32>>();
            let elements: Vec<Vec<Vec<i32>>> =
                raw.iter().map(|lens| lens[..features.len()].iter().map(|&len| fresh(len)).collect()).collect();
            let (rows, stats) = pack(&features, ConcatOptions::default(), &elements);
            for f in 0..features.len() {
                let real = |row: &Vec<Vec<Vec<i32>>>| {
                    row[f][0].iter().zip(&row[f][1]).filter(|(_, id)| **id > 0).map(|(t, _)| *t).collect::<Vec<_>>()
                };
                let got: Vec<i32> = rows.iter().flat_map(real).collect();
                let want: Vec<i32> = elements.iter().flat_map(|e| e[f].clone()).collect();
                prop_assert_eq!(got, want);
            }
            if features.len() == 1 {
                prop_assert!(stats.padding < features[0].length as u64 || stats.tokens == 0);
            }
        }
    }

    #[test]
    fn positions_restart_or_continue_in_a_continuation() {
        let features = [Feature::new("a", 4)];
        let (rows, _) = pack(&features, ConcatOptions::default(), &numbered([2, 7]));
        let positions: Vec<_> = rows.iter().map(|row| row[0][2].clone()).collect();
        assert_eq!(positions, [[0, 1, 0, 1], [0, 1, 2, 3], [0, 0, 0, 0]]);
        let on = ConcatOptions { positions: Positions::Continue, ..ConcatOptions::default() };
        let (rows, _) = pack(&features, on, &numbered([2, 7]));
        let positions: Vec<_> = rows.iter().map(|row| row[0][2].clone()).collect();
        assert_eq!(positions, [[0, 1, 0, 1], [2, 3, 4, 5], [6, 0, 0, 0]]);
    }

    #[test]
    fn every_piece_begins_with_the_first_token() {
        let features = [Feature::new("a", 4)];
        let options = ConcatOptions { bos: vec![(0, 99i32.to_le_bytes().to_vec())], ..ConcatOptions::default() };
        let (rows, _) = pack(&features, options, &numbered([2, 3, 0, 1]));
        let values: Vec<_> = rows.iter().map(|row| row[0][0].clone()).collect();
        assert_eq!(values, [[99, 2, 99, 4], [99, 99, 0, 0]]);
        let wrong = ConcatOptions { bos: vec![(1, vec![0; 4])], ..ConcatOptions::default() };
        assert!(ConcatThenSplit::new(&features, wrong).is_err());
        let narrow = ConcatOptions { bos: vec![(0, vec![0; 2])], ..ConcatOptions::default() };
        assert!(ConcatThenSplit::new(&features, narrow).is_err());
    }

    #[test]
    fn full_rows_wait_behind_the_open_one_but_not_for_ever() {
        let features = [Feature::new("a", 3)];
        let options = ConcatOptions { split_full: false, max_waiting: 2, ..ConcatOptions::default() };
        let values = |lens: &[usize]| {
            let (rows, stats) = pack(&features, options.clone(), &numbered(lens.to_vec()));
            (rows.iter().map(|row| row[0][0].clone()).collect::<Vec<_>>(), stats.closed_early)
        };
        assert_eq!(values(&[3, 1, 5]), (vec![vec![4, 5, 6], vec![1, 2, 3], vec![7, 8, 9]], 0));
        assert_eq!(
            values(&[1, 3, 3, 3, 1]),
            (vec![vec![1, 0, 0], vec![2, 3, 4], vec![5, 6, 7], vec![11, 0, 0], vec![8, 9, 10]], 1)
        );
        assert_eq!(values(&[3, 3]), (vec![vec![1, 2, 3], vec![4, 5, 6]], 0));
    }

    #[test]
    fn meta_features_go_whole_with_every_piece() {
        let features = [Feature::new("a", 4), Feature { meta: true, ..Feature::new("m", 3) }];
        let mut packer = ConcatThenSplit::new(&features, ConcatOptions::default()).unwrap();
        let mut cursor = Cursor::default();
        assert_eq!(packer.feed(&[&[1; 24], &[7; 8]], &mut cursor).unwrap(), Fed::Full);
        let first = packer.finish().unwrap();
        assert_eq!(first.arena.row(1, Part::Values, 0), [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0]);
        assert_eq!(packer.feed(&[&[1; 24], &[7; 8]], &mut cursor).unwrap(), Fed::Taken);
        // No room for the two meta cells, so the row of `a` is closed with a gap.
        let mut cursor = Cursor::default();
        assert_eq!(packer.feed(&[&[2; 4], &[8; 8]], &mut cursor).unwrap(), Fed::Full);
        assert_eq!(packer.finish().unwrap().arena.row_i32(0, Part::SegmentIds, 0), [1, 1, 0, 0]);
        assert_eq!(packer.stats().closed_early, 1);
        let error = packer.feed(&[&[2; 4], &[8; 16]], &mut Cursor::default()).unwrap_err();
        assert!(error.message().contains("\"m\" has 4 cells, a row takes 3"), "{error}");
    }

    #[test]
    fn a_foreign_cursor_is_refused() {
        let mut packer = ConcatThenSplit::new(&[Feature::new("a", 4)], ConcatOptions::default()).unwrap();
        assert!(packer.feed(&[&[0; 8]], &mut Cursor(vec![3])).is_err());
        assert!(packer.feed(&[&[0; 8]], &mut Cursor(vec![0, 0])).is_err());
        let aligned = Feature { align: 2, ..Feature::new("a", 4) };
        assert!(ConcatThenSplit::new(&[aligned], ConcatOptions::default()).is_err());
    }
}
