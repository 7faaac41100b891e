//! What hosts of several tell sources that are mapped: the records that they read themselves, and no others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use gristmill::dataset::Remainder;
use gristmill::dataset::map::{RandomAccess, Source, SourceFacts};
use gristmill::keys::{KeyFolder, Recompute};
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::part::Part;
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, Element, Executor, Result};

/// Records that remember which of them were to be brought.
#[derive(Clone, Default)]
struct Mapped {
    brought: Arc<Mutex<BTreeSet<u64>>>,
}

const RECORDS: u64 = 960;

fn record(index: u64) -> Element {
    Element::new().with("tokens", Array::from_vec(vec![index as i32; 1 + index as usize * 5 % 7]))
}

impl RandomAccess for Mapped {
    type Record = Element;

    fn len(&self) -> u64 {
        RECORDS
    }

    fn read(&self, index: u64) -> Result<Element> {
        Ok(record(index))
    }

    fn bring(&self, indices: &[u64]) {
        self.brought.lock().unwrap().extend(indices);
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts { is_native: true, is_mapped: true, ..SourceFacts::new("mapped", "960 records") }
    }
}

/// Rows that indices say, and rows that keys say.
fn pipelines(source: &Mapped) -> [(BoxIter<Element>, &'static str); 2] {
    let shuffled = || Source::new(source.clone()).shuffle(7);
    let first = |e: Element| Element::new().with("tokens", Array::scalar(id(&e)));
    let rows = WindowPackOptions::new(RowSpec::new([("tokens", 16)])).window(20);
    [
        (shuffled().map(first).to_iter().batch_with(24, Remainder::Drop).boxed(), "indices"),
        (shuffled().to_iter().window_pack(rows).batch_with(24, Remainder::Drop).boxed(), "keys"),
    ]
}

fn id(element: &Element) -> i32 {
    element.array("tokens").unwrap().as_slice::<i32>().unwrap()[0]
}

/// The records whose ids stand in the batches of a part, and those that its source was to bring.
fn run(which: usize, part: Option<Part>, executor: Executor) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let source = Mapped::default();
    let (ds, _) = pipelines(&source)[which].clone();
    let loader = ds.loader().executor(executor);
    let loader = match part {
        Some(part) => loader.part(part).keys(Recompute),
        None => loader,
    };
    let mut seen = BTreeSet::new();
    for batch in loader.build().unwrap() {
        let batch = batch.unwrap();
        let tokens = batch.array("tokens").unwrap();
        // 0 is padding, too.
        seen.extend(tokens.as_slice::<i32>().unwrap().iter().filter(|&&id| id > 0).map(|&id| id as u64));
    }
    let brought = source.brought.lock().unwrap().clone();
    (seen, brought)
}

#[test]
fn a_host_brings_the_records_of_its_own_rows() {
    for which in 0..2 {
        for executor in [Executor::Inline, Executor::Threads(2)] {
            for count in [2, 3, 8] {
                let (mut all, mut brought_by_all) = (0, 0);
                for index in 0..count {
                    let (seen, brought) = run(which, Some(Part::of(index, count)), executor);
                    assert!(seen.is_subset(&brought), "{which} {index}/{count}");
                    (all, brought_by_all) = (all + seen.len(), brought_by_all + brought.len());
                }
                // Besides, record 0, and what stands in a last batch that is not whole.
                assert!(brought_by_all <= all + 32 * count, "{which}/{count}: {brought_by_all} of {all}");
            }
        }
    }
}

#[test]
fn the_records_that_a_file_of_keys_is_compared_with_are_brought() {
    let (dir, source) = (tempfile::tempdir().unwrap(), Mapped::default());
    let (ds, _) = pipelines(&source)[1].clone();
    let keys = || KeyFolder::new(dir.path());
    let made = |part, keys| ds.clone().loader().part(part).keys(keys).build().map(drop);
    ds.clone().loader().keys(keys().recorded()).build().unwrap().for_each(|batch| drop(batch.unwrap()));
    assert!(source.brought.lock().unwrap().is_empty());
    made(Part::of(1, 8), keys()).unwrap();
    let brought = source.brought.lock().unwrap().clone();
    assert!((16..120).contains(&brought.len()), "{}", brought.len());
}

#[test]
fn a_host_that_reads_all_leaves_it_to_the_system() {
    for which in 0..2 {
        for part in [None, Some(Part::whole())] {
            let (seen, brought) = run(which, part, Executor::Inline);
            assert!(seen.len() > 900 && brought.is_empty());
        }
    }
}
