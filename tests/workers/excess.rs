//! Memory that no limit of a worker's sees is seen and told of.
#![cfg(all(feature = "workers", target_os = "linux"))]
#![allow(unsafe_code, reason = "shared memory of the user's own")]

use std::path::PathBuf;
use std::task::Poll;
use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{IterDataset, MapDatasetExt, Result};
use rustix::mm::{MapFlags, ProtFlags};

const MIB: u64 = 1 << 20;

/// The last element takes `hidden` bytes of shared memory, and keeps it until the file is there.
fn pipeline((hidden, file): (u64, PathBuf)) -> Result<impl IterDataset<Item = i64>> {
    let element = move |x: i64| {
        if x == 9 && hidden > 0 {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the system chooses where nothing is.
            let map =
                unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), hidden as usize, access, MapFlags::SHARED) };
            // SAFETY: just mapped, and so long.
            unsafe { map.unwrap().cast::<u8>().write_bytes(1, hidden as usize) };
            while !file.exists() {
                // Nothing else tells a worker that its memory was seen.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        x
    };
    Ok(Range::new(0, 10).map(element).to_iter())
}

#[test]
fn more_than_the_budget_is_noted() {
    let is_noted = |hidden| {
        let options = MpOptions::auto().workers(1).ram_budget(100 * MIB).tick(Duration::from_millis(20));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("noted");
        let mut loader = mp_prefetch(pipeline, (hidden, file.clone()), options).unwrap().build().unwrap();
        let (mut seen, mut is_noted) = (Vec::new(), false);
        loop {
            match loader.next_within(Duration::from_millis(20)) {
                Poll::Ready(Some(x)) => seen.push(x.unwrap()),
                Poll::Ready(None) => break,
                Poll::Pending => {}
            }
            is_noted |= loader.report().notes.iter().any(|(note, _)| note.contains("more than ram_budget"));
            if is_noted {
                std::fs::write(&file, "").unwrap();
            }
        }
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
        is_noted
    };
    assert!(!is_noted(0));
    // Without the note, the last element waits for ever.
    assert!(is_noted(120 * MIB));
}
