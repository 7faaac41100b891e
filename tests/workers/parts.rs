//! Worker processes of several hosts: each evaluates the rows of its part alone, through other parts, resumes and deaths.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use gristmill::dataset::Remainder;
use gristmill::dataset::map::Range;
use gristmill::part::{Part, RowDigest};
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, Checkpoint, Element, Error, IterDataset, IterDatasetExt, Load, Loader, MapDatasetExt, Result};

const MIB: u64 = 1 << 20;
const BATCH: usize = 24;
/// Two thousand elements make so many, the first of which is skipped.
const BATCHES: u64 = 2000 / BATCH as u64 - 1;
const NONE: i64 = -1;

/// A folder where evaluated elements are noted, one that cannot be made, and one that kills the first process that makes it.
type Faults = (PathBuf, i64, i64);

fn pipeline((folder, bad, deadly): Faults) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| {
        let died = folder.join("died");
        if x == deadly && !died.exists() && std::fs::write(&died, "").is_ok() {
            std::process::abort();
        }
        let mut notes = OpenOptions::new().create(true).append(true).open(folder.join("evaluated")).unwrap();
        notes.write_all(format!("{x}\n").as_bytes()).unwrap();
        if x == bad { Err(Error::data("bad")) } else { Ok(Element::new().with("x", Array::from_vec(vec![x; 40]))) }
    };
    Ok(Range::new(0, 2000).try_map(element).to_iter().batch_with(BATCH, Remainder::Drop).skip(1))
}

fn evaluated(folder: &Path) -> Vec<i64> {
    let text = std::fs::read_to_string(folder.join("evaluated")).unwrap();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Takes so many batches, or all there are.
fn take<D>(loader: &mut Loader<D>, batches: u64, digest: &mut RowDigest)
where
    D: IterDataset<Item = Element> + 'static,
{
    for _ in 0..batches {
        let Some(batch) = loader.next() else { return };
        let (batch, rows) = (batch.unwrap(), loader.rows().unwrap());
        assert_eq!(batch.num_rows().unwrap(), rows.len());
        digest.add_batch(loader.delivered() - 1, rows, &batch);
    }
}

fn whole() -> RowDigest {
    let folder = tempfile::tempdir().unwrap();
    let ds = pipeline((folder.path().into(), NONE, NONE)).unwrap();
    let (mut loader, mut digest) = (ds.loader().part(Part::whole()).build().unwrap(), RowDigest::default());
    take(&mut loader, u64::MAX, &mut digest);
    assert_eq!(loader.delivered(), BATCHES);
    digest
}

fn host(faults: Faults, part: Part, at: Option<&Checkpoint>) -> Loader<impl IterDataset<Item = Element> + 'static> {
    let options = MpOptions::auto().workers(2).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(400 * MIB);
    let builder = mp_prefetch(pipeline, faults, options).unwrap().part(part);
    match at {
        Some(checkpoint) => builder.resume(checkpoint.clone()),
        None => builder,
    }
    .build()
    .unwrap()
}

#[test]
fn workers_evaluate_the_rows_of_their_part_alone() {
    let mut sum = RowDigest::default();
    for index in 0..4 {
        let folder = tempfile::tempdir().unwrap();
        let mut loader = host((folder.path().into(), NONE, 200), Part::of(index, 4), None);
        take(&mut loader, u64::MAX, &mut sum);
        assert_eq!(loader.delivered(), BATCHES);
        let own = |x: &i64| (index * 6..(index + 1) * 6).contains(&(*x as usize % BATCH));
        let all = evaluated(folder.path());
        // Behind the last whole batch there are a few that make none.
        assert!(all.iter().all(|x| own(x) || *x >= 1992), "part {index}");
        assert_eq!(folder.path().join("died").exists(), own(&200));
    }
    assert_eq!(sum, whole());
}

#[test]
fn hosts_go_on_as_others_and_change_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let faults = || (folder.path().to_owned(), NONE, 300);
    let mut sum = RowDigest::default();
    let mut states = Vec::new();
    for index in 0..3 {
        let mut loader = host(faults(), Part::of(index, 3), None);
        take(&mut loader, 10, &mut sum);
        loader.repart(Part::of(2 - index, 3)).unwrap();
        take(&mut loader, 10, &mut sum);
        states.push(loader.state().unwrap());
    }
    for index in 0..2 {
        let mut loader = host(faults(), Part::of(index, 2), Some(&states[2]));
        take(&mut loader, u64::MAX, &mut sum);
    }
    assert_eq!(sum, whole());
}

#[test]
fn an_error_names_the_element_of_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    // Row 5 of the fifth batch, which is the fourth behind the one that is skipped.
    let faults = || (folder.path().to_owned(), 5 * BATCH as i64 + 5, NONE);
    let mut loader = host(faults(), Part::of(0, 4), None);
    let error = loader.find_map(Result::err).unwrap();
    assert_eq!((error.message(), error.element_index()), ("bad", Some(125)));
    assert_eq!(loader.state().unwrap().delivered, 4);
    assert_eq!(host(faults(), Part::of(1, 4), None).filter(Result::is_ok).count() as u64, BATCHES);
}
