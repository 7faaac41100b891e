//! Files of data of any format, which the command inspects and measures.

#[cfg(feature = "cli")]
mod check;
mod folders;

use std::path::{Path, PathBuf};

#[cfg(feature = "cli")]
pub(crate) use self::check::{Checked, Watch};
use super::by_name;
use super::chain::{Chain, Context, similar_file};
use super::node::{Field, Node, Tree};
use super::registry::columns_argument;
use crate::dataset::iter::BadRecords;
use crate::dataset::{BoxIter, IterDatasetExt, MapDataset, MapDatasetExt};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};
use crate::place::file_name;
#[cfg(feature = "cli")]
use crate::sink::{Schema, SinkFormat};
use crate::source::{Format, Patterns, TokenLayout, detect, detect_folder, find};

/// A way to open files.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening<'a> {
    /// The layout of `.bin` files.
    pub(crate) layout: TokenLayout,
    /// The folder of indices, if it is not beside the files.
    pub(crate) indices: Option<&'a Path>,
    /// Policy for shards that cannot be opened.
    pub(crate) bad: BadRecords,
}

/// Open files of a single format.
#[derive(Debug)]
pub struct Data {
    format: &'static str,
    files: Vec<PathBuf>,
    chain: Chain,
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "for stages behind it, which the command adds"))]
    context: Context,
}

impl Data {
    /// Opens files, globs or folders. The first file gives the format of all, and a folder has a single format. Only `column` is read if the format permits.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if nothing is found, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an
    /// ending that is not known and a format whose feature is off, and what opening reports.
    pub fn open(patterns: impl Patterns, column: Option<&str>) -> Result<Self> {
        Self::open_with(patterns, column, TokenLayout::Detect)
    }

    /// Opens files, `.bin` files with this layout. Each of these is a single record, as an `.npz` file is.
    ///
    /// # Errors
    /// Errors of [`open`](Self::open); [`ErrorKind::Config`](crate::ErrorKind::Config) if `layout` does not give the type of the ids.
    pub fn open_with(patterns: impl Patterns, column: Option<&str>, layout: TokenLayout) -> Result<Self> {
        Self::open_as(patterns, column.as_slice(), Opening { layout, ..Opening::default() })
    }

    /// Opens files with options. Only `columns` are read, if any are given and the format permits.
    ///
    /// # Errors
    /// Errors of [`open_with`](Self::open_with).
    pub(crate) fn open_as(patterns: impl Patterns, columns: &[&str], opening: Opening<'_>) -> Result<Self> {
        let Opening { layout, indices, bad } = opening;
        let patterns = patterns.patterns();
        let files = Self::find(&patterns)?;
        folders::check_one_format(&patterns, &files)?;
        let Some(first) = files.first() else { return Err(Error::config("no files")) };
        let detected = match bad {
            BadRecords::Error => detect(first),
            // A damaged shard may not show its format.
            BadRecords::Skip { .. } => files.iter().map(detect).find(Result::is_ok).unwrap_or_else(|| detect(first)),
        };
        let format = match detected {
            // A given layout decides the format of a file that no other rule recognises.
            Err(error) if layout != TokenLayout::Detect && error.kind() == ErrorKind::Unsupported => Format::Tokens,
            detected => detected?,
        };
        let source = format.source();
        // Folders between a folder and its files may give columns, which the files alone do not.
        let is_walked = |folder: &PathBuf| {
            files.iter().any(|file| file != folder && file.starts_with(folder) && file.parent() != Some(folder))
        };
        let has_partitions = ["parquet", "arrow"].contains(&source);
        let named = if has_partitions && patterns.iter().any(is_walked) { &patterns } else { &files };
        let mut arguments = vec![field(by_name::main_argument(source).unwrap_or("paths"), paths(named)?)];
        if let Some(argument) = columns_argument(source).filter(|_| !columns.is_empty()) {
            arguments.push(field(argument, Tree::List(columns.iter().map(|column| text(column)).collect())));
        }
        if format == Format::Tokens {
            let name = TokenLayout::NAMES.iter().find(|(_, known)| *known == layout).map(|(name, _)| *name);
            arguments.push(field("layout", name.map_or(Tree::Null, |name| Tree::Str(name.to_owned()))));
        }
        if let Some(folder) = indices.filter(|_| format.is_indexed()) {
            arguments.push(field("index_cache", Tree::Str(folder.display().to_string())));
        }
        let (chain, context) = by_name::source(source, Tree::Map(arguments), bad)?;
        Ok(Self { format: source, files, chain, context })
    }

