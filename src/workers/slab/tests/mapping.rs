//! The memory file itself.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;

use super::file_of;
use crate::element::Owner;
use crate::error::ErrorKind;
use crate::workers::slab::{PAGE, Slab, WorkerSlab};

fn copy(file: BorrowedFd<'_>) -> OwnedFd {
    file.try_clone_to_owned().unwrap()
}

/// The inode of a memory file: it belongs to one slab of one test, whatever other tests open meanwhile.
pub(super) fn inode(file: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(file).unwrap().st_ino
}

/// Counts the descriptors and mappings of this process that lead to the memory file.
pub(super) fn descriptors_and_mappings(inode: u64) -> (usize, usize) {
    let ours = |path: std::path::PathBuf| {
        let target = std::fs::read_link(&path).unwrap_or_default();
        let metadata = std::fs::metadata(&path).ok();
        target.to_string_lossy().contains("gristmill-slab")
            && metadata.is_some_and(|m| std::os::unix::fs::MetadataExt::ino(&m) == inode)
    };
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().filter(|f| ours(f.as_ref().unwrap().path())).count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let id = inode.to_string();
    let mappings = maps.lines().filter(|line| line.contains("gristmill-slab"));
    (descriptors, mappings.filter(|line| line.split_whitespace().nth(4) == Some(&id)).count())
}

/// Bytes that the memory file takes up.
fn committed(file: BorrowedFd<'_>) -> u64 {
    rustix::fs::fstat(file).unwrap().st_blocks as u64 * 512
}

#[test]
fn a_second_mapping_shares_the_bytes() {
    let slab = Slab::create(10 * PAGE + 5, 2 * PAGE, 1, || ()).unwrap();
    assert_eq!((slab.stats().capacity_bytes, slab.stats().limit_bytes), (10 * PAGE, 8 * PAGE));
    let worker = WorkerSlab::map(copy(file_of(&slab))).unwrap();
    let grant = slab.grant(3 * PAGE, 0).unwrap();
    worker.extent_mut(grant.extent()).unwrap().fill(0xa5);
    let lease = grant.into_lease(3 * PAGE).unwrap();
    assert!(lease.bytes().iter().all(|&b| b == 0xa5));
    assert_eq!(lease.bytes().as_ptr().align_offset(64), 0);
}

#[test]
fn only_a_sealed_memory_file_is_a_slab() {
    let unsealed = rustix::fs::memfd_create("gristmill-test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&unsealed, PAGE as u64).unwrap();
    rustix::fs::fcntl_add_seals(&unsealed, SealFlags::SHRINK).unwrap();
    let unsealed = WorkerSlab::map(unsealed).unwrap_err();
    assert!(unsealed.to_string().contains("SHRINK"), "{unsealed}");

    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let null = WorkerSlab::map(null.into()).unwrap_err();
    assert!(null.kind() == ErrorKind::Io && null.to_string().contains("no memory file"), "{null}");
}

#[test]
fn whoever_holds_the_descriptor_cannot_resize_it() {
    let slab = Slab::create(2 * PAGE, 0, 1, || ()).unwrap();
    for size in [0, PAGE as u64, 3 * PAGE as u64] {
        assert_eq!(rustix::fs::ftruncate(file_of(&slab), size), Err(Errno::PERM));
    }
    let grown = rustix::fs::fallocate(file_of(&slab), FallocateFlags::empty(), 0, 3 * PAGE as u64);
    assert_eq!(grown, Err(Errno::PERM));
    assert_eq!(rustix::fs::fcntl_add_seals(file_of(&slab), SealFlags::WRITE), Err(Errno::PERM));
    assert!(rustix::io::fcntl_getfd(file_of(&slab)).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
}

#[test]
fn memory_is_committed_on_first_use_and_goes_back_with_the_limit() {
    let slab = Slab::create(64 * PAGE, 0, 1, || ()).unwrap();
    let worker = WorkerSlab::map(copy(file_of(&slab))).unwrap();
    assert_eq!(committed(file_of(&slab)), 0);
    let grant = slab.grant(16 * PAGE, 0).unwrap();
    assert_eq!(committed(file_of(&slab)), 0);
    worker.extent_mut(grant.extent()).unwrap().fill(1);
    assert_eq!(committed(file_of(&slab)), 16 * PAGE as u64);
    let lease = grant.into_lease(4 * PAGE).unwrap();

    slab.set_limit(2 * PAGE).unwrap();
    assert_eq!(committed(file_of(&slab)), 4 * PAGE as u64);
    assert!(committed(file_of(&slab)) <= slab.stats().bound_bytes as u64);
    assert!(lease.bytes().iter().all(|&b| b == 1), "leased pages stay");
    drop(lease);
    assert_eq!((committed(file_of(&slab)), slab.stats().bound_bytes), (0, 2 * PAGE));

    slab.set_limit(64 * PAGE).unwrap();
    let grant = slab.grant(16 * PAGE, 0).unwrap();
    assert!(worker.extent_mut(grant.extent()).unwrap().iter().all(|&b| b == 0));
}

#[test]
fn nothing_is_left_of_a_slab() {
    let slab = Slab::create(4 * PAGE, PAGE, 1, || ()).unwrap();
    let inode = inode(file_of(&slab));
    let worker = WorkerSlab::map(copy(file_of(&slab))).unwrap();
    let grant = slab.grant(PAGE, 0).unwrap();
    worker.extent_mut(grant.extent()).unwrap().fill(3);
    let buffer = grant.into_buffer(PAGE).unwrap();
    // The worker has no descriptor; of its mapping, what was granted can be written to.
    assert_eq!(descriptors_and_mappings(inode), (1, 3));
    drop(worker);
    drop(slab);
    assert_eq!(descriptors_and_mappings(inode), (1, 1), "the view holds it");
    assert!(buffer.as_bytes().iter().all(|&b| b == 3));
    drop(buffer);
    assert_eq!(descriptors_and_mappings(inode), (0, 0));
}

#[test]
fn a_slab_without_a_page_to_grant_is_refused() {
    for (bytes, reserve) in [(0, 0), (PAGE - 1, 0), (PAGE, 1), (PAGE, PAGE), (4 * PAGE, 5 * PAGE)] {
        let error = Slab::create(bytes, reserve, 1, || ()).unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.help_text().is_some(), "{error}");
    }
    let error = Slab::create(usize::MAX / 2, 0, 1, || ()).unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("larger than"), "{error}");
    let error = Slab::create(1 << 47, 0, 1, || ()).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("128 TiB of shared memory"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn the_descriptor_is_one_that_processes_can_inherit() {
    let slab = Slab::create(2 * PAGE, 0, 1, || ()).unwrap();
    let grant = slab.grant(PAGE, 0).unwrap();
    // As standard input, the way workers get it; `cmp` reads the bytes from the start.
    let worker = WorkerSlab::map(copy(file_of(&slab))).unwrap();
    worker.extent_mut(grant.extent()).unwrap()[..5].copy_from_slice(b"hello");
    let output = std::process::Command::new("head").args(["-c", "5"]).stdin(copy(file_of(&slab))).output().unwrap();
    assert_eq!(output.stdout, b"hello");
    assert!(file_of(&slab).as_fd().as_raw_fd() > 2);
}
