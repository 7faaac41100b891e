//! Free pages, as runs of adjacent pages.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Set of free pages, kept as maximal runs: no two runs touch.
#[derive(Debug, Default)]
pub(super) struct FreeRuns {
    /// End of every run, by its first page.
    ends: BTreeMap<u32, u32>,
    /// Length and first page of every run.
    by_length: BTreeSet<(u32, u32)>,
    pub(super) pages: u32,
}

impl FreeRuns {
    /// Takes `pages` pages from the shortest run that is long enough, the lowest on a tie. `O(log runs)`.
    ///
    /// This choice reuses pages before fresh pages cost memory.
    pub(super) fn take(&mut self, pages: u32) -> Option<Range<u32>> {
        let &(length, start) = self.by_length.range((pages, 0)..).next()?;
        self.remove(start..start + length);
        self.insert(start + pages..start + length);
        Some(start..start + pages)
    }

    /// Takes `pages` pages from `start` on, if all of them are in the set.
    pub(super) fn take_at(&mut self, start: u32, pages: u32) -> Option<Range<u32>> {
        let end = start.checked_add(pages)?;
        let (&first, &last) = self.ends.range(..=start).next_back().filter(|(_, last)| **last >= end)?;
        self.remove(first..last);
        self.insert(first..start);
        self.insert(end..last);
        Some(start..end)
    }

    /// Returns candidate starts for `pages` pages: the start and the end of the shortest runs that are long enough.
    pub(super) fn places(&self, pages: u32) -> impl Iterator<Item = u32> {
        const LOOKED_AT: usize = 16;
        let runs = self.by_length.range((pages, 0)..).take(LOOKED_AT);
        runs.flat_map(move |&(length, start)| [start, start + (length - pages)])
    }

    /// Adds a run and joins it to its neighbours. No page of the run may be in the set already.
    pub(super) fn add(&mut self, mut run: Range<u32>) {
        if run.is_empty() {
            return;
        }
        if let Some((&start, &end)) = self.ends.range(..run.start).next_back()
            && end == run.start
        {
            self.remove(start..end);
            run.start = start;
        }
        if let Some(&end) = self.ends.get(&run.end) {
            self.remove(run.end..end);
            run.end = end;
        }
        self.insert(run);
    }

    /// Removes all pages from `page` on, and returns them as runs.
    #[cfg(test)]
    pub(super) fn split_off(&mut self, page: u32) -> Vec<Range<u32>> {
        let across = self.ends.range(..page).next_back().map(|(&start, &end)| start..end).filter(|run| run.end > page);
        if let Some(run) = across {
            self.remove(run.clone());
            self.insert(run.start..page);
            self.insert(page..run.end);
        }
        let above: Vec<_> = self.ends.range(page..).map(|(&start, &end)| start..end).collect();
        above.iter().for_each(|run| self.remove(run.clone()));
        above
    }

    /// Returns the length of the longest run in pages.
    pub(super) fn longest(&self) -> u32 {
        self.by_length.last().map_or(0, |&(length, _)| length)
    }

    fn insert(&mut self, run: Range<u32>) {
        if !run.is_empty() {
            self.ends.insert(run.start, run.end);
            self.by_length.insert((run.end - run.start, run.start));
            self.pages += run.end - run.start;
        }
    }

    fn remove(&mut self, run: Range<u32>) {
        self.ends.remove(&run.start);
        self.by_length.remove(&(run.end - run.start, run.start));
        self.pages -= run.end - run.start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(runs: &FreeRuns) -> Vec<(u32, u32)> {
        runs.ends.iter().map(|(&start, &end)| (start, end)).collect()
    }

    #[test]
    fn neighbours_join_and_the_tightest_run_serves() {
        let mut free = FreeRuns::default();
        [4..8, 12..14, 0..2, 2..4, 20..30].into_iter().for_each(|run| free.add(run));
        assert_eq!(runs(&free), [(0, 8), (12, 14), (20, 30)]);
        assert_eq!((free.take(2), free.take(3), free.take(9)), (Some(12..14), Some(0..3), Some(20..29)));
        assert_eq!((free.pages, free.longest(), free.take(6)), (6, 5, None));
        free.add(12..14);
        free.add(8..12);
        assert_eq!(runs(&free), [(3, 14), (29, 30)]);
    }

    #[test]
    fn a_run_is_taken_where_it_is_asked_for_or_not_at_all() {
        let mut free = FreeRuns::default();
        [4..10, 12..14].into_iter().for_each(|run| free.add(run));
        for (start, pages) in [(3, 1), (4, 7), (9, 2), (10, 1), (11, 2), (13, 2), (u32::MAX, 1)] {
            assert_eq!(free.take_at(start, pages), None, "{pages} at {start}");
        }
        assert_eq!((free.take_at(6, 2), free.take_at(12, 2), free.pages), (Some(6..8), Some(12..14), 4));
        assert_eq!(runs(&free), [(4, 6), (8, 10)]);
    }

    #[test]
    fn splitting_cuts_the_run_across_the_border() {
        let mut free = FreeRuns::default();
        [0..4, 6..10, 12..14].into_iter().for_each(|run| free.add(run));
        assert_eq!(free.split_off(8), [8..10, 12..14]);
        assert_eq!((runs(&free), free.pages), (vec![(0, 4), (6, 8)], 6));
        assert_eq!(free.split_off(8), []);
        assert_eq!(free.split_off(0), [0..4, 6..8]);
        assert_eq!((free.pages, free.longest()), (0, 0));
    }
}
