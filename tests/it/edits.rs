//! Edits of a run change the batches from theirs on, and no batch before.

use std::sync::LazyLock;

use gristmill::dataset::Remainder;
use gristmill::dataset::map::Range;
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::part::{InMemory, Part};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, Checkpoint, Edits, Element, ErrorKind, Result};
use proptest::prelude::*;

use crate::edits_segments::{How, Rows, all, cells, segment};

/// Rows of a batch.
const ROWS: usize = 6;

/// Packed rows of documents of different lengths.
fn packed() -> BoxIter<Element> {
    let document =
        |x: i64| Element::new().with("t", Array::from_vec(vec![x as i32; 1 + (x * 5).rem_euclid(7) as usize]));
    let packed = Range::new(0, 400).shuffle(3).map(document).to_iter();
    let packed = packed.window_pack(WindowPackOptions::new(RowSpec::new([("t", 8)])).window(40));
    packed.batch_with(ROWS, Remainder::Drop).boxed()
}

/// The batches that the edits leave, by their numbers in the stream without edits.
fn left(edits: &[(u64, u64)], batches: u64) -> Vec<u64> {
    let mut left: Vec<u64> = (0..batches).collect();
    for (at, skip) in edits {
        let from = (*at).min(left.len() as u64) as usize;
        let to = (from + *skip as usize).min(left.len());
        left.drain(from..to);
    }
    left
}

fn log(edits: &[(u64, u64)]) -> Edits {
    edits.iter().fold(Edits::default(), |log, (at, skip)| log.skip(*at, *skip))
}

/// Edits in the order of their batches.
fn edits() -> impl Strategy<Value = Vec<(u64, u64)>> {
    proptest::collection::vec((0..30_u64, 1..9_u64), 0..5).prop_map(|mut edits| {
        edits.sort_by_key(|(at, _)| *at);
        edits
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(4), ..ProptestConfig::default() })]

    /// Segments of a run, each with an own log that begins with the edits of the past, with other parts and threads.
    #[test]
    fn an_edit_changes_no_batch_before_it(
        logs in proptest::collection::vec((edits(), 1..14_u64, 1..4_usize, 0..3_usize), 1..5)
    ) {
        static ALL: LazyLock<Vec<Rows>> = LazyLock::new(|| all(packed().loader()));
        let (mut past, mut state) = (Vec::new(), None::<Checkpoint>);
        for (later, count, parts, threads) in logs {
            // Edits of the past stay, and others may come.
            let delivered = state.as_ref().map_or(0, |state| state.delivered);
            let later = later.into_iter().filter(|(at, _)| *at >= delivered);
            let edits: Vec<_> = past.iter().copied().filter(|(at, _)| *at < delivered).chain(later).collect();
            let expected = left(&edits, ALL.len() as u64);
            let (build, how) = (|| packed().loader().edits(log(&edits)), How { parts, threads, is_planned: false });
            let rows = |number: u64| expected.get(number as usize).map(|number| ALL[*number as usize].clone());
            let after = segment(build, how, state.as_ref(), count, rows, &edits)?;
            let effective = edits.iter().filter(|(at, _)| *at < after.delivered).count();
            prop_assert_eq!(after.edits.len(), effective);
            (past, state) = (edits, Some(after));
        }
    }
}

#[test]
fn another_past_is_refused_and_names_the_edit() {
    let mut loader = packed().loader().edits(log(&[(2, 3), (9, 1)])).build().unwrap();
    loader.by_ref().take(5).for_each(|batch| drop(batch.unwrap()));
    let state = loader.state().unwrap();
    assert_eq!(state.edits, ["at 2: skip 3"]);
    let refused = |edits: &[(u64, u64)]| {
        let error = packed().loader().edits(log(edits)).resume(state.clone()).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        error.message().to_owned()
    };
    assert_eq!(refused(&[]), "the edits of the run differ: edit 0 was `at 2: skip 3` and is nothing");
    assert_eq!(refused(&[(2, 4)]), "the edits of the run differ: edit 0 was `at 2: skip 3` and is `at 2: skip 4`");
    let late = refused(&[(2, 3), (4, 1)]);
    assert_eq!(late, "the edits of the run differ: edit 1 was nothing and is `at 4: skip 1`");
    packed().loader().edits(log(&[(2, 3), (5, 1)])).resume(state).build().unwrap();
    assert!(loader.report().to_string().contains("edit at 2: skip 3"));
}

#[test]
fn steps_taken_back_are_edited_again() {
    let mut loader = packed().loader().threads(1).edits(log(&[(2, 3)])).build().unwrap();
    let first: Vec<_> = loader.by_ref().take(3).map(|batch| cells(&batch.unwrap())).collect();
    loader.back(2).unwrap();
    let again: Vec<_> = loader.by_ref().take(2).map(|batch| cells(&batch.unwrap())).collect();
    assert_eq!(again, first[1..]);
}

#[test]
fn hosts_with_other_edits_are_stopped() {
    let exchange = InMemory::new();
    let errors = std::thread::scope(|scope| {
        let host = |index: usize| {
            let exchange = exchange.clone();
            scope.spawn(move || {
                let edits = log(&[(2, 3 + index as u64)]);
                let loader = packed().loader().edits(edits).part(Part::of(index, 2)).guard(exchange).build();
                loader.unwrap().find_map(Result::err).unwrap().to_string()
            })
        };
        [0, 1].map(host).map(|host| host.join().unwrap())
    });
    assert_eq!(errors[0], errors[1]);
    assert!(errors[0].contains("`edit at 2: skip 3`") && errors[0].contains("`edit at 2: skip 4`"), "{}", errors[0]);
}
