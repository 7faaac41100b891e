//! Megatron's indexed datasets: a `.bin` file of token ids, and an `.idx` file with the positions of sequences and
//! documents.
//!
//! Formats: `IndexedDataset` of Megatron-Core (`megatron/core/datasets/indexed_dataset.py`), whose index starts with
//! `MMIDIDX`, and the cached datasets of fairseq and of the earlier Megatron-LM, whose index starts with `TNTIDX`.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod index;
mod samples;
mod writer;

use std::ops::Range;
use std::path::{Path, PathBuf};

use self::index::Index;
pub use self::samples::{MegatronSamples, MegatronSamplesOptions, MegatronSplit};
pub use self::writer::{MegatronWriter, MegatronWriterOptions};
use super::content::{self, Content};
use super::files::{self, Patterns, Renamed};
use super::formats::Format;
use super::npy::aligned;
use super::numbered::{File, Files, Numbered, Opening, named_source, reader, source_options};
use crate::element::{Array, Buffer, DType, Element, Name, Ragged, RaggedColumn};
use crate::error::{Error, Result};
use crate::mmap::Access;

pub(crate) use self::index::is_index;

/// Unit of records of [`Megatron`] files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MegatronUnit {
    /// A sequence, as passed to the writer.
    #[default]
    Sequence,
    /// A document: its sequences, concatenated.
    Document,
}

/// Token ids of Megatron's indexed datasets: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of
/// [`Element`].
///
/// A record is `{tokens: [ids]}`. Its number type is that of the index: `uint8`, `int8`, `uint16`, `int16`, `int32`,
/// `int64`, `float32` or `float64`, and in a legacy index also `uint32` or `uint64`. The ids are a view of the mapped
/// file, unless a document's sequences are not contiguous in it. If the index has modes, records also have a field
/// `mode`: an `int8` for a sequence, or an array of `int8` for a document, with a mode per sequence.
///
/// A dataset is named by its `.idx` file, its `.bin` file, or the part that both names share. Both kinds of index are
/// supported: `MMIDIDX` of Megatron-Core, and `TNTIDX` of its predecessors and fairseq. For crops that ignore the
/// boundaries of sequences, open the dataset as [`Tokens`](super::Tokens).
///
/// # Errors
/// Opening fails with [`ErrorKind::Data`](crate::ErrorKind::Data) and the byte offset if the index is truncated, or has
/// an unknown version or number type. A bad position or length fails only the affected sequence or document, on
/// reading.
///
/// # Cost
/// Opening maps both files and reads the header of the index. Reading a record accesses the index entries of its
/// sequences.
pub struct Megatron(Files<MegatronUnit>);

/// Options for opening [`Megatron`] datasets.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct MegatronOptions {
    access: Access,
    unit: MegatronUnit,
}

source_options!(MegatronOptions of Megatron, access at access);

impl MegatronOptions {
    /// Sets the unit of records. Default: sequences.
    pub fn unit(mut self, unit: MegatronUnit) -> Self {
        self.unit = unit;
        self
    }

    /// Opens datasets, globs of their `.idx` files, or directories of datasets.
    ///
    /// # Errors
    /// If nothing is found, a `.bin` file is missing, or the header of an index is damaged.
    pub fn open(self, patterns: impl Patterns) -> Result<Megatron> {
        let names = patterns.patterns().iter().map(|path| index_of(path)).collect();
        let contents = content::open_all(Renamed { names, given: patterns }, Format::Megatron.endings(), self.access)?;
        Files::open(self.unit, contents, |_, file| open(file, Content::open(&file.path.beside(data_of), self.access)?))
            .map(Megatron)
    }

    /// Opens a dataset in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(self, index: &[u8], data: &[u8]) -> Result<Megatron> {
        let contents = vec![("a.idx".into(), Buffer::copy_from(index).into())];
        Files::open(self.unit, contents, |_, file| open(file, Buffer::copy_from(data).into())).map(Megatron)
    }
}

