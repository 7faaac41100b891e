//! Whether a folder still holds what was written.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3;

use super::manifest::{FileEntry, MANIFEST, Manifest};
use crate::error::{Error, Result};

impl Manifest {
    /// The manifest of a folder, where it has one.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be read, [`ErrorKind::State`](crate::ErrorKind::State) if it is damaged or of
    /// another version.
    pub fn of(folder: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = folder.as_ref().join(MANIFEST);
        match std::fs::read_to_string(&path) {
            // The name is not ours alone.
            Ok(text) if !text.contains("\"gristmill_manifest\"") => Ok(None),
            Ok(text) => Self::from_json(&text).map(Some).map_err(|e| e.path(&path)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
            Err(error) => Err(Error::io(error, path)),
        }
    }

    /// Reads every file that it lists, on all cores, and returns what is wrong with them: size and hash are compared.
    pub fn check_files(&self, folder: impl AsRef<Path>) -> Vec<Error> {
        let folder = folder.as_ref();
        let files: Vec<&FileEntry> = self.files().collect();
        files.into_par_iter().filter_map(|file| file.check(folder).err()).collect()
    }
}

impl FileEntry {
    fn check(&self, folder: &Path) -> Result<()> {
        let path = folder.join(&self.name);
        let (bytes, hash) = hash(&path).map_err(|e| Error::io(e, &path))?;
        let differs = |what: String| Err(Error::data(what).path(&path).help("it was changed since it was written"));
        match () {
            () if bytes != self.bytes => differs(format!("{bytes} bytes, and {} were written", self.bytes)),
            () if hash != self.xxh3 => differs(format!("its hash is {hash}, and was {}", self.xxh3)),
            () => Ok(()),
        }
    }
}

/// The length and the hash of a file.
fn hash(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut hash, mut bytes) = (File::open(path)?, Xxh3::new(), 0);
    let mut piece = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((bytes, format!("{:032x}", hash.digest128())));
        }
        hash.update(&piece[..read]);
        bytes += read as u64;
    }
}
