//! Memory of packed rows, reused from group to group.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::feature::Feature;
use crate::element::{BufferMut, Owner};
use crate::error::{Error, Result};

/// Place of an output array: rows of `stride` bytes, starting at byte `start`.
#[derive(Clone, Copy, Debug)]
struct Plane {
    start: usize,
    stride: usize,
}

impl Plane {
    #[inline]
    fn bytes(self, row: usize, unit: usize, cells: Range<usize>) -> Range<usize> {
        let row = self.start + row * self.stride;
        row + cells.start * unit..row + cells.end * unit
    }

    /// Returns this plane with `start` relative to the start of `other`, which must come first in memory.
    fn behind(self, other: Self) -> Self {
        Self { start: self.start - other.start, ..self }
    }
}

/// Array of a feature in an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Packed cells.
    Values,
    /// Segment ids, `i32`: 1, 2, … along the row; 0 for padding.
    SegmentIds,
    /// Positions, `i32`: the index of a cell in its sequence; 0 for padding.
    Positions,
    /// Cells shifted left by one within each sequence: each target is the value of the next cell.
    ///
    /// The last cell of a sequence has no next cell, so its target is padding. Targets of padding are padding.
    Targets,
    /// Segment ids of the targets, `i32`; 0 if a cell has no target.
    TargetSegmentIds,
    /// Positions of the targets, `i32`; 0 if a cell has no target.
    TargetPositions,
}

/// Layout of an [`Arena`]: the arrays of each feature in the order of [`Part`].
///
/// Each array has shape `[rows, length]`, followed by the inner dimensions of a cell for values and targets.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    features: Vec<Feature>,
    /// Arrays of each feature, in the order of [`Part`]. Absent arrays have stride 0.
    planes: Vec<[Plane; 6]>,
    rows: usize,
    bytes: usize,
}

impl Layout {
    /// Lays out `rows` rows of `features`.
    ///
    /// # Errors
    /// `Config` if the arena would not fit in memory.
    pub(crate) fn new(features: &[Feature], rows: usize) -> Result<Arc<Self>> {
        let mut layout = Self { features: features.to_vec(), planes: Vec::new(), rows, bytes: 0 };
        for feature in features {
            let cell = if feature.counted { 0 } else { feature.cell };
            let mark = if feature.meta || feature.counted { 0 } else { 4 };
            let shifted = if feature.shifted { [cell, mark, mark] } else { [0; 3] };
            let mut planes = [Plane { start: 0, stride: 0 }; 6];
            for (plane, unit) in planes.iter_mut().zip([cell, mark, mark].into_iter().chain(shifted)) {
                *plane = layout.plane(feature, unit)?;
            }
            layout.planes.push(planes);
        }
        Ok(Arc::new(layout))
    }

    /// Reserves the next array with `unit` bytes per cell, at a 64-byte boundary.
    fn plane(&mut self, feature: &Feature, unit: usize) -> Result<Plane> {
        let plane = Plane { start: self.bytes, stride: feature.length.saturating_mul(unit) };
        let bytes = plane.stride.checked_mul(self.rows).and_then(|b| b.checked_next_multiple_of(64));
        let total = bytes.and_then(|b| self.bytes.checked_add(b)).filter(|&b| b <= isize::MAX as usize);
        self.bytes = total.ok_or_else(|| {
            let Feature { name, length, .. } = feature;
            Error::config(format!("feature {name:?}: {} rows of {length} cells do not fit in memory", self.rows))
        })?;
        Ok(plane)
    }

    pub(crate) fn features(&self) -> &[Feature] {
        &self.features
    }

    /// Returns the size of an arena in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Rows of every feature in a single allocation, written in place.
///
/// Unwritten parts hold zeros or the bytes of earlier rows. Padding is written at the end of each row.
#[derive(Debug)]
pub struct Arena {
    layout: Arc<Layout>,
    memory: BufferMut,
}

impl Arena {
    fn new(layout: &Arc<Layout>) -> Result<Self> {
        Ok(Self { layout: layout.clone(), memory: BufferMut::try_zeroed(layout.bytes)? })
    }

    /// Writes `cells` into row `row` from cell `at` on, as segment `mark.segment`.
    ///
    /// Positions count from `mark.position`.
    #[inline]
    pub(crate) fn write(&mut self, feature: usize, row: usize, at: usize, cells: &[u8], mark: Mark) {
        let cell = self.layout.features[feature].cell;
        let [values, ids, positions, ..] = self.layout.planes[feature];
        if values.stride == 0 {
            return;
        }
        let memory = self.memory.as_mut_bytes();
        let start = values.start + row * values.stride + at * cell;
        memory[start..start + cells.len()].copy_from_slice(cells);
        if ids.stride == 0 {
            return;
        }
        let to = at..at + mark.len;
        as_i32(&mut memory[ids.bytes(row, 4, to.clone())]).fill(mark.segment);
        for (place, position) in as_i32(&mut memory[positions.bytes(row, 4, to)]).iter_mut().zip(mark.position..) {
            *place = position;
        }
    }