/// Opens the index in `file`, and makes `data` the content of the file.
fn open(file: &mut Opening, data: Content) -> Result<Index> {
    file.id.hash ^= data.id(&file.path).hash.rotate_left(1);
    let index = Index::open(&file.content)?;
    file.content = data;
    Ok(index)
}

/// Returns the index file of the dataset with this path.
pub(crate) fn index_of(path: &Path) -> PathBuf {
    if path.extension().is_some_and(|ending| ending == "bin") {
        return path.with_extension("idx");
    }
    let longer = append(path, ".idx");
    if path.is_file() || !longer.is_file() { path.to_owned() } else { longer }
}

/// Returns the data file that belongs to an index file.
fn data_of(index: &Path) -> PathBuf {
    index.with_extension("bin")
}

/// Returns the data file of the dataset with this path. Returns any other path unchanged.
pub(crate) fn ids_of(path: &Path) -> PathBuf {
    let index = index_of(path);
    if index.extension().is_some_and(|ending| ending == "idx") { data_of(&index) } else { path.to_owned() }
}

fn append(path: &Path, ending: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(ending);
    longer.into()
}

/// Returns true if the path is a `.bin` file with a Megatron index next to it.
pub(crate) fn has_index_beside(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "bin") && stored_type(path).is_some()
}

/// Returns the number type of a `.bin` file's ids. Returns `None` if no readable Megatron index is next to it.
pub(crate) fn stored_type(path: &Path) -> Option<Result<DType>> {
    let path = path.with_extension("idx");
    let content = path.is_file().then(|| Content::open(&path.as_path().into(), Access::Normal).ok()).flatten()?;
    let head = content.read(0..content.len().min(16)).ok()?;
    is_index(head.as_bytes()).then(|| Index::open(&content).map(|index| index.dtype).map_err(|e| e.path(&path)))
}

impl File<Index> {
    fn sequence(&self, number: u64) -> Result<Element> {
        let bytes = self.index.sequence(number)?;
        let element = Element::with_capacity(2).with("tokens", self.ids(bytes)?);
        Ok(match self.index.modes() {
            Some(modes) => element.with("mode", modes.row(number as usize).ok_or_else(|| Error::data("no such mode"))?),
            None => element,
        })
    }

    /// Returns the byte ranges of sequences in the data, with contiguous ranges merged.
    fn parts(&self, sequences: Range<u64>) -> Result<Vec<Range<u64>>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for sequence in sequences {
            let next = self.index.sequence(sequence)?;
            match parts.last_mut() {
                Some(last) if last.end == next.start => last.end = next.end,
                _ => parts.push(next),
            }
        }
        Ok(parts)
    }

    fn document(&self, number: u64) -> Result<Element> {
        let range = self.index.document(number)?;
        let parts = self.parts(range.clone())?;
        let tokens = match parts.as_slice() {
            [] => self.ids(0..0)?,
            [one] => self.ids(one.clone())?,
            several => self.joined(several)?,
        };
        let element = Element::with_capacity(2).with("tokens", tokens);
        let modes = self.index.modes().map(|modes| modes.rows(range.start as usize..range.end as usize));
        Ok(if let Some(modes) = modes.flatten() { element.with("mode", modes) } else { element })
    }

    /// Returns the ids in a byte range of the data.
    fn ids(&self, range: Range<u64>) -> Result<Array> {
        let bytes = self.bytes(range)?;
        let dtype = self.index.dtype;
        aligned(Array::new(dtype, &[bytes.len() / dtype.size()], bytes)?)
    }

    /// Returns the byte range of a record's ids. Returns `None` if the file is not in memory, the ids are not
    /// contiguous, or records have modes.
    fn place(&self, number: u64, unit: MegatronUnit) -> Option<Range<u64>> {
        if self.content.here().is_none() || self.index.modes().is_some() {
            return None;
        }
        match unit {
            MegatronUnit::Sequence => self.index.sequence(number).ok(),
            MegatronUnit::Document => match self.parts(self.index.document(number).ok()?).ok()?.as_slice() {
                [] => Some(0..0),
                [one] => Some(one.clone()),
                _ => None,
            },
        }
    }

    fn bytes(&self, range: Range<u64>) -> Result<Buffer> {
        let size = self.content.len();
        if range.end > size {
            let name = data_of(self.path.as_ref());
            let text =
                format!("bytes {} to {} of {}, which has {size}", range.start, range.end, files::file_name(&name));
            return Err(Error::data(text).help("one of the two files is cut, damaged, or belongs to another dataset"));
        }
        self.content.read(range)
    }

    /// Concatenates the ids in several byte ranges.
    fn joined(&self, parts: &[Range<u64>]) -> Result<Array> {
        let size: u64 = parts.iter().map(|part| part.end - part.start).fold(0, u64::saturating_add);
        if size > self.content.len() {
            return Err(Error::data(format!("its sequences overlap: they have {size} bytes together")));
        }
        // Reads all ranges before allocating, so that a damaged index cannot cause a large allocation.
        let pieces = parts.iter().map(|part| self.bytes(part.clone())).collect::<Result<Vec<_>>>()?;
        let dtype = self.index.dtype;
        let mut ids = Array::builder(dtype, &[size as usize / dtype.size()])?;
        let mut rest = ids.bytes_mut();
        for bytes in pieces {
            let (out, behind) = rest.split_at_mut(bytes.len());
            out.copy_from_slice(bytes.as_bytes());
            rest = behind;
        }
        Ok(ids.freeze())
    }
}

