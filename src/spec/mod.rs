//! Declared pipelines: a file in YAML, TOML or JSON that names sources and stages by their names in the API.
//!
//! ```yaml
//! name: numbers
//! source: {range: {stop: 100}}
//! stages:
//!   - filter: {column: index, min: 10}
//!   - to_iter
//! executor: {threads: 2, buffer: 2}
//! checkpoint: {folder: checkpoints, every: 100}
//! store: {cache_dir: cache, cache_size: 100GiB}
//! ```
//!
//! Every stage is one entry of a list: its name, and its arguments in a mapping. Relative paths start at the folder of
//! the file; URLs of [stores](crate::store) stand wherever paths do, and `store` says how they are read: `cache_dir`, `cache_size`,
//! `memory`, `requests`, `attempts`, `timeout` and `stall` in seconds, as [`StoreOptions`](crate::store::StoreOptions) has them. `to_iter` may be left out: it then stands before the first stage that needs a stream. What is not
//! understood is refused, with the line, the key and the nearest valid name. A file cannot run code.
//!
//! Compressed files have no random access. With `lanes: 8` they are read as eight streams, one element of each in turn, by as many
//! threads or workers as there are; elementwise stages right behind it run inside the lanes, before their elements take
//! turns. The number of lanes shapes the data and belongs to the checkpoint, who reads them does not.
//!
//! Records of bytes that are `tf.train.Example`s become columns with `examples: true`, or with a declaration of features:
//! `{label: {dtype: int64, shape: [], default: 0}, tokens: int64}`. A dtype is `int64`, `float32`, `bytes` or `str`; without a
//! shape the number of values varies. `sequence_examples` has `true`, or `context` and `sequences`; a feature of `sequences` has its shape
//! in every step, and may be missing with `allow_missing: true`. See [`ExampleParser`](crate::source::ExampleParser).
//!
//! A stage whose one argument says all may be given it directly: `limit: 100` for `limit: {count: 100}`. [`schema`] gives all of
//! this to editors.
//!
#![doc = include_str!("reference.md")]

pub(crate) mod by_name;
mod change;
mod data;
mod deal;
mod json;
#[cfg(any(feature = "cli", all(test, feature = "formats")))]
pub(crate) mod reference;
pub(crate) mod registry;
mod run;
mod schema;
pub(crate) mod settings;
mod sources;
mod toml;
pub(crate) mod yaml;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::chain::Context;
use self::change::Change;
pub use self::data::Data;
#[cfg(feature = "cli")]
pub(crate) use self::data::{Checked, Opening, Watch};
use self::node::{MAX_BYTES, Node, Tree};
#[cfg(feature = "cli")]
pub(crate) use self::run::Group;
pub use self::run::RunOptions;
pub use self::schema::schema;
use self::settings::FileArgs;
pub use self::settings::{CheckpointSettings, Settings, parse_bytes};
use crate::dataset::BoxIter;
pub(crate) use crate::dataset::entry::{build, chain};
pub(crate) use crate::dataset::{columns, entry, mixing};
#[cfg(feature = "cli")]
pub(crate) use crate::declare::suggest::nearest;
pub(crate) use crate::declare::{arguments, decode, node, suggest, values};
use crate::element::Element;
use crate::error::{Error, Result};
#[cfg(feature = "python")]
pub(crate) use crate::source::example_stages::RECORD;
use crate::units::Bytes;

/// Syntax of a pipeline file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// YAML 1.2, core schema; `.yaml`, `.yml`, and files without a known ending.
    Yaml,
    /// TOML 1.1; `.toml`.
    Toml,
    /// JSON; `.json`.
    Json,
}

impl Format {
    /// By the ending of the file name.
    pub fn of(path: &Path) -> Self {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("toml") => Self::Toml,
            Some("json") => Self::Json,
            _ => Self::Yaml,
        }
    }
}

/// A declared pipeline: the text of a file, parsed, ready to be built any number of times, here or in another process.
///
/// It serialises as its text, so every receiver builds equal stages.
///
/// ```
/// use gristmill::prelude::*;
/// use gristmill::spec::{Format, Pipeline};
/// let text = "source: {range: {stop: 5}}\nstages:\n  - filter: {column: index, min: 3}\n";
/// let elements = Pipeline::from_text(text, Format::Yaml, ".")?.build()?.collect()?;
/// assert_eq!(elements[0].array("index")?.as_i64(), Some(3));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Pipeline {
    wire: Wire,
    root: Node,
    settings: Settings,
}

/// Places in a [`Pipeline`], and its order of reading.
#[cfg(feature = "cli")]
pub(crate) struct Outline {
    /// Files, globs, folders and URLs of its sources and stages.
    pub(crate) places: Vec<crate::place::Location>,
    /// Whether a stage puts records into a random order.
    pub(crate) shuffles: bool,
}

