//! Contents of planned batches, for runs that are planned and not made.

use std::sync::{Arc, Mutex};

use super::make::Part;
use super::prefix_keys::PrefixKeys;
use super::{Make, PlannedBatch, PlannedRows, Segments};
use crate::cx::{Cx, ElementId};
use crate::dataset::iter::{DatasetIterator, Dealt, IterDataset, PartPassOf, without_plan};
use crate::dataset::sources::{SourceOfRun, sources_of};
use crate::dataset::stage::Stage;
use crate::edits::RunEdits;
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::part::{BatchContents, Cost, SourceContents};
use crate::sync::Locked;

/// A count of the contents of planned batches. A pass whose runtime has a census makes no batches.
pub(crate) struct Census {
    /// Returns true for the name of an array of segment ids whose segments count as tokens.
    is_counted: fn(&str) -> bool,
    cost: Cost,
    /// The keys of each border, by its number.
    borders: Mutex<Vec<Arc<PrefixKeys>>>,
    /// The memory addresses of the sources, by their numbers in [`BatchContents::sources`].
    sources: Mutex<Vec<usize>>,
}

/// The contents of a run, batch by batch.
pub(crate) struct RunContents<D: IterDataset> {
    pass: PartPassOf<D>,
    cx: Cx,
    edits: Arc<RunEdits>,
    census: Arc<Census>,
}

impl Census {
    /// Creates a census that counts the tokens in arrays of segment ids that `is_counted` accepts.
    fn new(is_counted: fn(&str) -> bool, cost: Cost) -> Self {
        Self { is_counted, cost, borders: Mutex::default(), sources: Mutex::default() }
    }

    /// Returns the census of a runtime, if it has one.
    pub(super) fn of(run: &Runtime) -> Option<Arc<Self>> {
        run.census()
    }

    /// Adds the keys of the next border.
    pub(super) fn add(&self, border: u32, keys: &Arc<PrefixKeys>) {
        let mut borders = self.borders.locked();
        borders.truncate(border as usize);
        borders.push(keys.clone());
    }

    /// Counts the contents of planned `rows`, of which the batch has `made`: more than planned if it is padded.
    pub(super) fn count<T>(&self, rows: &PlannedRows, made: usize, make: &dyn Make<T>) -> Result<BatchContents> {
        let arrays: Vec<Segments> =
            make.segment_arrays().into_iter().filter(|array| (self.is_counted)(&array.name)).collect();
        let length: usize = arrays.iter().map(|array| array.length).sum();
        let mut contents =
            BatchContents { rows: made as u64, cells: (made * length) as u64, ..BatchContents::default() };
        let members = rows.ids().len();
        let (mut tokens, mut begins) = (vec![0; members], vec![true; members]);
        for (number, array) in arrays.iter().enumerate() {
            let mut lens = Vec::with_capacity(if number == 0 { members } else { 0 });
            let mut places = tokens.iter_mut().zip(&mut begins);
            make.cells(rows, array, &mut |cells, part| {
                let Some((tokens, begins)) = places.next() else { return };
                *tokens += cells;
                if number == 0 {
                    contents.split += u64::from(part == Part::First);
                    *begins = part != Part::Later;
                    lens.push(cells);
                }
            })?;
            if number == 0 && lens.len() == members {
                let costs = (0..rows.len()).map(|row| self.cost.of_lens(lens[rows.members(row)].iter().copied()));
                contents.costs = costs.collect();
            }
        }
        self.add_origins(rows, &tokens, &begins, &mut contents);
        Ok(contents)
    }

    /// Adds the sources of all members, with the `tokens` of each, and whether it `begins` a document.
    fn add_origins(&self, rows: &PlannedRows, tokens: &[u64], begins: &[bool], contents: &mut BatchContents) {
        let (borders, mut sources) = (self.borders.locked(), self.sources.locked());
        let seen: Vec<_> = borders.iter().map(|keys| keys.seen()).collect();
        let mut last = (usize::MAX, 0);
        for row in 0..rows.len() {
            let (mut origin, mut is_single) = (None, true);
            for member in rows.members(row) {
                let ElementId { border, index, .. } = rows.ids()[member];
                let kept = seen.get(border as usize).and_then(|seen| seen.as_ref()?.origin(index));
                let long_ago = || Some((borders.get(border as usize)?.source_of(index)?, 0));
                let Some((address, reads)) = kept.or_else(long_ago) else { continue };
                if last.0 != address {
                    let known = sources.iter().position(|known| *known == address);
                    last = (address, known.unwrap_or(sources.len()));
                    sources.extend(known.is_none().then_some(address));
                }
                let number = last.1;
                if contents.sources.len() <= number {
                    contents.sources.resize(number + 1, SourceContents::default());
                }
                let source = &mut contents.sources[number];
                source.documents += u64::from(begins[member]);
                source.tokens += tokens[member];
                source.reads = source.reads.max(reads);
                is_single &= origin.is_none_or(|origin| origin == number as u32);
                origin = Some(number as u32);
            }
            contents.origins.push(origin.filter(|_| is_single));
        }
    }
}

impl<D: IterDataset> RunContents<D> {
    /// Plans the batches of `dataset` from the keys of `run`, without making them. Tokens are counted in the arrays of
    /// segment ids whose names `is_counted` accepts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if keys do not determine the rows. The message names the cause.
    pub(crate) fn plan(dataset: &D, run: Runtime, is_counted: fn(&str) -> bool, cost: Cost) -> Result<Self> {
        let census = Arc::new(Census::new(is_counted, cost));
        let run = run.with_census(census.clone());
        match dataset.iter_part(&run, &crate::part::Part::whole())? {
            Some(pass) => Ok(Self { pass, cx: run.cx(), census, edits: run.edits().clone() }),
            None => Err(without_plan(dataset, &run)),
        }
    }

    /// Returns the contents of batch `number` of the run, with its edits; `None` at the end.
    ///
    /// # Errors
    /// Errors of planning.
    pub(crate) fn batch(&mut self, number: u64) -> Result<Option<Box<BatchContents>>> {
        let (pass, edits) = (&mut self.pass, self.edits.clone());
        let batch = edits.batch(number, &mut self.cx, |cx| {
            let batch = pass.next(cx)?;
            cx.flush_if_due();
            Ok(batch)
        })?;
        match batch {
            None => Ok(None),
            Some(Dealt::Planned(PlannedBatch { contents: Some(contents), .. })) => Ok(Some(contents)),
            Some(_) => Err(Error::state("a batch was made, but only its plan is needed")),
        }
    }

    /// Passes all counts of stages to the recorder.
    pub(crate) fn flush(&mut self) {
        self.cx.flush();
    }

    /// Returns the sources of `pipeline`, in the order of the stages, each with its number in
    /// [`BatchContents::sources`]; `None` if no element of the source was planned.
    pub(crate) fn sources(&self, pipeline: &dyn Stage) -> Vec<(Option<usize>, SourceOfRun)> {
        let known = self.census.sources.locked();
        let number = |source: &SourceOfRun| known.iter().position(|address| *address == source.address);
        sources_of(pipeline).into_iter().map(|source| (number(&source), source)).collect()
    }
}

debug_as!(Census, |self, f| f.write_str("Census"));
