//! Faults are put into pipelines, and the report says which it was: its cause, and the element where it was one's.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::report::Cause;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, Element, IterDataset, MapDataset, Report, Result};

const MIB: u64 = 1 << 20;

/// Checks that the shares add to the wait within a hundredth.
fn adds_up(report: &Report) {
    let (sum, waited) = (report.why.iter().map(|why| why.share).sum::<f64>(), report.consumer_wait_share);
    assert!((sum - waited).abs() <= 0.01 * waited.max(0.05), "{sum} of {waited}: {report}");
}

/// Large elements, many of which do not fit into shared memory at a time.
fn large(_: ()) -> Result<impl IterDataset<Item = Element>> {
    let element = |x: i64| {
        std::thread::sleep(Duration::from_micros(300));
        Element::new().with("x", Array::from_vec(vec![x; 64 << 10]))
    };
    Ok(Range::new(0, 150).map(element).to_iter())
}

#[test]
fn elements_that_the_consumer_holds_are_why_nobody_has_memory() {
    // 8 MiB of shared memory, of which 2 are the reserve.
    let options = MpOptions::auto().workers(1).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(74 * MIB);
    let mut loader = mp_prefetch(large, (), options).unwrap().build().unwrap();
    let held = Arc::new(Mutex::new(Vec::new()));
    for (number, element) in loader.by_ref().enumerate() {
        let element = element.unwrap();
        if number == 60 {
            let held = held.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(60));
                held.lock().unwrap().clear();
            });
        }
        let mut held = held.lock().unwrap();
        if (60..80).contains(&number) {
            held.push(element);
        }
    }
    let report = loader.report();
    adds_up(&report);
    let longest = &report.longest_waits[0];
    assert_eq!((longest.cause, longest.element), (Cause::Leases, None), "{report}\n{:#?}", report.longest_waits);
    assert!(report.to_string().contains("memory of elements that you hold"), "{report}");
}
