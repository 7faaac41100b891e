//! Edits of the batch size, and edits while a run continues.

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::mix;
use gristmill::dataset::map::Range;
use gristmill::keys::Recompute;
use gristmill::ledger::{RunLog, audit, which};
use gristmill::pack::{RowSpec, WindowPackOptions};
use gristmill::part::{InMemory, Part};
use gristmill::prelude::*;
use gristmill::rng::Schedule;
use gristmill::{Array, BoxIter, Checkpoint, Edits, Element, ErrorKind, Loader, Result};
use proptest::prelude::*;

use crate::edits_segments::{How, all, cells, segment};

/// Rows of a batch without edits.
const ROWS: usize = 6;
/// Datasets of a mix.
const NAMES: [&str; 2] = ["books", "web"];

fn document(x: i64) -> Element {
    Element::new().with("t", Array::from_vec(vec![x as i32; 1 + (x * 5).rem_euclid(7) as usize]))
}

/// A stream of rows.
fn rows(kind: u8) -> BoxIter<Element> {
    let number = |x: i64| Element::new().with("t", Array::from_vec(vec![x as i32]));
    let packs = WindowPackOptions::new(RowSpec::new([("t", 8)])).window(13);
    match kind {
        0 => Range::new(0, 200)
            .shuffle(3)
            .map(number)
            .to_iter()
            .filter(|row| row.array("t").unwrap().bytes()[0] % 5 != 0)
            .boxed(),
        1 => Range::new(0, 300).shuffle(3).map(document).to_iter().window_pack(packs).boxed(),
        _ => mix([0, 500].map(|first| Range::new(first, first + 90).map(number).to_iter())).named(NAMES).boxed(),
    }
}

/// Batches of rows.
fn batches(kind: u8, maps: bool, remainder: Remainder) -> BoxIter<Element> {
    let batches = match kind {
        // A batch directly after the border, whose elements are determined by indices.
        3 => {
            let number = |x: i64| Element::new().with("t", Array::from_vec(vec![x as i32]));
            Range::new(0, 200).shuffle(3).map(number).to_iter().batch_with(ROWS, remainder).boxed()
        }
        kind => rows(kind).batch_with(ROWS, remainder).boxed(),
    };
    if maps { batches.map(|batch| batch).boxed() } else { batches }
}

/// The batches that edits of the size and skips leave, by hand.
fn by_hand(all: &[Vec<i32>], edits: &[(u64, bool, u64)], remainder: Remainder) -> Vec<Vec<Vec<i32>>> {
    let (mut left, mut batches) = (all, Vec::new());
    loop {
        let number = batches.len() as u64;
        let size = edits.iter().rev().find(|(at, is_size, _)| *is_size && *at <= number);
        let size = size.map_or(ROWS, |(_, _, size)| *size as usize);
        let skipped: u64 = edits.iter().filter(|(at, is_size, _)| !is_size && *at == number).map(|edit| edit.2).sum();
        let mut last = None;
        for _ in 0..=skipped {
            let count = size.min(left.len());
            if count == 0 || (count < size && remainder == Remainder::Drop) {
                return batches;
            }
            last = Some(left[..count].to_vec());
            left = &left[count..];
        }
        batches.extend(last);
    }
}

fn log(edits: &[(u64, bool, u64)]) -> Edits {
    edits.iter().fold(Edits::default(), |log, (at, is_size, count)| match is_size {
        true => log.global_batch(*at, *count),
        false => log.skip(*at, *count),
    })
}

