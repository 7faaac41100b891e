//! Words in which a stage says what memory it needs.

/// Memory that a stage may hold while it runs, besides the element it works on.
///
/// Mostly that is elements, and how large those are only the data tells: so a stage counts them, and
/// [`estimate`](super::estimate) multiplies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that are known at once: an index, a cache of fixed size.
    pub bytes: u64,
    /// Elements of its parents.
    pub inputs: Held,
    /// Elements of its own: being made, or made and not given out.
    pub outputs: Held,
    /// Whether each thread that evaluates the stage holds as much.
    pub per_thread: bool,
}

/// Number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Held {
    /// At most so many.
    AtMost(u64),
    /// As many as one element becomes.
    Pieces,
    /// All that there are in one pass.
    All,
}

impl Held {
    /// No element.
    pub const NONE: Self = Self::AtMost(0);
}

impl Default for Held {
    fn default() -> Self {
        Self::NONE
    }
}

impl Memory {
    /// Nothing, which is more than not saying it.
    pub const NOTHING: Self = Self { bytes: 0, inputs: Held::NONE, outputs: Held::NONE, per_thread: false };

    /// Makes an amount of so many bytes, whatever the elements are.
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes, ..Self::NOTHING }
    }

    /// Elements of its parents, and of its own.
    pub fn elements(inputs: Held, outputs: Held) -> Self {
        Self { inputs, outputs, ..Self::NOTHING }
    }

    /// The same, held by each thread that evaluates the stage.
    #[must_use]
    pub fn per_thread(self) -> Self {
        Self { per_thread: true, ..self }
    }
}

/// The size of the first elements of a dataset: see [`Stage::sample`](super::Stage::sample).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Number of elements that were read: at most [`MOST`](Self::MOST), and fewer where they are slow.
    pub elements: u64,
    /// Their payload.
    pub bytes: u64,
    /// Number of elements that one became in the stages that make many of one; 1 if none does.
    pub fan_out: f64,
    /// The most elements in one pass, where it is known: of random access, or of a stream that was read to its end.
    pub pass: Option<u64>,
}

impl Sample {
    /// The most elements that are read for one.
    pub const MOST: u64 = 64;
}
