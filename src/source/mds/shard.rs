//! Reading of one shard: number of samples, their positions, columns, and data.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::super::content::Content;
use super::codec::Codec;
use super::encoding::{Encoding, pickled};
use super::hash;
use super::index::{FileInfo, ShardInfo};
use crate::element::{Buffer, Element, Name};
use crate::error::{Error, Result};
use crate::place::Location;
use crate::source::numbered::File;
use crate::source::units::Unit;

/// Description of a shard: its file, its columns, and the positions of its samples.
pub(crate) struct Shard {
    info: FileInfo,
    /// Codec of a compressed shard, and the entry of its decompressed form.
    packed: Option<(Codec, FileInfo)>,
    pub(super) samples: u64,
    pub(super) columns: Arc<Columns>,
    /// Number of samples and their positions, read on first use.
    table: OnceLock<Buffer>,
    /// True if the hashes were found correct. For a compressed shard, hashes are checked at each decompression instead.
    checked: AtomicBool,
}

impl Shard {
    /// Returns the path of a shard in `folder`. An uncompressed file takes precedence over its compressed copy.
    pub(super) fn path(folder: &Path, info: &ShardInfo) -> PathBuf {
        let raw = folder.join(&info.raw_data.basename);
        match &info.zip_data {
            Some(zip) if !raw.exists() => folder.join(&zip.basename),
            _ => raw,
        }
    }

    /// Builds the shard with the file `content`, and checks its length.
    pub(super) fn open(at: Location, content: Content, info: &ShardInfo, columns: Arc<Columns>) -> Result<File<Self>> {
        let zip = info.zip_data.as_ref().filter(|zip| at.as_ref().ends_with(&zip.basename));
        let (said, packed) = if let (Some(zip), Some(codec)) = (zip, &info.compression) {
            let (codec, _) = Codec::parse(codec).map_err(|e| e.path(&at))?;
            (zip, Some((codec, info.raw_data.clone())))
        } else {
            (&info.raw_data, None)
        };
        let (table, checked) = (OnceLock::new(), AtomicBool::new(false));
        let index = Self { info: said.clone(), packed, samples: info.samples, columns, table, checked };
        let file = File { path: at, content, index };
        file.check_size()?;
        Ok(file)
    }

    pub(super) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    /// Returns the size of a compressed shard after decompression, or 0 for an uncompressed shard.
    pub(super) fn unpacked_bytes(&self) -> u64 {
        self.packed.as_ref().map_or(0, |(_, raw)| raw.bytes)
    }

    /// Returns the sample at `place` of a decompressed shard.
    pub(super) fn read_unpacked(&self, unpacked: &Unpacked, place: usize, with_images: bool) -> Result<Element> {
        let read = match unpacked {
            Unpacked::Whole(bytes, _) => self.sample(&Content::from(bytes.clone()), bytes, place as u64, with_images),
            Unpacked::Some(samples) => match samples.get(place) {
                Some((begin, bytes)) => self.columns.decode(bytes, *begin, with_images),
                None => Err(Error::data("is not where it was kept")),
            },
        };
        read.map_err(of_unpacked)
    }

    /// Returns the size in bytes of the table of positions, which precedes the samples.
    fn table_len(&self) -> u64 {
        4 * (self.samples + 2)
    }

    fn check_count(&self, table: &Buffer) -> Result<()> {
        let said = word(table, 0).map(u64::from);
        if said != Some(self.samples) {
            let text = format!("{} samples, index.json says {}", said.unwrap_or_default(), self.samples);
            return Err(Error::data(text).offset(0));
        }
        Ok(())
    }

    fn sample(&self, shard: &Content, table: &Buffer, record: u64, with_images: bool) -> Result<Element> {
        let (begin, end) = place(table, self.samples, record, shard.len())?;
        self.columns.decode(&shard.read(begin..end)?, begin, with_images)
    }
}

impl File<Shard> {
    fn check_size(&self) -> Result<()> {
        let (there, said) = (self.content.len(), self.index.info.bytes);
        if there != said {
            let text = format!("{there} bytes, index.json says {said}");
            return Err(Error::data(text).path(&self.path).offset(there.min(said)).help("the file is cut or damaged"));
        }
        Ok(())
    }

    /// Checks the hashes of an uncompressed shard on first use only, because the mapping does not change afterwards.
    pub(super) fn check_once(&self) -> Result<()> {
        if !self.index.checked.load(Relaxed) {
            self.unpack(true)?;
            self.index.checked.store(true, Relaxed);
        }
        Ok(())
    }

