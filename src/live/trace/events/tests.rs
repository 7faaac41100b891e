use std::collections::BTreeMap;

use super::*;
use crate::cx::{ElementGroup, Shares, ThreadWaits};

fn at(us: u64) -> Duration {
    Duration::from_micros(us)
}

fn chunk(first: u64, begun: u64, done: u64, taken: u64) -> Chunk {
    let slowest = Some(ElementGroup { index: first, count: 1, took: at(5), stage: Some(7) });
    let (begun, done, taken, waited) = (at(begun), at(done), at(taken), at(2));
    let (who, off) = (EvaluatorId::default(), ThreadWaits::default());
    Chunk { border: 1, first, count: 4, begun, done, taken, waited, who, bytes: 0, slowest, off }
}

fn batch(first: u64, made: (u64, u64), asked: u64, given: u64) -> Batch {
    let shares = Shares::of(Cause::Queue, at(given - asked));
    let made = Some((at(made.0), at(made.1)));
    Batch {
        first,
        count: 1,
        ready: Some(1),
        asked: at(asked),
        given: at(given),
        made,
        shares,
        beside: Shares::default(),
    }
}

fn events(update: Vec<Update>) -> Vec<Value> {
    let mut events = Events::default();
    update.into_iter().for_each(|update| events.add(update, &[]));
    events.end_step(None);
    serde_json::from_str(&format!("[{}]", events.take())).unwrap()
}

#[test]
fn arrows_lead_from_chunks_to_their_batch_and_its_step() {
    // Two chunks at a time, of which the second batch needs one more.
    let chunks = [chunk(0, 0, 90, 100), chunk(4, 10, 95, 101), chunk(8, 95, 180, 190), chunk(12, 100, 300, 310)];
    let batches = [batch(0, (0, 120), 5, 125), batch(1, (120, 200), 150, 205)];
    let split = |at: usize| {
        let update = |batches: &[Batch], chunks: &[Chunk]| Update {
            batches: batches.to_vec(),
            chunks: chunks.to_vec(),
            ..Update::default()
        };
        vec![update(&batches[..at.min(1)], &chunks[..2]), update(&batches[at.min(1)..], &chunks[2..])]
    };
    for told in [split(0), split(1)] {
        let events = events(told);
        let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).collect::<Vec<_>>();
        let lanes: Vec<_> =
            of("s").iter().map(|event| (event["id"].as_u64().unwrap(), event["tid"].as_u64().unwrap())).collect();
        assert_eq!(lanes, [(1, 10), (2, 11), (3, 10), (4, 11)]);
        let ends: BTreeMap<_, _> =
            of("f").iter().map(|event| (event["id"].as_u64().unwrap(), event["ts"].as_f64().unwrap())).collect();
        assert_eq!(ends, [(1, 125.0), (2, 125.0), (3, 205.0)].into(), "the last is of a batch that nobody was given");
        let steps: Vec<_> = of("X").into_iter().filter(|event| event["name"] == "step").collect();
        assert_eq!((steps[0]["ts"].as_f64(), steps[0]["dur"].as_f64()), (Some(125.0), Some(25.0)));
    }
}

#[test]
fn a_pass_without_arrows_has_steps() {
    let batches =
        vec![Batch { made: None, ..batch(0, (0, 0), 5, 9) }, Batch { made: None, ..batch(1, (0, 0), 20, 24) }];
    let events = events(vec![Update { batches, ..Update::default() }]);
    let names: Vec<_> =
        events.iter().filter(|event| event["ph"] == "X").map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["waits: queue", "step", "waits: queue", "step"]);
}

#[test]
fn what_is_waited_around_the_loader_comes_in_front_of_the_step() {
    let late = Batch { beside: Shares::of(Cause::Transfer, at(4)), ..batch(1, (9, 20), 19, 24) };
    let events = events(vec![Update { batches: vec![batch(0, (0, 8), 5, 9), late], ..Update::default() }]);
    let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X" && event["tid"] == CONSUMER).collect();
    let told: Vec<_> = slices
        .iter()
        .map(|event| (event["name"].as_str().unwrap(), event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap()))
        .collect();
    let expected = [("waits: queue", 5.0, 4.0), ("waits: transfer", 9.0, 4.0), ("step", 13.0, 6.0)];
    assert_eq!(told[..3], expected);
}

#[test]
fn a_pass_that_takes_the_place_of_another_comes_behind_it() {
    let update = |anew| Update {
        anew,
        batches: vec![batch(0, (0, 8), 5, 9)],
        chunks: vec![chunk(0, 0, 6, 7)],
        ..Update::default()
    };
    let events = events(vec![update(false), update(true)]);
    let slices = |name: &str| {
        let slices = events.iter().filter(|event| event["ph"] == "X" && event["name"] == name);
        slices.map(|event| event["ts"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((slices("step"), slices("elements 0 to 3")), (vec![9.0, 18.0], vec![0.0, 9.0]));
}
