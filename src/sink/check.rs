//! Verification of the files of a folder.

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
    /// Reads the manifest of a folder; returns `None` if there is no manifest.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the manifest cannot be read,
    /// [`ErrorKind::State`](crate::ErrorKind::State) if it is damaged or of another version.
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

    /// Parses a manifest. Returns `None` for a file of another program, because the file name is not unique to
    /// gristmill.
    fn of_text(text: &str) -> Result<Option<Self>> {
        if text.contains("\"gristmill_manifest\"") { Self::from_json(text).map(Some) } else { Ok(None) }
    }

    /// Reads every listed file on all cores and compares its size and hash. Returns an error for each file that differs
    /// or cannot be read.
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
            () if bytes != self.bytes => differs(format!("{bytes} bytes, but {} were written", self.bytes)),
            () if hash != self.xxh3 => differs(format!("its hash is {hash}, and was {}", self.xxh3)),
            () => Ok(()),
        }
    }
}

/// Bytes per read.
const PIECE: u64 = 4 << 20;

/// Returns the length and the hash of a file.
fn hash(path: &Path) -> Result<(u64, String)> {
    let (content, mut hash) = (Content::open(&path.into(), Access::Sequential)?, Xxh3::new());
    let bytes = content.len();
    for start in (0..bytes).step_by(PIECE as usize) {
        hash.update(content.read(start..bytes.min(start + PIECE))?.as_bytes());
    }
    Ok((bytes, format!("{:032x}", hash.digest128())))
}
