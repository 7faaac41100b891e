//! Stages that pack group by group: first fit, best fit, concat-then-split.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::columns::{Columns, with_cells_of_row};
use super::item::PackItem;
use super::kernel::{Kernel, PartOf};
use super::made::{MadeBy, plan_rows};
use super::notes::{Notes, TELL_EVERY};
use super::order::row_order;
use super::plan::{GroupPlan, PACKED};
use super::planned::Bins;
use super::tracked::{NextRows, ParentState, Tracked};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::{Flow, Flowing, InPlace, NextStacked, Parted, PartedBy, Start};
use crate::dataset::plan::{PlannedRows, StandIn};
use crate::dataset::{DatasetIterator, Facts, Held, Memory, Role};
use crate::element::{Element, Name, Value};
use crate::error::{Error, Result};
use crate::pack::arena::Arena;
use crate::pack::concat::{Cursor, Fed};

/// Rows packed group by group: see [`Packing`](super::Packing).
pub type GroupPack<D> = Flowing<D, GroupPackFlow>;

/// Stage implementation of [`GroupPack`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct GroupPackFlow(Arc<GroupPlan>);

impl GroupPackFlow {
    pub(super) fn new(plan: GroupPlan) -> Self {
        Self(Arc::new(plan))
    }

    fn pass<I: DatasetIterator>(&self, parent: I, stage: StageId) -> GroupPackIter<I> {
        GroupPackIter {
            parent: Tracked::new(parent),
            plan: self.0.clone(),
            stage,
            packer: None,
            start: Place::default(),
            pending: None,
            lists: Vec::new(),
            members: Bins::default(),
            planned: PlannedRows::default(),
            open: None,
            rows_before: 0,
            row: 0,
            told: 0,
            notes: Notes::default(),
        }
    }
}

impl Facts for GroupPackFlow {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn params(&self) -> String {
        self.0.to_string()
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
    /// Returns the memory bound: the first element of the next group, and the rows of two groups.
    ///
    /// The memory of the previous group is in use until all of its rows are dropped.
    fn memory(&self) -> Option<Memory> {
        let rows = 2 * self.0.rows_held() as u64;
        Some(Memory::elements(Held::AtMost(1), Held::AtMost(rows)))
    }
    fn check(&self) -> Result<()> {
        self.0.check()
    }
}

impl<I: DatasetIterator<Item = Element>> Flow<I> for GroupPackFlow {
    type Pass = GroupPackIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        Ok(self.pass(parent, stage))
    }

    fn asks(&self, _: &[Name]) -> Vec<Name> {
        self.0.rows().features().map(Name::new).collect()
    }

    fn start_part(&self, parent: Parted<Element, I::State>, at: Start<'_>) -> Result<Option<PartedBy<I, Self>>> {
        if !self.0.is_by_lengths() {
            return Ok(None);
        }
        let by = MadeBy::Group(self.0.clone());
        Ok(plan_rows(parent, at, by, |parent| self.pass(parent, at.stage)))
    }

    fn unplanned(&self) -> &'static str {
        match self.0.is_by_lengths() {
            true => PACKED,
            false => {
                "orders its rows by the mean of a feature (`shuffle_bins_group_by_feature`), and keys contain lengths, not the features"
            }
        }
    }
}

/// Pass over a [`GroupPack`].
#[doc(hidden)]
pub struct GroupPackIter<I: DatasetIterator> {
    parent: Tracked<I>,
    plan: Arc<GroupPlan>,
    stage: StageId,
    /// Columns and kernel, created when the first element shows the dtypes.
    packer: Option<(Columns, Kernel)>,
    /// Start of the group that is open or being yielded.
    start: Place,
    /// Element that did not fit in the last group.
    pending: Option<Pending<I::Item>>,
    /// Values of each listed meta feature, for each bin.
    lists: Vec<Vec<Vec<Value>>>,
    /// Elements of each bin in a plan.
    members: Bins,
    /// Planned rows of the batch under construction. They are kept after an error.
    planned: PlannedRows,
    open: Option<Rows>,
    /// Number of rows in earlier groups.
    rows_before: u64,
    /// Number of rows yielded from the current group.
    row: u64,
    /// Value of `rows_before` at the last update of the report.
    told: u64,
    notes: Notes,
}

/// Position in the parent: an element, and the part of it that is already packed.
#[derive(Clone, Debug, Default)]
struct Place {
    number: u64,
    cut: Cursor,
}

struct Pending<T> {
    element: T,
    place: Place,
}

/// Group that is being yielded.
struct Rows {
    arena: Arc<Arena>,
    /// Remaining rows, as a range of places in the output order.
    left: Range<usize>,
    /// Output order of the rows; `None` for memory order.
    order: Option<Vec<usize>>,
    /// Number of rows in the group.
    rows: u64,
    /// Start of the next group.
    next: Place,
}

/// Position of a [`GroupPackIter`]: the start of its group, and the number of rows yielded from the group.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupPackState<S> {
    /// Position of the first element of the group.
    pub parent: ParentState<S>,
    /// Cut of this element in the previous group: cells per feature, or a number of pieces. Empty if it was not cut.
    pub cut: Cursor,
    /// Number of rows in earlier groups.
    pub rows_before: u64,
    /// Number of rows yielded from this group.
    pub row: u64,
}

