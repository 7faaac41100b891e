//! The parent's memory of a slab: a memory file for each concurrent worker.
#![expect(unsafe_code, reason = "memory has the properties that `Memory` guarantees")]

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use super::extents::PAGE;
use super::memory::{Mapping, Memory, NOBODY};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Memory files of equal size, one per worker place.
///
/// A page of the slab has an equal offset in all files, but memory in at most one: the file of the last worker that the
/// page was granted to. So all files together take no more memory than a single full file. No worker can reach the data
/// of another.
pub(crate) struct Areas {
    len: usize,
    files: Box<[OnceLock<Mapping>]>,
    /// Held while a file is created.
    making: Mutex<()>,
    /// The place that claimed each page last, or [`NOBODY`].
    places: Box<[AtomicUsize]>,
}

impl Areas {
    /// Creates memory of `len` bytes, whole pages, for workers in `places` places. Only the first file is created at
    /// once.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system refuses the memory.
    pub(super) fn create(len: usize, places: usize) -> Result<Self> {
        let first = OnceLock::from(Mapping::create(len)?);
        let files = std::iter::once(first).chain((1..places).map(|_| OnceLock::new())).collect();
        let places = (0..len / PAGE).map(|_| AtomicUsize::new(NOBODY)).collect();
        Ok(Self { len, files, making: Mutex::new(()), places })
    }

    /// Returns the memory file of the worker in `place`, creating it on first use.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system refuses the memory; [`ErrorKind::Worker`] if `place` is beyond the planned
    /// places.
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

    /// Assigns `bytes` to `place`. Memory of the pages in other places' files goes back to the system.
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
                // Relaxed suffices: the lock of the tables and the task's message order the accesses.
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

debug_as!(Areas, |self, f| {
    let made = self.files.iter().filter(|file| file.get().is_some()).count();
    write!(f, "Areas({made} of {} bytes)", self.len)
});
