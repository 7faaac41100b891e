//! Files whose rows lie in blocks, which are decoded to columns: what Parquet and Arrow IPC share.

use std::collections::HashSet;
use std::fmt;
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

/// A format of such files. Its value is the files that are open.
pub(crate) trait Blocked: Send + Sync {
    /// The name of the source.
    const NAME: &'static str;
    /// The word for its blocks.
    const BLOCKS: &'static str;

    /// Contents of the files, in their order.
    fn contents(&self) -> impl ExactSizeIterator<Item = &Content>;

    /// The content of a file.
    fn content(&self, file: usize) -> &Content;

    /// Counts the rows of each block, of one file after the other.
    fn rows(&self) -> impl ExactSizeIterator<Item = u64>;

    /// Counts the spans that all blocks are decoded in.
    fn spans(&self) -> u64;

    /// Bytes that all blocks are decoded to.
    fn decoded_bytes(&self) -> u64;

    /// Finds the place of a row of a block.
    fn place(&self, block: usize, row: u64) -> Place;

    /// A span, decoded: all of it, or these rows at least, if `units` have them.
    fn span(&self, units: &Units<Span>, key: Key, rows: &[Run]) -> Result<Held<Span>>;

    /// The path of the file of a span.
    fn path(&self, key: Key) -> &Path;

    /// Finds the file of a span, and the bytes of it that are read.
    fn pages(&self, key: Key) -> (usize, impl IntoIterator<Item = Range<u64>>);

    /// Names the options that shape the data besides the columns, to follow the identity of the files.
    fn params(&self) -> String {
        String::new()
    }
}

/// Files of such a format, and what is kept of them decoded.
pub(crate) struct BlockFiles<F> {
    pub(in crate::source) format: F,
    /// Over the blocks.
    firsts: Firsts,
    pub(in crate::source) columns: Vec<Name>,
    pub(in crate::source) units: Units<Span>,
    /// Whether some files lie far away.
    far: bool,
    identity: String,
}

impl<F: Blocked> BlockFiles<F> {
    /// Files of which these columns are read, and up to `cache_bytes` kept decoded.
    pub(crate) fn new(format: F, columns: Vec<Name>, ids: &[FileId], cache_bytes: usize) -> Result<Self> {
        let firsts = Firsts::of(format.rows())?;
        let identity = format!("{}, columns=[{}]{}", files::identity(ids), columns.join(", "), format.params());
        let units = Units::new(cache_bytes, firsts.len(), format.decoded_bytes());
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

    /// The pages of each span, once for all of its rows.
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
            memory_bytes: Some(self.units.budget() as u64),
            ..SourceFacts::new(F::NAME, self.identity.clone())
        }
    }
}

impl<F: Blocked> fmt::Debug for BlockFiles<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, files) = (self.format.rows().len(), self.format.contents().len());
        write!(f, "{} rows, {blocks} {}, {files} files", self.len(), F::BLOCKS)
    }
}

/// [`BlockFiles`] as a source with a public name.
macro_rules! block_source {
    ($source:ident) => {
        impl $source {
            /// Names of the columns that are read, in order.
            pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
                self.0.columns.iter().map($crate::element::Name::as_str)
            }

            /// The columns of all files, with their types.
            #[cfg(feature = "cli")]
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
