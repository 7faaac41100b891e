//! What earlier releases wrote is read for ever: a folder of each release in `tests/releases/` with pipelines, data, states, key files, indices of
//! lanes and digests. Every state is restored and gone on with, every key file opened and planned by, and all digests compared.
//!
//! `GRISTMILL_RELEASE=write cargo test --test releases` writes the folder of this crate's version, once: one that is there is not overwritten.
#![cfg(all(feature = "spec", feature = "compress"))]

#[path = "releases/data.rs"]
mod data;
#[path = "releases/keys.rs"]
mod keys;
#[path = "releases/passes.rs"]
mod passes;
#[path = "releases/pipelines.rs"]
mod pipelines;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gristmill::Checkpoint;
use serde::{Deserialize, Serialize};

use passes::Rest;

/// What a release says of one pipeline.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    /// All of a pass: elements, order hash and, of batches that hosts share, the digest of rows.
    whole: Rest,
    /// What follows behind so many elements; the state there is `states/NAME.ELEMENTS.json`.
    behind: BTreeMap<u64, Rest>,
}

type Digests = BTreeMap<String, Told>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases")
}

/// The folders of releases, oldest first by name.
fn releases() -> Vec<PathBuf> {
    let entries = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// A copy, as passes may keep indices beside what they read, and nothing may depend on where a folder lies or when it was written.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copied(&entry.path(), &target),
            false => fs::write(&target, fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn state_file(folder: &Path, name: &str, at: u64) -> PathBuf {
    folder.join("states").join(format!("{name}.{at}.json"))
}

fn digests(folder: &Path) -> Digests {
    serde_json::from_str(&read(&folder.join("digests.json"))).unwrap()
}

/// Counts of hosts that go on from a state, whatever their number was when it was saved.
const HOSTS: [usize; 2] = [1, 2];

#[test]
fn states_of_every_release_are_gone_on_with() {
    write_if_asked();
    for release in releases() {
        let copy = tempfile::tempdir().unwrap();
        copied(&release, copy.path());
        let folder = copy.path();
        for (name, told) in digests(folder) {
            let place = format!("{}: {name}", release.display());
            assert_eq!(passes::alone(folder, &name, None).0, told.whole, "{place}: a pass from the start");
            for (&at, expected) in &told.behind {
                let state = Checkpoint::from_json(&read(&state_file(folder, &name, at)))
                    .unwrap_or_else(|e| panic!("{place}: the state behind {at}: {e}"));
                assert_eq!(state.delivered, at, "{place}");
                assert_eq!(passes::alone(folder, &name, Some(&state)).0, *expected, "{place}: behind {at}");
                if let Some(rows) = &expected.rows {
                    for count in HOSTS {
                        let (digest, _) = passes::hosts(folder, &name, count, Some(&state), u64::MAX);
                        assert_eq!(digest, *rows, "{place}: {count} hosts behind {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn no_state_of_a_release_is_forgotten() {
    write_if_asked();
    let releases = releases();
    assert!(!releases.is_empty());
    for release in releases {
        let digests = digests(&release);
        let told: usize = digests.values().map(|told| told.behind.len()).sum();
        assert!(told > 0 && told == fs::read_dir(release.join("states")).unwrap().count(), "{}", release.display());
        for file in fs::read_dir(release.join("pipelines")).unwrap() {
            let name = file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
            assert!(digests.contains_key(&name), "{}: no digest of {name}", release.display());
        }
    }
}

#[test]
fn key_files_and_indices_of_lanes_of_every_release_are_read() {
    write_if_asked();
    for release in releases() {
        let told: BTreeMap<String, keys::Content> = serde_json::from_str(&read(&release.join("keys.json"))).unwrap();
        assert_eq!(keys::contents(&release.join("keys")), told, "{}", release.display());
        assert!(["gmk", "gml"].iter().all(|kind| told.keys().any(|name| name.ends_with(kind))), "{told:?}");
    }
}

/// Writes the folder of this version, where that is asked for.
fn write_if_asked() {
    static WRITTEN: std::sync::Once = std::sync::Once::new();
    WRITTEN.call_once(|| {
        if std::env::var_os("GRISTMILL_RELEASE").is_some_and(|asked| asked == "write") {
            write(&root().join(env!("CARGO_PKG_VERSION")));
        }
    });
}

/// Elements of a pass behind which a state is kept: near the begin, in the middle, and before the end.
fn places(elements: u64) -> Vec<u64> {
    let mut places = vec![1.min(elements), elements * 2 / 5, elements - elements.min(2)];
    places.dedup();
    places
}

fn write(folder: &Path) {
    assert!(!folder.exists(), "{} is there: what a release wrote is not written again", folder.display());
    // All or nothing: it appears under its name when it is whole.
    let begun = tempfile::tempdir_in(folder.parent().unwrap()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    for part in ["data", "pipelines", "states", "keys"] {
        fs::create_dir(copy.path().join(part)).unwrap();
    }
    data::write(&copy.path().join("data"));
    for (name, text) in pipelines::PIPELINES {
        fs::write(copy.path().join("pipelines").join(format!("{name}.yaml")), format!("{}\n", text.trim())).unwrap();
    }
    // What passes keep beside the data is no part of it.
    copied(copy.path(), begun.path());
    let names = pipelines::PIPELINES.iter().map(|(name, _)| *name).chain(pipelines::OF_CODE.iter().copied());
    let told: Digests = names.map(|name| (name.to_owned(), tell(copy.path(), begun.path(), name))).collect();
    copied(&copy.path().join("keys"), &begun.path().join("keys"));
    let contents = keys::contents(&begun.path().join("keys"));
    let json = |value: String| value + "\n";
    fs::write(begun.path().join("digests.json"), json(serde_json::to_string_pretty(&told).unwrap())).unwrap();
    fs::write(begun.path().join("keys.json"), json(serde_json::to_string_pretty(&contents).unwrap())).unwrap();
    fs::rename(begun.keep(), folder).unwrap();
}

/// Runs one pipeline, keeps states, and says what it yields.
fn tell(work: &Path, into: &Path, name: &str) -> Told {
    let whole = passes::alone(work, name, None).0;
    let shared = passes::is_shared(name);
    let mut behind = BTreeMap::new();
    for at in places(whole.elements) {
        let state = match shared {
            // The state that three hosts have together is that of one.
            true => passes::hosts(work, name, 3, None, at).1,
            false => passes::state(work, name, at),
        };
        assert_eq!(state.to_json(), passes::state(work, name, at).to_json(), "{name}");
        fs::write(state_file(into, name, at), state.to_json() + "\n").unwrap();
        behind.insert(at, passes::alone(work, name, Some(&state)).0);
    }
    Told { whole, behind }
}
