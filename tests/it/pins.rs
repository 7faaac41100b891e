//! Everything that users' checkpoints and files depend on, pinned by snapshots: the texts that stages are known by, fingerprints,
//! states, the order and the bytes of elements, and the bytes of files that are written.
//!
//! A change of a snapshot here is a change of the format of states or of data: it breaks runs that users have begun.
#![cfg(all(feature = "spec", feature = "formats"))]

mod arguments;
mod cases;
pub(crate) mod files;
pub(crate) mod pipelines;
mod stages;

use std::fmt::Write;
use std::path::Path;

use gristmill::element::OrderHash;
use gristmill::spec::{Format, Pipeline};
use gristmill::{BoxIter, Checkpoint, Element, Load};

/// Elements before the state that is pinned, and those that are looked at in all.
const BEFORE: usize = 5;
const MOST: usize = 200;

#[test]
fn pipelines_are_known_by_what_they_were_known_by() {
    let folder = tempfile::tempdir().unwrap();
    files::write_all(folder.path());
    for (name, text) in pipelines::PIPELINES {
        insta::assert_snapshot!(*name, pinned(folder.path(), text), &text.trim());
    }
}

#[test]
fn files_that_are_written_keep_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    files::write_all(folder.path());
    insta::assert_snapshot!("files", files::hashes(folder.path()));
}

/// Describes all of a pipeline that outlives a run.
fn pinned(folder: &Path, text: &str) -> String {
    let pipeline = || -> BoxIter<Element> {
        Pipeline::from_text(text, Format::Yaml, folder)
            .and_then(|p| p.build())
            .unwrap_or_else(|e| panic!("{text}\n{e}"))
    };
    let mut loader = pipeline().loader().build().unwrap();
    let mut hash = OrderHash::default();
    let mut out = String::new();
    for element in loader.by_ref().take(BEFORE) {
        hash.update(&element.unwrap());
    }
    let state = loader.state().unwrap();
    writeln!(out, "fingerprint: {}", state.fingerprint).unwrap();
    state.pipeline.iter().for_each(|line| writeln!(out, "  {line}").unwrap());
    writeln!(out, "state after {}: {}", state.delivered, state.state).unwrap();
    writeln!(out, "order hash: {hash}").unwrap();
    let on = rest(loader, hash);
    writeln!(out, "{on}").unwrap();
    let resumed = pipeline().loader().resume(Checkpoint::from_json(&state.to_json()).unwrap()).build().unwrap();
    assert_eq!(rest(resumed, hash), on, "after a resume: {text}");
    out
}

/// Takes what follows in; returns how many there were, and the order hash.
fn rest(elements: impl Iterator<Item = gristmill::Result<Element>>, mut hash: OrderHash) -> String {
    let mut count = BEFORE;
    for element in elements.take(MOST - BEFORE) {
        match element {
            Ok(element) => hash.update(&element),
            Err(error) => return format!("order hash after {count}: {hash}\nerror: {error}"),
        }
        count += 1;
    }
    format!("order hash after {count}: {hash}")
}
