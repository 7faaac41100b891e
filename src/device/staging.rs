//! Staging: from a batch to the host memory of its transfers.

use std::sync::Arc;
use std::time::Duration;

use super::host::{ALIGNMENT, HostBytes};
use super::placement::{Placement, Shards};
use super::slots::SlotPool;
use crate::element::{Array, Batch, Name, Value};
use crate::error::{Error, Result};

/// An array of a batch, with its parts for the devices.
pub(super) struct Leaf<'a> {
    /// The path in the batch: `tokens`, or `left/tokens` in a tree.
    pub(super) name: Name,
    pub(super) array: &'a Array,
    pub(super) shards: Shards,
}

/// Returns the arrays of `batch` in order, with their parts.
///
/// # Errors
/// Fails like [`arrays`], and if an array cannot be split.
pub(super) fn leaves<'a>(batch: &'a Batch, placement: &Placement) -> Result<Vec<Leaf<'a>>> {
    let leaf = |(name, array): (Name, _)| Ok(Leaf { shards: placement.shards(&name, array)?, name, array });
    arrays(batch)?.into_iter().map(leaf).collect()
}

/// Returns the arrays of a batch with their names; inside a tree, names are paths such as `left/tokens`.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) that names a field that is not an array.
pub(crate) fn arrays(batch: &Batch) -> Result<Vec<(Name, &Array)>> {
    let mut found = Vec::with_capacity(batch.len());
    collect("", batch, &mut found)?;
    Ok(found)
}

fn collect<'a>(prefix: &str, batch: &'a Batch, found: &mut Vec<(Name, &'a Array)>) -> Result<()> {
    for (name, value) in batch.iter() {
        let name = if prefix.is_empty() { Name::new(name) } else { Name::from(format!("{prefix}/{name}")) };
        match value {
            Value::Array(array) => found.push((name, array)),
            Value::Tree(tree) => collect(&name, tree, found)?,
            other => {
                let text = format!("{name} is {}, and only arrays go to a device", other.kind());
                return Err(Error::data(text).help("remove the field from the batches before the transfer"));
            }
        }
    }
    Ok(())
}

/// The policy for copying batches before they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Staging {
    /// Reads arrays in place, on the heap or in a worker's slab, if all parts start at multiples of 64 bytes. Copies
    /// other arrays into a slot first.
    #[default]
    WhereNeeded,
    /// Copies all arrays into slots. Memory of the pipeline is free again at once, and slots can be pinned.
    Always,
}

/// Returns the source memory of each leaf and the number of copied bytes; `None` if no slot became free within
/// `patience`.
///
/// # Errors
/// Fails like [`SlotPool::take`].
pub(super) fn stage(
    leaves: &[Leaf<'_>],
    staging: Staging,
    slots: &mut SlotPool,
    patience: Duration,
) -> Result<Option<Staged>> {
    let plan = Plan::new(leaves, staging);
    if plan.len == 0 {
        let hosts = leaves.iter().map(|leaf| whole(leaf, HostBytes::shared(leaf.array.buffer()))).collect();
        return Ok(Some(Staged { hosts, copied: 0 }));
    }
    let Some(mut slot) = slots.take(plan.len, patience)? else { return Ok(None) };
    let mut copied = 0;
    for (leaf, start) in leaves.iter().zip(&plan.starts) {
        let Some(start) = *start else { continue };
        let (bytes, memory) = (leaf.array.bytes(), &mut slot.bytes_mut()[start..]);
        let stride = padded(leaf.shards.len);
        for (at, range) in leaf.shards.ranges().take(leaf.shards.distinct()).enumerate() {
            memory[at * stride..][..range.len()].copy_from_slice(&bytes[range]);
        }
        copied += bytes.len();
    }
    let slot = Arc::new(slot);
    let host = |(leaf, start): (&Leaf<'_>, &Option<usize>)| match *start {
        None => whole(leaf, HostBytes::shared(leaf.array.buffer())),
        Some(start) => {
            let (len, distinct) = (leaf.shards.len, leaf.shards.distinct());
            let of = |shard: usize| start + (shard % distinct) * padded(len);
            (0..leaf.shards.ranges().count()).map(|shard| HostBytes::slot(&slot, of(shard)..of(shard) + len)).collect()
        }
    };
    let hosts = leaves.iter().zip(&plan.starts).map(host).collect();
    Ok(Some(Staged { hosts, copied }))
}

/// The source memory of a batch.
pub(super) struct Staged {
    /// Memory of each leaf, and of each of its parts.
    pub(super) hosts: Vec<Vec<HostBytes>>,
    pub(super) copied: usize,
}

fn whole(leaf: &Leaf<'_>, host: HostBytes) -> Vec<HostBytes> {
    leaf.shards.ranges().map(|range| host.part(range)).collect()
}

fn padded(len: usize) -> usize {
    len.next_multiple_of(ALIGNMENT)
}

/// The offsets in a slot of the copied leaves.
struct Plan {
    starts: Vec<Option<usize>>,
    len: usize,
}

impl Plan {
    fn new(leaves: &[Leaf<'_>], staging: Staging) -> Self {
        let mut len = 0;
        let mut place = |leaf: &Leaf<'_>| {
            let start = leaf.array.bytes().as_ptr();
            if staging == Staging::WhereNeeded && leaf.shards.all_aligned(start, ALIGNMENT) {
                return None;
            }
            let place = len;
            len += padded(leaf.shards.len) * leaf.shards.distinct();
            Some(place)
        };
        let starts = leaves.iter().map(&mut place).collect();
        Self { starts, len }
    }
}
