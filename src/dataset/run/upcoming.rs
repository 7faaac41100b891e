//! Indices that will be asked for next, so that what lies far away can be on its way by then.

use crate::dataset::stage::Stage;
use crate::sync::Locked;
use std::sync::{Mutex, PoisonError, Weak};

/// Records of a source far away that are told of ahead: of 2 KiB each that is as much as is fetched ahead.
pub(crate) const FURTHEST: u64 = 1 << 16;

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
    traced: Option<&'a Traced>,
}

/// The records that a question has come to, each with the [place](crate::Stage::address) of its source.
type Traced = Mutex<Vec<(usize, Record)>>;

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
        Self { indices, wanted, in_blocks: false, traced: None }
    }

    /// The records that `ask` comes to from `index` on; nothing is read.
    pub(in crate::dataset) fn trace(index: u64, ask: impl FnOnce(Upcoming<'_>)) -> Vec<Record> {
        Self::follow(index, ask).into_iter().map(|(_, record)| record).collect()
    }

    /// The same, each with the [place](crate::Stage::address) of its source.
    pub(in crate::dataset) fn follow(index: u64, ask: impl FnOnce(Upcoming<'_>)) -> Vec<(usize, Record)> {
        let traced = Traced::default();
        ask(Upcoming { indices: &[index], wanted: &Weak::new(), in_blocks: false, traced: Some(&traced) });
        traced.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that these are records of `source`, whose length is `len`; whether that was all that is asked.
    pub(in crate::dataset) fn reaches(&self, source: &dyn Stage, len: u64) -> bool {
        let Some(traced) = self.traced else { return false };
        let (name, address) = (source.name(), source.address());
        let record = |&index: &u64| Some((address, Record { source: name, index: index.checked_rem(len)? }));
        traced.locked().extend(self.indices.iter().filter_map(record));
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

    /// The same, where all elements of a few [blocks](crate::dataset::Blocks) of the source are asked for before those of others: what
    /// was decoded is then kept whole.
    #[must_use]
    pub fn in_blocks(&self) -> Self {
        Upcoming { in_blocks: true, ..*self }
    }

    /// Whether [all elements of a few blocks](Self::in_blocks) are asked for before those of others.
    #[cfg_attr(
        not(any(feature = "array_record", feature = "arrow", feature = "parquet", feature = "mds")),
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
