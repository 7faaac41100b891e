//! Files of data, whatever their format: what the command line inspects and measures.

use std::path::{Path, PathBuf};

use super::chain::Chain;
use super::file_sources;
use crate::dataset::map::RandomAccess;
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset};
use crate::element::{Array, Element};
use crate::error::{Error, Result};
use crate::source::{Format, Jsonl, Npy, Patterns, TokenLayout, Tokens, detect, find};

/// Files of one format, opened.
#[derive(Debug)]
pub struct Data {
    format: &'static str,
    files: Vec<PathBuf>,
    chain: Chain,
}

/// A format that [`Data`] knows, by content where that says what it is, else by the ending of file names.
struct Known {
    format: &'static str,
    endings: &'static [&'static str],
    open: fn(&[PathBuf], &Wanted<'_>) -> Result<Chain>,
}

/// What is wanted of files.
struct Wanted<'a> {
    /// Only this column, where the format can.
    column: Option<&'a str>,
    layout: TokenLayout,
}

const JSONL_PACKED: &[&str] = &[".jsonl.gz", ".jsonl.zst", ".ndjson.gz", ".ndjson.zst", ".json.gz", ".json.zst"];

const KNOWN: &[Known] = &[
    Known { format: "jsonl", endings: &[".jsonl", ".ndjson", ".json"], open: jsonl },
    Known { format: "lines", endings: &[".txt"], open: lines },
    Known { format: "jsonl", endings: JSONL_PACKED, open: jsonl_stream },
    Known { format: "lines", endings: &[".txt.gz", ".txt.zst"], open: line_stream },
    Known { format: "parquet", endings: &[".parquet"], open: parquet },
    Known { format: "array_record", endings: &[".array_record", ".arrayrecord"], open: array_record },
    Known {
        format: "tfrecord",
        endings: &[".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrecords.gz"],
        open: tfrecord,
    },
    Known { format: "npy", endings: &[".npy"], open: npy },
    Known { format: "npz", endings: &[".npz"], open: npz },
    Known { format: "tokens", endings: &[".bin"], open: tokens },
];

impl Data {
    /// Opens files, globs or folders; the first file says what all are. Where the format can, only `column` is read.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if nothing is found, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an
    /// ending that is not known and a format whose feature is off, and what opening reports.
    pub fn open(patterns: impl Patterns, column: Option<&str>) -> Result<Self> {
        Self::open_with(patterns, column, TokenLayout::Detect)
    }

    /// The same, where `.bin` files are laid out so. Each of them is one record, as an `.npz` file is.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`ErrorKind::Config`](crate::ErrorKind::Config) if `layout` leaves open what the ids are.
    pub fn open_with(patterns: impl Patterns, column: Option<&str>, layout: TokenLayout) -> Result<Self> {
        let endings: Vec<&str> = KNOWN.iter().flat_map(|k| k.endings.iter().copied()).collect();
        let files = find(patterns, &endings)?;
        let Some(known) = files.first().and_then(|file| known(file)) else {
            let file = files.first().cloned().unwrap_or_default();
            return Err(Error::unsupported("the ending of this file name is not known")
                .path(file)
                .help(format!("known are {}", endings.join(", "))));
        };
        let chain = (known.open)(&files, &Wanted { column, layout })?;
        Ok(Self { format: known.format, files, chain })
    }

    /// The name of the format; of the source in a pipeline file, where there is one.
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

/// Formats whose files go by many names, and say themselves what they are.
const BY_CONTENT: [Format; 3] = [Format::ArrayRecord, Format::TfRecord, Format::TfRecordStream];

fn known(file: &Path) -> Option<&'static Known> {
    if let Some(format) = detect(file).ok().filter(|format| BY_CONTENT.contains(format)) {
        let name = if format == Format::TfRecordStream { "tfrecord" } else { format.as_str() };
        return KNOWN.iter().find(|known| known.format == name);
    }
    let name = file.file_name()?.to_str()?.to_ascii_lowercase();
    KNOWN.iter().find(|known| known.endings.iter().any(|ending| name.ends_with(ending)))
}

