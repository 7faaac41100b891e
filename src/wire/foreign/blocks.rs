//! Blocks of an extent and their state: plain numbers, without memory, locks or threads.

use std::ops::Range;

use super::Settled;
use crate::wire::{ALIGN, HEADER};

/// Bytes at the end of an extent that are reserved for its table. No block uses them.
const TABLE: usize = 16 << 10;

/// State of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InUse,
    /// The block is part of the output. `number` orders the given blocks; `in_use` is false after foreign code has freed it.
    Given {
        number: usize,
        in_use: bool,
    },
    /// The block was freed and can be allocated again.
    Hole,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    start: usize,
    len: usize,
    state: State,
}

/// The blocks of an extent, and the writer's position. New blocks and output are placed after all used bytes.
#[derive(Debug)]
pub(super) struct Blocks {
    capacity: usize,
    written: usize,
    /// Sorted by start.
    blocks: Vec<Block>,
    pub(super) given: usize,
    allocated: bool,
    /// True if the extent is memory that forks of this process do not have.
    pub(super) shared: bool,
}

impl Blocks {
    pub(super) fn new(capacity: usize, shared: bool) -> Self {
        Self { capacity, written: HEADER, blocks: Vec::new(), given: 0, allocated: false, shared }
    }

    pub(super) fn end(&self) -> usize {
        self.blocks.last().map_or(0, |last| last.start + last.len).max(self.written)
    }

    pub(super) fn needed(&self) -> usize {
        let given = self.blocks.iter().rfind(|block| matches!(block.state, State::Given { .. }));
        given.map_or(0, |last| last.start + last.len)
    }

    pub(super) fn wrote(&mut self, end: usize) {
        self.written = end;
    }

    /// Allocates a block of `len` bytes. Returns its place, or `None` if there is no room.
    pub(super) fn allocate(&mut self, len: usize) -> Option<usize> {
        let len = len.checked_next_multiple_of(ALIGN)?;
        let hole = self.blocks.iter().position(|block| block.state == State::Hole && block.len >= len);
        self.allocated = true;
        if let Some(at) = hole {
            let Block { start, len: all, .. } = self.blocks[at];
            self.blocks[at] = Block { start, len, state: State::InUse };
            if all > len {
                self.blocks.insert(at + 1, Block { start: start + len, len: all - len, state: State::Hole });
            }
            return Some(start);
        }
        let start = self.end().checked_next_multiple_of(ALIGN)?;
        let end = start.checked_add(len)?;
        if end > self.capacity.checked_sub(TABLE)? {
            return None;
        }
        self.blocks.push(Block { start, len, state: State::InUse });
        Some(start)
    }

    fn find(&mut self, place: usize) -> Option<&mut Block> {
        let at = self.blocks.partition_point(|block| block.start <= place).checked_sub(1)?;
        self.blocks.get_mut(at).filter(|block| place < block.start + block.len)
    }

    /// Frees the block that begins at `place`. Returns `None` if there is no used block.
    pub(super) fn free(&mut self, place: usize) -> Option<()> {
        let block = self.find(place).filter(|block| block.start == place)?;
        match &mut block.state {
            State::InUse => block.state = State::Hole,
            State::Given { in_use: in_use @ true, .. } => *in_use = false,
            State::Given { .. } | State::Hole => return None,
        }
        self.drop_holes();
        Some(())
    }

    /// Drops holes at the end, so that their bytes are unused again.
    fn drop_holes(&mut self) {
        while self.blocks.last().is_some_and(|last| last.state == State::Hole && last.start >= self.written) {
            self.blocks.pop();
        }
    }

    /// Returns the bytes of the block that begins at `place`.
    pub(super) fn len_of(&mut self, place: usize) -> Option<usize> {
        let block = self.find(place).filter(|block| block.start == place && block.state != State::Hole)?;
        Some(block.len)
    }

    /// Makes the blocks that contain these bytes part of the output. The bytes may span adjacent blocks, such as the rows of a
    /// batch. Returns `false` if there are none, or if a block is not in use.
    pub(super) fn give(&mut self, place: usize, len: usize) -> bool {
        let Some(run) = self.run(place, len).filter(|_| place.is_multiple_of(ALIGN)) else { return false };
        let number = self.given;
        self.blocks[run].iter_mut().for_each(|block| block.state = State::Given { number, in_use: true });
        self.given += 1;
        true
    }

