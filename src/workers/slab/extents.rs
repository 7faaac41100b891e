//! Bookkeeping of granted, leased and free pages: plain numbers, without memory, locks or system calls.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::error::SlabError;
use super::runs::FreeRuns;
use super::stats::SlabStats;

/// Bytes of a page, the unit in which a slab is granted.
pub(crate) const PAGE: usize = 64 << 10;

/// Run of pages from a single grant. No two grants of a slab have equal generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ExtentId {
    pub(crate) page: u32,
    pub(crate) pages: u32,
    pub(crate) generation: u64,
}

impl ExtentId {
    /// Returns the length in bytes.
    pub(crate) fn len(self) -> usize {
        self.pages as usize * PAGE
    }

    /// Returns the byte range in the slab.
    pub(crate) fn bytes(self) -> Range<usize> {
        let start = self.page as usize * PAGE;
        start..start + self.len()
    }

    fn run(self) -> Range<u32> {
        self.page..self.page + self.pages
    }
}

display_as!(ExtentId, |self, f| {
    let end = u64::from(self.page) + u64::from(self.pages);
    write!(f, "pages {}..{end} of grant {}", self.page, self.generation)
});

/// Use of the pages of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A worker writes to the pages.
    Granted,
    /// Views read the pages.
    Leased,
    /// The pages' memory goes back to the system. After that the pages are free.
    Emptied,
}

#[derive(Debug)]
struct Live {
    pages: u32,
    generation: u64,
    usage: Use,
}

/// Pages of a slab, in three zones.
///
/// Pages `0..limit` are open to grants, and `limit..reserve` are closed. The reserve above them is granted only on
/// explicit request.
///
/// Closed free pages have no memory. So pages that become free in the closed zone are *emptied* first. The methods that
/// free pages return such extents. The caller gives their memory back to the system and then calls
/// [`emptied`](Self::emptied).
#[derive(Debug)]
pub(super) struct Extents {
    pages: u32,
    /// First page of the reserve.
    reserve: u32,
    pub(super) limit: u32,
    open: FreeRuns,
    closed: FreeRuns,
    reserved: FreeRuns,
    /// Extents in use, by first page.
    live: BTreeMap<u32, Live>,
    last_generation: u64,
    granted: u32,
    leased: u32,
    leases: usize,
    high_water: u32,
}

impl Extents {
    /// Creates `pages` free pages. The last `reserve` of them, at most all, are the reserve.
    pub(super) fn new(pages: u32, reserve: u32) -> Self {
        let reserve = pages.saturating_sub(reserve);
        let [mut open, mut reserved] = [FreeRuns::default(), FreeRuns::default()];
        open.add(0..reserve);
        reserved.add(reserve..pages);
        Self {
            pages,
            reserve,
            limit: reserve,
            open,
            closed: FreeRuns::default(),
            reserved,
            live: BTreeMap::new(),
            last_generation: 0,
            granted: 0,
            leased: 0,
            leases: 0,
            high_water: 0,
        }
    }

    /// Grants `pages` adjacent pages of the open zone; `None` if no free run is long enough. 0 counts as 1.
    pub(super) fn grant(&mut self, pages: u32) -> Option<ExtentId> {
        let run = self.open.take(pages.max(1))?;
        Some(self.granted(run))
    }

    /// Grants `pages` adjacent pages of the open zone from `start` on, if they are free.
    pub(super) fn grant_at(&mut self, start: u32, pages: u32) -> Option<ExtentId> {
        let run = self.open.take_at(start, pages.max(1))?;
        Some(self.granted(run))
    }

    /// Returns candidate starts for `pages` adjacent free pages in the open zone, but not all of them.
    pub(super) fn places(&self, pages: u32) -> impl Iterator<Item = u32> {
        self.open.places(pages.max(1))
    }

    /// Grants `pages` adjacent pages of the reserve.
    pub(super) fn grant_reserve(&mut self, pages: u32) -> Option<ExtentId> {
        let run = self.reserved.take(pages.max(1))?;
        Some(self.granted(run))
    }

    /// Turns a grant into a lease on its first `keep` pages (at least one, at most all) and frees the others.
    ///
    /// Returns the leased extent, and an extent that the caller must empty.
    pub(super) fn lease(&mut self, id: ExtentId, keep: u32) -> Result<(ExtentId, Option<ExtentId>), SlabError> {
        if self.usage(id)? != Use::Granted {
            return Err(SlabError::Stale(id));
        }
        if id.page >= self.reserve {
            return Err(SlabError::Reserve(id));
        }
        let kept = ExtentId { pages: keep.clamp(1, id.pages), ..id };
        self.forget(id, Use::Granted);
        self.remember(kept, Use::Leased);
        Ok((kept, self.free(kept.run().end..id.run().end)))
    }

