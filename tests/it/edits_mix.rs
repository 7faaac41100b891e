//! Edits of a mix change its weights from their batch on, and no batch before.

use std::collections::BTreeMap;

use gristmill::dataset::map::Range;
use gristmill::dataset::{AtEnd, Remainder, iter::mix};
use gristmill::pack::{BinPackOptions, ConcatPackOptions, OverLong, RowSpec, WindowPackOptions};
use gristmill::prelude::*;
use gristmill::rng::Schedule;
use gristmill::{Array, BoxIter, Checkpoint, Edits, Element, ErrorKind};
use proptest::prelude::*;

use crate::edits_segments::{How, all, segment};

/// Datasets of a mix.
const NAMES: [&str; 3] = ["code", "math", "web"];
/// Rows of a batch.
const ROWS: usize = 4;

/// A change of a run.
#[derive(Clone, Debug)]
enum Change {
    Skip(u64),
    Mix([f64; 3], u64),
    Remove(usize),
}

/// Changes in the order of their batches. Transitions do not overlap.
fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let weights = || (0u8..3, 0u8..3, 1u8..4).prop_map(|(a, b, c)| [a, b, c].map(f64::from));
    let change = prop_oneof![
        1 => (1u64..5).prop_map(Change::Skip),
        3 => (weights(), prop_oneof![Just(0u64), 1u64..6]).prop_map(|(weights, over)| Change::Mix(weights, over)),
        1 => (0usize..2).prop_map(Change::Remove),
    ];
    prop::collection::vec((0u64..6, change), 0..5).prop_map(|changes| {
        let (mut at, mut free) = (0u64, 0u64);
        let place = |(gap, change): (u64, Change)| {
            at = (at + gap).max(if matches!(change, Change::Skip(_)) { 0 } else { free });
            if let Change::Mix(_, over) = &change {
                free = at + over;
            }
            (at, change)
        };
        changes.into_iter().map(place).collect()
    })
}

fn log(changes: &[(u64, Change)]) -> Edits {
    changes.iter().fold(Edits::default(), |log, (at, change)| match change {
        Change::Skip(batches) => log.skip(*at, *batches),
        Change::Mix(weights, over) => log.mix_over(*at, NAMES.into_iter().zip(*weights), *over),
        Change::Remove(which) => log.remove(*at, [NAMES[*which]]),
    })
}

/// Documents of different lengths, each with its dataset and number.
fn documents(which: i64, len: i64) -> BoxIter<Element> {
    let document = move |x: i64| {
        let id = 1000 * which + x;
        let cells = vec![id as i32; 1 + (x * 5 + which).rem_euclid(7) as usize];
        Element::new().with("t", Array::from_vec(cells))
    };
    Range::new(0, len).map(document).to_iter().boxed()
}

/// A pipeline with a mix.
#[derive(Clone, Debug)]
struct Case {
    first: [f64; 3],
    changes_at: Option<(u64, [f64; 3])>,
    by_tokens: bool,
    at_end: AtEnd,
    later: u8,
    packs: u8,
    maps: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let weights = || (0u8..3, 0u8..3, 1u8..4).prop_map(|(a, b, c)| [a, b, c].map(f64::from));
    let ends = prop::sample::select(vec![AtEnd::Stop, AtEnd::Repeat, AtEnd::Redistribute]);
    let scheduled = prop::option::weighted(0.3, (1u64..60, weights()));
    (weights(), scheduled, any::<bool>(), ends, 0u8..5, 0u8..4, any::<bool>()).prop_map(
        |(first, changes_at, by_tokens, at_end, later, packs, maps)| Case {
            first,
            changes_at,
            by_tokens,
            at_end,
            later,
            packs,
            maps,
        },
    )
}

impl Case {
    fn build(&self) -> BoxIter<Element> {
        let parts: Vec<_> = (0..3).map(|which| documents(which, 60 + 20 * which)).collect();
        let schedule = Schedule::new(self.first);
        let schedule = match self.changes_at {
            Some((at, weights)) => schedule.then(at, weights),
            None => schedule,
        };
        let mixed = mix(parts).schedule(schedule).at_end(self.at_end).named(NAMES);
        let mixed = if self.by_tokens { mixed.by_tokens("t") } else { mixed };
        // Elements that take a while are evaluated ahead, in chunks.
        let slow = |element: Element| {
            (0..3000).for_each(|_| std::hint::spin_loop());
            element
        };
        let later = match self.later {
            0 => mixed.boxed(),
            1 => mixed.map(slow).boxed(),
            2 => mixed.window_shuffle(7, 3).boxed(),
            3 => mixed.flat_map(|element| vec![element.clone(), element]).boxed(),
            _ => mixed.filter(|element| element.array("t").unwrap().shape()[0] != 3).boxed(),
        };
        let rows = RowSpec::new([("t", 8)]);
        let packed = match self.packs {
            0 => later.window_pack(WindowPackOptions::new(rows).window(11)).boxed(),
            1 => later.first_fit_pack(BinPackOptions::new(rows, 5).over_long(OverLong::Split)).boxed(),
            2 => later.concat_then_split_pack(ConcatPackOptions::new(rows)).boxed(),
            _ => later.map(|element| Element::new().with("t", Array::scalar(first(&element)))).boxed(),
        };
        // Endless streams are cut.
        let packed = packed.limit(400);
        let batches = packed.batch_with(ROWS, Remainder::Drop);
        if self.maps { batches.map(|batch| batch).boxed() } else { batches.boxed() }
    }
}

