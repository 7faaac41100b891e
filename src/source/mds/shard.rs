//! One shard: how many samples, where each begins, what the columns are, and the samples.

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

/// Knowledge of a shard.
pub(crate) struct Shard {
    info: FileInfo,
    /// Codec of a compressed shard, and the entry of what must come out.
    packed: Option<(Codec, FileInfo)>,
    pub(super) samples: u64,
    pub(super) columns: Arc<Columns>,
    /// Number of samples and their places, once read.
    table: OnceLock<Buffer>,
    /// Whether hashes were found right; of a compressed shard that is asked each time.
    checked: AtomicBool,
}

impl Shard {
    /// The file of a shard in `folder` that is read: the one that is not compressed where there are both.
    pub(super) fn path(folder: &Path, info: &ShardInfo) -> PathBuf {
        let raw = folder.join(&info.raw_data.basename);
        match &info.zip_data {
            Some(zip) if !raw.exists() => folder.join(&zip.basename),
            _ => raw,
        }
    }

    /// The shard of which `content` is the file.
    pub(super) fn open(at: Location, content: Content, info: &ShardInfo, columns: Arc<Columns>) -> Result<File<Self>> {
        let zip = info.zip_data.as_ref().filter(|zip| at.as_ref().ends_with(&zip.basename));
        let (said, packed) = match (zip, &info.compression) {
            (Some(zip), Some(codec)) => {
                let (codec, _) = Codec::parse(codec).map_err(|e| e.path(&at))?;
                (zip, Some((codec, info.raw_data.clone())))
            }
            _ => (&info.raw_data, None),
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

    /// Bytes of the shard where it is compressed, once it is not.
    pub(super) fn unpacked_bytes(&self) -> u64 {
        self.packed.as_ref().map_or(0, |(_, raw)| raw.bytes)
    }

    /// The sample at `place` of a compressed shard.
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

    /// Bytes of the places of samples, in front of them.
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

    /// Checks the hashes of a shard that is not compressed, the first time: the mapping stays what it is.
    pub(super) fn check_once(&self) -> Result<()> {
        if !self.index.checked.load(Relaxed) {
            self.unpack(true)?;
            self.index.checked.store(true, Relaxed);
        }
        Ok(())
    }

    /// All of the shard, decompressed; with its hashes checked if it is asked for.
    pub(super) fn unpack(&self, check: bool) -> Result<Buffer> {
        let (file, info) = (self.content.whole()?, &self.index.info);
        if check {
            hash::check(&info.hashes, file.as_bytes())?;
        }
        let Some((codec, raw)) = &self.index.packed else { return Ok(file) };
        let bytes = codec.decompress(file.as_bytes(), raw.bytes).map_err(|e| e.offset(0))?;
        // The hashes of what was compressed say enough, unless there are none.
        if check && info.hashes.is_empty() {
            hash::check(&raw.hashes, &bytes)?;
        }
        Ok(Buffer::from_vec(bytes))
    }

    /// All of a compressed shard, decompressed; with its hashes checked if it is asked for.
    pub(super) fn unpacked(&self, check: bool) -> Result<Unpacked> {
        let bytes = self.unpack(check)?;
        self.index.check_count(&bytes).map_err(of_unpacked)?;
        Ok(Unpacked::Whole(bytes, self.index.samples as usize))
    }

    /// A sample of a shard that is not compressed.
    pub(super) fn read(&self, record: u64, with_images: bool) -> Result<Element> {
        self.index.sample(&self.content, self.table()?, record, with_images)
    }

    /// Finds the bytes that reading a record takes.
    pub(super) fn range(&self, record: u64) -> Option<Range<u64>> {
        if self.index.is_packed() {
            return Some(0..self.content.len());
        }
        let (begin, end) = place(self.table().ok()?, self.index.samples, record, self.content.len()).ok()?;
        Some(begin..end)
    }

    /// The same, without a wait: of a shard whose table has not come, the table.
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

    /// Checks hashes, where `index.json` has some, and the places of all samples, and decodes each.
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

/// A compressed shard, decompressed.
pub(crate) enum Unpacked {
    /// All of it, and how many samples it has.
    Whole(Buffer, usize),
    /// Some samples, and where each begins in the shard.
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

/// Finds a sample in the table of a shard of so many.
fn place(table: &Buffer, samples: u64, record: u64, length: u64) -> Result<(u64, u64)> {
    let at = 4 * (record + 1);
    let place = |at: u64| word(table, at as usize).map(u64::from);
    let (Some(begin), Some(end)) = (place(at), place(at + 4)) else {
        return Err(Error::data("has no place in the shard").offset(at));
    };
    if begin < 4 * (samples + 2) || begin > end || end > length {
        let text = format!("lies from byte {begin} to byte {end} in a shard of {length} bytes");
        return Err(Error::data(text).offset(at));
    }
    Ok((begin, end))
}

/// Says that an offset is not one of the file.
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
    /// Places of those that are read, in the order in which they are.
    chosen: Vec<usize>,
}

#[derive(Debug, PartialEq)]
struct Column {
    name: Name,
    encoding: Encoding,
    /// Bytes of every value; where there are none, each sample says.
    size: Option<u64>,
}

impl Columns {
    /// The columns that `index.json` names, of which those in `wanted` are read, or all.
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

    /// The element of a sample that begins at byte `start` of its shard.
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

    /// Finds the values in a sample: behind the sizes of those that vary, one behind the other, to its end.
    fn places(&self, sample: &Buffer) -> Result<Vec<(usize, usize)>> {
        let varying = self.all.iter().filter(|column| column.size.is_none()).count();
        let (mut sizes, mut at) = (0, 4 * varying as u64);
        let mut places = Vec::with_capacity(self.all.len());
        for column in &self.all {
            let size = match column.size {
                Some(size) => size,
                None => {
                    sizes += 4;
                    let size = word(sample, sizes - 4);
                    u64::from(size.ok_or_else(|| Error::data(format!("a sample of {} bytes", sample.len())))?)
                }
            };
            places.push((at, at.saturating_add(size)));
            at = at.saturating_add(size);
        }
        if at != sample.len() as u64 {
            return Err(Error::data(format!("values of {at} bytes in a sample of {}", sample.len())));
        }
        // All lie in the sample, whose length is one of memory.
        Ok(places.into_iter().map(|(from, to)| (from as usize, to as usize)).collect())
    }
}

/// Offsets inside a value are not offsets of the shard: they go into the message.
fn within(name: &str, error: Error) -> Error {
    let outer = Error::new(error.kind(), format!("column {name:?}: {error}"));
    match error.help_text() {
        Some(help) => outer.help(help),
        None => outer,
    }
}
