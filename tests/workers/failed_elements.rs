//! Worker processes of hosts that plan, over elements that fail: they become the padding that they are on one thread, whoever dies meanwhile,
//! and rows that are dealt by what they cost go where they go there.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::path::PathBuf;
use std::sync::Arc;

use gristmill::dataset::map::Range;
use gristmill::keys::{Key, KeySource, Keyed, Keys};
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Balance, Cost, Deal, Part, RowDigest};
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{
    Array, Element, Error, FailedElements, IterDataset, IterDatasetExt, Load, Loader, LoaderBuilder, MapDatasetExt,
    Result,
};

const MIB: u64 = 1 << 20;
const BATCH: usize = 12;
const RECORDS: i64 = 1500;

/// A file that is there once a worker has died, over an element.
type Faults = (PathBuf, i64);

fn len(x: i64) -> usize {
    1 + (x * 5 % 11) as usize
}

fn element((died, deadly): &Faults, x: i64) -> Result<Element> {
    if x == *deadly && !died.exists() && std::fs::write(died, "").is_ok() {
        std::process::abort();
    }
    if x % 19 == 4 {
        return Err(Error::data(format!("{x} is damaged")));
    }
    Ok(Element::new().with("t", Array::from_vec(vec![x as i32 + 1; len(x)])))
}

fn packed(faults: Faults) -> Result<impl IterDataset<Item = Element> + use<>> {
    let stream = Range::new(0, RECORDS).shuffle(7).try_map(move |x| element(&faults, x)).to_iter();
    Ok(stream.window_pack(WindowPackOptions::new(RowSpec::new([("t", 16)])).window(64)).batch_masked(BATCH))
}

/// Elements as they are: indices say which are whose.
fn masked(faults: Faults) -> Result<impl IterDataset<Item = Element> + use<>> {
    let number = move |x| Ok(Element::new().with("n", Array::scalar(element(&faults, x).map(|_| x)?)));
    Ok(Range::new(0, RECORDS).shuffle(7).try_map(number).to_iter().batch_masked(BATCH))
}

#[derive(Debug)]
struct Known;

impl KeySource for Known {
    fn find(&self, _: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        Ok(Some(Arc::new(Known)))
    }
}

impl Keys for Known {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        lens.push(len(record as i64) as u32);
        Ok(Key::Elements(1))
    }
}

/// The rows of a part, and what the report names.
fn deliver<D>(builder: LoaderBuilder<D>, part: Part, deal: &Deal) -> (RowDigest, String)
where
    D: IterDataset<Item = Element> + 'static,
{
    let builder = builder.part(part).deal(deal.clone()).keys(Known).on_failed_element(FailedElements::pad());
    let (mut loader, mut digest): (Loader<D>, _) = (builder.build().unwrap(), RowDigest::default());
    while let Some(batch) = loader.next() {
        digest.add_batch(loader.delivered() - 1, loader.rows().unwrap(), &batch.unwrap());
    }
    (digest, loader.report().remarks.join("\n"))
}

/// Compares parts in worker processes with all rows on one thread.
fn compare<D>(pipeline: fn(Faults) -> Result<D>, deal: &Deal)
where
    D: IterDataset<Item = Element> + 'static,
{
    let nobody = || (PathBuf::new(), -1);
    let (expected, told) = deliver(pipeline(nobody()).unwrap().loader(), Part::whole(), &Deal::Even);
    assert!(told.starts_with("79 elements failed and became padding: stage 2 map: element "), "{told}");
    let (mut sum, mut deaths) = (RowDigest::default(), 0);
    for index in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let died = folder.path().join("died");
        let options = MpOptions::auto().workers(2).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(400 * MIB);
        let host = mp_prefetch(pipeline, (died.clone(), 1000), options).unwrap();
        let (digest, told) = deliver(host, Part::of(index, 2), deal);
        assert!(told.contains(" elements failed and became padding: ") && told.contains(" is damaged"), "{told}");
        sum.add(digest);
        deaths += usize::from(died.exists());
    }
    assert_eq!((sum, deaths), (expected, 1));
}

#[test]
fn elements_that_fail_in_workers_become_padding() {
    compare(packed, &Deal::Even);
    compare(masked, &Deal::Even);
}

#[test]
fn workers_evaluate_rows_that_are_dealt_by_the_plan() {
    compare(packed, &Deal::Balanced(Balance::new(Cost::attention(8, None, true)).micro(3)));
}
