//! Records that edits of a run exclude at a border.

use std::ops::Range;
use std::sync::Arc;

use super::upcoming::Upcoming;
use crate::cx::{Cx, StageId};
use crate::dataset::node::address;
use crate::dataset::stage::Stage;
use crate::edits::{ExcludedRecords, RunEdits};
use crate::exec::Runtime;

/// Number of indices whose records are found together.
const TOGETHER: u64 = 1024;

/// The edits of a border that exclude records.
pub(in crate::dataset) struct Excluding {
    edits: Arc<RunEdits>,
    /// The dataset before the border.
    dataset: Arc<dyn Stage + Send + Sync>,
    /// Stage id of the border.
    border: usize,
    /// The excluded records, if an edit excludes records of the run.
    active: Option<Active>,
}

/// The excluded records of a border.
struct Active {
    /// Number of the border.
    border: usize,
    records: Arc<ExcludedRecords>,
    /// The stage id of each source, by its memory address.
    sources: Vec<(usize, usize)>,
    /// The first index at which each exclusion that has begun applies.
    from: Vec<u64>,
    /// The number of edits that had taken effect when `from` was read.
    seen: Option<u64>,
    /// Indices whose records are known.
    known: Range<u64>,
    /// The excluded indices in `known`, each with the number of its exclusion, in order.
    found: Vec<(u64, usize)>,
}

impl Excluding {
    /// Finds the records that edits of `run` exclude from `dataset` before the border `stage`.
    pub(in crate::dataset) fn new(dataset: Arc<dyn Stage + Send + Sync>, run: &Runtime, stage: StageId) -> Self {
        let mut excluding = Self { edits: run.edits().clone(), dataset, border: run.id_of(stage), active: None };
        excluding.renew();
        excluding
    }

    /// Reads the edits again, because the pass has moved. Returns true if an edit excludes records.
    pub(in crate::dataset) fn renew(&mut self) -> bool {
        self.active = self.edits.excluded().and_then(|records| {
            let border = records.borders.iter().position(|border| *border == self.border)?;
            let (dataset, mut sources) = (&*self.dataset as &dyn Stage, Vec::new());
            let first = self.border - dataset.count();
            dataset.walk(&mut |id, stage| {
                sources.extend(stage.node().source.map(|source| (address(source), first + id)));
            });
            Some(Active { border, records, sources, from: Vec::new(), seen: None, known: 0..0, found: Vec::new() })
        });
        self.is_active()
    }

    /// Returns true if an edit excludes records of the run, now or later.
    pub(in crate::dataset) fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Notes that later stages have read the border up to index `next`.
    pub(in crate::dataset) fn note(&self, next: u64, cx: &mut Cx) {
        if let Some(active) = &self.active {
            cx.note_border(active.border, next);
        }
    }

    /// Returns true if an edit excludes the record of `index`.
    pub(in crate::dataset) fn excludes(&mut self, index: u64, cx: &Cx) -> bool {
        self.next_from(index, cx).0 == Some(index)
    }

    /// Returns the number of indices from `index` on before the next excluded index. At most `most`.
    pub(in crate::dataset) fn kept(&mut self, index: u64, most: u64, cx: &Cx) -> u64 {
        let (excluded, known) = self.next_from(index, cx);
        most.min(excluded.unwrap_or(known).saturating_sub(index))
    }

    /// Returns the first excluded index from `index` on, and the first index that is not known.
    fn next_from(&mut self, index: u64, cx: &Cx) -> (Option<u64>, u64) {
        let Some(active) = &mut self.active else { return (None, u64::MAX) };
        if active.seen != Some(cx.changes()) {
            active.from = self.edits.excluded_from(active.border);
            active.seen = Some(cx.changes());
        }
        if active.from.is_empty() {
            return (None, u64::MAX);
        }
        if !active.known.contains(&index) {
            active.find(&*self.dataset, index);
        }
        let from = active.found.partition_point(|(found, _)| *found < index);
        let has_begun = |(index, edit): &&(u64, usize)| active.from.get(*edit).is_some_and(|from| index >= from);
        (active.found[from..].iter().find(has_begun).map(|(index, _)| *index), active.known.end)
    }
}

impl Active {
    /// Finds the excluded indices from `index` on.
    fn find(&mut self, dataset: &dyn Stage, index: u64) {
        self.known = index..index.saturating_add(TOGETHER);
        let indices: Vec<u64> = self.known.clone().collect();
        let followed = Upcoming::follow(&indices, |next| dataset.will_read(next));
        let edit = |source: usize, record| {
            let stages = self.sources.iter().filter(|(address, _)| *address == source);
            stages.filter_map(|(_, stage)| self.records.records.get(&(*stage, record))).min().copied()
        };
        let excluded = followed.iter().filter_map(|found| {
            let edit = edit(found.source, found.record)?;
            Some((*indices.get(found.place as usize)?, edit))
        });
        self.found = excluded.collect();
        self.found.sort_unstable();
        self.found.dedup_by_key(|(index, _)| *index);
    }
}

debug_as!(Excluding, |self, f| f.debug_struct("Excluding").field("border", &self.border).finish_non_exhaustive());