    /// The files that [`open`](Self::open) opens.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if nothing is found.
    pub(crate) fn find(patterns: impl Patterns) -> Result<Vec<PathBuf>> {
        let endings: Vec<&str> = Format::ALL.iter().flat_map(|format| format.endings()).copied().collect();
        let files = list(&patterns, &endings)?;
        // The index represents both.
        let is_bin = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "bin");
        let has_index = |file: &PathBuf| is_bin(file) && files.contains(&file.with_extension("idx"));
        Ok(files.iter().filter(|file| !has_index(file)).cloned().collect())
    }

    /// Returns the name of the format: of its source in a pipeline file, if there is a source.
    pub fn format(&self) -> &'static str {
        self.format
    }

    /// The files, in order; a folder that is a data set is one.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Counts the records, if the format has a count.
    pub fn records(&self) -> Option<u64> {
        match &self.chain {
            Chain::Map(ds) | Chain::Stream(ds, _) => Some(ds.len()),
            Chain::Lanes(..) | Chain::Iter(_) => None,
        }
    }

    /// The files without the shards that were left out.
    #[cfg(all(feature = "cli", feature = "columns"))]
    fn good_files(&self) -> Vec<PathBuf> {
        let is_good = |file: &&PathBuf| !self.context.is_skipped(file);
        self.files.iter().filter(is_good).cloned().collect()
    }

    /// The records in order.
    pub fn stream(self) -> BoxIter<Element> {
        self.chain.into_iter()
    }

    /// Maps every record by `f`, in order, on many threads if the format has random access.
    pub fn try_map<U: Send + 'static>(self, f: impl Fn(Element) -> Result<U> + Send + Sync + 'static) -> BoxIter<U> {
        match self.chain {
            Chain::Map(ds) | Chain::Stream(ds, _) => ds.try_map(f).boxed().to_iter().boxed(),
            chain => chain.into_iter().try_map(f).boxed(),
        }
    }
}

#[cfg(feature = "cli")]
impl Data {
    /// Opens files whose indices, if the format needs any, are kept in `folder`.
    ///
    /// # Errors
    /// Errors of [`open`](Self::open).
    pub(crate) fn open_indexed(patterns: impl Patterns, layout: TokenLayout, folder: Option<&Path>) -> Result<Self> {
        Self::open_as(patterns, &[], Opening { layout, indices: folder, ..Opening::default() })
    }

    /// Opens the files that a pipeline names, as it would.
    ///
    /// # Errors
    /// As [`build`](super::Pipeline::build).
    pub(crate) fn of_pipeline(pipeline: &super::Pipeline) -> Result<Self> {
        let (dataset, _, context) = pipeline.opened()?;
        Ok(Self { format: "pipeline", files: Vec::new(), chain: Chain::Iter(dataset), context })
    }

    /// The records as the stage `name` of pipeline files makes them, with its arguments.
    ///
    /// # Errors
    /// As in a pipeline file.
    pub(crate) fn then(self, name: &str, arguments: &serde_json::Value) -> Result<Self> {
        let arguments = super::json::parse(&arguments.to_string())?.value;
        let (chain, context) = by_name::stage(self.chain, name, arguments, &self.context)?;
        Ok(Self { chain, context, ..self })
    }

    /// Sets the policy for bad records of the stages so far.
    pub(crate) fn on_bad_record(self, bad: BadRecords) -> Self {
        let is_wanted = bad != BadRecords::Error;
        Self { chain: if is_wanted { self.chain.on_bad_record(bad) } else { self.chain }, ..self }
    }

