//! The parent's side of a slab, which alone decides where workers write.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::areas::Areas;
use super::error::SlabError;
use super::extents::{ExtentId, Extents, PAGE};
use super::lease::Grant;
use super::memory::{Head, Memory, NOBODY};
use super::stats::SlabStats;
use super::sync::{Mutex, MutexGuard};
use crate::error::{Error, Result};
use crate::sync::Regardless;
use crate::units::Bytes;

/// Function that a [`Slab`] calls when memory is free again.
type Wake = Box<dyn Fn() + Send + Sync>;

/// Shared memory of a fixed size, granted to workers in extents and leased to views.
///
/// An extent has at most one kind of holder at a time. A worker writes it under a [`Grant`]; later, views read it under
/// a [`Lease`](super::Lease). The memory stays until the last of both has gone.
///
/// # Fork
/// In a fork of the process that created it, a slab grants nothing, and its grants and leases return nothing: they
/// belong to the parent. Views can still be read in the fork while the parent holds them too.
pub(crate) struct Slab<M: Memory = Areas> {
    state: Mutex<State>,
    pub(super) memory: M,
    /// The wake function; `None` only during drop.
    wake: Option<Wake>,
    /// Process that created the slab.
    process: u32,
    /// First page of the reserve.
    reserve: u32,
}

struct State {
    extents: Extents,
    /// First words of leased extents, by first page, as of the start of the lease.
    heads: BTreeMap<u32, Head>,
    /// First observed change to such words, until [`Slab::take_spoilt`] takes it.
    spoilt: Option<Spoilt>,
    /// First pages of recently returned extents, by the place of the worker that wrote them.
    recent: Vec<VecDeque<u32>>,
    /// Whether a caller was refused a grant since the last wake and waits for memory.
    wanted: bool,
    copies: u64,
    copied_bytes: u64,
}

/// Memory that a worker has written to after reporting that it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spoilt {
    /// The worker's place.
    pub(crate) place: usize,
    /// Extent that the worker wrote to.
    pub(crate) extent: ExtentId,
}

/// Number of recent extents remembered per worker: those most likely in progress or ready at a time.
const RECENT: usize = 64;

impl Slab {
    /// Creates a slab of `bytes` for workers in `places` places.
    ///
    /// `bytes` is rounded down to whole pages of 64 KiB. The last `reserve` bytes of them are granted only on request.
    ///
    /// The slab calls `wake` when memory becomes free after a refused grant, at most once per refusal, on the thread
    /// that freed the memory. `wake` must not block and must not hold the slab. Sending into a channel with capacity 1
    /// is enough.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if nothing would be left beside the reserve;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the system refuses the memory.
    pub(crate) fn create(
        bytes: usize,
        reserve: usize,
        places: usize,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Arc<Self>> {
        let bytes = bytes / PAGE * PAGE;
        if pages(bytes) <= pages(reserve) {
            let message = format!("a slab of {bytes} bytes with a reserve of {reserve} has no page of {PAGE} to grant");
            return Err(Error::config(message).help("raise `ram_budget`"));
        }
        if pages(bytes) == u32::MAX {
            let limit = (u32::MAX as usize - 1).saturating_mul(PAGE);
            return Err(Error::config(format!(
                "a slab of {} is larger than {}",
                Bytes(bytes as u64),
                Bytes(limit as u64)
            ))
            .help("lower `ram_budget`"));
        }
        Ok(Self::over(Areas::create(bytes, places)?, reserve, wake))
    }

    /// Returns the memory file that the worker in `place` inherits.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the system refuses the memory.
    pub(crate) fn file(&self, place: usize) -> Result<BorrowedFd<'_>> {
        self.memory.file(place)
    }
}

impl<M: Memory> Slab<M> {
    /// Creates a slab over `memory`, as its only allocator.
    pub(super) fn over(memory: M, reserve: usize, wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let (pages, reserve) = (pages(memory.len()), pages(reserve));
        let extents = Extents::new(pages, reserve);
        let (heads, recent) = (BTreeMap::new(), vec![VecDeque::new(); memory.places()]);
        let state = State { extents, heads, spoilt: None, recent, wanted: false, copies: 0, copied_bytes: 0 };
        let state = Mutex::new(state);
        let reserve = pages.saturating_sub(reserve);
        Arc::new(Self { state, memory, wake: Some(Box::new(wake)), process: std::process::id(), reserve })
    }

