//! `gristmill inspect`: what is in files of data.

use std::path::{Path, PathBuf};

use crate::spec::Data;
use crate::{Array, Element, ElementSpec, Error, Executor, IterDataset, Result, Value};
use crate::{place, source};
use serde::Serialize;
use serde_json::json;

use crate::cli::format::{bytes, cut, plural};
use crate::cli::layout::Layout;
use crate::cli::{Outcome, output};

/// Shows format, size, columns and the first records of files.
#[derive(clap::Args)]
#[command(after_help = crate::cli::EXIT_CODES)]
pub(crate) struct Args {
    /// Files, globs or folders
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
    bytes: u64,
    /// `None`: the format does not say without reading all of it.
    records: Option<u64>,
    /// Name, and dtype with shape or the kind of value, of the first record.
    columns: Vec<(String, String)>,
    first: Vec<Record>,
}

/// A record as JSON, its fields in their order.
struct Record(Vec<(String, serde_json::Value)>);

impl Serialize for Record {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Record {
    fn of(element: &Element) -> Self {
        Self(element.iter().map(|(name, value)| (name.to_owned(), value_json(value))).collect())
    }
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let data = Data::open_with(&args.data, None, args.layout.of(&args.data)?)?;
    let mut inspection = Inspection {
        format: data.format(),
        files: data.files().iter().map(|file| place::shown(file).into_owned()).collect(),
        bytes: 0,
        records: data.records(),
        columns: Vec::new(),
        first: Vec::new(),
    };
    for file in data.files() {
        inspection.bytes += size(file)?;
    }
    let mut loader = data.stream().loader().executor(Executor::Inline).build()?;
    let first: Vec<Element> = loader.by_ref().take(args.records.max(1)).collect::<Result<_>>()?;
    if let Some(element) = first.first() {
        let spec = ElementSpec::of(element);
        inspection.columns = spec.leaves().map(|(path, leaf)| (path.to_owned(), leaf.to_string())).collect();
    }
    inspection.first = first.iter().take(args.records).map(Record::of).collect();
    if args.json {
        output::json(&inspection);
    } else {
        output::data(&inspection.text());
    }
    Ok(Outcome::Done)
}

/// Bytes of a file, or of the files of a folder that is a data set.
fn size(path: &Path) -> Result<u64> {
    if place::is_remote(path) {
        return source::size(path);
    }
    let bytes = |path: &Path| std::fs::metadata(path).map(|found| (found.is_dir(), found.len()));
    let (is_dir, len) = bytes(path).map_err(|e| Error::io(e, path))?;
    if !is_dir {
        return Ok(len);
    }
    let entries = std::fs::read_dir(path).map_err(|e| Error::io(e, path))?;
    let file = |entry: std::io::Result<std::fs::DirEntry>| match bytes(&entry?.path())? {
        (false, len) => Ok(len),
        (true, _) => Ok(0),
    };
    entries.map(file).sum::<std::io::Result<u64>>().map_err(|e| Error::io(e, path))
}

impl Inspection {
    fn text(&self) -> String {
        let files = match self.files.as_slice() {
            [one] => one.display().to_string(),
            [first, .., last] => format!("{} … {} ({} files)", first.display(), last.display(), self.files.len()),
            [] => String::new(),
        };
        let records = match self.records {
            None => "unknown until read".to_owned(),
            Some(n) => plural(n, "record"),
        };
        let mut text = format!("{files}\n{} · {} · {records}", self.format, bytes(self.bytes));
        if let Some(n) = self.records.filter(|&n| n > 0) {
            text += &format!(" · {} on average", bytes(self.bytes / n));
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

/// Longest array that is shown number by number.
const SHOWN: usize = 64;

fn to_json(element: &Element) -> serde_json::Value {
    element.iter().map(|(name, value)| (name.to_owned(), value_json(value))).collect::<serde_json::Map<_, _>>().into()
}

/// A value as JSON. Long arrays are cut, and say so.
fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Str(text) => json!(**text),
        Value::Bytes(buffer) => json!(format!("{} bytes", buffer.len())),
        Value::List(items) => items.iter().map(value_json).collect::<Vec<_>>().into(),
        Value::Tree(tree) => to_json(tree),
        Value::Array(array) => array_json(array),
        _ => serde_json::Value::Null,
    }
}

fn array_json(array: &Array) -> serde_json::Value {
    let scalar = |item: &Array| item.as_i64().map(|n| json!(n)).or_else(|| float(item).map(|x| json!(x)));
    match array.shape() {
        [] => scalar(array).unwrap_or_else(|| json!(format!("{array:?}"))),
        &[len] => {
            let shown = (0..len.min(SHOWN)).filter_map(|i| scalar(&array.row(i)?));
            let mut items: Vec<_> = shown.collect();
            if len > SHOWN {
                items.push(json!(format!("… {} more", len - SHOWN)));
            }
            items.into()
        }
        _ => json!(format!("{array:?}")),
    }
}

fn float(array: &Array) -> Option<f64> {
    let wide = array.as_slice::<f64>().ok().and_then(|s| s.first().copied());
    wide.or_else(|| array.as_slice::<f32>().ok().and_then(|s| s.first().map(|&x| x.into())))
}
