//! Plans of the batches of a logged run.

use std::sync::Arc;

use serde_json::Value as Json;

use super::log::{Line, Run, RunLog};
use super::positions::Positions;
use crate::checkpoint::{Checkpoint, Identity};
use crate::cx::Cx;
use crate::dataset::iter::{DatasetIterator, edited_stages};
use crate::dataset::{IterDataset, PlannedBatch, PlannedPass, Stage, Tracer};
use crate::edits::{Edits, RunEdits};
use crate::error::{Error, Result};
use crate::keys::KeySource;

type StateOf<D> = <<D as IterDataset>::Iter as DatasetIterator>::State;

/// A pass that plans the batches of a logged run, from any logged position on.
pub(crate) struct Replay<'a, D: IterDataset> {
    log: &'a RunLog,
    identity: Identity,
    edits: Arc<RunEdits>,
    /// The files of each source, by stage id.
    files: Vec<(usize, Vec<String>)>,
    /// The run whose files and stages were compared last.
    checked: Option<Arc<Run>>,
    pass: PlannedPass<D>,
    cx: Cx,
    /// Number of the next batch.
    next: u64,
    /// Positions of all lines, or the reason if they do not show the elements of batches.
    positions: std::result::Result<Positions, &'static str>,
}

impl<'a, D: IterDataset> Replay<'a, D> {
    /// Starts a pass over the run of `log`, whose pipeline is `dataset`. Keys that `keys` lacks are computed.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the pipeline has no plan.
    pub(crate) fn start(dataset: &D, log: &'a RunLog, keys: Option<Arc<dyn KeySource>>) -> Result<Self> {
        let (identity, files) = (Identity::of(dataset), (dataset as &dyn Stage).source_files(usize::MAX));
        let identity = identity.edited(log.edits());
        let edits = Arc::new(RunEdits::new(log.edits(), edited_stages(dataset, &log.edits())?));
        let pass = PlannedPass::start(dataset, keys, edits.clone())?;
        let positions = Positions::of(dataset, log, Tracer::new(dataset).borders());
        Ok(Self { log, identity, edits, files, checked: None, pass, cx: Cx::default(), next: 0, positions })
    }

    /// Compares the source files and the stages of a logged run with the pipeline.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) with the first file or stage that differs.
    fn check(&mut self, line: &Line) -> Result<()> {
        if self.checked.as_ref().is_none_or(|checked| !Arc::ptr_eq(checked, &line.run)) {
            same_files(&line.run.sources, &self.files)?;
            line.checkpoint().check(&self.identity)?;
            self.checked = Some(line.run.clone());
        }
        Ok(())
    }

    /// Moves to a logged position.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if a source file or a stage has changed since the run.
    pub(crate) fn restore(&mut self, line: &Line) -> Result<()> {
        self.restore_state(line, line.entry.at_batch, line.entry.state.clone())
    }

    /// Moves to batch number `batch` of the run of `line`, whose state is `state`.
    fn restore_state(&mut self, line: &Line, batch: u64, state: Json) -> Result<()> {
        self.check(line)?;
        let state: StateOf<D> = serde_json::from_value(state).map_err(|e| {
            Error::state(format!("the run log's state does not have the shape of this pipeline's state: {e}"))
        })?;
        self.next = batch;
        self.edits.resume(self.next, line.entry.edited_mix.clone())?;
        self.edits.move_to(self.next, &mut self.cx);
        self.pass.restore(state, &mut self.cx)
    }

    /// Moves to batch number `batch`: to the last logged position before it, and on by plans. Plans nothing if indices alone
    /// determine the batches.
    ///
    /// # Errors
    /// Errors of the plan, and [`ErrorKind::Config`](crate::ErrorKind::Config) if the stream ends earlier.
    pub(crate) fn go_to(&mut self, batch: u64) -> Result<()> {
        let line = self.log.before(batch)?;
        match self.state_at(line, batch) {
            Some(state) => self.restore_state(line, batch, state)?,
            None => self.restore(line)?,
        }
        while self.next < batch {
            if self.plan(false)?.is_none() {
                return Err(Error::config(format!(
                    "the stream ends before batch {batch}, after {} batches",
                    self.next
                )));
            }
        }
        Ok(())
    }

