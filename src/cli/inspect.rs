//! `gristmill inspect`: shows the contents of data files.

use std::path::{Path, PathBuf};

use crate::place::{self, Location};
use crate::source;
use crate::spec::Data;
use crate::{Element, ElementSpec, Error, Executor, Load, Result, Value};
use serde::Serialize;

use crate::cli::format::{bytes, cut, grouped, plural};
use crate::cli::layout::Layout;
use crate::cli::{Outcome, examples, output, shown};

/// Shows the format, the columns and the first records of files
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill inspect data/train-00000.parquet"
    "gristmill inspect data/ -n 10"
    "zcat corpus.jsonl.gz | gristmill inspect -"
))]
pub(crate) struct Args {
    /// Files, globs or folders; `-` is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Records to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3)]
    records: usize,
    #[command(flatten)]
    layout: Layout,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Inspection {
    format: &'static str,
    files: Vec<PathBuf>,
    /// Total size; `None` for standard input, which has no length.
    bytes: Option<u64>,
    /// Number of records; `None` if the format requires reading everything to count them.
    records: Option<u64>,
    /// Number of token ids, for token files. Each token file is a single record.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// Number of read records in which an object has a name twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated_names: Option<u64>,
    /// Columns of the first record: name, and dtype with shape or the kind of value.
    columns: Vec<(String, String)>,
    first: Vec<Record>,
}

/// Record as JSON, with its fields in their order.
struct Record(Vec<(String, serde_json::Value)>);

impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Record {
    fn of(element: &Element) -> Self {
        Self(element.iter().map(|(name, value)| (name.to_owned(), shown::value(value))).collect())
    }
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let data = Data::open_with(&args.data, None, args.layout.of(&args.data)?)?;
    let mut inspection = Inspection {
        format: data.format(),
        files: data.files().iter().map(|file| place::shown(file).into_owned()).collect(),
        bytes: data.files().iter().map(|file| size(file)).sum::<Result<_>>()?,
        records: data.records(),
        tokens: None,
        repeated_names: None,
        columns: Vec::new(),
        first: Vec::new(),
    };
    if inspection.format == "tokens" && !data.files().iter().any(|file| Location::from(file).is_object()) {
        let each = Data::open_with(&args.data, None, args.layout.of(&args.data)?)?.stream().loader().build()?;
        inspection.tokens = Some(each.map(|file| file.map(|file| ids(&file))).sum::<Result<u64>>()?);
    }
    let mut loader = data.stream().loader().executor(Executor::Inline).build()?;
    let first: Vec<Element> = loader.by_ref().take(args.records.max(1)).collect::<Result<_>>()?;
    let notes = loader.report().notes;
    inspection.repeated_names = notes.iter().find(|(what, _)| what == source::REPEATED).map(|(_, count)| *count);
    if let Some(element) = first.first() {
        let spec = ElementSpec::of(element);
        inspection.columns = spec.leaves().map(|(path, leaf)| (path.to_owned(), leaf.to_string())).collect();
    }
    inspection.first = first.iter().take(args.records).map(Record::of).collect();
    output::either(args.json, &inspection, || inspection.text());
    Ok(Outcome::Done)
}

/// Returns the number of ids in a token file.
fn ids(file: &Element) -> u64 {
    let arrays = file.iter().filter_map(|(_, value)| if let Value::Array(array) = value { Some(array) } else { None });
    arrays.map(|array| array.size() as u64).sum()
}

/// Returns the size in bytes of a file, or of all files in a data set's folder; `None` for standard input.
fn size(path: &Path) -> Result<Option<u64>> {
    if source::is_piped(path) {
        return Ok(None);
    }
    if Location::from(path).is_object() {
        return source::size(path).map(Some);
    }
    let bytes = |path: &Path| std::fs::metadata(path).map(|found| (found.is_dir(), found.len()));
    let (is_dir, len) = bytes(path).map_err(|e| Error::io(e, path))?;
    if !is_dir {
        return Ok(Some(len));
    }
    let entries = std::fs::read_dir(path).map_err(|e| Error::io(e, path))?;
    let file = |entry: std::io::Result<std::fs::DirEntry>| match bytes(&entry?.path())? {
        (false, len) => Ok(len),
        (true, _) => Ok(0),
    };
    entries.map(file).sum::<std::io::Result<u64>>().map(Some).map_err(|e| Error::io(e, path))
}

impl Inspection {
    fn text(&self) -> String {
        let files = match self.files.as_slice() {
            [one] => one.display().to_string(),
            [first, .., last] => format!("{} … {} ({} files)", first.display(), last.display(), self.files.len()),
            [] => String::new(),
        };
        let records = match self.records {
            _ if self.tokens.is_some() => plural(self.tokens.unwrap_or(0), "token"),
            None => "unknown until read".to_owned(),
            Some(n) => plural(n, "record"),
        };
        let size = self.bytes.map_or_else(String::new, |size| bytes(size) + " · ");
        let mut text = format!("{files}\n{} · {size}{records}", self.format);
        let count = self.records.filter(|&n| n > 0 && self.tokens.is_none());
        if let (Some(n), Some(size)) = (count, self.bytes) {
            text += &format!(" · {} on average", bytes(size / n));
        }
        if let Some(repeated) = self.repeated_names {
            let read = plural(self.first.len().max(1) as u64, "record");
            text += &format!("\n{} of the first {read} with a repeated name: the last value stands", grouped(repeated));
        }
        text += "\n\n";
        let rows: Vec<Vec<String>> = self.columns.iter().map(|(name, kind)| vec![name.clone(), kind.clone()]).collect();
        text += &output::table(&["column", "in the first record"], &rows, &[1]);
        for (i, record) in self.first.iter().enumerate() {
            text += &format!("\nrecord {i}\n");
            for (name, value) in &record.0 {
                let line = cut(&value.to_string(), 96 - name.chars().count().min(40));
                text += &format!("  {}: {line}\n", cut(name, 40));
            }
        }
        text
    }
}
