//! Files read front to back, one behind the other: what the streams of all formats share.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::content::{Content, Contents};
use super::files::{self, FileId};
use crate::cx::{Cx, StageId};
use crate::dataset::{Role, Stage};
use crate::error::{Error, Result};

/// A format that is read front to back.
pub(super) trait Forward: Send + Sync + 'static {
    /// The type that a record becomes.
    type Record: Send + 'static;
    /// Reads one file.
    type Reader: Send;

    /// The name of the stage.
    fn name(&self) -> &'static str;

    /// Its options that shape the data; empty if none does.
    fn params(&self) -> String;

    /// A reader in front of the record that begins at `byte` of the file, decompressed, behind `records` others; at 0 it
    /// reads what stands in front of the first.
    fn open(&self, path: &Path, file: &Content, byte: u64, records: u64) -> Result<Self::Reader>;

    /// The next record, or `None` where the file is over, which is also behind what nothing more can be read of.
    fn next(&self, reader: &mut Self::Reader, path: &Path) -> Result<Option<Self::Record>>;

    /// Finds where the next record begins, and how many are before it; `None` if there is no more to be had of the file.
    fn place(reader: &Self::Reader) -> Option<(u64, u64)>;

    /// Payload bytes of a record, for the report.
    fn record_bytes(&self, record: &Self::Record) -> u64;

    /// A remark that the report counts, and how often it has happened since this was last asked.
    fn take_note(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// Files of one format, in their order: what is behind the public name of a stream.
pub(super) struct FileStream<F> {
    shared: Arc<Shared<F>>,
}

struct Shared<F> {
    files: Contents,
    format: F,
    identity: String,
}

impl<F: Forward> FileStream<F> {
    /// Files in their order, and how they are read.
    pub(super) fn of(files: Contents, format: F) -> Self {
        let ids: Vec<FileId> = files.iter().map(|(path, file)| file.id(path)).collect();
        let identity = files::identity(&ids) + &format.params();
        Self { shared: Arc::new(Shared { files, format, identity }) }
    }

    /// A pass from the first record of the first file on.
    pub(super) fn pass(&self) -> FilePass<F> {
        FilePass { shared: self.shared.clone(), at: 0, reader: None }
    }
}

impl<F> Clone for FileStream<F> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<F: Forward> Stage for FileStream<F> {
    fn name(&self) -> &'static str {
        self.shared.format.name()
    }
    fn params(&self) -> String {
        self.shared.identity.clone()
    }
    fn role(&self) -> Role {
        Role::Source
    }
    fn files(&self) -> Vec<String> {
        files::identities(self.shared.files.iter().map(|(path, file)| file.id(path)))
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }
}

impl<F: Forward> fmt::Debug for FileStream<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} files)", self.name(), self.shared.files.len())
    }
}

/// A pass over a [`FileStream`]. A file that cannot be opened is behind it once that is told, as what is damaged is: who skips
/// bad records goes on with the next one.
pub(super) struct FilePass<F: Forward> {
    shared: Arc<Shared<F>>,
    at: usize,
    reader: Option<F::Reader>,
}

/// The position of a pass over the files of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// Files that are behind it.
    pub file: u64,
    /// The byte at which the next record begins in the present file, decompressed.
    pub byte: u64,
    /// Records of the present file that are behind it.
    pub record: u64,
}

impl<F: Forward> FilePass<F> {
    /// The next record, counted, and what fails blamed on the stage.
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

    /// An error in the record that was read last.
    #[cfg(feature = "tf_record")]
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
            // What is left of a file that is lost does not come back by starting again.
            Some(None) => FileState { file: file + 1, ..FileState::default() },
        }
    }

    /// Goes to a place that was reached before.
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

impl<F: Forward> fmt::Debug for FilePass<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.shared.format.name(), self.place())
    }
}

/// Says that a file is not the one of which a state was made.
#[cold]
pub(super) fn shorter(byte: u64) -> Error {
    Error::state(format!("the file has fewer than the {byte} bytes that were read of it"))
}

/// The public names of a [`FileStream`] and of its pass: a dataset of what a [`Forward`] reads, whose states are anything that is made of
/// a [`FileState`] and back.
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

        impl $(<$param: $bound>)? std::fmt::Debug for $stream $(<$param>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

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

        impl $(<$param: $bound>)? std::fmt::Debug for $pass $(<$param>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
pub(super) use file_stream;
