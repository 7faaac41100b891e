//! Atomic writes to files on the local machine.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::{DESCRIPTION, check_description};
use crate::error::{Error, Result};
use crate::temporary::{Readers, Temporary, sync_folder};

/// File under a temporary name, until its publication.
#[derive(Debug)]
pub(super) struct LocalOutput {
    file: BufWriter<File>,
    written: u64,
    temporary: Temporary,
    path: PathBuf,
}

/// Size of the write buffer, in bytes.
const BUFFER: usize = 256 << 10;

impl LocalOutput {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let (file, temporary) = Temporary::create(&path, Readers::AsUsual).map_err(|e| Error::io(e, &path))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { file, written: 0, temporary, path })
    }

    /// Syncs the file, renames it and syncs the folder. After a crash, the file is either complete or absent.
    pub(super) fn finish(self) -> Result<u64> {
        let Self { mut file, written, temporary, path } = self;
        let published = (|| {
            file.flush()?;
            file.get_ref().sync_all()?;
            temporary.publish(&path)?;
            sync_folder(&path)
        })();
        published.map(|()| written).map_err(|e: io::Error| Error::io(e, &path))
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

/// Replaces the contents of a file by `bytes`. After a crash, the file has either the old or the new contents.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written. The old contents then remain.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut output = LocalOutput::create(path.to_owned())?;
    output.write_all(bytes).map_err(|e| Error::io(e, path))?;
    output.finish().map(drop)
}

/// Checks that [`replace`] can create its temporary file. Leaves no file.
///
/// # Errors
/// See [`replace`].
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    LocalOutput::create(path.to_owned()).map(drop).map_err(|e| e.help("choose a place that can be written to"))
}

/// Lock on a folder, released at the end of the process at the latest. Has no effect on file systems without locks.
#[derive(Debug)]
pub(crate) struct Alone {
    _folder: Option<File>,
}

impl Alone {
    /// Locks the folder for a kind of writer, such as `run`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if another writer holds the lock.
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

    /// Returns without a lock, because this system does not lock folders.
    #[cfg(not(unix))]
    pub(crate) fn in_folder(_: &Path, _: &str) -> Result<Self> {
        Ok(Self { _folder: None })
    }
}

/// Reads a whole file that describes other files. Returns `None` if the file does not exist.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; [`ErrorKind::Data`](crate::ErrorKind::Data) if
/// the file is longer than 256 MiB.
pub(crate) fn description(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(error, path)),
    };
    let io = |e| Error::io(e, path);
    check_description(file.metadata().map_err(io)?.len()).map_err(|e| e.path(path))?;
    let mut bytes = Vec::new();
    // The file may grow meanwhile, and pipes have no length.
    file.take(DESCRIPTION + 1).read_to_end(&mut bytes).map_err(io)?;
    check_description(bytes.len() as u64).map_err(|e| e.path(path))?;
    Ok(Some(bytes))
}
