//! Whether a folder still holds what was written.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3;

use super::manifest::{FileEntry, MANIFEST, Manifest};
use crate::cores;
use crate::error::{Error, Result};
use crate::place::{self, Location};
use crate::source::Access;
use crate::source::content::Content;
use crate::store::{Folder, description};

impl Manifest {
    /// The manifest of a folder, where it has one.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be read, [`ErrorKind::State`](crate::ErrorKind::State) if it is damaged or of
    /// another version.
    pub fn of(folder: impl AsRef<Path>) -> Result<Option<Self>> {
        let folder = Location::from(folder.as_ref());
        let text = match &folder {
            Location::Object(url) => Folder::open(url)?.read(MANIFEST)?,
            Location::Local(folder) if folder.is_dir() => {
                description(&folder.join(MANIFEST))?.filter(|text| str::from_utf8(text).is_ok())
            }
            Location::Local(_) => None,
        };
        let Some(text) = text else { return Ok(None) };
        Self::of_text(&String::from_utf8_lossy(&text)).map_err(|e| e.path(place::shown(folder.as_ref()).join(MANIFEST)))
    }

    /// `None`: the name of the file is not ours alone.
    fn of_text(text: &str) -> Result<Option<Self>> {
        if text.contains("\"gristmill_manifest\"") { Self::from_json(text).map(Some) } else { Ok(None) }
    }

    /// Reads every file that it lists, on all cores, and returns what is wrong with them: size and hash are compared.
    pub fn check_files(&self, folder: impl AsRef<Path>) -> Vec<Error> {
        let folder = folder.as_ref();
        cores::map(self.files(), |file| file.check(folder).err()).into_iter().flatten().collect()
    }
}

impl FileEntry {
    fn check(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.name);
        let (bytes, hash) = hash(&path).map_err(|e| e.path(&path))?;
        let differs = |what: String| Err(Error::data(what).path(&path).help("it was changed since it was written"));
        match () {
            () if bytes != self.bytes => differs(format!("{bytes} bytes, and {} were written", self.bytes)),
            () if hash != self.xxh3 => differs(format!("its hash is {hash}, and was {}", self.xxh3)),
            () => Ok(()),
        }
    }
}

/// Bytes that are read at once.
const PIECE: u64 = 4 << 20;

/// The length and the hash of a file.
fn hash(path: &Path) -> Result<(u64, String)> {
    let (content, mut hash) = (Content::open(&path.into(), Access::Sequential)?, Xxh3::new());
    let bytes = content.len();
    for start in (0..bytes).step_by(PIECE as usize) {
        hash.update(content.read(start..bytes.min(start + PIECE))?.as_bytes());
    }
    Ok((bytes, format!("{:032x}", hash.digest128())))
}