/// Form in which a [`Pipeline`] is written.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    text: String,
    format: Format,
    /// The file it came from, for errors.
    file: Option<PathBuf>,
    /// Folder from which relative paths start.
    folder: PathBuf,
    /// Parameters that were changed since.
    changes: Vec<Change>,
}

impl Pipeline {
    /// Reads a file, which is YAML, TOML or JSON by its ending.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be read, [`ErrorKind::Config`](crate::ErrorKind::Config) with the line
    /// for what cannot be understood.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let size = std::fs::metadata(path).map_err(|e| unreadable(e, path))?.len();
        if size > MAX_BYTES as u64 {
            return Err(as_data(path).unwrap_or_else(|| too_long(size).path(path)));
        }
        if let Some(error) = as_data(path) {
            return Err(error);
        }
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(e, path))?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Self::parse(Wire { text, format: Format::of(path), file: Some(path.to_owned()), folder, changes: Vec::new() })
    }

    /// Parses `text`; relative paths start at `folder`.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_text(text: impl Into<String>, format: Format, folder: impl Into<PathBuf>) -> Result<Self> {
        Self::parse(Wire { text: text.into(), format, file: None, folder: folder.into(), changes: Vec::new() })
    }

    /// The same with one parameter changed: `batch_size` of the last stage that has one, `tokenise.max_len`, or a path as in
    /// errors, `stages[1].tokenise.max_len`. The value is YAML; [`text`](Self::text) stays as it is.
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// use gristmill::spec::{Format, Pipeline};
    /// let text = "source: {range: 6}\nstages: [batch: 2]\n";
    /// let pipeline = Pipeline::from_text(text, Format::Yaml, ".")?.with("batch_size", "3")?;
    /// assert_eq!(pipeline.build()?.collect()?.len(), 2);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a parameter that is nowhere, with the nearest name. A value
    /// that a stage refuses is reported by [`build`](Self::build).
    pub fn with(&self, key: &str, value: &str) -> Result<Self> {
        let mut wire = self.wire.clone();
        wire.changes.push((key.to_owned(), value.to_owned()));
        Self::parse(wire)
    }

    fn parse(wire: Wire) -> Result<Self> {
        let parsed = tree(&wire).and_then(|root| {
            let settings = Settings::of(&FileArgs::of(&root)?);
            Ok((root, settings))
        });
        let (root, settings) = parsed.map_err(|e| in_file(e, &wire))?;
        Ok(Self { wire, root, settings })
    }

    /// Opens the sources and puts the stages together.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the line for an unknown name, a wrong type or value, a missing
    /// argument, file or column; errors of opening a source.
    pub fn build(&self) -> Result<BoxIter<Element>> {
        self.build_counted().map(|(dataset, _)| dataset)
    }

    /// Builds the pipeline, and counts the indices of a pass if they are known: the last value of `next_index` in a checkpoint.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_counted(&self) -> Result<(BoxIter<Element>, Option<u64>)> {
        self.opened().map(|(dataset, indices, _)| (dataset, indices))
    }

    /// As [`build`](Self::build), with the context, which lists the shards that were left out.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub(crate) fn opened(&self) -> Result<(BoxIter<Element>, Option<u64>, Context)> {
        self.chain().map_err(|e| in_file(e, &self.wire))
    }

    /// The whole file is checked before anything in it is opened or loaded: what is wrong with the last stage is not told after a
    /// tokenizer was read, or an index built.
    fn chain(&self) -> Result<(BoxIter<Element>, Option<u64>, Context)> {
        drop(self.assemble(Context::draft(self.folder()))?);
        if let Some(options) = &self.settings.store {
            options.clone().below(&self.folder()).apply();
        }
        let context = Context::new(self.folder());
        let (dataset, indices) = self.assemble(context.clone())?;
        Ok((dataset, indices, context))
    }

    /// Lists its places and its order of reading without opening a file.
    ///
    /// # Errors
    /// As [`build`](Self::build), as far as no file needs to be opened for it.
    #[cfg(feature = "cli")]
    pub(crate) fn outline(&self) -> Result<Outline> {
        let context = Context::draft(self.folder());
        let (chain, _) = self.assemble(context.clone()).map_err(|e| in_file(e, &self.wire))?;
        let mut shuffles = false;
        (&chain as &dyn crate::Stage).walk(&mut |_, stage| shuffles |= stage.name() == "shuffle");
        Ok(Outline { places: context.named(), shuffles })
    }

    fn assemble(&self, mut context: Context) -> Result<(BoxIter<Element>, Option<u64>)> {
        let FileArgs { source, stages, .. } = FileArgs::of(&self.root)?;
        let stages = match &stages {
            None => &[][..],
            Some(given) => match &given.value {
                Tree::List(stages) => stages,
                _ => return Err(given.error(format!("needs a list of stages, got {}", given.kind()))),
            },
        };
        context.bad = registry::bad_records(stages).unwrap_or_default();
        let source = registry::source(&source, &mut context)?;
        let chain = registry::stages_of(source, stages, &mut context)?;
        let indices = chain.indices().or(context.indices);
        Ok((chain.into_iter(), indices))
    }

    /// Its name, the executor and the checkpoint folder.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Options of a run that the file gives, with folders and files below the folder of the file.
    pub fn run_options(&self) -> RunOptions {
        self.settings.run.clone().below(&self.folder())
    }

    /// The folder of its key files, and whether the file names it: else it is `NAME.keys` beside the pipeline file. `None` if it is not of a
    /// file and names none.
    pub fn keys(&self) -> Option<(PathBuf, bool)> {
        match (self.settings.run.keys(), &self.wire.file) {
            (Some(folder), _) => Some((self.folder().join(folder), true)),
            (None, Some(file)) => Some((file.with_extension("keys"), false)),
            (None, None) => None,
        }
    }

    /// The text it was parsed from.
    pub fn text(&self) -> &str {
        &self.wire.text
    }

    /// Returns the pipeline as JSON with absolute paths, so that it can be read in another folder.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the current folder is unknown.
    pub(crate) fn located(&self) -> Result<serde_json::Value> {
        let absolute = |path: &Path| {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            std::path::absolute(path).map_err(|e| Error::io(e, path))
        };
        let (folder, file) = (absolute(&self.wire.folder)?, self.wire.file.as_deref().map(absolute).transpose()?);
        serde_json::to_value(Wire { folder, file, ..self.wire.clone() }).map_err(|e| Error::config(e.to_string()))
    }

    /// Folder from which relative paths start.
    pub fn folder(&self) -> PathBuf {
        self.wire.folder.clone()
    }
}

