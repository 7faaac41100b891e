//! Worker processes of hosts that plan: each evaluates the elements of its own rows, through resumes and deaths.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill::dataset::Remainder;
use gristmill::dataset::map::Range;
use gristmill::keys::{Key, KeySource, Keyed, Keys};
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Part, RowDigest};
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, Checkpoint, Element, IterDataset, IterDatasetExt, Load, Loader, MapDatasetExt, Result};

const MIB: u64 = 1 << 20;
const BATCH: usize = 24;
const RECORDS: i64 = 3000;

/// A folder where evaluated elements are noted, and what kills the first process that makes it: one element, or where it is below 0 each of so many.
type Faults = (PathBuf, i64);

fn is_deadly(x: i64, deadly: i64) -> bool {
    x == deadly || (deadly < 0 && x % deadly == -deadly - 1)
}

fn len(x: i64) -> usize {
    1 + (x * 5 % 11) as usize
}

fn is_kept(x: i64) -> bool {
    x % 3 != 0
}

fn pipeline((folder, deadly): Faults) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| {
        let died = folder.join("died");
        if is_deadly(x, deadly) && !died.exists() && std::fs::write(&died, "").is_ok() {
            std::process::abort();
        }
        let mut notes = OpenOptions::new().create(true).append(true).open(folder.join("evaluated")).unwrap();
        notes.write_all(format!("{x}\n").as_bytes()).unwrap();
        Element::new().with("t", Array::from_vec(vec![x as i32 + 1; len(x)])).with("x", Array::scalar(x))
    };
    let kept = |e: &Element| is_kept(e.array("x").unwrap().as_i64().unwrap());
    let packed = WindowPackOptions::new(RowSpec::new([("t", 24)]).meta_features(["x"])).window(64);
    let stream = Range::new(0, RECORDS).shuffle(7).map(element).to_iter().filter(kept);
    Ok(stream.window_pack(packed).batch_with(BATCH, Remainder::Drop))
}

/// Keys that are known without evaluating anything.
#[derive(Debug)]
struct Known;

impl KeySource for Known {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        assert_eq!((keyed.records(), keyed.names()), (RECORDS as u64, &["t".to_owned()][..]));
        assert_eq!(keyed.lines(), [format!("range(0, {RECORDS}, 1)"), "map".to_owned(), "filter".to_owned()]);
        Ok(Some(Arc::new(Known)))
    }
}

impl Keys for Known {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let kept = is_kept(record as i64);
        lens.extend(kept.then_some(len(record as i64) as u32));
        Ok(Key::Elements(kept.into()))
    }
}

fn evaluated(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("evaluated")).unwrap().lines().count()
}

/// Takes so many batches, or all there are.
fn take<D>(loader: &mut Loader<D>, batches: u64, digest: &mut RowDigest)
where
    D: IterDataset<Item = Element> + 'static,
{
    for _ in 0..batches {
        let Some(batch) = loader.next() else { return };
        digest.add_batch(loader.delivered() - 1, loader.rows().unwrap(), &batch.unwrap());
    }
}

/// The digest of one host that evaluates everything, its batches, and the elements that it evaluates.
fn whole() -> (RowDigest, u64, usize) {
    let folder = tempfile::tempdir().unwrap();
    let ds = pipeline((folder.path().into(), RECORDS)).unwrap();
    let (mut loader, mut digest) = (ds.loader().part(Part::whole()).build().unwrap(), RowDigest::default());
    take(&mut loader, u64::MAX, &mut digest);
    (digest, loader.delivered(), evaluated(folder.path()))
}

fn host(faults: Faults, part: Part, at: Option<&Checkpoint>) -> Loader<impl IterDataset<Item = Element> + 'static> {
    let options = MpOptions::auto().workers(2).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(400 * MIB);
    let builder = mp_prefetch(pipeline, faults, options).unwrap().part(part).keys(Known);
    match at {
        Some(checkpoint) => builder.resume(checkpoint.clone()),
        None => builder,
    }
    .build()
    .unwrap()
}

#[test]
fn workers_evaluate_what_is_planned_and_a_death_changes_nothing() {
    let (expected, batches, all) = whole();
    let (mut sum, mut deaths) = (RowDigest::default(), 0);
    for index in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let mut loader = host((folder.path().into(), 1000), Part::of(index, 4), None);
        take(&mut loader, u64::MAX, &mut sum);
        assert_eq!(loader.delivered(), batches);
        let own = evaluated(folder.path());
        assert!(own * 4 < all * 6 / 5, "part {index} has evaluated {own} of {all}");
        deaths += usize::from(folder.path().join("died").exists());
    }
    assert_eq!((sum, deaths), (expected, 1));
}

/// Five resumes, each by another number of hosts, on every one of which a process dies; some change their part on the way.
#[test]
fn hosts_go_on_as_others_and_a_process_of_each_dies() {
    let (expected, batches, _) = whole();
    let (mut sum, mut at, mut deaths) = (RowDigest::default(), None, 0);
    for (count, steps) in [(3, 4), (2, 4), (4, 3), (1, 4), (2, 3), (3, u64::MAX)] {
        let mut states = Vec::new();
        for index in 0..count {
            let folder = tempfile::tempdir().unwrap();
            let mut loader = host((folder.path().to_owned(), -12), Part::of(index, count), at.as_ref());
            take(&mut loader, 3, &mut sum);
            loader.repart(Part::of(count - 1 - index, count)).unwrap();
            take(&mut loader, steps - 3, &mut sum);
            deaths += usize::from(folder.path().join("died").exists());
            states.push(loader.state().unwrap());
        }
        assert!(states.iter().all(|state| state.to_json() == states[0].to_json()));
        at = states.pop();
    }
    assert_eq!((sum, at.map(|at| at.delivered), deaths), (expected, Some(batches), 15));
}
