//! The sink, as whoever makes the elements sees it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};
use serde_json::Value as Json;

use super::budget::Budget;
use super::crew::Crew;
use super::cut::Cut;
use super::folder::Folder;
use super::format::SinkFormat;
use super::manifest::{MANIFEST, Manifest};
use super::options::SinkOptions;
use super::plan::Plan;
use super::report::{Figures, SinkReport};
use super::task::{Ending, Part, Task};
use super::writers;
use crate::element::{Batch, Element, Value};
use crate::error::{Error, ErrorKind, Result};

/// Writes elements into shards in the background: see the [module](super).
///
/// Dropped before it is [finished](Self::finish), it leaves the shards that were whole; [resuming](SinkOptions::resume) goes on
/// behind them.
#[must_use = "what is not finished is not complete"]
pub struct Sink {
    plan: Arc<Plan>,
    crew: Crew,
    budget: Arc<Budget>,
    cut: Cut,
    shard: Option<Sender<Part>>,
    shards: u64,
    records: u64,
    /// Elements on their way to a thread, and their bytes.
    pending: Vec<Element>,
    pending_bytes: u64,
    resumed: Resumed,
    started: Instant,
    waited: Duration,
    bytes_in: u64,
}

/// What was there already.
#[derive(Debug, Default)]
struct Resumed {
    records: u64,
    shards: u64,
    bytes: u64,
    state: Option<Json>,
    is_complete: bool,
}

/// So many elements go to a thread at once, or so many bytes.
const PENDING: usize = 512;
const PENDING_BYTES: u64 = 1 << 20;
/// What an element takes besides its values.
const OVERHEAD: u64 = 64;

impl Sink {
    /// How to write: the options, to change before [opening](SinkOptions::open).
    pub fn options(format: SinkFormat) -> SinkOptions {
        SinkOptions::new(format)
    }

    pub(super) fn open(options: SinkOptions, folder: &Path) -> Result<Self> {
        options.check()?;
        let plan = Plan { folder: Folder::open(folder)?, options };
        let (manifest, is_new) = found(&plan)?;
        let resumed = Resumed {
            records: manifest.records,
            shards: manifest.shards.len() as u64,
            bytes: manifest.bytes(),
            state: manifest.shards.last().and_then(|shard| shard.state.clone()),
            is_complete: manifest.complete,
        };
        if !is_new {
            plan.folder.remove(|name| plan.is_shard_from(name, resumed.shards))?;
        }
        let plan = Arc::new(plan);
        let crew = Crew::new(plan.clone(), manifest);
        if is_new {
            crew.publisher().save(&plan.folder)?;
        }
        let (shards, records) = (resumed.shards, resumed.records);
        let SinkOptions { shard_bytes, shard_records, memory, .. } = plan.options;
        Ok(Self {
            cut: Cut::new(shard_bytes, shard_records),
            budget: Budget::new(memory),
            plan,
            crew,
            shard: None,
            shards,
            records,
            pending: Vec::new(),
            pending_bytes: 0,
            resumed,
            started: Instant::now(),
            waited: Duration::ZERO,
            bytes_in: 0,
        })
    }

    /// Writes an element: at once, unless the budget is used up.
    ///
    /// # Errors
    /// What went wrong with this or any earlier element, with the file and the number of the record: what the format cannot
    /// hold is [`ErrorKind::Data`](crate::ErrorKind::Data); a disk that is full [`ErrorKind::Io`](crate::ErrorKind::Io). The sink
    /// takes no more then; what is published stands.
    pub fn write(&mut self, element: Element) -> Result<()> {
        self.write_at(element, || Ok(None))
    }

    /// The same, where `state` says where whoever makes the elements is behind this one. It is asked for the last of a shard, and
    /// kept in the manifest for whoever [resumes](Self::state).
    ///
    /// # Errors
    /// As [`write`](Self::write), and what `state` reports.
    pub fn write_at(&mut self, element: Element, state: impl FnOnce() -> Result<Option<Json>>) -> Result<()> {
        if self.resumed.is_complete {
            return Err(Error::config("the folder is complete").path(self.plan.folder.path()).help("write to another"));
        }
        self.check()?;
        if self.shard.is_none() {
            self.begin()?;
        }
        let bytes = element.nbytes() as u64;
        self.pending.push(element);
        self.pending_bytes += bytes + OVERHEAD;
        self.records += 1;
        self.bytes_in += bytes;
        let ends = self.cut.take(bytes);
        if ends || self.pending.len() >= PENDING || self.pending_bytes >= PENDING_BYTES {
            self.hand_over()?;
        }
        if ends { self.end(state()?) } else { Ok(()) }
    }

    /// Writes each row of a batch: its arrays without their leading dimension, which they share, and the items of its lists.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`ErrorKind::Data`](crate::ErrorKind::Data) where the values have no rows, or not as many.
    pub fn write_batch(&mut self, batch: &Batch) -> Result<()> {
        (0..batch.num_rows()?).try_for_each(|row| self.write(row_of(batch, row)?))
    }

    /// Records so far, with those that were there when it was opened: whoever makes them goes on with this one.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of the values that came in since it was opened.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// The state that was given with the last record that was there when it was opened.
    pub fn state(&self) -> Option<&Json> {
        self.resumed.state.as_ref()
    }

    /// Whether everything was written before it was opened.
    pub fn is_complete(&self) -> bool {
        self.resumed.is_complete
    }