    /// Returns the state before batch number `batch`, if indices alone determine the batches from `line` on.
    fn state_at(&self, line: &Line, batch: u64) -> Option<Json> {
        let number = self.log.lines().iter().position(|other| std::ptr::eq(other, line))?;
        let positions = self.positions.as_ref().ok().filter(|_| batch < self.log.batches())?;
        positions.state_at(number, batch, &line.entry.state, self.edits())
    }

    /// Returns the index after the furthest index that the pass has read at each border before `line`, or a larger index.
    /// Borders that hold no elements have 0 or no number.
    ///
    /// # Errors
    /// Errors of the plan.
    pub(crate) fn furthest(&mut self, line: &Line) -> Result<Vec<u64>> {
        self.pass.take_read();
        self.restore(line)?;
        self.pass.next(false, &mut self.cx)?;
        Ok(self.pass.take_read())
    }

    /// Returns the positions of all lines of the log.
    ///
    /// # Errors
    /// The reason if positions do not show the elements of batches.
    pub(super) fn positions(&self) -> std::result::Result<&Positions, &'static str> {
        self.positions.as_ref().map_err(|why| *why)
    }

    /// Returns the edits of the run.
    pub(crate) fn edits(&self) -> &Edits {
        self.identity.edits()
    }

    /// Plans the next batch. Returns `None` at the end. With `spans`, the plan contains the cells of members.
    ///
    /// # Errors
    /// Errors of the plan.
    pub(crate) fn plan(&mut self, spans: bool) -> Result<Option<PlannedBatch>> {
        let pass = &mut self.pass;
        let planned = self.edits.batch(self.next, &mut self.cx, |cx| pass.next(spans, cx))?;
        self.next += u64::from(planned.is_some());
        Ok(planned)
    }

    /// Plans the last batch again, with the cells of its members. `before` is the state before the batch.
    ///
    /// # Errors
    /// Errors of the plan.
    pub(crate) fn plan_again(&mut self, before: StateOf<D>) -> Result<Option<PlannedBatch>> {
        let last = self.next.saturating_sub(1);
        self.edits.move_to(last, &mut self.cx);
        self.pass.restore(before, &mut self.cx)?;
        let pass = &mut self.pass;
        self.edits.batch(last, &mut self.cx, |cx| pass.next(true, cx))
    }

    /// Returns the state before the next batch.
    pub(crate) fn state(&self) -> StateOf<D> {
        self.pass.state()
    }

    /// Returns the number of the next batch.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the position before the next batch as a checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if JSON cannot hold the state.
    pub(crate) fn checkpoint(&self) -> Result<Checkpoint> {
        let checkpoint = self.identity.at(self.next, &self.pass.state())?;
        Ok(Checkpoint { edited_mix: self.edits.progress(self.next), ..checkpoint })
    }
}

/// Compares the source files of a logged run with the present files.
///
/// # Errors
/// [`ErrorKind::State`](crate::ErrorKind::State) with the first file that differs.
fn same_files(were: &[(usize, Vec<String>)], are: &[(usize, Vec<String>)]) -> Result<()> {
    for ((stage, was), (_, is)) in were.iter().zip(are) {
        if let Some(at) = (0..was.len().max(is.len())).find(|&at| was.get(at) != is.get(at)) {
            let side =
                |files: &[String]| files.get(at).map_or_else(|| "missing".to_owned(), |file| format!("`{file}`"));
            let (was, is) = (side(was), side(is));
            let text = format!("a file of source {stage} has changed since the run: it was {was} and is {is}");
            return Err(Error::state(text)
                .help("restore the files of the run, whose names, sizes and hashes are in the run log"));
        }
    }
    Ok(())
}
