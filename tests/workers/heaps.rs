//! Elements that want more memory than a worker has among others get all that workers have, before they are blamed.
#![cfg(all(feature = "workers", target_os = "linux"))]

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, Poison, mp_prefetch};
use gristmill::{ErrorKind, IterDataset, MapDatasetExt, Result};

const MIB: u64 = 1 << 20;
const LEN: i64 = 400;

/// Two of the elements want so many MiB for a moment.
fn pipeline(mib: usize) -> Result<impl IterDataset<Item = i64>> {
    Ok(Range::new(0, LEN)
        .map(move |x| {
            if [133, 250].contains(&x) {
                // Address space is what the cap is about; it need not be touched.
                drop(std::hint::black_box(Vec::<u8>::with_capacity(mib << 20)));
            }
            x
        })
        .to_iter())
}

/// Four workers with 128 MiB each.
fn options() -> MpOptions {
    MpOptions::auto().workers(4).threads_per_worker(2).ram_budget(1024 * MIB)
}

const AGAIN: &str = "elements tried again with the memory of all workers";

#[test]
fn an_element_that_fits_in_half_of_the_budget_is_never_blamed() {
    let mut loader = mp_prefetch(pipeline, 400, options()).unwrap().build().unwrap();
    let all: Vec<i64> = loader.by_ref().collect::<Result<_>>().unwrap();
    assert_eq!(all, (0..LEN).collect::<Vec<_>>());
    let report = loader.report();
    assert!(report.notes.iter().any(|(note, n)| note == AGAIN && *n == 2), "{:?}", report.notes);
    // The others are back, with their parts.
    let workers = report.workers.unwrap();
    let most = workers.workers.iter().map(|worker| worker.heap_limit_bytes).sum::<u64>();
    assert!(most <= 512 * MIB + 8 * MIB, "{workers:?}");
}

#[test]
fn one_that_does_not_is() {
    let loader = mp_prefetch(pipeline, 600, options().retries(1)).unwrap().build().unwrap();
    let error = loader.last().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Worker);
    assert!(error.to_string().contains("element 133: "), "{error}");
    let loader = mp_prefetch(pipeline, 600, options().retries(1).on_poison(Poison::Skip)).unwrap().build().unwrap();
    let left = (0..LEN).filter(|x| ![133, 250].contains(x)).collect::<Vec<_>>();
    assert_eq!(loader.collect::<Result<Vec<_>>>().unwrap(), left);
}

#[test]
fn a_heap_that_was_chosen_is_what_a_worker_has() {
    let loader = mp_prefetch(pipeline, 400, options().worker_heap(128 * MIB).retries(1)).unwrap().build().unwrap();
    let error = loader.last().unwrap().unwrap_err();
    assert!(error.to_string().contains("element 133: 1 workers died over this element"), "{error}");
}
