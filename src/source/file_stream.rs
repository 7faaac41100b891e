//! Sequential reading of files, one after the other, shared by the streams of all formats.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::content::{Content, Contents};
use super::files::{self, FileId};
use crate::cx::{Cx, StageId};
use crate::dataset::{Node, Records, Role, Stage};
use crate::error::{Error, Result};

/// A format that is read front to back.
pub(super) trait Forward: Send + Sync + 'static {
    /// Type of a record.
    type Record: Send + 'static;
    /// Reader of a single file.
    type Reader: Send;

    /// Returns the name of the stage.
    fn name(&self) -> &'static str;

    /// Returns the options that affect the data; an empty string if there are none.
    fn params(&self) -> String;

    /// Opens a file at the record that begins at decompressed offset `byte`, after `records` other records. At offset
    /// 0, the reader first reads the content before the first record.
    fn open(&self, path: &Path, file: &Content, byte: u64, records: u64) -> Result<Self::Reader>;

    /// Returns the next record. Returns `None` at the end of the file, and after damage that prevents further reads.
    fn next(&self, reader: &mut Self::Reader, path: &Path) -> Result<Option<Self::Record>>;

    /// Returns the offset of the next record and the number of records before it. Returns `None` if no more records can
    /// be read from the file.
    fn place(reader: &Self::Reader) -> Option<(u64, u64)>;

    /// Returns the payload bytes of a record, for the report.
    fn record_bytes(&self, record: &Self::Record) -> u64;

    /// Returns a note for the report, with the number of occurrences since the last call.
    fn take_note(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// Files of a single format, in order. Implements the public type of a stream.
pub(super) struct FileStream<F> {
    shared: Arc<Shared<F>>,
}

struct Shared<F> {
    files: Contents,
    format: F,
    identity: String,
}

impl<F: Forward> FileStream<F> {
    /// Creates a stream that reads `files`, in order, with `format`.
    pub(super) fn of(files: Contents, format: F) -> Self {
        let ids: Vec<FileId> = files.iter().map(|(path, file)| file.id(path)).collect();
        let identity = files::identity(&ids) + &format.params();
        Self { shared: Arc::new(Shared { files, format, identity }) }
    }

    /// Starts a pass at the first record of the first file.
    pub(super) fn pass(&self) -> FilePass<F> {
        FilePass { shared: self.shared.clone(), at: 0, reader: None }
    }
}

clone_as!(<F> FileStream<F>, |self| Self { shared: self.shared.clone() });

impl<F: Forward> Stage for FileStream<F> {
    fn node(&self) -> Node<'_> {
        let name = self.shared.format.name();
        Node { describe: &self.shared.identity, source: Some(self), ..Node::new(name, Role::Source) }
    }
    facts! { parents: Vec::new() }
}

impl<F: Forward> Records for FileStream<F> {
    fn files(&self) -> Vec<String> {
        files::identities(self.shared.files.iter().map(|(path, file)| file.id(path)))
    }
}

debug_as!(<F: Forward> FileStream<F>, |self, f| {
    write!(f, "{}({} files)", self.shared.format.name(), self.shared.files.len())
});

/// A pass over a [`FileStream`]. If a file cannot be opened, or if data is damaged, the pass returns the error and
/// moves past the damage. A consumer that skips bad records therefore continues with the next file or record.
pub(super) struct FilePass<F: Forward> {
    shared: Arc<Shared<F>>,
    at: usize,
    reader: Option<F::Reader>,
}

/// The position of a pass over the files of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// Number of completed files.
    pub file: u64,
    /// Offset of the next record in the current file, in decompressed bytes.
    pub byte: u64,
    /// Number of records read from the current file.
    pub record: u64,
}

impl<F: Forward> FilePass<F> {
    /// Returns the next record and counts it. Attributes an error to the stage.
    pub(super) fn next(&mut self, cx: &mut Cx) -> Result<Option<F::Record>> {
        cx.begin_element();
        crate::store::tell(cx);
        let record = cx.consumed(StageId(0), || self.read());
        if let Some((what, count)) = self.shared.format.take_note() {
            cx.note(what, count);
        }
        match record {
            Ok(Some(record)) => {
                cx.produced(StageId(0), 1, self.shared.format.record_bytes(&record));
                Ok(Some(record))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(cx.blame(StageId(0), self.shared.format.name(), error)),
        }
    }

    fn read(&mut self) -> Result<Option<F::Record>> {
        let Shared { files, format, .. } = &*self.shared;
        while let Some((path, file)) = files.get(self.at) {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => {
                    let opened = format.open(path.as_ref(), file, 0, 0);
                    self.at += usize::from(opened.is_err());
                    none.insert(opened.map_err(|e| e.path(path))?)
                }
            };
            if let Some(record) = format.next(reader, path.as_ref()).map_err(|e| e.path(path))? {
                return Ok(Some(record));
            }
            self.at += 1;
            self.reader = None;
        }
        Ok(None)
    }

