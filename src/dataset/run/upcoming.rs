//! Indices that are requested next, so that sources can fetch remote records in time.

use crate::dataset::node::{Records, address};
use crate::dataset::stage::Stage;
use crate::sync::Locked;
use std::sync::{Mutex, PoisonError, Weak};

/// Maximum number of records that are announced to a remote source. With records of 2 KiB, this limit equals the
/// bytes fetched ahead.
pub(crate) const FURTHEST: u64 = 1 << 16;

/// Loads the records of `indices`, which are read next, into memory, if their files are mapped. The system then reads
/// no neighbouring bytes.
pub(crate) fn bring(stage: &dyn Stage, indices: &[u64]) {
    stage.will_read(Upcoming { apart: true, ..Upcoming::new(indices, &Weak::new()) });
}

/// Indices that are requested next, approximately in this order, unless the pass moves: see
/// [`Moves::will_read`](crate::dataset::Moves::will_read).
///
/// The records of an index are found by the same calls: see [`record_of`](crate::dataset::record_of).
#[derive(Clone, Copy, Debug)]
pub struct Upcoming<'a> {
    indices: &'a [u64],
    wanted: &'a Weak<()>,
    /// True if whole blocks of the source are requested, a few blocks at a time.
    in_blocks: bool,
    /// True if the indices are read now, and few of their neighbours are.
    apart: bool,
    traced: Option<&'a Traced>,
    /// For each index, its number among the indices of the initial call. `None` if these are all of them, in order.
    places: Option<&'a [u32]>,
}

/// The records that a trace found, each with the [`address`] of its source and the number of its index.
type Traced = Mutex<Vec<Found>>;

/// A record that a trace found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dataset) struct Found {
    /// The number of the index that led to the record, among the traced indices.
    pub(in crate::dataset) place: u32,
    /// The memory address of its source.
    pub(in crate::dataset) source: usize,
    pub(in crate::dataset) name: &'static str,
    pub(in crate::dataset) record: u64,
    /// The number of complete reads of the source before this read.
    pub(in crate::dataset) epoch: u64,
}

/// A record of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The name of the source: `jsonl`.
    pub source: &'static str,
    /// The index of the record, from 0, over all files of the source.
    pub index: u64,
}

impl Record {
    /// Creates the reference to record `index` of the source named `source`.
    pub fn new(source: &'static str, index: u64) -> Self {
        Self { source, index }
    }

    /// Returns the record's index in a dataset that reads the source, of `len` records, for the `epoch`th time. Returns
    /// `None` if the source has another name or no such record.
    pub(in crate::dataset) fn index_in(&self, source: &str, len: u64, epoch: u64) -> Option<u64> {
        let is_there = self.source == source && self.index < len;
        epoch.checked_mul(len)?.checked_add(self.index).filter(|_| is_there)
    }
}

impl<'a> Upcoming<'a> {
    /// Creates an announcement of indices that are requested until `wanted` is dropped.
    pub(crate) fn new(indices: &'a [u64], wanted: &'a Weak<()>) -> Self {
        Self { indices, wanted, in_blocks: false, apart: false, traced: None, places: None }
    }

    /// Returns the records that `ask` reaches from `index`. Reads nothing.
    pub(in crate::dataset) fn trace(index: u64, ask: impl FnOnce(Upcoming<'_>)) -> Vec<Record> {
        let found = Self::follow(&[index], ask);
        found.into_iter().map(|found| Record { source: found.name, index: found.record }).collect()
    }

    /// Returns the records that `ask` reaches from each of `indices`, in any order. Reads nothing.
    pub(in crate::dataset) fn follow(indices: &[u64], ask: impl FnOnce(Upcoming<'_>)) -> Vec<Found> {
        let traced = Traced::default();
        ask(Upcoming {
            indices,
            wanted: &Weak::new(),
            in_blocks: false,
            apart: false,
            traced: Some(&traced),
            places: None,
        });
        traced.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// During a trace, adds the records of `source`, which has this name and `len` records. Returns true if there is
    /// nothing else to do.
    pub(in crate::dataset) fn reaches(&self, name: &'static str, source: &impl Records, len: u64) -> bool {
        let Some(traced) = self.traced else { return false };
        let source = address(source);
        let found = |(at, &index): (usize, &u64)| {
            let place = self.places.map_or(Some(at as u32), |places| places.get(at).copied())?;
            let (epoch, record) = (index.checked_div(len)?, index.checked_rem(len)?);
            Some(Found { place, source, name, record, epoch })
        };
        traced.locked().extend(self.indices.iter().enumerate().filter_map(found));
        true
    }

    /// Returns the indices.
    pub fn indices(&self) -> &'a [u64] {
        self.indices
    }

    /// Returns the announcement for the parent or source from which these `indices` are requested.
    #[must_use]
    pub fn at<'b>(&'b self, indices: &'b [u64]) -> Upcoming<'b> {
        Upcoming { indices, ..*self }
    }

    /// Calls `ask` with the announcement of some of the indices. `places` are their positions in
    /// [`indices`](Self::indices), and `indices` are the parent's indices for them.
    pub(in crate::dataset) fn some<R>(
        &self,
        places: &[u32],
        indices: &[u64],
        ask: impl FnOnce(Upcoming<'_>) -> R,
    ) -> R {
        let before = self.places;
        let first: Vec<u32> = match before {
            Some(before) => places.iter().filter_map(|&place| before.get(place as usize).copied()).collect(),
            None => Vec::new(),
        };
        let places = if before.is_some() { &first } else { places };
        ask(Upcoming {
            indices,
            wanted: self.wanted,
            in_blocks: self.in_blocks,
            apart: self.apart,
            traced: self.traced,
            places: Some(places),
        })
    }

    /// Returns true during a [trace](Self::follow), which reads nothing.
    pub(in crate::dataset) fn is_followed(&self) -> bool {
        self.traced.is_some()
    }

    /// Returns the announcement with a promise: all elements of a few [blocks](crate::dataset::Blocks) of the source
    /// are requested before other blocks. Sources then keep decoded blocks whole.
    #[must_use]
    pub fn in_blocks(&self) -> Self {
        Upcoming { in_blocks: true, ..*self }
    }

    /// Returns true if the indices are read now, and few of their neighbours are: see [`bring`].
    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// Returns true if [all elements of a few blocks](Self::in_blocks) are requested before other blocks.
    #[cfg_attr(not(feature = "formats"), allow(dead_code, reason = "sources that decode blocks are features"))]
    pub(crate) fn is_in_blocks(&self) -> bool {
        self.in_blocks
    }

    /// Returns a reference that expires when the indices are no longer needed.
    #[cfg_attr(not(feature = "formats"), allow(dead_code, reason = "sources that look ahead are features"))]
    pub(crate) fn wanted(&self) -> &Weak<()> {
        self.wanted
    }
}
