//! What a consumer keeps stays as it was, and what it keeps too much of is copied: nothing hangs, nothing is written over.
#![cfg(all(feature = "workers", target_os = "linux"))]

use gristmill::dataset::Remainder;
use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, Element, IterDataset, IterDatasetExt, MapDatasetExt, Result};

const MIB: u64 = 1 << 20;
const LEN: i64 = 200;

fn pipeline(bytes: usize) -> Result<impl IterDataset<Item = Element>> {
    let element =
        move |x: i64| Element::new().with("x", Array::from_vec(vec![x; bytes / 8])).with("n", Array::scalar(x));
    Ok(Range::new(0, LEN).map(element).to_iter())
}

/// A slab of 8 MiB, of which 2 are the reserve.
fn options(workers: usize) -> MpOptions {
    let budget = (66 * workers as u64 + 8) * MIB;
    MpOptions::auto().workers(workers).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(budget)
}

fn check(element: &Element, x: i64) {
    assert_eq!(element.array("n").unwrap().as_i64(), Some(x));
    assert!(element.array("x").unwrap().as_slice::<i64>().unwrap().iter().all(|&y| y == x), "element {x}");
}

#[test]
fn all_of_a_run_may_be_kept() {
    for (workers, bytes) in [(1, 100 << 10), (2, 300 << 10), (1, MIB as usize)] {
        let mut loader = mp_prefetch(pipeline, bytes, options(workers)).unwrap().build().unwrap();
        let kept: Vec<Element> = loader.by_ref().collect::<Result<_>>().unwrap();
        assert_eq!(kept.len(), LEN as usize);
        let copies = loader.report().workers.unwrap().copies;
        assert!(copies > 0 && copies < LEN as u64, "{copies} copies");
        drop(loader);
        kept.iter().zip(0..).for_each(|(element, x)| check(element, x));
    }
}

#[test]
fn who_keeps_little_has_nothing_copied() {
    // Room for all that may lie ready.
    let options = options(1).ram_budget(200 * MIB);
    let mut loader = mp_prefetch(pipeline, 100 << 10, options).unwrap().build().unwrap();
    for (element, x) in loader.by_ref().zip(0..) {
        check(&element.unwrap(), x);
    }
    assert_eq!(loader.report().workers.unwrap().copies, 0);
}

#[test]
fn a_view_of_one_column_outlives_its_loader() {
    let mut loader = mp_prefetch(pipeline, 100 << 10, options(2)).unwrap().build().unwrap();
    let column = loader.nth(77).unwrap().unwrap().array("x").unwrap().clone();
    drop(loader);
    // Others write to slabs of their own meanwhile.
    let other = mp_prefetch(pipeline, 100 << 10, options(1)).unwrap().build().unwrap();
    assert_eq!(other.map(Result::unwrap).count(), LEN as usize);
    assert!(column.as_slice::<i64>().unwrap().iter().all(|&y| y == 77));
}

fn windows(_: ()) -> Result<impl IterDataset<Item = Element>> {
    Ok(pipeline(400 << 10)?.window_shuffle(40, 1).batch_with(2, Remainder::Keep))
}

/// A window holds more than the slab does.
#[test]
fn a_stage_that_holds_more_than_the_slab_does_not_hang() {
    let expected = windows(()).unwrap().collect().unwrap();
    let loader = mp_prefetch(windows, (), options(1)).unwrap().build().unwrap();
    assert!(loader.collect::<Result<Vec<_>>>().unwrap() == expected);
}
