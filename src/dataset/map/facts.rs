//! Facts that a source declares of itself.

/// Facts of a source that hold as long as it is open: see [`RandomAccess::facts`](super::RandomAccess::facts).
///
/// ```
/// use gristmill::dataset::map::SourceFacts;
/// let facts = SourceFacts { reads_together: true, ..SourceFacts::new("gradients", "1000 images of 28x28") };
/// # assert!(!facts.reads_far);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// The name of the stage: `jsonl`, `parquet`.
    pub name: &'static str,
    /// The mark that tells this data from other data: file names, sizes, a hash of the index. A checkpoint is refused where it differs.
    pub identity: String,
    /// Whether it is one of the crate's own: see [`Stage::is_native`](crate::Stage::is_native).
    pub is_native: bool,
    /// Whether [`read_stacked`](super::RandomAccess::read_stacked) is worth asking: see [`Stage::has_columns`](crate::Stage::has_columns).
    pub has_columns: bool,
    /// Whether [`read_many`](super::RandomAccess::read_many) is worth waiting for: see [`Stage::reads_together`](crate::Stage::reads_together).
    pub reads_together: bool,
    /// Whether that is because records come from a store: see [`Stage::reads_far`](crate::Stage::reads_far).
    pub reads_far: bool,
    /// Whether its records are views of mapped memory: how long one is costs no reading of it, so that hosts plan by that.
    pub is_mapped: bool,
    /// Bytes that it holds in memory, where it counts them.
    pub memory_bytes: Option<u64>,
}

impl SourceFacts {
    /// Facts of a source that reads its records one by one, in the user's own code.
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
