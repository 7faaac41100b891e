//! Facts that a source declares.

/// Facts of a source, constant while the source is open: see [`RandomAccess::facts`](super::RandomAccess::facts).
///
/// ```
/// use gristmill::dataset::map::SourceFacts;
/// let facts = SourceFacts { reads_together: true, ..SourceFacts::new("gradients", "1000 images of 28x28") };
/// # assert!(!facts.reads_far);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// Name of the stage: `jsonl`, `parquet`.
    pub name: &'static str,
    /// Text that identifies the data: file names, sizes, a hash of the index. A checkpoint is refused if the identity
    /// differs.
    pub identity: String,
    /// Whether the source is the crate's own code: see [`Node::is_native`](crate::dataset::Node::is_native).
    pub is_native: bool,
    /// Whether [`read_stacked`](super::RandomAccess::read_stacked) may return a batch: see
    /// [`Node::has_columns`](crate::dataset::Node::has_columns).
    pub has_columns: bool,
    /// Whether [`read_many`](super::RandomAccess::read_many) takes less time than single reads: see
    /// [`Reads::together`](crate::dataset::Reads::together).
    pub reads_together: bool,
    /// Whether the source reads from an object store: see [`Reads::far`](crate::dataset::Reads::far).
    pub reads_far: bool,
    /// Whether records are views of mapped memory. Finding the length of such a record does not read it, so hosts plan
    /// by length.
    pub is_mapped: bool,
    /// Bytes that the source holds in memory, if counted.
    pub memory_bytes: Option<u64>,
}

impl SourceFacts {
    /// Makes the facts of a custom source that reads its records one by one.
    pub fn new(name: &'static str, identity: impl Into<String>) -> Self {
        Self {
            name,
            identity: identity.into(),
            is_native: false,
            has_columns: false,
            reads_together: false,
            reads_far: false,
            is_mapped: false,
            memory_bytes: None,
        }
    }
}
