//! Output folders, on the local machine or in a store.

use super::local::{self, Alone, LocalOutput};
use super::output::Output;
use super::remote::{self, Address, Lease, UpdateVersion, Upload};
use crate::error::{Error, Result};
use crate::place::Location;
use crate::temporary::is_temporary;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folder on the local machine, or all objects of a store under a prefix.
///
/// ```
/// use std::io::Write;
/// use gristmill::store::Folder;
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-folder-{}", std::process::id()));
/// let folder = Folder::open(&dir)?;
/// let mut output = folder.create("a.bin")?;
/// output.write_all(b"abc").unwrap();
/// assert_eq!(folder.list()?.len(), 0);
/// output.finish()?;
/// assert_eq!((folder.list()?[0].name.as_str(), folder.read("a.bin")?), ("a.bin", Some(b"abc".to_vec())));
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Folder(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Local(PathBuf),
    Remote(Address),
}

/// Version of a file. Local files have no versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version(Option<UpdateVersion>);

/// Exclusive right to write to a folder: a lock on the local machine, an object in a store.
#[derive(Debug)]
pub(crate) struct Writer {
    _alone: Option<Alone>,
    lease: Option<Lease>,
}

impl Writer {
    /// Checks that no other writer has taken over the folder.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if another writer has taken over.
    pub(crate) fn check(&self) -> Result<()> {
        self.lease.as_ref().map_or(Ok(()), Lease::check)
    }
}

/// A file of a [`Folder`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Entry {
    /// Name in the folder.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}

impl Folder {
    /// Opens a folder by its path or URL. Creates a local folder if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be created;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the feature of the store is off.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        match Location::from(path.as_ref()) {
            Location::Local(path) => {
                fs::create_dir_all(&path).map_err(|e| Error::io(e, &path))?;
                Ok(Self(Kind::Local(path)))
            }
            Location::Object(url) => Ok(Self(Kind::Remote(Address::parse(&url)?))),
        }
    }

    /// Returns the path or URL of a file in the folder, in the form that sources accept.
    pub fn path(&self, name: &str) -> PathBuf {
        match &self.0 {
            Kind::Local(folder) => folder.join(name),
            Kind::Remote(folder) => folder.child(name).path(),
        }
    }

    /// Creates a file, which appears in the folder after [`Output::finish`].
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `name` is not a file name;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written.
    pub fn create(&self, name: &str) -> Result<Output> {
        check(name)?;
        match &self.0 {
            Kind::Local(folder) => LocalOutput::create(folder.join(name)).map(Output::local),
            Kind::Remote(folder) => Upload::create(folder.child(name)).map(Output::remote),
        }
    }

    /// Lists the files directly in the folder, sorted by name. Skips subfolders and unfinished files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be listed.
    pub fn list(&self) -> Result<Vec<Entry>> {
        let mut entries = match &self.0 {
            Kind::Local(folder) => list(folder).map_err(|e| Error::io(e, folder))?,
            Kind::Remote(folder) => remote::entries(folder)?,
        };
        entries.retain(|entry| !is_temporary(&entry.name));
        entries.sort();
        Ok(entries)
    }

    /// Reads a whole file, such as a manifest. Returns `None` if the file does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; [`ErrorKind::Data`](crate::ErrorKind::Data)
    /// if the file is longer than 256 MiB. Sources read longer files in pieces.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        check(name)?;
        match &self.0 {
            Kind::Local(folder) => local::description(&folder.join(name)),
            Kind::Remote(folder) => Ok(remote::read(&folder.child(name))?.map(|(bytes, _)| bytes)),
        }
    }

    /// Reads a whole file and its version. Returns `None` if the file does not exist.
    pub(crate) fn read_version(&self, name: &str) -> Result<Option<(Vec<u8>, Version)>> {
        match &self.0 {
            Kind::Local(_) => Ok(self.read(name)?.map(|bytes| (bytes, Version::default()))),
            Kind::Remote(folder) => {
                let read = remote::read(&folder.child(name))?;
                Ok(read.map(|(bytes, version)| (bytes, Version(Some(version)))))
            }
        }
    }

    /// Replaces a file of this version, or creates the file if it did not exist. Updates `version`.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if another writer has replaced the file and the store checks
    /// versions; [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8], version: &mut Version) -> Result<()> {
        match &self.0 {
            Kind::Local(folder) => {
                check(name)?;
                local::replace(&folder.join(name), bytes)?;
                *version = Version::default();
            }
            Kind::Remote(folder) => {
                let replaced = remote::replace(&folder.child(name), bytes, version.0.take())?;
                *version = Version(Some(replaced));
            }
        }
        Ok(())
    }

    /// Acquires the exclusive right to write to the folder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if another writer holds the folder.
    pub(crate) fn writer(&self) -> Result<Writer> {
        match &self.0 {
            Kind::Local(folder) => Ok(Writer { _alone: Some(Alone::in_folder(folder, "sink")?), lease: None }),
            Kind::Remote(folder) => Ok(Writer { _alone: None, lease: Lease::take(folder)? }),
        }
    }

    /// Deletes a file. Returns true if the file existed, as far as the store reports.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be deleted.
    pub fn delete(&self, name: &str) -> Result<bool> {
        check(name)?;
        match &self.0 {
            Kind::Local(folder) => {
                let path = folder.join(name);
                Ok(found(fs::remove_file(&path), &path)?.is_some())
            }
            Kind::Remote(folder) => remote::delete(&folder.child(name)),
        }
    }

    /// Removes unfinished files of killed writers. No writer may be active in the folder meanwhile. Does nothing in a
    /// store: a lifecycle rule of the store removes unfinished uploads.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a file cannot be removed.
    pub fn remove_unfinished(&self) -> Result<()> {
        match &self.0 {
            Kind::Local(folder) => {
                let names = list(folder).map_err(|e| Error::io(e, folder))?.into_iter().map(|entry| entry.name);
                for path in names.filter(|name| is_temporary(name)).map(|name| folder.join(name)) {
                    fs::remove_file(&path).map_err(|e| Error::io(e, path))?;
                }
                Ok(())
            }
            Kind::Remote(_) => Ok(()),
        }
    }
}

