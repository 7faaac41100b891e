//! The sink, as the producer of the elements uses it.

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

/// A sink that writes elements as shards in the background: see the [module](super).
///
/// A sink that is dropped before it is [finished](Self::finish) leaves its whole shards.
/// [Resuming](SinkOptions::resume) continues after them.
#[must_use = "what is not finished is not complete"]
///
/// In a fork of the process that opened it, a sink writes nothing and dropping it does nothing; only the parent
/// continues.
pub struct Sink {
    intake: Ours<Intake>,
    resumed: Resumed,
    started: Instant,
    bytes_in: u64,
}

impl Sink {
    /// Returns the default options, which may be changed before [opening](SinkOptions::open).
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

    /// Writes an element. Returns immediately unless the budget is used up.
    ///
    /// # Errors
    /// Errors of this element and of earlier elements, with the file and the number of the record.
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the format cannot hold a value;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the disk is full, for example. The sink accepts no more elements
    /// after an error; published shards are kept. [`ErrorKind::Worker`](crate::ErrorKind::Worker) in a fork.
    pub fn write(&mut self, element: Element) -> Result<()> {
        self.write_at(element, || Ok(None))
    }

    /// Writes an element; `state` returns the state of the producer after this element.
    ///
    /// The sink calls `state` for the last element of a shard. The manifest keeps the state for a
    /// [resume](Self::state).
    ///
    /// # Errors
    /// The errors of [`write`](Self::write) and of `state`.
    pub fn write_at(&mut self, element: Element, state: impl FnOnce() -> Result<Option<Json>>) -> Result<()> {
        if self.resumed.is_complete {
            return Err(Error::config("the folder is complete").path(self.folder()).help("write to another"));
        }
        let bytes = element.nbytes() as u64;
        self.intake()?.put(element, bytes, state)?;
        self.bytes_in += bytes;
        Ok(())
    }

    /// Writes each row of a batch: its arrays without their common leading dimension, and the items of its lists.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write); [`ErrorKind::Data`](crate::ErrorKind::Data) if the values have no rows, or
    /// different numbers of rows.
    pub fn write_batch(&mut self, batch: &Batch) -> Result<()> {
        (0..batch.num_rows()?).try_for_each(|row| self.write(batch.row(row)?))
    }

    /// Returns the number of records so far, including the records in the folder when the sink was opened. The producer
    /// continues with the record of this number.
    pub fn records(&self) -> u64 {
        self.intake.anywhere().records
    }

    fn folder(&self) -> &Path {
        &self.intake.anywhere().plan.folder.path
    }

    /// Returns the intake of elements.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`](crate::ErrorKind::Worker) in a fork, which does not have the threads that write.
    fn intake(&mut self) -> Result<&mut Intake> {
        let origin = self.intake.origin();
        self.intake.get_mut().ok_or_else(|| origin.elsewhere("this sink"))
    }

    /// Returns the bytes of the values received since the sink was opened.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// Returns the state stored with the last record that was in the folder when the sink was opened.
    pub fn state(&self) -> Option<&Json> {
        self.resumed.state.as_ref()
    }

    /// Returns true if the data set was complete when the sink was opened.
    pub fn is_complete(&self) -> bool {
        self.resumed.is_complete
    }

    /// Writes the remaining elements, waits until everything is on the disk, and marks the data set as complete.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn finish(self) -> Result<SinkReport> {
        self.finish_at(None)
    }

    /// Finishes the sink as [`finish`](Self::finish) does, and stores the producer's `state`.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
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

    /// Waits until the whole shards are on the disk, and leaves the data set incomplete; a resume continues after them.
    ///
    /// If there are too few records to settle the columns, the shards get the columns inferred so far. The records are
    /// kept, and a resume infers the columns from more records.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn stop(mut self) -> Result<SinkReport> {
        let until = self.started.elapsed();
        self.intake()?.leave()?;
        self.settle(until)
    }

    /// Returns the format.
    pub fn format(&self) -> SinkFormat {
        self.intake.anywhere().plan.options.format
    }

    /// Returns the state from which a pipeline continues, and the number of records before it.
    pub(super) fn begun(&self) -> (Option<&Checkpoint>, u64) {
        (self.resumed.checkpoint.as_ref(), self.resumed.records)
    }

    /// Calls `read` with the manifest so far.
    pub(super) fn with_manifest<R>(&self, read: impl FnOnce(&mut Manifest) -> R) -> R {
        read(&mut self.intake.anywhere().crew.publisher().manifest)
    }

    fn settle(&mut self, until: Duration) -> Result<SinkReport> {
        let intake = self.intake()?;
        let threads = intake.crew.work().threads;
        intake.crew.join();
        intake.check()?;
        let mut report = self.report(until);
        report.work.threads = threads;
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
            budget: intake.budget.limit,
        })
    }
}

impl SinkOptions {
    /// Opens a sink that writes to `folder`; creates the folder if it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the format does not have the compression, if the folder holds
    /// shards and is not [resumed](Self::resume), or if another sink writes to the folder;
    /// [`ErrorKind::State`](crate::ErrorKind::State) if the folder was begun with other options;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be written to.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Sink> {
        Sink::open(self, folder.as_ref())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(intake) = self.intake.get_mut() {
            // A resume writes the elements that cannot be written now.
            let _ = intake.leave();
            intake.crew.join();
        }
    }
}

debug_as!(Sink, |self, f| {
    f.debug_struct("Sink")
        .field("folder", &self.folder())
        .field("records", &self.records())
        .field("shards", &self.intake.anywhere().shards)
        .finish_non_exhaustive()
});
