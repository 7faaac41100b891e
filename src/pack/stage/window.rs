//! Stage for best fit over a look-ahead window.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::item::PackItem;
use super::made::{MadeBy, plan_rows};
use super::notes::{Notes, TELL_EVERY};
use super::options::WindowPackOptions;
use super::packer::{Entering, Packer, Slot};
use super::plan::PACKED;
use super::sequences::Sequences;
use super::tracked::{NextRows, ParentState, Tracked};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::{Flow, Flowing, InPlace, NextStacked, Parted, PartedBy, Start};
use crate::dataset::{self, DatasetIterator, Facts, Memory, Role};
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::pack::held::{Held, HeldState};

const NAME: &str = "window_pack";

/// Rows packed from a look-ahead window: see [`Packing::window_pack`](super::Packing::window_pack).
pub type WindowPack<D> = Flowing<D, WindowPackFlow>;

/// Stage implementation of [`WindowPack`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct WindowPackFlow(Arc<WindowPackOptions>);

impl WindowPackFlow {
    pub(super) fn new(options: WindowPackOptions) -> Self {
        Self(Arc::new(options))
    }

    fn pass<I: DatasetIterator>(&self, parent: I, stage: StageId) -> WindowPackIter<I> {
        WindowPackIter {
            parent: Tracked::new(parent),
            options: self.0.clone(),
            stage,
            packer: None,
            restored: HeldState::default(),
            first_piece: 0,
            entering: None,
            ended: false,
            rows: 0,
            told: 0,
            notes: Notes::default(),
        }
    }
}

impl Facts for WindowPackFlow {
    fn name(&self) -> &'static str {
        NAME
    }
    fn params(&self) -> String {
        self.0.to_string()
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
    /// Returns the memory bound: the cells of the window in blocks, the current row, and a previous row still in use.
    fn memory(&self) -> Option<Memory> {
        let window = dataset::Held::AtMost(self.0.window.window as u64);
        let elements = Memory::elements(window, dataset::Held::AtMost(2));
        Some(Memory { bytes: Sequences::<Slot>::MOST_UNUSED as u64, ..elements })
    }
    fn check(&self) -> Result<()> {
        self.0.check()
    }
}

impl<I: DatasetIterator<Item = Element>> Flow<I> for WindowPackFlow {
    type Pass = WindowPackIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        Ok(self.pass(parent, stage))
    }

    fn asks(&self, _: &[Name]) -> Vec<Name> {
        self.0.rows.features().map(Name::new).collect()
    }

    fn start_part(&self, parent: Parted<Element, I::State>, at: Start<'_>) -> Result<Option<PartedBy<I, Self>>> {
        let by = MadeBy::Window(self.0.clone());
        Ok(plan_rows(parent, at, by, |parent| self.pass(parent, at.stage)))
    }

    fn unplanned(&self) -> &'static str {
        PACKED
    }
}

/// Pass over a [`WindowPack`].
#[doc(hidden)]
pub struct WindowPackIter<I: DatasetIterator> {
    parent: Tracked<I>,
    options: Arc<WindowPackOptions>,
    stage: StageId,
    /// Packer, created when the first element shows the dtypes.
    packer: Option<Packer>,
    /// Position of the window in a restored state, until the first element arrives.
    restored: HeldState,
    /// Pieces of the next element that precede the window of a restored state.
    first_piece: u64,
    /// Element whose pieces enter the window.
    entering: Option<Entering<I::Item>>,
    ended: bool,
    rows: u64,
    /// Value of `rows` at the last update of the report.
    told: u64,
    notes: Notes,
}

/// Position of a [`WindowPackIter`].
///
/// Contains the oldest sequence of the window, and a bitmap of the later sequences already in rows.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowPackState<S> {
    /// Position of the element that contains the oldest sequence.
    pub parent: ParentState<S>,
    /// Piece number of the oldest sequence; 0 if its element was not split.
    pub piece: u64,
    /// Position of the window.
    pub window: HeldState,
}