fn too_long(bytes: u64) -> Error {
    Error::config(format!("{}, but a pipeline file has at most {}", Bytes(bytes), Bytes(MAX_BYTES as u64)))
}

/// Makes an error of the system. If there is no such file, it has the most similar name in the folder.
fn unreadable(error: std::io::Error, path: &Path) -> Error {
    let absent = error.kind() == std::io::ErrorKind::NotFound;
    let near = absent.then(|| chain::similar_file(path)).flatten();
    let error = Error::io(error, path);
    if let Some(name) = near { error.help(format!("did you mean `{name}`?")) } else { error }
}

/// Makes an error if a file is data by its ending, and by its content if a pipeline could have that ending.
fn as_data(path: &Path) -> Option<Error> {
    use crate::source::Format as Data;
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    if path.is_dir() || ["yaml", "yml", "toml", "json"].contains(&ending.as_str()) {
        return None;
    }
    Data::by_name(&crate::place::file_name(path).to_lowercase())?;
    let format = crate::source::detect(path).ok()?;
    Some(Error::config(format!("this is data: {format}, not a pipeline file")).path(path).help(
        "`gristmill inspect` shows its contents; a pipeline file names it as its source, see `gristmill demo \
         --print-pipeline`",
    ))
}

fn tree(wire: &Wire) -> Result<Node> {
    let text = wire.text.trim_start_matches('\u{feff}');
    if text.len() > MAX_BYTES {
        return Err(too_long(text.len() as u64));
    }
    let mut root = match wire.format {
        Format::Yaml => yaml::parse(text),
        Format::Toml => toml::parse(text),
        Format::Json => json::parse(text),
    }?;
    for change in &wire.changes {
        change::apply(&mut root, change)?;
    }
    root.set_paths(String::new());
    match root.value {
        Tree::Map(_) => Ok(root),
        _ => Err(root.error(format!("a pipeline file is a mapping with `source` and `stages`, got {}", root.kind()))),
    }
}

/// Adds the file, unless the error is about another.
fn in_file(error: Error, wire: &Wire) -> Error {
    if let Some(file) = &wire.file { error.path(file) } else { error }
}

impl TryFrom<Wire> for Pipeline {
    type Error = Error;

    fn try_from(wire: Wire) -> Result<Self> {
        Self::parse(wire)
    }
}

impl From<Pipeline> for Wire {
    fn from(Pipeline { mut wire, .. }: Pipeline) -> Self {
        // Errors show the path, so text is enough.
        wire.file = wire.file.map(|file| PathBuf::from(file.to_string_lossy().into_owned()));
        wire
    }
}

debug_as!(Pipeline, |self, f| {
    f.debug_struct("Pipeline").field("file", &self.wire.file).field("settings", &self.settings).finish_non_exhaustive()
});

#[cfg(test)]
mod tests;
