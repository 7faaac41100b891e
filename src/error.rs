//! The error type of the crate.
//!
//! An [`Error`] is one word wide. Its kind names the party that can fix the error. Callers on the way up add their context: stage, file,
//! record, byte offset, element index. The message gives the value and the limit.

mod packed;
#[cfg(unix)]
mod told;

use std::path::{Path, PathBuf};

pub(crate) use packed::{Packed, pack_by};
use serde::{Deserialize, Serialize};
#[cfg(unix)]
pub(crate) use told::Told;

/// Result with [`Error`](struct@Error) as the default error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Kind of an error, by the party that can fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The pipeline requests something impossible: a batch of 0, a shuffle without a seed.
    Config,
    /// A record or an element does not fit the stage: damaged file, over-long sequence, mismatched shapes.
    Data,
    /// The operating system refused: missing file, full disk, no permission.
    Io,
    /// A checkpoint does not belong to this pipeline, or has an unknown format.
    State,
    /// The data is valid, but uses a feature that gristmill does not support.
    Unsupported,
    /// A function of the user failed.
    User,
    /// The run was cancelled.
    Cancelled,
    /// A worker process could not be started, or ended early.
    Worker,
    /// An accelerator or its driver refused, or did not answer.
    Device,
}

impl ErrorKind {
    /// Returns the kind as a lower-case word, as printed by `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Data => "data",
            Self::Io => "io",
            Self::State => "state",
            Self::Unsupported => "unsupported",
            Self::User => "user",
            Self::Cancelled => "cancelled",
            Self::Worker => "worker",
            Self::Device => "device",
        }
    }
}

/// Error with a message, its context and a remedy.
///
/// `Display` prints one line, context first: `stage 2 tokenise: corpus.jsonl: record 1207: byte 88123: …`.
/// The underlying error, if any, is [`source`](std::error::Error::source).
pub struct Error(Box<Repr>);

#[derive(Default)]
struct Context {
    stage: Option<String>,
    path: Option<PathBuf>,
    line: Option<u64>,
    record: Option<u64>,
    offset: Option<u64>,
    index: Option<u64>,
}

