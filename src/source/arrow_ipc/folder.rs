//! Folders written by `Dataset.save_to_disk` of Hugging Face's `datasets`.

use std::path::{Component, Path};

use serde::Deserialize;

use super::features::features;
use crate::element::Name;
use crate::error::{Error, ErrorKind, Result};
use crate::mmap::Access;
use crate::place::Location;
use crate::source::arrow::kind::Kind;
use crate::source::content::{self, Content};
use crate::source::detect::detect_folder;
use crate::source::files::{Patterns, Renamed};
use crate::source::formats::Format;

/// File that lists the data files, in order.
pub(super) const STATE: &str = "state.json";
/// File that describes the data set. If it has no features, they come from the data files.
pub(super) const INFO: &str = "dataset_info.json";
/// File that lists the splits: data sets in subfolders.
const SPLITS: &str = "dataset_dict.json";

/// Fields that are read from `state.json`.
#[derive(Deserialize)]
struct State {
    #[serde(rename = "_data_files")]
    data_files: Vec<DataFile>,
    /// Row selections of old versions, as files of row numbers.
    #[serde(rename = "_indices_data_files", default)]
    indices: Option<Vec<DataFile>>,
}

#[derive(Deserialize)]
struct DataFile {
    filename: String,
}

/// Returns the text of `state.json` for these files.
pub(crate) fn state(names: &[String], fingerprint: u64) -> String {
    let files: Vec<_> = names.iter().map(|name| serde_json::json!({ "filename": name })).collect();
    let state = serde_json::json!({
        "_data_files": files,
        "_fingerprint": format!("{fingerprint:016x}"),
        "_format_columns": null,
        "_format_kwargs": {},
        "_format_type": null,
        "_output_all_columns": false,
        "_split": null,
    });
    format!("{state:#}\n")
}

/// Returns the text of `dataset_info.json`, with the features of the columns if they are known.
pub(crate) fn info(columns: Option<&[(Name, Kind)]>) -> String {
    let mut info = serde_json::json!({ "citation": "", "description": "", "homepage": "", "license": "" });
    if let Some(columns) = columns {
        info["features"] = features(columns);
    }
    format!("{info:#}\n")
}

/// Fields that are read from `dataset_dict.json`.
#[derive(Deserialize)]
struct Splits {
    splits: Vec<String>,
}

/// Replaces folders that are data sets with their files.
pub(super) fn expand<P: Patterns>(patterns: P) -> Result<Renamed<P>> {
    let mut all = Vec::new();
    for location in patterns.patterns().into_iter().map(Location::from) {
        let files = match &location {
            Location::Local(path) if path.is_dir() && detect_folder(path) == Some(Format::Arrow) => {
                Some(files(&location)?)
            }
            Location::Local(_) => None,
            Location::Object(_) => far_files(&location)?,
        };
        all.extend(files.unwrap_or_else(|| vec![location]).into_iter().map(Location::into_path));
    }
    Ok(Renamed { names: all, given: patterns })
}

/// Returns the files of a folder in a store, or `None` if the folder is not a data set, judging by its contents.
fn far_files(folder: &Location) -> Result<Option<Vec<Location>>> {
    let is_pattern = folder.as_ref().to_string_lossy().contains(['*', '?', '[', '{']);
    if is_pattern || folder.as_ref().extension().is_some() {
        return Ok(None);
    }
    if let Some(content) = content::beside(&folder.join(STATE), Access::Normal)? {
        return files_of(folder, &content).map(Some);
    }
    match content::beside(&folder.join(SPLITS), Access::Normal)? {
        Some(content) => Err(several(folder, &content)?),
        None => Ok(None),
    }
}

/// Returns the files of a data set, in its order.
fn files(folder: &Location) -> Result<Vec<Location>> {
    let open = |name| Content::open(&folder.join(name), Access::Normal);
    if folder.as_ref().join(SPLITS).is_file() {
        return Err(several(folder, &open(SPLITS)?)?);
    }
    files_of(folder, &open(STATE)?)
}

/// Returns the error for a folder that has several splits instead of a single data set.
fn several(folder: &Location, splits: &Content) -> Result<Error> {
    let splits = read::<Splits>(&folder.join(SPLITS), splits)?.splits;
    let folders: Vec<_> = splits.iter().map(|split| folder.as_ref().join(split).display().to_string()).collect();
    let error = Error::config("several data sets, the splits of one, lie in this folder").path(folder);
    Ok(error.help(format!("name the one you want: {}", folders.join(", "))))
}

fn files_of(folder: &Location, state: &Content) -> Result<Vec<Location>> {
    let path = folder.join(STATE);
    let state: State = read(&path, state)?;
    if state.indices.is_some_and(|files| !files.is_empty()) {
        return Err(Error::unsupported("rows are chosen by a file of their numbers")
            .path(path)
            .help("save it again: `datasets` writes the chosen rows themselves since version 2"));
    }
    if state.data_files.is_empty() {
        return Err(Error::data("names no files").path(path));
    }
    let file = |file: DataFile| match Path::new(&file.filename).components().collect::<Vec<_>>()[..] {
        [Component::Normal(name)] => Ok(folder.join(name)),
        _ => Err(Error::data(format!("{:?} is no file of this folder", file.filename)).path(&path)),
    };
    state.data_files.into_iter().map(file).collect()
}

fn read<T: for<'a> Deserialize<'a>>(path: &Location, content: &Content) -> Result<T> {
    let text = content.description().map_err(|e| e.path(path))?;
    serde_json::from_slice(text.as_bytes()).map_err(|e| Error::new(ErrorKind::Data, e.to_string()).path(path))
}
