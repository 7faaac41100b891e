//! The facts of a stage, as a value.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use super::blocks::Blocks;
use super::map::Shuffled;
use super::memory::{Memory, Sample};
use super::run::upcoming::{Record, Upcoming};
use super::stage::{Role, Stage};
use crate::error::Result;

/// Facts of a [`Stage`], apart from its parents. All walks over a pipeline read these facts.
///
/// Complete a node from [`new`](Self::new): `Node { describe: self, ..Node::new("every_nth", Role::Stateful) }`. Later
/// versions add fields. Walks build nodes often, so building a node must not format, allocate or compute.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    /// Name of the method that makes the stage: `shuffle`. Part of the fingerprint.
    pub name: &'static str,
    /// Kind of change to the stream.
    pub role: Role,
    /// The arguments, their check, and remarks. A [`Display`](fmt::Display) value is the text of the arguments.
    pub describe: &'a dyn Describe,
    /// Seed that the stage sets for later stages, if the stage is `seed`.
    pub seed_root: Option<u32>,
    /// Division of the stage's work between threads.
    pub work: Work,
    /// Whether the stage's own work calls no function and no source of the user. The user cannot observe when such
    /// work happens, so it may happen early.
    pub is_native: bool,
    /// Whether the stage makes batches without making elements; see
    /// [`BulkRead::get_stacked`](super::map::BulkRead::get_stacked). True for sources with columns, and for elementwise
    /// stages that also work on whole batches.
    pub has_columns: bool,
    /// Whether the stage yields an element for every index, even if its parents drop elements.
    pub has_every_index: bool,
    /// Reasons to read many elements at once.
    pub reads: Reads,
    /// Relation of the stage's indices to those of its parents.
    pub indices: Indices<'a>,
    /// Records and files, if the stage is a source that has either.
    pub source: Option<&'a dyn Records>,
    /// Memory that the stage may hold while it runs, besides one element; `None` if unknown.
    pub memory: Option<Memory>,
    /// Whether the stage is the last that an executor evaluates before the border. The process that reads the stream
    /// evaluates all later stages. Changes nothing else.
    #[doc(hidden)]
    pub is_cut: bool,
    /// Check that elements can leave worker processes that run the parents of this stage. `None` checks each parent.
    #[doc(hidden)]
    pub crossing: Option<fn(&dyn Stage) -> Result<()>>,
    /// Reads the first elements; `None` for a typed dataset. Boxing a dataset sets this field.
    #[doc(hidden)]
    pub sample: Option<&'a dyn Sampled>,
}

impl Node<'_> {
    /// Returns the node of a stage with this name and role, and without arguments or other facts.
    ///
    /// Its elements are those of all parents at an equal index, or dropped, if the role is
    /// [`Elementwise`](Role::Elementwise) or [`MayDrop`](Role::MayDrop).
    pub fn new(name: &'static str, role: Role) -> Self {
        let keeps = matches!(role, Role::Elementwise | Role::MayDrop);
        Self {
            name,
            role,
            describe: &"",
            seed_root: None,
            work: Work::AsNeighbours,
            is_native: false,
            has_columns: false,
            has_every_index: false,
            reads: Reads::default(),
            indices: if keeps { Indices::Kept } else { Indices::Unknown },
            source: None,
            memory: None,
            is_cut: false,
            crossing: None,
            sample: None,
        }
    }
}

debug_as!(Node<'_>, |self, f| {
    f.debug_struct("Node").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
});

/// Division of a stage's work between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// On the threads of the stages around this stage.
    AsNeighbours,
    /// The border between map datasets and streams: many threads before it, one thread after it.
    Border,
    /// A function of single elements of a stream. Threads evaluate it in chunks.
    Chunks,
}

/// Reasons to read many elements at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Whether reading many elements at once takes less time than one by one. Executors then read a batch of elements
    /// at once, however long that takes.
    pub together: bool,
    /// Whether the stage mostly waits for an object store. A chunk may then take several round trips.
    pub far: bool,
}

/// Relation of a stage's indices to the indices of its parents.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Indices<'a> {
    /// Unknown: a stream that is not elementwise.
    Unknown,
    /// Each element is made of the elements of all parents at an equal index, or dropped.
    Kept,
    /// Each element is made of the only parent's element at an equal index, independent of the index.
    ByElement,
    /// Elements come from other indices.
    Moved(&'a dyn Moves),
}

debug_as!(Indices<'_>, |self, f| {
    f.write_str(match self {
        Self::Unknown => "Unknown",
        Self::Kept => "Kept",
        Self::ByElement => "ByElement",
        Self::Moved(_) => "Moved",
    })
});

/// Texts and checks of a stage, which walks request rarely.
///
/// Any [`Display`](fmt::Display) value describes a stage without a check: its text is the stage's arguments.
pub trait Describe {
    /// Returns the arguments that shape the data, such as `seed=42`; empty if there are none.
    ///
    /// They are part of the fingerprint, and must contain every argument that changes the data, except closures, which
    /// have no lasting name.
    fn params(&self) -> String {
        String::new()
    }

