//! States of several hosts, and the key files and indices of lanes by which they plan.

use std::path::Path;
use std::process::Command;

use gristmill::keys::KeyFolder;
use gristmill::part::{Deal, Part, RowDigest};
use gristmill::{BoxIter, Checkpoint, Element, IterDataset, Load, Loader};
use serde::{Deserialize, Serialize};

use super::{checkpoint, named, pipeline, read_json, states, write_json};

/// Pipelines that hosts divide, how rows are dealt, and whether they are planned by key files.
const PIPELINES: [(&str, &str, &str, bool); 5] = [
    (
        "even",
        "source: {range: {stop: 500}}\nstages: [shuffle: {seed: 4}, batch: {batch_size: 12, remainder: drop}]",
        "even",
        false,
    ),
    (
        "planned",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [shuffle: {seed: 1}, filter: {column: text, min_length: 12}, to_iter, window_shuffle: {window_size: 8, seed: 2}, repeat: {num_epochs: 6}, window_pack: {length: {tokens: 24}, window: 20}, batch: {batch_size: 6, remainder: drop}]",
        "even",
        true,
    ),
    (
        "planned_by_first_fit",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [shuffle: {seed: 5}, repeat: {num_epochs: 6}, first_fit_pack: {length: {tokens: 24}, num_packing_bins: 6}, batch: {batch_size: 6, remainder: drop}]",
        "even",
        true,
    ),
    (
        "token_crops",
        "source: {crops: {paths: [tokens/*.bin], seq_len: 4}}\nstages: [shuffle: {seed: 3}, batch: {batch_size: 6, remainder: drop}]",
        "even",
        false,
    ),
    (
        "lanes",
        "source: {jsonl: {paths: [jsonl_zst/*.zst, jsonl_gz/*.gz], columns: [label], lanes: 6}}\nstages: [batch: {batch_size: 6, remainder: drop}]",
        "lanes",
        true,
    ),
];

/// State of the hosts of a pipeline, and the digest of what comes behind it.
#[derive(Serialize, Deserialize)]
struct Written {
    deal: String,
    keys: bool,
    /// Batches in front of the state, and the hosts that delivered them.
    after: u64,
    hosts: usize,
    checkpoint: serde_json::Value,
    /// The digest of all rows behind it, whoever delivers them.
    then: String,
}

fn deal(name: &str) -> Deal {
    match name {
        "even" => Deal::Even,
        "lanes" => Deal::Lanes,
        other => panic!("rows are dealt {other}"),
    }
}

pub(crate) fn write(folder: &Path) {
    std::fs::create_dir_all(folder.join("hosts")).unwrap();
    for (name, text, deal, keys) in PIPELINES {
        let file = folder.join("hosts").join(name).with_extension("yaml");
        std::fs::write(&file, states::in_data(text)).unwrap();
        if keys {
            let index = Command::new(env!("CARGO_BIN_EXE_gristmill"))
                .args(["index", "--keys", file.to_str().unwrap(), "--keys-dir", folder.join("keys").to_str().unwrap()])
                .output()
                .unwrap();
            assert!(index.status.success(), "{}", String::from_utf8_lossy(&index.stderr));
        }
        let mut written = Written {
            deal: deal.into(),
            keys,
            after: 2,
            hosts: 3,
            checkpoint: serde_json::Value::Null,
            then: String::new(),
        };
        let (_, state) = run(&pipeline(&file), folder, &written, 3, None, 2);
        written.then = run(&pipeline(&file), folder, &written, 1, Some(&state), u64::MAX).0.to_string();
        written.checkpoint = serde_json::to_value(&state).unwrap();
        write_json(&file.with_extension("json"), &written);
    }
}

/// Restores the states into one host, and into others than there were.
pub(crate) fn read(folder: &Path) {
    for (name, file) in named(&folder.join("hosts"), "json") {
        let (dataset, written): (_, Written) = (pipeline(&file.with_extension("yaml")), read_json(&file));
        let state = checkpoint(&written.checkpoint);
        for count in [1, 2, 3] {
            let (digest, _) = run(&dataset, folder, &written, count, Some(&state), u64::MAX);
            assert_eq!(digest.to_string(), written.then, "{name}, on {count} hosts");
        }
    }
}

/// Runs all hosts from `at` on for `steps` batches, or to the end: the digest of their rows, and their state.
fn run(
    dataset: &BoxIter<Element>,
    folder: &Path,
    written: &Written,
    count: usize,
    at: Option<&Checkpoint>,
    steps: u64,
) -> (RowDigest, Checkpoint) {
    let (mut digest, mut states) = (RowDigest::default(), Vec::new());
    for index in 0..count {
        let mut builder = dataset.clone().loader().deal(deal(&written.deal)).part(Part::of(index, count));
        if written.keys {
            builder = builder.keys(KeyFolder::new(folder.join("keys")).needed());
        }
        if let Some(at) = at {
            builder = builder.resume(at.clone());
        }
        let mut loader: Loader<_> = builder.build().unwrap_or_else(|e| panic!("{e}"));
        digest.add(deliver(&mut loader, steps));
        states.push(loader.state().unwrap());
        let part = loader.report().execution.part.unwrap();
        assert!(!written.keys || count == 1 || part.contains("plans"), "keys are of no use: {part}");
    }
    assert!(states.iter().all(|state| state.to_json() == states[0].to_json()), "all hosts have one state");
    (digest, states.remove(0))
}

fn deliver(loader: &mut Loader<impl IterDataset<Item = Element> + 'static>, steps: u64) -> RowDigest {
    let mut digest = RowDigest::default();
    for _ in 0..steps {
        let Some(batch) = loader.next() else { break };
        let batch = batch.unwrap();
        digest.add_batch(loader.delivered() - 1, loader.rows().unwrap(), &batch);
    }
    digest
}
