//! Sockets at which viewers connect to passes, in a folder of the user.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// Maximum number of passes in a process that viewers can connect to.
const MOST: u32 = 64;
const ENDING: &str = "sock";

/// A socket of a pass: its process, the number of the pass in that process, and the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) pid: u32,
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
}

/// Returns the user of this process.
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Parent of the folders of sockets, from the environment.
enum Folders {
    /// The folder of the user's session, which no other user may write to.
    Session(PathBuf),
    /// The folder of temporary files. The name gets a random suffix if another user has taken it.
    Temporary(PathBuf),
}

impl Folders {
    fn here() -> Self {
        match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
            Some(session) => Self::Session(session.into()),
            None => Self::Temporary(std::env::temp_dir()),
        }
    }

    fn listen(&self) -> Result<(UnixListener, Place)> {
        let (folder, parent) = (
            self.first(),
            match self {
                Self::Session(_) => return listen_in(&self.first()),
                Self::Temporary(parent) => parent,
            },
        );
        let refused = match listen_in(&folder) {
            Err(error) if check(&folder).is_err() => error,
            listening => return listening,
        };
        if let Some(other) = self.others().into_iter().next() {
            return listen_in(&other);
        }
        let letters = RandomState::new().hash_one(std::process::id());
        listen_in(&parent.join(format!("{}{letters:016x}", prefix()))).or(Err(refused))
    }

    fn places(&self) -> Result<Vec<Place>> {
        let (first, others) = (places_in(&self.first()), self.others());
        let mut places = match first {
            Err(error) if others.is_empty() => return Err(error),
            first => first.unwrap_or_default(),
        };
        for folder in others {
            places.extend(places_in(&folder)?);
        }
        places.sort();
        Ok(places)
    }

    fn first(&self) -> PathBuf {
        match self {
            Self::Session(parent) => parent.join("gristmill"),
            Self::Temporary(parent) => parent.join(prefix().trim_end_matches('-')),
        }
    }

    /// Returns the folders of this user that have a random suffix.
    fn others(&self) -> Vec<PathBuf> {
        let Self::Temporary(parent) = self else { return Vec::new() };
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let own = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix()));
        let mut own: Vec<_> = own.map(|entry| entry.path()).filter(|path| check(path).is_ok()).collect();
        own.sort();
        own
    }
}

fn prefix() -> String {
    format!("gristmill-{}-", user())
}

/// Checks that other users can neither write to a folder nor list its files.
fn check(folder: &Path) -> Result<()> {
    // Does not follow a link, because the owner of the link can change its target.
    let metadata = fs::symlink_metadata(folder).map_err(|e| Error::io(e, folder))?;
    let why = match metadata {
        metadata if !metadata.is_dir() => "it is no folder",
        metadata if metadata.uid() != user() => "it belongs to another user",
        metadata if metadata.mode() & 0o077 != 0 => "other users may open it",
        _ => return Ok(()),
    };
    let error = Error::new(ErrorKind::Io, format!("the folder of live views is not safe: {why}")).path(folder);
    Err(error.help("remove it, or set XDG_RUNTIME_DIR to a folder that no other user may open"))
}

/// Listens at a free socket of this process.
pub(super) fn listen() -> Result<(UnixListener, Place)> {
    Folders::here().listen()
}

fn listen_in(folder: &Path) -> Result<(UnixListener, Place)> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(Error::io(e, folder)),
    }
    check(folder)?;
    let pid = std::process::id();
    let mut taken = None;
    for number in 0..MOST {
        let path = folder.join(format!("{pid}.{number}.{ENDING}"));
        match UnixListener::bind(&path) {
            Ok(listener) => {
                // Protects the socket in addition to the folder.
                let only_own = fs::set_permissions(&path, fs::Permissions::from_mode(0o600));
                only_own.map_err(|e| Error::io(e, &path))?;
                return Ok((listener, Place { pid, number, path }));
            }
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
                // The socket may be left over from a dead process with the same id.
                if UnixStream::connect(&path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
                    let _ = fs::remove_file(&path);
                }
                taken = Some((e, path));
            }
            Err(e) => return Err(Error::io(e, path)),
        }
    }
    let (e, path) = taken.unwrap_or_else(|| (io::ErrorKind::AddrInUse.into(), folder.to_owned()));
    Err(Error::io(e, path))
}

