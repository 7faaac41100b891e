//! Laws of every stream, checked by running it: for the unit tests here and for `tests/laws/main.rs`.

use std::fmt::Debug;

use gristmill::{Cx, DatasetIterator, Executor, IterDataset, IterDatasetExt, Runtime};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// All elements of a pass, the state before each, and the states at the end or the error that ended the pass.
struct Pass<T> {
    items: Vec<T>,
    states: Vec<Json>,
    error: Option<String>,
}

fn json(iter: &impl DatasetIterator) -> Json {
    serde_json::to_value(iter.state()).expect("a state is JSON")
}

/// Parses a state from text, as a checkpoint on disk is read.
fn parse<S: DeserializeOwned>(state: &Json) -> S {
    serde_json::from_str(&state.to_string()).expect("a state reads back what it wrote")
}

fn pass<I: DatasetIterator>(iter: &mut I) -> Pass<I::Item> {
    let mut cx = Cx::default();
    let (mut items, mut states) = (Vec::new(), vec![json(iter)]);
    loop {
        match iter.next(&mut cx) {
            Ok(Some(item)) => items.push(item),
            Ok(None) => break,
            Err(error) => return Pass { items, states, error: Some(format!("{error:?}")) },
        }
        states.push(json(iter));
    }
    assert!(iter.next(&mut cx).expect("a pipeline does not fail behind its end").is_none(), "the end is the end");
    states.push(json(iter));
    Pass { items, states, error: None }
}

/// Returns positions in `0..=n`: all positions of a short stream, both ends and a spread of a long stream.
fn sample(n: usize) -> Vec<usize> {
    let step = n.div_ceil(12).max(1);
    let mut at: Vec<usize> = (0..=n).step_by(step).chain([1.min(n), n.saturating_sub(1), n]).collect();
    at.sort_unstable();
    at.dedup();
    at
}

/// Restores a state and compares the remaining elements with `full` from element `from` on. Directly after the
/// restore, the state must equal the restored state.
fn resume<D>(dataset: &D, run: &Runtime, state: &Json, full: &Pass<D::Item>, from: usize, what: &str)
where
    D: IterDataset,
    D::Item: PartialEq + Debug,
{
    let mut iter = dataset.iter(run).expect("a pass starts");
    let mut cx = run.cx();
    // A pass that was at its end or at an error must restore like a fresh pass.
    for what in [what.to_owned(), format!("{what}, again")] {
        iter.restore(parse(state), &mut cx).unwrap_or_else(|e| panic!("{what}: {state}: {e}"));
        assert_eq!(&json(&iter), state, "{what}: the state after restoring is another");
        let resumed = pass(&mut iter);
        assert_eq!(resumed.items, full.items[from..], "{what}: from {state}");
        assert_eq!(resumed.error, full.error, "{what}: from {state}");
    }
}

/// Checks the laws as [`check_to_error`], for a pipeline that does not fail.
pub(crate) fn check<D: IterDataset<Item: PartialEq + Debug>>(dataset: &D) -> Vec<D::Item> {
    let (items, error) = check_to_error(dataset);
    assert_eq!(error, None, "a pipeline under test does not fail");
    items
}

/// Runs `dataset` inline and on threads, and restores it at many positions and in chains. Returns its elements up to
/// the first error, and that error.
///
/// # Panics
/// If a law is broken. The message names the law.
pub(crate) fn check_to_error<D: IterDataset<Item: PartialEq + Debug>>(dataset: &D) -> (Vec<D::Item>, Option<String>) {
    dataset.check_all().expect("a pipeline under test is well configured");
    let inline = Runtime::inline();
    let threads = Runtime::new(Executor::Threads(2), None).expect("threads start");
    let full = pass(&mut dataset.iter(&inline).expect("a pass starts"));
    let n = full.items.len();
    let threaded = pass(&mut dataset.iter(&threads).expect("a pass starts"));
    assert_eq!(threaded.items, full.items, "2 threads yield something else");
    assert_eq!(threaded.error, full.error, "2 threads fail in another way");
    assert_eq!(threaded.states, full.states, "2 threads have other states");
    for k in sample(n) {
        resume(dataset, &inline, &full.states[k], &full, k, "inline");
    }
    for k in [n / 3, n] {
        resume(dataset, &threads, &full.states[k], &full, k, "2 threads");
    }
    if let Some(end) = full.states.get(n + 1) {
        resume(dataset, &inline, end, &full, n, "at the end");
    }
    chain(dataset, [&inline, &threads], &full);
    (full.items, full.error)
}

/// Restores five times in a row, with a few elements in between, on alternating executors.
fn chain<D: IterDataset<Item: PartialEq + Debug>>(dataset: &D, runs: [&Runtime; 2], full: &Pass<D::Item>) {
    let n = full.items.len();
    let mut state = full.states[0].clone();
    let mut seen = 0;
    for (hop, run) in runs.into_iter().cycle().take(5).enumerate() {
        let mut iter = dataset.iter(run).expect("a pass starts");
        let mut cx = run.cx();
        iter.restore(parse(&state), &mut cx).expect("a state that was taken restores");
        for _ in 0..(n / 6 + hop % 2).min(n - seen) {
            let next = iter.next(&mut cx).expect("it did not fail here before");
            assert_eq!(next.as_ref(), Some(&full.items[seen]), "hop {hop}, element {seen}");
            seen += 1;
        }
        state = json(&iter);
    }
    resume(dataset, runs[0], &state, full, seen, "after five restores");
}