impl Megatron {
    /// Returns the records as references into the mapped files, without copying ids.
    fn ragged(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
        if names != ["tokens"] {
            return None;
        }
        let files = &self.0.files;
        let dtype = files.first()?.index.dtype;
        let (mut column, mut memory) = (RaggedColumn::new(dtype, &[], indices.len()), vec![None; files.len()]);
        for (row, &index) in indices.iter().enumerate() {
            let (at, number) = self.0.find(index).ok()?;
            let file = &files[at];
            let place = file.place(number, self.0.format).filter(|_| file.index.dtype == dtype)?;
            let memory = match memory[at] {
                Some(memory) => memory,
                None => *memory[at].insert(column.add_view(file.content.whole().ok()?)),
            };
            let (start, len) = (usize::try_from(place.start).ok()?, usize::try_from(place.end - place.start).ok()?);
            column.place(row, memory, start, len / dtype.size())?;
        }
        Ragged::new(indices.len()).with_column(column).ok()
    }
}

impl Numbered for MegatronUnit {
    type Record = Element;
    type Index = Index;

    const NAME: &'static str = "megatron";
    const IS_VIEW: bool = true;

    fn len(&self, file: &File<Index>) -> u64 {
        match self {
            Self::Sequence => file.index.sequences,
            Self::Document => file.index.documents(),
        }
    }

    fn read(&self, file: &File<Index>, number: u64) -> Result<Element> {
        match self {
            Self::Sequence => file.sequence(number),
            Self::Document => file.document(number),
        }
    }

    fn ranges(&self, file: &File<Index>, number: u64) -> impl IntoIterator<Item = Range<u64>> {
        let ranges = match self {
            Self::Sequence => file.index.sequence(number).map(|range| vec![range]),
            Self::Document => file.index.document(number).and_then(|sequences| file.parts(sequences)),
        };
        ranges.unwrap_or_default()
    }

    fn params(&self) -> String {
        let unit = match self {
            Self::Sequence => "sequence",
            Self::Document => "document",
        };
        format!(", by={unit}")
    }
}

named_source!(Megatron of Element {
    fn read_ragged(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
        self.ragged(indices, names)
    }
});

reader! {
    /// Opens Megatron's indexed datasets, with a record for each sequence: see [`Megatron`](crate::source::Megatron).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-megatron-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::Megatron).open(&dir)?;
    /// # sink.write(Element::new().with("tokens", Array::from_vec(vec![5_i32, 6, 2])))?;
    /// # sink.finish()?;
    /// let packed = gristmill::megatron(&dir)?.shuffle(42).to_iter().window_pack(1024).batch(8);
    /// assert_eq!(packed.collect()?[0].array("tokens")?.shape(), [1, 1024]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    megatron: Megatron
}

#[cfg(test)]
mod tests;
