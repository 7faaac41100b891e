//! Rows under construction. Sequences are appended to rows that the caller chooses.

use std::ops::Range;
use std::sync::Arc;

use super::arena::{Arena, ArenaPool, Layout, Mark};
use super::feature::{Feature, piece_range};
use super::stats::PackStats;
use crate::error::Result;

/// Rows that are yielded together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Memory of the rows.
    pub arena: Arc<Arena>,
    /// Filled rows in the arena.
    pub rows: Range<usize>,
}

/// Returns the cells of a feature that [`RowWriter::write`] copies for piece `piece` of an element of `len` cells, and
/// their cells in the row. `used` is the number of used cells of the row, and grows.
pub(crate) fn span(feature: &Feature, len: usize, piece: usize, used: &mut usize) -> (Range<usize>, Range<usize>) {
    let tokens = piece_range(feature, len, piece);
    let cells = *used..*used + tokens.len();
    *used += feature.aligned(tokens.len());
    (tokens, cells)
}

/// Like [`span`], for `take` cells from cell `from` on, as `ConcatThenSplit::write_part` copies them.
pub(crate) fn span_of_part(from: usize, take: usize, used: &mut usize) -> (Range<usize>, Range<usize>) {
    let cells = *used..*used + take;
    *used = cells.end;
    (from..from + take, cells)
}

/// Writer of sequences into the rows of an arena.
///
/// The memory is reused after all views of its rows are dropped.
#[derive(Debug)]
pub(crate) struct RowWriter {
    layout: Arc<Layout>,
    pool: ArenaPool,
    /// Arena under construction, taken at the first sequence so that the memory of earlier rows can return first.
    arena: Option<Arena>,
    /// Start of the next sequence in each row, in cells, feature by feature.
    /// The start may be past the end of the row, which leaves no room for another sequence.
    used: Vec<usize>,
    /// Number of sequences in each row.
    counts: Vec<usize>,
    /// Number of tokens in the open rows.
    tokens: u64,
    stats: PackStats,
}

impl RowWriter {
    /// # Errors
    /// `Config` if `rows` rows would not fit in memory.
    pub(crate) fn new(features: &[Feature], rows: usize) -> Result<Self> {
        let layout = Layout::new(features, rows)?;
        Ok(Self {
            pool: ArenaPool::new(layout.clone()),
            layout,
            arena: None,
            used: vec![0; rows * features.len()],
            counts: vec![0; rows],
            tokens: 0,
            stats: PackStats::default(),
        })
    }

    pub(crate) fn features(&self) -> &[Feature] {
        self.layout.features()
    }

    /// Returns the number of rows in an arena.
    pub(crate) fn rows(&self) -> usize {
        self.counts.len()
    }

    /// Returns the size of the memory of all rows, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.bytes()
    }

    /// Returns the used cells of every row, feature by feature.
    pub(crate) fn used(&self) -> &[usize] {
        &self.used
    }

    /// Returns the number of sequences in every row.
    pub(crate) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Writes piece `piece` of an element into row `row`, which must have room.
    ///
    /// `element` holds a byte string per feature.
    /// # Errors
    /// `Config` if there is no memory for the rows.
    #[inline]
    pub(crate) fn write(&mut self, row: usize, element: &[&[u8]], piece: usize) -> Result<()> {
        let arena = self.pool.begun(&mut self.arena)?;
        self.counts[row] += 1;
        let segment = self.counts[row] as i32;
        let features = self.layout.features();
        for (f, (feature, cells)) in features.iter().zip(element).enumerate() {
            let range = piece_range(feature, cells.len() / feature.cell, piece);
            let (len, need) = (range.len(), feature.aligned(range.len()));
            let cells = &cells[range.start * feature.cell..range.end * feature.cell];
            let used = &mut self.used[row * features.len() + f];
            arena.write(f, row, *used, cells, Mark { len, segment, position: 0 });
            if need > len {
                // The gap may reach past the end of the row.
                arena.pad(f, row, *used + len..feature.length.min(*used + need));
            }
            *used += need;
            if !feature.meta {
                self.tokens += len as u64;
            }
        }
        self.stats.sequences += 1;
        Ok(())
    }

    /// Writes padding into row `row` for piece `piece` of an element of `lens` cells.
    ///
    /// The gap counts as a sequence, so later sequences in the row keep their segment ids and places.
    /// # Errors
    /// `Config` if there is no memory for the rows.
    pub(crate) fn leave(&mut self, row: usize, lens: &[usize], piece: usize) -> Result<()> {
        let arena = self.pool.begun(&mut self.arena)?;
        self.counts[row] += 1;
        let features = self.layout.features();
        for (f, (feature, len)) in features.iter().zip(lens).enumerate() {
            let need = feature.aligned(piece_range(feature, *len, piece).len());
            let used = &mut self.used[row * features.len() + f];
            arena.pad(f, row, *used..feature.length.min(*used + need));
            *used += need;
        }
        Ok(())
    }

    /// Returns true if no row has a sequence.
    pub(crate) fn is_empty(&self) -> bool {
        self.arena.is_none()
    }

    /// Closes and returns the rows up to the first empty row; `None` if there are no rows.
    pub(crate) fn finish(&mut self) -> Option<Group> {
        let mut arena = self.arena.take()?;
        let rows = self.counts.iter().take_while(|&&count| count > 0).count();
        let features = self.layout.features();
        let mut cells = 0;
        for (f, feature) in features.iter().enumerate() {
            for row in 0..rows {
                arena.end_row(f, row, self.used[row * features.len() + f]);
            }
            cells += if feature.meta { 0 } else { (rows * feature.length) as u64 };
        }
        let tokens = std::mem::take(&mut self.tokens);
        self.stats.tokens += tokens;
        self.stats.padding += cells - tokens;
        self.stats.rows += rows as u64;
        self.used.fill(0);
        self.counts.fill(0);
        Some(Group { arena: self.pool.lend(arena), rows: 0..rows })
    }

    /// Returns counts of the rows returned so far.
    pub(crate) fn stats(&self) -> PackStats {
        self.stats
    }

    /// Returns the writer with its counts set to `stats`.
    pub(crate) fn count_from(mut self, stats: PackStats) -> Self {
        self.stats = stats;
        self
    }
}
