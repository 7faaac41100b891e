//! A process forked from the one that has the slab.
#![expect(unsafe_code, reason = "to run in a forked process")]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use super::file_of;
use crate::element::Owner;
use crate::workers::slab::{PAGE, Slab, SlabError, WorkerSlab};

/// Ends a process that is not the one it was made in, if it is called or dropped there.
struct OnlyIn(u32);

impl OnlyIn {
    fn check(&self) {
        if std::process::id() != self.0 {
            std::process::abort();
        }
    }
}

impl Drop for OnlyIn {
    fn drop(&mut self) {
        self.check();
    }
}

fn slab() -> Arc<Slab> {
    let here = OnlyIn(std::process::id());
    Slab::create(4 * PAGE, 0, 1, move || here.check()).unwrap()
}

#[test]
fn a_forked_copy_is_inert() {
    let slab = slab();
    let worker = WorkerSlab::map(file_of(&slab).try_clone_to_owned().unwrap()).unwrap();
    let grant = slab.grant(PAGE, 0).unwrap();
    worker.extent_mut(grant.extent()).unwrap().fill(4);
    let lease = grant.into_lease(PAGE).unwrap();
    let granted = slab.grant(PAGE, 0).unwrap();
    // The child's copies of them. Dropping the command drops the parent's.
    let (given_back, another) = (slab.grant(PAGE, 0).unwrap(), self::slab());
    let mut held = Some((slab.clone(), lease, granted, given_back, another));
    let in_child = move || {
        let (slab, lease, granted, given_back, another) = held.take().ok_or(std::io::ErrorKind::Other)?;
        let parent = std::os::unix::process::parent_id();
        let refused = granted.into_lease(1).err().map(|refused| refused.error);
        let inert = slab.grant(1, 0).is_none()
            && slab.check_process() == Err(SlabError::Forked { parent })
            && slab.set_limit(0).is_ok()
            && slab.stats().capacity_bytes == 0
            && refused == Some(SlabError::Forked { parent })
            && lease.bytes().iter().all(|&b| b == 4);
        drop((lease, given_back, another, slab));
        if inert { Ok(()) } else { Err(std::io::ErrorKind::Other.into()) }
    };
    let mut command = Command::new("true");
    // SAFETY: after the fork it takes no lock and, but for what an error costs, allocates nothing.
    unsafe { command.pre_exec(in_child) };
    let before = slab.stats();
    // Locked in the moment of the fork, as if another thread were just at it: taking the lock would hang the child.
    let status = slab.while_locked(|| command.status()).unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(slab.stats(), before);
    assert_eq!((before.leased_bytes, before.granted_bytes), (PAGE, 2 * PAGE));
    drop(command);
    assert_eq!((slab.stats().free_bytes, Arc::strong_count(&slab)), (4 * PAGE, 1));
}
