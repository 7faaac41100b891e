//! Slots: reused memory as the source of transfers.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::callback;
use super::client::Client;
use super::memory::Pages;
use crate::error::Result;

/// The slots of a loader, allocated on first use and freed with the pool.
pub(super) struct SlotPool {
    most: usize,
    made: usize,
    free: Receiver<Pages>,
    home: Sender<Pages>,
    /// The client whose devices read the slots directly.
    pin_for: Option<Client>,
}

impl SlotPool {
    /// Makes a pool of at most `most` slots. Pins them for the devices of a client, if its plugin supports it.
    pub(super) fn new(most: usize, pin_for: Option<Client>) -> Self {
        let (home, free) = unbounded();
        Self { most, made: 0, free, home, pin_for }
    }

    /// Returns true if [`take`](Self::take) would not wait.
    pub(super) fn has_free(&self) -> bool {
        self.made < self.most || !self.free.is_empty()
    }

    /// Takes a slot of at least `len` bytes; `None` if no slot becomes free within `patience`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if memory is exhausted; [`ErrorKind::Device`](crate::ErrorKind::Device)
    /// if the plugin supports pinning but refuses it.
    pub(super) fn take(&mut self, len: usize, patience: Duration) -> Result<Option<Slot>> {
        let pages = match self.free.try_recv() {
            Ok(pages) if pages.bytes().len() >= len => pages,
            // A slot that is too small is reallocated.
            Ok(_outgrown) => self.make(len).inspect_err(|_| self.made -= 1)?,
            Err(_) if self.made < self.most => {
                let pages = self.make(len)?;
                self.made += 1;
                pages
            }
            Err(_) => match self.free.recv_timeout(patience) {
                Ok(pages) => {
                    let _ = self.home.send(pages);
                    return self.take(len, Duration::ZERO);
                }
                Err(_) => return Ok(None),
            },
        };
        Ok(Some(Slot { pages: Some(pages), home: self.home.clone() }))
    }

    fn make(&mut self, len: usize) -> Result<Pages> {
        let mut pages = Pages::new(len)?;
        if let Some(client) = self.pin_for.take()
            && pages.pin(&client)?
        {
            self.pin_for = Some(client);
        }
        Ok(pages)
    }
}

debug_as!(SlotPool, |self, f| {
    write!(f, "SlotPool({} of {} slots made, {} free)", self.made, self.most, self.free.len())
});

/// A slot in use, which returns to its pool on drop.
pub(super) struct Slot {
    /// Present until `drop`.
    pages: Option<Pages>,
    home: Sender<Pages>,
}

impl Slot {
    pub(super) fn bytes(&self) -> &[u8] {
        self.pages.as_ref().map_or(&[], Pages::bytes)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.pages.as_mut().map_or(&mut [], Pages::bytes_mut)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some(pages) = self.pages.take() else { return };
        // If the pool is gone, the pages are unpinned, which plugins may not allow inside a callback.
        if let Err(homeless) = self.home.send(pages) {
            callback::outside(move || drop(homeless));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_LONG: Duration = Duration::from_millis(1);

    #[test]
    fn slots_are_used_again_and_no_more_are_made() {
        let mut pool = SlotPool::new(2, None);
        let first = pool.take(100, NOT_LONG).unwrap().unwrap();
        let at = first.bytes().as_ptr();
        assert_eq!((at.align_offset(4096), first.bytes().len()), (0, 100));
        let second = pool.take(100, NOT_LONG).unwrap().unwrap();
        assert!(!pool.has_free() && pool.take(1, NOT_LONG).unwrap().is_none());
        drop(first);
        let third = pool.take(50, NOT_LONG).unwrap().unwrap();
        assert_eq!((third.bytes().as_ptr(), pool.made), (at, 2));
        drop(second);
        assert!(pool.take(5000, NOT_LONG).unwrap().unwrap().bytes().len() >= 5000);
        assert_eq!(pool.made, 2);
    }

    #[test]
    fn a_slot_may_outlive_its_pool() {
        let mut slot = SlotPool::new(1, None).take(10, NOT_LONG).unwrap().unwrap();
        slot.bytes_mut()[9] = 7;
        assert_eq!(slot.bytes()[9], 7);
    }
}
