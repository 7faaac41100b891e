//! Checkpoints of every stage, in the middle of a pass, and what came behind them.

use std::fs;
use std::path::Path;

use gristmill::{BoxIter, Element, Executor, Load};
use serde::{Deserialize, Serialize};

use super::{checkpoint, digest, named, own, pipeline, read_json, write_json};
use crate::pins::pipelines;

/// Elements in front of the states that are kept, and the elements that are looked at behind each.
const AFTER: [usize; 3] = [1, 5, 12];
const MOST: usize = 150;

/// States of a pipeline, and digests of what comes behind them.
#[derive(Serialize, Deserialize)]
struct Written {
    /// The digest of its first elements.
    from_start: String,
    states: Vec<State>,
}

#[derive(Serialize, Deserialize)]
struct State {
    after: u64,
    /// The digest of the elements that follow.
    then: String,
    checkpoint: serde_json::Value,
}

/// Writes the pipeline files, and the states of them and of pipelines with functions.
pub(crate) fn write(folder: &Path) {
    let files = folder.join("pipelines");
    fs::create_dir_all(&files).unwrap();
    for (name, text) in pipelines::PIPELINES {
        fs::write(files.join(name).with_extension("yaml"), in_data(text)).unwrap();
        let written = written(&pipeline(&files.join(name).with_extension("yaml")));
        write_json(&folder.join("states").join(name).with_extension("json"), &written);
    }
    for (name, dataset) in own::pipelines() {
        write_json(&folder.join("states_of_functions").join(name).with_extension("json"), &written(&dataset));
    }
}

/// The pipeline where its data lie in `data` beside the folder of pipelines.
pub(crate) fn in_data(text: &str) -> String {
    let place = |text: String, before: &str| text.replace(before, &format!("{before}../data/"));
    let mut text = format!("{text}\n");
    for before in ["paths: [", "prefixes: [", "tokenizer: "] {
        text = place(text, before);
    }
    // The second path of a list.
    text.replace("zst, jsonl_gz", "zst, ../data/jsonl_gz")
}

fn written(dataset: &BoxIter<Element>) -> Written {
    let start = || dataset.clone().loader().build().unwrap();
    let states = AFTER.map(|after| {
        let mut loader = start();
        loader.by_ref().take(after).for_each(drop);
        let state = loader.state().unwrap();
        State {
            after: state.delivered,
            checkpoint: serde_json::to_value(&state).unwrap(),
            then: digest(loader.take(MOST)),
        }
    });
    Written { from_start: digest(start().take(MOST)), states: states.into() }
}

/// Restores every state of a release, goes on, and compares.
pub(crate) fn read(folder: &Path) {
    for (name, file) in named(&folder.join("states"), "json") {
        check(&name, &pipeline(&folder.join("pipelines").join(&name).with_extension("yaml")), &read_json(&file));
    }
    let own = own::pipelines();
    for (name, file) in named(&folder.join("states_of_functions"), "json") {
        let (_, dataset) = own.iter().find(|(own, _)| *own == name).unwrap_or_else(|| panic!("no pipeline {name}"));
        check(&name, dataset, &read_json(&file));
    }
}

fn check(name: &str, dataset: &BoxIter<Element>, written: &Written) {
    assert_eq!(
        digest(dataset.clone().loader().build().unwrap().take(MOST)),
        written.from_start,
        "{name} from its start"
    );
    assert_eq!(written.states.len(), AFTER.len(), "{name}");
    for (state, executor) in written.states.iter().zip([Executor::Inline, Executor::Threads(2), Executor::Inline]) {
        let resumed = dataset.clone().loader().executor(executor).resume(checkpoint(&state.checkpoint)).build();
        let resumed = resumed.unwrap_or_else(|e| panic!("{name} after {}: {e}", state.after));
        assert_eq!(resumed.delivered(), state.after, "{name}");
        assert_eq!(digest(resumed.take(MOST)), state.then, "{name} after {}", state.after);
    }
}
