//! Identity of the build of a module. Code addresses can be compared only between equal builds.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use crate::workers::sys::modules::{self, Module};

/// Executable or shared library, as described to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Bytes that the segments take in memory.
    image_bytes: u64,
    /// The linker's digest of the contents, if the linker was asked to write it.
    build_id: Option<Vec<u8>>,
    /// Path of the file. Any process on this machine can open it while the described process lives.
    file: PathBuf,
    /// Device and inode of the file.
    inode: Option<(u64, u64)>,
}

impl Identity {
    pub(crate) fn of(module: &Module) -> Self {
        let file = if !module.main {
            module.path.clone()
        } else if modules::started_through_loader() {
            // `/proc/PID/exe` would be the loader.
            PathBuf::new()
        } else {
            PathBuf::from(format!("/proc/{}/exe", std::process::id()))
        };
        let inode = file.metadata().ok().map(|m| (m.dev(), m.ino()));
        Self { image_bytes: module.image_bytes, build_id: module.build_id.clone(), file, inode }
    }

    /// Returns true if both are the same build: equal files, else equal build ids, else equal bytes if neither has an
    /// id.
    pub(crate) fn same_build(&self, other: &Self) -> bool {
        if self.image_bytes != other.image_bytes {
            return false;
        }
        if self.inode.is_some() && self.inode == other.inode {
            return true;
        }
        match (&self.build_id, &other.build_id) {
            (Some(a), Some(b)) => a == b,
            (None, None) => matches!((digest(&self.file), digest(&other.file)), (Ok(a), Ok(b)) if a == b),
            _ => false,
        }
    }

    /// Finds the module of this process that is the same build.
    pub(crate) fn find_loaded(&self) -> Option<Module> {
        modules::loaded().into_iter().find(|m| m.image_bytes == self.image_bytes && self.same_build(&Self::of(m)))
    }

    /// Returns the file's name, for messages.
    pub(crate) fn name(&self) -> PathBuf {
        std::fs::read_link(&self.file).unwrap_or_else(|_| self.file.clone())
    }
}

fn digest(file: &Path) -> io::Result<u128> {
    let mut file = File::open(file)?;
    let mut digest = Xxh3::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digest.digest128()),
            n => digest.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this() -> Identity {
        Identity::of(&modules::loaded()[0])
    }

    #[test]
    fn a_copy_is_the_same_build_with_or_without_a_build_id() {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        std::fs::copy("/proc/self/exe", &copy).unwrap();
        let meta = copy.metadata().unwrap();
        let mut copied = Identity { file: copy.clone(), inode: Some((meta.dev(), meta.ino())), ..this() };
        assert!(this().same_build(&copied));
        copied.build_id = None;
        let bare = Identity { build_id: None, ..this() };
        assert!(bare.same_build(&copied));
        std::fs::write(&copy, "another program").unwrap();
        assert!(!bare.same_build(&copied));
        copied.file = dir.path().join("none");
        assert!(!bare.same_build(&copied));
    }

    #[test]
    fn other_sizes_and_other_ids_are_other_builds() {
        let elsewhere = Identity { inode: Some((0, 0)), ..this() };
        let other = Identity { image_bytes: 1, ..elsewhere.clone() };
        assert!(!this().same_build(&other));
        let other = Identity { build_id: Some(vec![1; 20]), ..elsewhere };
        assert!(!this().same_build(&other));
    }

    #[test]
    fn the_program_finds_itself() {
        assert!(this().find_loaded().unwrap().main);
        assert!(this().name().is_absolute());
        let library = modules::loaded().into_iter().find(|m| m.path.to_string_lossy().contains("libc")).unwrap();
        assert_eq!(Identity::of(&library).find_loaded().unwrap().path, library.path);
    }
}
