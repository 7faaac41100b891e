//! Exclusion of damaged shards.

use std::path::{Path, PathBuf};

use super::files::Patterns;
use crate::error::{Error, ErrorKind, Result};
pub use crate::place::Shards;
use crate::place::shown;

impl Patterns for Shards {
    fn patterns(&self) -> Vec<PathBuf> {
        self.patterns.clone()
    }

    fn leaves_out(&self, file: &Path) -> bool {
        let file = shown(file);
        // An index of the shards in its folder is opened together with each shard.
        let describes = |shard: &Path| file.ends_with("index.json") && file.parent() == shard.parent();
        let is_other = |shard: &PathBuf| *file != **shard && !describes(shard);
        self.only.as_ref().is_some_and(is_other) || self.left_out.iter().any(|other| *other == *file)
    }
}

/// Opens files with `open`, without the damaged shards. Returns the source and the error of each excluded shard.
///
/// A shard is excluded as a whole if opening it fails with [`ErrorKind::Data`]: a cut footer, a damaged header, a file
/// of 0 bytes. An excluded shard contributes no records. At most `limit` shards are excluded; `None` sets no limit.
/// Unreachable files are errors. So are intact files whose columns differ from the columns of the first file.
///
/// The excluded shards depend only on the bytes of the files. All hosts and all resumed runs therefore exclude the same
/// shards. The fingerprint of the pipeline covers the opened files only: a state is rejected if an excluded shard has
/// become readable since.
///
/// ```
/// use gristmill::dataset::map::RandomAccess;
/// use gristmill::source::{Npy, NpyWriter, skip_bad_shards};
/// use gristmill::{Array, Element};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-shards-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// std::fs::write(dir.join("a.npy"), b"\x93NUMPY")?;
/// let mut writer = NpyWriter::options().rows(1).write_to(std::fs::File::create(dir.join("b.npy"))?)?;
/// writer.write(&Element::new().with("data", Array::scalar(7i64)))?;
/// writer.finish()?;
/// let (source, bad) = skip_bad_shards(&dir, None, |shards| Npy::open(shards))?;
/// assert_eq!((source.len(), bad.len()), (1, 1));
/// assert!(bad[0].file().unwrap().ends_with("a.npy"));
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// The errors of `open`; the error of the first damaged shard beyond the limit; [`ErrorKind::Data`] if every shard is
/// damaged.
///
/// # Cost
/// Calls `open` once if every shard is intact. Each excluded shard adds two calls, one of them with that shard alone.
pub fn skip_bad_shards<S>(
    patterns: impl Patterns,
    limit: Option<u64>,
    mut open: impl FnMut(&Shards) -> Result<S>,
) -> Result<(S, Vec<Error>)> {
    let mut shards = Shards { patterns: patterns.patterns(), ..Shards::default() };
    let mut bad = Vec::new();
    loop {
        let error = match open(&shards) {
            Ok(source) => return Ok((source, bad)),
            Err(error) => error,
        };
        let Some(file) = damaged(&error).filter(|file| !shards.left_out.contains(file)) else { return Err(error) };
        // A shard that can be opened alone differs from the other shards, and either side may be wrong.
        let alone = Shards { only: Some(file.clone()), ..shards.clone() };
        if !open(&alone).is_err_and(|alone| damaged(&alone).is_some()) {
            return Err(error);
        }
        if let Some(limit) = limit.filter(|&limit| bad.len() as u64 >= limit) {
            return Err(error.and(&format!("; {limit} bad shards were skipped before it, which is the limit")));
        }
        shards.left_out.push(file);
        bad.push(error);
    }
}

/// Returns the file that an error reports as damaged.
fn damaged(error: &Error) -> Option<PathBuf> {
    error.file().filter(|_| error.kind() == ErrorKind::Data).map(Path::to_owned)
}
