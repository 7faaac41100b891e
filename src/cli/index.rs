//! `gristmill index`: indices are built before anybody waits for them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Result;
use crate::source::IndexCache;
use crate::spec::Data;
use serde::Serialize;

use crate::cli::format::{bytes, grouped};
use crate::cli::{Outcome, output};

/// Builds the indices by which records are found, and keeps them beside the files as .NAME.gmi, or in a folder.
///
/// Files of text, TFRecord and tar have no index of their own: whoever opens one for the first time reads all of it. Small files
/// are read faster than an index is looked up, and formats with an index need none.
#[derive(clap::Args)]
#[command(after_help = crate::cli::EXIT_CODES)]
pub(crate) struct Args {
    /// Files, globs or folders
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Keep them in this folder, which pipeline files name by `index_cache`
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Indexed {
    file: PathBuf,
    format: &'static str,
    /// `None`: it is a stream.
    records: Option<u64>,
    /// Of its index, if there is one.
    index_bytes: Option<u64>,
    seconds: f64,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let files = Data::find(&args.data)?
        .into_iter()
        .map(|file| index(file, args.cache.as_deref()))
        .collect::<Result<Vec<_>>>()?;
    if args.json {
        output::json(&serde_json::json!({"files": files}));
        return Ok(Outcome::Done);
    }
    let row = |file: &Indexed| {
        vec![
            file.file.display().to_string(),
            file.format.to_owned(),
            file.records.map_or_else(|| "a stream".to_owned(), grouped),
            file.index_bytes.map_or_else(|| "none needed".to_owned(), bytes),
            format!("{:.2} s", file.seconds),
        ]
    };
    let rows: Vec<_> = files.iter().map(row).collect();
    output::data(&output::table(&["file", "format", "records", "index", "time"], &rows, &[1]));
    Ok(Outcome::Done)
}

fn index(file: PathBuf, folder: Option<&Path>) -> Result<Indexed> {
    let start = Instant::now();
    let data = Data::open_indexed(&file, folder)?;
    let cache = folder.map_or(IndexCache::Beside, |folder| IndexCache::Folder(folder.to_owned()));
    let index_bytes = cache.path_for(&file).and_then(|path| Some(std::fs::metadata(path).ok()?.len()));
    let (format, records) = (data.format(), data.records());
    Ok(Indexed { file, format, records, index_bytes, seconds: start.elapsed().as_secs_f64() })
}
