//! Reading of all records, past damage.

use std::ops::Range;
use std::sync::Arc;

use super::Data;
use crate::cores;
use crate::cx::{Cx, Recorder};
use crate::dataset::map::Many;
use crate::dataset::{BoxIter, BoxMap, DatasetIterator, IterDataset, MapDataset};
use crate::element::{Element, OrderHash};
use crate::error::Result;
use crate::exec::{Executor, Runtime};
use crate::spec::chain::Chain;

/// Outcome of reading everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked {
    /// Records that could be read.
    pub(crate) records: u64,
    /// Records, or ends of streams, that could not.
    pub(crate) damaged: u64,
    /// Bytes of their values.
    pub(crate) bytes: u64,
    pub(crate) order_hash: OrderHash,
    /// Notes that the report of a run would count besides.
    pub(crate) notes: Arc<Recorder>,
}

/// Receiver of the findings of a check.
pub(crate) trait Watch {
    /// A record that cannot be read.
    fn found(&mut self, error: crate::Error);
    /// Reports the amount read so far.
    fn read(&mut self, so_far: &Checked);
}

/// Bytes of elements that are held at once, about.
const AT_ONCE: u64 = 64 << 20;
/// Records that a thread takes at a time.
const TOGETHER: u64 = 256;

impl Data {
    /// Reads every record that can be read. A stream that does not go on after damage ends there.
    ///
    /// # Errors
    /// If reading cannot begin. Damage is reported to `watch` and counted.
    pub(crate) fn check(self, checked: &mut Checked, watch: &mut dyn Watch) -> Result<()> {
        let recorder = checked.notes.clone();
        match self.chain {
            Chain::Map(ds) | Chain::Stream(ds, _) => {
                by_number(&ds, checked, watch, &recorder);
                Ok(())
            }
            chain => in_order(&chain.into_iter(), checked, watch, &recorder),
        }
    }
}

fn by_number(ds: &BoxMap<Element>, checked: &mut Checked, watch: &mut dyn Watch, recorder: &Arc<Recorder>) {
    let len = ds.len();
    let (mut next, mut most) = (0, 1);
    while next < len {
        watch.read(checked);
        let end = len.min(next.saturating_add(most));
        let bytes = checked.bytes;
        for slot in read(ds, next..end, recorder).into_iter().flatten() {
            checked.take(slot.transpose(), watch);
        }
        // The number that fits by the size of these, and not many more than these: later records may be larger.
        let each = ((checked.bytes - bytes) / (end - next)).max(1);
        most = (AT_ONCE / each).clamp(1, most.saturating_mul(4)).min(TOGETHER * 64);
        next = end;
    }
}

/// Records by several threads, in order.
fn read(ds: &BoxMap<Element>, range: Range<u64>, recorder: &Arc<Recorder>) -> Vec<Many<Element>> {
    let parts: Vec<Vec<u64>> = range.collect::<Vec<_>>().chunks(TOGETHER as usize).map(<[u64]>::to_vec).collect();
    let read = |indices: Vec<u64>| ds.get_many(&indices, &mut Cx::new(recorder));
    cores::map(parts, read)
}

fn in_order(
    ds: &BoxIter<Element>,
    checked: &mut Checked,
    watch: &mut dyn Watch,
    recorder: &Arc<Recorder>,
) -> Result<()> {
    let run = Runtime::new(Executor::Inline, Some(recorder.clone()))?;
    let (mut iter, mut cx) = (ds.iter(&run)?, run.cx());
    let mut stood = None;
    loop {
        watch.read(checked);
        let Some(slot) = iter.next(&mut cx).transpose() else { break };
        let stands = slot.is_err().then(|| serde_json::to_value(iter.state()).ok()).flatten();
        checked.take(Some(slot), watch);
        if stands.is_some() && stands == stood {
            break;
        }
        stood = stands;
    }
    Ok(())
}

impl Checked {
    fn take(&mut self, slot: Option<Result<Element>>, watch: &mut dyn Watch) {
        match slot {
            Some(Ok(element)) => {
                self.records += 1;
                self.bytes += element.nbytes() as u64;
                self.order_hash.update(&element);
            }
            Some(Err(error)) => {
                self.damaged += 1;
                watch.found(error);
            }
            None => {}
        }
    }
}
