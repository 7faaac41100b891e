//! Writer of ArrayRecord files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::blocks::Blocks;
use super::chunk::{SIGNATURE, SIMPLE};
use super::codec::{Compression, Compressor};
use super::index::MAGIC;
use crate::error::{Error, Result};
use crate::varint::{put_bytes, put_number, put_varint};

const FORMAT_VERSION: u64 = 1;

/// Writer of an ArrayRecord file, record by record. [`finish`](Self::finish) writes the index, which readers require.
///
/// ```
/// use gristmill::dataset::map::RandomAccess;
/// use gristmill::source::{ArrayRecord, ArrayRecordWriter};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-array-record-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("a.array_record");
/// let mut writer = ArrayRecordWriter::options().group_size(2).create(&path)?;
/// for record in ["one", "two", "three"] {
///     writer.write(record.as_bytes())?;
/// }
/// writer.finish()?;
/// assert_eq!(ArrayRecord::open(&path)?.read(2)?.as_bytes(), b"three");
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Determinism
/// Equal records and options give equal bytes, for a given version of the codecs.
///
/// # Cost
/// Each record is copied once into its chunk. A full chunk is compressed. Holds one chunk, and 24 bytes per chunk
/// written.
#[must_use = "a file that is not finished cannot be read"]
pub struct ArrayRecordWriter<W = BufWriter<File>> {
    out: Blocks<W>,
    /// For errors: the path of the file if the writer created it.
    path: Option<PathBuf>,
    options: ArrayRecordWriterOptions,
    compressor: Compressor,
    group: Group,
    chunks: Vec<Written>,
    records: u64,
}

/// Records of the chunk that is being filled.
#[derive(Default)]
struct Group {
    sizes: Vec<u8>,
    values: Vec<u8>,
    records: u64,
}

impl Group {
    fn push(&mut self, record: &[u8]) {
        put_varint(&mut self.sizes, record.len() as u64);
        self.values.extend_from_slice(record);
        self.records += 1;
    }
}

/// Entry of a chunk in the footer.
struct Written {
    begin: u64,
    decoded: u64,
    records: u64,
}

/// Options to write an ArrayRecord file.
#[derive(Clone, Copy, Debug)]
#[must_use = "options do nothing until `create`"]
pub struct ArrayRecordWriterOptions {
    group_size: u64,
    compression: Compression,
    pad_to_block_boundary: bool,
}

impl Default for ArrayRecordWriterOptions {
    fn default() -> Self {
        Self { group_size: 1, compression: Compression::Zstd(3), pad_to_block_boundary: false }
    }
}

impl ArrayRecordWriterOptions {
    setters! {
        /// Sets the number of records per chunk; 1 by default, as in Google's writer.
        ///
        /// Larger chunks make smaller files of small records, but slow down shuffled reads, which decode a chunk per
        /// record.
        pub group_size(records: u64) => group_size = records.max(1);

        /// Sets the compression of chunks; zstd at level 3 by default, as in Google's writer.
        pub compression: Compression;

        /// Sets whether to pad the file to a multiple of 64 KiB after every chunk; off by default.
        ///
        /// Reading a chunk then needs a single request per block, and no block holds parts of two chunks.
        pub pad_to_block_boundary: bool;
    }

    /// Creates the file, or truncates it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written.
    pub fn create(self, path: impl AsRef<Path>) -> Result<ArrayRecordWriter> {
        let path = path.as_ref();
        let file = File::create(path).map_err(|e| Error::io(e, path))?;
        let writer = self.write_to(BufWriter::with_capacity(1 << 18, file)).map_err(|e| e.path(path))?;
        Ok(ArrayRecordWriter { path: Some(path.to_owned()), ..writer })
    }

    /// Starts a file in `out`. No write to `out` is larger than a chunk.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written.
    pub fn write_to<W: Write>(self, out: W) -> Result<ArrayRecordWriter<W>> {
        let mut out = Blocks::new(out);
        out.chunk(SIGNATURE, 0, 0, &[]).map_err(Error::of_io)?;
        let compressor = Compressor::new(self.compression).map_err(Error::of_io)?;
        let (group, chunks) = (Group::default(), Vec::new());
        Ok(ArrayRecordWriter { out, path: None, options: self, compressor, group, chunks, records: 0 })
    }
}