    /// Fills the cells `range` of a row with padding.
    #[inline]
    pub(crate) fn pad(&mut self, feature: usize, row: usize, range: Range<usize>) {
        let Feature { cell, padding, .. } = &self.layout.features[feature];
        let [values, ids, positions, ..] = self.layout.planes[feature];
        if range.is_empty() || values.stride == 0 {
            return;
        }
        let memory = self.memory.as_mut_bytes();
        let place = &mut memory[values.bytes(row, *cell, range.clone())];
        if padding.is_empty() {
            place.fill(0);
        } else {
            place.chunks_exact_mut(*cell).for_each(|place| place.copy_from_slice(padding));
        }
        if ids.stride > 0 {
            memory[ids.bytes(row, 4, range.clone())].fill(0);
            memory[positions.bytes(row, 4, range)].fill(0);
        }
    }

    /// Ends a row with `used` written cells: pads the rest, and writes the shifted copy if the feature has targets.
    pub(crate) fn end_row(&mut self, feature: usize, row: usize, used: usize) {
        let Feature { length, shifted, .. } = self.layout.features[feature];
        self.pad(feature, row, used..length);
        if shifted {
            self.shift(feature, row);
        }
    }

    /// Writes the targets of a row, with their segment ids and positions.
    fn shift(&mut self, feature: usize, row: usize) {
        let Feature { length, cell, padding, .. } = &self.layout.features[feature];
        let [values, ids, positions, targets, target_ids, target_positions] = self.layout.planes[feature];
        // Targets come after their inputs in memory, so a single split separates reads from writes.
        let (read, write) = self.memory.as_mut_bytes().split_at_mut(targets.start);
        let marks = |plane: Plane| bytemuck::cast_slice::<u8, i32>(&read[plane.bytes(row, 4, 0..*length)]);
        let ids = marks(ids);
        let next_ids = || ids[1..].iter().copied().chain([0]);
        for (from, to) in [(ids, target_ids), (marks(positions), target_positions)] {
            let to = as_i32(&mut write[to.behind(targets).bytes(row, 4, 0..*length)]);
            for (((to, from), id), next) in to.iter_mut().zip(from).zip(ids).zip(next_ids()) {
                *to = if *id == next { *from } else { 0 };
            }
        }
        let to = &mut write[targets.behind(targets).bytes(row, *cell, 0..*length)];
        to[..(length - 1) * cell].copy_from_slice(&read[values.bytes(row, *cell, 1..*length)]);
        for ((to, id), next) in to.chunks_exact_mut(*cell).zip(ids).zip(next_ids()) {
            if *id == 0 || *id != next {
                if padding.is_empty() { to.fill(0) } else { to.copy_from_slice(padding) }
            }
        }
    }

    /// Returns the bytes of a cell for modification.
    pub(crate) fn cell_mut(&mut self, feature: usize, row: usize, at: usize) -> &mut [u8] {
        let cell = self.layout.features[feature].cell;
        let range = self.layout.planes[feature][0].bytes(row, cell, at..at + 1);
        &mut self.memory.as_mut_bytes()[range]
    }

    /// Returns the byte range of `rows` of an array of feature number `feature` within [`bytes`](Owner::bytes).
    ///
    /// The range is empty if the array does not exist, such as the segment ids and positions of a meta feature.
    /// # Panics
    /// If there is no such feature.
    pub fn range(&self, feature: usize, part: Part, rows: Range<usize>) -> Range<usize> {
        let Plane { start, stride } = self.layout.planes[feature][part as usize];
        start + rows.start * stride..start + rows.end * stride
    }

    /// Returns a row of segment ids or positions.
    ///
    /// # Panics
    /// If there is no such feature or row.
    pub fn row_i32(&self, feature: usize, part: Part, row: usize) -> &[i32] {
        bytemuck::cast_slice(self.row(feature, part, row))
    }

    /// Returns a row of an array as bytes.
    ///
    /// # Panics
    /// If there is no such feature or row.
    pub fn row(&self, feature: usize, part: Part, row: usize) -> &[u8] {
        assert!(row < self.layout.rows, "row {row} of {}", self.layout.rows);
        &self.memory.as_bytes()[self.range(feature, part, row..row + 1)]
    }
}

impl Owner for Arena {
    fn bytes(&self) -> &[u8] {
        self.memory.as_bytes()
    }
}

/// Segment id and first position of the `len` cells of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) len: usize,
    pub(crate) segment: i32,
    pub(crate) position: i32,
}

/// Casts bytes to `i32`.
///
/// The cast cannot fail: arrays start at 64-byte boundaries and these cells have 4 bytes.
#[inline]
fn as_i32(bytes: &mut [u8]) -> &mut [i32] {
    bytemuck::cast_slice_mut(bytes)
}

/// Number of lent arenas to check for reuse before a new allocation.
const TRIES: usize = 4;