    /// Ends a grant or a lease. Returns an extent that the caller must empty.
    pub(super) fn release(&mut self, id: ExtentId) -> Result<Option<ExtentId>, SlabError> {
        let usage = self.usage(id)?;
        if usage == Use::Emptied {
            return Err(SlabError::Stale(id));
        }
        self.forget(id, usage);
        Ok(self.free(id.run()))
    }

    /// Frees an extent after the caller has emptied it.
    pub(super) fn emptied(&mut self, id: ExtentId) -> Result<(), SlabError> {
        if self.usage(id)? != Use::Emptied {
            return Err(SlabError::Stale(id));
        }
        self.forget(id, Use::Emptied);
        let run = id.run();
        let border = self.limit.clamp(run.start, run.end);
        self.open.add(run.start..border);
        self.closed.add(border..run.end);
        Ok(())
    }

    /// Opens the pages below `limit` and closes the pages above it, up to the reserve.
    ///
    /// Returns the extents that the caller must empty: the free pages among the newly closed. Pages in use there are
    /// emptied when they come back.
    #[cfg(test)]
    pub(super) fn set_limit(&mut self, limit: u32) -> Vec<ExtentId> {
        self.limit = limit.min(self.reserve);
        let still_closed = self.closed.split_off(self.limit);
        self.closed.split_off(0).into_iter().for_each(|run| self.open.add(run));
        still_closed.into_iter().for_each(|run| self.closed.add(run));
        self.open.split_off(self.limit).into_iter().map(|run| self.live_extent(run, Use::Emptied)).collect()
    }

    /// Finds the extent in use that begins at `page`.
    pub(super) fn live_at(&self, page: u32) -> Option<ExtentId> {
        let live = self.live.get(&page)?;
        Some(ExtentId { page, pages: live.pages, generation: live.generation })
    }

    /// Returns the figures in bytes. The copy counters are 0.
    pub(super) fn stats(&self) -> SlabStats {
        let bytes = |pages: u32| pages as usize * PAGE;
        SlabStats {
            capacity_bytes: bytes(self.pages),
            reserve_bytes: bytes(self.pages - self.reserve),
            limit_bytes: bytes(self.limit),
            granted_bytes: bytes(self.granted),
            leased_bytes: bytes(self.leased),
            leases: self.leases,
            free_bytes: bytes(self.open.pages),
            longest_free_bytes: bytes(self.open.longest()),
            bound_bytes: bytes(self.pages - self.closed.pages),
            high_water_bytes: bytes(self.high_water),
            copies: 0,
            copied_bytes: 0,
        }
    }

    fn granted(&mut self, run: Range<u32>) -> ExtentId {
        let id = self.live_extent(run, Use::Granted);
        self.high_water = self.high_water.max(self.granted + self.leased);
        id
    }

    /// Frees `run` if it is below the limit or in the reserve; otherwise returns it as an extent that the caller must
    /// empty.
    ///
    /// An extent across the limit is emptied as a whole, because the limit may move before that is done.
    fn free(&mut self, run: Range<u32>) -> Option<ExtentId> {
        if run.start >= self.reserve {
            self.reserved.add(run);
        } else if run.end <= self.limit {
            self.open.add(run);
        } else if !run.is_empty() {
            return Some(self.live_extent(run, Use::Emptied));
        }
        None
    }

    fn live_extent(&mut self, run: Range<u32>, usage: Use) -> ExtentId {
        self.last_generation += 1;
        let id = ExtentId { page: run.start, pages: run.end - run.start, generation: self.last_generation };
        self.remember(id, usage);
        id
    }

    fn usage(&self, id: ExtentId) -> Result<Use, SlabError> {
        let live = self.live.get(&id.page).filter(|live| live.generation == id.generation && live.pages == id.pages);
        live.map(|live| live.usage).ok_or(SlabError::Stale(id))
    }

    fn remember(&mut self, id: ExtentId, usage: Use) {
        match usage {
            Use::Granted => self.granted += id.pages,
            Use::Leased => {
                self.leased += id.pages;
                self.leases += 1;
            }
            Use::Emptied => {}
        }
        self.live.insert(id.page, Live { pages: id.pages, generation: id.generation, usage });
    }

    fn forget(&mut self, id: ExtentId, usage: Use) {
        match usage {
            Use::Granted => self.granted -= id.pages,
            Use::Leased => {
                self.leased -= id.pages;
                self.leases -= 1;
            }
            Use::Emptied => {}
        }
        self.live.remove(&id.page);
    }
}
