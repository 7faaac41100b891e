//! Writing of MDS folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::codec::Codec;
use super::encode::infer;
use super::encoding::{Encoding, pickled};
use super::hash;
use super::index::{FileInfo, INDEX};
use super::layout::{self, Column, Config};
use crate::element::{Element, Value};
use crate::error::{Error, Result};

/// Writes samples to an MDS folder. [`finish`](Self::finish) writes `index.json`, which readers require.
///
/// ```
/// use gristmill::dataset::map::RandomAccess;
/// use gristmill::source::{Mds, MdsWriter};
/// use gristmill::{Array, Element};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-mds-{}", std::process::id()));
/// let mut writer = MdsWriter::options().compression("zstd").hashes(["xxh64"]).create(&dir)?;
/// for id in 0..3 {
///     writer.write(&Element::new().with("id", Array::scalar(id)).with("text", "oat"))?;
/// }
/// writer.finish()?;
/// assert_eq!(Mds::open(&dir)?.read(2)?.array("id")?.as_i64(), Some(2));
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// The columns are inferred from the first element unless they are [given](MdsWriterOptions::columns). They are sorted
/// by name, as the format requires. Inferred encodings are `str` for text, `bytes` for bytes, the number type for
/// scalars (`int` for `i64`), `ndarray` with the number type for arrays, and `json` for other values. Every element
/// must have all columns. Additional fields are errors unless the columns are given.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with record and column for a value that its encoding cannot represent.
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if a file cannot be written.
///
/// # Determinism
/// Equal elements and options produce equal bytes for a given version of the codecs. Uncompressed shards are identical
/// to those that streaming 0.13.0 writes.
///
/// # Cost
/// Holds one shard in memory. A full shard is hashed, compressed and written.
#[must_use = "a folder that is not finished cannot be read"]
pub struct MdsWriter {
    out: Out,
    options: MdsWriterOptions,
    columns: Vec<Column>,
    /// Header of each shard, set once the columns are known.
    config: Vec<u8>,
    shard: Pending,
    /// Entry of each shard in `index.json`.
    shards: Vec<Vec<u8>>,
    samples: u64,
}

/// Destination of files.
enum Out {
    Folder(PathBuf),
    /// No files. The writer builds a single shard for a sink.
    Memory,
}

/// The file of a finished shard, and its entry in `index.json`.
pub(crate) struct MdsShard {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entry: String,
}

/// An unfinished shard.
#[derive(Default)]
struct Pending {
    data: Vec<u8>,
    /// End of each sample in `data`.
    ends: Vec<u64>,
}

/// Options for writing an MDS folder.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `create`"]
pub struct MdsWriterOptions {
    columns: Vec<(String, String)>,
    /// True if fields outside the columns are errors.
    exact: bool,
    compression: Option<String>,
    hashes: Vec<String>,
    size_limit: Option<u64>,
}

impl Default for MdsWriterOptions {
    fn default() -> Self {
        Self { columns: Vec::new(), exact: false, compression: None, hashes: Vec::new(), size_limit: Some(64 << 20) }
    }
}

impl MdsWriterOptions {
    /// Sets the names and encodings of the columns. Default: inferred from the first element. Drops other fields.
    pub fn columns<N: Into<String>, E: Into<String>>(mut self, columns: impl IntoIterator<Item = (N, E)>) -> Self {
        self.columns = columns.into_iter().map(|(name, encoding)| (name.into(), encoding.into())).collect();
        self
    }

    /// Sets the columns. Other fields are errors.
    pub(crate) fn exactly(mut self, columns: impl IntoIterator<Item = (String, String)>) -> Self {
        self.exact = true;
        self.columns(columns)
    }

    setters! {
        /// Sets the compression of shards: `zstd`, `gz`, `bz2`, `br` or `snappy`. Default: none.
        ///
        /// All but `snappy` accept a level, as in `zstd:7`.
        pub compression(compression: impl Into<String>) => compression = Some(compression.into());

        /// Sets the maximum size of a shard before compression, in bytes. Default: 64 MiB.
        ///
        /// A sample that would exceed the maximum begins the next shard. With `None`, all samples form one shard.
        pub size_limit: Option<u64>;
    }

    /// Sets the hashes of files in `index.json`: `md5`, `sha1`, `sha224`, `sha256`, `sha384`, `sha512`, `xxh32`,
    /// `xxh64`, `xxh128`, `xxh3_64` and `xxh3_128`. Default: none.
    pub fn hashes<S: Into<String>>(mut self, hashes: impl IntoIterator<Item = S>) -> Self {
        self.hashes = hashes.into_iter().map(Into::into).collect();
        // The format requires sorted hashes.
        self.hashes.sort();
        self.hashes.dedup();
        self
    }

