//! Rounds over lanes, with every kind of reader.

use proptest::prelude::*;

use super::state::Written;
use super::*;
use crate::cx::{Cx, Recorder};
use crate::dataset::iter::laws;
use crate::dataset::map::{Range, Source};
use crate::exec::Executor;
use crate::loader::Load;
use crate::{ErrorKind, IterDatasetExt, MapDatasetExt};

/// Returns dataset `k`: numbers from `2000 * k` on that depend on the count of earlier elements.
fn dataset(k: usize, len: i64) -> impl IterDataset<Item = i64> + 'static {
    let start = 1000 * k as i64;
    Range::new(start, start + len).to_iter().boxed().map_with_index(|i, x| 2 * x + i as i64 % 2)
}

fn datasets(lens: &[i64]) -> Vec<impl IterDataset<Item = i64> + use<>> {
    lens.iter().enumerate().map(|(k, &len)| dataset(k, len)).collect()
}

/// Computes the rounds naively.
fn naive(lens: &[i64], count: usize) -> Vec<i64> {
    let lane = |lane: usize| {
        let own = datasets(lens).into_iter().skip(lane).step_by(count);
        own.flat_map(|ds| ds.collect().unwrap()).collect::<Vec<_>>()
    };
    let lanes: Vec<_> = (0..count).map(lane).collect();
    let rounds = lanes.iter().map(Vec::len).max().unwrap_or(0);
    (0..rounds).flat_map(|round| lanes.iter().filter_map(move |lane| lane.get(round).copied())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn rounds_are_the_naive_ones(lens in prop::collection::vec(0i64..100, 0..5), count in 1usize..5) {
        prop_assert_eq!(laws::check(&lanes(datasets(&lens), count)), naive(&lens, count));
    }
}

#[test]
fn more_lanes_than_datasets_and_lanes_inside_lanes() {
    assert_eq!(laws::check(&lanes(datasets(&[80, 3]), 4)), naive(&[80, 3], 4));
    assert_eq!(laws::check(&lanes(datasets(&[]), 3)), naive(&[], 3));
    let inner = || lanes(datasets(&[10, 20, 30]), 2);
    let all = laws::check(&lanes([inner(), inner()], 2));
    assert_eq!(all, naive(&[10, 20, 30], 2).into_iter().flat_map(|x| [x, x]).collect::<Vec<_>>());
}

#[test]
fn streams_are_made_where_their_lane_is_read() {
    let files = Source::new(vec![3i64, 0, 2, 5]).filter(|len| *len != 2);
    let ds = lanes_from(files.map(|len| Range::new(10 * len, 11 * len).to_iter().map(|x| x + 1)), 2);
    // Lane 0 reads the streams of 3 and 2; the stream of 2 is dropped. Lane 1 reads the streams of 0 and 5.
    assert_eq!(laws::check(&ds), [31, 51, 32, 52, 33, 53, 54, 55]);
}

/// Fails at every element with remainder 3 modulo 40.
fn failing(start: i64, len: i64) -> impl IterDataset<Item = i64> + 'static {
    let check = |x: i64| if x % 40 == 3 { Err(Error::data(format!("bad {x}"))) } else { Ok(x) };
    Range::new(start, start + len).to_iter().window_shuffle(6, 1).try_map(check)
}

/// Returns all results up to the end, errors included, each with the state after it.
fn all(run: &Runtime, ds: &impl IterDataset<Item = i64>) -> Vec<(std::result::Result<i64, String>, String)> {
    let (mut iter, mut cx, mut all) = (ds.iter(run).unwrap(), run.cx(), Vec::new());
    loop {
        let next = match iter.next(&mut cx) {
            Ok(None) => return all,
            Ok(Some(x)) => Ok(x),
            Err(error) => Err(error.to_string()),
        };
        all.push((next, serde_json::to_string(&iter.state()).unwrap()));
    }
}

#[test]
fn an_error_ends_no_lane_and_comes_in_its_place() {
    let ds = lanes([failing(0, 200), failing(500, 100), failing(900, 3)], 2);
    let inline = all(&Runtime::inline(), &ds);
    assert_eq!(inline.len(), 303);
    assert_eq!(inline.iter().filter(|(next, _)| next.is_err()).count(), 7);
    let threads = Runtime::new(Executor::Threads(3), None).unwrap();
    assert_eq!(all(&threads, &ds), inline);
    // A pass also resumes from a state after an error.
    let mut cx = Cx::default();
    for (at, (_, state)) in inline.iter().enumerate().step_by(9) {
        let mut iter = ds.iter(&threads).unwrap();
        iter.restore(serde_json::from_str(state).unwrap(), &mut cx).unwrap();
        assert_eq!(&serde_json::to_string(&iter.state()).unwrap(), state);
        let next = inline.get(at + 1).map(|(next, _)| next.clone());
        assert_eq!(iter.next(&mut cx).map_err(|e| e.to_string()).transpose(), next);
    }
}