    /// Returns the adjacent used blocks that contain these bytes.
    fn run(&self, place: usize, len: usize) -> Option<Range<usize>> {
        let first = self.blocks.partition_point(|block| block.start <= place).checked_sub(1)?;
        let (mut at, mut end) = (first, self.blocks[first].start);
        while end < place.checked_add(len)? || at == first {
            let block = self.blocks.get(at).filter(|block| block.start == end && block.state == State::InUse)?;
            (at, end) = (at + 1, block.start + block.len);
        }
        (place < self.blocks[first].start + self.blocks[first].len).then_some(first..at)
    }

    pub(super) fn rewind(&mut self, end: usize, given: usize) {
        (self.written, self.given) = (end, given);
        for block in &mut self.blocks {
            if let State::Given { number, in_use } = block.state
                && number >= given
            {
                block.state = if in_use { State::InUse } else { State::Hole };
            }
        }
        self.drop_holes();
    }

    pub(super) fn has_others(&self) -> bool {
        self.blocks.iter().any(|block| block.state == State::InUse)
    }

    pub(super) fn in_use(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.state, State::InUse | State::Given { in_use: true, .. }))
    }

    /// Returns the places and lengths of all used blocks.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let used = |block: &&Block| matches!(block.state, State::InUse | State::Given { in_use: true, .. });
        self.blocks.iter().filter(used).map(|block| (block.start, block.len))
    }

    pub(super) fn settled(&self) -> Settled {
        let needed = self.needed().max(self.written);
        let holes = self.blocks.iter().filter(|block| block.state == State::Hole && block.start < needed);
        Settled { in_use: self.in_use(), allocated: self.allocated, wasted: holes.map(|hole| hole.len).sum() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Step of a random run of allocations, frees, gifts, writes and rewinds. Bytes that are used, written or given must not overlap.
    #[derive(Clone, Debug)]
    enum Do {
        Allocate(usize),
        Free(usize),
        Give(usize),
        /// Gives the block at the first index and a number of later blocks.
        GiveRun(usize, usize),
        Write(usize),
        Mark,
        Rewind,
    }

    fn something() -> impl Strategy<Value = Do> {
        prop_oneof![
            (1usize..3000).prop_map(Do::Allocate),
            (0usize..20).prop_map(Do::Free),
            (0usize..20).prop_map(Do::Give),
            (0usize..20, 1usize..4).prop_map(|(which, more)| Do::GiveRun(which, more)),
            (1usize..500).prop_map(Do::Write),
            Just(Do::Mark),
            Just(Do::Rewind),
        ]
    }

    /// Places and lengths.
    type Spans = Vec<(usize, usize)>;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

        #[test]
        fn nothing_overlaps(steps in prop::collection::vec(something(), 1..60)) {
            let mut blocks = Blocks::new(TABLE + 16_000, false);
            // The live blocks and the written ranges. All other bytes are unused.
            let mut live: Vec<(usize, usize, bool)> = Vec::new();
            let mut written: Vec<(usize, usize)> = vec![(0, 64)];
            let mut marks: Vec<(usize, usize, Spans)> = Vec::new();
            for step in steps {
                match step {
                    Do::Allocate(len) => {
                        if let Some(start) = blocks.allocate(len) {
                            prop_assert!(start.is_multiple_of(ALIGN) && start + len <= 16_000);
                            for &(at, taken, _) in &live {
                                prop_assert!(start + len <= at || at + taken <= start);
                            }
                            for &(at, taken) in &written {
                                prop_assert!(start + len <= at || at + taken <= start, "{start} {len} {at} {taken}");
                            }
                            live.push((start, len, false));
                            // Older marks do not include the block. They stay valid.
                        }
                    }
                    Do::Free(which) => {
                        if which < live.len() {
                            let (start, len, given) = live[which];
                            prop_assert!(blocks.len_of(start).is_some_and(|all| all >= len));
                            prop_assert!(blocks.free(start).is_some() && blocks.free(start).is_none());
                            live.remove(which);
                            if given {
                                // The bytes stay in place for the reader.
                                written.push((start, len));
                            }
                        }
                    }
                    Do::Give(which) => {
                        if let Some((start, len, given)) = live.get_mut(which) {
                            prop_assert_eq!(blocks.give(*start, *len), !*given);
                            *given = true;
                        }
                    }
                    Do::GiveRun(which, more) => {
                        let mut run = live.clone();
                        run.sort_unstable();
                        let run: Vec<_> = run.into_iter().skip(which).take(1 + more).collect();
                        let follow = |pair: &[(usize, usize, bool)]| pair[0].0 + pair[0].1.next_multiple_of(ALIGN) == pair[1].0;
                        if let (Some(first), Some(last)) = (run.first(), run.last()) {
                            let fits = run.windows(2).all(follow) && run.iter().all(|(.., given)| !given);
                            prop_assert_eq!(blocks.give(first.0, last.0 + last.1 - first.0), fits);
                            live.iter_mut().filter(|l| fits && run.contains(l)).for_each(|l| l.2 = true);
                        }
                    }
                    Do::Write(len) => {
                        let start = blocks.end();
                        for &(at, taken, _) in &live {
                            prop_assert!(start >= at + taken);
                        }
                        for &(at, taken) in &written {
                            prop_assert!(start >= at + taken);
                        }
                        blocks.wrote(start + len);
                        written.push((start, len));
                    }
                    Do::Mark => marks.push((blocks.written, blocks.given, written.clone())),
                    Do::Rewind => {
                        if let Some((end, given, before)) = marks.pop() {
                            // A chunk writer only rewinds to a mark of the present record, within which no given block was freed.
                            let freed = |b: &Block| matches!(b.state, State::Given { in_use: false, .. });
                            if !blocks.blocks.iter().any(freed) {
                                let back: Vec<usize> = blocks
                                    .blocks
                                    .iter()
                                    .filter(|b| matches!(b.state, State::Given { number, .. } if number >= given))
                                    .map(|b| b.start)
                                    .collect();
                                live.iter_mut().filter(|(start, ..)| back.contains(start)).for_each(|l| l.2 = false);
                                blocks.rewind(end, given);
                                written = before;
                            }
                        }
                    }
                }
                prop_assert_eq!(blocks.in_use(), !live.is_empty());
                prop_assert_eq!(blocks.places().count(), live.len());
                prop_assert_eq!(blocks.has_others(), live.iter().any(|(_, _, given)| !given));
            }
        }
    }

    #[test]
    fn what_is_freed_is_had_again() {
        let mut blocks = Blocks::new(TABLE + 100_000, false);
        let first = blocks.allocate(1000).unwrap();
        let second = blocks.allocate(2000).unwrap();
        blocks.free(first).unwrap();
        assert_eq!(blocks.settled(), Settled { in_use: true, allocated: true, wasted: 0 });
        let (again, rest) = (blocks.allocate(500).unwrap(), blocks.allocate(400).unwrap());
        assert_eq!((again, rest), (first, first + 512));
        assert!(blocks.give(second, 2000));
        blocks.free(again).unwrap();
        assert_eq!(blocks.settled().wasted, 512 + 64);
        blocks.free(rest).unwrap();
        blocks.free(second).unwrap();
        assert_eq!((blocks.settled().wasted, blocks.in_use(), blocks.needed()), (1024, false, second + 2048));
        assert_eq!(blocks.end(), second + 2048);
    }

    #[test]
    fn rows_that_follow_each_other_are_given_together() {
        let mut blocks = Blocks::new(TABLE + 100_000, false);
        let rows: Vec<usize> = (0..4).map(|_| blocks.allocate(640).unwrap()).collect();
        // The bytes between rows are not a row.
        let other = blocks.allocate(64).unwrap();
        let behind = blocks.allocate(640).unwrap();
        assert!(!blocks.give(rows[0], 4 * 640 + 64 + 640 + 1));
        blocks.free(other).unwrap();
        assert!(!blocks.give(rows[2], 2 * 640 + 64 + 640));
        assert!(blocks.give(rows[0], 4 * 640) && !blocks.give(rows[3], 640));
        assert_eq!((blocks.given, blocks.has_others()), (1, true));
        // A single gift, taken back at once.
        blocks.rewind(HEADER, 0);
        assert!(blocks.give(rows[1], 3 * 640) && blocks.give(rows[0], 640) && blocks.give(behind, 640));
        assert_eq!((blocks.given, blocks.needed(), blocks.has_others()), (3, behind + 640, false));
        rows.into_iter().chain([behind]).for_each(|row| blocks.free(row).unwrap());
        assert_eq!(blocks.settled(), Settled { in_use: false, allocated: true, wasted: 64 });
    }

    #[test]
    fn a_view_is_given_where_it_is_aligned() {
        let mut blocks = Blocks::new(TABLE + 100_000, false);
        let block = blocks.allocate(1000).unwrap();
        assert!(!blocks.give(block + 8, 100) && !blocks.give(block, 2000) && !blocks.give(block + 5000, 1));
        assert!(blocks.give(block + 64, 100) && !blocks.give(block, 64));
        assert!(blocks.free(block + 64).is_none());
    }
}
