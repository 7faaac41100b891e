//! The allocator against a naive twin: a list of pages, searched from end to end.

use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;

use crate::workers::slab::extents::Extents;
use crate::workers::slab::{ExtentId, PAGE, SlabError};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Page {
    Free,
    Granted,
    Leased,
    Emptied,
}

struct Twin {
    pages: Vec<Page>,
    reserve: usize,
    limit: usize,
    high_water: usize,
}

impl Twin {
    fn free_runs(&self, zone: Range<usize>) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for page in zone.filter(|&page| self.pages[page] == Page::Free) {
            match runs.last_mut().filter(|run| run.end == page) {
                Some(run) => run.end += 1,
                None => runs.push(page..page + 1),
            }
        }
        runs
    }

    fn grant(&mut self, zone: Range<usize>, pages: usize) -> Option<Range<usize>> {
        let fitting = self.free_runs(zone).into_iter().filter(|run| run.len() >= pages);
        let start = fitting.min_by_key(|run| (run.len(), run.start))?.start;
        self.pages[start..start + pages].fill(Page::Granted);
        self.high_water = self.high_water.max(self.count(Page::Granted) + self.count(Page::Leased));
        Some(start..start + pages)
    }

    /// Frees pages; returns those that must be emptied, if any.
    fn free(&mut self, run: Range<usize>) -> Option<Range<usize>> {
        let at_once = run.is_empty() || run.start >= self.reserve || run.end <= self.limit;
        self.pages[run.clone()].fill(if at_once { Page::Free } else { Page::Emptied });
        (!at_once).then_some(run)
    }

    fn set_limit(&mut self, limit: usize) -> Vec<Range<usize>> {
        let limit = limit.min(self.reserve);
        let holes = if limit < self.limit { self.free_runs(limit..self.limit) } else { Vec::new() };
        holes.iter().for_each(|hole| self.pages[hole.clone()].fill(Page::Emptied));
        self.limit = limit;
        holes
    }

    fn count(&self, page: Page) -> usize {
        self.pages.iter().filter(|&&p| p == page).count()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Grant(u32),
    GrantReserve(u32),
    Lease(Index, u32),
    Release(Index),
    Emptied(Index),
    SetLimit(u32),
    /// Something with an extent that has ended, or never was.
    Stale(Index, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u32..9).prop_map(Step::Grant),
        1 => (0u32..9).prop_map(Step::GrantReserve),
        4 => (any::<Index>(), 0u32..9).prop_map(|(i, keep)| Step::Lease(i, keep)),
        5 => any::<Index>().prop_map(Step::Release),
        2 => any::<Index>().prop_map(Step::Emptied),
        1 => (0u32..80).prop_map(Step::SetLimit),
        1 => (any::<Index>(), 0u64..4).prop_map(|(i, shift)| Step::Stale(i, shift)),
    ];
    prop::collection::vec(step, 1..300)
}

fn run_of(id: ExtentId) -> Range<usize> {
    id.page as usize..(id.page + id.pages) as usize
}

/// The two side by side, and the extents that are out.
struct Pair {
    extents: Extents,
    twin: Twin,
    live: Vec<(ExtentId, Page)>,
    ended: Vec<ExtentId>,
}

