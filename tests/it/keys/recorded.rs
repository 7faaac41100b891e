//! Key files that a pass writes while it evaluates everything.

use std::path::Path;

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::mix;
use gristmill::dataset::map::Range;
use gristmill::keys::{BLOCK, KeyFile, KeyFolder};
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, BoxMap, Element, Executor, Loader};

use super::unplanned::EveryOther;
use super::{BATCH, Host, Made, Prefix, documents, id, packed};

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs a host that records until its end, or for so many batches; what its report says of keys.
fn record(ds: &BoxIter<Element>, part: Option<Part>, folder: &Path, executor: Executor, batches: usize) -> Vec<String> {
    let builder = ds.clone().loader().executor(executor).keys(KeyFolder::new(folder).recorded());
    let mut loader: Loader<_> = match part {
        Some(part) => builder.part(part),
        None => builder,
    }
    .build()
    .unwrap();
    loader.by_ref().take(batches).for_each(|batch| drop(batch.unwrap()));
    loader.report().remarks.into_iter().filter(|remark| remark.starts_with("keys ")).collect()
}

/// The files that a recording makes are those that `gristmill index --keys` makes, bit for bit, whatever stands in front of the border and whoever evaluates.
#[test]
fn recorded_files_are_those_that_are_made_before() {
    for prefix in [Prefix::Plain, Prefix::Filter, Prefix::Fan, Prefix::Bad, Prefix::Mixed, Prefix::Repeated] {
        for (executor, part) in [(Executor::Inline, None), (Executor::Threads(2), Some(Part::of(0, 3)))] {
            let ds = packed_behind(prefix);
            let (made, recorded) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            ds.clone()
                .loader()
                .part(Part::of(0, 2))
                .keys(super::Recorder(KeyFolder::new(made.path())))
                .build()
                .unwrap();
            let told = record(&ds, part, recorded.path(), executor, usize::MAX);
            assert!(told.iter().all(|told| told.ends_with("are recorded: the next start plans with them")), "{told:?}");
            assert_eq!(names(recorded.path()), names(made.path()));
            for name in names(made.path()) {
                let read = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
                assert_eq!(read(made.path()), read(recorded.path()), "{prefix:?}");
            }
        }
    }
}

/// Pipelines whose stages stand behind others that change the order, and how many key files they have.
fn late() -> Vec<(&'static str, BoxIter<Element>, usize)> {
    let of = |prefix: Prefix| prefix.build(&Made::default());
    let other = || documents(5000, 700, 1, &Made::default()).to_iter().boxed();
    let filter = |ds: BoxIter<Element>| IterDatasetExt::filter(ds, |e| id(e) % 3 != 0).boxed();
    let trim = |ds: BoxIter<Element>| {
        let half = |e: Element| {
            let tokens = e.array("t").unwrap().as_slice::<i32>().unwrap();
            Element::new()
                .with("t", Array::from_vec(tokens[tokens.len() / 2..].to_vec()))
                .with("id", e.array("id").unwrap().clone())
        };
        IterDatasetExt::map(ds, half).boxed()
    };
    let fan = |ds: BoxIter<Element>| IterDatasetExt::flat_map(ds, |e| vec![e.clone(); id(&e) as usize % 4]).boxed();
    let shuffle = |ds: BoxIter<Element>| ds.window_shuffle(50, 5).boxed();
    vec![
        ("filter, map", trim(filter(shuffle(of(Prefix::Plain)))), 3),
        ("behind a filter", filter(trim(shuffle(of(Prefix::Filter)))), 2),
        ("behind bad records", filter(shuffle(of(Prefix::Bad))), 2),
        ("shuffles between", filter(shuffle(trim(shuffle(shuffle(of(Prefix::Plain)))))), 2),
        ("of a mix", filter(shuffle(mix([filter(shuffle(of(Prefix::Plain))), trim(other())]).boxed())), 5),
        ("of both epochs", filter(shuffle(of(Prefix::Repeated)).repeat(2).boxed()), 2),
        ("some left out", filter(shuffle(of(Prefix::Plain)).limit(800).skip(100).boxed()), 2),
        ("flat_map", fan(filter(shuffle(of(Prefix::Plain)))), 3),
        ("with lengths and without", mix([filter(shuffle(of(Prefix::Plain))), of(Prefix::Plain)]).boxed(), 3),
    ]
}

