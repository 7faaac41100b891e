//! Rows under way: sequences are written behind one another, each into the row that somebody else chose for it.

use std::ops::Range;
use std::sync::Arc;

use super::arena::{Arena, ArenaPool, Layout, Mark};
use super::feature::{Feature, piece_range};
use super::stats::PackStats;
use crate::error::Result;

/// Rows that were put out together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their memory.
    pub arena: Arc<Arena>,
    /// The rows of it that were filled.
    pub rows: Range<usize>,
}

/// Writes sequences into rows of one arena. Its memory is used again once nobody looks at it.
#[derive(Debug)]
pub(crate) struct RowWriter {
    layout: Arc<Layout>,
    pool: ArenaPool,
    /// Taken by the first sequence, so that the memory of the last rows can come back in time.
    arena: Option<Arena>,
    /// Cells of every row, feature by feature, up to where the next sequence may begin: past the end where there is no such place.
    used: Vec<usize>,
    /// Sequences in every row.
    counts: Vec<usize>,
    /// Tokens in the open rows.
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

    /// Rows there is room for.
    pub(crate) fn rows(&self) -> usize {
        self.counts.len()
    }

    /// Bytes of the memory of all rows.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.bytes()
    }

    /// Used cells of every row, feature by feature.
    pub(crate) fn used(&self) -> &[usize] {
        &self.used
    }

    /// Sequences in every row.
    pub(crate) fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Writes piece `piece` of an element, one byte string per feature, into row `row`, which has room.
    ///
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

    /// Leaves the place of a piece of an element of so many cells as padding in row `row`. It is counted as a sequence there, so that those behind
    /// it are what they are beside it.
    ///
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

    /// Whether no row has a sequence.
    pub(crate) fn is_empty(&self) -> bool {
        self.arena.is_none()
    }

    /// Puts the rows out up to the first empty one; `None` if that is the first.
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

    /// Counts what was written in the rows put out so far.
    pub(crate) fn stats(&self) -> PackStats {
        self.stats
    }

    /// Goes on counting from `stats`.
    pub(crate) fn count_from(mut self, stats: PackStats) -> Self {
        self.stats = stats;
        self
    }
}