impl Pair {
    fn new(pages: u32, reserve: u32) -> Self {
        let start = (pages - reserve) as usize;
        let twin = Twin { pages: vec![Page::Free; pages as usize], reserve: start, limit: start, high_water: 0 };
        Self { extents: Extents::new(pages, reserve), twin, live: Vec::new(), ended: Vec::new() }
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Grant(pages) => {
                let expected = self.twin.grant(0..self.twin.limit, pages.max(1) as usize);
                let id = self.extents.grant(pages);
                self.granted(id, expected)?;
            }
            Step::GrantReserve(pages) => {
                let expected = self.twin.grant(self.twin.reserve..self.twin.pages.len(), pages.max(1) as usize);
                let id = self.extents.grant_reserve(pages);
                self.granted(id, expected)?;
            }
            Step::Lease(at, keep) => self.lease(at, keep)?,
            Step::Release(at) if !self.live.is_empty() => {
                let (id, usage) = self.live[at.index(self.live.len())];
                if usage == Page::Emptied {
                    prop_assert_eq!(self.extents.release(id), Err(SlabError::Stale(id)));
                } else {
                    let hole = self.extents.release(id).unwrap();
                    self.end(id);
                    let expected = self.twin.free(run_of(id));
                    self.emptying(hole.into_iter().collect(), expected.into_iter().collect())?;
                }
            }
            Step::Emptied(at) if !self.live.is_empty() => {
                let (id, usage) = self.live[at.index(self.live.len())];
                if usage == Page::Emptied {
                    prop_assert_eq!(self.extents.emptied(id), Ok(()));
                    self.end(id);
                    self.twin.pages[run_of(id)].fill(Page::Free);
                } else {
                    prop_assert_eq!(self.extents.emptied(id), Err(SlabError::Stale(id)));
                }
            }
            Step::SetLimit(limit) => {
                let holes = self.extents.set_limit(limit);
                let expected = self.twin.set_limit(limit as usize);
                self.emptying(holes, expected)?;
            }
            Step::Stale(at, shift) if !self.ended.is_empty() => {
                let ended = self.ended[at.index(self.ended.len())];
                // Its own generation is over, and those beyond the last are still to come.
                let generation = if shift == 0 { ended.generation } else { u64::MAX - shift };
                let id = ExtentId { generation, ..ended };
                prop_assert_eq!(self.extents.release(id), Err(SlabError::Stale(id)));
                prop_assert_eq!(self.extents.lease(id, 1), Err(SlabError::Stale(id)));
                prop_assert_eq!(self.extents.emptied(id), Err(SlabError::Stale(id)));
            }
            _ => {}
        }
        Ok(())
    }

    fn lease(&mut self, at: Index, keep: u32) -> Result<(), TestCaseError> {
        if self.live.is_empty() {
            return Ok(());
        }
        let at = at.index(self.live.len());
        let (id, usage) = self.live[at];
        if usage != Page::Granted {
            prop_assert_eq!(self.extents.lease(id, keep), Err(SlabError::Stale(id)));
        } else if run_of(id).start >= self.twin.reserve {
            prop_assert_eq!(self.extents.lease(id, keep), Err(SlabError::Reserve(id)));
        } else {
            let (kept, hole) = self.extents.lease(id, keep).unwrap();
            let border = id.page + keep.clamp(1, id.pages);
            prop_assert_eq!(kept, ExtentId { pages: border - id.page, ..id });
            if kept != id {
                self.ended.push(id);
            }
            self.live[at] = (kept, Page::Leased);
            self.twin.pages[run_of(kept)].fill(Page::Leased);
            let expected = self.twin.free(run_of(kept).end..run_of(id).end);
            self.emptying(hole.into_iter().collect(), expected.into_iter().collect())?;
        }
        Ok(())
    }

    fn granted(&mut self, id: Option<ExtentId>, expected: Option<Range<usize>>) -> Result<(), TestCaseError> {
        prop_assert_eq!(id.map(run_of), expected);
        self.live.extend(id.map(|id| (id, Page::Granted)));
        Ok(())
    }

    fn emptying(&mut self, holes: Vec<ExtentId>, expected: Vec<Range<usize>>) -> Result<(), TestCaseError> {
        prop_assert_eq!(holes.iter().copied().map(run_of).collect::<Vec<_>>(), expected);
        self.live.extend(holes.into_iter().map(|id| (id, Page::Emptied)));
        Ok(())
    }

    fn end(&mut self, id: ExtentId) {
        self.live.retain(|(live, _)| *live != id);
        self.ended.push(id);
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let (stats, twin) = (self.extents.stats(), &self.twin);
        let open = twin.free_runs(0..twin.limit);
        let closed: usize = twin.free_runs(twin.limit..twin.reserve).iter().map(Range::len).sum();
        prop_assert_eq!(stats.granted_bytes, twin.count(Page::Granted) * PAGE);
        prop_assert_eq!(stats.leased_bytes, twin.count(Page::Leased) * PAGE);
        prop_assert_eq!(stats.leases, self.live.iter().filter(|(_, usage)| *usage == Page::Leased).count());
        prop_assert_eq!(stats.free_bytes, open.iter().map(Range::len).sum::<usize>() * PAGE);
        prop_assert_eq!(stats.longest_free_bytes, open.iter().map(Range::len).max().unwrap_or(0) * PAGE);
        prop_assert_eq!(stats.bound_bytes, (twin.pages.len() - closed) * PAGE);
        prop_assert_eq!(stats.high_water_bytes, twin.high_water * PAGE);
        Ok(())
    }
}

proptest! {
    #[test]
    fn agrees_with_a_list_of_pages(
        (pages, reserve) in (1u32..70).prop_flat_map(|n| (Just(n), 0..=n)),
        steps in steps(),
    ) {
        let mut pair = Pair::new(pages, reserve);
        for step in steps {
            pair.step(step)?;
            pair.compare()?;
        }
        // Whatever happened, everything comes back and is one run again.
        for (id, usage) in std::mem::take(&mut pair.live) {
            let hole = if usage == Page::Emptied { Some(id) } else { pair.extents.release(id).unwrap() };
            hole.into_iter().for_each(|hole| pair.extents.emptied(hole).unwrap());
        }
        prop_assert_eq!(pair.extents.set_limit(pages), []);
        let stats = pair.extents.stats();
        prop_assert_eq!(stats.longest_free_bytes, (pages - reserve) as usize * PAGE);
        prop_assert_eq!(stats.bound_bytes, pages as usize * PAGE);
        prop_assert_eq!(pair.extents.grant_reserve(reserve.max(1)).is_some(), reserve > 0);
    }
}