/// Pool of arenas with a common layout. Arenas are reused after all views of their rows are dropped.
#[derive(Debug)]
pub(crate) struct ArenaPool {
    layout: Arc<Layout>,
    /// Lent arenas, oldest first. They tend to return in this order.
    lent: VecDeque<Arc<Arena>>,
}

impl ArenaPool {
    pub(crate) fn new(layout: Arc<Layout>) -> Self {
        Self { layout, lent: VecDeque::new() }
    }

    /// Returns an arena to write into, reused if possible.
    ///
    /// # Errors
    /// `Config` if there is no memory for a new arena.
    pub(crate) fn take(&mut self) -> Result<Arena> {
        for _ in 0..TRIES.min(self.lent.len()) {
            match self.lent.pop_front().map(Arc::try_unwrap) {
                Some(Ok(arena)) => return Ok(arena),
                // Still in use: moves to the back, so that it does not block the others.
                Some(Err(in_use)) => self.lent.push_back(in_use),
                None => break,
            }
        }
        Arena::new(&self.layout)
    }

    /// Returns the arena under construction, and takes one from the pool if there is none.
    #[inline]
    pub(crate) fn begun<'a>(&mut self, arena: &'a mut Option<Arena>) -> Result<&'a mut Arena> {
        match arena {
            Some(arena) => Ok(arena),
            none => Ok(none.insert(self.take()?)),
        }
    }

    /// Shares a written arena, and keeps a reference for later reuse.
    pub(crate) fn lend(&mut self, arena: Arena) -> Arc<Arena> {
        let shared = Arc::new(arena);
        self.lent.push_back(shared.clone());
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_cells_marks_and_padding() {
        let wide = Feature { cell: 2, padding: vec![9, 8], ..Feature::new("w", 3) };
        let meta = Feature { meta: true, ..Feature::new("m", 2) };
        let mut pool = ArenaPool::new(Layout::new(&[wide, meta], 2).unwrap());
        let mut arena = pool.take().unwrap();
        arena.memory.as_mut_bytes().fill(0xff);
        arena.write(0, 1, 1, &[1, 2], Mark { len: 1, segment: 4, position: 7 });
        arena.pad(0, 1, 0..1);
        arena.pad(0, 1, 2..3);
        arena.write(1, 1, 0, &[5; 4], Mark { len: 1, segment: 4, position: 0 });
        arena.pad(1, 1, 1..2);
        assert_eq!(arena.row(0, Part::Values, 1), [9, 8, 1, 2, 9, 8]);
        assert_eq!(arena.row_i32(0, Part::SegmentIds, 1), [0, 4, 0]);
        assert_eq!(arena.row_i32(0, Part::Positions, 1), [0, 7, 0]);
        assert_eq!(arena.row(1, Part::Values, 1), [5, 5, 5, 5, 0, 0, 0, 0]);
        assert!(arena.row(1, Part::Positions, 1).is_empty());
        assert_eq!(arena.row(0, Part::Values, 0), [0xff; 6]);
    }

    #[test]
    fn targets_stop_at_the_end_of_a_sequence() {
        let feature = Feature { shifted: true, padding: vec![255; 4], ..Feature::new("a", 7) };
        let mut arena = ArenaPool::new(Layout::new(&[feature], 2).unwrap()).take().unwrap();
        arena.memory.as_mut_bytes().fill(0xee);
        let cells = |tokens: &[i32]| bytemuck::cast_slice::<i32, u8>(tokens).to_vec();
        arena.write(0, 1, 0, &cells(&[11, 12, 13]), Mark { len: 3, segment: 1, position: 5 });
        arena.write(0, 1, 3, &cells(&[21, 22]), Mark { len: 2, segment: 2, position: 0 });
        arena.end_row(0, 1, 5);
        let row = |part| arena.row_i32(0, part, 1);
        assert_eq!(row(Part::Values), [11, 12, 13, 21, 22, -1, -1]);
        assert_eq!(row(Part::Targets), [12, 13, -1, 22, -1, -1, -1]);
        assert_eq!(row(Part::TargetSegmentIds), [1, 1, 0, 2, 0, 0, 0]);
        assert_eq!(row(Part::TargetPositions), [5, 6, 0, 0, 0, 0, 0]);
        assert!(arena.row(0, Part::Targets, 0).iter().all(|&byte| byte == 0xee));
    }

    #[test]
    fn memory_returns_when_the_last_view_is_gone() {
        let mut pool = ArenaPool::new(Layout::new(&[Feature::new("a", 4)], 1).unwrap());
        let arena = pool.take().unwrap();
        let place = arena.bytes().as_ptr();
        let lent = pool.lend(arena);
        assert_ne!(pool.take().unwrap().bytes().as_ptr(), place);
        drop(lent);
        assert_eq!(pool.take().unwrap().bytes().as_ptr(), place);
    }

    #[test]
    fn too_large_is_refused() {
        let error = Layout::new(&[Feature::new("a", 1 << 30)], 1 << 40).unwrap_err();
        assert!(error.message().contains("do not fit in memory"), "{error}");
    }
}
