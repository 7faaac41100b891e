//! Objects of a build without stores: none exists.

use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::{Entry, stores};
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::place::{Location, scheme};

/// Defines methods of a value that does not exist.
macro_rules! never {
    ($($vis:vis fn $name:ident(&$self:ident $(, $given:ty)*) -> $made:ty;)+) => {$(
        $vis fn $name(&$self $(, _: $given)*) -> $made {
            match $self.0 {}
        }
    )+};
}

/// A value that does not exist.
#[derive(Clone, Debug)]
enum Never {}

#[derive(Debug)]
pub(crate) struct Object(Never);

#[derive(Clone, Debug)]
pub(super) struct Address(Never);

#[derive(Debug)]
pub(super) struct Upload(Never);

#[derive(Debug)]
pub(super) struct Lease(Never);

#[derive(Clone, Debug)]
pub(super) struct UpdateVersion(Never);

pub(crate) const BLOCK: u64 = 1 << 17;
pub(crate) const END: u64 = BLOCK;

impl Object {
    pub(crate) fn open(url: &Path) -> Result<Arc<Self>> {
        Err(lacking(url))
    }

    pub(crate) fn open_end(url: &Path) -> Result<Arc<Self>> {
        Err(lacking(url))
    }

    pub(crate) fn is_there(_: &Path) -> Result<bool> {
        // Its opening fails.
        Ok(true)
    }

    never! {
        pub(crate) fn known_as(&self) -> Option<u64>;
        pub(crate) fn len(&self) -> u64;
        pub(crate) fn hash(&self) -> u64;
        pub(crate) fn read(&self, Range<u64>) -> Result<Buffer>;
        pub(crate) fn pieces(&self, Range<u64>) -> std::iter::Empty<Result<Buffer>>;
        pub(crate) fn read_on(&self, u64) -> Result<Buffer>;
        pub(crate) fn fetch(&self, &[Range<u64>]) -> ();
        pub(crate) fn will_read(&self, Range<u64>, &Weak<()>) -> ();
        pub(crate) fn go_on(&self) -> ();
    }
}

impl Address {
    pub(super) fn parse(url: &Path) -> Result<Self> {
        Err(lacking(url))
    }

    never! {
        pub(super) fn child(&self, &str) -> Self;
        pub(super) fn path(&self) -> PathBuf;
    }
}

impl Upload {
    pub(super) fn create(at: Address) -> Result<Self> {
        match at.0 {}
    }

    pub(super) fn finish(self) -> Result<u64> {
        match self.0 {}
    }
}

impl Write for Upload {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Lease {
    pub(super) fn take(folder: &Address) -> Result<Option<Self>> {
        match folder.0 {}
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.0 {}
    }
}

pub(super) fn entries(folder: &Address) -> Result<Vec<Entry>> {
    match folder.0 {}
}

pub(super) fn read(at: &Address) -> Result<Option<(Vec<u8>, UpdateVersion)>> {
    match at.0 {}
}

pub(super) fn replace(at: &Address, _: &[u8], _: Option<UpdateVersion>) -> Result<UpdateVersion> {
    match at.0 {}
}

pub(super) fn delete(at: &Address) -> Result<bool> {
    match at.0 {}
}

pub(crate) fn find(url: &Path, _: &[&str]) -> Result<Vec<(Location, usize)>> {
    Err(lacking(url))
}

#[inline]
pub(crate) fn tell(_: &mut crate::Cx) {}

pub(crate) fn memory() -> Option<(u64, u64)> {
    None
}

pub(crate) fn abreast(_: u64) -> usize {
    0
}

pub(crate) fn let_go() {}

pub(crate) fn be_one_of_many() {}

/// Returns the error of a build without stores.
fn lacking(url: &Path) -> Error {
    stores::lacking(scheme(url).unwrap_or_default()).path(url)
}