    /// Returns the whole shard, decompressed if necessary. Checks its hashes if `check` is set.
    pub(super) fn unpack(&self, check: bool) -> Result<Buffer> {
        let (file, info) = (self.content.whole()?, &self.index.info);
        if check {
            hash::check(&info.hashes, file.as_bytes())?;
        }
        let Some((codec, raw)) = &self.index.packed else { return Ok(file) };
        let bytes = codec.decompress(file.as_bytes(), raw.bytes).map_err(|e| e.offset(0))?;
        // Correct hashes of the compressed file imply correct contents.
        if check && info.hashes.is_empty() {
            hash::check(&raw.hashes, &bytes)?;
        }
        Ok(Buffer::from_vec(bytes))
    }

    /// Decompresses a compressed shard. Checks its hashes if `check` is set.
    pub(super) fn unpacked(&self, check: bool) -> Result<Unpacked> {
        let bytes = self.unpack(check)?;
        self.index.check_count(&bytes).map_err(of_unpacked)?;
        Ok(Unpacked::Whole(bytes, self.index.samples as usize))
    }

    /// Reads a sample of an uncompressed shard.
    pub(super) fn read(&self, record: u64, with_images: bool) -> Result<Element> {
        self.index.sample(&self.content, self.table()?, record, with_images)
    }

    /// Returns the byte range needed to read a record.
    pub(super) fn range(&self, record: u64) -> Option<Range<u64>> {
        if self.index.is_packed() {
            return Some(0..self.content.len());
        }
        let (begin, end) = place(self.table().ok()?, self.index.samples, record, self.content.len()).ok()?;
        Some(begin..end)
    }

    /// Like `range`, but does not wait for the table. Returns the table's range if it is not loaded.
    pub(super) fn next_range(&self, record: u64) -> Option<Range<u64>> {
        let is_known = self.index.is_packed() || self.index.table.get().is_some();
        if is_known { self.range(record) } else { Some(0..self.index.table_len()) }
    }

    fn table(&self) -> Result<&Buffer> {
        if let Some(table) = self.index.table.get() {
            return Ok(table);
        }
        let table = self.content.read(0..self.index.table_len())?;
        self.index.check_count(&table)?;
        Ok(self.index.table.get_or_init(|| table))
    }

    /// Checks the hashes if `index.json` has any, and the positions of all samples, and decodes each sample.
    pub(super) fn verify(&self, with_images: bool) -> Result<()> {
        let fault = |e: Error| e.path(&self.path);
        let Shard { info, packed, samples, .. } = &self.index;
        let check = !info.hashes.is_empty() || packed.as_ref().is_some_and(|(_, raw)| !raw.hashes.is_empty());
        if packed.is_none() {
            self.unpack(check).map_err(fault)?;
            return (0..*samples)
                .try_for_each(|record| self.read(record, with_images).map(drop).map_err(|e| fault(e).record(record)));
        }
        let unpacked = self.unpacked(check).map_err(fault)?;
        (0..*samples).try_for_each(|record| {
            let read = self.index.read_unpacked(&unpacked, record as usize, with_images);
            read.map(drop).map_err(|e| fault(e).record(record))
        })
    }
}

/// A decompressed shard, or some samples of it.
pub(crate) enum Unpacked {
    /// The whole shard, and its number of samples.
    Whole(Buffer, usize),
    /// Selected samples, each with its position in the shard.
    Some(Vec<(u64, Buffer)>),
}

impl Unit for Unpacked {
    fn memory(&self) -> usize {
        match self {
            Self::Whole(bytes, _) => bytes.len(),
            Self::Some(samples) => samples.iter().map(|(_, bytes)| bytes.len() + size_of::<(u64, Buffer)>()).sum(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Whole(_, samples) => *samples,
            Self::Some(samples) => samples.len(),
        }
    }

    fn only(&self, rows: &[u32]) -> Option<Self> {
        let Self::Whole(shard, samples) = self else { return None };
        let sample = |&row: &u32| {
            let (begin, end) = place(shard, *samples as u64, row.into(), shard.len() as u64).ok()?;
            Some((begin, Buffer::copy_from(&shard.as_bytes()[begin as usize..end as usize])))
        };
        rows.iter().map(sample).collect::<Option<_>>().map(Self::Some)
    }
}

/// Returns the byte range of a sample, from the table of a shard with `samples` samples.
fn place(table: &Buffer, samples: u64, record: u64, length: u64) -> Result<(u64, u64)> {
    let at = 4 * (record + 1);
    let place = |at: u64| word(table, at as usize).map(u64::from);
    let (Some(begin), Some(end)) = (place(at), place(at + 4)) else {
        return Err(Error::data("has no place in the shard").offset(at));
    };
    if begin < 4 * (samples + 2) || begin > end || end > length {
        let text = format!("extends from byte {begin} to byte {end}, but the shard has {length} bytes");
        return Err(Error::data(text).offset(at));
    }
    Ok((begin, end))
}

/// Notes in an error that its offset refers to the decompressed shard.
#[cold]
fn of_unpacked(error: Error) -> Error {
    error.and(" (bytes of the decompressed shard)")
}

fn word(bytes: &Buffer, at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.as_bytes().get(at..)?.first_chunk()?))
}