struct Repr {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
    context: Context,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error of `kind`. `message` is lower case, without a full stop, and gives value and limit.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let context = Context::default();
        Self(Box::new(Repr { kind, message: message.into(), help: None, context, source: None }))
    }

    /// Makes an error of [`ErrorKind::Config`].
    #[cold]
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// Makes an error of [`ErrorKind::Data`].
    #[cold]
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// Makes an error of [`ErrorKind::State`].
    #[cold]
    pub fn state(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::State, message)
    }

    /// Makes an error of [`ErrorKind::Unsupported`].
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Makes the error that files of a format need a feature that this build lacks, with the flag that adds the feature.
    #[cold]
    pub(crate) fn lacking(format: &str, feature: &str) -> Self {
        let what = if feature == "compress" { "compressed" } else { format };
        Self::unsupported(format!("{what} files need the feature `{feature}`, which this build lacks"))
            .help(format!("build with `--features {feature}`"))
    }

    /// Makes an error of [`ErrorKind::User`], which wraps the error of a user's function.
    #[cold]
    pub fn user(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let source = error.into();
        Self::new(ErrorKind::User, source.to_string()).caused_by(source)
    }

    /// Makes an error of [`ErrorKind::Data`], which wraps the error of a user's function that rejects an element.
    #[cold]
    pub(crate) fn bad(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let source = error.into();
        Self::new(ErrorKind::Data, source.to_string()).caused_by(source)
    }

    /// Makes an error of [`ErrorKind::Io`] on `path`.
    #[cold]
    pub fn io(error: std::io::Error, path: impl AsRef<Path>) -> Self {
        Self::new(ErrorKind::Io, error.to_string()).path(path).caused_by(error)
    }

    /// Makes an error of [`ErrorKind::Io`] without a path.
    #[cold]
    pub(crate) fn of_io(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string()).caused_by(error)
    }

    /// Adds a remedy, unless the error has one. The command line prints the remedy on a separate line.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help.get_or_insert(help.into());
        self
    }

    /// Adds another remedy, which begins with `or `.
    #[cold]
    pub(crate) fn more_help(mut self, more: &str) -> Self {
        self.0.help = Some(match self.0.help.take() {
            Some(help) => format!("{help}; {more}"),
            None => more.trim_start_matches("or ").to_owned(),
        });
        self
    }

    /// Moves all context except the stage into the message, so that outer context can precede it.
    #[cold]
    pub(crate) fn place_in_message(mut self) -> Self {
        let stage = self.0.context.stage.take();
        self.0.message = self.to_string();
        self.0.context = Context { stage, ..Context::default() };
        self
    }

    /// Appends to the message.
    #[cold]
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.0.message.push_str(more);
        self
    }

    /// Prefixes the message with its subject and a colon.
    #[cold]
    pub(crate) fn of(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Adds the underlying error, unless there is one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source.get_or_insert(source.into());
        self
    }

    /// Adds the path of the file; of a URL, the part that may be shown.
    ///
    /// In this and all other context methods, the innermost caller's value is kept.
    #[must_use]
    pub fn path(mut self, path: impl AsRef<Path>) -> Self {
        self.0.context.path.get_or_insert_with(|| crate::place::shown(path.as_ref()).into_owned());
        self
    }

    /// Adds the line number in a text file, from 1.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.0.context.line.get_or_insert(line);
        self
    }

    /// Adds the number of the record (or row) in the file, from 0.
    #[must_use]
    pub fn record(mut self, record: u64) -> Self {
        self.0.context.record.get_or_insert(record);
        self
    }

    /// Adds a number of preceding records to the record number.
    #[must_use]
    pub(crate) fn behind(mut self, records: u64) -> Self {
        if let Some(record) = &mut self.0.context.record {
            *record = record.saturating_add(records);
        }
        self
    }

    /// Adds the byte offset in the file.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.0.context.offset.get_or_insert(offset);
        self
    }

    /// Adds the global index of the element.
    #[must_use]
    pub fn index(mut self, index: u64) -> Self {
        self.0.context.index.get_or_insert(index);
        self
    }

    /// Converts the index of the element to its global index.
    #[must_use]
    pub(crate) fn map_index(mut self, global: impl FnOnce(u64) -> u64) -> Self {
        self.0.context.index = self.0.context.index.map(global);
        self
    }

    /// Adds the stage that failed.
    #[must_use]
    pub fn stage(mut self, stage: impl Into<String>) -> Self {
        self.0.context.stage.get_or_insert(stage.into());
        self
    }

    /// Returns the kind, which names the party that can fix the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the message without context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the remedy, if the failed code has provided one.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// Returns the file in which the error occurred, if any.
    pub fn file(&self) -> Option<&Path> {
        self.0.context.path.as_deref()
    }

    /// Returns the global index of the failed element, if known.
    pub fn element_index(&self) -> Option<u64> {
        self.0.context.index
    }

    /// Returns the number of the record (or row) in the file, from 0, if known.
    pub fn record_number(&self) -> Option<u64> {
        self.0.context.record
    }

    /// Returns the byte offset in the file, if known.
    pub fn byte_offset(&self) -> Option<u64> {
        self.0.context.offset
    }

    /// Returns the stage in which the error occurred, if known.
    pub fn stage_name(&self) -> Option<&str> {
        self.0.context.stage.as_deref()
    }
}

/// Converts to [`ErrorKind::Io`] without a path, for `?` in functions of the user. [`Error::io`] adds the path.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::of_io(error)
    }
}

display_as!(Error, |self, f| {
    let c = &self.0.context;
    if let Some(stage) = &c.stage {
        write!(f, "stage {stage}: ")?;
    }
    if let Some(index) = c.index {
        write!(f, "element {index}: ")?;
    }
    if let Some(path) = &c.path {
        write!(f, "{}: ", path.display())?;
    }
    for (name, value) in [("line", c.line), ("record", c.record), ("byte", c.offset)] {
        if let Some(value) = value {
            write!(f, "{name} {value}: ")?;
        }
    }
    f.write_str(&self.0.message)
});

debug_as!(Error, |self, f| {
    write!(f, "{:?}: {self}", self.0.kind)?;
    if let Some(help) = &self.0.help { write!(f, " (help: {help})") } else { Ok(()) }
});

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_comes_first_and_the_innermost_word_stands() {
        let e = Error::data("length crc is 0x1f2e, computed 0x88a1")
            .path("a.tfrecord")
            .record(7)
            .path("b")
            .stage("2 source");
        assert_eq!(e.to_string(), "stage 2 source: a.tfrecord: record 7: length crc is 0x1f2e, computed 0x88a1");
        assert_eq!(e.kind(), ErrorKind::Data);
    }

    #[test]
    fn an_error_is_one_word_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
