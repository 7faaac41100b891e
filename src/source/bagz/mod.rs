//! Bagz files: records of bytes by number, each compressed by itself.
//!
//! The format: <https://github.com/google-deepmind/bagz>. Records lie one behind the other; where each of them ends is
//! said by its *limit*, a little-endian `u64`. Limits are at the tail of the file, or in a file of their own beside it.

mod frame;
mod shard;
mod shards;

use std::fmt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use self::shard::Shard;
pub(crate) use self::shards::expand;
use super::content;
use super::files::{self, FileId, Patterns};
use super::firsts::Firsts;
use super::mmap::Access;
use crate::cores;
use crate::dataset::Upcoming;
use crate::dataset::map::{Many, RandomAccess};
use crate::element::Buffer;
use crate::error::{Error, Result};

const ENDINGS: [&str; 2] = [".bagz", ".bag"];

/// Records of Bagz files, by number: a [`RandomAccess`] source of bytes ([`Buffer`]).
///
/// Records of a `.bagz` file are frames of zstd, those of a `.bag` file are as they are, views of the mapped file; of a file of
/// another name, the first record says which. An empty record takes no bytes in either. Limits are read from the file
/// `limits.NAME` if there is one beside `NAME`, else from the tail of the file itself. The name `x@4.bagz` stands for the four
/// files `x-00000-of-00004.bagz` and so on, and `x@*.bagz` for as many as there are, as in Bagz itself.
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
/// Opening a file whose last limit does not fit its size is [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset. Any other
/// limit is checked when its record is read, and costs that record and its neighbour alone. A record may be 64 MiB and 1000
/// times its compressed size.
///
/// # Cost
/// Opening looks at the last limit, however many there are. Reading looks at two, and decompresses one record.
pub struct Bagz {
    shards: Vec<Shard>,
    firsts: Firsts,
    interleaved: bool,
    identity: String,
}

impl Bagz {
    /// Opens files, globs, sharded names or directories (of `.bagz` and `.bag` files).
    ///
    /// # Errors
    /// If nothing is found, or the last limit of a file does not fit.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> BagzOptions {
        BagzOptions::default()
    }
}

/// How [`Bagz`] files are opened.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct BagzOptions {
    access: Access,
    interleaved: bool,
    compressed: Option<bool>,
}

impl BagzOptions {
    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Whether records were dealt out to the files in turn, Bagz's `INTERLEAVED`: record `i` of all is record `i / n` of file
    /// `i % n`. `false` at first: the records of one file follow those of the one before.
    pub fn interleaved(mut self, interleaved: bool) -> Self {
        self.interleaved = interleaved;
        self
    }

    /// Whether records are frames of zstd, whatever the files are called. At first those of `.bagz` files are, those of `.bag` files are
    /// not, and of others the first record shows it.
    pub fn compressed(mut self, compressed: bool) -> Self {
        self.compressed = Some(compressed);
        self
    }

    /// Opens files, globs, sharded names or directories (of `.bagz` and `.bag` files).
    ///
    /// # Errors
    /// As [`Bagz::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if the files are to be interleaved and their lengths do not
    /// allow it.
    pub fn open(self, patterns: impl Patterns) -> Result<Bagz> {
        let named: Vec<PathBuf> = patterns.patterns().iter().flat_map(|path| expand(path)).collect();
        let found = files::find(named, &ENDINGS)?;
        let (limits, files): (Vec<_>, Vec<_>) = found.iter().cloned().partition(|path| holds_limits(path, &found));
        if let ([limits, ..], []) = (&*limits, &*files) {
            let error = Error::config("it holds where the records of the file beside it end").path(limits);
            return Err(error.help("name the file of the records, which is called the same without `limits.`"));
        }
        let contents = content::open_all(files, &ENDINGS, self.access)?;
        let open = |(path, content)| Shard::open(path, content, self.access, self.compressed);
        let opened = cores::on_all(|| contents.into_par_iter().map(open).collect::<Result<Vec<_>>>())?;
        self.of(opened)
    }