    /// Attributes an error to the last record and to the stage.
    #[cold]
    pub(super) fn blame(&self, error: Error, cx: &Cx) -> Error {
        let last = self.reader.as_ref().and_then(F::place).map_or(0, |(_, records)| records.saturating_sub(1));
        let error = error.record(last);
        let error = self.shared.files.get(self.at).into_iter().fold(error, |error, (path, _)| error.path(path));
        cx.blame(StageId(0), self.shared.format.name(), error)
    }

    pub(super) fn place(&self) -> FileState {
        let file = self.at as u64;
        match self.reader.as_ref().map(F::place) {
            None => FileState { file, ..FileState::default() },
            Some(Some((byte, record))) => FileState { file, byte, record },
            // A restart does not recover the rest of a damaged file.
            Some(None) => FileState { file: file + 1, ..FileState::default() },
        }
    }

    /// Moves to a position that an earlier pass reached.
    pub(super) fn go_to(&mut self, place: &FileState) -> Result<()> {
        let Shared { files, format, .. } = &*self.shared;
        let at = usize::try_from(place.file).ok().filter(|&at| at <= files.len());
        self.at = at.ok_or_else(|| Error::state(format!("file {} of {}", place.file, files.len())))?;
        self.reader = match files.get(self.at) {
            _ if place.byte == 0 => None,
            Some((_, file)) if file.is_piped() => {
                return Err(super::stdin::refused("is read once, so that no state of it can be restored"));
            }
            Some((path, file)) => {
                let opened = format.open(path.as_ref(), file, place.byte, place.record);
                Some(opened.map_err(|e| e.path(path))?)
            }
            None => return Err(Error::state(format!("byte {} behind the last file", place.byte))),
        };
        Ok(())
    }
}

debug_as!(<F: Forward> FilePass<F>, |self, f| write!(f, "{} at {:?}", self.shared.format.name(), self.place()));

/// Returns the error for a file that is shorter than the position in a state.
#[cold]
pub(super) fn shorter(byte: u64) -> Error {
    Error::state(format!("the file is now shorter than the {byte} bytes that were read from it"))
}

/// Defines the public types of a [`FileStream`] and of its pass: a dataset of the records of a [`Forward`]. The state
/// can be any type that converts from and to [`FileState`].
macro_rules! file_stream {
    ($(#[$doc:meta])* $stream:ident $(<$param:ident: $bound:ident>)? of $item:ty, $pass:ident at $state:ident, by $format:ty) => {
        $(#[$doc])*
        #[must_use = "datasets are lazy and do nothing until read"]
        pub struct $stream $(<$param>)? ($crate::source::file_stream::FileStream<$format>);

        impl $(<$param>)? Clone for $stream $(<$param>)? {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl $(<$param: $bound>)? $crate::dataset::Stage for $stream $(<$param>)? {
            $crate::dataset::same_stage!(.0);
        }

        impl $(<$param: $bound>)? $crate::dataset::IterDataset for $stream $(<$param>)? {
            type Item = $item;
            type Iter = $pass $(<$param>)?;

            fn iter(&self, _: &$crate::exec::Runtime) -> $crate::Result<Self::Iter> {
                Ok($pass(self.0.pass()))
            }
        }

        debug_as!($(<$param: $bound>)? $stream $(<$param>)?, |self, f| self.0.fmt(f));

        #[doc = concat!("A pass over a [`", stringify!($stream), "`].")]
        pub struct $pass $(<$param: $bound>)? ($crate::source::file_stream::FilePass<$format>);

        impl $(<$param: $bound>)? $crate::dataset::DatasetIterator for $pass $(<$param>)? {
            type Item = $item;
            type State = $state;

            fn next(&mut self, cx: &mut $crate::Cx) -> $crate::Result<Option<$item>> {
                self.0.next(cx)
            }

            fn state(&self) -> $state {
                self.0.place().into()
            }

            fn restore(&mut self, state: $state, _: &mut $crate::Cx) -> $crate::Result<()> {
                self.0.go_to(&state.into())
            }
        }

        debug_as!($(<$param: $bound>)? $pass $(<$param>)?, |self, f| self.0.fmt(f));
    };
}
pub(super) use file_stream;
