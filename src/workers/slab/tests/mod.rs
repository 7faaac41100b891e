//! Tests of the parts together.

mod cost;
mod epochs;
mod fork;
mod leases;
mod mapping;
mod places;
mod twin;

use std::os::fd::BorrowedFd;

use super::Slab;

/// The memory file of the worker in the first place.
fn file_of(slab: &Slab) -> BorrowedFd<'_> {
    slab.file(0).unwrap()
}
