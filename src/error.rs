//! The one error type: what went wrong, and where.
//!
//! An [`Error`] is one word wide. Its kind says who can mend it, its context (stage, file, record, byte
//! offset, element index) is added on the way up by whoever knows it, and its message gives the value and the limit.

#[cfg(all(feature = "workers", target_os = "linux"))]
mod packed;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod told;

use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(all(feature = "python", feature = "workers", target_os = "linux"))]
pub(crate) use packed::{Packed, pack_by};
use serde::{Deserialize, Serialize};
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use told::Told;

/// A result whose error is [`Error`](struct@Error).
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The party that can mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The pipeline asks for something impossible: a batch of 0, a shuffle without a seed.
    Config,
    /// A record or an element is not what the stage can take: damaged file, over-long sequence, mismatched shapes.
    Data,
    /// The operating system refused: missing file, full disk, no permission.
    Io,
    /// A checkpoint does not belong to this pipeline, or its format is not known.
    State,
    /// The data is valid, but uses something that gristmill does not read.
    Unsupported,
    /// A function given by the user failed.
    User,
    /// The run was told to stop.
    Cancelled,
    /// A worker process could not be started, or ended before its time.
    Worker,
    /// An accelerator or its driver refused, or did not answer.
    Device,
}

impl ErrorKind {
    /// The kind in one lower-case word, as `--json` prints it.
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

/// Account of what went wrong, where, and what to do.
///
/// `Display` prints one line, context first: `stage 2 tokenise: corpus.jsonl: record 1207: byte 88123: …`.
/// The underlying error, where there is one, is [`source`](std::error::Error::source).
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
    /// An error of `kind`; `message` is lower case, without a full stop, and gives value and limit.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let context = Context::default();
        Self(Box::new(Repr { kind, message: message.into(), help: None, context, source: None }))
    }

    /// [`ErrorKind::Config`].
    #[cold]
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// [`ErrorKind::Data`].
    #[cold]
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// [`ErrorKind::State`].
    #[cold]
    pub fn state(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::State, message)
    }

    /// [`ErrorKind::Unsupported`].
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::User`], wrapping the error that a user's function returned.
    #[cold]
    pub fn user(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let source = error.into();
        Self::new(ErrorKind::User, source.to_string()).caused_by(source)
    }

    /// [`ErrorKind::Data`], wrapping the error by which a user's function says that an element is bad.
    #[cfg(feature = "python")]
    #[cold]
    pub(crate) fn bad(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let source = error.into();
        Self::new(ErrorKind::Data, source.to_string()).caused_by(source)
    }

    /// [`ErrorKind::Io`] on `path`.
    #[cold]
    pub fn io(error: std::io::Error, path: impl AsRef<Path>) -> Self {
        Self::new(ErrorKind::Io, error.to_string()).path(path).caused_by(error)
    }

    /// [`ErrorKind::Io`] on something that has no path.
    #[cold]
    pub(crate) fn of_io(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string()).caused_by(error)
    }

    /// Adds what the user can do about it; printed on a line of its own by the command line.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help.get_or_insert(help.into());
        self
    }

    /// Adds another remedy, which begins with `or `.
    #[cold]
    #[cfg(feature = "cli")]
    pub(crate) fn more_help(mut self, more: &str) -> Self {
        self.0.help = Some(match self.0.help.take() {
            Some(help) => format!("{help}; {more}"),
            None => more.trim_start_matches("or ").to_owned(),
        });
        self
    }

    /// Puts where it happened into the message, so that what led there can stand in front of it.
    #[cold]
    #[cfg(feature = "spec")]
    pub(crate) fn place_in_message(mut self) -> Self {
        let stage = self.0.context.stage.take();
        self.0.message = self.to_string();
        self.0.context = Context { stage, ..Context::default() };
        self
    }

    /// Adds to the end of the message.
    #[cold]
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.0.message.push_str(more);
        self
    }

    /// Puts what it happened to in front of the message.
    #[cold]
    pub(crate) fn of(mut self, what: &str) -> Self {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Adds the error that led to this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source.get_or_insert(source.into());
        self
    }

    /// Adds the file; of a URL what may be shown. The innermost caller's word stands, here and in the other context methods.
    #[must_use]
    pub fn path(mut self, path: impl AsRef<Path>) -> Self {
        self.0.context.path.get_or_insert_with(|| crate::place::shown(path.as_ref()).into_owned());
        self
    }

    /// Adds the line of a text file, from 1.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.0.context.line.get_or_insert(line);
        self
    }

    /// Adds the record (or row) inside the file, from 0.
    #[must_use]
    pub fn record(mut self, record: u64) -> Self {
        self.0.context.record.get_or_insert(record);
        self
    }

    /// The record is counted behind so many others.
    #[must_use]
    pub(crate) fn behind(mut self, records: u64) -> Self {
        if let Some(record) = &mut self.0.context.record {
            *record = record.saturating_add(records);
        }
        self
    }

    /// Adds the byte offset inside the file.
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

    /// The same with the global index of an element that was counted in another way.
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

    /// Returns who can mend it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Says what the user can do about it, where the code that failed knows.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The file it happened in, if any.
    pub fn file(&self) -> Option<&Path> {
        self.0.context.path.as_deref()
    }

    /// The global index of the element it happened to, if known.
    pub fn element_index(&self) -> Option<u64> {
        self.0.context.index
    }

    /// The record (or row) inside the file, from 0, if known.
    pub fn record_number(&self) -> Option<u64> {
        self.0.context.record
    }

    /// The byte offset inside the file, if known.
    pub fn byte_offset(&self) -> Option<u64> {
        self.0.context.offset
    }

    /// The stage it happened in, if known.
    pub fn stage_name(&self) -> Option<&str> {
        self.0.context.stage.as_deref()
    }
}

/// [`ErrorKind::Io`] without a path, for `?` in functions of the user; [`Error::io`] says which file it was.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::of_io(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)?;
        match &self.0.help {
            Some(help) => write!(f, " (help: {help})"),
            None => Ok(()),
        }
    }
}

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