fn packed_late(ds: BoxIter<Element>) -> BoxIter<Element> {
    let rows = ds.window_pack(WindowPackOptions::new(RowSpec::new([("t", 24)])).window(30));
    rows.batch_with(BATCH, Remainder::Drop).boxed()
}

/// The same of stages behind those that change the order: a pass that calls them anyway notes what they make.
#[test]
fn keys_of_late_stages_are_recorded() {
    for (at, (what, ds, files)) in late().into_iter().enumerate() {
        let ds = packed_late(ds);
        let (made, recorded) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let keys = super::Recorder(KeyFolder::new(made.path()));
        ds.clone().loader().part(Part::of(0, 2)).keys(keys).build().unwrap();
        let executor = if at.is_multiple_of(2) { Executor::Inline } else { Executor::Threads(2) };
        let told = record(&ds, None, recorded.path(), executor, usize::MAX);
        assert_eq!(told.len(), files, "{what}: {told:?}");
        assert!(
            told.iter().all(|told| told.ends_with("are recorded: the next start plans with them")),
            "{what}: {told:?}"
        );
        assert_eq!((names(made.path()).len(), names(recorded.path())), (files, names(made.path())), "{what}");
        for name in names(made.path()) {
            let read = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
            assert!(read(made.path()) == read(recorded.path()), "{what}");
        }
    }
}

/// Where a pass does not know of which element something was made, it writes no keys of it.
#[test]
fn keys_that_no_pass_knows_are_left_to_the_command() {
    let shuffled = || documents(0, 900, 7, &Made::default()).to_iter().window_shuffle(50, 5);
    let filter = |ds: BoxIter<Element>| IterDatasetExt::filter(ds, |e| id(e) % 3 != 0).boxed();
    let twice = shuffled().flat_map(|e| [e.clone(), e]).boxed();
    let own = EveryOther { parent: shuffled(), plans: true }.boxed();
    let fanned = documents(0, 900, 7, &Made::default()).to_iter().flat_map(|e| [e.clone(), e]).boxed();
    let beside = mix([fanned, shuffled().boxed()]).boxed();
    for (ds, recorded, left) in [(twice, 2, 1), (own, 1, 1), (beside, 3, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let told = record(&packed_late(filter(ds)), None, folder.path(), Executor::Inline, usize::MAX);
        let whole = |told: &&String| told.ends_with("are recorded");
        let none = |told: &&String| told.ends_with("none are written yet; `gristmill index --keys` makes them");
        assert_eq!(told.iter().filter(whole).count(), recorded, "{told:?}");
        assert_eq!(told.iter().filter(none).count(), left, "{told:?}");
        assert_eq!(names(folder.path()).len(), recorded, "{told:?}");
    }
}

/// A pass that comes to half of the records or more evaluates the others at its end; of one that comes to fewer the command makes the rest.
#[test]
fn records_that_a_pass_does_not_come_to_are_made_behind_it() {
    for (len, told) in [(450, "are recorded"), (449, "the keys of the first 0 of 900 records are written")] {
        let folder = tempfile::tempdir().unwrap();
        let some = documents(0, 900, 7, &Made::default()).slice(..len).to_iter();
        let rows = some.window_pack(WindowPackOptions::new(RowSpec::new([("t", 24)])).window(30));
        let ds = rows.batch_with(BATCH, Remainder::Drop).boxed();
        let remarks = record(&ds, None, folder.path(), Executor::Inline, usize::MAX);
        assert!(remarks[0].contains(told), "{remarks:?}");
        assert_eq!(names(folder.path())[0].ends_with(".gmk"), len == 450);
        ds.loader().part(Part::of(0, 2)).keys(super::Recorder(KeyFolder::new(folder.path()))).build().unwrap();
        assert!(names(folder.path())[0].ends_with(".gmk"));
    }
}

fn packed_behind(prefix: Prefix) -> BoxIter<Element> {
    let ds = prefix.build(&Made::default()).window_pack(WindowPackOptions::new(RowSpec::new([("t", 24)])).window(30));
    ds.batch_with(BATCH, Remainder::Drop).boxed()
}

#[test]
fn the_next_start_plans_by_what_was_recorded() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::default());
    let ds = packed(&made);
    let mut alone = Host::start(&ds, Part::whole(), false, Executor::Inline, None);
    while alone.step() {}
    // A host of another part evaluates everything, and writes nothing.
    assert!(record(&ds, Some(Part::of(1, 2)), folder.path(), Executor::Inline, usize::MAX).is_empty());
    assert!(names(folder.path()).is_empty());
    assert_eq!(record(&ds, Some(Part::of(0, 2)), folder.path(), Executor::Inline, usize::MAX).len(), 2);
    assert_eq!(names(folder.path()).len(), 2);
    let mut digest = RowDigest::default();
    for index in 0..4 {
        let builder = ds.clone().loader().part(Part::of(index, 4)).keys(KeyFolder::new(folder.path()).recorded());
        let mut host = Host { loader: builder.build().unwrap(), digest: RowDigest::default() };
        while host.step() {}
        let report = host.loader.report();
        assert!(report.execution.part.unwrap().contains("plans all rows from keys"));
        assert!(report.remarks.iter().all(|remark| !remark.starts_with("keys ")));
        digest.add(host.digest);
    }
    assert_eq!(digest, alone.digest);
}

