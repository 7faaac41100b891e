//! The sink, as whoever makes the elements sees it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::crew::Crew;
use super::folder::Folder;
use super::format::SinkFormat;
use super::intake::Intake;
use super::manifest::Manifest;
use super::options::SinkOptions;
use super::plan::Plan;
use super::report::{Figures, SinkReport};
use super::resume::{Resumed, again, found};
use super::schema::Inference;
use super::shard_file::ShardFile;
use super::writers::Beside;
use crate::checkpoint::Checkpoint;
use crate::element::{Batch, Element};
use crate::error::{Error, Result};
use crate::fork::Ours;

/// Writes elements into shards in the background: see the [module](super).
///
/// Dropped before it is [finished](Self::finish), it leaves the shards that were whole; [resuming](SinkOptions::resume) goes on
/// behind them.
#[must_use = "what is not finished is not complete"]
///
/// In a fork of the process that opened it it writes nothing, and dropping it does nothing: the parent goes on alone.
pub struct Sink {
    intake: Ours<Intake>,
    resumed: Resumed,
    started: Instant,
    bytes_in: u64,
}

impl Sink {
    /// Options of writing, to change before [opening](SinkOptions::open).
    pub fn options(format: SinkFormat) -> SinkOptions {
        SinkOptions::new(format)
    }

    pub(super) fn open(options: SinkOptions, folder: &Path) -> Result<Self> {
        let facts = options.check()?;
        let plan = Plan::new(options, facts, Folder::open(folder)?)?;
        let (mut manifest, is_new) = found(&plan)?;
        let resumed = Resumed::of(&manifest);
        if !is_new {
            plan.folder.remove(|name| plan.is_shard_from(name, resumed.shards))?;
        }
        let again = if is_new { None } else { again(&plan, &mut manifest)? };
        let inference = match &manifest.schema {
            Some(schema) => plan.settle(schema.clone()).map(|()| None)?,
            None => facts.columns.map(|rules| Inference::new(rules, &plan.options)),
        };
        let plan = Arc::new(plan);
        let crew = Crew::new(plan.clone(), manifest);
        if is_new {
            crew.publisher().save(&plan.folder)?;
        }
        let start = if again.is_some() { Resumed::default() } else { resumed.clone() };
        let mut intake = Intake::new(plan, crew, inference, &start);
        if let Some(again) = again {
            intake.put_again(again)?;
        }
        Ok(Self { intake: Ours::new(intake), resumed, started: Instant::now(), bytes_in: 0 })
    }

    /// Writes an element: at once, unless the budget is used up.
    ///
    /// # Errors
    /// What went wrong with this or any earlier element, with the file and the number of the record: what the format cannot
    /// hold is [`ErrorKind::Data`](crate::ErrorKind::Data); a disk that is full [`ErrorKind::Io`](crate::ErrorKind::Io). The sink
    /// takes no more then; what is published stands. In a fork it is [`ErrorKind::Worker`](crate::ErrorKind::Worker).
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
            return Err(Error::config("the folder is complete").path(self.folder()).help("write to another"));
        }
        let bytes = element.nbytes() as u64;
        self.intake()?.put(element, bytes, state)?;
        self.bytes_in += bytes;
        Ok(())
    }

    /// Writes each row of a batch: its arrays without their leading dimension, which they share, and the items of its lists.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`ErrorKind::Data`](crate::ErrorKind::Data) where the values have no rows, or not as many.
    pub fn write_batch(&mut self, batch: &Batch) -> Result<()> {
        (0..batch.num_rows()?).try_for_each(|row| self.write(batch.row(row)?))
    }

    /// Records so far, with those that were there when it was opened: whoever makes them goes on with this one.
    pub fn records(&self) -> u64 {
        self.intake.anywhere().records()
    }

    fn folder(&self) -> &Path {
        self.intake.anywhere().plan.folder.path()
    }

    /// The intake of elements.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`](crate::ErrorKind::Worker) in a fork, which has not the threads that write.
    fn intake(&mut self) -> Result<&mut Intake> {
        let origin = self.intake.origin();
        self.intake.get_mut().ok_or_else(|| origin.elsewhere("this sink"))
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
        let is_complete = self.resumed.is_complete;
        let intake = self.intake()?;
        if is_complete {
            return Ok(self.report(until));
        }
        intake.flush(state)?;
        let report = self.settle(until)?;
        let Intake { plan, crew, .. } = self.intake()?;
        let beside = (plan.facts.beside)(&crew.publisher().manifest)?;
        let write = |(name, bytes): &Beside| ShardFile::write_whole(&plan.folder, name, bytes);
        let files = beside.iter().map(write).collect::<Result<_>>()?;
        crew.publisher().complete(&plan.folder, files)?;
        Ok(report)
    }

    /// Waits until the shards that are whole are on the disk, and leaves it at that: resuming goes on behind them. Before the records
    /// are there that say what columns hold, those that are there say it; they are kept, and a resume looks at more.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn stop(mut self) -> Result<SinkReport> {
        let until = self.started.elapsed();
        self.intake()?.leave()?;
        self.settle(until)
    }

    /// The format.
    pub fn format(&self) -> SinkFormat {
        self.intake.anywhere().plan.options.format
    }

    /// The state from which a pipeline goes on, and behind how many records.
    pub(super) fn begun(&self) -> (Option<&Checkpoint>, u64) {
        (self.resumed.checkpoint.as_ref(), self.resumed.records)
    }

    /// The manifest so far.
    pub(super) fn with_manifest<R>(&self, read: impl FnOnce(&mut Manifest) -> R) -> R {
        read(&mut self.intake.anywhere().crew.publisher().manifest)
    }

    fn settle(&mut self, until: Duration) -> Result<SinkReport> {
        let intake = self.intake()?;
        let threads = intake.crew.work().threads;
        intake.crew.join();
        intake.check()?;
        let mut report = self.report(until);
        report.threads = threads;
        Ok(report.judged())
    }

    fn report(&self, until: Duration) -> SinkReport {
        let intake = self.intake.anywhere();
        let publisher = intake.crew.publisher();
        SinkReport::new(Figures {
            manifest: &publisher.manifest,
            work: intake.crew.work(),
            options: &intake.plan.options,
            resumed: (self.resumed.shards > 0 || self.resumed.is_complete).then_some(self.resumed.records),
            bytes_before: self.resumed.bytes,
            producing: until,
            whole: self.started.elapsed(),
            waited: intake.waited,
            bytes_in: self.bytes_in,
            most: intake.budget.most(),
            budget: intake.budget.limit(),
        })
    }
}

impl SinkOptions {
    /// Begins to write to `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a compression that the format does not have, and for a folder that
    /// holds shards if it is not to be [resumed](Self::resume), or to which another sink writes;
    /// [`ErrorKind::State`](crate::ErrorKind::State) for one that was begun otherwise;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written to.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Sink> {
        Sink::open(self, folder.as_ref())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(intake) = self.intake.get_mut() {
            // What cannot be written now is written by who resumes.
            let _ = intake.leave();
            intake.crew.join();
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("folder", &self.folder())
            .field("records", &self.records())
            .field("shards", &self.intake.anywhere().shards())
            .finish_non_exhaustive()
    }
}