impl<I: DatasetIterator<Item: PackItem>> WindowPackIter<I> {
    /// Reads until the window is full or the data ends.
    fn fill(&mut self, cx: &mut Cx) -> Result<()> {
        while !(self.ended || self.packer.as_ref().is_some_and(|packer| packer.planner.is_full())) {
            if self.entering.is_none() {
                self.fill_by_rows(cx)?;
                if self.entering.is_some() || self.packer.as_ref().is_some_and(|packer| packer.planner.is_full()) {
                    continue;
                }
                let number = self.parent.number();
                match self.parent.next(cx)? {
                    Some(element) => self.enter(element, number, cx)?,
                    None => self.ended = true,
                }
                continue;
            }
            let (Some(piece), Some(packer)) = (self.next_piece(), &mut self.packer) else { continue };
            let number = piece.number;
            if let Err(error) = cx.consumed(self.stage, || packer.push(&piece)) {
                return Err(self.blame(error, number, cx));
            }
        }
        Ok(())
    }

    /// Adds elements that arrive as rows, until the window is full or a row must be split.
    ///
    /// The row to split then [enters](Self::enter) as an element.
    fn fill_by_rows(&mut self, cx: &mut Cx) -> Result<()> {
        let Self { parent, stage, packer, first_piece, entering, .. } = self;
        let Some(packer) = packer.as_mut().filter(|_| *first_piece == 0 && entering.is_none()) else { return Ok(()) };
        let Some(names) = packer.columns.names_of_rows().cloned() else { return Ok(()) };
        while !packer.planner.is_full()
            && let Some(NextRows { ragged, rows, number: first }) = parent.next_rows(&names, true, cx)
        {
            if !packer.columns.takes(ragged) {
                return Ok(());
            }
            let mut taken = 0;
            let pushed = cx.consumed_many(*stage, rows.len(), || {
                let pieces = match I::Item::IS_PLANNED {
                    true => packer.push_planned(ragged, rows.clone(), first, &mut taken)?,
                    false => packer.push_rows(ragged, rows.clone(), first, &mut taken)?,
                };
                let Some(pieces) = pieces else { return Ok(None) };
                let (row, number) = (rows.start + taken - 1, first + taken as u64 - 1);
                Ok(Some(Entering { element: I::Item::of_row(ragged, &names, row)?, number, piece: 0, pieces }))
            });
            parent.take(taken);
            match pushed {
                Ok(None) => {}
                Ok(enters) => {
                    *entering = enters;
                    return Ok(());
                }
                Err(error) => return Err(cx.blame(*stage, NAME, Error::index(error, parent.number() - 1))),
            }
        }
        Ok(())
    }

    /// Returns the next piece of the entering element. Clears `entering` at the last piece.
    fn next_piece(&mut self) -> Option<Entering<I::Item>> {
        let mut now = self.entering.take_if(|now| now.piece + 1 >= now.pieces).filter(|now| now.piece < now.pieces);
        if let Some(entering) = &mut self.entering {
            let Entering { element, number, piece, pieces } = &*entering;
            now = Some(Entering { element: element.clone(), number: *number, piece: *piece, pieces: *pieces });
            entering.piece += 1;
        }
        now
    }

    /// Sets `entering` to an element, with its number of pieces.
    fn enter(&mut self, element: I::Item, number: u64, cx: &mut Cx) -> Result<()> {
        let pieces = self.pieces(&element).map_err(|e| cx.blame(self.stage, NAME, e.index(number)))?;
        let piece = std::mem::take(&mut self.first_piece);
        if piece > pieces {
            let text = format!("the state is after piece {piece}, but the element has {pieces}");
            return Err(cx.blame(self.stage, NAME, Error::state(text).index(number)));
        }
        self.entering = Some(Entering { element, number, piece, pieces });
        Ok(())
    }

    fn pieces(&mut self, element: &I::Item) -> Result<u64> {
        let packer = match &mut self.packer {
            Some(packer) => packer,
            None => self.packer.insert(Packer::learn(&self.options, &self.restored, element)?),
        };
        // First access to the element: checks its dtypes and shapes against the first element.
        packer.columns.check(element)?;
        packer.columns.lens(element, &mut packer.lens)?;
        Ok(packer.planner.pieces(&packer.lens)? as u64)
    }

    /// Writes the next row after the rows under construction. Returns `false` at the end.
    fn write_row(&mut self, cx: &mut Cx) -> Result<bool> {
        let Some(packer) = &mut self.packer else { return Ok(false) };
        let ended = self.ended;
        let written = cx.timed_exactly(self.stage, || packer.write_row(ended));
        let written = written.map_err(|e| cx.blame(self.stage, NAME, e))?;
        self.rows += u64::from(written);
        self.parent.forget(self.front().0);
        Ok(written)
    }

