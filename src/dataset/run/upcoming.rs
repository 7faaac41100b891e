//! Indices that will be asked for next, so that what lies far away can be on its way by then.

use crate::dataset::stage::Stage;
use crate::sync::Locked;
use std::sync::{Mutex, PoisonError, Weak};

/// Records of a source far away that are told of ahead: of 2 KiB each that is as much as is fetched ahead.
pub(crate) const FURTHEST: u64 = 1 << 16;

/// Brings the records of `indices`, which are read now, into memory, if their files are mapped. The system then reads nothing around them.
pub(crate) fn bring(stage: &dyn Stage, indices: &[u64]) {
    stage.will_read(Upcoming { apart: true, ..Upcoming::new(indices, &Weak::new()) });
}

/// Indices that will be asked for, in about this order, unless whoever says so changes its mind: see
/// [`Stage::will_read`](crate::Stage::will_read).
///
/// The same way tells which record of which source an index stands for: see [`record_of`](crate::dataset::record_of).
#[derive(Clone, Copy, Debug)]
pub struct Upcoming<'a> {
    indices: &'a [u64],
    wanted: &'a Weak<()>,
    /// Whether whole blocks of the source are asked for, a few at a time.
    in_blocks: bool,
    /// Whether they are read now, and few of those around them are.
    apart: bool,
    traced: Option<&'a Traced>,
    /// Which of the indices of the first question these are; `None` for all of them, in order.
    places: Option<&'a [u32]>,
}

/// The records that a question has come to, each with the [place](crate::Stage::address) of its source, and the number of the index
/// that led to it.
type Traced = Mutex<Vec<Found>>;

/// A record that a question has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dataset) struct Found {
    /// The number of the index that led to it, among those of the question.
    pub(in crate::dataset) place: u32,
    /// The place of its source in memory.
    pub(in crate::dataset) source: usize,
    pub(in crate::dataset) name: &'static str,
    pub(in crate::dataset) record: u64,
}

/// A record of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The name of the source: `jsonl`.
    pub source: &'static str,
    /// Its index there, from 0 on, over all files of the source.
    pub index: u64,
}

impl Record {
    /// Record `index` of the source of this name.
    pub fn new(source: &'static str, index: u64) -> Self {
        Self { source, index }
    }

    /// Its index in a dataset that reads the source of this name, of `len` records, for the `epoch`th time; `None` if it has no such record.
    pub(in crate::dataset) fn index_in(&self, source: &str, len: u64, epoch: u64) -> Option<u64> {
        let is_there = self.source == source && self.index < len;
        epoch.checked_mul(len)?.checked_add(self.index).filter(|_| is_there)
    }
}

impl<'a> Upcoming<'a> {
    /// Indices that are asked for until `wanted` is dead.
    pub(crate) fn new(indices: &'a [u64], wanted: &'a Weak<()>) -> Self {
        Self { indices, wanted, in_blocks: false, apart: false, traced: None, places: None }
    }

    /// The records that `ask` comes to from `index` on; nothing is read.
    pub(in crate::dataset) fn trace(index: u64, ask: impl FnOnce(Upcoming<'_>)) -> Vec<Record> {
        let found = Self::follow(&[index], ask);
        found.into_iter().map(|found| Record { source: found.name, index: found.record }).collect()
    }

    /// The same from each of `indices` on, in any order.
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

    /// Notes that these are records of `source`, whose length is `len`; whether that was all that is asked.
    pub(in crate::dataset) fn reaches(&self, source: &dyn Stage, len: u64) -> bool {
        let Some(traced) = self.traced else { return false };
        let (name, source) = (source.name(), source.address());
        let found = |(at, &index): (usize, &u64)| {
            let place = self.places.map_or(Some(at as u32), |places| places.get(at).copied())?;
            Some(Found { place, source, name, record: index.checked_rem(len)? })
        };
        traced.locked().extend(self.indices.iter().enumerate().filter_map(found));
        true
    }

    /// The indices.
    pub fn indices(&self) -> &'a [u64] {
        self.indices
    }

    /// The same, of the stage or source below, where these `indices` are asked for.
    #[must_use]
    pub fn at<'b>(&'b self, indices: &'b [u64]) -> Upcoming<'b> {
        Upcoming { indices, ..*self }
    }

    /// The same of those indices alone that have these `places` among [all](Self::indices), with the `indices` that are asked for there.
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

    /// Whether records are [followed](Self::follow), and nothing is read.
    pub(in crate::dataset) fn is_followed(&self) -> bool {
        self.traced.is_some()
    }

    /// The same, where all elements of a few [blocks](crate::dataset::Blocks) of the source are asked for before those of others: what
    /// was decoded is then kept whole.
    #[must_use]
    pub fn in_blocks(&self) -> Self {
        Upcoming { in_blocks: true, ..*self }
    }

    /// Whether they are read now, and few of those around them are: see [`bring`].
    pub(crate) fn is_apart(&self) -> bool {
        self.apart
    }

    /// Whether [all elements of a few blocks](Self::in_blocks) are asked for before those of others.
    #[cfg_attr(
        not(any(feature = "array_record", feature = "columns", feature = "mds")),
        expect(dead_code, reason = "sources that decode blocks are features")
    )]
    pub(crate) fn is_in_blocks(&self) -> bool {
        self.in_blocks
    }

    /// Dead once nobody means to ask for them any more.
    #[cfg_attr(
        not(any(
            feature = "store",
            feature = "array_record",
            feature = "arrow",
            feature = "parquet",
            feature = "mds"
        )),
        expect(dead_code, reason = "sources that look ahead are features")
    )]
    pub(crate) fn wanted(&self) -> &Weak<()> {
        self.wanted
    }
}
