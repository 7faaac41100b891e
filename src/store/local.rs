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

/// Replaces a file by one that holds `bytes`: after a crash there is the old one or the new one.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written; the old file stands then.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut output = LocalOutput::create(path.to_owned())?;
    output.write_all(bytes).map_err(|e| Error::io(e, path))?;
    output.finish().map(drop)
}

/// That [`replace`] could begin: nothing is left of the attempt.
///
/// # Errors
/// As [`replace`].
#[cfg(feature = "cli")]
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    LocalOutput::create(path.to_owned()).map(drop).map_err(|e| e.help("choose a place that can be written to"))
}

/// A lock on a folder, which ends with the process at the latest. File systems without locks have none.
#[derive(Debug)]
pub(crate) struct Alone {
    _folder: Option<File>,
}

impl Alone {
    /// Takes the lock of the folder, for a `run` or whatever it is that writes there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if another has it.
    #[cfg(unix)]
    pub(crate) fn in_folder(path: &Path, what: &str) -> Result<Self> {
        let folder = File::open(path).map_err(|e| Error::io(e, path))?;
        match folder.try_lock() {
            Err(std::fs::TryLockError::WouldBlock) => {
                Err(Error::config(format!("another {what} writes to this folder"))
                    .path(path)
                    .help("wait for it, or name another folder"))
            }
            Err(std::fs::TryLockError::Error(_)) => Ok(Self { _folder: None }),
            Ok(()) => Ok(Self { _folder: Some(folder) }),
        }
    }

    /// Folders are not locked here.
    #[cfg(not(unix))]
    pub(crate) fn in_folder(_: &Path, _: &str) -> Result<Self> {
        Ok(Self { _folder: None })
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