    /// Creates a folder if it is missing, and starts writing to it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the folder contains an `index.json`, a hash is unknown, or a
    /// column is repeated. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an encoding or a compression
    /// that cannot be written. [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be created.
    pub fn create(self, folder: impl AsRef<Path>) -> Result<MdsWriter> {
        let folder = folder.as_ref().to_owned();
        let mut writer = self.begin()?;
        fs::create_dir_all(&folder).map_err(|e| Error::io(e, &folder))?;
        if folder.join(INDEX).exists() {
            let text = "holds an index.json: a data set is there already";
            return Err(Error::config(text).path(&folder).help("write to a new folder, or remove that one"));
        }
        writer.out = Out::Folder(folder);
        Ok(writer)
    }

    /// Starts a single shard of any size, which [`MdsWriter::into_shard`] returns.
    pub(crate) fn one_shard(self) -> Result<MdsWriter> {
        self.size_limit(None).begin()
    }

    fn begin(self) -> Result<MdsWriter> {
        if let Some(compression) = &self.compression {
            Codec::parse(compression)?;
        }
        if let Some(name) = self.hashes.iter().find(|name| !hash::NAMES.contains(&name.as_str())) {
            return Err(
                Error::config(format!("the hash {name:?}")).help(format!("known are {}", hash::NAMES.join(", ")))
            );
        }
        let given = sorted(&self.columns)?;
        let (shard, shards) = (Pending::default(), Vec::new());
        let (columns, config) = (Vec::new(), Vec::new());
        let mut writer = MdsWriter { out: Out::Memory, options: self, columns, config, shard, shards, samples: 0 };
        writer.have(given);
        Ok(writer)
    }
}

/// Parses the columns, and sorts them by name as the format requires.
fn sorted(columns: &[(String, String)]) -> Result<Vec<Column>> {
    let column = |(name, encoding): &(String, String)| {
        let parsed = Encoding::parse(encoding).map_err(|e| e.and(&format!(", of column {name:?}")))?;
        match parsed {
            Encoding::Pickle => Err(pickled().and(&format!(", of column {name:?}"))),
            parsed => Ok(Column { name: name.clone(), encoding: (encoding.clone(), parsed) }),
        }
    };
    let mut columns = columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    match columns.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(Error::config(format!("column {:?} is there twice", pair[0].name))),
        None => Ok(columns),
    }
}

impl MdsWriter {
    /// Starts writing to a folder with the default options.
    ///
    /// # Errors
    /// The errors of [`MdsWriterOptions::create`].
    pub fn create(folder: impl AsRef<Path>) -> Result<Self> {
        Self::options().create(folder)
    }

    /// Returns the default options.
    pub fn options() -> MdsWriterOptions {
        MdsWriterOptions::default()
    }

    /// Appends a sample.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with record and column; the sample is not written.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a full shard cannot be written.
    pub fn write(&mut self, element: &Element) -> Result<()> {
        if self.columns.is_empty() {
            let inferred: Vec<_> = element.iter().map(|(name, value)| (name.to_owned(), infer(value))).collect();
            self.have(sorted(&inferred)?);
        }
        let sample = self.encode(element).map_err(|e| e.record(self.samples))?;
        let size = sample.len() as u64;
        if !self.shard.ends.is_empty() && self.options.size_limit.is_some_and(|limit| limit < self.size() + size + 4) {
            self.flush()?;
        }
        if self.size() + size + 4 > u64::from(u32::MAX) {
            let text = "the shard has 4 GiB or more, and its offsets have 32 bits";
            return Err(Error::data(text).record(self.samples).help("set a lower `size_limit`"));
        }
        self.shard.data.extend_from_slice(&sample);
        self.shard.ends.push(self.shard.data.len() as u64);
        self.samples += 1;
        Ok(())
    }

    /// Returns the number of samples so far.
    pub fn len(&self) -> u64 {
        self.samples
    }

    /// Returns true if no sample has been written.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Writes the last shard and `index.json`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails. The folder is then incomplete and cannot be read.
    pub fn finish(mut self) -> Result<()> {
        if !self.shard.ends.is_empty() {
            self.flush()?;
        }
        self.put(INDEX, &layout::index(&self.shards))
    }

    /// Sets the columns and the header that follows from them.
    fn have(&mut self, columns: Vec<Column>) {
        self.columns = columns;
        self.config = self.said().text();
    }

    /// Encodes a sample: the sizes of varying values, then all values.
    fn encode(&self, element: &Element) -> Result<Vec<u8>> {
        if (self.options.columns.is_empty() || self.options.exact)
            && let Some((name, _)) = element.iter().find(|(name, _)| self.columns.iter().all(|c| c.name != *name))
        {
            let text = format!("field {name:?} is no column: the first element had none of that name");
            return Err(Error::data(text).help("declare the columns, or drop the field"));
        }
        let (mut sizes, mut values) = (Vec::new(), Vec::new());
        for Column { name, encoding: (word, encoding) } in &self.columns {
            let before = values.len();
            let encoded = encoding.encode(element.field(name)?, &mut values);
            encoded.map_err(|e| {
                let help =
                    format!("the column holds {word:?}: convert the value by a `map` in front, or declare the column");
                e.and(&format!(", in column {name:?}")).help(help)
            })?;
            if encoding.size().is_none() {
                let size = u32::try_from(values.len() - before);
                let size = size.map_err(|_| Error::data(format!("a value of 4 GiB or more, in column {name:?}")))?;
                sizes.extend_from_slice(&size.to_le_bytes());
            }
        }
        sizes.append(&mut values);
        Ok(sizes)
    }