    /// Writes what is left, waits until everything is on the disk, and says that there is nothing to come.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish(self) -> Result<SinkReport> {
        self.finish_at(None)
    }

    /// The same, where whoever makes the elements is at `state`.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish_at(mut self, state: Option<Json>) -> Result<SinkReport> {
        let until = self.started.elapsed();
        if self.resumed.is_complete {
            return Ok(self.report(until));
        }
        self.hand_over()?;
        if self.shard.is_some() {
            self.end(state)?;
        }
        let report = self.settle(until)?;
        let files = writers::beside(&self.plan, &self.crew.publisher().manifest)?;
        self.crew.publisher().complete(&self.plan.folder, files)?;
        Ok(report)
    }

    /// Waits until the shards that are whole are on the disk, and leaves it at that: resuming goes on behind them.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn stop(mut self) -> Result<SinkReport> {
        let until = self.started.elapsed();
        self.shard = None;
        self.settle(until)
    }

    /// The format.
    pub fn format(&self) -> SinkFormat {
        self.plan.options.format
    }

    /// What the manifest says so far.
    pub(super) fn with_manifest<R>(&self, read: impl FnOnce(&mut Manifest) -> R) -> R {
        read(&mut self.crew.publisher().manifest)
    }

    fn begin(&mut self) -> Result<()> {
        let (sender, parts) = unbounded();
        self.crew.begin(Task { number: self.shards, first_record: self.records, parts })?;
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

    /// Hands what is pending to the thread of the shard, once there is room.
    fn hand_over(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (room, waited) = self.budget.take(std::mem::take(&mut self.pending_bytes));
        self.waited += waited;
        let elements = std::mem::take(&mut self.pending);
        self.send(Part::Elements(elements, room))
    }

    fn send(&mut self, part: Part) -> Result<()> {
        let sent = self.shard.as_ref().is_some_and(|shard| shard.send(part).is_ok());
        // Nobody takes it where the shard has failed, which is told in a moment.
        if sent { Ok(()) } else { self.fail() }
    }

    fn check(&mut self) -> Result<()> {
        if self.crew.has_failed() { self.fail() } else { Ok(()) }
    }

    fn fail(&mut self) -> Result<()> {
        self.shard = None;
        self.crew.join();
        let ended =
            || Error::new(ErrorKind::Cancelled, "the sink takes no more: an earlier record could not be written");
        Err(self.crew.failure().unwrap_or_else(ended))
    }

    fn settle(&mut self, until: Duration) -> Result<SinkReport> {
        let threads = self.crew.work().threads;
        self.crew.join();
        self.check()?;
        let mut report = self.report(until);
        report.threads = threads;
        Ok(report.judged())
    }

    fn report(&self, until: Duration) -> SinkReport {
        let publisher = self.crew.publisher();
        SinkReport::new(Figures {
            manifest: &publisher.manifest,
            work: self.crew.work(),
            options: &self.plan.options,
            resumed: (self.resumed.shards > 0 || self.resumed.is_complete).then_some(self.resumed.records),
            bytes_before: self.resumed.bytes,
            producing: until,
            whole: self.started.elapsed(),
            waited: self.waited,
            bytes_in: self.bytes_in,
            most: self.budget.most(),
            budget: self.budget.limit(),
        })
    }
}

/// The manifest of the folder, and whether there was none.
fn found(plan: &Plan) -> Result<(Manifest, bool)> {
    let new = plan.options.manifest();
    let Some(text) = plan.folder.read(MANIFEST)? else {
        // Before its first shard, a folder has a manifest: these are somebody else's.
        return match plan.folder.files()?.keys().find(|name| plan.is_shard_from(name, 0)) {
            Some(name) => Err(Error::config("a file of this name is there, and no manifest that lists it")
                .path(plan.folder.file(name))
                .help("write to another folder, or choose another prefix")),
            None => Ok((new, true)),
        };
    };
    let at = plan.folder.file(MANIFEST);
    let text = String::from_utf8_lossy(&text);
    let manifest = Manifest::from_json(&text).map_err(|e| e.path(&at))?;
    if !plan.options.resume {
        let what = format!("the folder holds a data set of {} shards already", manifest.shards.len());
        return Err(Error::config(what)
            .path(plan.folder.path())
            .help("resume to go on with it, or write to another folder"));
    }
    manifest.check(&new).map_err(|e| e.path(&at))?;
    let files = plan.folder.files()?;
    for file in manifest.files() {
        if files.get(&file.name) != Some(&file.bytes) {
            let text = format!("the manifest lists {} of {} bytes, which is not there so", file.name, file.bytes);
            return Err(Error::state(text)
                .path(&at)
                .help("`gristmill verify` shows what is damaged; write to another folder"));
        }
    }
    Ok((manifest, false))
}

/// A row of a batch.
fn row_of(batch: &Batch, row: usize) -> Result<Element> {
    let mut element = Element::with_capacity(batch.len());
    for (name, value) in batch.iter() {
        let part = match value {
            Value::Array(array) => array.row(row).map(Value::Array),
            Value::List(items) => items.get(row).cloned(),
            Value::Tree(tree) => Some(Value::Tree(row_of(tree, row)?)),
            _ => None,
        };
        element.insert(name, part.ok_or_else(|| Error::data(format!("field {name:?} has no row {row}")))?);
    }
    Ok(element)
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shard = None;
        self.crew.join();
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("folder", &self.plan.folder.path())
            .field("records", &self.records)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}
