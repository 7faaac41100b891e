//! Manifests: lists of the valid files in a folder, written by a sink.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;

use super::{Folder, description};
use crate::error::{Error, Result};
use crate::place::Location;

/// Name of the file in which a [sink](crate::sink) lists the valid shards.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Required part of a manifest: see [`Manifest`](crate::sink::Manifest).
#[derive(Deserialize)]
struct Manifest {
    shards: Vec<Shard>,
    /// Files in addition to the shards.
    #[serde(default)]
    files: Vec<Name>,
}

#[derive(Deserialize)]
struct Shard {
    files: Vec<Name>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// First bytes of a manifest. A file with the manifest's name may contain anything else.
const BEGINNING: &[u8] = b"{\n  \"gristmill_manifest\":";

/// Returns the files of a folder's manifest whose names end with one of `endings`. Returns `None` if the folder has no
/// manifest. A shard that is not listed is not valid yet.
///
/// # Errors
/// [`ErrorKind::State`](crate::ErrorKind::State) if the manifest is damaged, or if it lists a path outside the folder.
pub(crate) fn listed(folder: &Location, endings: &[&str]) -> Result<Option<Vec<Location>>> {
    let path = folder.as_ref().join(MANIFEST);
    let text = match folder {
        Location::Local(_) => manifest(&path)?,
        Location::Object(url) => Folder::open(url)?.read(MANIFEST)?.filter(|text| text.starts_with(BEGINNING)),
    };
    let Some(text) = text else { return Ok(None) };
    let damaged = |what: String| Error::state(format!("a damaged manifest: {what}")).path(&path);
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    let files = manifest.shards.into_iter().flat_map(|shard| shard.files).chain(manifest.files);
    let names = files.filter(|file| endings.iter().any(|ending| file.name.ends_with(ending)));
    let file = |Name { name }| {
        let is_name = Path::new(&name).file_name().is_some_and(|file| file == &*name);
        if is_name { Ok(folder.join(name)) } else { Err(damaged(format!("{name:?} is no name of a file"))) }
    };
    names.map(file).collect::<Result<_>>().map(Some)
}

/// Returns the contents of the file, if the file exists and is a manifest.
fn manifest(path: &Path) -> Result<Option<Vec<u8>>> {
    let mut beginning = [0; BEGINNING.len()];
    let begun = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    match begun {
        Ok(()) if beginning == BEGINNING => description(path),
        Err(error) if ![ErrorKind::NotFound, ErrorKind::UnexpectedEof].contains(&error.kind()) => {
            Err(Error::io(error, path))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_says_which_files_count() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(temp.path().join(name), text).unwrap();
        let listed = |endings: &[&str]| listed(&temp.path().into(), endings);
        assert!(listed(&[".jsonl"]).unwrap().is_none());
        write("manifest.json", "{\"audio\": 1}\n");
        assert!(listed(&[".jsonl"]).unwrap().is_none());
        let of = |name: &str| {
            format!("{{\n  \"gristmill_manifest\": 1, \"shards\": [{{\"files\": [{{\"name\": {name:?}}}]}}]}}")
        };
        write("manifest.json", &of("b.jsonl"));
        write("a.jsonl", "");
        write("b.jsonl", "");
        assert_eq!(crate::source::find(temp.path(), &[".jsonl", ".json"]).unwrap(), [temp.path().join("b.jsonl")]);
        for outside in ["../b.jsonl", "/b.jsonl", "..", ""] {
            write("manifest.json", &of(outside));
            assert!(listed(&[""]).unwrap_err().message().contains("is no name"), "{outside}");
        }
    }
}