fn edits() -> impl Strategy<Value = Vec<(u64, bool, u64)>> {
    let edit = (0u64..5, any::<bool>(), 1u64..5)
        .prop_map(|(gap, is_size, count)| (gap, is_size, if is_size { 6 * count } else { count }));
    prop::collection::vec(edit, 0..5).prop_map(|edits| {
        let mut at = 0;
        let place = |(gap, is_size, count)| {
            at += gap;
            (at, is_size, count)
        };
        edits.into_iter().map(place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(8), ..ProptestConfig::default() })]

    /// Batches have the size of the last edit, for any threads, parts, keys and resumes.
    #[test]
    fn batches_have_the_size_of_the_last_edit(
        (kind, maps, drops) in (0u8..4, any::<bool>(), any::<bool>()),
        edits in edits(),
        segments in prop::collection::vec((0u64..9, 1..4usize, 0..3usize, any::<bool>()), 1..5)
    ) {
        let remainder = if drops { Remainder::Drop } else { Remainder::Keep };
        let rows: Vec<_> = batches(kind, false, Remainder::Keep).collect()?.iter().flat_map(cells).collect();
        let expected = by_hand(&rows, &edits, remainder);
        let mut state = None::<Checkpoint>;
        for (count, parts, threads, is_planned) in segments {
            // Rows of an incomplete batch do not divide.
            let parts = if drops { parts } else { 1 };
            let (build, how) = (|| batches(kind, maps, remainder).loader().edits(log(&edits)), How { parts, threads, is_planned });
            let rows = |number| expected.get(number as usize).cloned();
            state = Some(segment(build, how, state.as_ref(), count, rows, &edits)?);
        }
    }

    /// Edits of a running loader have the effect of edits from the start.
    #[test]
    fn edits_of_a_running_loader_are_edits_from_the_start(
        is_packed in any::<bool>(),
        is_held in any::<bool>(),
        changes in prop::collection::vec((0u64..4, 0u64..4, 0u8..4, 1u64..4), 1..4),
        (parts, threads, is_planned) in (1..3usize, 0..3usize, any::<bool>()),
    ) {
        let build = || {
            let parts = [0, 1000].map(|first| Range::new(first, first + 500).map(document).to_iter());
            let mixed = mix(parts).schedule(Schedule::new([1.0, 2.0])).named(NAMES);
            let mixed = if is_held { mixed.window_shuffle(9, 1).boxed() } else { mixed.boxed() };
            let rows = match is_packed {
                true => mixed.window_pack(WindowPackOptions::new(RowSpec::new([("t", 8)])).window(13)).boxed(),
                false => mixed.map(|row| Element::new().with("t", row.array("t").unwrap().rows(0..1).unwrap())).boxed(),
            };
            rows.limit(240).batch_with(ROWS, Remainder::Drop).boxed()
        };
        let start = |index: usize| {
            let loader = build().loader().part(Part::of(index, parts));
            let loader = if is_planned { loader.keys(Recompute) } else { loader };
            let loader = if threads > 0 { loader.threads(threads) } else { loader };
            loader.build().unwrap()
        };
        let mut hosts: Vec<Loader<_>> = (0..parts).map(start).collect();
        let (mut delivered, mut log) = (vec![Vec::new(); parts], Edits::default());
        let mut last = 0;
        for (steps, later, kind, number) in changes {
            for (host, delivered) in hosts.iter_mut().zip(&mut delivered) {
                host.take(steps as usize).for_each(|batch| delivered.push(cells(&batch.unwrap())));
            }
            let edit = |at: u64| match kind {
                0 => Edits::default().skip(at, number),
                1 => Edits::default().remove(at, ["books"]),
                _ => Edits::default().mix(at, [("books", number as f64), ("web", 1.0)]),
            };
            let firsts: Vec<u64> = hosts.iter().map(|host| host.first_edit(&edit(0)).unwrap()).collect();
            prop_assert!(firsts.iter().all(|first| *first == firsts[0]));
            let at = (firsts[0] + later).max(last);
            last = at;
            hosts.iter_mut().for_each(|host| host.edit(edit(at)).unwrap());
            log = match kind {
                0 => log.skip(at, number),
                1 => log.remove(at, ["books"]),
                _ => log.mix(at, [("books", number as f64), ("web", 1.0)]),
            };
        }
        let states: Vec<_> = hosts.iter().map(|host| host.state().unwrap()).collect();
        let expected = all(build().loader().edits(log.clone()));
        for (index, (host, mut delivered)) in hosts.into_iter().zip(delivered).enumerate() {
            delivered.extend(host.map(|batch| cells(&batch.unwrap())));
            let share = ROWS / parts;
            let own: Vec<_> = expected.iter().map(|rows| rows[index * share..(index + 1) * share].to_vec()).collect();
            prop_assert_eq!(&delivered, &own, "{:?}", log);
        }
        let json: Vec<_> = states.iter().map(Checkpoint::to_json).collect();
        prop_assert!(json.iter().all(|state| *state == json[0]), "{:?}", json);
        let resumed = all(build().loader().edits(log).resume(states[0].clone()));
        prop_assert_eq!(&resumed[..], &expected[states[0].delivered as usize..]);
    }
}

