//! Memory of a slab: sealed memory files, each mapped once by the parent and once by a worker.
#![expect(unsafe_code, reason = "shared memory is reached by address; see `Memory`")]

use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::Mutex;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};

use super::extents::PAGE;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;
use crate::units::Bytes;

/// First words of an extent: the header of a worker's message, which no view shows.
pub(super) type Head = [u64; 8];

/// Place of pages that no worker has claimed.
pub(super) const NOBODY: usize = usize::MAX;

/// Memory that a slab hands out.
///
/// # Safety
/// Every page that is [claimed](Self::claim) and [open](Self::open) has initialised bytes that can be read and written,
/// for the life of the value. Adjacent pages that are claimed for the same place are adjacent in memory.
/// [`at`](Self::at) returns the address of a byte, which changes only with the claim. The start of a page is a multiple
/// of 64.
pub(crate) unsafe trait Memory: fmt::Debug + Send + Sync + 'static {
    /// Returns the address of a byte.
    fn at(&self, byte: usize) -> NonNull<u8>;

    /// Returns the length in bytes.
    fn len(&self) -> usize;

    /// Assigns `bytes`, whole unused pages, to the memory of the worker in `place`. Memory of another worker there goes
    /// back to the system.
    fn claim(&self, _bytes: Range<usize>, _place: usize) -> Result<()> {
        Ok(())
    }

    /// Returns the number of places that can have memory.
    fn places(&self) -> usize {
        1
    }

    /// Returns the place that claimed a page last, or [`NOBODY`].
    fn place(&self, _page: u32) -> usize {
        0
    }

    /// Makes `bytes`, whole pages, accessible to this process.
    fn open(&self, _bytes: Range<usize>) -> Result<()> {
        Ok(())
    }

    /// Gives the memory of `bytes` back to the system. The bytes read as 0 from now on.
    fn punch(&self, bytes: Range<usize>) -> Result<()>;

    /// Returns the first words of `page`, which must be inside the memory. A worker may be changing them.
    fn head(&self, page: u32) -> Head {
        let start = page as usize * PAGE;
        assert!(start < self.len(), "page {page} of {} bytes", self.len());
        let start = self.at(start).cast::<u64>();
        // A faulty worker may be writing there now, so this code makes no reference to it.
        // SAFETY: a page is larger, and words in it are aligned as it is.
        std::array::from_fn(|word| unsafe { start.add(word).read_volatile() })
    }

    /// Returns the bytes of `range`.
    ///
    /// # Safety
    /// The range is inside the memory and claimed for a single place. No code, in any process, writes to it while the
    /// slice lives.
    unsafe fn read(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(range.start <= range.end && range.end <= self.len());
        // SAFETY: the range is inside (the caller), so it is initialised memory that lives as long as `self` (the
        // trait).
        unsafe { std::slice::from_raw_parts(self.at(range.start).as_ptr(), range.len()) }
    }

    /// Returns the bytes of `range`, writable.
    ///
    /// # Safety
    /// The range is inside the memory, claimed for a single place, and open. No other code, in any process, reads or
    /// writes it while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "what is exclusive is the range, by the caller's word, not the whole")]
    unsafe fn write(&self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(range.start <= range.end && range.end <= self.len());
        // SAFETY: as in `read`, and nobody else uses the range (the caller).
        unsafe { std::slice::from_raw_parts_mut(self.at(range.start).as_ptr(), range.len()) }
    }
}

/// Seals of a memory file. A holder of the descriptor cannot shrink the file under its mappings, grow it beyond its
/// budget, or remove a seal.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A sealed memory file, mapped shared, readable and writable.
///
/// The file has no name and costs no memory until it is written to. It vanishes with the last process that maps it or
/// holds its descriptor.
pub(super) struct Mapping {
    file: OwnedFd,
    region: Region,
}

impl Mapping {
    /// Creates a file of `len` bytes, all 0.
    pub(super) fn create(len: usize) -> Result<Self> {
        let refused =
            |what: &str, errno: Errno| refused(format!("cannot {what} {} of shared memory", Bytes(len as u64)), errno);
        let file = memory_file().map_err(|e| refused("create a file of", e))?;
        rustix::fs::ftruncate(&file, len as u64).map_err(|e| refused("reserve", e))?;
        rustix::fs::fcntl_add_seals(&file, SEALS).map_err(|e| refused("seal", e))?;
        Self::map(file, len)
    }

    fn map(file: OwnedFd, len: usize) -> Result<Self> {
        let region = Region::map(file.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { file, region })
    }