impl<I: DatasetIterator<Item: PackItem>> GroupPackIter<I> {
    /// Fills a group; `None` at the end.
    fn fill(&mut self, cx: &mut Cx) -> Result<Option<Rows>> {
        loop {
            if self.pending.is_none()
                && let Some(next) = self.fill_by_rows(cx)?
            {
                return self.close(next, cx);
            }
            let Some(Pending { element, mut place }) = self.read(cx)? else {
                let next = Place { number: self.parent.number(), cut: Cursor::default() };
                return self.close(next, cx);
            };
            let (stage, plan) = (self.stage, &self.plan);
            let (packer, lists, members) = (&mut self.packer, &mut self.lists, &mut self.members);
            let fed = cx.consumed(stage, || {
                let (columns, kernel) = match packer {
                    Some(packer) => packer,
                    None => packer.insert(learn(plan, &element)?),
                };
                columns.check(&element)?;
                let id = element.stand_in().map(StandIn::id).transpose()?;
                let mut listed = Ok(());
                let fed = element.with_cells(&columns.names, |cells| {
                    kernel.offer(cells, &mut place.cut, |bin, part| {
                        if let Some(id) = id {
                            members.push(bin, id, part);
                        } else if columns.lists() && listed.is_ok() {
                            lists.resize_with(lists.len().max(bin + 1), Vec::new);
                            listed = columns.list(&element, &mut lists[bin]);
                        }
                    })
                })??;
                listed.map(|()| fed)
            });
            match fed {
                Ok(Fed::Taken) => {}
                Ok(Fed::Full) => {
                    let rows = self.close(place.clone(), cx);
                    self.pending = Some(Pending { element, place });
                    return rows;
                }
                Err(error) => return Err(cx.blame(stage, plan.name(), error.index(place.number))),
            }
        }
    }

    /// Packs elements that arrive as rows, until the group is full or the parent yields no more rows.
    ///
    /// Returns the start of the next group if the group is full.
    fn fill_by_rows(&mut self, cx: &mut Cx) -> Result<Option<Place>> {
        let Self { parent, plan, stage, packer, start, members, .. } = self;
        let Some((columns, kernel)) = packer else { return Ok(None) };
        let Some(names) = columns.names_of_rows() else { return Ok(None) };
        while let Some(NextRows { ragged, rows, number: first }) = parent.next_rows(names, false, cx) {
            if !columns.takes(ragged) {
                return Ok(None);
            }
            let (mut taken, mut cut) = (0, Cursor::default());
            let fed = cx.consumed_many(*stage, rows.len(), || {
                for (row, number) in rows.zip(first..) {
                    if number == start.number {
                        cut.clone_from(&start.cut)
                    } else {
                        cut.clear()
                    }
                    let id = ragged.ids().map(|ids| ids.elements[row]);
                    let placed = |bin, part: PartOf<'_>| {
                        if let Some(id) = id {
                            members.push(bin, id, part);
                        }
                    };
                    let fed = with_cells_of_row(ragged, row, |cells| kernel.offer(cells, &mut cut, placed));
                    if let Ok(Fed::Full) = fed {
                        return Ok(Some(Place { number, cut }));
                    }
                    taken += 1;
                    fed?;
                }
                Ok(None)
            });
            parent.take(taken);
            match fed {
                Ok(None) => {}
                Ok(next) => return Ok(next),
                Err(error) => return Err(cx.blame(*stage, plan.name(), Error::index(error, parent.number() - 1))),
            }
        }
        Ok(None)
    }

    /// Returns the next element to pack.
    fn read(&mut self, cx: &mut Cx) -> Result<Option<Pending<I::Item>>> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        let number = self.parent.number();
        let Some(element) = self.parent.next(cx)? else { return Ok(None) };
        let cut = if number == self.start.number { self.start.cut.clone() } else { Cursor::default() };
        Ok(Some(Pending { element, place: Place { number, cut } }))
    }

    /// Ends the open group and returns its rows. The next group begins at `next`.
    fn close(&mut self, next: Place, cx: &mut Cx) -> Result<Option<Rows>> {
        let Some((columns, kernel)) = &mut self.packer else { return Ok(None) };
        let group = cx.timed_exactly(self.stage, || kernel.finish());
        if group.is_none() || self.rows_before >= self.told + TELL_EVERY {
            self.notes.tell(kernel.stats(), cx);
            self.told = self.rows_before;
        }
        let Some(group) = group else { return Ok(None) };
        let order = match &*self.plan {
            GroupPlan::Bins(options) => Some(row_order(options, &group, self.rows_before, |at| columns.dtype(at))),
            GroupPlan::Concat(_) => None,
        };
        let rows = group.rows.len() as u64;
        if self.row >= rows && order.is_some() {
            return Err(Error::state(format!("{} rows were taken from a group of {rows}", self.row)));
        }
        let mut left = if order.is_some() { 0..group.rows.len() } else { group.rows };
        // Concatenated rows depend only on their start, so `row` may exceed a group. Grain counts over several groups.
        left.start += self.row.min(rows) as usize;
        Ok(Some(Rows { arena: group.arena, left, order, rows, next }))
    }

    /// Returns the next group with rows left; `None` at the end.
    fn open(&mut self, cx: &mut Cx) -> Result<Option<Rows>> {
        loop {
            match self.fill(cx)? {
                Some(rows) if rows.left.is_empty() => {
                    self.row -= rows.rows;
                    self.leave(rows.rows, rows.next);
                }
                other => return Ok(other),
            }
        }
    }

    /// Moves on after all `rows` rows of a group were yielded. The next group begins at `next`.
    fn leave(&mut self, rows: u64, next: Place) {
        self.rows_before += rows;
        self.parent.forget(next.number);
        self.start = next;
        self.lists.clear();
        self.members.clear();
    }

    /// Returns the bin of the next row, and its group; `None` at the end.
    fn next_bin(&mut self, cx: &mut Cx) -> Result<Option<(usize, Rows)>> {
        let mut rows = match self.open.take() {
            Some(rows) => rows,
            None => match self.open(cx)? {
                Some(rows) => rows,
                None => return Ok(None),
            },
        };
        Ok(rows.left.next().map(|at| (rows.order.as_ref().map_or(at, |order| order[at]), rows)))
    }

    /// Counts a yielded row, and moves on to the next group after the last row of `rows`.
    fn pass_row(&mut self, rows: Rows) {
        self.row += 1;
        if rows.left.is_empty() {
            self.row = 0;
            self.leave(rows.rows, rows.next);
        } else {
            self.open = Some(rows);
        }
    }

    /// Plans rows until `count` rows are planned or the data ends.
    fn plan_rows(&mut self, count: usize, cx: &mut Cx) -> Result<()> {
        while self.planned.len() < count {
            let Some((bin, rows)) = self.next_bin(cx)? else { break };
            self.members.row(bin, &mut self.planned);
            self.pass_row(rows);
        }
        Ok(())
    }

    /// Returns row number `row` of a group that was written to `arena`.
    fn written_row(&mut self, row: usize, arena: &Arc<Arena>) -> Result<Option<InPlace<Element>>> {
        let Some((columns, _)) = &self.packer else {
            return Err(Error::state("a row of a group that was never begun"));
        };
        let lists = self.lists.get_mut(row).map(std::mem::take).unwrap_or_default();
        let batch = columns.row(arena, row, lists)?;
        Ok(Some(InPlace { len: 1, bytes: batch.nbytes(), batch }))
    }

    /// Returns the planned row of a bin.
    fn planned_row(&mut self, bin: usize) -> Option<InPlace<StandIn>> {
        self.members.row(bin, &mut self.planned);
        self.planned.take_batch()
    }
}

