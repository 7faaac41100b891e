//! Contents of a global batch, without its rows.

/// Contents of a planned batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchContents {
    pub(crate) rows: u64,
    /// Cells of all rows, with rows of padding; 0 if rows are not packed.
    pub(crate) cells: u64,
    /// Documents of which the batch has the first of several parts.
    pub(crate) split: u64,
    /// Cost of each row; empty if rows are not packed.
    pub(crate) costs: Vec<u64>,
    /// Contents by the numbers of the sources.
    pub(crate) sources: Vec<SourceContents>,
    /// For each row, the number of the source of all its elements; `None` for elements of several sources.
    pub(crate) origins: Vec<Option<u32>>,
}

/// Contents of a planned batch that come from one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceContents {
    /// Documents that begin in the batch.
    pub(crate) documents: u64,
    pub(crate) tokens: u64,
    /// The largest number of records that the pass had read at any document of the batch.
    pub(crate) reads: u64,
}
