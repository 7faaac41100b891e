//! Files on this machine that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::place::file_name;

/// A file under a temporary name, until it is published.
#[derive(Debug)]
pub(super) struct LocalOutput {
    file: BufWriter<File>,
    written: u64,
    temporary: Temporary,
    path: PathBuf,
}

/// The name is free again when this is dropped.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is none, and one that cannot be removed must not hide the first error.
        let _ = fs::remove_file(&self.0);
    }
}

/// Ends every temporary name, which also begins with a dot.
const TEMPORARY: &str = ".tmp";
/// Written at a time.
const BUFFER: usize = 256 << 10;

impl LocalOutput {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (pid, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let temporary = path.with_file_name(format!(".{}.{pid}.{number}{TEMPORARY}", file_name(&path)));
        let file = File::create(&temporary).map_err(|e| Error::io(e, &temporary))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { file, written: 0, temporary: Temporary(temporary), path })
    }

    /// Sync, rename, and sync of the folder: after a crash there is the whole file or none.
    pub(super) fn finish(mut self) -> Result<u64> {
        let published = (|| {
            self.file.flush()?;
            self.file.get_ref().sync_all()?;
            fs::rename(&self.temporary.0, &self.path)?;
            sync_folder(&self.path)
        })();
        published.map(|()| self.written).map_err(|e: io::Error| Error::io(e, &self.path))
    }
}

impl Write for LocalOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether it is the name of a file that was never published.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(TEMPORARY)
}

/// Makes a new name last: elsewhere than on Unix folders cannot be synced.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
