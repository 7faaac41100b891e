//! Key files and indices of lanes: all that is in them.

use std::collections::BTreeMap;
use std::path::Path;

use gristmill::keys::{KeyFile, LaneFile};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a file holds, however it lies there.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Content {
    /// Stages and sources of its head.
    head: Vec<String>,
    elements: u64,
    /// A hash of all keys, or of all marks.
    sha256: String,
}

/// The content of each file of a folder.
pub(crate) fn contents(folder: &Path) -> BTreeMap<String, Content> {
    let mut contents = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        let content = if name.ends_with(".gml") { lanes(&path) } else { keys(&path) };
        contents.insert(name, content);
    }
    contents
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keys(path: &Path) -> Content {
    let file = KeyFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let (mut hash, mut lens) = (Sha256::new(), Vec::new());
    for slot in 0..file.len() {
        lens.clear();
        let key = file.key(slot, &mut lens).unwrap_or_else(|e| panic!("{e}"));
        hash.update(format!("{} {lens:?}\n", key.elements()));
    }
    let head = file.head();
    let lines = [&head.stages[..], &head.sources, &head.columns].concat();
    Content { head: lines, elements: file.elements(), sha256: hex(hash) }
}

fn lanes(path: &Path) -> Content {
    let file = LaneFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let (head, mut hash) = (file.head(), Sha256::new());
    for lane in 0..head.lanes {
        let elements = file.elements_of(lane);
        hash.update(format!("{elements}\n"));
        for number in 1..elements.div_ceil(head.every) {
            hash.update(file.mark(lane, number).unwrap_or_else(|e| panic!("{e}")));
        }
    }
    Content { head: [&head.stages[..], &head.files].concat(), elements: file.elements(), sha256: hex(hash) }
}
