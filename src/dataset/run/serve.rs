//! The worker's side of a border whose elements are evaluated in worker processes. The parent's side is in `remote`.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::evaluate::{Apart, Gather, caught, evaluate_chunk, evaluate_range, of_columns};
use super::foresight::Foresight;
use super::pace::Pace;
use crate::cx::{Cx, StageId, ThreadWaits};
use crate::dataset::BoxMap;
use crate::dataset::map::{Many, MapDataset, Order, Ordered};
use crate::element::Slot;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Runtime;
use crate::exec::remote::{Evaluated, Serve, Served};
use crate::sync::Locked;
use crate::wire::{ChunkWriter, Crossing, Full, crossing};

/// Registers `dataset` in `served`, so that tasks of the parent can evaluate and gather its elements.
pub(super) fn serve<D, G>(dataset: &Arc<D>, gather: Option<&Arc<G>>, run: &Runtime, served: &Served, stage: StageId)
where
    D: MapDataset + 'static,
    D::Item: Send + 'static,
    G: Gather<D::Item>,
{
    if let Some(item) = crossing::<D::Item>() {
        let gather = gather.and_then(|gather| Some((gather.clone(), crossing()?)));
        let (dataset, run, unfit) = (dataset.clone(), run.clone(), Mutex::default());
        let (pace, large) = (Arc::new(Pace::of(&dataset)), Arc::default());
        let rows_are_large = AtomicBool::new(false);
        served.add(
            run.border(stage),
            Arc::new(Prefix { dataset, gather, run, item, unfit, pace, large, rows_are_large }),
        );
    }
}

/// The elementwise prefix of a border, in a worker.
struct Prefix<D: MapDataset, G: Gather<D::Item>> {
    dataset: Arc<D>,
    gather: Option<(Arc<G>, Crossing<G::Whole>)>,
    run: Runtime,
    item: Crossing<D::Item>,
    unfit: Mutex<Kept<D::Item, G::Whole>>,
    pace: Arc<Pace>,
    /// Bytes of a large slot, from recent slots.
    large: Arc<AtomicUsize>,
    /// True if rows are so large that making elements is cheaper than copying a batch from columns into its extent.
    rows_are_large: AtomicBool,
}

/// Bytes of a row whose copy takes as long as making its element.
const LARGE_ROW: u64 = 8 << 10;

/// Unfit values by index.
type Kept<T, W> = VecDeque<(u64, Unfit<T, W>)>;

/// A value that did not fit into its extent. The parent requests it next, most likely from this worker.
enum Unfit<T, W> {
    Slot(Slot<T>),
    /// The elements of a group.
    Items(Vec<T>),
    /// The combined group, and its number of indices.
    Whole(Result<W>, u64),
}

/// Limits for kept values: their number, and the bytes of the largest. A worker needs its memory for other data.
const MOST_UNFIT: usize = 4;
const LARGEST_UNFIT: usize = 2 << 20;

impl<D: MapDataset<Item: Send + 'static> + 'static, G: Gather<D::Item>> Serve for Prefix<D, G> {
    fn evaluate(&self, range: Range<u64>, groups_from: Option<u64>, extent: &mut [u8]) -> Result<Evaluated> {
        if range.end > self.dataset.len() {
            return Err(Error::new(
                ErrorKind::Worker,
                format!("indices {range:?} of a dataset of {}", self.dataset.len()),
            ));
        }
        Ok(self.write_into(range, groups_from, extent))
    }

    fn evaluate_listed(&self, indices: &[u64], extent: &mut [u8]) -> Result<Evaluated> {
        let dataset = Ordered::new(self.dataset.clone(), |_| Listed(indices.into()));
        // Unfit values are kept by indices of the dataset, and these are indices of the list.
        let listed = Prefix {
            // Boxed, so that the evaluation is compiled once per item type, not once per dataset.
            dataset: Arc::new(BoxMap::new(dataset)),
            gather: None::<(Arc<Apart>, _)>,
            run: self.run.clone(),
            item: self.item,
            unfit: Mutex::default(),
            pace: self.pace.clone(),
            large: self.large.clone(),
            rows_are_large: AtomicBool::new(false),
        };
        let mut evaluated = listed.write_into(0..indices.len() as u64, None, extent);
        if let Some(piece) = &mut evaluated.slowest {
            piece.index = indices.get(piece.index as usize).copied().unwrap_or(piece.index);
        }
        Ok(evaluated)
    }
}

