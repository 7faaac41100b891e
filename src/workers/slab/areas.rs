//! The parent's memory of a slab: one memory file for every worker that there can be at a time.
#![expect(unsafe_code, reason = "memory is what `Memory` says it is")]

use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use super::extents::PAGE;
use super::memory::{Mapping, Memory, NOBODY};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Memory files of one size, one for each place that a worker can have.
///
/// A page of the slab lies at the same offset of all of them, and has memory in one at most: that of the worker to which it
/// was granted last. So they take no more together than one of them could, and no worker reaches what another wrote.
pub(crate) struct Areas {
    len: usize,
    files: Box<[OnceLock<Mapping>]>,
    /// Held while a file is made.
    making: Mutex<()>,
    /// The place for which a page was claimed last, or [`NOBODY`].
    places: Box<[AtomicUsize]>,
}

impl Areas {
    /// Memory of `len` bytes, whole pages, for workers in as many `places`; the file of the first is made at once.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system refuses the memory.
    pub(super) fn create(len: usize, places: usize) -> Result<Self> {
        let first = OnceLock::from(Mapping::create(len)?);
        let files = std::iter::once(first).chain((1..places).map(|_| OnceLock::new())).collect();
        let places = (0..len / PAGE).map(|_| AtomicUsize::new(NOBODY)).collect();
        Ok(Self { len, files, making: Mutex::new(()), places })
    }

    /// The memory file of the worker in `place`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system refuses the memory, [`ErrorKind::Worker`] for more places than were planned.
    pub(super) fn file(&self, place: usize) -> Result<BorrowedFd<'_>> {
        let most = self.files.len();
        let file = self.files.get(place);
        let file = file.ok_or_else(|| {
            Error::new(ErrorKind::Worker, format!("there is no place {place} for workers, of {most}"))
        })?;
        let _one = self.making.locked();
        if file.get().is_none() {
            let _ = file.set(Mapping::create(self.len)?);
        }
        Ok(file.get().expect("it was made just now").as_fd())
    }

    fn file_of(&self, page: usize) -> Option<&Mapping> {
        let place = self.places.get(page)?.load(Ordering::Relaxed);
        self.files.get(place)?.get()
    }

    /// Gives the memory behind `bytes` back, but what the worker in `place` has, and says whose they are now.
    fn settle(&self, bytes: Range<usize>, place: usize) -> Result<()> {
        let mut page = bytes.start / PAGE;
        let end = bytes.end / PAGE;
        let place_of = |page: usize| self.places.get(page).map_or(NOBODY, |place| place.load(Ordering::Relaxed));
        while page < end {
            let owner = place_of(page);
            let run = page..(page..end).find(|&next| place_of(next) != owner).unwrap_or(end);
            if owner != place {
                if let Some(file) = self.file_of(page) {
                    file.punch(run.start * PAGE..run.end * PAGE)?;
                }
                // Ordered by whatever gives the pages away: the lock of the tables, and the task's message.
                self.places[run.clone()].iter().for_each(|owner| owner.store(place, Ordering::Relaxed));
            }
            page = run.end;
        }
        Ok(())
    }
}

// SAFETY: `Mapping` made each file's memory, which stays as long as this does; pages that are claimed for one place lie in
// one of them, one behind the other.
unsafe impl Memory for Areas {
    fn at(&self, byte: usize) -> NonNull<u8> {
        let file = self.file_of(byte / PAGE).or_else(|| self.files[0].get());
        file.expect("the first file is made at once").at(byte)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn places(&self) -> usize {
        self.files.len()
    }

    fn claim(&self, bytes: Range<usize>, place: usize) -> Result<()> {
        self.file(place)?;
        self.settle(bytes, place)
    }

    fn place(&self, page: u32) -> usize {
        self.places.get(page as usize).map_or(NOBODY, |place| place.load(Ordering::Relaxed))
    }

    fn punch(&self, bytes: Range<usize>) -> Result<()> {
        self.settle(bytes, NOBODY)
    }
}

impl fmt::Debug for Areas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.files.iter().filter(|file| file.get().is_some()).count();
        write!(f, "Areas({made} of {} bytes)", self.len)
    }
}
