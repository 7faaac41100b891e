//! Stored crops, and the elements that are made from them.

use std::ops::Range;

use crate::dataset::iter::InPlace;
use crate::dataset::map::GetStacked;
use crate::dataset::{Describe, Node, Reads, Role, Upcoming};
use crate::element::{Array, DType, Element, Name};
use crate::error::{Error, Result};
use crate::mmap::{prefetch, prefetch_pages};
use crate::source::content;
use crate::source::tokens::{TokenFile, Tokens};

/// Name of the field of a crop.
const TOKENS: Name = Name::new_static("tokens");

/// Distance in stored bytes between the crop that is read and the crop that is prefetched, in a batch. `MOST_AHEAD`
/// limits the distance in crops.
const AHEAD: usize = 4 << 10;
const MOST_AHEAD: usize = 16;
/// Number of crops by which the pages of a crop are prefetched before its bytes.
const PAGES_AHEAD: usize = 4;

/// Shape of a crop, consecutive or random.
#[derive(Clone)]
pub(super) struct Shape {
    pub(super) tokens: Tokens,
    pub(super) seq_len: usize,
    pub(super) with_next: bool,
    pub(super) as_stored: bool,
    /// Whether any file is in an object store.
    far: bool,
}

impl Shape {
    pub(super) fn new(tokens: Tokens, seq_len: usize) -> Self {
        let far = content::any_far(tokens.files.iter().map(|file| &file.content));
        Self { tokens, seq_len, with_next: false, as_stored: false, far }
    }

    /// Returns the facts of a stage of this name that do not depend on the positions of the crops.
    pub(super) fn node(&self, name: &'static str) -> Node<'static> {
        let reads = Reads { far: self.far, together: false };
        Node { is_native: true, has_columns: !self.as_stored, reads, ..Node::new(name, Role::Source) }
    }

    /// Returns the number of ids in a crop.
    pub(super) fn width(&self) -> usize {
        self.seq_len.saturating_add(usize::from(self.with_next))
    }

    /// Reads the crop of file `file` that starts at id `from`.
    #[inline]
    pub(super) fn read(&self, file: usize, from: u64) -> Result<Element> {
        let file = self.tokens.files.get(file).ok_or_else(|| Error::data("the crop is behind the last file"))?;
        let array = if self.as_stored { self.view(file, from) } else { self.copy(file, from) };
        Ok(Element::from_unique(vec![(TOKENS, array?.into())]))
    }

    #[inline]
    pub(super) fn prefetch(&self, file: usize, from: u64) {
        if let Some(file) = self.tokens.files.get(file).filter(|_| !self.as_stored) {
            file.prefetch(from, self.width());
        }
    }

    fn copy(&self, file: &TokenFile, from: u64) -> Result<Array> {
        let mut crop = Array::builder(DType::I32, &[self.width()])?;
        file.read_into(from, crop.as_mut_slice())?;
        Ok(crop.freeze())
    }

    /// Stacks the crops that start at `places`. Writes every id once, directly into the batch. Returns `None` if a crop
    /// cannot be read.
    pub(super) fn stack(&self, places: &[(usize, u64)]) -> GetStacked<Element> {
        content::fetch_all(self.far(places.iter().copied()), |at| &self.tokens.files[at].content);
        let crops: Option<Vec<_>> = places.iter().map(|&(file, from)| self.stored(file, from)).collect();
        let crops = crops?;
        let mut batch = Array::of_rows(DType::I32, &[crops.len(), self.width()]).ok()?;
        let ahead = crops.first().map_or(1, Stored::ahead);
        // Each crop is in another page, at an address that no processor can predict.
        let later = |at: usize| crops.get(at).and_then(|crop| crop.here).unwrap_or_default();
        for (at, crop) in crops.iter().enumerate() {
            prefetch_pages(later(at + ahead + PAGES_AHEAD));
            prefetch(later(at + ahead));
            crop.read_into(batch.next_row()?).ok()?;
        }
        let batch = Element::from_unique(vec![(TOKENS, batch.freeze().into())]);
        Some(InPlace { len: places.len(), bytes: batch.nbytes(), batch })
    }

    #[inline]
    fn stored(&self, file: usize, from: u64) -> Option<Stored<'_>> {
        let file = self.tokens.files.get(file)?;
        Some(Stored { file, from, here: file.here(from, self.width()) })
    }

    fn view(&self, file: &TokenFile, from: u64) -> Result<Array> {
        file.view(from, self.width() as u64)
    }

    /// Returns the files and ranges of the remote crops among the crops that start at `places`.
    fn far(&self, places: impl Iterator<Item = (usize, u64)>) -> impl Iterator<Item = (usize, Range<u64>)> {
        places.filter_map(|(at, from)| Some((at, self.tokens.files.get(at)?.far(from, self.width())?)))
    }

    /// Announces reads of the crops that start at `places`.
    pub(super) fn will_read(&self, places: impl Iterator<Item = (usize, u64)>, next: Upcoming<'_>) {
        if next.is_apart() {
            return places.for_each(|(at, from)| {
                self.tokens.files.get(at).iter().for_each(|file| file.bring(from, self.width()));
            });
        }
        content::will_read(self.far(places), next, |at| &self.tokens.files[at].content);
    }
}

impl Describe for Shape {
    fn params(&self) -> String {
        let Self { tokens, seq_len, with_next, as_stored, .. } = self;
        format!("{}, seq_len={seq_len}, with_next={with_next}, as_stored={as_stored}", tokens.identity)
    }
    fn check(&self) -> Result<()> {
        if self.seq_len == 0 {
            return Err(Error::config("seq_len is 0").help("a crop has 1 id or more"));
        }
        let longest = self.tokens.files.iter().map(TokenFile::len).max().unwrap_or(0);
        if longest < self.width() as u64 {
            return Err(Error::config(format!(
                "a crop needs {} ids, but the longest file has {longest}",
                self.width()
            )));
        }
        Ok(())
    }
}

/// A stored crop.
struct Stored<'a> {
    file: &'a TokenFile,
    from: u64,
    /// Bytes of the crop, if the file is mapped.
    here: Option<&'a [u8]>,
}

impl Stored<'_> {
    /// Returns the number of crops of this length to prefetch ahead.
    fn ahead(&self) -> usize {
        AHEAD.checked_div(self.here.map_or(0, <[u8]>::len)).unwrap_or(1).clamp(1, MOST_AHEAD)
    }

    #[inline]
    fn read_into(&self, out: &mut [i32]) -> Result<()> {
        match self.here {
            Some(bytes) => self.file.widen(self.from, bytes, out),
            None => self.file.read_into(self.from, out),
        }
    }
}
