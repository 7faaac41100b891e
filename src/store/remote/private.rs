//! Folders that only their owner can read or write, and a secret key inside.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::temporary::{Readers, Temporary, random};

/// Key that other users cannot read.
pub(in crate::store) type Secret = [u8; 32];

/// Creates a folder that only its owner can access. An existing folder is checked, and restricted to its owner.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if the folder is a link, belongs to another user, or is writable by
/// others; [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be created.
#[cfg(unix)]
pub(in crate::store) fn folder(path: &Path) -> Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    let io = |e| Error::io(e, path);
    fs::DirBuilder::new().recursive(true).mode(OWNER).create(path).map_err(io)?;
    // A link is not followed, because its creator would choose the folder.
    let found = fs::symlink_metadata(path).map_err(io)?;
    let refused = |what: String| Error::config(what).path(path).help("name another `cache_dir`, or remove the folder");
    if !found.is_dir() {
        return Err(refused("the folder of the cache is a link".to_owned()));
    }
    if owner().is_some_and(|user| user != found.uid()) {
        let text = format!("the folder of the cache belongs to another user, number {}", found.uid());
        return Err(refused(text));
    }
    let mode = found.permissions().mode() & 0o777;
    if mode & WRITTEN_BY_OTHERS != 0 {
        let text = format!("others may write to the folder of the cache, whose mode is {mode:o}");
        return Err(Error::config(text)
            .path(path)
            .help("its contents may come from another user: remove the folder, or name another `cache_dir`"));
    }
    if mode != OWNER {
        fs::set_permissions(path, fs::Permissions::from_mode(OWNER)).map_err(io)?;
    }
    Ok(())
}

/// Creates a folder. The parent folder determines who may write to it.
#[cfg(not(unix))]
pub(in crate::store) fn folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io(e, path))
}

#[cfg(unix)]
const OWNER: u32 = 0o700;
#[cfg(unix)]
const WRITTEN_BY_OTHERS: u32 = 0o022;

/// Returns the effective user of this process. Returns `None` on systems other than Linux.
#[cfg(target_os = "linux")]
fn owner() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn owner() -> Option<u32> {
    None
}

/// Reads the key at `path`, or creates it. All processes that share the folder use the same key.
pub(in crate::store) fn key(path: &Path) -> io::Result<Secret> {
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

/// Reads the key. Returns `None` if the file does not exist. Removes a file of the wrong length, which a full disk can
/// leave.
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
        // Only administrators can change the owner.
        if std::os::unix::fs::chown(&path, Some(54_321), None).is_ok() {
            assert!(folder(&path).unwrap_err().message().contains("another user, number 54321"));
            std::os::unix::fs::chown(&path, owner(), None).unwrap();
        }
        // A folder of an earlier version, which others could read, now has mode 0700.
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