    /// Gives the memory of `bytes` back to the system. The bytes read as 0 from now on.
    pub(super) fn punch(&self, bytes: Range<usize>) -> Result<()> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let result = rustix::fs::fallocate(&self.file, mode, bytes.start as u64, bytes.len() as u64);
        result.map_err(|e| refused(format!("cannot give {} of shared memory back", Bytes(bytes.len() as u64)), e))
    }

    pub(super) fn at(&self, byte: usize) -> NonNull<u8> {
        self.region.at(byte)
    }
}

/// Mapping of a sealed memory file, shared with every process that maps the file.
struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and all access to its bytes is by the contracts of
// `read` and `write`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    fn map(file: BorrowedFd<'_>, len: usize, access: ProtFlags) -> Result<Self> {
        // SAFETY: the system chooses an address where nothing is. The file has `len` bytes and is sealed, so that all
        // of them stay there.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), len, access, MapFlags::SHARED, file, 0) };
        let start = start.map_err(|e| refused(format!("cannot map {} of shared memory", Bytes(len as u64)), e))?;
        let start = NonNull::new(start.cast()).expect("the system maps nothing at address 0 unasked");
        Ok(Self { start, len })
    }

    fn at(&self, byte: usize) -> NonNull<u8> {
        debug_assert!(byte <= self.len);
        // SAFETY: the byte lies inside the mapping, or just behind its end.
        unsafe { self.start.add(byte.min(self.len)) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; slices of it borrow its owner, so there are none left.
        let result = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "{result:?}");
    }
}

/// A worker's mapping of the memory file that was created for it.
///
/// No page is accessible before its first grant, so a stray write there ends the worker. The descriptor is closed after
/// mapping, and processes that the worker forks do not have the mapping. So only a write to previously granted pages
/// can change them.
pub(crate) struct Window {
    region: Region,
    /// Whether each page is accessible.
    open: Mutex<Vec<bool>>,
}

impl Window {
    /// Maps `file`, which the parent created for this process.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if `file` is not a sealed memory file or cannot be mapped.
    pub(super) fn map(file: OwnedFd) -> Result<Self> {
        let foreign = |e| refused("the descriptor is no memory file".to_owned(), e);
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(foreign)?;
        if !seals.contains(SEALS) {
            return Err(Error::new(ErrorKind::Io, format!("the memory file has the seals {seals:?}, needs {SEALS:?}")));
        }
        let size = rustix::fs::fstat(&file).map_err(foreign)?.st_size;
        let len = usize::try_from(size).unwrap_or(0);
        let region = Region::map(file.as_fd(), len, ProtFlags::empty())?;
        // SAFETY: it changes nothing for this process; the range is what was just mapped.
        let kept = unsafe { rustix::mm::madvise(region.start.as_ptr().cast(), len, Advice::LinuxDontFork) };
        kept.map_err(|e| refused("cannot keep shared memory from forked processes".to_owned(), e))?;
        Ok(Self { region, open: Mutex::new(vec![false; len / PAGE]) })
    }
}

// SAFETY: `map` made exactly this memory, at the start of a page of the system, and only `drop` takes it away. What was
// opened stays open.
unsafe impl Memory for Window {
    fn at(&self, byte: usize) -> NonNull<u8> {
        self.region.at(byte)
    }

    fn len(&self) -> usize {
        self.region.len
    }

    fn open(&self, bytes: Range<usize>) -> Result<()> {
        let mut open = self.open.locked();
        let pages = open.get_mut(bytes.start / PAGE..bytes.end / PAGE).unwrap_or_default();
        if pages.iter().all(|open| *open) {
            return Ok(());
        }
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: the range lies inside the mapping, for the pages do, and is only made more accessible.
        let opened = unsafe { rustix::mm::mprotect(self.at(bytes.start).as_ptr().cast(), bytes.len(), access) };
        opened.map_err(|e| refused(format!("cannot open {} of shared memory", Bytes(bytes.len() as u64)), e))?;
        pages.fill(true);
        Ok(())
    }

    fn punch(&self, _: Range<usize>) -> Result<()> {
        Err(Error::new(ErrorKind::Io, "a worker gives no memory back"))
    }
}

debug_as!(Window, |self, f| write!(f, "Window({} bytes)", self.region.len));

/// Creates a memory file, not executable if the kernel supports that (6.3 or later). Some kernels refuse all other
/// files.
fn memory_file() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(NAME, flags),
        result => result,
    }
}

/// Name of the file in `/proc`.
const NAME: &str = "gristmill-slab";

#[cold]
fn refused(what: String, errno: Errno) -> Error {
    let error = std::io::Error::from(errno);
    let message = format!("{what}: {error}");
    Error::new(ErrorKind::Io, message).caused_by(error)
}

impl AsFd for Mapping {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

debug_as!(Mapping, |self, f| write!(f, "Mapping({} bytes)", self.region.len));
