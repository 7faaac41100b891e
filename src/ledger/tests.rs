//! Run logs of random runs, compared with a twin that records the lineage of each batch.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::log::{Entry, Run};
use super::replay::Replay;
use super::when::{scan, search};
use super::{Event, RunLog, Seen, audit, when, which};
use crate::checkpoint::Identity;
use crate::dataset::iter::mix;
use crate::dataset::map::{Mix, Range, Source};
use crate::dataset::{Lineage, Remainder, Segment, Tracer};
use crate::element::{Array, Element};
use crate::keys::Recompute;
use crate::pack::{BinPackOptions, ConcatPackOptions, OverLong, RowSpec, WindowPackOptions};
use crate::part::Part;
use crate::prelude::*;
use crate::{BoxIter, Checkpoint, Edits, Error, Loader};

fn documents(lens: &[usize]) -> Source<Vec<Element>> {
    let element = |(id, &len): (usize, &usize)| {
        Element::new().with("tokens", Array::from_vec(vec![id as i32; len])).with("id", Array::scalar(id as i64))
    };
    Source::new(lens.iter().enumerate().map(element).collect())
}

/// A random pipeline of documents of these lengths.
fn pipeline(lens: &[usize], before: usize, packs: usize, size: usize) -> BoxIter<Element> {
    let source = || documents(lens);
    let id = |element: &Element| element.array("id").unwrap().as_slice::<i64>().unwrap()[0];
    let stream = match before {
        0 => source().shuffle(7).repeat(3).to_iter().boxed(),
        1 => source().shuffle(3).repeat(2).to_iter().filter(move |element| id(element) % 3 != 0).boxed(),
        2 => Mix::new(vec![source().shuffle(5).boxed(), source().shuffle(9).boxed()]).to_iter().boxed(),
        3 => source().to_iter().flat_map(|element| vec![element.clone(), element]).boxed(),
        4 => mix([1, 8].map(|seed| source().shuffle(seed).repeat(2).to_iter())).named(NAMES).boxed(),
        _ => source().shuffle(1).to_iter().window_shuffle(5, 2).repeat(2).boxed(),
    };
    let rows = RowSpec::from(12);
    let bins = BinPackOptions::new(rows.clone(), size).over_long(OverLong::Split);
    let packed = match packs {
        0 => stream.first_fit_pack(bins).boxed(),
        1 => stream.window_pack(WindowPackOptions::new(rows).window(size).over_long(OverLong::Split)).boxed(),
        2 => stream.concat_then_split_pack(ConcatPackOptions::new(rows)).boxed(),
        _ => {
            let only_id = |element: Element| Element::new().with("id", element.array("id").unwrap().clone());
            return stream.map(only_id).batch(3).boxed();
        }
    };
    packed.batch_with(2, Remainder::Drop).boxed()
}

fn loader(
    ds: &BoxIter<Element>,
    part: Part,
    edits: &Edits,
    log: &Path,
    state: Option<Checkpoint>,
) -> Loader<BoxIter<Element>> {
    let mut builder = ds.clone().loader().part(part).keys(Recompute).edits(edits.clone()).ledger(log);
    if let Some(state) = state {
        builder = builder.resume(state);
    }
    builder.build().unwrap()
}

/// Names of the parts of a mix.
const NAMES: [&str; 2] = ["a", "b"];

/// The lineage of each global batch, from a run without a log.
fn twin(ds: &BoxIter<Element>, edits: Edits) -> Vec<Vec<Lineage>> {
    let (mut running, mut all) = (ds.clone().loader().edits(edits).build().unwrap(), Vec::new());
    while running.next().transpose().unwrap().is_some() {
        all.push(running.lineage().unwrap());
    }
    all
}