/// The columns of a shard.
#[derive(Debug, PartialEq)]
pub(super) struct Columns {
    all: Vec<Column>,
    /// Indices of the columns to read, in output order.
    chosen: Vec<usize>,
}

#[derive(Debug, PartialEq)]
struct Column {
    name: Name,
    encoding: Encoding,
    /// Size of a value in bytes. If `None`, each sample contains the size.
    size: Option<u64>,
}

impl Columns {
    /// Builds the columns listed in `index.json`. Only columns in `wanted` are read, or all columns if it is `None`.
    pub(super) fn of(info: &ShardInfo, wanted: Option<&[Name]>) -> Result<Self> {
        let parts = info.column_names.iter().zip(&info.column_encodings).zip(&info.column_sizes);
        let column = |((name, encoding), size): ((&String, &String), &Option<u64>)| {
            let encoding = Encoding::parse(encoding).map_err(|e| within(name, e))?;
            Ok(Column { name: Name::new(name), encoding, size: size.filter(|&size| size > 0) })
        };
        let all = parts.map(column).collect::<Result<Vec<_>>>()?;
        if let Some((_, twice)) =
            all.iter().enumerate().find(|(i, c)| all[..*i].iter().any(|other| other.name == c.name))
        {
            return Err(Error::data(format!("column {:?} is there twice", twice.name)));
        }
        let names = || all.iter().map(|column| column.name.as_str());
        let find = |name: &Name| {
            let place = names().position(|known| known == name);
            place.ok_or_else(|| Error::config(super::super::columns::instead(name, names())))
        };
        let chosen: Vec<usize> = match wanted {
            None => (0..all.len()).collect(),
            Some(wanted) => wanted.iter().map(find).collect::<Result<_>>()?,
        };
        if let Some(column) = chosen.iter().map(|&place| &all[place]).find(|c| c.encoding == Encoding::Pickle) {
            return Err(within(&column.name, pickled()));
        }
        Ok(Self { all, chosen })
    }

    /// Decodes a sample that begins at byte `start` of its shard.
    fn decode(&self, sample: &Buffer, start: u64, with_images: bool) -> Result<Element> {
        let places = self.places(sample).map_err(|e| e.offset(start))?;
        let mut fields = Vec::with_capacity(self.chosen.len());
        for &chosen in &self.chosen {
            let (column, (from, to)) = (&self.all[chosen], places[chosen]);
            let data = sample.slice(from..to).unwrap_or(Buffer::EMPTY);
            let value = column.encoding.decode(data, with_images);
            fields.push((column.name.clone(), value.map_err(|e| within(&column.name, e).offset(start + from as u64))?));
        }
        Ok(Element::from_unique(fields))
    }

    /// Returns the byte ranges of the values, which follow the table of varying sizes and fill the sample exactly.
    fn places(&self, sample: &Buffer) -> Result<Vec<(usize, usize)>> {
        let varying = self.all.iter().filter(|column| column.size.is_none()).count();
        let (mut sizes, mut at) = (0, 4 * varying as u64);
        let mut places = Vec::with_capacity(self.all.len());
        for column in &self.all {
            let size = if let Some(size) = column.size {
                size
            } else {
                sizes += 4;
                let size = word(sample, sizes - 4);
                u64::from(size.ok_or_else(|| Error::data(format!("a sample of {} bytes", sample.len())))?)
            };
            places.push((at, at.saturating_add(size)));
            at = at.saturating_add(size);
        }
        if at != sample.len() as u64 {
            return Err(Error::data(format!("values of {at} bytes in a sample of {}", sample.len())));
        }
        // All ranges lie within the sample, so they fit in `usize`.
        Ok(places.into_iter().map(|(from, to)| (from as usize, to as usize)).collect())
    }
}

/// Moves offsets within a value into the message, because they are not offsets of the shard.
fn within(name: &str, error: Error) -> Error {
    error.place_in_message().of(&format!("column {name:?}"))
}