fn first(element: &Element) -> i32 {
    element.array("t").unwrap().as_slice::<i32>().unwrap()[0]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(8), ..ProptestConfig::default() })]

    /// Runs with any threads, parts, keys and resumes equal one run on one thread. An edit changes no batch before it.
    #[test]
    fn an_edit_of_a_mix_changes_no_batch_before_it(
        case in cases(),
        changes in changes(),
        segments in prop::collection::vec((0u64..9, 1..3usize, 0..3usize, any::<bool>()), 1..5)
    ) {
        let expected = all(case.build().loader().edits(log(&changes)));
        if let Some((last, earlier)) = changes.split_last() {
            let before = all(case.build().loader().edits(log(earlier)));
            let count = (last.0 as usize).min(before.len()).min(expected.len());
            prop_assert_eq!(&before[..count], &expected[..count]);
        }
        let mut state = None::<Checkpoint>;
        for (count, parts, threads, is_planned) in segments {
            let (build, how) = (|| case.build().loader().edits(log(&changes)), How { parts, threads, is_planned });
            let rows = |number| expected.get(number as usize).cloned();
            state = Some(segment(build, how, state.as_ref(), count, rows, &changes)?);
        }
    }

    /// An edit at batch `b` of elements is an entry of a schedule at the first element of this batch.
    #[test]
    fn an_edit_is_an_entry_of_a_schedule(changes in changes(), threads in 0..3usize, maps in any::<bool>()) {
        let build = |schedule: Schedule| {
            let mixed = mix((0..3).map(|which| documents(which, 1000))).schedule(schedule).named(NAMES);
            let ids = mixed.map(|element| Element::new().with("t", Array::scalar(first(&element))));
            let ids = if maps { ids.map(|element| element).boxed() } else { ids.boxed() };
            ids.limit(200).batch_with(ROWS, Remainder::Drop).boxed()
        };
        let mut weights = BTreeMap::from([(0u64, vec![3.0, 2.0, 1.0])]);
        let mut skipped = Vec::new();
        let mut steps: Vec<(u64, Vec<f64>)> = Vec::new();
        let mut now = vec![3.0, 2.0, 1.0];
        for (at, change) in &changes {
            match change {
                Change::Skip(count) => skipped.push((*at, *count)),
                Change::Mix(target, over) => {
                    let (before, after) = (shares(&now), shares(target));
                    for step in 0..*over {
                        let done = (step as f64 + 0.5) / *over as f64;
                        let step_weights = before.iter().zip(&after).map(|(from, to)| from * (1.0 - done) + to * done);
                        steps.push((at + step, step_weights.collect()));
                    }
                    now = target.to_vec();
                    steps.push((at + over, now.clone()));
                }
                Change::Remove(which) => {
                    now[*which] = 0.0;
                    steps.push((*at, now.clone()));
                }
            }
        }
        // Batches of the stream before batch `number` of the run.
        let before = |number: u64| number + skipped.iter().filter(|(at, _)| *at < number).map(|(_, count)| count).sum::<u64>();
        steps.into_iter().for_each(|(at, step)| drop(weights.insert(before(at) * ROWS as u64, step)));
        let mut entries = weights.into_iter();
        let first = Schedule::new(entries.next().unwrap().1);
        let twin = all(build(entries.fold(first, |schedule, (at, weights)| schedule.then(at, weights))).loader());
        let mut left: Vec<_> = twin;
        for (at, count) in skipped {
            let from = (at as usize).min(left.len());
            left.drain(from..(from + count as usize).min(left.len()));
        }
        let loader = build(Schedule::new([3.0, 2.0, 1.0])).loader().edits(log(&changes));
        let loader = if threads > 0 { loader.threads(threads) } else { loader };
        prop_assert_eq!(all(loader), left);
    }

    /// Edits may be added to a run whose states were written without edits.
    #[test]
    fn a_run_without_edits_continues_with_edits(case in cases(), changes in changes(), after in 1u64..12, threads in 0..3usize) {
        let changes: Vec<_> = changes.into_iter().map(|(at, change)| (at + after + 1, change)).collect();
        let expected = all(case.build().loader().edits(log(&changes)));
        let mut loader = case.build().loader().build()?;
        loader.by_ref().take(after as usize).for_each(|batch| drop(batch.unwrap()));
        let state = loader.state()?;
        prop_assert!(state.edited_mix.is_none());
        let loader = case.build().loader().edits(log(&changes)).resume(state.clone());
        let loader = if threads > 0 { loader.threads(threads) } else { loader };
        prop_assert_eq!(&all(loader)[..], &expected[(state.delivered as usize).min(expected.len())..]);
    }
}