#[test]
fn an_edit_of_the_past_is_refused_and_the_run_continues() {
    let mut loader = batches(1, false, Remainder::Drop).loader().threads(1).build().unwrap();
    loader.by_ref().take(3).for_each(|batch| drop(batch.unwrap()));
    let error = loader.edit(Edits::default().skip(2, 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(error.message(), "the edit is at batch 2, which has begun; the first batch that can change is 3");
    let error = loader.edit(Edits::default().remove(3, ["web"])).unwrap_err();
    assert!(error.message().contains("fits no mix of the pipeline"), "{error}");
    loader.edit(Edits::default().skip(3, 1)).unwrap();
    assert_eq!(loader.state().unwrap().edits, [""; 0]);
    loader.next().unwrap().unwrap();
    assert_eq!(loader.state().unwrap().edits, ["at 3: skip 1"]);
    assert!(loader.report().to_string().contains("edit at 3: skip 1"));
    loader.by_ref().for_each(|batch| drop(batch.unwrap()));
    assert!(loader.edit(Edits::default().skip(99, 1)).unwrap_err().message().contains("the run has ended"));
}

#[test]
fn a_batch_size_needs_a_batch_of_the_stream() {
    let refused = |ds: BoxIter<Element>, size: u64| {
        let loader = ds.loader().part(Part::of(0, 2)).edits(Edits::default().global_batch(3, size));
        loader.build().unwrap_err().to_string()
    };
    let text = refused(rows(1), 4);
    assert!(
        text.contains("`global_batch` fits no stage: window_pack (stage 4) is not the `batch` of a stream"),
        "{text}"
    );
    let text = refused(batches(1, true, Remainder::Drop), 5);
    assert!(text.contains('5') && text.contains('2'), "{text}");
    let text = refused(batches(1, true, Remainder::Drop), 0);
    assert!(text.contains("`global_batch` is 0"), "{text}");
}

#[test]
fn hosts_with_other_edits_of_a_running_loader_are_stopped() {
    let exchange = InMemory::new();
    let errors = std::thread::scope(|scope| {
        let host = |index: usize| {
            let exchange = exchange.clone();
            scope.spawn(move || {
                let loader = batches(1, false, Remainder::Drop).loader().part(Part::of(index, 2)).guard(exchange);
                let mut loader = loader.build().unwrap();
                loader.by_ref().take(2).for_each(|batch| drop(batch.unwrap()));
                loader.edit(Edits::default().skip(2, 3 + index as u64)).unwrap();
                loader.find_map(Result::err).unwrap().to_string()
            })
        };
        [0, 1].map(host).map(|host| host.join().unwrap())
    });
    assert_eq!(errors[0], errors[1]);
    assert!(errors[0].contains("`edit at 2: skip 3`") && errors[0].contains("`edit at 2: skip 4`"), "{}", errors[0]);
}

#[test]
fn a_run_log_contains_edits_of_a_running_loader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.ledger");
    let build = || batches(2, false, Remainder::Drop);
    let mut loader = build().loader().part(Part::of(0, 2)).keys(Recompute).ledger(&path).build().unwrap();
    let mut lineages = Vec::new();
    for number in 0..9 {
        if number == 3 {
            loader.edit(Edits::default().mix(4, [("books", 3.0), ("web", 1.0)]).skip(5, 2)).unwrap();
        }
        loader.next().unwrap().unwrap();
        lineages.push(loader.lineage().unwrap());
    }
    drop(loader);
    let log = RunLog::open(&path).unwrap();
    for (step, lineage) in (0..).zip(&lineages) {
        let mut rows = which(&build(), &log, step, None).unwrap().rows;
        rows.retain(|row| lineage.iter().any(|own| own.row == row.row));
        assert_eq!(&rows, lineage, "batch {step}");
    }
    audit(&build(), &log, None).unwrap();
}
