//! Writer of folders for `datasets.load_from_disk` of Hugging Face.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::folder::{INFO, STATE, info, state};
use super::writer::{ArrowWriter, ArrowWriterOptions};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::source::arrow::rows::Columns;

/// Writer of elements to a folder of Arrow streams. `datasets.load_from_disk` of Hugging Face and
/// [`Arrow`](super::Arrow) read the folder.
///
/// ```
/// use gristmill::Element;
/// use gristmill::dataset::map::RandomAccess;
/// use gristmill::source::{Arrow, HuggingFaceWriter};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-hugging-face-{}", std::process::id()));
/// let mut writer = HuggingFaceWriter::new(&dir, 500 << 20)?;
/// writer.write(&Element::new().with("text", "one"))?;
/// writer.finish()?;
/// assert_eq!(Arrow::open(&dir)?.read(0)?.text("text")?, "one");
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// Columns are made from values as in [`ArrowWriter`]; `datasets` derives its features from the columns. The files are
/// not compressed, so rows are read as views. `state.json`, which makes the folder a data set, is written last.
///
/// # Errors
/// As for [`ArrowWriter`], with the file.
///
/// # Determinism
/// Equal elements give equal files.
#[must_use = "a folder that is not finished cannot be read"]
pub struct HuggingFaceWriter {
    folder: PathBuf,
    options: ArrowWriterOptions,
    file_bytes: u64,
    current: Option<Current>,
    /// Columns of the files written before.
    columns: Option<Columns>,
    names: Vec<String>,
    hash: Xxh3,
}

/// File that is being written.
struct Current {
    path: PathBuf,
    writer: ArrowWriter<Hashed>,
    bytes: u64,
}

impl HuggingFaceWriter {
    /// Creates the folder if necessary. Each file has about `file_bytes` bytes; `datasets` itself uses 500 MB.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be created.
    pub fn new(folder: impl AsRef<Path>, file_bytes: u64) -> Result<Self> {
        let (folder, options) = (folder.as_ref().to_owned(), ArrowWriterOptions::new().stream());
        fs::create_dir_all(&folder).map_err(|e| Error::io(e, &folder))?;
        let (names, hash) = (Vec::new(), Xxh3::new());
        Ok(Self { folder, options, file_bytes, current: None, columns: None, names, hash })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As listed for the type.
    pub fn write(&mut self, row: &Element) -> Result<()> {
        let current = if let Some(current) = &mut self.current { current } else { self.begin()? };
        current.writer.write(row).map_err(|e| e.path(&current.path))?;
        current.bytes += row.nbytes() as u64;
        if current.bytes >= self.file_bytes { self.end() } else { Ok(()) }
    }

    /// Ends the folder.
    ///
    /// # Errors
    /// As listed for the type.
    pub fn finish(mut self) -> Result<()> {
        if self.names.is_empty() && self.current.is_none() {
            self.begin()?;
        }
        self.end()?;
        let put = |name: &str, text: String| crate::store::replace(&self.folder.join(name), text.as_bytes());
        put(INFO, info(self.columns.as_ref().map(|columns| &*columns.fields)))?;
        put(STATE, state(&self.names, self.hash.digest()))
    }

    fn begin(&mut self) -> Result<&mut Current> {
        let name = format!("data-{:05}.arrow", self.names.len());
        let path = self.folder.join(&name);
        let file = File::create(&path).map_err(|e| Error::io(e, &path))?;
        let out = Hashed { out: BufWriter::with_capacity(1 << 18, file), hash: std::mem::take(&mut self.hash) };
        let writer = ArrowWriter::with_columns(out, self.options.clone(), self.columns.take())?;
        self.names.push(name);
        Ok(self.current.insert(Current { path, writer, bytes: 0 }))
    }

    fn end(&mut self) -> Result<()> {
        let Some(Current { path, writer, .. }) = self.current.take() else { return Ok(()) };
        let (mut out, columns) = writer.finish_with_columns().map_err(|e| e.path(&path))?;
        out.flush().map_err(|e| Error::io(e, &path))?;
        (self.columns, self.hash) = (columns, out.hash);
        Ok(())
    }
}

debug_as!(HuggingFaceWriter, |self, f| {
    f.debug_struct("HuggingFaceWriter")
        .field("folder", &self.folder)
        .field("files", &self.names)
        .finish_non_exhaustive()
});

/// Writer that hashes its output; the hash is the fingerprint of the files.
struct Hashed {
    out: BufWriter<File>,
    hash: Xxh3,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
