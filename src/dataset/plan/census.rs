//! Contents of planned batches, for runs that are planned and not made.

use std::sync::{Arc, Mutex, MutexGuard};

use super::make::Part;
use super::prefix_keys::PrefixKeys;
use super::seen::Seen;
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
    /// The costs of rows, if they are counted.
    cost: Option<Cost>,
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
    fn new(is_counted: fn(&str) -> bool, cost: Option<Cost>) -> Self {
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
        let mut members = Members::default();
        for (number, array) in arrays.iter().enumerate() {
            let (mut cells, mut parts) = (Vec::with_capacity(rows.ids().len()), Vec::new());
            make.cells(rows, array, &mut cells, &mut parts)?;
            if number > 0 {
                members.tokens.iter_mut().zip(cells).for_each(|(tokens, cells)| *tokens += cells);
                continue;
            }
            contents.split = parts.iter().filter(|part| **part == Part::First).count() as u64;
            if let Some(cost) = self.cost.as_ref().filter(|_| cells.len() == rows.ids().len()) {
                let costs = (0..rows.len()).map(|row| cost.of_lens(cells[rows.members(row)].iter().copied()));
                contents.costs = costs.collect();
            }
            members = Members { tokens: cells, parts };
        }
        self.add_origins(rows, &members, &mut contents);
        Ok(contents)
    }

    /// Adds the sources of all members.
    fn add_origins(&self, rows: &PlannedRows, members: &Members, contents: &mut BatchContents) {
        let (borders, mut sources) = (self.borders.locked(), self.sources.locked());
        let seen: Vec<_> = borders.iter().map(|keys| keys.seen()).collect();
        let mut number_of = |address: usize| {
            sources.iter().position(|known| *known == address).unwrap_or_else(|| {
                sources.push(address);
                sources.len() - 1
            })
        };
        let ids = rows.ids();
        if let [Some(seen)] = seen.as_slice()
            && let Some(reads) = seen.reads_of_only(ids.iter().map(|id| id.index))
        {
            let number = number_of(seen.address(0));
            let (documents, tokens) = (members.documents(ids.len()), members.tokens.iter().sum());
            contents.sources.resize(number + 1, SourceContents::default());
            contents.sources[number] = SourceContents { documents, tokens, reads };
            let origin = |row| (!rows.members(row).is_empty()).then_some(number as u32);
            contents.origins = (0..rows.len()).map(origin).collect();
            return;
        }
        // The number of each source of each border.
        let unknown = |seen: &Option<MutexGuard<'_, Seen>>| vec![None; seen.as_ref().map_or(0, |seen| seen.sources())];
        let mut numbers: Vec<Vec<Option<usize>>> = seen.iter().map(unknown).collect();
        for row in 0..rows.len() {
            let (mut origin, mut is_single) = (None, true);
            for member in rows.members(row) {
                let ElementId { border, index, .. } = ids[member];
                let border = border as usize;
                let kept =
                    seen.get(border).and_then(|seen| seen.as_ref()).and_then(|seen| Some((seen, seen.place(index)?)));
                let (number, reads) = match kept {
                    Some((seen, place)) => {
                        let source = place.source as usize;
                        let number = numbers[border][source].get_or_insert_with(|| number_of(seen.address(source)));
                        (*number, place.reads)
                    }
                    None => match borders.get(border).and_then(|keys| keys.source_of(index)) {
                        Some(address) => (number_of(address), 0),
                        None => continue,
                    },
                };
                if contents.sources.len() <= number {
                    contents.sources.resize(number + 1, SourceContents::default());
                }
                let source = &mut contents.sources[number];
                source.documents += u64::from(members.begins(member));
                source.tokens += members.tokens.get(member).copied().unwrap_or(0);
                source.reads = source.reads.max(reads);
                is_single &= origin.is_none_or(|origin| origin == number as u32);
                origin = Some(number as u32);
            }
            contents.origins.push(origin.filter(|_| is_single));
        }
    }
}

/// The cells of the members of planned rows.
#[derive(Default)]
struct Members {
    /// The tokens of each member; empty if rows are not packed.
    tokens: Vec<u64>,
    /// The place of each member's part in its element; empty if every member is a whole element.
    parts: Vec<Part>,
}

impl Members {
    /// Returns true if a document begins in a member.
    #[inline]
    fn begins(&self, member: usize) -> bool {
        self.parts.get(member) != Some(&Part::Later)
    }

    /// Returns the number of documents that begin in `members` members.
    fn documents(&self, members: usize) -> u64 {
        (members - self.parts.iter().filter(|part| **part == Part::Later).count()) as u64
    }
}

impl<D: IterDataset> RunContents<D> {
    /// Plans the batches of `dataset` from the keys of `run`, without making them. Tokens are counted in the arrays of
    /// segment ids whose names `is_counted` accepts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if keys do not determine the rows. The message names the cause.
    pub(crate) fn plan(dataset: &D, run: Runtime, is_counted: fn(&str) -> bool, cost: Option<Cost>) -> Result<Self> {
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
