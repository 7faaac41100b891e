//! The lineage of delivered rows, and the run log.

use std::path::PathBuf;

use super::{Loader, LoaderBuilder, Position};
use crate::cx::Cx;
use crate::dataset::{IterDataset, Lineage, PlannedPass, Tracer};
use crate::error::{Error, Result};
use crate::fork::Ours;
use crate::ledger::{Batch, Ledger, Run};
use crate::part::Part;

impl<D: IterDataset + 'static> Loader<D> {
    /// Returns the records from which the rows of the last delivered element were made: for each row its documents, their
    /// files, and their cells in the row. With a [part](crate::LoaderBuilder::part), returns the rows of the part.
    ///
    /// The element is planned again from the state before it, from [keys](crate::LoaderBuilder::keys). Records without keys are
    /// evaluated again if rows depend on lengths or on dropped elements. Elements that are not batches have a single row.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let mut loader = Range::new(0, 10).shuffle(42).to_iter().batch(4).loader().build()?;
    /// assert_eq!(loader.next().transpose()?, Some(vec![8, 6, 7, 9]));
    /// let records: Vec<u64> = loader.lineage()?.iter().map(|row| row.segments[0].record).collect();
    /// assert_eq!(records, [8, 6, 7, 9]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if no element was delivered since the start or the last move.
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the reason if the records of rows are unknown: a stream without random
    /// access, or a stage whose decisions require elements. Errors of the evaluation.
    pub fn lineage(&self) -> Result<Vec<Lineage>> {
        self.check_process()?;
        let Some(before) = self.position.earlier.front().cloned() else {
            let text = "no element was delivered since the start, or since the loader moved";
            return Err(Error::state(text).help("call `lineage` after a batch"));
        };
        let mut cx = Cx::default();
        let last = self.position.delivered.saturating_sub(1);
        let edits = self.run.edits().again_at(last);
        let mut pass = PlannedPass::start(&*self.dataset, self.run.shared_keys(), edits.clone())?;
        edits.move_to(last, &mut cx);
        pass.restore(before, &mut cx)?;
        let Some(batch) = edits.batch(last, &mut cx, |cx| pass.next(true, cx))? else {
            return Err(Error::state("the plan ends before the last delivered element"));
        };
        let mut rows = Tracer::new(&*self.dataset).rows(&batch);
        if let Some(own) = self.rows() {
            let own: Vec<u64> = own.iter().map(|row| row as u64).collect();
            rows.retain(|row| own.contains(&row.row));
            rows.sort_by_key(|row| own.iter().position(|own| *own == row.row));
        }
        Ok(rows)
    }
}

/// Options of the run log.
#[derive(Default)]
pub(super) struct Logged {
    path: Option<PathBuf>,
    /// The pipeline file.
    file: Option<serde_json::Value>,
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    /// Extends the run log at `path`, or creates it: see [`ledger`](crate::ledger). The first part writes it.
    ///
    /// A line is written at the start, at each move and resume, after every 1,000 batches and at the end. If a later line cannot be
    /// written, a warning is logged, and the run continues.
    pub fn ledger(mut self, path: impl Into<PathBuf>) -> Self {
        self.logged.path = Some(path.into());
        self
    }

    /// Adds the pipeline file to the run log.
    pub(crate) fn of_file(mut self, file: serde_json::Value) -> Self {
        self.logged.file = Some(file);
        self
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Writes the first line of the run log, if there is one, on the host of the first part.
    pub(super) fn begin_log(&mut self, Logged { path, file }: Logged) -> Result<()> {
        let Some(path) = path else { return Ok(()) };
        if self.part().is_some_and(|part| !part.has_first_row()) {
            return Ok(());
        }
        let (part, deal) = (self.part().cloned().unwrap_or_else(Part::whole), self.deal().cloned().unwrap_or_default());
        let run = Run { part: part.to_string(), deal: format!("{deal:?}"), file, ..Run::default() };
        let run = Run { edits: self.identity.edits().clone(), ..run };
        let mut ledger = Ledger::open(&path)?.edited(self.run.edits());
        let Position { state, delivered, .. } = &self.position;
        ledger.begin(&*self.dataset, run, self.identity.fingerprint(), *delivered, state)?;
        self.host.ledger = Some(Ours::new(ledger));
        Ok(())
    }

    /// Adds the edits of the run to the run log.
    pub(super) fn log_edits(&mut self) -> Result<()> {
        let Some(ledger) = self.host.ledger.as_mut().and_then(Ours::get_mut) else { return Ok(()) };
        ledger.edit(self.identity.edits().clone(), self.position.delivered, &self.position.state)
    }

    /// Adds the last delivered batch to the run log.
    pub(super) fn log_batch(&mut self, digest: Option<u128>) {
        if let Some(ledger) = self.host.ledger.as_mut().and_then(Ours::get_mut) {
            let Position { state, delivered, earlier, .. } = &self.position;
            ledger.delivered(Batch { number: delivered - 1, digest, before: earlier.front(), after: state });
        }
    }

    /// Adds the end of the stream to the run log.
    pub(super) fn log_end(&mut self) {
        if let Some(ledger) = self.host.ledger.as_mut().and_then(Ours::get_mut) {
            ledger.end(&self.position.state);
        }
    }
}
