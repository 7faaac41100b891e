//! Shards read front to back: what compression leaves of them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::content::Content;
use super::super::files::{self, FileId};
use super::input::{Inflated, Input};
use super::sample::{Samples, Wanted};
use super::walk::Walk;
use crate::cx::{Cx, StageId};
use crate::dataset::{DatasetIterator, IterDataset, Role, Stage};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// Samples of WebDataset shards, of gzip, zstd or plain, read front to back: an [`IterDataset`] of [`Element`], each as
/// [`WebDataset`](super::WebDataset) has it.
///
/// Made by [`WebDatasetOptions::stream`](super::WebDatasetOptions::stream). Compression is known by its magic number. Files follow each other in the order
/// of [`find`](super::super::find); a sample does not reach over the end of its file.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the sample and its byte offset (in the decompressed data, where it is compressed). A sample that
/// cannot be decoded is an error of that sample alone; where an archive is damaged, nothing says where the next header is: the sample
/// that reaches there is lost, and the next one read is the first of the next file.
///
/// # Cost
/// One thread decompresses; several do if each file is a stream of its own and they are read as
/// [`lanes`](crate::dataset::iter::lanes()). A resume decompresses the present file again up to its place. Memory: one sample.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct WebDatasetStream {
    shared: Arc<Shared>,
}

struct Shared {
    files: Vec<(PathBuf, Content)>,
    wanted: Wanted,
    identity: String,
}

impl WebDatasetStream {
    pub(super) fn of(files: Vec<(PathBuf, Content)>, wanted: Wanted) -> Result<Self> {
        let ids = files.iter().map(|(path, file)| file.id(path)).collect::<Result<Vec<FileId>>>()?;
        let identity = files::identity(&ids) + &wanted.identity();
        Ok(Self { shared: Arc::new(Shared { files, wanted, identity }) })
    }
}

const NAME: &str = "webdataset_stream";

impl Stage for WebDatasetStream {
    fn name(&self) -> &'static str {
        NAME
    }
    fn params(&self) -> String {
        self.shared.identity.clone()
    }
    fn role(&self) -> Role {
        Role::Source
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }
}

impl IterDataset for WebDatasetStream {
    type Item = Element;
    type Iter = WebDatasetIter;

    fn iter(&self, _: &Runtime) -> Result<WebDatasetIter> {
        Ok(WebDatasetIter { shared: self.shared.clone(), file: 0, reader: None })
    }
}

/// A pass over a [`WebDatasetStream`].
pub struct WebDatasetIter {
    shared: Arc<Shared>,
    file: usize,
    reader: Option<Reader>,
}

/// Where a [`WebDatasetIter`] is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebDatasetState {
    /// Files that are behind it.
    pub file: u64,
    /// Where the next sample begins in the present file, decompressed.
    pub byte: u64,
    /// Samples of the present file that are behind it.
    pub record: u64,
}

/// Reads one file.
struct Reader {
    samples: Samples<Inflated>,
    /// Samples behind it.
    record: u64,
    /// Nothing says where the next sample begins.
    lost: bool,
}

impl Reader {
    /// In front of sample `record`, which begins at `byte`.
    fn open(file: &Content, byte: u64, record: u64) -> Result<Self> {
        let mut input = Inflated::open(file)?;
        if input.skip(byte)? < byte {
            return Err(Error::state(format!("the file has fewer than the {byte} bytes that were read of it")));
        }
        Ok(Self { samples: Samples::new(Walk::whole(input)), record, lost: false })
    }

    fn next(&mut self, wanted: &Wanted, url: &str) -> Result<Option<Element>> {
        if self.lost {
            return Ok(None);
        }
        let sample = self.samples.next().inspect_err(|_| self.lost = true);
        let Some(sample) = sample.map_err(|e| self.place(e, self.record))? else { return Ok(None) };
        self.record += 1;
        wanted.element(sample, url).map(Some).map_err(|e| self.place(e, self.record - 1))
    }

    /// Adds the sample, and says of what the offset is one.
    #[cold]
    fn place(&self, error: Error, record: u64) -> Error {
        let error = error.record(record);
        if self.samples.input().is_compressed() { error.and(" (bytes of the decompressed data)") } else { error }
    }
}

impl WebDatasetIter {
    fn read(&mut self) -> Result<Option<Element>> {
        let shared = &*self.shared;
        while let Some((path, file)) = shared.files.get(self.file) {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => none.insert(Reader::open(file, 0, 0).map_err(|e| e.path(path))?),
            };
            let next = reader.next(&shared.wanted, &path.to_string_lossy()).map_err(|e| e.path(path))?;
            if next.is_some() {
                return Ok(next);
            }
            self.file += 1;
            self.reader = None;
        }
        Ok(None)
    }
}

impl DatasetIterator for WebDatasetIter {
    type Item = Element;
    type State = WebDatasetState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Element>> {
        cx.begin_element();
        match cx.consumed(StageId(0), || self.read()) {
            Ok(Some(element)) => {
                cx.produced(StageId(0), 1, element.nbytes() as u64);
                Ok(Some(element))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(cx.blame(StageId(0), NAME, error)),
        }
    }

    fn state(&self) -> WebDatasetState {
        let file = self.file as u64;
        match &self.reader {
            // What is left of a file that is lost does not come back by starting again, and behind the end nothing says that it is one.
            Some(reader) if reader.lost || reader.samples.is_over() => {
                WebDatasetState { file: file + 1, byte: 0, record: 0 }
            }
            Some(reader) => WebDatasetState { file, byte: reader.samples.position(), record: reader.record },
            None => WebDatasetState { file, byte: 0, record: 0 },
        }
    }

    fn restore(&mut self, state: WebDatasetState, _: &mut Cx) -> Result<()> {
        let files = &self.shared.files;
        let file = usize::try_from(state.file).ok().filter(|&file| file <= files.len());
        self.file = file.ok_or_else(|| Error::state(format!("file {} of {}", state.file, files.len())))?;
        self.reader = match files.get(self.file) {
            _ if state.byte == 0 => None,
            Some((path, file)) => Some(Reader::open(file, state.byte, state.record).map_err(|e| e.path(path))?),
            None => return Err(Error::state(format!("byte {} behind the last file", state.byte))),
        };
        Ok(())
    }
}

impl fmt::Debug for WebDatasetStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebDatasetStream({} files)", self.shared.files.len())
    }
}

impl fmt::Debug for WebDatasetIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebDatasetIter({:?})", self.state())
    }
}