    fn said(&self) -> Config<'_> {
        let Self { options, columns, .. } = self;
        Config::new(columns, options.compression.as_deref(), &options.hashes, options.size_limit)
    }

    /// Returns the current size of the uncompressed shard, in bytes.
    fn size(&self) -> u64 {
        let Pending { data, ends } = &self.shard;
        4 * (ends.len() as u64 + 2) + self.config.len() as u64 + data.len() as u64
    }

    /// Finishes the current shard and writes it.
    fn flush(&mut self) -> Result<()> {
        let (name, shard) = self.end_shard(format!("shard.{:05}.mds", self.shards.len()))?;
        self.put(&name, &shard.bytes)?;
        self.shards.push(shard.entry.into_bytes());
        Ok(())
    }

    /// Finishes the current shard. Returns its file name, with the extension of the codec, and its content.
    fn end_shard(&mut self, name: String) -> Result<(String, MdsShard)> {
        let shard = std::mem::take(&mut self.shard);
        let raw = self.bytes(&shard);
        let raw_data = self.file(name.clone(), &raw);
        let (name, bytes, zip_data) = if let Some(compression) = &self.options.compression {
            let (codec, level) = Codec::parse(compression)?;
            let name = format!("{name}.{}", codec.ending());
            let packed = codec.compress(&raw, level).map_err(|e| Error::io(e, &name))?;
            let zip_data = self.file(name.clone(), &packed);
            (name, packed, Some(zip_data))
        } else {
            (name, raw, None)
        };
        let mut said = self.said();
        (said.raw_data, said.samples, said.zip_data) = (Some(raw_data), Some(shard.ends.len() as u64), Some(zip_data));
        let entry = String::from_utf8_lossy(&said.text()).into_owned();
        Ok((name, MdsShard { bytes, entry }))
    }

    /// Returns all samples as a single shard with this file name. The codec's extension is optional in `name`.
    pub(crate) fn into_shard(mut self, name: &str) -> Result<MdsShard> {
        let raw = if let Some(at) = name.find(".mds.") { &name[..at + ".mds".len()] } else { name };
        self.end_shard(raw.to_owned()).map(|(_, shard)| shard)
    }

    /// Lays out a shard: number of samples, the start of each and the end of the last, header, samples.
    fn bytes(&self, shard: &Pending) -> Vec<u8> {
        let start = 4 * (shard.ends.len() as u64 + 2) + self.config.len() as u64;
        let mut bytes = Vec::with_capacity(start as usize + shard.data.len());
        let mut put = |number: u64| bytes.extend_from_slice(&(number as u32).to_le_bytes());
        put(shard.ends.len() as u64);
        put(start);
        shard.ends.iter().for_each(|end| put(start + end));
        bytes.extend_from_slice(&self.config);
        bytes.extend_from_slice(&shard.data);
        bytes
    }

    /// Builds the entry of a file in `index.json`.
    fn file(&self, basename: String, bytes: &[u8]) -> FileInfo {
        let hash = |name: &String| Some((name.clone(), hash::hash(name, bytes)?));
        let hashes: BTreeMap<String, String> = self.options.hashes.iter().filter_map(hash).collect();
        FileInfo { basename, bytes: bytes.len() as u64, hashes }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let Out::Folder(folder) = &self.out else { return Ok(()) };
        let path = folder.join(name);
        crate::store::replace(&path, bytes)
    }
}

/// Builds `index.json` from the entries of shards.
pub(crate) fn mds_index(entries: &[&str]) -> Vec<u8> {
    layout::index(&entries.iter().map(|entry| entry.as_bytes().to_vec()).collect::<Vec<_>>())
}

/// Returns the default encoding of a column with this first value.
pub(crate) fn mds_encoding_of(value: &Value) -> String {
    infer(value)
}

/// Returns true if the encoding exists and can be written.
pub(crate) fn mds_encoding_is_known(name: &str) -> bool {
    Encoding::parse(name).is_ok_and(|encoding| encoding != Encoding::Pickle)
}

debug_as!(MdsWriter, |self, f| {
    match &self.out {
        Out::Folder(folder) => write!(f, "MdsWriter({}, {} samples)", folder.display(), self.samples),
        Out::Memory => write!(f, "MdsWriter({} samples)", self.samples),
    }
});
