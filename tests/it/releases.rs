//! Files of every release of gristmill, which each that comes behind it reads: checkpoints, key files, indices of lanes, recordings of
//! runs, folders of sinks, and the pipeline files and data that they are of.
//!
//! A folder of `tests/releases` is one release; `tests/releases/README.md` says what is in it, `VERSIONS.md` which format is read until when.
//! `GRISTMILL_RELEASE=write cargo test --features full --test it releases::` writes the folder of the version in `Cargo.toml`, where there is none.
// Without `image`, stages that read images say that they yield bytes.
#![cfg(all(feature = "cli", feature = "formats", feature = "image"))]

mod hosts;
mod own;
mod runs;
mod states;

use std::fs;
use std::path::{Path, PathBuf};

use crate::pins::files;
use gristmill::element::OrderHash;
use gristmill::spec::Pipeline;
use gristmill::{BoxIter, Checkpoint, Element};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The folder of all releases.
fn releases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/releases")
}

/// The folders of releases, each copied to where it can be written to: sinks go on, and indices of files are kept beside them.
fn each_release(look: impl Fn(&str, &Path)) {
    let mut count = 0;
    for entry in fs::read_dir(releases()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let copy = tempfile::tempdir().unwrap();
            copy_all(&path, copy.path());
            look(path.file_name().unwrap().to_str().unwrap(), copy.path());
            count += 1;
        }
    }
    assert!(count > 0, "no release");
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_all(&path, &copy),
            false => drop(fs::copy(&path, &copy).unwrap()),
        }
    }
}

/// The files with this ending of a folder, by their names without it.
fn named(folder: &Path, ending: &str) -> Vec<(String, PathBuf)> {
    let path_of = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().path();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).map(path_of).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == ending));
    paths.sort();
    assert!(!paths.is_empty(), "nothing ends with {ending} in {}", folder.display());
    paths.into_iter().map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

/// The pipeline of a file.
fn pipeline(file: &Path) -> BoxIter<Element> {
    Pipeline::from_file(file).and_then(|p| p.build()).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// The state as the file has it, read as a trainer would.
fn checkpoint(json: &serde_json::Value) -> Checkpoint {
    Checkpoint::from_json(&json.to_string()).unwrap()
}

/// The number and the order hash of elements, and the error that ends them.
fn digest(elements: impl Iterator<Item = gristmill::Result<Element>>) -> String {
    let (mut hash, mut count) = (OrderHash::default(), 0);
    for element in elements {
        match element {
            Ok(element) => hash.update(&element),
            Err(error) => return format!("{count} elements, {hash}, then an error: {:?}", error.kind()),
        }
        count += 1;
    }
    format!("{count} elements, {hash}")
}

fn write_json(path: &Path, value: &impl Serialize) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, serde_json::to_string_pretty(value).unwrap() + "\n").unwrap();
}

fn read_json<T: DeserializeOwned>(path: &Path) -> T {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Writes what this version writes into an empty folder.
fn write_release(folder: &Path) {
    files::write_all(&folder.join("data"));
    states::write(folder);
    hosts::write(folder);
    runs::write(folder);
}

/// Reads what a version has written, and goes on with it.
fn read_release(folder: &Path) {
    states::read(folder);
    hosts::read(folder);
    runs::read(folder);
}

#[test]
fn what_releases_wrote_is_read_and_gone_on_with() {
    if std::env::var_os("GRISTMILL_RELEASE").is_some_and(|v| v == "write") {
        let folder = releases().join(env!("CARGO_PKG_VERSION"));
        assert!(!folder.exists(), "{} is there already, and is not overwritten", folder.display());
        write_release(&folder);
    }
    each_release(|version, folder| {
        println!("release {version}");
        read_release(folder);
    });
}

/// Writes what the next release would, and reads it: nothing is found out on the day of a release.
#[test]
fn what_this_version_writes_is_read_by_it() {
    let folder = tempfile::tempdir().unwrap();
    write_release(folder.path());
    read_release(folder.path());
}

/// A state that says the next element but one is told from what was written: what is compared depends on the state.
#[test]
fn another_position_than_the_one_that_was_written_is_found() {
    let folder = tempfile::tempdir().unwrap();
    files::write_all(&folder.path().join("data"));
    states::write(folder.path());
    states::read(folder.path());
    let file = folder.path().join("states/orders.json");
    let mut written: serde_json::Value = read_json(&file);
    let next = written.pointer_mut("/states/0/checkpoint/state/next_index").unwrap();
    *next = (next.as_u64().unwrap() + 1).into();
    write_json(&file, &written);
    let read = std::panic::catch_unwind(|| states::read(folder.path()));
    let told = *read.unwrap_err().downcast::<String>().unwrap();
    assert!(told.contains("orders after 1"), "{told}");
}
