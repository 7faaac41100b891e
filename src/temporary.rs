//! Files that are written under a name of their own, and appear under the one they are to have when they are whole.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::place::file_name;

/// The end of every temporary name, which also begins with a dot.
const ENDING: &str = ".tmp";
/// Names that are tried: that one is taken is an accident, or somebody's doing.
const ATTEMPTS: usize = 16;

/// The users that may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Readers are those that the process lets read what it writes.
    AsUsual,
    /// Its owner alone.
    #[cfg_attr(not(any(feature = "store", test)), allow(dead_code, reason = "for the blocks of stores"))]
    Owner,
}

/// The name of a file that is being written: it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    /// Makes a file beside `path`, under a name that nobody can foretell. Nothing that is there already is opened, and no link is
    /// followed: who else may write in the folder cannot have another file written in its stead.
    pub(crate) fn create(path: &Path, readers: Readers) -> io::Result<(File, Self)> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if readers == Readers::Owner {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = readers;
        let mut left = ATTEMPTS;
        loop {
            let temporary = path.with_file_name(format!(".{}.{:016x}{ENDING}", file_name(path), random()));
            left -= 1;
            match options.open(&temporary) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && left > 0 => {}
                opened => return Ok((opened?, Self(temporary))),
            }
        }
    }

    /// Gives the file the name it is to have; a file of that name is replaced.
    pub(crate) fn publish(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.0, path)
    }

    /// Gives the file the name it is to have, unless there is a file of that name.
    #[cfg(feature = "store")]
    pub(crate) fn publish_new(self, path: &Path) -> io::Result<()> {
        fs::hard_link(&self.0, path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is none, and one that cannot be removed must not hide the first error.
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens a part file for reading and writing, and creates a missing file. Part files have predictable names, because an interrupted writer
/// resumes them. Links are not followed: another user of the folder cannot redirect the writes to another file.
pub(crate) fn open_part(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    options.open(path)
}

/// Returns true if `path` is a symbolic link.
pub(crate) fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink())
}

/// Makes a new name last: elsewhere than on Unix folders cannot be synced.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Whether it is the name of a file that was never published.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(ENDING)
}

/// A number that nobody else can foretell: of keys that come from the system.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_appears_when_it_is_published_and_is_gone_when_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let names = || fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
        let (mut file, temporary) = Temporary::create(&path, Readers::AsUsual).unwrap();
        let (_, other) = Temporary::create(&path, Readers::AsUsual).unwrap();
        assert!(names().len() == 2 && names().iter().all(|name| is_temporary(name.to_str().unwrap())), "{:?}", names());
        drop(other);
        file.write_all(b"one").unwrap();
        temporary.publish(&path).unwrap();
        assert_eq!((names(), fs::read(&path).unwrap()), (vec!["a".into()], b"one".to_vec()));
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("precious"), dir.path().join("a.part"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(open_part(&link).is_err() && is_link(&link) && !is_link(&target));
        fs::remove_file(&link).unwrap();
        open_part(&link).unwrap().write_all(b"a part").unwrap();
        open_part(&link).unwrap();
        assert_eq!((fs::read(&link).unwrap(), fs::read(&target).unwrap()), (b"a part".to_vec(), b"precious".to_vec()));
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_read_by_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (file, _temporary) = Temporary::create(&dir.path().join("a"), Readers::Owner).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