fn jsonl(files: &[PathBuf], &Wanted { column, .. }: &Wanted<'_>) -> Result<Chain> {
    let options = Jsonl::options();
    let source = match column {
        Some(column) => options.columns([column]).open(files)?,
        None => options.open(files)?,
    };
    Ok(source_of(source))
}

fn lines(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Ok(Chain::Map(file_sources::line_elements(crate::source::Lines::open(files)?, "text")))
}

#[cfg(feature = "compress")]
fn jsonl_stream(files: &[PathBuf], &Wanted { column, .. }: &Wanted<'_>) -> Result<Chain> {
    let options = crate::source::StreamOptions::new();
    let options = if let Some(column) = column { options.columns([column]) } else { options };
    Ok(Chain::Iter(options.jsonl(files)?.boxed()))
}

#[cfg(feature = "compress")]
fn line_stream(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    let lines = crate::source::StreamOptions::new().lines(files)?;
    Ok(Chain::Iter(file_sources::to_element("text").after(lines).boxed()))
}

#[cfg(feature = "parquet")]
fn parquet(files: &[PathBuf], &Wanted { column, .. }: &Wanted<'_>) -> Result<Chain> {
    let options = crate::source::Parquet::options();
    let options = if let Some(column) = column { options.columns([column]) } else { options };
    Ok(source_of(options.open(files)?))
}

#[cfg(feature = "array_record")]
fn array_record(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Ok(Chain::Map(file_sources::record_elements(crate::source::ArrayRecord::open(files)?, file_sources::RECORD)))
}

#[cfg(feature = "tf_record")]
fn tfrecord(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    #[cfg(feature = "compress")]
    if files.iter().any(|file| file_sources::is_compressed(file)) {
        return Ok(Chain::Iter(file_sources::record_stream(files, file_sources::RECORD)?));
    }
    Ok(Chain::Map(file_sources::record_elements(crate::source::TfRecord::open(files)?, file_sources::RECORD)))
}

#[cfg(not(feature = "tf_record"))]
fn tfrecord(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Err(Format::TfRecord.lacking().path(&files[0]))
}

#[cfg(not(feature = "array_record"))]
fn array_record(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Err(Format::ArrayRecord.lacking().path(&files[0]))
}

#[cfg(not(feature = "compress"))]
fn jsonl_stream(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Err(Format::JsonlStream.lacking().path(&files[0]))
}

#[cfg(not(feature = "compress"))]
fn line_stream(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Err(Format::LineStream.lacking().path(&files[0]))
}

#[cfg(not(feature = "parquet"))]
fn parquet(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Err(Format::Parquet.lacking().path(&files[0]))
}

fn npy(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Ok(source_of(Npy::open(files)?))
}

#[cfg(feature = "compress")]
fn npz(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    let archives = files.iter().map(crate::source::Npz::open).collect::<Result<Vec<_>>>()?;
    let elements = archives.iter().map(crate::source::Npz::element).collect::<Result<_>>()?;
    Ok(source_of(InMemory { elements, identity: archives.iter().map(|npz| npz.identity()).collect() }))
}

#[cfg(not(feature = "compress"))]
fn npz(files: &[PathBuf], _: &Wanted<'_>) -> Result<Chain> {
    Err(Format::Npz.lacking().path(&files[0]))
}

fn tokens(files: &[PathBuf], wanted: &Wanted<'_>) -> Result<Chain> {
    let tokens = Tokens::open(files, wanted.layout)?;
    let element = |ids: Array| Element::with_capacity(1).with("tokens", ids);
    let elements = tokens.views()?.into_iter().map(element).collect();
    Ok(source_of(InMemory { elements, identity: format!("{tokens:?}") }))
}

/// A record for each file, which views it.
#[derive(Debug)]
struct InMemory {
    elements: Vec<Element>,
    identity: String,
}

impl RandomAccess for InMemory {
    type Record = Element;

    fn len(&self) -> u64 {
        self.elements.len() as u64
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Element> {
        let element = usize::try_from(index).ok().and_then(|at| self.elements.get(at));
        element.cloned().ok_or_else(|| Error::data(format!("no file {index}: there are {}", self.elements.len())))
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }
}

fn source_of(source: impl RandomAccess<Record = Element> + 'static) -> Chain {
    Chain::Map(BoxMap::new(crate::dataset::map::Source::new(source)))
}