    /// Returns up to `rows` rows in the memory of a single batch. After an error, earlier rows stay for the next call.
    fn next_batch(&mut self, rows: usize, cx: &mut Cx) -> Result<Option<InPlace<I::Item>>> {
        while self.packer.as_ref().is_some_and(|packer| packer.waiting() < rows) {
            self.fill(cx)?;
            if !self.write_row(cx)? {
                break;
            }
        }
        let Some(packer) = &mut self.packer else { return Ok(None) };
        let batch = I::Item::output(packer, Packer::written_rows, Packer::planned);
        let batch = batch.map_err(|e| cx.blame(self.stage, NAME, e))?;
        if let Some(batch) = &batch {
            cx.produced(self.stage, batch.len as u64, batch.bytes as u64);
        }
        self.tell(batch.as_ref().is_none_or(|batch| batch.len < rows), cx);
        Ok(batch)
    }

    /// Adds the counts to the report, at the end and every `TELL_EVERY` rows.
    fn tell(&mut self, ended: bool, cx: &mut Cx) {
        if let Some(packer) = self.packer.as_ref().filter(|_| ended || self.rows >= self.told + TELL_EVERY) {
            self.notes.tell(packer.stats(), cx);
            self.told = self.rows;
        }
    }

    /// Drops the failed element, and adds its number and the stage to the error.
    #[cold]
    fn blame(&mut self, error: Error, number: u64, cx: &Cx) -> Error {
        self.entering = None;
        cx.blame(self.stage, NAME, error.index(number))
    }

    /// Returns the element and piece of the oldest sequence, or of the next sequence if the window is empty.
    fn front(&self) -> (u64, u64) {
        match (self.packer.as_ref().and_then(Packer::front), &self.entering) {
            (Some(oldest), _) => oldest,
            (None, Some(entering)) if entering.piece < entering.pieces => (entering.number, entering.piece),
            _ => (self.parent.number(), self.first_piece),
        }
    }
}

impl<I: DatasetIterator<Item: PackItem>> DatasetIterator for WindowPackIter<I> {
    type Item = I::Item;
    type State = WindowPackState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        self.fill(cx)?;
        let Some(packer) = &mut self.packer else { return Ok(None) };
        if packer.waiting() > 0 || !packer.batches(1)? {
            return Err(cx.blame(self.stage, NAME, Error::state("a row is requested in the middle of a batch")));
        }
        self.write_row(cx)?;
        let Some(packer) = &mut self.packer else { return Ok(None) };
        let row = I::Item::output(packer, Packer::written_row, Packer::planned);
        let row = row.map_err(|e| cx.blame(self.stage, NAME, e))?;
        if let Some(row) = &row {
            cx.produced(self.stage, 1, row.bytes as u64);
        }
        self.tell(row.is_none(), cx);
        Ok(row.map(|row| row.batch))
    }

    fn next_stacked(&mut self, rows: usize, cx: &mut Cx) -> NextStacked<I::Item> {
        if let Err(error) = self.fill(cx) {
            return Some(Err(error));
        }
        match self.packer.as_mut().map(|packer| packer.batches(rows)) {
            None => Some(Ok(None)),
            Some(Ok(true)) => Some(self.next_batch(rows, cx)),
            Some(Ok(false)) | Some(Err(_)) => None,
        }
    }

    fn state(&self) -> Self::State {
        let (number, piece) = self.front();
        let window = self.packer.as_ref().map_or_else(|| self.restored.clone(), |packer| packer.planner.state());
        WindowPackState { parent: self.parent.position(number), piece, window }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        Held::new(self.options.window.window).restore(&state.window)?;
        self.parent.restore(state.parent, cx)?;
        (self.packer, self.notes) = (None, Notes::default());
        (self.restored, self.first_piece) = (state.window, state.piece);
        (self.entering, self.ended) = (None, false);
        Ok(())
    }
}

debug_as!(<I: DatasetIterator> WindowPackIter<I>, |self, f| {
    f.debug_struct("WindowPackIter").field("options", &self.options).finish_non_exhaustive()
});