#[cold]
fn at(path: Option<&Path>, error: io::Error) -> Error {
    path.into_iter().fold(Error::of_io(error), Error::path)
}

impl ArrayRecordWriter {
    /// Creates a file with the default options.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().create(path)
    }

    /// Returns the default options, to change before creating a file.
    pub fn options() -> ArrayRecordWriterOptions {
        ArrayRecordWriterOptions::default()
    }
}

impl<W: Write> ArrayRecordWriter<W> {
    /// Starts a file in `out`: see [`write_to`](ArrayRecordWriterOptions::write_to).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written.
    pub fn new(out: W, options: ArrayRecordWriterOptions) -> Result<Self> {
        options.write_to(out)
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a full chunk cannot be written.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        self.group.push(record);
        self.records += 1;
        if self.group.records == self.options.group_size { self.flush() } else { Ok(()) }
    }

    /// Returns the number of records written.
    pub fn len(&self) -> u64 {
        self.records
    }

    /// Returns true if no record was written yet.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Writes the last chunk and the index, and returns the inner writer.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written; the file then has no valid index.
    pub fn finish(mut self) -> Result<W> {
        if self.group.records > 0 {
            self.flush()?;
        }
        let footer = self.footer();
        let footer = self.put(&footer)?;
        let mut postscript = Group::default();
        let mut record = Vec::new();
        put_number(&mut record, 1, footer);
        put_number(&mut record, 2, MAGIC);
        (0..3).for_each(|_| postscript.push(&record));
        self.compressor = Compressor::none();
        self.pad()?;
        self.put(&postscript)?;
        self.pad()?;
        let Self { out, path, .. } = self;
        out.finish().map_err(|e| at(path.as_deref(), e))
    }

    /// Writes the current chunk.
    fn flush(&mut self) -> Result<()> {
        let mut group = std::mem::take(&mut self.group);
        let begin = self.put(&group)?;
        if self.options.pad_to_block_boundary {
            self.pad()?;
        }
        self.chunks.push(Written { begin, decoded: group.values.len() as u64, records: group.records });
        // The next chunk reuses the memory.
        group.sizes.clear();
        group.values.clear();
        group.records = 0;
        self.group = group;
        Ok(())
    }

    fn pad(&mut self) -> Result<()> {
        self.out.pad().map_err(|e| at(self.path.as_deref(), e))
    }

    /// Writes a chunk of records, and returns its offset.
    fn put(&mut self, group: &Group) -> Result<u64> {
        let io = |e| at(self.path.as_deref(), e);
        let sizes = self.compressor.part(&group.sizes).map_err(io)?;
        let values = self.compressor.part(&group.values).map_err(io)?;
        let mut head = vec![self.compressor.byte()];
        put_varint(&mut head, sizes.len() as u64);
        let parts = [head.as_slice(), &sizes, &values];
        self.out.chunk(SIMPLE, group.records, group.values.len() as u64, &parts).map_err(io)
    }

    fn footer(&self) -> Group {
        let mut head = Vec::new();
        put_number(&mut head, 1, FORMAT_VERSION);
        put_number(&mut head, 2, self.chunks.len() as u64);
        put_number(&mut head, 3, self.records);
        let ArrayRecordWriterOptions { group_size, compression, pad_to_block_boundary: pad } = self.options;
        let options = format!("group_size:{group_size},pad_to_block_boundary:{pad},{compression}");
        put_bytes(&mut head, 4, options.as_bytes());
        let mut record = Vec::new();
        put_bytes(&mut record, 1, &head);
        let mut footer = Group::default();
        footer.push(&record);
        for chunk in &self.chunks {
            record.clear();
            put_number(&mut record, 1, chunk.begin);
            put_number(&mut record, 2, chunk.decoded);
            put_number(&mut record, 3, chunk.records);
            footer.push(&record);
        }
        footer
    }
}

debug_as!(<W> ArrayRecordWriter<W>, |self, f| {
    let path = self.path.as_deref().unwrap_or(Path::new("-"));
    write!(f, "ArrayRecordWriter({}, {} records)", path.display(), self.records)
});
