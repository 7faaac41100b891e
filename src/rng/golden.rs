//! Comparison with orders and numbers produced by Grain.

use std::path::PathBuf;

use serde_json::Value;

use super::{EpochShuffle, IndexShuffle, MixOrder, PhiloxKey, default_seed, permutation};

fn golden(name: &str) -> Option<Value> {
    let folder = std::env::var_os("GRISTMILL_GOLDEN")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/golden")), PathBuf::from);
    match std::fs::read(folder.join(name)) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap()),
        Err(e) => {
            println!("skipped: {name} of GRISTMILL_GOLDEN: {e}");
            None
        }
    }
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn indices_are_shuffled_as_in_grain() {
    let Some(file) = golden("index_shuffle.json") else { return };
    let rows = file["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let [index, max_index, seed, rounds, shuffled] = numbers(row)[..] else { panic!("row {row}") };
        let shuffle = IndexShuffle::new(max_index, seed as u32, rounds as u32).unwrap();
        assert_eq!(shuffle.get(index), shuffled, "{row}");
    }
}

/// Returns the output of a pipeline that this module can run; `None` for any other pipeline.
fn play(ops: &[Value]) -> Option<Vec<Value>> {
    let names: Vec<&str> = ops.iter().map(|op| op[0].as_str().unwrap()).collect();
    let argument = |op: usize, at: usize| ops.get(op)?.get(at)?.as_u64();
    let len = argument(0, 1).unwrap_or(0);
    let seed = argument(1, 1).unwrap_or(0) as u32;
    let derived = default_seed(&[(seed, 1)]);
    Some(match names[..] {
        ["range", "shuffle"] => shuffled(len, 1, seed),
        ["range", "seed", "shuffle"] => shuffled(len, 1, derived),
        ["range", "seed", "shuffle", "repeat"] if ops[3].get(2).is_none() => shuffled(len, argument(3, 1)?, derived),
        ["range", "draw_seeded"] => drawn(len, 1, seed, 1),
        ["range", "seed", "draw", "repeat"] => drawn(len, argument(3, 1)?, derived, 2),
        ["range", "window_shuffle"] => windows(len, argument(1, 1)?, argument(1, 2)?, false),
        ["range", "to_iter", "iter_window_shuffle"] => windows(len, argument(2, 1)?, argument(2, 2)?, true),
        ["mix"] => mixed(&ops[0]),
        _ => return None,
    })
}

fn shuffled(len: u64, epochs: u64, seed: u32) -> Vec<Value> {
    let shuffle = EpochShuffle::new(len, seed);
    (0..len * epochs).map(|index| (shuffle.get(index) % len).into()).collect()
}

/// Returns the elements and the first `count` raw words of their generators.
fn drawn(len: u64, epochs: u64, seed: u32, count: usize) -> Vec<Value> {
    let key = PhiloxKey::from_seed(u64::from(seed));
    let element = |index| {
        let mut rng = key.element(index, 0);
        [index % len].into_iter().chain((0..count).map(|_| rng.random_raw())).collect::<Vec<u64>>().into()
    };
    (0..len * epochs).map(element).collect()
}

/// Returns windows in the order of their permutation. A stream reads each window from the end.
fn windows(len: u64, window: u64, seed: u64, from_the_end: bool) -> Vec<Value> {
    let starts = (0..len).step_by(window as usize);
    let orders = starts.map(|start| {
        let n = window.min(len - start) as u32;
        let mut order = permutation(n, (seed + start / window) as u32, 4).unwrap();
        if from_the_end {
            order.reverse();
        }
        order.into_iter().map(move |place| Value::from(start + u64::from(place)))
    });
    orders.flatten().collect()
}

/// Runs `["mix", [[["range", start, stop], ["shuffle", seed]], …], weights]`.
fn mixed(op: &Value) -> Vec<Value> {
    let parts = op[1].as_array().unwrap();
    let weights: Vec<f64> = op[2].as_array().unwrap().iter().map(|weight| weight.as_f64().unwrap()).collect();
    let range = |part: &Value| (part[0][1].as_u64().unwrap(), part[0][2].as_u64().unwrap());
    let lens: Vec<u64> = parts.iter().map(|part| range(part).1 - range(part).0).collect();
    let seeds = parts.iter().map(|part| part[1][1].as_u64().unwrap() as u32);
    let orders: Vec<EpochShuffle> = lens.iter().zip(seeds).map(|(&len, seed)| EpochShuffle::new(len, seed)).collect();
    let mix = MixOrder::from_weights(&weights).unwrap();
    let picks = mix.cursor(0).take(mix.len(&lens).unwrap() as usize);
    picks.map(|(c, index)| (range(&parts[c]).0 + orders[c].get(index) % lens[c]).into()).collect()
}

#[test]
fn orders_are_those_of_grain() {
    let Some(file) = golden("order.json") else { return };
    let mut played = std::collections::BTreeSet::new();
    for case in file["cases"].as_array().unwrap() {
        let take = case["take"].as_u64().unwrap() as usize;
        let ops = case["pipeline"].as_array().unwrap();
        if let Some(mut output) = play(ops) {
            output.truncate(take);
            assert_eq!(Value::from(output), case["output"], "{}", case["name"]);
            played.insert(case["name"].as_str().unwrap().trim_end_matches(char::is_numeric));
        }
    }
    let kinds = [
        "draw-",
        "draw-own-seed-",
        "iter-window-",
        "mix-",
        "seed-shuffle-",
        "seed-shuffle-repeat-",
        "shuffle-",
        "window-",
    ];
    assert_eq!(Vec::from_iter(played), kinds);
}