/// Runs to the end with a log. After each number of batches in `kills`, the run is killed and resumes at an earlier state.
fn run(ds: &BoxIter<Element>, log: &Path, part: &Part, edits: &Edits, kills: &[(usize, usize)]) {
    let mut state = None;
    for &(more, back) in kills {
        let mut running = loader(ds, part.clone(), edits, log, state.clone());
        for number in 0..more {
            if running.next().transpose().unwrap().is_none() {
                return;
            }
            if number + back < more {
                state = Some(running.state().unwrap());
            }
        }
    }
    let mut running = loader(ds, part.clone(), edits, log, state);
    while running.next().transpose().unwrap().is_some() {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// `which` finds the records of each batch, `when` each batch of a record, and `audit` no difference: in all epochs, across
    /// resumes, and from the log of any first part.
    #[test]
    fn searches_find_the_lineage_of_the_run(
        lens in prop::collection::vec(1usize..30, 4..40),
        before in 0..6usize,
        packs in 0..4usize,
        size in 1usize..12,
        parts in 1..3usize,
        kills in prop::collection::vec((0..20usize, 0..9usize), 0..3),
        mut skips in prop::collection::vec((0..30u64, 1..5u64), 0..3),
        mixes in prop::collection::vec((0..9u64, 1..4u8), 0..3),
    ) {
        let parts = if packs == 3 { 1 } else { parts };
        let ds = pipeline(&lens, before, packs, size);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.ledger");
        skips.sort_by_key(|(at, _)| *at);
        let edits = skips.iter().fold(Edits::default(), |edits, (at, count)| edits.skip(*at, *count));
        let mut at = 0;
        let mixed = |edits: Edits, (gap, weight): &(u64, u8)| {
            at += gap;
            edits.mix(at, NAMES.into_iter().zip([1.0, f64::from(*weight)]))
        };
        // Skips are the only edits of pipelines without a mix.
        let (edits, skips) = if before == 4 { (mixes.iter().fold(Edits::default(), mixed), Vec::new()) } else { (edits, skips) };
        let mut unedited = twin(&ds, if before == 4 { edits.clone() } else { Edits::default() });
        for (at, count) in skips {
            let from = (at as usize).min(unedited.len());
            unedited.drain(from..(from + count as usize).min(unedited.len()));
        }
        let twin = twin(&ds, edits.clone());
        prop_assert_eq!(&twin, &unedited);
        run(&ds, &path, &Part::of(0, parts), &edits, &kills);
        let log = RunLog::open(&path).unwrap();
        prop_assert_eq!((log.batches(), log.lines().last().unwrap().entry.event), (twin.len() as u64, Event::End));

        let audited = audit(&ds, &log, None).unwrap();
        prop_assert_eq!(audited.batches, twin.len() as u64);
        prop_assert!(twin.is_empty() || packs == 3 || audited.digests > 0, "{:?}", audited);
        for (step, rows) in (0..).zip(&twin).step_by(twin.len() / 9 + 1) {
            let found = which(&ds, &log, step, None).unwrap();
            prop_assert_eq!(&found.rows, rows, "batch {}", step);
            prop_assert!(step - found.planned_from <= 7);
        }
        let last = twin.len() as u64;
        prop_assert!(which(&ds, &log, last, None).is_err());

        let all = || twin.iter().enumerate().flat_map(|(step, rows)| rows.iter().map(move |row| (step as u64, row)));
        let records: HashSet<(usize, u64)> = [(0, 0), (0, 3), (2, 2)].into();
        let expected: Vec<_> = all()
            .flat_map(|(step, row)| row.segments.iter().map(move |segment| (step, row.row, segment.clone())))
            .filter(|(.., segment)| records.contains(&(segment.stage, segment.index)))
            .collect();
        let found = search(&ds, &log, &records, 0..last, None).unwrap();
        prop_assert_eq!(places(found.seen), expected);
        // Only the streams of the last pipeline repeat.
        prop_assert_eq!(found.why_all.is_some(), before == 5 && last > 0, "{:?}", found.why_all);
        // Every step of each record, and each record of the steps.
        for index in (0..lens.len() as u64).step_by(lens.len() / 3) {
            let records: HashSet<_> = [(0, index)].into();
            let (from, to) = (index.min(last), (3 * index).min(last));
            let seen = when(&ds, &log, &records, from..to, None).unwrap();
            let mut scanned = Vec::new();
            if from < to {
                let mut replay = Replay::start(&ds, &log, None).unwrap();
                scan(&mut replay, &Tracer::new(&ds), &records, from..to, &mut scanned).unwrap();
            }
            prop_assert_eq!(&seen, &scanned, "record {}", index);
            for seen in seen.iter().take(1) {
                let rows = which(&ds, &log, seen.step, None).unwrap().rows;
                prop_assert!(rows[seen.row as usize].segments.contains(&seen.segment));
            }
        }
    }
}

fn places(seen: Vec<Seen>) -> Vec<(u64, u64, Segment)> {
    seen.into_iter().map(|seen| (seen.step, seen.row, seen.segment)).collect()
}

/// Lines of the log lie in the middle of windows, whose elements come in any order.
#[test]
fn windows_that_are_longer_than_a_stretch_are_searched_from_their_start() {
    let ds = documents(&[3; 250]).to_iter().window_shuffle(100, 2).batch(2).boxed();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ledger");
    ds.clone().loader().ledger(&path).build().unwrap().for_each(drop);
    let log = RunLog::open(&path).unwrap();
    for index in (0..250).step_by(17) {
        let records: HashSet<(usize, u64)> = [(0, index)].into();
        let found = search(&ds, &log, &records, 0..125, None).unwrap();
        assert_eq!((found.seen.len(), found.why_all), (1, None), "record {index}");
    }
}

/// Makes the log of a run of `batches` that nothing has run. `state` returns the state before a batch.
fn simulated(ds: &BoxIter<Element>, batches: u64, state: impl Fn(u64) -> serde_json::Value) -> RunLog {
    let fingerprint = Identity::of(ds).at(0, &()).unwrap().fingerprint;
    let sources = (ds as &dyn crate::Stage).source_files(usize::MAX);
    let run = Run { pipeline: (ds as &dyn crate::Stage).lines(), sources, ..Run::default() };
    let mut text = String::new();
    for at in (0..=batches).step_by(1000) {
        let event = if at == 0 { Event::Start } else { Event::Batches };
        let entry = Entry::new(event, at, 0, &fingerprint, state(at));
        text += &Entry { run: (at == 0).then(|| run.clone()), ..entry }.text().unwrap();
    }
    RunLog::parse(text.as_bytes()).unwrap()
}

/// Some records of a billion, in three epochs and a mix: a batch is planned for each place.
#[test]
fn a_record_among_a_billion_is_found_by_a_batch_for_each_place() {
    let numbers =
        |start: i64| Range::new(start, start + 1_000_000_000).map(|id| Element::new().with("id", Array::scalar(id)));
    let mix = Mix::new(vec![numbers(0).shuffle(3).repeat(None).boxed(), numbers(5).shuffle(4).repeat(None).boxed()]);
    let ds = mix.weights([1.0, 3.0]).to_iter().batch(512).boxed();
    let state = |at: u64| serde_json::json!({"next_index": 512 * at, "dropped": 0, "skipped": 0, "in_a_row": 0});
    let log = simulated(&ds, 6_000_000, state);
    let records: HashSet<(usize, u64)> = (0..40).map(|n| (0, n * 19_777_777 + 13)).collect();
    let found = search(&ds, &log, &records, 0..6_000_000, None).unwrap();
    assert_eq!((found.seen.len() as u64, found.why_all), (found.batches, None));
    // Of 3.07 billion elements, a quarter is of the first source.
    assert!((20..40).contains(&found.seen.len()), "{}", found.seen.len());
    let Seen { step, row, ref segment } = found.seen[9];
    let rows = which(&ds, &log, step, None).unwrap().rows;
    assert!(rows[row as usize].segments == [segment.clone()] && records.contains(&(0, segment.index)));
}

#[test]
fn a_changed_function_and_a_changed_pipeline_are_found() {
    let ds = |most: i64| {
        let id = |element: &Element| element.array("id").unwrap().as_slice::<i64>().unwrap()[0];
        let stream = documents(&[3, 5, 4, 6, 2, 7, 3, 8]).shuffle(1).repeat(9).to_iter();
        stream.filter(move |element| id(element) < most).window_pack(WindowPackOptions::new(12)).batch(1)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ledger");
    ds(9).loader().ledger(&path).build().unwrap().for_each(drop);
    let log = RunLog::open(&path).unwrap();
    assert!(audit(&ds(9), &log, Some(Arc::new(Recompute))).unwrap().positions > 2);
    // A fingerprint does not contain the function.
    let error = audit(&ds(7), &log, None).unwrap_err();
    assert!(error.message().starts_with("batches 0 to 7 of the run differ from their plan: "), "{error}");
    let other = documents(&[3; 8]).shuffle(2).to_iter().batch(1);
    let error = which(&other, &log, 0, None).unwrap_err();
    assert!(error.message().contains("shuffle(seed=1)"), "{error}");
}

#[test]
fn a_torn_line_is_replaced_and_another_file_is_refused() {
    let ds = || documents(&[3; 30]).to_iter().batch(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ledger");
    let mut running = ds().loader().ledger(&path).build().unwrap();
    running.by_ref().take(9).for_each(drop);
    let (state, whole) = (running.state().unwrap(), std::fs::read(&path).unwrap());
    std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let mut resumed = ds().loader().ledger(&path).resume(state).build().unwrap();
    let log = RunLog::open(&path).unwrap();
    assert_eq!(log.lines().iter().map(|line| line.entry.at_batch).collect::<Vec<_>>(), [0, 9]);
    // The second list of equal sources is left out.
    assert!(log.lines()[1].entry.run.as_ref().unwrap().sources.is_empty());
    resumed.next().unwrap().unwrap();
    // A move writes a line, too.
    resumed.back(1).unwrap();
    resumed.by_ref().for_each(drop);
    let log = RunLog::open(&path).unwrap();
    assert_eq!(log.lines().iter().map(|line| line.entry.at_batch).collect::<Vec<_>>(), [0, 9, 9, 14, 21, 28, 30]);
    assert_eq!(audit(&ds(), &log, None).unwrap().positions, 6);

    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "some notes").unwrap();
    let refused = |path: &Path| -> Error { ds().loader().ledger(path).build().unwrap_err() };
    assert!(refused(&text).message().ends_with("exists and is not a run log, so it is not extended"));
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "some notes");
    assert!(refused(Path::new("s3://bucket/run.ledger")).message().starts_with("a run log is a local file"));
}