/// More records than a block has, in their order or shuffled, in batches of rows of four.
fn long(len: i64, shuffled: bool) -> BoxIter<Element> {
    let element = |x: i64| Element::new().with("t", Array::from_vec(vec![x as i32; 1 + x as usize % 3]));
    let ds: BoxMap<i64> = if shuffled { Range::new(0, len).shuffle(5).boxed() } else { Range::new(0, len).boxed() };
    let kept = ds.map(element).to_iter().filter(|e| e.array("t").unwrap().shape() != [2]);
    kept.window_pack(WindowPackOptions::new(RowSpec::new([("t", 4)])).window(30)).batch(1000).boxed()
}

#[test]
fn an_interrupted_recording_goes_on_behind_its_last_block_and_is_never_believed() {
    let len = 2 * BLOCK as i64 + 500;
    let folder = tempfile::tempdir().unwrap();
    // A kept pair of records has four cells: some 33 batches read the first block.
    let told = record(&long(len, false), None, folder.path(), Executor::Inline, 40);
    assert!(told[0].contains("the keys of the first 65 536 of 131 572 records are written"), "{told:?}");
    let [part] = &names(folder.path())[..] else { panic!("a part file") };
    assert!(part.ends_with(".gmk.part"));
    let mut bytes = std::fs::read(folder.path().join(part)).unwrap();
    // The next one starts where a crash left half a block.
    bytes.extend_from_slice(&[7; 1000]);
    std::fs::write(folder.path().join(part), bytes).unwrap();
    let told = record(&long(len, false), Some(Part::of(0, 2)), folder.path(), Executor::Threads(2), usize::MAX);
    assert!(told[0].ends_with("are recorded: the next start plans with them"), "{told:?}");
    let [file] = &names(folder.path())[..] else { panic!("a file") };
    let keys = KeyFile::open(folder.path().join(file)).unwrap();
    assert_eq!((keys.len(), keys.blocks()), (len as u64, 3));
    // Shuffled records are of the same file, written at the end of the pass.
    let other = tempfile::tempdir().unwrap();
    let told = record(&long(len, true), None, other.path(), Executor::Inline, 40);
    assert!(told[0].contains("the keys of the first 0 of 131 572 records are written"), "{told:?}");
    record(&long(len, true), None, other.path(), Executor::Inline, usize::MAX);
    assert_eq!(names(other.path()), std::slice::from_ref(file));
    let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
    assert!(read(folder.path()) == read(other.path()));
}

#[test]
fn two_do_not_write_one_file_and_a_pass_goes_on_without() {
    let (folder, ds) = (tempfile::tempdir().unwrap(), packed_behind(Prefix::Filter));
    let start = || ds.clone().loader().keys(KeyFolder::new(folder.path()).recorded()).build().unwrap();
    let (mut first, mut second) = (start(), start());
    first.next().unwrap().unwrap();
    let batches = second.by_ref().inspect(|batch| assert!(batch.is_ok())).count();
    let told = second.report().remarks.into_iter().find(|remark| remark.starts_with("keys ")).unwrap();
    assert!(told.contains("are not recorded: ") && told.contains("another process writes this key file"), "{told}");
    assert_eq!(first.count(), batches - 1);
    assert!(names(folder.path())[0].ends_with(".gmk"));
}

#[test]
fn keys_that_would_not_help_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let filtered = IterDatasetExt::filter(packed(&Made::default()).limit(5), |_| true).boxed();
    let told = record(&filtered, None, folder.path(), Executor::Inline, usize::MAX);
    assert!(told[0].starts_with("keys are not recorded, as they would not help: filter (stage "), "{told:?}");
    assert!(names(folder.path()).is_empty());
}
