//! Memory that no limit of a worker's sees is seen and told of.
#![cfg(all(feature = "workers", target_os = "linux"))]
#![allow(unsafe_code, reason = "shared memory of the user's own")]

use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{IterDataset, MapDataset, Result};
use rustix::mm::{MapFlags, ProtFlags};

const MIB: u64 = 1 << 20;

/// The last element takes `hidden` bytes of shared memory, and keeps it for a while.
fn pipeline(hidden: u64) -> Result<impl IterDataset<Item = i64>> {
    let element = move |x: i64| {
        if x == 9 && hidden > 0 {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the system chooses where nothing is.
            let map =
                unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), hidden as usize, access, MapFlags::SHARED) };
            // SAFETY: just mapped, and so long.
            unsafe { map.unwrap().cast::<u8>().write_bytes(1, hidden as usize) };
            std::thread::sleep(Duration::from_millis(600));
        }
        x
    };
    Ok(Range::new(0, 10).map(element).to_iter())
}

#[test]
fn more_than_the_budget_is_noted() {
    let notes = |hidden| {
        let options = MpOptions::auto().workers(1).ram_budget(100 * MIB).tick(Duration::from_millis(20));
        let mut loader = mp_prefetch(pipeline, hidden, options).unwrap().build().unwrap();
        assert_eq!(loader.by_ref().collect::<Result<Vec<_>>>().unwrap(), (0..10).collect::<Vec<_>>());
        loader.report().notes
    };
    let told = |notes: Vec<(String, u64)>| notes.iter().any(|(note, _)| note.contains("more than ram_budget"));
    assert!(!told(notes(0)));
    assert!(told(notes(120 * MIB)));
}
