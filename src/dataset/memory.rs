//! Declarations of the memory that a stage needs.

/// Memory that a stage may hold while it runs, besides the element in progress.
///
/// Most of it is elements, whose size depends on the data. A stage therefore declares numbers of elements, and
/// [`estimate`](super::estimate) multiplies by their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes known in advance: an index, a cache of fixed size.
    pub bytes: u64,
    /// Elements of the parents.
    pub inputs: Held,
    /// Elements of this stage: being made, or made and not yet handed out.
    pub outputs: Held,
    /// Whether each thread that evaluates the stage holds this amount.
    pub per_thread: bool,
}

/// Number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Held {
    /// At most this number.
    AtMost(u64),
    /// The number of elements that a single element becomes.
    Pieces,
    /// All elements in a pass.
    All,
}

impl Held {
    /// No elements.
    pub const NONE: Self = Self::AtMost(0);
}

default_as!(Held, Self::NONE);

impl Memory {
    /// A declaration of no memory, as opposed to no declaration.
    pub const NOTHING: Self = Self { bytes: 0, inputs: Held::NONE, outputs: Held::NONE, per_thread: false };

    /// Declares a number of bytes, independent of elements.
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes, ..Self::NOTHING }
    }

    /// Declares elements of the parents and elements of the stage.
    pub fn elements(inputs: Held, outputs: Held) -> Self {
        Self { inputs, outputs, ..Self::NOTHING }
    }

    /// Declares that each thread that evaluates the stage holds this amount.
    #[must_use]
    pub fn per_thread(self) -> Self {
        Self { per_thread: true, ..self }
    }
}

/// Sizes of the first elements of a dataset: see [`estimate`](super::estimate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of elements read: at most [`MOST`](Self::MOST), and fewer if they are slow.
    pub elements: u64,
    /// Payload bytes of these elements.
    pub bytes: u64,
    /// Mean number of elements that stages with fan-out make of each element; 1 without such stages.
    pub fan_out: f64,
    /// Maximum number of elements per pass, if known: for random access, or a stream that was read to its end.
    pub pass: Option<u64>,
}

impl Sample {
    /// Maximum number of elements in a sample.
    pub const MOST: u64 = 64;
}