/// Weights divided by their sum.
fn shares(weights: &[f64]) -> Vec<f64> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    weights.iter().map(|weight| weight / largest / sum).collect()
}

fn plain() -> BoxIter<Element> {
    Case {
        first: [1.0, 1.0, 1.0],
        changes_at: None,
        by_tokens: false,
        at_end: AtEnd::Stop,
        later: 0,
        packs: 0,
        maps: false,
    }
    .build()
}

#[test]
fn an_edit_that_fits_no_mix_names_the_parts() {
    let refused = |ds: BoxIter<Element>, edits: Edits| {
        let error = ds.loader().edits(edits).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        format!("{}: {}", error.message(), error.help_text().unwrap_or_default())
    };
    let text = refused(plain(), Edits::default().mix(3, [("web", 1.0), ("books", 1.0)]));
    assert_eq!(
        text,
        "the edit `at 3: mix {books: 1.0, web: 1.0}` fits no mix of the pipeline: the parts are code, math, web"
    );
    let none = refused(documents(0, 9).batch(2).boxed(), Edits::default().remove(3, ["web"]));
    assert!(none.starts_with("the edit `at 3: remove web` fits no mix of the pipeline"), "{none}");
    let again = refused(plain().repeat(2).boxed(), Edits::default().remove(3, ["web"]));
    assert!(again.contains("repeat after the mix (stage 9) reads the mix again"), "{again}");
    let zero = refused(plain(), Edits::default().mix(3, [("web", 0.0)]));
    assert!(zero.starts_with("edit 0: `mix` has no weight above 0"), "{zero}");
    let overlap = refused(plain(), Edits::default().mix_over(3, [("web", 1.0)], 9).remove(5, ["math"]));
    assert!(
        overlap.contains("`at 5: remove math` begins before the transition `at 3: mix {web: 1.0} over 9` ends"),
        "{overlap}"
    );
    let everything = Edits::default().remove(0, NAMES);
    let error = plain().loader().edits(everything).build().unwrap().next().unwrap().unwrap_err();
    assert!(error.message().contains("leaves no part of the mix with a weight"), "{error}");
}

#[test]
fn a_state_without_edits_of_the_mix_cannot_begin_one() {
    let mut loader = plain().loader().build().unwrap();
    loader.by_ref().take(5).for_each(|batch| drop(batch.unwrap()));
    let state = loader.state().unwrap();
    let edits = |at| Edits::default().mix(at, [("web", 1.0)]);
    let error = plain().loader().edits(edits(5)).resume(state.clone()).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.help_text().unwrap().starts_with("begin the edit at batch 6"), "{error}");
    plain().loader().edits(edits(6)).resume(state).build().unwrap();
}

#[test]
fn weights_of_an_edit_apply_exactly_as_written() {
    let part = |first: i64| Range::new(first, first + 1000).to_iter();
    let mixed = mix([part(0), part(5000)]).named(["web", "books"]).batch(4);
    let edits = Edits::default().mix(1, [("web", 1.0), ("books", 3.0)]).remove(2, ["web"]);
    let batches = mixed.loader().edits(edits).build().unwrap().take(3).map(Result::unwrap);
    let expected = [[0, 5000, 1, 5001], [2, 5002, 5003, 5004], [5005, 5006, 5007, 5008]];
    assert_eq!(batches.collect::<Vec<_>>(), expected);
}

#[test]
fn documents_without_tokens_stay_before_an_edit() {
    let document = |x: i64| {
        let tokens = vec![0u16; (x * 5).rem_euclid(3) as usize];
        Element::new().with("t", Array::from_vec(tokens)).with("id", Array::scalar(x))
    };
    let build = || {
        let parts = [0, 1000, 2000].map(|first| Range::new(first, first + 300).map(document).to_iter());
        let mixed = mix(parts).named(NAMES).by_tokens("t").window_shuffle(5, 1);
        mixed.map(|element| element.array("id").unwrap().as_slice::<i64>().unwrap()[0]).limit(240).batch(ROWS).boxed()
    };
    let edits = (1..20)
        .fold(Edits::default(), |log, at| log.mix(at, NAMES.into_iter().zip([1.0, (at % 3) as f64, (at % 5) as f64])));
    let mut loader = build().loader().edits(edits.clone()).build().unwrap();
    let (mut states, mut expected) = (Vec::new(), Vec::new());
    while let Some(batch) = loader.next().transpose().unwrap() {
        expected.push(batch);
        states.push(loader.state().unwrap());
    }
    for (number, state) in states.into_iter().enumerate().step_by(3) {
        let resumed = build().loader().edits(edits.clone()).resume(state).build().unwrap();
        let batches: Vec<_> = resumed.map(Result::unwrap).collect();
        assert_eq!(batches, expected[number + 1..], "after batch {number}");
    }
}
