//! Elements on their way to the threads: which shard they are of, when it ends, and whether there is room.

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

/// Takes elements one by one, and hands them on, several together.
pub(super) struct Intake {
    pub(super) plan: Arc<Plan>,
    pub(super) crew: Crew,
    pub(super) budget: Arc<Budget>,
    /// For room.
    pub(super) waited: Duration,
    cut: Cut,
    shard: Option<Sender<Part>>,
    shards: u64,
    records: u64,
    /// While it is not known what the columns are, and the shards that wait for that.
    inference: Option<Inference>,
    held: Vec<Task>,
    /// Whether shards of these names are there.
    rewrites: bool,
    /// Elements that are not handed on, and their bytes.
    pending: Vec<Element>,
    pending_bytes: u64,
}

/// Elements, or bytes of them, that go to a thread at once.
const PENDING: usize = 512;
const PENDING_BYTES: u64 = 1 << 20;
/// Bytes that an element takes besides its values.
const OVERHEAD: u64 = 64;

impl Intake {
    /// Goes on behind what is there already.
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

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn shards(&self) -> u64 {
        self.shards
    }

    /// Takes an element of so many bytes; `state` is asked for where it is the last of a shard.
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

    /// Hands on what is left, and ends the last shard.
    pub(super) fn flush(&mut self, state: Option<Json>) -> Result<()> {
        self.hand_over()?;
        if self.shard.is_some() {
            self.end(state)?;
        }
        self.settle_columns()
    }

    /// Gives up the shard that is not whole. Those in front of it that wait for the columns are written with the columns of the records
    /// so far, and the records are kept: a resume looks at more of them.
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

    /// Takes records that are in shards already, which are written anew with what follows.
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

    /// Looks at an element for what its columns hold, and says whether that is known with it.
    fn infer(&mut self, element: &Element, bytes: u64) -> Result<bool> {
        let Some(inference) = &mut self.inference else { return Ok(false) };
        inference.add(element, bytes).map_err(|e| {
            self.crew.give_up();
            e.record(self.records).path(self.plan.folder.path())
        })
    }

    /// Begins what waited for the columns.
    fn settle_columns(&mut self) -> Result<()> {
        let Some(inference) = self.inference.take() else { return Ok(()) };
        let schema = inference.end();
        self.plan.settle(schema.clone())?;
        let mut publisher = self.crew.publisher();
        publisher.manifest.schema = Some(schema);
        if std::mem::take(&mut self.rewrites) {
            // No manifest lists a shard as it was when another has its name.
            publisher.save(&self.plan.folder)?;
            if !publisher.manifest.unsettled {
                self.plan.folder.delete(first::FILE)?;
            }
        }
        drop(publisher);
        std::mem::take(&mut self.held).into_iter().try_for_each(|task| self.crew.begin(task))
    }

    /// Hands what is pending to the thread of the shard, once there is room.
    fn hand_over(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.pending_bytes);
        let (room, waited) = match self.inference {
            // Nobody would make room.
            Some(_) => (self.budget.take_at_once(bytes), Duration::ZERO),
            None => self.budget.take(bytes),
        };
        self.waited += waited;
        let elements = std::mem::take(&mut self.pending);
        self.send(Part::Elements(elements, room))
    }

    fn send(&mut self, part: Part) -> Result<()> {
        let sent = self.shard.as_ref().is_some_and(|shard| shard.send(part).is_ok());
        // Nobody takes it where the shard has failed, which is told in a moment.
        if sent { Ok(()) } else { self.fail() }
    }

    /// The failure of an earlier record, if there is one.
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
