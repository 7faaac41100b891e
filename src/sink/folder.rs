//! The folder of the shards, on a disk or in a store.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::manifest::MANIFEST;
use crate::error::{Error, Result};
use crate::place;
use crate::store::{self, Output, Version, Writer};
use crate::sync::Locked;

/// A folder in which files appear whole or not at all.
#[derive(Debug)]
pub(super) struct Folder {
    folder: store::Folder,
    pub(super) path: PathBuf,
    /// Writer lock of the folder, held until this value is dropped. It excludes other sinks.
    writer: Writer,
    /// Version of the manifest that this sink read or wrote last.
    manifest: Mutex<Version>,
}

impl Folder {
    /// Opens the folder; creates the folder if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be created;
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if another sink writes to it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let folder = store::Folder::open(path)?;
        let writer = folder.writer()?;
        Ok(Self { folder, path: place::shown(path).into_owned(), writer, manifest: Mutex::default() })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Creates a file that gets its name when it is finished.
    pub(super) fn create(&self, name: &str) -> Result<Output> {
        self.writer.check()?;
        self.folder.create(name)
    }

    /// Replaces the manifest. Fails if another sink has replaced it and the store checks versions.
    pub(super) fn publish(&self, manifest: &[u8]) -> Result<()> {
        self.writer.check()?;
        self.folder.replace(MANIFEST, manifest, &mut self.version())
    }

    /// Reads the manifest; returns `None` if there is no manifest.
    pub(super) fn manifest(&self) -> Result<Option<Vec<u8>>> {
        let Some((text, version)) = self.folder.read_version(MANIFEST)? else { return Ok(None) };
        *self.version() = version;
        Ok(Some(text))
    }

    fn version(&self) -> MutexGuard<'_, Version> {
        self.manifest.locked()
    }

    /// Replaces the contents of a file by `bytes`.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut output = self.create(name)?;
        output.write_all(bytes).map_err(|e| Error::io(e, self.file(name)))?;
        output.finish().map(drop)
    }

    /// Reads a file; returns `None` if the file does not exist.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.folder.read(name)
    }

    /// Removes a file if it exists.
    pub(super) fn delete(&self, name: &str) -> Result<()> {
        self.folder.delete(name).map(drop)
    }

    /// Returns the names of all files with their sizes in bytes.
    pub(super) fn files(&self) -> Result<HashMap<String, u64>> {
        Ok(self.folder.list()?.into_iter().map(|entry| (entry.name, entry.bytes)).collect())
    }

    /// Removes unfinished files and every file for which `is_ours` returns true.
    pub(super) fn remove(&self, is_ours: impl Fn(&str) -> bool) -> Result<()> {
        self.folder.remove_unfinished()?;
        self.files()?.keys().filter(|name| is_ours(name)).try_for_each(|name| self.folder.delete(name).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_left_behind_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Folder::open(temp.path()).unwrap();
        for name in ["a-00001.x", ".a-00002.x.17.0.tmp", "b"] {
            fs::write(folder.file(name), b"").unwrap();
        }
        folder.remove(|name| name.starts_with("a-")).unwrap();
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
        assert_eq!(folder.files().unwrap(), HashMap::from([("b".to_owned(), 0)]));
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