/// Returns the sockets of this user at which passes listen now.
///
/// # Errors
/// [`ErrorKind::Io`] if other users could have written to the folder.
pub(crate) fn places() -> Result<Vec<Place>> {
    Folders::here().places()
}

fn places_in(folder: &Path) -> Result<Vec<Place>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io(e, folder)),
    };
    check(folder)?;
    let mut places: Vec<Place> = entries.filter_map(|entry| place(&entry.ok()?.path())).collect();
    places.retain(|place| match UnixStream::connect(&place.path) {
        Ok(_) => true,
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            // The process of the socket was killed.
            let _ = fs::remove_file(&place.path);
            false
        }
        Err(_) => false,
    });
    places.sort();
    Ok(places)
}

fn place(path: &Path) -> Option<Place> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?;
    let (pid, number) = name.split_once('.')?;
    Some(Place { pid: pid.parse().ok()?, number: number.parse().ok()?, path: path.to_owned() })
}

/// Connects to a pass.
///
/// # Errors
/// [`ErrorKind::Io`] if the pass is gone or if another user listens at the socket.
pub(crate) fn connect(place: &Place) -> Result<UnixStream> {
    let stream = UnixStream::connect(&place.path).map_err(|e| Error::io(e, &place.path))?;
    if !is_own(&stream) {
        return Err(Error::new(ErrorKind::Io, "another user listens there").path(&place.path));
    }
    Ok(stream)
}

/// Returns true if the process at the other end belongs to the same user.
pub(super) fn is_own(stream: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid.as_raw() == user())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_the_same_user_can_open_what_is_listened_at() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("gristmill");
        let (listener, place) = listen_in(&folder).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&place.path)), (0o700, 0o600));
        let (other, second) = listen_in(&folder).unwrap();
        assert_eq!((place.number, second.number, second.pid), (0, 1, std::process::id()));
        assert_eq!(places_in(&folder).unwrap(), [place.clone(), second.clone()]);
        assert!(is_own(&connect(&place).unwrap()));
        drop(other);
        assert_eq!(places_in(&folder).unwrap(), [place], "what nobody listens at goes");
        assert!(!second.path.exists());
        fs::write(folder.join("notes.txt"), "").unwrap();
        fs::write(folder.join("a.b.sock"), "").unwrap();
        drop(listener);
        let (_listener, place) = listen_in(&folder).unwrap();
        assert!(place.number <= 1 && places_in(&folder).unwrap() == [place]);
    }

    #[test]
    fn a_name_that_others_have_taken_is_not_needed() {
        let parent = tempfile::tempdir().unwrap();
        let folders = Folders::Temporary(parent.path().to_owned());
        let taken = folders.first();
        fs::create_dir(&taken).unwrap();
        fs::set_permissions(&taken, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(folders.places().is_err());
        let (_first, one) = folders.listen().unwrap();
        let (_second, other) = folders.listen().unwrap();
        assert!(one.path.parent() == other.path.parent() && one.path.parent() != Some(&*taken));
        assert_eq!(folders.places().unwrap(), [one, other]);
        let session = Folders::Session(parent.path().to_owned());
        fs::write(session.first(), "").unwrap();
        assert!(session.listen().is_err() && session.places().is_err());
    }

    #[test]
    fn a_folder_that_others_can_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for (name, why) in
            [("open", "other users may open it"), ("link", "it is no folder"), ("file", "it is no folder")]
        {
            let error = listen_in(&folder.path().join(name)).unwrap_err();
            assert!(error.to_string().contains(why), "{name}: {error}");
        }
        assert!(places_in(&open).is_err() && places_in(&folder.path().join("none")).unwrap().is_empty());
    }
}
