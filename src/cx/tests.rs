//! Tests of what is counted, and of what a sample is measured.

use super::*;

fn spin(ns: u64) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_nanos(ns) {}
}

#[test]
fn every_element_is_counted_and_the_first_is_measured() {
    let recorder = Recorder::new(2);
    let mut cx = Cx::new(&recorder);
    let mut measured = Vec::new();
    for i in 0..64_000 {
        cx.begin_element();
        measured.extend(cx.is_timing().then_some(i));
        cx.timed(StageId(0), || ());
    }
    for _ in 0..2200 {
        cx.begin_element();
        cx.within(1, |cx| cx.timed(StageId(0), || ()));
    }
    cx.flush();
    let totals = recorder.totals();
    assert_eq!((totals[0].counts.elements, totals[1].counts.elements), (64_000, 2200));
    assert_eq!((measured[0], totals[0].latency.is_empty()), (0, false));
    assert!(measured.len() >= 64_000 / 2048, "at most 2047 elements are left out at a time: {}", measured.len());
}

/// Elements alone and in chunks of any size are counted, and what is measured of either is in the sum.
#[test]
fn chunks_and_elements_are_counted_together() {
    let recorder = Recorder::new(2);
    let mut cx = Cx::new(&recorder);
    let mut elements = 0;
    for i in 0..400u64 {
        let size = 1 + i % 256;
        cx.begin_chunk(size);
        cx.timed_many(StageId(0), size as usize, || ());
        cx.consumed_many(StageId(1), size as usize, || ());
        elements += size;
        if i % 5 == 0 {
            cx.begin_element();
            cx.timed(StageId(0), || spin(1000));
            elements += 1;
        }
        if i % 70 == 0 {
            cx.flush();
        }
    }
    cx.flush();
    let totals = recorder.totals();
    assert_eq!((totals[0].counts.elements, totals[1].counts.elements), (elements, 0));
    assert!(totals[0].counts.self_ns > 0 && !totals[0].latency.is_empty());
}

#[test]
fn a_chunk_that_broke_off_is_not_counted() {
    let recorder = Recorder::new(2);
    let mut cx = Cx::new(&recorder);
    cx.begin_chunk(4);
    cx.timed_many(StageId(0), 4, || ());
    cx.begin_chunk(9);
    cx.timed_many(StageId(0), 9, || ());
    cx.produced(StageId(1), 3, 100);
    cx.undo_chunk();
    cx.flush();
    let totals = recorder.totals();
    assert_eq!((totals[0].counts.elements, totals[1].counts.elements, totals[1].counts.bytes), (4, 0, 0));
}

#[test]
fn short_rare_work_is_sampled_and_counted_in_full() {
    let recorder = Recorder::new(1);
    let mut cx = Cx::new(&recorder);
    for _ in 0..1000 {
        cx.timed_exactly(StageId(0), || spin(2000));
    }
    let measured = cx.tally[0].times.len();
    assert!((60..300).contains(&measured), "{measured}");
    cx.flush();
    let tally = &recorder.totals()[0];
    assert!((1000 * 2000 * 9 / 10..).contains(&tally.counts.self_ns), "{tally:?}");
}

#[test]
fn a_context_without_recorder_just_runs() {
    let mut cx = Cx::default();
    assert_eq!(cx.timed(StageId(7), || 3), 3);
}