/// The indices listed in a task.
struct Listed(Arc<[u64]>);

impl Order for Listed {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    facts! { name: "part", is_apart: true }

    fn len(&self, _: u64) -> u64 {
        self.0.len() as u64
    }
    fn place(&self, index: u64) -> Result<Option<u64>> {
        Ok(usize::try_from(index).ok().and_then(|index| self.0.get(index).copied()))
    }
    fn inverse(&self, _: u64) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl<D: MapDataset, G: Gather<D::Item>> Prefix<D, G> {
    fn write_into(&self, range: Range<u64>, groups_from: Option<u64>, extent: &mut [u8]) -> Evaluated {
        let (mut cx, before) = (self.run.cx_ahead(), ThreadWaits::here());
        let mut writer = ChunkWriter::new(extent);
        let full = self.write(range, groups_from, &mut writer, &mut cx).err();
        let written = writer.finish();
        let (indices, used, need) = (written.indices, written.used, full.map(|full| full.need));
        let (slowest, off) = (cx.take_slowest(), ThreadWaits::here().since(before));
        Evaluated { indices, used, need, slowest, off, ..Evaluated::default() }
    }

    fn write(
        &self,
        range: Range<u64>,
        groups_from: Option<u64>,
        writer: &mut ChunkWriter<'_>,
        cx: &mut Cx,
    ) -> Result<(), Full> {
        let (mut at, mut group_bytes) = (range.start, 0);
        let mut unfit = self.take_unfit(at);
        let mut foresight = Foresight::of(&self.dataset);
        while at < range.end {
            foresight.iter_mut().for_each(|foresight| foresight.tell(&self.dataset, at, range.end));
            let Some(group) = self.group_at(at, range.end, groups_from) else {
                let slots = match unfit.take() {
                    Some(Unfit::Slot(slot)) => [slot].into_iter().collect(),
                    _ => self.slots(at..self.next_group(at, range.end, groups_from), writer.room(), cx),
                };
                let mut large = 0;
                for slot in slots {
                    let taken = writer.taken();
                    if let Err(full) = writer.push_with(&slot, self.item) {
                        self.learn_bytes(full.need);
                        // Data in the extent cannot outlive this task.
                        if !writer.has_foreign() {
                            self.keep_unfit(at, Unfit::Slot(slot), full);
                        }
                        return Err(full);
                    }
                    large = large.max((writer.taken() - taken) as usize);
                    at += 1;
                }
                self.learn_bytes(large);
                continue;
            };
            let room = writer.room();
            if group_bytes > room {
                // Groups have similar sizes, so evaluating the next group would be wasted.
                return Err(Full { need: group_bytes });
            }
            self.write_group(&group, unfit.take(), writer, cx)?;
            (at, group_bytes) = (group.range.end, room - writer.room());
        }
        Ok(())
    }

    /// Evaluates a chunk at the start of `range`, limited to the number of large slots that fit into `room`.
    fn slots(&self, mut range: Range<u64>, room: usize, cx: &mut Cx) -> Many<D::Item> {
        let large = self.large.load(Ordering::Relaxed);
        let most = room.checked_div(large).map_or(u64::MAX, |most| most.max(1) as u64);
        range.end = range.end.min(range.start.saturating_add(most));
        self.pace.chunk(&mut range, cx, |chunk, cx| evaluate_chunk(&*self.dataset, chunk, &self.pace, cx))
    }

    /// Records the bytes of a slot. The estimate for large slots decays if recent slots are smaller.
    fn learn_bytes(&self, bytes: usize) {
        let large = self.large.load(Ordering::Relaxed);
        let next = bytes.max(large - large / 16);
        if next != large {
            self.large.store(next, Ordering::Relaxed);
        }
    }

    /// Returns the start of the next group after `at`, or `end`.
    fn next_group(&self, at: u64, end: u64, groups_from: Option<u64>) -> u64 {
        let size = self.gather.as_ref().map(|(gather, _)| gather.size());
        let next = groups_from.zip(size).and_then(|(from, size)| {
            let past = at.saturating_add(1).saturating_sub(from);
            from.checked_add(past.checked_next_multiple_of(size)?)
        });
        next.map_or(end, |next| next.min(end))
    }

    /// Returns the group that starts at `at`, if it is complete.
    fn group_at(&self, at: u64, end: u64, groups_from: Option<u64>) -> Option<Group<'_, G, G::Whole>> {
        let (gather, whole) = self.gather.as_ref()?;
        let size = gather.size();
        let begins = at.checked_sub(groups_from?)?.checked_rem(size)? == 0;
        let group_end = at.saturating_add(size).min(self.dataset.len());
        let is_whole = begins && group_end <= end && gather.takes(group_end - at);
        is_whole.then_some(Group { gather, whole: *whole, range: at..group_end })
    }