    /// Grants `bytes` contiguous bytes to the worker in `place`; `None` if no free run is long enough.
    ///
    /// After a refusal, `wake` is called when memory comes back. More than [`SlabStats::limit_bytes`] never fit.
    pub(crate) fn grant(self: &Arc<Self>, bytes: usize, place: usize) -> Option<Grant<M>> {
        self.grant_from(place, |state, memory| {
            state.grant_again(memory, pages(bytes), place).or_else(|| state.extents.grant(pages(bytes)))
        })
    }

    /// Grants `bytes` from the reserve, so that progress is always possible.
    ///
    /// Callers use the reserve if [`grant`](Self::grant) fails while no other work is in progress. Its bytes are copied
    /// out, never leased.
    pub(crate) fn grant_reserve(self: &Arc<Self>, bytes: usize, place: usize) -> Option<Grant<M>> {
        self.grant_from(place, |state, _| state.extents.grant_reserve(pages(bytes)))
    }

    /// Takes the first observed write to memory whose worker had already reported that it was done.
    pub(crate) fn take_spoilt(&self) -> Option<Spoilt> {
        self.lock().ok()?.spoilt.take()
    }

    /// Compares the first words of leased extents with their earlier values. Changes are reported by
    /// [`take_spoilt`](Self::take_spoilt).
    pub(crate) fn look_at_leases(&self) {
        let Ok(mut state) = self.lock() else { return };
        let changed = state.heads.iter().find(|(page, head)| self.memory.head(**page) != **head).map(|(page, _)| *page);
        if let Some(extent) = changed.and_then(|page| state.extents.live_at(page)) {
            state.spoil(Spoilt { place: self.memory.place(extent.page), extent });
        }
    }

    /// Opens the first `bytes` (rounded down to pages, at most all beside the reserve) to grants and closes the others.
    ///
    /// Closed free memory goes back to the system at once, the rest when it returns. [`SlabStats::bound_bytes`] reports
    /// the progress. If the system cannot take memory back, the limit does not change.
    #[cfg(test)]
    pub(crate) fn set_limit(&self, bytes: usize) -> Result<()> {
        let Ok(mut state) = self.lock() else { return Ok(()) };
        let before = state.extents.limit;
        let holes = state.extents.set_limit(u32::try_from(bytes / PAGE).unwrap_or(u32::MAX));
        drop(state);
        let result = holes.iter().try_for_each(|hole| self.memory.punch(hole.bytes()));
        let Ok(mut state) = self.lock() else { return Ok(()) };
        if result.is_err() {
            // Restores the limit before the pages come back, because pages that have memory must not count as empty.
            state.extents.set_limit(before);
        }
        holes.into_iter().for_each(|hole| report(state.extents.emptied(hole)));
        self.freed(state);
        result
    }

    /// Returns figures on the slab's use. All are 0 in a forked process.
    pub(crate) fn stats(&self) -> SlabStats {
        let Ok(state) = self.lock() else { return SlabStats::default() };
        SlabStats { copies: state.copies, copied_bytes: state.copied_bytes, ..state.extents.stats() }
    }

    /// Checks that this process created the slab.
    ///
    /// # Errors
    /// [`SlabError::Forked`] if this process is a fork of the process that created the slab.
    pub(crate) fn check_process(&self) -> Result<(), SlabError> {
        if std::process::id() == self.process { Ok(()) } else { Err(SlabError::Forked { parent: self.process }) }
    }

    pub(super) fn is_reserve(&self, extent: ExtentId) -> bool {
        extent.page >= self.reserve
    }

    /// Turns the grant of `extent` into a lease on its first `used` bytes, in whole pages, and frees the rest.
    pub(super) fn lease(&self, extent: ExtentId, used: usize) -> Result<ExtentId, SlabError> {
        let head = self.memory.head(extent.page);
        let mut state = self.lock()?;
        let (kept, hole) = state.extents.lease(extent, pages(used))?;
        state.heads.insert(extent.page, head);
        if kept != extent {
            self.freed(state);
            self.empty(hole);
        }
        Ok(kept)
    }

