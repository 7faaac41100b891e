//! Files that are written under a temporary name, and get their final name when they are complete.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::place::file_name;

/// Suffix of every temporary name. The name also begins with a dot.
const ENDING: &str = ".tmp";
/// Number of names to try: a collision is an accident, or an attack.
const ATTEMPTS: usize = 16;

/// Users that may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Users that may read all other files of the process.
    AsUsual,
    /// Owner only.
    Owner,
}

/// Temporary name of a file that is being written. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Temporary(PathBuf);

impl Temporary {
    /// Creates a file beside `path`, under an unpredictable name.
    ///
    /// An existing file is never opened, and links are not followed. Another user of the folder cannot redirect the writes to another file.
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

    /// Renames the file to `path`, and replaces an existing file.
    pub(crate) fn publish(self, path: &Path) -> io::Result<()> {
        fs::rename(&self.0, path)
    }

    /// Links the file to `path`, unless a file of that name exists.
    pub(crate) fn publish_new(self, path: &Path) -> io::Result<()> {
        fs::hard_link(&self.0, path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is no file. A failure to remove it must not hide the first error.
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens a part file for reading and writing, and creates a missing file.
///
/// Part files have predictable names, because an interrupted writer resumes them.
/// Links are not followed: another user of the folder cannot redirect the writes to another file.
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

/// Makes a new name durable by syncing its folder. Does nothing on systems other than Unix, which cannot sync folders.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns true if `name` belongs to a file that was never published.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(ENDING)
}

/// Returns a number that other processes cannot predict, from keys that the system provides.
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
