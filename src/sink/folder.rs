//! The folder that shards lie in.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A folder, in which files appear whole or not at all.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Held for as long as this is: who writes here writes alone.
    _alone: Option<File>,
}

/// Of names of files that are being written.
const UNFINISHED: &str = ".unfinished";

impl Folder {
    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be made; [`ErrorKind::Config`](crate::ErrorKind::Config) if another
    /// writes there.
    pub(super) fn open(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).map_err(|e| Error::io(e, path))?;
        Ok(Self { path: path.to_owned(), _alone: alone(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Begins a file, which has its name once it is [finished](Output::finish).
    pub(super) fn create(&self, name: &str) -> Result<Output> {
        let unfinished = self.file(&format!(".{name}{UNFINISHED}"));
        let file = File::create(&unfinished).map_err(|e| Error::io(e, &unfinished))?;
        let out = BufWriter::with_capacity(BUFFER, file);
        Ok(Output { out: Some(out), unfinished, path: self.file(name), folder: self.path.clone() })
    }

    /// Replaces a file by one that holds `bytes`.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut output = self.create(name)?;
        output.write_all(bytes).map_err(|e| Error::io(e, &output.path))?;
        output.finish()
    }

    /// What a file holds, if it is there.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.file(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(error, path)),
        }
    }

    /// Bytes of a file, if it is there.
    pub(super) fn size(&self, name: &str) -> Result<Option<u64>> {
        let path = self.file(name);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(error, path)),
        }
    }

    /// The names in it, as far as they are text.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let io = |e| Error::io(e, &self.path);
        let entries = fs::read_dir(&self.path).map_err(io)?.collect::<io::Result<Vec<_>>>().map_err(io)?;
        Ok(entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }

    /// Removes every file of which `is_ours` holds, finished or not.
    pub(super) fn remove(&self, is_ours: impl Fn(&str) -> bool) -> Result<()> {
        for name in self.names()? {
            let unfinished = name.strip_prefix('.').and_then(|name| name.strip_suffix(UNFINISHED));
            if is_ours(unfinished.unwrap_or(&name)) {
                fs::remove_file(self.file(&name)).map_err(|e| Error::io(e, self.file(&name)))?;
            }
        }
        Ok(())
    }
}

/// Bytes that go to the system at once.
const BUFFER: usize = 1 << 20;

/// A file that is being written. Dropped before it is finished, it is gone.
#[derive(Debug)]
pub(super) struct Output {
    out: Option<BufWriter<File>>,
    unfinished: PathBuf,
    path: PathBuf,
    folder: PathBuf,
}

impl Output {
    /// Brings it to the disk and gives it its name.
    pub(super) fn finish(mut self) -> Result<()> {
        let publish = |out: Option<BufWriter<File>>, from: &Path, to: &Path, folder: &Path| {
            let Some(out) = out else { return Err(io::Error::other("it is finished")) };
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            fs::rename(from, to)?;
            sync_folder(folder)
        };
        let done = publish(self.out.take(), &self.unfinished, &self.path, &self.folder);
        done.map_err(|e| Error::io(e, &self.path))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Some(out) => out.write(bytes),
            None => Err(io::Error::other("it is finished")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // What counts is brought to the disk at the end.
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // What waits to be written is not worth it.
            let (file, _) = out.into_parts();
            drop(file);
        }
        // It is not there where it was given its name.
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Brings the names in a folder to the disk, where systems can.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A lock on the folder, which ends with the process at the latest. File systems without locks have none.
#[cfg(unix)]
fn alone(path: &Path) -> Result<Option<File>> {
    let folder = File::open(path).map_err(|e| Error::io(e, path))?;
    match folder.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(Error::config("another sink writes to this folder")
            .path(path)
            .help("wait for it, or name another folder")),
        Err(fs::TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(folder)),
    }
}

#[cfg(not(unix))]
fn alone(_: &Path) -> Result<Option<File>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_there_whole_or_not_at_all() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::open(&temp.path().join("a/b")).unwrap();
        let mut output = folder.create("x.bin").unwrap();
        output.write_all(b"12").unwrap();
        assert_eq!(names(folder.path()), [".x.bin.unfinished"]);
        drop(output);
        assert_eq!(names(folder.path()).len(), 0);
        folder.replace("x.bin", b"123").unwrap();
        assert_eq!((names(folder.path()), folder.size("x.bin").unwrap()), (vec!["x.bin".to_owned()], Some(3)));
        assert_eq!((folder.read("x.bin").unwrap(), folder.read("y").unwrap()), (Some(b"123".to_vec()), None));
    }

    #[test]
    fn what_was_left_behind_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::open(temp.path()).unwrap();
        for name in ["a-00001.x", ".a-00002.x.unfinished", "b", ".b.unfinished"] {
            fs::write(folder.file(name), b"").unwrap();
        }
        folder.remove(|name| name.starts_with("a-")).unwrap();
        assert_eq!(names(temp.path()), [".b.unfinished", "b"]);
    }

    #[cfg(unix)]
    #[test]
    fn two_do_not_write_to_one_folder() {
        let temp = tempfile::tempdir().unwrap();
        let first = Folder::open(temp.path()).unwrap();
        assert!(Folder::open(temp.path()).unwrap_err().message().contains("another sink"));
        drop(first);
        assert!(Folder::open(temp.path()).is_ok());
    }
}