    /// The errors of the shards that were left out.
    pub(crate) fn skipped(&self) -> Vec<String> {
        self.context.skipped()
    }

    /// Columns of types that elements lack and `format` has, and a line for each such type that is not
    /// kept. Only `columns` count, if there are some.
    ///
    /// # Errors
    /// What opening reports.
    #[cfg_attr(
        not(feature = "columns"),
        expect(unused_variables, clippy::unused_self, reason = "other formats have no types")
    )]
    pub(crate) fn types(&self, columns: &[String], format: SinkFormat) -> Result<(Schema, Vec<String>)> {
        match self.format {
            #[cfg(feature = "parquet")]
            "parquet" => {
                let options = crate::source::Parquet::options();
                let options = if columns.is_empty() { options } else { options.columns(columns) };
                Ok(typed(options.open(self.good_files())?.typed_columns(), format))
            }
            #[cfg(feature = "arrow")]
            "arrow" => {
                let options = crate::source::Arrow::options();
                let options = if columns.is_empty() { options } else { options.columns(columns) };
                Ok(typed(options.open(self.good_files())?.typed_columns(), format))
            }
            _ => Ok((Schema::new(), Vec::new())),
        }
    }
}

/// The types of columns that a format keeps, and a line for each that it does not.
#[cfg(all(feature = "cli", feature = "columns"))]
fn typed(columns: &crate::source::arrow::columns::Columns, format: SinkFormat) -> (Schema, Vec<String>) {
    use arrow_schema::DataType;
    let (kept, lines) = columns.types(|data_type| match format {
        SinkFormat::Parquet | SinkFormat::Arrow => true,
        // `datasets` has no name for bytes of a fixed size.
        SinkFormat::HuggingFace => !matches!(data_type, DataType::FixedSizeBinary(_)),
        _ => false,
    });
    (crate::sink::kinds::schema(&kept), lines)
}

/// The files; folders that are a data set each as they are.
fn list(patterns: &impl Patterns, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let given = patterns.patterns();
    let is_set = |path: &PathBuf| path.is_dir() && detect_folder(path).is_some();
    if !given.is_empty() && given.iter().all(is_set) {
        return Ok(given);
    }
    let files = find(&given, endings).map_err(|error| match error.file().and_then(similar_file) {
        Some(name) => error.help(format!("did you mean `{name}`?")),
        None => error,
    })?;
    let is_data = |file: &PathBuf| given.contains(file) || !is_description(file);
    let data: Vec<PathBuf> = files.iter().filter(|file| is_data(file)).cloned().collect();
    Ok(if data.is_empty() { files } else { data })
}

/// Whether a file in a folder of data describes the data, going by its name.
fn is_description(file: &Path) -> bool {
    const NAMES: [&str; 5] =
        ["dataset_info.json", "dataset_infos.json", "dataset_dict.json", "features.json", "state.json"];
    let name = file_name(file).to_lowercase();
    NAMES.contains(&&*name) || ["readme", "license"].contains(&name.split('.').next().unwrap_or_default())
}

fn field(name: &str, value: Tree) -> Field {
    Field { key: name.to_owned(), line: 0, value: Node::new(value, 0, 0) }
}

fn text(text: &str) -> Node {
    Node::new(Tree::Str(text.to_owned()), 0, 0)
}

/// One path as it is, several as a list.
fn paths(files: &[PathBuf]) -> Result<Tree> {
    let node = |file: &PathBuf| file.to_str().map(text).ok_or_else(|| not_text(file));
    let mut nodes = files.iter().map(node).collect::<Result<Vec<_>>>()?;
    Ok(if nodes.len() == 1 { nodes.remove(0).value } else { Tree::List(nodes) })
}

fn not_text(file: &Path) -> Error {
    Error::unsupported("the name of this file is not UTF-8").path(file).help("rename it, or link to it by another name")
}
