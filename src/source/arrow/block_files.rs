//! Files whose rows are stored in blocks and decoded to columns: the shared part of Parquet and Arrow IPC.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use super::spans::{Place, Span, Spans, rows_of_spans};
use crate::dataset::map::{Decoded, RandomAccess, Shuffled, SourceFacts};
use crate::dataset::{Blocks, Upcoming};
use crate::element::{Name, Run};
use crate::error::Result;
use crate::source::content::{self, Content};
use crate::source::files::{self, FileId};
use crate::source::firsts::Firsts;
use crate::source::units::{Held, Key, Units};

/// Format of such files. The implementing type holds the open files.
pub(crate) trait Blocked: Send + Sync {
    /// Name of the source.
    const NAME: &'static str;
    /// The format's word for its blocks.
    const BLOCKS: &'static str;

    /// Returns the contents of the files, in order.
    fn contents(&self) -> impl ExactSizeIterator<Item = &Content>;

    /// Returns the content of a file.
    fn content(&self, file: usize) -> &Content;

    /// Returns the number of rows of each block, file after file.
    fn rows(&self) -> impl ExactSizeIterator<Item = u64>;

    /// Returns the number of spans in which all blocks are decoded.
    fn spans(&self) -> u64;

    /// Returns the decoded size of all blocks, in bytes.
    fn decoded_bytes(&self) -> u64;

    /// Returns the place of a row of a block.
    fn place(&self, block: usize, row: u64) -> Place;

    /// Decodes a span, or returns it from `units`. The result has all rows of the span, or at least `rows`.
    fn span(&self, units: &Units<Span>, key: Key, rows: &[Run]) -> Result<Held<Span>>;

    /// Returns the path of a span's file.
    fn path(&self, key: Key) -> &Path;

    /// Returns the file of a span, and the ranges of bytes to read from the file.
    fn pages(&self, key: Key) -> (usize, impl IntoIterator<Item = Range<u64>>);

    /// Describes options other than the columns that affect the data, as part of the identity.
    fn params(&self) -> String {
        String::new()
    }
}

/// Files of a [`Blocked`] format, and a cache of decoded spans.
pub(crate) struct BlockFiles<F> {
    pub(in crate::source) format: F,
    /// First row of each block.
    firsts: Firsts,
    pub(in crate::source) columns: Vec<Name>,
    pub(in crate::source) units: Units<Span>,
    /// True if some files are in a remote store.
    far: bool,
    identity: String,
}

impl<F: Blocked> BlockFiles<F> {
    /// Opens files to read these columns, with a cache of `cache_bytes` for decoded spans.
    pub(crate) fn new(format: F, columns: Vec<Name>, ids: &[FileId], cache_bytes: usize) -> Result<Self> {
        let firsts = Firsts::of(format.rows())?;
        let identity = format!("{}, columns=[{}]{}", files::identity(ids), columns.join(", "), format.params());
        let units = Units::new(cache_bytes, firsts.len, format.decoded_bytes());
        let far = content::any_far(format.contents());
        Ok(Self { format, firsts, columns, units, far, identity })
    }
}

impl<F: Blocked> Spans for BlockFiles<F> {
    fn names(&self) -> &[Name] {
        &self.columns
    }

    fn find(&self, row: u64) -> Result<Place> {
        let (block, row) = self.firsts.find(row)?;
        Ok(self.format.place(block, row))
    }

    fn span(&self, key: Key, rows: &[Run]) -> Result<Held<Span>> {
        self.format.span(&self.units, key, rows)
    }

    fn note(&self, key: Key, rows: &mut dyn Iterator<Item = usize>) {
        self.units.note(key, rows);
    }

    fn path(&self, key: Key) -> Option<&Path> {
        Some(self.format.path(key))
    }
}

impl<F: Blocked> RandomAccess for BlockFiles<F> {
    rows_of_spans!();

    fn looks_ahead(&self) -> Option<u64> {
        Some(self.units.looks_ahead(self.far))
    }

    /// Announces the pages of each span once, for all of its rows.
    fn will_read(&self, next: Upcoming<'_>) {
        self.units.tell(next, |index| self.find(index).ok().map(|place| (place.key, place.row)));
        if !self.far {
            return;
        }
        let mut keys: Vec<Key> = next.indices().iter().filter_map(|&index| Some(self.find(index).ok()?.key)).collect();
        let mut told = HashSet::new();
        keys.dedup();
        keys.retain(|&key| told.insert(key));
        let pages = keys.into_iter().flat_map(|key| {
            let (file, pages) = self.format.pages(key);
            pages.into_iter().map(move |page| (file, page))
        });
        content::will_read(pages, next, |at| self.format.content(at));
    }

    fn take_decoded(&self) -> Option<Decoded> {
        self.units.take_decoded()
    }

    fn blocks(&self) -> Option<Blocks> {
        self.units.blocks(self.format.rows())
    }

    fn if_shuffled(&self) -> Option<Shuffled> {
        self.units.if_shuffled(self.format.spans())
    }

    fn files(&self) -> Vec<String> {
        files::identities(self.format.contents().enumerate().map(|(at, content)| content.id(self.format.path((at, 0)))))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            is_native: true,
            has_columns: true,
            reads_far: self.far,
            memory_bytes: Some(self.units.budget as u64),
            ..SourceFacts::new(F::NAME, self.identity.clone())
        }
    }
}

debug_as!(<F: Blocked> BlockFiles<F>, |self, f| {
    let (blocks, files) = (self.format.rows().len(), self.format.contents().len());
    write!(f, "{} rows, {blocks} {}, {files} files", self.len(), F::BLOCKS)
});

/// Implements a source with a public name as a wrapper of [`BlockFiles`].
macro_rules! block_source {
    ($source:ident) => {
        impl $source {
            /// Returns the names of the columns that are read, in order.
            pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
                self.0.columns.iter().map($crate::element::Name::as_str)
            }

            /// Returns the columns of all files, with their types.
            pub(crate) fn typed_columns(&self) -> &$crate::source::arrow::columns::Columns {
                &self.0.format.columns
            }
        }

        $crate::source::numbered::named_source!($source of $crate::element::Element {
            fn read_stacked(&self, indices: &[u64]) -> $crate::dataset::map::GetStacked<$crate::element::Element> {
                self.0.read_stacked(indices)
            }
            fn read_ragged(
                &self,
                indices: &[u64],
                names: &[$crate::element::Name],
            ) -> Option<$crate::element::Ragged> {
                self.0.read_ragged(indices, names)
            }
        });
    };
}
pub(in super::super) use block_source;
