//! Memory runs out in the control group: the kernel ends a worker, not the trainer.
#![cfg(all(feature = "workers", target_os = "linux"))]

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, Poison, mp_prefetch};
use gristmill::{IterDataset, MapDatasetExt, Result};

use crate::cgroup::Group;

const MIB: u64 = 1 << 20;

/// Element 50 takes more memory than the group has, though not more than its worker may have.
fn pipeline(bytes: usize) -> Result<impl IterDataset<Item = i64>> {
    Ok(Range::new(0, 200)
        .map(move |x| {
            if x == 50 {
                drop(std::hint::black_box(vec![1u8; bytes]));
            }
            x
        })
        .to_iter())
}

#[test]
fn where_the_group_has_no_memory_left_a_worker_dies_and_the_trainer_goes_on() {
    let group = match Group::new("oom") {
        Ok(group) => group,
        Err(why) => return println!("skipped: {why}"),
    };
    let inside = group.limit(256 * MIB).and_then(|()| group.enter());
    let _inside = match inside {
        Ok(inside) => inside,
        Err(why) => return println!("skipped: {}: {why}", group.path().display()),
    };
    let options = MpOptions::auto().workers(2).threads_per_worker(1).ram_budget(2048 * MIB).worker_heap(900 * MIB);
    let options = options.retries(1).on_poison(Poison::Skip);
    let mut loader = mp_prefetch(pipeline, 700 << 20, options).unwrap().build().unwrap();
    let got: Vec<i64> = loader.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(got, (0..200).filter(|x| *x != 50).collect::<Vec<_>>());
    let notes = loader.report().notes;
    assert!(notes.iter().any(|(note, _)| note.contains("killed by signal 9")), "{notes:?}");
}