#[test]
fn a_panic_on_a_thread_is_an_error_of_its_lane() {
    let sharp =
        |start| Range::new(start, start + 30).to_iter().boxed().map(|x| if x == 117 { panic!("boom") } else { x });
    let mut loader = lanes([sharp(0), sharp(100)], 2).loader().threads(2).build().unwrap();
    assert_eq!(loader.by_ref().take(35).filter_map(Result::ok).count(), 35);
    let error = loader.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "element 17: a function panicked: boom");
}

#[test]
fn a_stream_that_cannot_be_opened_is_passed_over_behind_its_error() {
    let stream =
        |k: i64| if k == 2 { Err(Error::data("no such file")) } else { Ok(Range::new(10 * k, 10 * k + 3).to_iter()) };
    let ds = || lanes_from(Range::new(0, 5).try_map(stream), 2);
    let inline = all(&Runtime::inline(), &ds());
    let values: Vec<_> = inline.iter().filter_map(|(next, _)| next.clone().ok()).collect();
    assert_eq!(values, [0, 10, 1, 11, 2, 12, 30, 40, 31, 41, 32, 42]);
    assert_eq!(all(&Runtime::new(Executor::Threads(2), None).unwrap(), &ds()), inline);
}

/// Holds for any number of turns since the positions were last taken.
#[test]
fn a_state_is_that_of_every_lane() {
    let lens = [1, 70, 200, 0, 9];
    let ds = lanes(datasets(&lens), 5);
    let run = Runtime::inline();
    let (mut iter, mut cx) = (ds.iter(&run).unwrap(), Cx::default());
    let mut given = [0; 5];
    loop {
        let state = iter.state();
        for (lane, at) in state.lanes().into_iter().enumerate() {
            let at = at.map(|at| (at.given, at.skip));
            assert!(at.is_none_or(|at| at == (given[lane], given[lane] % 64)), "{lane}: {at:?} of {given:?}");
            assert!(at.is_some() || given[lane] == lens[lane] as u64, "{lane}");
        }
        let Some(next) = iter.next(&mut cx).unwrap() else { break };
        given[(next / 2 / 1000) as usize] += 1;
    }
    assert_eq!(given, lens.map(|len| len as u64));
}

#[test]
fn marks_are_where_they_should_be() {
    let ds = lanes(datasets(&[300, 300]), 2);
    let run = Runtime::inline();
    let (mut iter, mut cx) = (ds.iter(&run).unwrap(), Cx::default());
    for _ in 0..2 * 100 {
        iter.next(&mut cx).unwrap();
    }
    let state = serde_json::to_value(iter.state()).unwrap();
    assert_eq!(state["next_lane"], 0);
    assert_eq!((&state["lanes"][1]["given"], &state["lanes"][1]["skip"]), (&100.into(), &36.into()), "{state}");
    assert_eq!(state["lanes"][1]["mark"]["dataset"], 1);
}

#[test]
fn stages_inside_lanes_count_whoever_reads_them() {
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let recorder = Recorder::new(3 + 3 + 1);
        let run = Runtime::new(executor, Some(recorder.clone())).unwrap();
        let ds = lanes(datasets(&[100, 50]), 2);
        assert_eq!((&ds as &dyn Stage).count(), 7);
        let read = all(&run, &ds).len() as u64;
        let elements: Vec<u64> = recorder.totals().iter().map(|stage| stage.counts.elements).collect();
        assert_eq!(elements[..2], [100, 100], "{executor}");
        assert_eq!((elements[4], elements[6]), (50, read), "{executor}");
    }
}

#[test]
fn stages_behind_lanes_are_measured() {
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let recorder = Recorder::new(2 + 1 + 1);
        let run = Runtime::new(executor, Some(recorder.clone())).unwrap();
        let ds = lanes([Range::new(0, 200).to_iter()], 1).map(|x| x + 1);
        assert_eq!(all(&run, &ds).len(), 200);
        let map = recorder.totals().pop().unwrap();
        // The first element is always measured.
        assert_eq!((map.counts.elements, map.latency.is_empty()), (200, false), "{executor}");
    }
}

#[test]
fn impossible_counts_and_states_are_refused() {
    for count in [0, MAX_LANES + 1] {
        assert_eq!(lanes(datasets(&[1]), count).collect().unwrap_err().kind(), ErrorKind::Config);
    }
    let ds = lanes(datasets(&[2, 2, 2]), 2);
    let mut iter = ds.iter(&Runtime::inline()).unwrap();
    let start: Written<_> = iter.state().into();
    let with = |change: fn(&mut LanePosition<_>)| {
        let mut state = start.clone();
        change(state.lanes[1].as_mut().unwrap());
        state
    };
    for state in [
        Written { next_lane: 2, ..start.clone() },
        Written { next_lane: usize::MAX, ..start.clone() },
        Written { lanes: Vec::new(), ..start.clone() },
        with(|at| at.skip = 64),
        with(|at| (at.given, at.skip) = (3, 4)),
        with(|at| at.mark = Arc::new(LaneMark { dataset: 2, state: None })),
        // The datasets of the lane have fewer elements.
        with(|at| (at.given, at.skip) = (50, 50)),
    ] {
        let error = iter.restore(state.into(), &mut Cx::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State, "{error}");
    }
}
