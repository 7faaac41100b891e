//! Traces of runs: they are of the format that Perfetto and Chrome read, arrows pair up, and time goes on on every track.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::{Executor, Load, MapDatasetExt};
use serde_json::Value;

/// The events of a trace of a run.
fn traced(executor: Executor, file: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(file);
    let ds = Range::new(0, 4000).shuffle(5).map(|x| {
        // The work of an element, so that the slowest is in `map`.
        std::thread::sleep(Duration::from_micros(100));
        x
    });
    let mut loader = ds.to_iter().batch(50).loader().executor(executor).trace(&file).build().unwrap();
    for batch in loader.by_ref() {
        batch.unwrap();
        // The consumer's own step, which the trace shows.
        std::thread::sleep(Duration::from_millis(4));
    }
    drop(loader);
    serde_json::from_reader(reader(File::open(&file).unwrap())).unwrap()
}

/// The name of a trace that is compressed, where this build can.
const COMPRESSED: &str = if cfg!(feature = "compress") { "t.json.gz" } else { "t.json" };

/// What reads a trace, whether it is compressed or not.
fn reader(file: File) -> Box<dyn Read> {
    let mut file = BufReader::new(file);
    match file.fill_buf().unwrap() {
        #[cfg(feature = "compress")]
        [0x1f, 0x8b, ..] => Box::new(BufReader::new(flate2::read::GzDecoder::new(file))),
        _ => Box::new(file),
    }
}

fn number(event: &Value, field: &str) -> f64 {
    event[field].as_f64().unwrap_or_else(|| panic!("no {field} in {event}"))
}

fn text<'a>(event: &'a Value, field: &str) -> &'a str {
    event[field].as_str().unwrap_or_else(|| panic!("no {field} in {event}"))
}

/// Checks every event, and counts those of each phase.
fn check(events: &[Value]) -> BTreeMap<&str, usize> {
    let mut phases = BTreeMap::new();
    let mut tracks: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counters: BTreeMap<&str, f64> = BTreeMap::new();
    let mut named = BTreeSet::new();
    for event in events {
        *phases.entry(text(event, "ph")).or_default() += 1;
        assert!(!text(event, "name").is_empty() && event["pid"].is_u64(), "{event}");
        match text(event, "ph") {
            "M" => {
                let kind = text(event, "name");
                assert!(
                    ["process_name", "thread_name", "thread_sort_index"].contains(&kind) && event["args"].is_object()
                );
                if kind == "thread_name" {
                    assert!(!text(&event["args"], "name").is_empty());
                    named.insert(event["tid"].as_u64().unwrap());
                }
            }
            "X" => {
                let (from, time) = (number(event, "ts"), number(event, "dur"));
                assert!(
                    from >= 0.0 && time >= 0.0 && event["args"].is_object() && !text(event, "cat").is_empty(),
                    "{event}"
                );
                let track = tracks.entry(event["tid"].as_u64().unwrap()).or_default();
                assert!(
                    track.last().is_none_or(|last| last.1 <= from + 0.001),
                    "one after the other: {event} {:?}",
                    track.last()
                );
                track.push((from, from + time));
            }
            "C" => {
                let before = counters.insert(text(event, "name"), number(event, "ts"));
                assert!(before.is_none_or(|before| before <= number(event, "ts")), "{event}");
                assert!(event["args"].as_object().unwrap().values().all(Value::is_number), "{event}");
            }
            "s" | "t" | "f" => {
                assert!(event["id"].is_u64() && event["bp"] == "e" && event["cat"] == "gristmill", "{event}")
            }
            other => panic!("{other} is no phase that is written"),
        }
    }
    assert!(tracks.keys().all(|track| named.contains(track)), "{named:?}");
    // Each arrow lies on slices that are there, and goes on in time.
    let mut arrows: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    events.iter().filter(|event| ["s", "t", "f"].contains(&text(event, "ph"))).for_each(|event| {
        arrows.entry(event["id"].as_u64().unwrap()).or_default().push(event);
    });
    for arrow in arrows.values() {
        let kinds: String = arrow.iter().map(|event| text(event, "ph")).collect();
        // One of which nobody was given the batch has a beginning alone.
        assert!(["stf", "s"].contains(&&*kinds), "{arrow:?}");
        assert!(arrow.windows(2).all(|pair| number(pair[0], "ts") <= number(pair[1], "ts")), "{arrow:?}");
        for event in arrow {
            let (ts, track) = (number(event, "ts"), event["tid"].as_u64().unwrap());
            assert!(tracks[&track].iter().any(|(from, to)| (*from - 0.001..=*to + 0.001).contains(&ts)), "{event}");
        }
    }
    phases
}

#[test]
fn a_trace_of_threads_has_tracks_arrows_and_counters() {
    let events = traced(Executor::Threads(2), COMPRESSED);
    let phases = check(&events);
    assert!(phases["f"] > 10 && phases["t"] == phases["f"] && phases["s"] >= phases["f"], "{phases:?}");
    let steps =
        events.iter().filter(|event| text(event, "name").ends_with("step") || text(event, "name").ends_with("steps"));
    assert_eq!(steps.map(|event| event["args"]["count"].as_u64().unwrap()).sum::<u64>(), 80);
    let counters: BTreeSet<_> =
        events.iter().filter(|event| event["ph"] == "C").map(|event| text(event, "name")).collect();
    assert!(counters.is_superset(&["batches ready", "share waited"].into()), "{counters:?}");
    if cfg!(target_os = "linux") {
        assert!(counters.contains("memory"));
    }
    assert!(events.iter().any(|event| event["args"]["slowest"]["stage"] == "map"));
}

#[test]
fn a_trace_of_one_thread_has_its_steps_and_waits() {
    let events = traced(Executor::Inline, "t.json");
    let phases = check(&events);
    assert_eq!(phases.get("f"), None, "nothing is made ahead");
    assert!(events.iter().any(|event| event["name"] == "waits: reader"));
}