    /// Writes a group as a single value, and stacks a batch directly in the extent. Writes the group's slots instead if
    /// an index has no element.
    fn write_group(
        &self,
        group: &Group<'_, G, G::Whole>,
        unfit: Option<Unfit<D::Item, G::Whole>>,
        writer: &mut ChunkWriter<'_>,
        cx: &mut Cx,
    ) -> Result<(), Full> {
        let Group { gather, whole: crossing, ref range } = *group;
        let indices = range.end - range.start;
        let whole = match unfit {
            Some(Unfit::Whole(whole, len)) if len == indices => whole,
            unfit => 'whole: {
                if unfit.is_none()
                    && !self.rows_are_large.load(Ordering::Relaxed)
                    && let Some(whole) = of_columns(&*self.dataset, gather, range.clone(), cx)
                {
                    break 'whole Ok(whole);
                }
                let items = match unfit {
                    Some(Unfit::Items(items)) if items.len() as u64 == indices => Ok(items),
                    _ => evaluate_range(&*self.dataset, range.clone(), &self.pace, cx, &|| true).dense(),
                };
                let items = match items {
                    Ok(items) => items,
                    Err(slots) => return slots.into_iter().try_for_each(|slot| writer.push_with(&slot, self.item)),
                };
                let mut pushed = Ok(());
                let stacked = gather.stack(&items, cx, &mut |elements| {
                    pushed = writer.push_stacked(elements)?;
                    Ok(pushed.is_ok())
                });
                match (stacked, pushed) {
                    (Some(Ok(_)), Ok(())) => return Ok(()),
                    (Some(Ok(_)), Err(full)) => {
                        self.keep_unfit(range.start, Unfit::Items(items), full);
                        return Err(full);
                    }
                    (Some(Err(error)), _) => Err(error),
                    (None, _) => caught(|| gather.gather(items, cx)),
                }
            }
        };
        let taken = writer.taken();
        writer.push_whole(&whole, indices, crossing).inspect_err(|full| {
            // Data in the extent cannot outlive this task.
            if !writer.has_foreign() {
                self.keep_unfit(range.start, Unfit::Whole(whole, indices), *full);
            }
        })?;
        let row_bytes = (writer.taken() - taken) / indices;
        self.rows_are_large.store(gather.stacks() && row_bytes >= LARGE_ROW, Ordering::Relaxed);
        Ok(())
    }

    fn unfit(&self) -> MutexGuard<'_, Kept<D::Item, G::Whole>> {
        self.unfit.locked()
    }

    fn take_unfit(&self, index: u64) -> Option<Unfit<D::Item, G::Whole>> {
        let mut unfit = self.unfit();
        let at = unfit.iter().position(|(kept, _)| *kept == index)?;
        Some(unfit.swap_remove_back(at)?.1)
    }

    fn keep_unfit(&self, index: u64, what: Unfit<D::Item, G::Whole>, full: Full) {
        if full.need > LARGEST_UNFIT {
            return;
        }
        let mut unfit = self.unfit();
        // A value still here after this many others is evaluated elsewhere, or not needed.
        let old = if unfit.len() < MOST_UNFIT { None } else { unfit.pop_front() };
        unfit.push_back((index, what));
        drop(unfit);
        drop(old);
    }
}

/// The indices of a group.
struct Group<'a, G, W> {
    gather: &'a G,
    whole: Crossing<W>,
    range: Range<u64>,
}

impl<D: MapDataset, G: Gather<D::Item>> fmt::Debug for Prefix<D, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefix").field("len", &self.dataset.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
