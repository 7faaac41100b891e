//! Files of data, whatever their format: what the command line inspects and measures.

use std::path::{Path, PathBuf};

use super::chain::Chain;
use super::file_sources;
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset};
use crate::element::Element;
use crate::error::{Error, Result};
#[cfg(not(all(feature = "compress", feature = "parquet")))]
use crate::source::Format;
use crate::source::{Jsonl, Npy, Patterns, find};

/// Files of one format, opened.
#[derive(Debug)]
pub struct Data {
    format: &'static str,
    files: Vec<PathBuf>,
    chain: Chain,
}

/// A format that [`Data`] knows by the ending of file names.
struct Known {
    format: &'static str,
    endings: &'static [&'static str],
    open: fn(&[PathBuf], Option<&str>) -> Result<Chain>,
}

const JSONL_PACKED: &[&str] = &[".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst", ".json.gz", ".json.zst"];

const KNOWN: &[Known] = &[
    Known { format: "jsonl", endings: &[".jsonl", ".ndjson", ".json"], open: jsonl },
    Known { format: "lines", endings: &[".txt"], open: lines },
    Known { format: "jsonl", endings: JSONL_PACKED, open: jsonl_stream },
    Known { format: "lines", endings: &[".txt.gz", ".txt.zst"], open: line_stream },
    Known { format: "parquet", endings: &[".parquet"], open: parquet },
    Known { format: "npy", endings: &[".npy"], open: npy },
];

impl Data {
    /// Opens files, globs or folders; the ending of the first file says what all are. Where the format can, only `column` is read.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if nothing is found, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an
    /// ending that is not known and a format whose feature is off, and what opening reports.
    pub fn open(patterns: impl Patterns, column: Option<&str>) -> Result<Self> {
        let endings: Vec<&str> = KNOWN.iter().flat_map(|k| k.endings.iter().copied()).collect();
        let files = find(patterns, &endings)?;
        let Some(known) = files.first().and_then(|file| known(file)) else {
            let file = files.first().cloned().unwrap_or_default();
            return Err(Error::unsupported("the ending of this file name is not known")
                .path(file)
                .help(format!("known are {}", endings.join(", "))));
        };
        let chain = (known.open)(&files, column)?;
        Ok(Self { format: known.format, files, chain })
    }

    /// The name of the source in a pipeline file.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// The files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// How many records, where the format says so without reading all of it.
    pub fn records(&self) -> Option<u64> {
        match &self.chain {
            Chain::Map(ds) | Chain::Stream(ds, _) => Some(ds.len()),
            Chain::Lanes(..) | Chain::Iter(_) => None,
        }
    }

    /// The records in order.
    pub fn stream(self) -> BoxIter<Element> {
        self.chain.into_iter()
    }

    /// `f` of every record, in order; on many threads where the format has random access.
    pub fn map<U: Send + 'static>(self, f: impl Fn(Element) -> Result<U> + Send + Sync + 'static) -> BoxIter<U> {
        match self.chain {
            Chain::Map(ds) | Chain::Stream(ds, _) => ds.try_map(f).to_iter().boxed(),
            chain => chain.into_iter().map(f).boxed(),
        }
    }
}

fn known(file: &Path) -> Option<&'static Known> {
    let name = file.file_name()?.to_str()?.to_ascii_lowercase();
    KNOWN.iter().find(|known| known.endings.iter().any(|ending| name.ends_with(ending)))
}

fn jsonl(files: &[PathBuf], column: Option<&str>) -> Result<Chain> {
    let options = Jsonl::options();
    let source = match column {
        Some(column) => options.columns([column]).open(files)?,
        None => options.open(files)?,
    };
    Ok(source_of(source))
}

fn lines(files: &[PathBuf], _: Option<&str>) -> Result<Chain> {
    Ok(Chain::Map(file_sources::line_elements(crate::source::Lines::open(files)?, "text")))
}

#[cfg(feature = "compress")]
fn jsonl_stream(files: &[PathBuf], column: Option<&str>) -> Result<Chain> {
    let options = crate::source::StreamOptions::new();
    let options = if let Some(column) = column { options.columns([column]) } else { options };
    Ok(Chain::Iter(options.jsonl(files)?.boxed()))
}

#[cfg(feature = "compress")]
fn line_stream(files: &[PathBuf], _: Option<&str>) -> Result<Chain> {
    let lines = crate::source::StreamOptions::new().lines(files)?;
    Ok(Chain::Iter(file_sources::to_element("text").after(lines).boxed()))
}

#[cfg(feature = "parquet")]
fn parquet(files: &[PathBuf], column: Option<&str>) -> Result<Chain> {
    let options = crate::source::Parquet::options();
    let options = if let Some(column) = column { options.columns([column]) } else { options };
    Ok(source_of(options.open(files)?))
}

#[cfg(not(feature = "compress"))]
fn jsonl_stream(files: &[PathBuf], _: Option<&str>) -> Result<Chain> {
    Err(Format::JsonlStream.lacking().path(&files[0]))
}

#[cfg(not(feature = "compress"))]
fn line_stream(files: &[PathBuf], _: Option<&str>) -> Result<Chain> {
    Err(Format::LineStream.lacking().path(&files[0]))
}

#[cfg(not(feature = "parquet"))]
fn parquet(files: &[PathBuf], _: Option<&str>) -> Result<Chain> {
    Err(Format::Parquet.lacking().path(&files[0]))
}

fn npy(files: &[PathBuf], _: Option<&str>) -> Result<Chain> {
    Ok(source_of(Npy::open(files)?))
}

fn source_of(source: impl crate::dataset::map::RandomAccess<Record = Element> + 'static) -> Chain {
    Chain::Map(BoxMap::new(crate::dataset::map::Source::new(source)))
}