/// Checks that a name is a plain file name, so that the file stays in the folder.
fn check(name: &str) -> Result<()> {
    let is_name = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']);
    if is_name { Ok(()) } else { Err(Error::config(format!("{name:?} is not the name of a file in a folder"))) }
}

fn list(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
            entries.push(Entry { name, bytes: metadata.len() });
        }
    }
    Ok(entries)
}

/// Returns `None` if the file does not exist.
fn found<T>(result: io::Result<T>, path: &Path) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(error, path)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn files_appear_when_they_are_finished() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path().join("new/folder")).unwrap();
        let names = || folder.list().unwrap().into_iter().map(|e| (e.name, e.bytes)).collect::<Vec<_>>();
        let mut dropped = folder.create("dropped").unwrap();
        dropped.write_all(b"half").unwrap();
        let mut output = folder.create("b").unwrap();
        output.write_all(b"one").unwrap();
        folder.create("a").unwrap().finish().unwrap();
        assert_eq!(names(), [("a".to_owned(), 0)]);
        assert_eq!(output.finish().unwrap(), 3);
        drop(dropped);
        assert_eq!(names(), [("a".to_owned(), 0), ("b".to_owned(), 3)]);
        assert_eq!(fs::read_dir(dir.path().join("new/folder")).unwrap().count(), 2);
        // A second file with an existing name replaces the first at `finish`.
        let mut again = folder.create("b").unwrap();
        again.write_all(b"two!").unwrap();
        assert_eq!(folder.read("b").unwrap().unwrap(), b"one");
        again.finish().unwrap();
        assert_eq!(folder.read("b").unwrap().unwrap(), b"two!");
        assert!(folder.delete("b").unwrap() && !folder.delete("b").unwrap());
        assert_eq!(folder.read("b").unwrap(), None);
    }

    #[test]
    fn what_was_left_behind_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        for name in [".a.jsonl.17.0.tmp", "b.tmp", ".c"] {
            fs::write(dir.path().join(name), b"").unwrap();
        }
        folder.remove_unfinished().unwrap();
        assert_eq!(folder.list().unwrap().into_iter().map(|e| e.name).collect::<Vec<_>>(), [".c", "b.tmp"]);
    }

    /// Links under names that are predictable from the process ID lead to a foreign file.
    #[cfg(unix)]
    #[test]
    fn links_lead_to_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, victim) = (Folder::open(dir.path().join("out")).unwrap(), dir.path().join("victim"));
        fs::write(&victim, "untouched").unwrap();
        for number in 0..2000 {
            let name = format!(".a.{}.{number}.tmp", std::process::id());
            std::os::unix::fs::symlink(&victim, dir.path().join("out").join(name)).unwrap();
        }
        let mut output = folder.create("a").unwrap();
        output.write_all(b"mine").unwrap();
        output.finish().unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"untouched");
        assert!(fs::symlink_metadata(dir.path().join("out/a")).unwrap().is_file());
    }

    #[test]
    fn names_stay_in_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        for name in ["", ".", "..", "a/b", "../a", "a\\b", "a\0"] {
            assert_eq!(folder.create(name).unwrap_err().kind(), ErrorKind::Config, "{name:?}");
        }
    }

    #[test]
    fn a_store_that_is_not_known_is_refused() {
        let error = Folder::open("ftp://host/a").unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, "ftp:// is not a known store"));
    }
}