    /// Describes the quality of the order for `explain`, if the order is not a shuffle of everything.
    fn mixing(&self) -> Option<String> {
        None
    }

    /// Returns the names of the parents, if the stage is a mix and counts its components in the report.
    #[doc(hidden)]
    fn components(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns a remark for the report, with the reason, if the stage is slower than possible or often misused.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Checks the stage's own arguments. Called before the first element is read.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the value and the limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl<T: fmt::Display> Describe for T {
    fn params(&self) -> String {
        self.to_string()
    }
}

/// Movement of elements to other indices: see [`Indices::Moved`].
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait Moves {
    /// Returns the number of elements to announce ahead by [`will_read`](Self::will_read); `None` if no source uses it.
    /// `parents` is the largest such number of the parents.
    fn looks_ahead(&self, parents: Option<u64>) -> Option<u64> {
        parents
    }

    /// Announces the next elements to the parents, at their indices. Remote sources then prefetch them, and sources that
    /// decode many records at once decode each block once. Has no other effect: a wrong announcement only wastes a
    /// fetch or memory.
    ///
    /// Called if a source [looks ahead](Self::looks_ahead), and by [`record_of`](super::record_of).
    fn will_read(&self, next: Upcoming<'_>);

    /// Returns the index of the element made of `record` in read number `epoch` of the source, from 0; `None` if it is
    /// left out or unknown. Inverse of [`will_read`](Self::will_read), for [`index_of`](super::index_of).
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        None
    }

    /// Returns the index of the element that is made of element `index` of parent number `parent`.
    #[doc(hidden)]
    fn comes_to(&self, parent: usize, index: u64) -> Comes {
        let _ = (parent, index);
        Comes::Unknown
    }

    /// Returns an index at or before all elements that are made of elements of parent number `parent` from `index` on, if one
    /// is known.
    #[doc(hidden)]
    fn lower(&self, parent: usize, index: u64) -> Option<u64> {
        if let Comes::At(index) = self.comes_to(parent, index) { Some(index) } else { None }
    }

    /// Returns the lengths of the first epochs, if each epoch has the elements of the first. [`comes_to`](Self::comes_to) then
    /// returns indices of the first epoch.
    #[doc(hidden)]
    fn period(&self) -> Option<Period> {
        None
    }

    /// Returns the runs of elements that the source fetches or decodes together; `None` if elements are not in the
    /// source's order. Orders of blocks move each run as a unit.
    fn blocks(&self) -> Option<Blocks> {
        None
    }

    /// Returns the parent's indices for `indices`, if other processes cannot compute them: see `Order::listed`.
    #[doc(hidden)]
    fn listed(&self, indices: std::ops::Range<u64>) -> Option<Vec<u64>> {
        None
    }
}

/// The index of an element that is made of an element of a parent.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comes {
    /// At this index alone.
    At(u64),
    /// At no index.
    Never,
    /// At unknown indices, or at several.
    Unknown,
}

/// The first epochs of a stage each of whose epochs equals the first.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Number of elements of the parent that are read.
    pub parent: u64,
    /// Length of an epoch.
    pub len: u64,
}

impl From<Option<u64>> for Comes {
    fn from(index: Option<u64>) -> Self {
        index.map_or(Self::Never, Self::At)
    }
}

/// Records and files of a source.
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait Records {
    /// Returns the number of records, if index `i` of the source is record `i` modulo this number.
    fn records(&self) -> Option<u64> {
        None
    }

    /// Returns the stored size of a record in bytes, if known.
    fn record_bytes(&self, record: u64) -> Option<u64> {
        None
    }

    /// Returns the place of a record for messages, if known.
    fn record_in_words(&self, record: u64) -> Option<String> {
        None
    }

    /// Returns the file of a record and the record's number in the file, if known.
    fn record_place(&self, record: u64) -> Option<(PathBuf, u64)> {
        None
    }

    /// Returns the bytes of a record in its file, if known without reading.
    fn record_range(&self, record: u64) -> Option<Range<u64>> {
        None
    }

    /// Returns true if records are views of mapped memory: see `SourceFacts::is_mapped`.
    fn is_mapped(&self) -> bool {
        false
    }

    /// Returns name, size and hash of each file, in order and independent of the machine. Examines the files. Empty if
    /// the source has no files, or keeps no account of them.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the cost of random order, if the source would decode records repeatedly.
    #[doc(hidden)]
    fn if_shuffled(&self) -> Option<Shuffled> {
        None
    }
}

/// Returns the address of a source, which distinguishes sources of equal name.
pub(super) fn address<R: Records + ?Sized>(source: &R) -> usize {
    std::ptr::from_ref(source).cast::<()>() as usize
}

/// A dataset whose first elements can be measured.
#[doc(hidden)]
pub trait Sampled {
    /// Reads the first elements and returns their size.
    fn sample(&self) -> Option<Sample>;
}
