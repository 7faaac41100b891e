//! Pages that are granted, leased and free: plain numbers, without memory, locks or system calls.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::error::SlabError;
use super::runs::FreeRuns;
use super::stats::SlabStats;

/// Bytes of a page, the unit in which a slab is granted.
pub(crate) const PAGE: usize = 64 << 10;

/// A run of pages that was granted once: no two grants of a slab have the same generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ExtentId {
    pub(crate) page: u32,
    pub(crate) pages: u32,
    pub(crate) generation: u64,
}

impl ExtentId {
    /// Bytes of it.
    pub(crate) fn len(self) -> usize {
        self.pages as usize * PAGE
    }

    /// Its place in the slab.
    pub(crate) fn bytes(self) -> Range<usize> {
        let start = self.page as usize * PAGE;
        start..start + self.len()
    }

    fn run(self) -> Range<u32> {
        self.page..self.page + self.pages
    }
}

impl fmt::Display for ExtentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = u64::from(self.page) + u64::from(self.pages);
        write!(f, "pages {}..{end} of grant {}", self.page, self.generation)
    }
}

/// The treatment of the pages of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A worker writes.
    Granted,
    /// Views read.
    Leased,
    /// Their memory goes back to the system, after which they are free.
    Emptied,
}

#[derive(Debug)]
struct Live {
    pages: u32,
    generation: u64,
    usage: Use,
}

/// The pages of a slab, in three zones: `0..limit` is open to grants, `limit..reserve` is closed, and the reserve above
/// it is granted only where the caller asks for it by name.
///
/// Closed pages that are free have no memory. So pages that come to be free there are *emptied* first: the methods that
/// free pages return such extents, the caller gives their memory back to the system and says so by
/// [`emptied`](Self::emptied).
#[derive(Debug)]
pub(super) struct Extents {
    pages: u32,
    /// First page of the reserve.
    reserve: u32,
    limit: u32,
    open: FreeRuns,
    closed: FreeRuns,
    reserved: FreeRuns,
    /// By first page.
    live: BTreeMap<u32, Live>,
    last_generation: u64,
    granted: u32,
    leased: u32,
    leases: usize,
    high_water: u32,
}

impl Extents {
    /// `pages` free pages, the last `reserve` of them the reserve, of which there cannot be more than pages.
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

    /// `pages` neighbours of the open zone, or `None` while there are none free. 0 count as 1.
    pub(super) fn grant(&mut self, pages: u32) -> Option<ExtentId> {
        let run = self.open.take(pages.max(1))?;
        Some(self.granted(run))
    }

    /// `pages` neighbours of the open zone, from `start` on, if they are free.
    pub(super) fn grant_at(&mut self, start: u32, pages: u32) -> Option<ExtentId> {
        let run = self.open.take_at(start, pages.max(1))?;
        Some(self.granted(run))
    }

    /// Finds where `pages` neighbours of the open zone are free, at some of all the places there are.
    pub(super) fn places(&self, pages: u32) -> impl Iterator<Item = u32> {
        self.open.places(pages.max(1))
    }

    /// `pages` neighbours of the reserve.
    pub(super) fn grant_reserve(&mut self, pages: u32) -> Option<ExtentId> {
        let run = self.reserved.take(pages.max(1))?;
        Some(self.granted(run))
    }

    /// Turns a grant into a lease on its first `keep` pages (at least one, at most all) and frees the others.
    ///
    /// Returns the extent that is leased, and what is to be emptied.
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

    /// Ends a grant or a lease. Returns what is to be emptied.
    pub(super) fn release(&mut self, id: ExtentId) -> Result<Option<ExtentId>, SlabError> {
        let usage = self.usage(id)?;
        if usage == Use::Emptied {
            return Err(SlabError::Stale(id));
        }
        self.forget(id, usage);
        Ok(self.free(id.run()))
    }

    /// Frees an extent that was to be emptied and has been.
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

    /// Opens the pages below `limit` and closes those above it, up to the reserve. Returns what is to be emptied: the
    /// free pages among those that were open. What is in use there is emptied when it comes back.
    #[cfg(test)]
    pub(super) fn set_limit(&mut self, limit: u32) -> Vec<ExtentId> {
        self.limit = limit.min(self.reserve);
        let still_closed = self.closed.split_off(self.limit);
        self.closed.split_off(0).into_iter().for_each(|run| self.open.add(run));
        still_closed.into_iter().for_each(|run| self.closed.add(run));
        self.open.split_off(self.limit).into_iter().map(|run| self.live_extent(run, Use::Emptied)).collect()
    }

    /// The extent in use that begins at `page`.
    pub(super) fn live_at(&self, page: u32) -> Option<ExtentId> {
        let live = self.live.get(&page)?;
        Some(ExtentId { page, pages: live.pages, generation: live.generation })
    }

    /// Bytes of everything there is to count.
    pub(super) fn stats(&self) -> SlabStats {
        let bytes = |pages: u32| pages as usize * PAGE;
        SlabStats {
            capacity_bytes: bytes(self.pages),
            reserve_bytes: bytes(self.pages - self.reserve),
            limit_bytes: bytes(self.limit),
            granted_bytes: bytes(self.granted),
            leased_bytes: bytes(self.leased),
            leases: self.leases,
            free_bytes: bytes(self.open.pages()),
            longest_free_bytes: bytes(self.open.longest()),
            bound_bytes: bytes(self.pages - self.closed.pages()),
            high_water_bytes: bytes(self.high_water),
            copies: 0,
            copied_bytes: 0,
        }
    }

    /// The limit, in pages.
    #[cfg(test)]
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    fn granted(&mut self, run: Range<u32>) -> ExtentId {
        let id = self.live_extent(run, Use::Granted);
        self.high_water = self.high_water.max(self.granted + self.leased);
        id
    }

    /// Pages that came to be free: those below the limit and in the reserve are, others are to be emptied first. An
    /// extent across the limit is emptied as a whole, for the limit may move until that is done.
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
