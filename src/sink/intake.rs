//! Transfer of elements to the encoding threads: assignment to shards, ends of shards, and the memory budget.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Sender, unbounded};
use serde_json::Value as Json;

use super::budget::Budget;
use super::crew::Crew;
use super::cut::Cut;
use super::first;
use super::options::SinkOptions;
use super::plan::Plan;
use super::resume::{Again, Resumed};
use super::schema::Inference;
use super::task::{Ending, Part, Task};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};

/// Receiver of elements, which hands them over to the threads in groups.
pub(super) struct Intake {
    pub(super) plan: Arc<Plan>,
    pub(super) crew: Crew,
    pub(super) budget: Arc<Budget>,
    /// Time spent waiting for room in memory.
    pub(super) waited: Duration,
    cut: Cut,
    shard: Option<Sender<Part>>,
    pub(super) shards: u64,
    pub(super) records: u64,
    /// Inference of the columns, until they are settled; `held` are the shards that wait for the columns.
    inference: Option<Inference>,
    held: Vec<Task>,
    /// True if existing shards are written again.
    rewrites: bool,
    /// Elements that are not handed over yet; `pending_bytes` is their size.
    pending: Vec<Element>,
    pending_bytes: u64,
}

/// Number of elements handed over at once; `PENDING_BYTES` is the limit in bytes.
const PENDING: usize = 512;
const PENDING_BYTES: u64 = 1 << 20;
/// Bytes of memory per element in addition to its values.
const OVERHEAD: u64 = 64;

impl Intake {
    /// Creates an intake that continues after the existing shards in `resumed`.
    pub(super) fn new(plan: Arc<Plan>, crew: Crew, inference: Option<Inference>, resumed: &Resumed) -> Self {
        let SinkOptions { shard_bytes, shard_records, memory, .. } = plan.options;
        Self {
            budget: Budget::new(memory),
            cut: Cut::new(shard_bytes, shard_records),
            plan,
            crew,
            waited: Duration::ZERO,
            shard: None,
            shards: resumed.shards,
            records: resumed.records,
            inference,
            held: Vec::new(),
            rewrites: false,
            pending: Vec::new(),
            pending_bytes: 0,
        }
    }

    /// Accepts an element of `bytes` bytes; calls `state` if the element is the last of a shard.
    pub(super) fn put(
        &mut self,
        element: Element,
        bytes: u64,
        state: impl FnOnce() -> Result<Option<Json>>,
    ) -> Result<()> {
        self.check()?;
        if self.shard.is_none() {
            self.begin()?;
        }
        let settles = self.infer(&element, bytes)?;
        self.pending.push(element);
        self.pending_bytes += bytes + OVERHEAD;
        self.records += 1;
        let ends = self.cut.take(bytes);
        if ends || self.pending.len() >= PENDING || self.pending_bytes >= PENDING_BYTES {
            self.hand_over()?;
        }
        if ends {
            self.end(state()?)?;
        }
        if settles { self.settle_columns() } else { Ok(()) }
    }

    /// Hands over the remaining elements and ends the last shard.
    pub(super) fn flush(&mut self, state: Option<Json>) -> Result<()> {
        self.hand_over()?;
        if self.shard.is_some() {
            self.end(state)?;
        }
        self.settle_columns()
    }

    /// Gives up the incomplete shard.
    ///
    /// Earlier shards that wait for the columns are written with the columns inferred so far. Their records are kept,
    /// so that a resume infers the columns from more records.
    pub(super) fn leave(&mut self) -> Result<()> {
        let is_cut = self.shard.take().is_some();
        let whole = self.held.len().saturating_sub(usize::from(is_cut));
        self.held.truncate(whole);
        if whole == 0 || self.crew.has_failed() {
            self.held.clear();
            return Ok(());
        }
        let first: Vec<Element> = self.held.iter_mut().flat_map(Task::elements).collect();
        self.plan.folder.replace(first::FILE, &first::encode(&first))?;
        self.crew.publisher().manifest.unsettled = true;
        self.settle_columns()
    }

    /// Accepts the records of existing shards, which are written again with the records that follow.
    pub(super) fn put_again(&mut self, mut again: Again) -> Result<()> {
        self.rewrites = true;
        for element in std::mem::take(&mut again.records) {
            let bytes = element.nbytes() as u64;
            self.put(element, bytes, || Ok(again.state()))?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        let (sender, parts) = unbounded();
        let task = Task { number: self.shards, first_record: self.records, parts };
        match self.inference {
            Some(_) => self.held.push(task),
            None => self.crew.begin(task)?,
        }
        self.shards += 1;
        self.shard = Some(sender);
        Ok(())
    }

    fn end(&mut self, state: Option<Json>) -> Result<()> {
        let (records, raw_bytes) = self.cut.end();
        self.send(Part::End(Box::new(Ending { records, raw_bytes, state })))?;
        self.shard = None;
        Ok(())
    }

    /// Adds an element to the inference; returns true if the element settles the columns.
    fn infer(&mut self, element: &Element, bytes: u64) -> Result<bool> {
        let Some(inference) = &mut self.inference else { return Ok(false) };
        inference.add(element, bytes).map_err(|e| {
            self.crew.give_up();
            e.record(self.records).path(&self.plan.folder.path)
        })
    }

    /// Settles the columns and starts the shards that waited for them.
    fn settle_columns(&mut self) -> Result<()> {
        let Some(inference) = self.inference.take() else { return Ok(()) };
        let schema = inference.end();
        self.plan.settle(schema.clone())?;
        let mut publisher = self.crew.publisher();
        publisher.manifest.schema = Some(schema);
        if std::mem::take(&mut self.rewrites) {
            // The manifest stops listing the old shards before new shards take their names.
            publisher.save(&self.plan.folder)?;
            if !publisher.manifest.unsettled {
                self.plan.folder.delete(first::FILE)?;
            }
        }
        drop(publisher);
        std::mem::take(&mut self.held).into_iter().try_for_each(|task| self.crew.begin(task))
    }

    /// Waits for room in memory, then hands the pending elements to the thread of the shard.
    fn hand_over(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.pending_bytes);
        let (room, waited) = match self.inference {
            // Held shards have no thread that would free memory.
            Some(_) => (self.budget.take_at_once(bytes), Duration::ZERO),
            None => self.budget.take(bytes),
        };
        self.waited += waited;
        let elements = std::mem::take(&mut self.pending);
        self.send(Part::Elements(elements, room))
    }

    fn send(&mut self, part: Part) -> Result<()> {
        let sent = self.shard.as_ref().is_some_and(|shard| shard.send(part).is_ok());
        // The channel is closed if the shard has failed; `fail` returns the failure.
        if sent { Ok(()) } else { self.fail() }
    }

    /// Returns the failure of an earlier record as an error, if there is a failure.
    pub(super) fn check(&mut self) -> Result<()> {
        if self.crew.has_failed() { self.fail() } else { Ok(()) }
    }

    fn fail(&mut self) -> Result<()> {
        self.shard = None;
        self.crew.join();
        let ended =
            || Error::new(ErrorKind::Cancelled, "the sink takes no more: an earlier record could not be written");
        Err(self.crew.failure().unwrap_or_else(ended))
    }
}
