//! Folders that belong to one user, where others can neither read nor write, and the key that lies in one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::temporary::{Readers, Temporary, random};

/// A key that nobody else can read.
pub(super) type Secret = [u8; 32];

/// Makes a folder that is its owner's alone, or sees that one is that is there already.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) for a folder that somebody else owns or may write to;
/// [`ErrorKind::Io`](crate::ErrorKind::Io) for one that cannot be made.
#[cfg(unix)]
pub(super) fn folder(path: &Path) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    let io = |e| Error::io(e, path);
    fs::DirBuilder::new().recursive(true).mode(OWNER).create(path).map_err(io)?;
    // A link is not followed: whoever made it would choose the folder.
    let found = fs::symlink_metadata(path).map_err(io)?;
    let refused = |what: String| Error::config(what).path(path).help("name another `cache_dir`, or remove the folder");
    if !found.is_dir() {
        return Err(refused("the folder of the cache is a link".to_owned()));
    }
    if owner().is_some_and(|user| user != found.uid()) {
        let text = format!("the folder of the cache belongs to another user, of number {}", found.uid());
        return Err(refused(text));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & WRITTEN_BY_OTHERS != 0 {
        let text = format!("others may write to the folder of the cache, whose mode is {mode:o}");
        return Err(Error::config(text)
            .path(path)
            .help("what lies there may be anybody's: remove the folder, or name another `cache_dir`"));
    }
    if mode != OWNER {
        fs::set_permissions(path, fs::Permissions::from_mode(OWNER)).map_err(io)?;
    }
    Ok(())
}

/// Makes a folder. Who may write to it is decided by the folder it lies in.
#[cfg(not(unix))]
pub(super) fn folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io(e, path))
}

#[cfg(unix)]
const OWNER: u32 = 0o700;
#[cfg(unix)]
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// The user that this process acts for, where the system is asked for it.
#[cfg(target_os = "linux")]
fn owner() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn owner() -> Option<u32> {
    None
}

/// The key that lies at `path`, made if there is none: all processes that share the folder have the same.
pub(super) fn key(path: &Path) -> io::Result<Secret> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let (mut file, temporary) = Temporary::create(path, Readers::Owner)?;
    let mut key = Secret::default();
    key.as_chunks_mut().0.iter_mut().for_each(|word| *word = random().to_le_bytes());
    file.write_all(&key)?;
    file.sync_all()?;
    match temporary.publish_new(path) {
        Ok(()) => Ok(key),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(path)?.ok_or_else(|| io::Error::other("the key of the cache is damaged"))
        }
        Err(error) => Err(error),
    }
}

/// The key, where there is one. A file that is none, as a full disk leaves it, is removed.
fn read(path: &Path) -> io::Result<Option<Secret>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut key = Secret::default();
    if file.metadata()?.len() == key.len() as u64 {
        file.read_exact(&mut key)?;
        return Ok(Some(key));
    }
    fs::remove_file(path)?;
    Ok(None)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::error::ErrorKind;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        folder(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        for (given, is_refused) in [(0o777, true), (0o770, true), (0o702, true), (0o755, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(given)).unwrap();
            let made = folder(&path);
            assert_eq!(made.is_err(), is_refused, "{given:o}");
            if let Err(error) = made {
                assert!(
                    error.kind() == ErrorKind::Config && error.message().contains(&format!("{given:o}")),
                    "{error}"
                );
            }
        }
        // Only administrators can give it away.
        if std::os::unix::fs::chown(&path, Some(54_321), None).is_ok() {
            assert!(folder(&path).unwrap_err().message().contains("another user, of number 54321"));
            std::os::unix::fs::chown(&path, owner(), None).unwrap();
        }
        // One of an earlier version, which others could only read.
        assert_eq!(mode(&path), 0o700);
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert!(folder(&dir.path().join("link")).unwrap_err().message().contains("is a link"));
    }

    #[test]
    fn a_key_is_made_once_and_nobody_else_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let keys: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| key(&path).unwrap())).collect();
            all.into_iter().map(|key| key.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]) && keys[0] != Secret::default());
        assert_eq!((mode(&path), fs::read_dir(dir.path()).unwrap().count()), (0o600, 1));
        fs::write(&path, b"cut").unwrap();
        assert_ne!(key(&path).unwrap(), keys[0]);
    }
}