    fn of(self, opened: Vec<(Shard, FileId)>) -> Result<Bagz> {
        let (shards, ids): (Vec<Shard>, Vec<FileId>) = opened.into_iter().unzip();
        let firsts = Firsts::of(shards.iter().map(Shard::len))?;
        let mut identity = files::identity(&ids);
        if self.interleaved {
            check_turns(&shards, firsts.len())?;
            identity += ", interleaved";
        }
        if let Some(compressed) = self.compressed {
            identity += &format!(", compressed={compressed}");
        }
        Ok(Bagz { shards, firsts, interleaved: self.interleaved, identity })
    }

    /// A file that is in memory already.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(self, name: &str, bytes: &[u8]) -> Result<Bagz> {
        let shard = Shard::open(name.into(), Buffer::copy_from(bytes).into(), self.access, self.compressed)?;
        self.of(vec![shard])
    }
}

/// Whether a file is the limits of another one, beside which it lies.
fn holds_limits(path: &Path, all: &[PathBuf]) -> bool {
    let name = files::file_name(path);
    let records = name.strip_prefix("limits.").map(|records| path.with_file_name(records));
    records.is_some_and(|records| all.contains(&records) || records.exists())
}

/// That records can have been dealt out in turn.
fn check_turns(shards: &[Shard], all: u64) -> Result<()> {
    let count = shards.len() as u64;
    for (turn, shard) in (0..count).zip(shards) {
        let due = (all + count - 1 - turn) / count;
        if shard.len() != due {
            let text = format!("{} records, where one of {count} interleaved files of {all} has {due}", shard.len());
            return Err(Error::config(text)
                .path(shard.path())
                .help("leave `interleaved` out: these follow each other"));
        }
    }
    Ok(())
}

impl Bagz {
    /// The shard that holds a record, and its number there.
    fn find(&self, index: u64) -> Result<(usize, u64)> {
        let found = self.firsts.find(index)?;
        let count = self.shards.len() as u64;
        Ok(if self.interleaved { ((index % count) as usize, index / count) } else { found })
    }

    /// The shards that lie far away, and ranges where these records lie in them.
    fn parts(&self, indices: &[u64]) -> impl Iterator<Item = (usize, std::ops::Range<u64>)> {
        let places = indices.iter().filter_map(|&index| self.find(index).ok());
        places.filter_map(|(at, record)| Some((at, self.shards[at].far(record)?)))
    }
}

impl RandomAccess for Bagz {
    type Record = Buffer;

    fn len(&self) -> u64 {
        self.firsts.len()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Buffer> {
        let (at, record) = self.find(index)?;
        let shard = &self.shards[at];
        shard.read(record).map_err(|e| e.path(shard.path()).record(record))
    }

    /// What lies far away is fetched all at once, not one after the other.
    fn read_many(&self, indices: &[u64]) -> Many<Buffer> {
        content::fetch_all(self.parts(indices), |at| self.shards[at].content());
        Many::one_by_one(indices, |index| self.read(index).map(Some))
    }

    fn reads_far(&self) -> bool {
        content::any_far(self.shards.iter().map(Shard::content))
    }

    fn will_read(&self, next: Upcoming<'_>) {
        content::will_read(self.parts(next.indices()), next, |at| self.shards[at].content());
    }

    fn place(&self, index: u64) -> Option<(PathBuf, u64)> {
        let (at, record) = self.find(index).ok()?;
        Some((self.shards[at].path().to_owned(), record))
    }

    fn name(&self) -> &'static str {
        "bagz"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &Buffer) -> u64 {
        record.len() as u64
    }
}

impl fmt::Debug for Bagz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bagz({} records, {} files)", self.len(), self.shards.len())
    }
}

#[cfg(test)]
mod tests;
