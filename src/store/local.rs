//! Files on this machine that appear whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::{DESCRIPTION, check_description};
use crate::error::{Error, Result};
use crate::temporary::{Readers, Temporary, sync_folder};

/// A file under a temporary name, until it is published.
#[derive(Debug)]
pub(super) struct LocalOutput {
    file: BufWriter<File>,
    written: u64,
    temporary: Temporary,
    path: PathBuf,
}

/// Written at a time.
const BUFFER: usize = 256 << 10;

impl LocalOutput {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let (file, temporary) = Temporary::create(&path, Readers::AsUsual).map_err(|e| Error::io(e, &path))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { file, written: 0, temporary, path })
    }

    /// Sync, rename, and sync of the folder: after a crash there is the whole file or none.
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

/// Replaces a file by one that holds `bytes`: after a crash there is the old one or the new one.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written; the old file stands then.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut output = LocalOutput::create(path.to_owned())?;
    output.write_all(bytes).map_err(|e| Error::io(e, path))?;
    output.finish().map(drop)
}

/// Checks that [`replace`] could begin: nothing is left of the attempt.
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

/// All of a file that describes others, if it is there.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if it is too long for one.
pub(crate) fn description(path: &Path) -> Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(error, path)),
    };
    let io = |e| Error::io(e, path);
    check_description(file.metadata().map_err(io)?.len()).map_err(|e| e.path(path))?;
    let mut bytes = Vec::new();
    // It may grow meanwhile, and pipes have no length.
    file.take(DESCRIPTION + 1).read_to_end(&mut bytes).map_err(io)?;
    check_description(bytes.len() as u64).map_err(|e| e.path(path))?;
    Ok(Some(bytes))
}
