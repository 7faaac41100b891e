//! `gristmill index`: builds indices before a run needs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::place::{self, Location};
use crate::source::{IndexCache, TokenLayout, detect, size};
use crate::spec::Data;
use crate::{Error, Result};
use serde::Serialize;

use crate::cli::bad::{OnBad, Skipped};
use crate::cli::format::{bytes, grouped, plural};
use crate::cli::layout::Layout;
use crate::cli::{Outcome, examples, output};

/// Builds indices of text, TFRecord and tar files ahead of a run
///
/// These files have no index of their own: the first run that opens one reads all of it. An index is kept beside its file as .NAME.gmi, or in
/// a folder. Files under 8 MiB share one index, .gmi in their folder, if they have 8 MiB together. Fewer bytes are read faster than an
/// index, and formats with an index need none.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill index data/*.jsonl"
    "gristmill index data/ --cache /fast/indices"
    "gristmill index --keys pipeline.yaml"
))]
pub(crate) struct Args {
    /// Files, globs or folders
    #[arg(required_unless_present = "keys")]
    data: Vec<PathBuf>,
    /// Make the key files of this pipeline instead
    ///
    /// They hold what its filters keep and the lengths of its elements. Hosts plan the rows of other hosts by them.
    #[arg(long, value_name = "PIPELINE", conflicts_with_all = ["data", "cache", "layout"])]
    keys: Option<PathBuf>,
    /// Folder of key files [default: as in the pipeline file, or NAME.keys beside it]
    #[arg(long, value_name = "DIR", requires = "keys")]
    keys_dir: Option<PathBuf>,
    /// Folder of the indices, which pipeline files name by `index_cache`
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    layout: Layout,
    #[command(flatten)]
    on_bad: OnBad,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Indexed {
    /// File, or folder of several small files.
    file: PathBuf,
    files: usize,
    format: &'static str,
    /// Number of records; `None` for a stream.
    records: Option<u64>,
    /// Size of the index, if there is an index.
    index_bytes: Option<u64>,
    seconds: f64,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    if let Some(pipeline) = &args.keys {
        return super::keys::main(pipeline, args.keys_dir.as_deref(), args.json);
    }
    let (mut files, layout) = (Vec::new(), args.layout.of(&args.data)?);
    let index = |files: &[PathBuf]| index(files, layout, args.cache.as_deref());
    let mut skipped = Skipped::default();
    for part in parts(Data::find(&args.data)?, |error| skipped.shard(error, &args.on_bad))? {
        let indexed = match index(&part) {
            // The files may not be a single data set, for example tables with different columns.
            Err(_) if part.len() > 1 => part.into_iter().map(|file| index(&[file])).collect(),
            indexed => vec![indexed],
        };
        for indexed in indexed {
            match indexed {
                Ok(indexed) => files.push(indexed),
                Err(error) => skipped.shard(error, &args.on_bad)?,
            }
        }
    }
    if args.json {
        output::json(&serde_json::json!({"files": files, "skipped": skipped.shards}));
        return Ok(Outcome::Done);
    }
    let row = |file: &Indexed| {
        vec![
            match file.files {
                1 => file.file.display().to_string(),
                many => format!("{} of {}", plural(many as u64, "small file"), file.file.display()),
            },
            file.format.to_owned(),
            file.records.map_or_else(|| "a stream".to_owned(), grouped),
            file.index_bytes.map_or_else(|| "none needed".to_owned(), bytes),
            format!("{:.2} s", file.seconds),
        ]
    };
    let rows: Vec<_> = files.iter().map(row).collect();
    output::data(&output::table(&["file", "format", "records", "index", "time"], &rows, &[1]));
    output::data(&skipped.text());
    Ok(Outcome::Done)
}

/// Groups the files that are opened together: each file alone, except small files of a folder that share an index.
fn parts(files: Vec<PathBuf>, mut skip: impl FnMut(Error) -> Result<()>) -> Result<Vec<Vec<PathBuf>>> {
    let (mut parts, mut small) = (Vec::new(), BTreeMap::<_, (u64, Vec<PathBuf>)>::new());
    for file in files {
        let format = match detect(&file) {
            Ok(format) => format,
            Err(error) => {
                skip(error)?;
                continue;
            }
        };
        let bytes = if format.is_indexed() { size(&file)? } else { IndexCache::MIN_BYTES };
        if bytes < IndexCache::MIN_BYTES {
            let (total, files) = small.entry((place::folder_of(&file), format.source())).or_default();
            *total += bytes;
            files.push(file);
        } else {
            parts.push(vec![file]);
        }
    }
    for (total, files) in small.into_values() {
        match total < IndexCache::MIN_BYTES {
            true => parts.extend(files.into_iter().map(|file| vec![file])),
            false => parts.push(files),
        }
    }
    Ok(parts)
}

fn index(files: &[PathBuf], layout: TokenLayout, folder: Option<&Path>) -> Result<Indexed> {
    let start = Instant::now();
    let data = Data::open_indexed(files, layout, folder)?;
    let cache = folder.map_or(IndexCache::Beside, |folder| IndexCache::Folder(folder.to_owned()));
    let first = Location::from(&files[0]);
    let (file, path) = match files {
        [_] => (place::shown(&files[0]).into_owned(), cache.path_for(&first)),
        _ => (place::folder_of(&files[0]), cache.path_for_small(&first.beside(place::folder_of))),
    };
    let index_bytes = path.and_then(|path| Some(std::fs::metadata(path).ok()?.len()));
    let (format, records) = (data.format(), data.records());
    let seconds = start.elapsed().as_secs_f64();
    Ok(Indexed { file, files: files.len(), format, records, index_bytes, seconds })
}