    /// Ends a grant or a lease.
    pub(super) fn give_back(&self, extent: ExtentId) {
        // A forked process must not even take the lock: the thread that holds it may not exist there.
        let Ok(mut state) = self.lock() else { return };
        match state.extents.release(extent) {
            Ok(hole) => {
                let place = self.memory.place(extent.page);
                if state.heads.remove(&extent.page).is_some_and(|head| head != self.memory.head(extent.page)) {
                    state.spoil(Spoilt { place, extent });
                }
                if self.memory.places() > 1 {
                    state.remember(place, extent.page);
                }
                self.freed(state);
                self.empty(hole);
            }
            Err(stale) => report(Err(stale)),
        }
    }

    pub(super) fn count_copy(&self, bytes: usize) {
        let Ok(mut state) = self.lock() else { return };
        state.copies += 1;
        state.copied_bytes += bytes as u64;
    }

    /// Runs `f` while the tables are locked.
    #[cfg(test)]
    pub(super) fn while_locked<R>(&self, f: impl FnOnce() -> R) -> R {
        let _state = self.lock();
        f()
    }

    fn grant_from(
        self: &Arc<Self>,
        place: usize,
        take: impl FnOnce(&mut State, &M) -> Option<ExtentId>,
    ) -> Option<Grant<M>> {
        let mut state = self.lock().ok()?;
        let extent = take(&mut state, &self.memory);
        state.wanted |= extent.is_none();
        drop(state);
        let grant = extent.map(|extent| Grant::new(self.clone(), extent))?;
        if let Err(error) = self.memory.claim(grant.extent().bytes(), place) {
            tracing::warn!(%error, "shared memory cannot be granted");
            return None;
        }
        Some(grant)
    }

    /// Gives the memory of an extent beyond the limit back to the system, then frees the extent.
    ///
    /// If the system refuses, the extent stays in use. That cannot happen if the limit was lowered successfully.
    fn empty(&self, hole: Option<ExtentId>) {
        let Some(hole) = hole else { return };
        if let Err(error) = self.memory.punch(hole.bytes()) {
            tracing::warn!(%error, "shared memory stays in use");
            return;
        }
        let Ok(mut state) = self.lock() else { return };
        report(state.extents.emptied(hole));
        self.freed(state);
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, SlabError> {
        self.check_process()?;
        // No foreign code runs under the lock, so a panic elsewhere leaves the tables intact. Model tests replace the
        // lock.
        Ok(self.state.lock().regardless())
    }

    /// Unlocks the tables, and calls `wake` if a grant was refused.
    fn freed(&self, mut state: MutexGuard<'_, State>) {
        let wanted = mem::take(&mut state.wanted);
        drop(state);
        if let Some(wake) = self.wake.as_ref().filter(|_| wanted) {
            wake();
        }
    }
}

impl State {
    /// Grants an extent whose memory the worker in `place` already has, or that no worker has.
    fn grant_again<M: Memory>(&mut self, memory: &M, pages: u32, place: usize) -> Option<ExtentId> {
        let recent = self.recent.get_mut(place).filter(|_| memory.places() > 1)?;
        let mut extent = None;
        // Pages of another worker, or in use, no longer belong to this worker's recent pages.
        while extent.is_none()
            && let Some(page) = recent.pop_back()
        {
            if memory.place(page) == place {
                extent = self.extents.grant_at(page, pages);
            }
        }
        if extent.is_some() {
            return extent;
        }
        // Pages of no worker are better than pages that another worker would have to populate again.
        let is_own = |page: u32| [place, NOBODY].contains(&memory.place(page));
        let start = self.extents.places(pages).find(|&start| (start..start + pages.max(1)).all(is_own))?;
        self.extents.grant_at(start, pages)
    }

    fn remember(&mut self, place: usize, page: u32) {
        let Some(recent) = self.recent.get_mut(place) else { return };
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(page);
    }

    fn spoil(&mut self, spoilt: Spoilt) {
        self.spoilt.get_or_insert(spoilt);
        self.wanted = true;
    }
}

impl<M: Memory> Drop for Slab<M> {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // The function owns values of threads that do not exist in this fork.
            mem::forget(self.wake.take());
        }
    }
}

debug_as!(<M: Memory> Slab<M>, |self, f| f.debug_struct("Slab").field("stats", &self.stats()).finish_non_exhaustive());

/// Returns the number of pages that hold `bytes`; `u32::MAX` if no slab can hold them.
fn pages(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX)
}

/// Logs the return of an extent that has no holder: a bug, harmless while the extent stays out of the free pages.
fn report(result: Result<(), SlabError>) {
    if let Err(error) = result {
        tracing::error!(%error, "an extent returned twice");
    }
}
