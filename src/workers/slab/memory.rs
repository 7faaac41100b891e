//! The memory of a slab: one sealed memory file, mapped once in every process.
#![expect(unsafe_code, reason = "shared memory is reached by address; see `Memory`")]

use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{Error, ErrorKind, Result};

/// Memory that a slab hands out.
///
/// # Safety
/// From `start` on, `len` initialised bytes can be read and written as long as the value lives, and neither ever
/// changes. The start is a multiple of 64.
pub(crate) unsafe trait Memory: fmt::Debug + Send + Sync + 'static {
    /// Its first byte.
    fn start(&self) -> NonNull<u8>;

    /// Bytes of it.
    fn len(&self) -> usize;

    /// Gives the memory behind `bytes` back to the system; they read as 0 from now on.
    fn punch(&self, bytes: Range<usize>) -> Result<()>;

    /// The bytes of `range`.
    ///
    /// # Safety
    /// The range lies inside, and no one, in any process, writes to it while the slice lives.
    unsafe fn read(&self, range: Range<usize>) -> &[u8] {
        debug_assert!(range.start <= range.end && range.end <= self.len());
        // SAFETY: the range is inside (the caller), so it is initialised memory that lives as long as `self` (the
        // trait).
        unsafe { std::slice::from_raw_parts(self.start().as_ptr().add(range.start), range.len()) }
    }

    /// The bytes of `range`, writable.
    ///
    /// # Safety
    /// The range lies inside, and no one else, in any process, reads or writes it while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "what is exclusive is the range, by the caller's word, not the whole")]
    unsafe fn write(&self, range: Range<usize>) -> &mut [u8] {
        debug_assert!(range.start <= range.end && range.end <= self.len());
        // SAFETY: as in `read`, and nobody else uses the range (the caller).
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr().add(range.start), range.len()) }
    }
}

/// With these, whoever holds the descriptor cannot make the file shorter under the feet of those that map it, nor
/// longer than its budget, nor take a seal back.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A sealed memory file, mapped shared, readable and writable. It costs no memory until it is written to, and has no
/// name: when the last process that maps it or holds its descriptor has gone, so has it.
pub(crate) struct Mapping {
    file: OwnedFd,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and all access to its bytes is by the contracts of
// `read` and `write`.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// A new one of `len` bytes, all 0.
    pub(super) fn create(len: usize) -> Result<Self> {
        let refused = |what: &str, errno: Errno| refused(format!("cannot {what} {len} bytes of shared memory"), errno);
        let file = memory_file().map_err(|e| refused("create a file of", e))?;
        rustix::fs::ftruncate(&file, len as u64).map_err(|e| refused("reserve", e))?;
        rustix::fs::fcntl_add_seals(&file, SEALS).map_err(|e| refused("seal", e))?;
        Self::map(file, len)
    }

    /// Maps `file`, which another process created with `len` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it is anything else, or cannot be mapped.
    pub(super) fn open(file: OwnedFd, len: usize) -> Result<Self> {
        let foreign = |e| refused("the descriptor is no memory file".to_owned(), e);
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(foreign)?;
        if !seals.contains(SEALS) {
            return Err(Error::new(ErrorKind::Io, format!("the memory file has the seals {seals:?}, needs {SEALS:?}")));
        }
        let size = rustix::fs::fstat(&file).map_err(foreign)?.st_size;
        if u64::try_from(size) != Ok(len as u64) {
            return Err(Error::new(ErrorKind::Io, format!("the memory file has {size} bytes, expected {len}")));
        }
        Self::map(file, len)
    }

    fn map(file: OwnedFd, len: usize) -> Result<Self> {
        // SAFETY: the system chooses an address where nothing is. The file has `len` bytes and is sealed, so that all
        // of them stay accessible.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)
        };
        let start = start.map_err(|e| refused(format!("cannot map {len} bytes of shared memory"), e))?;
        let start = NonNull::new(start.cast()).expect("the system maps nothing at address 0 unasked");
        Ok(Self { file, start, len })
    }
}

/// Executable by no one where the kernel (from 6.3 on) knows of that; some are set up to refuse all others.
fn memory_file() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match rustix::fs::memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(NAME, flags),
        result => result,
    }
}

/// What `/proc` calls the file.
const NAME: &str = "gristmill-slab";

#[cold]
fn refused(what: String, errno: Errno) -> Error {
    let error = std::io::Error::from(errno);
    let message = format!("{what}: {error}");
    Error::new(ErrorKind::Io, message).caused_by(error)
}

// SAFETY: `map` made exactly this memory, at the start of a page of the system, and only `drop` takes it away.
unsafe impl Memory for Mapping {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn len(&self) -> usize {
        self.len
    }

    fn punch(&self, bytes: Range<usize>) -> Result<()> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let result = rustix::fs::fallocate(&self.file, mode, bytes.start as u64, bytes.len() as u64);
        result.map_err(|e| refused(format!("cannot give {} bytes of shared memory back", bytes.len()), e))
    }
}

impl AsFd for Mapping {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; slices of it borrow `self`, so there are none left.
        let result = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "{result:?}");
    }
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.len)
    }
}
