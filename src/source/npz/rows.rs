//! Rows of archives whose arrays have equal numbers of rows.
//!
//! Not based on [`Files`](crate::source::numbered::Files): an [`Npz`] already has a file and an identity, and options
//! set after opening control its cache.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use super::Npz;
use crate::cores;
use crate::dataset::map::{RandomAccess, SourceFacts};
use crate::element::{DType, Element};
use crate::error::{Error, Result};
use crate::fork::OwnLock;
use crate::source::Patterns;
use crate::source::abreast;
use crate::source::files;
use crate::source::firsts::Firsts;
use crate::source::formats::Format;
use crate::source::npy::aligned;
use crate::source::numbered::reader;

/// Rows of `.npz` files along the first dimension: a [`RandomAccess`] source of [`Element`].
///
/// All arrays of an archive must have equal first dimensions. Record `i` contains row `i` of every array, without the
/// first dimension. Names, types and shapes of the arrays must match in all archives, except for the number of rows.
///
/// # Cost
/// Opening reads the directories and the header of each array. The first read from an archive reads all of it, to check
/// the CRC-32s. Rows of stored arrays are views of the mapped file.
///
/// Deflated archives are inflated whole. The most recently inflated archives are cached, up to
/// [`cache_bytes`](Self::cache_bytes). Shuffled reading across many archives inflates an archive for almost every row.
pub struct NpzRows {
    archives: Vec<Archive>,
    firsts: Firsts,
    /// Inflated archives, most recent last.
    recent: OwnLock<VecDeque<(usize, Arc<Element>)>>,
    cache_bytes: usize,
    identity: String,
}

struct Archive {
    npz: Npz,
    /// All arrays, if they are views and were checked.
    stored: OnceLock<Arc<Element>>,
}

/// An array's name, type, and shape without the first dimension.
type Column = (String, DType, Vec<usize>);

impl NpzRows {
    /// Opens files, globs or directories of `.npz` files.
    ///
    /// # Errors
    /// The errors of [`Npz::open`]. [`ErrorKind::Data`](crate::ErrorKind::Data) if the arrays of an archive have
    /// different numbers of rows, or the arrays of two archives differ in anything else.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        let files = files::locate(patterns, Format::Npz.endings())?;
        Self::of(cores::try_map_on(abreast::ends(&files), files, Npz::open)?)
    }

    pub(in super::super) fn of(archives: Vec<Npz>) -> Result<Self> {
        let described = cores::try_map(&archives, described)?;
        if let Some((first, columns)) = archives.first().zip(described.first().map(|(_, columns)| columns)) {
            let differs = described.iter().position(|(_, others)| others != columns);
            if let Some(other) = differs.and_then(|at| archives.get(at)) {
                let name = files::file_name(&first.path);
                let text = format!("its arrays differ from those of {name} in names, types or shapes");
                return Err(Error::data(text).path(&other.path).offset(0));
            }
        }
        let firsts = Firsts::of(described.iter().map(|(rows, _)| *rows))?;
        let identity = archives.iter().map(|npz| npz.identity()).collect::<Vec<_>>().join("; ");
        let archives = archives.into_iter().map(|npz| Archive { npz, stored: OnceLock::new() }).collect();
        Ok(Self { archives, firsts, recent: OwnLock::default(), cache_bytes: 256 << 20, identity })
    }

    /// Sets the maximum memory for inflated archives, in bytes. Default: 256 MiB. Always keeps the latest archive.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the maximum size of an archive's deflated arrays after inflation: see [`Npz::max_bytes`].
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.archives.iter_mut().for_each(|archive| archive.npz.max_bytes = bytes);
        self
    }

    fn element(&self, at: usize) -> Result<Arc<Element>> {
        let archive = &self.archives[at];
        if let Some(element) = archive.stored.get() {
            return Ok(element.clone());
        }
        if archive.npz.is_stored() {
            let element = Arc::new(archive.npz.element()?);
            return Ok(archive.stored.get_or_init(|| element).clone());
        }
        let recent = || self.recent.lock();
        if let Some((_, element)) = recent().iter().find(|(known, _)| *known == at) {
            return Ok(element.clone());
        }
        // Inflated without the lock, so that other threads can read other archives.
        let element = Arc::new(archive.npz.element()?);
        let mut recent = recent();
        recent.push_back((at, element.clone()));
        let mut bytes: usize = recent.iter().map(|(_, element)| element.nbytes()).sum();
        while recent.len() > 1 && bytes > self.cache_bytes {
            bytes -= recent.pop_front().map_or(0, |(_, element)| element.nbytes());
        }
        Ok(element)
    }
}

/// Returns the number of rows of an archive, and its columns.
fn described(npz: &Npz) -> Result<(u64, Vec<Column>)> {
    let (mut rows, mut columns): (Option<(&str, usize)>, _) = (None, Vec::new());
    for (name, header) in npz.headers()? {
        let wrong = |text: String| Err(Error::data(text).path(&npz.path).offset(0));
        let Some((&count, shape)) = header.shape.split_first() else {
            return wrong(format!("array {name:?} has no dimension, and so no rows"));
        };
        match rows {
            Some((first, rows)) if rows != count => {
                return wrong(format!("array {first:?} has {rows} rows and {name:?} has {count}"));
            }
            _ => rows = Some((name, count)),
        }
        columns.push((name.to_owned(), header.dtype, shape.to_vec()));
    }
    Ok((rows.map_or(0, |(_, rows)| rows as u64), columns))
}

impl RandomAccess for NpzRows {
    type Record = Element;

    fn len(&self) -> u64 {
        self.firsts.len
    }

    fn read(&self, index: u64) -> Result<Element> {
        let (at, row) = self.firsts.find(index)?;
        let archive = self.element(at)?;
        let mut element = Element::with_capacity(archive.len());
        for name in archive.iter().map(|(name, _)| name) {
            let row = usize::try_from(row).ok().and_then(|row| archive.array(name).ok()?.row(row));
            let row =
                row.ok_or_else(|| Error::data("the directory is of another file").path(&self.archives[at].npz.path))?;
            element.insert(name, aligned(row)?);
        }
        Ok(element)
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts { is_native: true, ..SourceFacts::new("npz_rows", self.identity.clone()) }
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }
}

reader! {
    /// Opens archives of NumPy arrays, with a record for each row: see [`NpzRows`](crate::source::NpzRows).
    ///
    /// ```no_run
    /// use gristmill::prelude::*;
    /// let batches = gristmill::npz("features-*.npz")?.shuffle(42).to_iter().batch(32);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    npz: NpzRows
}

debug_as!(NpzRows, |self, f| write!(f, "NpzRows({} rows, {} files)", self.len(), self.archives.len()));
