//! Bagz files: records of bytes by number, each compressed separately.
//!
//! The format: <https://github.com/google-deepmind/bagz>. Records are stored one after the other. The *limit* of a
//! record is its end, a little-endian `u64`. Limits are at the tail of the file, or in a separate file beside it.

#[cfg(feature = "spec")]
pub(super) mod entry;
mod frame;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod shard;
mod shards;

use std::ops::Range;
use std::path::{Path, PathBuf};

use self::shard::Shard;
pub(crate) use self::shards::expand;
use super::content::{self, Contents};
use super::files::{self, Patterns, Renamed};
use super::firsts::Firsts;
use super::formats::Format;
use super::numbered::{File, Files, Numbered, named_source, reader, source_options};
use crate::dataset::map::RandomAccess;
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Records of Bagz files, by number: a [`RandomAccess`] source of bytes ([`Buffer`]).
///
/// Records of a `.bagz` file are zstd frames. Records of a `.bag` file are uncompressed views of the mapped file. For
/// any other name, the first record decides. An empty record always takes 0 bytes.
///
/// Limits are read from the file `limits.NAME` if it exists beside `NAME`, else from the tail of the file. As in Bagz
/// itself, the name `x@4.bagz` means the four files `x-00000-of-00004.bagz` and so on. For `x@*.bagz`, the number of
/// files is found from their names.
///
/// ```
/// use gristmill::dataset::map::RandomAccess;
/// use gristmill::source::Bagz;
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-bagz-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("a.bag");
/// let mut file = b"oatrye".to_vec();
/// file.extend([3u64, 6].map(u64::to_le_bytes).as_flattened());
/// std::fs::write(&path, &file).unwrap();
/// assert_eq!(Bagz::open(&path)?.read(1)?.as_bytes(), b"rye");
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// Opening returns [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset if the last limit of a file does
/// not fit its size. Other limits are checked when their records are read; a bad limit affects only its record and the
/// next. A record may have 64 MiB plus 1000 times its compressed size.
///
/// # Cost
/// Opening checks the last limit of each file. Reading looks up two limits and decompresses a single record.
pub struct Bagz(Files<Frames>);

/// Options to open [`Bagz`] files.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct BagzOptions {
    access: Access,
    interleaved: bool,
    compressed: Option<bool>,
}

source_options!(BagzOptions of Bagz, access at access);

impl BagzOptions {
    setters! {
        /// Sets whether records were distributed round-robin, as in Bagz's `INTERLEAVED`: with `n` files, record `i` is
        /// record `i / n` of file `i % n`. With `false`, the default, the files follow one another.
        pub interleaved: bool;

        /// Sets whether records are zstd frames, regardless of the file's name. By default, `.bagz` files are
        /// compressed, `.bag` files are not, and the first record decides for other names.
        pub compressed(compressed: bool) => compressed = Some(compressed);
    }

    /// Opens files, globs, sharded names or directories (of `.bagz` and `.bag` files).
    ///
    /// # Errors
    /// If nothing is found, or the last limit of a file does not fit its size; also
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `interleaved` is set and the lengths of the files contradict
    /// it.
    pub fn open(self, patterns: impl Patterns) -> Result<Bagz> {
        let names = patterns.patterns().iter().flat_map(|path| expand(path)).collect();
        let found = files::find(Renamed { names, given: patterns }, Format::Bagz.endings())?;
        let (limits, files): (Vec<_>, Vec<_>) = found.iter().cloned().partition(|path| holds_limits(path, &found));
        if let ([limits, ..], []) = (&*limits, &*files) {
            let error = Error::config("it holds where the records of the file beside it end").path(limits);
            return Err(error.help("name the file of the records, which is called the same without `limits.`"));
        }
        let contents = content::open_all(files, Format::Bagz.endings(), self.access)?;
        self.of(contents)
    }

    fn of(self, contents: Contents) -> Result<Bagz> {
        let BagzOptions { access, interleaved, compressed } = self;
        let format = Frames { in_turns: interleaved.then_some(contents.len() as u64), compressed };
        let files = Files::open(format, contents, |format, file| Shard::open(file, access, format.compressed))?;
        if interleaved {
            check_turns(&files)?;
        }
        Ok(Bagz(files))
    }

    /// Opens a file that is already in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(self, name: &str, bytes: &[u8]) -> Result<Bagz> {
        self.of(vec![(name.into(), Buffer::copy_from(bytes).into())])
    }
}

/// Returns true if a file holds the limits of another file beside it.
fn holds_limits(path: &Path, all: &[PathBuf]) -> bool {
    let name = files::file_name(path);
    let records = name.strip_prefix("limits.").map(|records| path.with_file_name(records));
    records.is_some_and(|records| all.contains(&records) || records.exists())
}

/// Checks that the lengths of the files fit a round-robin distribution.
fn check_turns(files: &Files<Frames>) -> Result<()> {
    let (all, count) = (files.len(), files.files.len() as u64);
    for (turn, file) in (0..count).zip(&files.files) {
        let (len, due) = (file.index.len(), (all + count - 1 - turn) / count);
        if len != due {
            let text = format!("{len} records, where one of {count} interleaved files of {all} has {due}");
            return Err(Error::config(text).path(&file.path).help("omit `interleaved`: these files follow each other"));
        }
    }
    Ok(())
}

/// Reader of records.
struct Frames {
    /// Number of files, if records were distributed round-robin.
    in_turns: Option<u64>,
    /// Compression according to the options.
    compressed: Option<bool>,
}

impl Numbered for Frames {
    type Record = Buffer;
    type Index = Shard;

    const NAME: &'static str = "bagz";

    fn len(&self, file: &File<Shard>) -> u64 {
        file.index.len()
    }

    fn read(&self, file: &File<Shard>, record: u64) -> Result<Buffer> {
        file.index.read(&file.content, record)
    }

    fn ranges(&self, file: &File<Shard>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        file.index.range(record).ok()
    }

    fn find(&self, firsts: &Firsts, index: u64) -> Result<(usize, u64)> {
        let found = firsts.find(index)?;
        Ok(self.in_turns.map_or(found, |count| ((index % count) as usize, index / count)))
    }

    fn params(&self) -> String {
        let turns = if self.in_turns.is_some() { ", interleaved" } else { "" };
        turns.to_owned() + &self.compressed.map_or(String::new(), |compressed| format!(", compressed={compressed}"))
    }
}

named_source!(Bagz of Buffer);

reader! {
    /// Opens Bagz files, whose records are bytes: see [`Bagz`](crate::source::Bagz).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-bagz-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let path = dir.join("a.bag");
    /// # let ends = [3_u64, 6].map(u64::to_le_bytes);
    /// std::fs::write(&path, [b"oatrye", ends.as_flattened()].concat()).unwrap();
    /// assert_eq!(gristmill::bagz(&path)?.collect()?[1].as_bytes(), b"rye");
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    bagz: Bagz
}

#[cfg(test)]
mod tests;