fn learn<T: PackItem>(plan: &GroupPlan, first: &T) -> Result<(Columns, Kernel)> {
    let (columns, features) = Columns::learn(plan.rows(), first)?;
    let kernel = plan.kernel(&columns, &features)?;
    Ok((columns, kernel))
}

impl<I: DatasetIterator<Item: PackItem>> DatasetIterator for GroupPackIter<I> {
    type Item = I::Item;
    type State = GroupPackState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        let Some((bin, rows)) = self.next_bin(cx)? else { return Ok(None) };
        let row = I::Item::output(self, |pass| pass.written_row(bin, &rows.arena), |pass| pass.planned_row(bin))?;
        self.pass_row(rows);
        cx.produced(self.stage, 1, row.as_ref().map_or(0, |row| row.bytes as u64));
        Ok(row.map(|row| row.batch))
    }

    /// Returns up to `rows` planned rows at once.
    fn next_stacked(&mut self, rows: usize, cx: &mut Cx) -> NextStacked<I::Item> {
        if !I::Item::IS_PLANNED || rows == 0 {
            return None;
        }
        if let Err(error) = self.plan_rows(rows, cx) {
            return Some(Err(error));
        }
        let batch = I::Item::output(self, |_| Ok(None), |pass| pass.planned.take_batch());
        if let Ok(Some(batch)) = &batch {
            cx.produced(self.stage, batch.len as u64, 0);
        }
        Some(batch)
    }

    fn state(&self) -> Self::State {
        GroupPackState {
            parent: self.parent.position(self.start.number),
            cut: self.start.cut.clone(),
            rows_before: self.rows_before,
            row: self.row,
        }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        let GroupPackState { parent, cut, rows_before, row } = state;
        self.start = Place { number: parent.number, cut };
        self.parent.restore(parent, cx)?;
        (self.pending, self.open, self.rows_before, self.row) = (None, None, rows_before, row);
        (self.packer, self.told, self.notes) = (None, rows_before, Notes::default());
        self.lists.clear();
        self.members.clear();
        self.planned.clear();
        Ok(())
    }
}

debug_as!(<I: DatasetIterator> GroupPackIter<I>, |self, f| {
    f.debug_struct("GroupPackIter").field("plan", &self.plan).finish_non_exhaustive()
});
