//! Best fit over a look-ahead window, as a stage.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::columns::Columns;
use super::notes::Notes;
use super::options::WindowPackOptions;
use super::tracked::{ParentState, Tracked};
use crate::cx::{Cx, StageId};
use crate::dataset::{self, DatasetIterator, IterDataset, Memory, Role, Stage, stage_after};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::pack::feature::{Feature, piece_range};
use crate::pack::group::{GroupOptions, GroupPacker};
use crate::pack::held::{Held, HeldState};
use crate::pack::stats::PackStats;
use crate::pack::window::WindowPacker;

const NAME: &str = "window_pack";
/// Rows between two reports of what was counted.
const TELL_EVERY: u64 = 64;

/// Packed rows from a look-ahead window: see [`Packing::window_pack`](super::Packing::window_pack).
#[must_use = "datasets are lazy and do nothing until read"]
pub struct WindowPack<D> {
    parent: D,
    options: Arc<WindowPackOptions>,
    stage: StageId,
}

impl<D: Stage> WindowPack<D> {
    pub(super) fn new(parent: D, options: WindowPackOptions) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, options: Arc::new(options), stage }
    }
}

impl<D: Stage> Stage for WindowPack<D> {
    fn name(&self) -> &'static str {
        NAME
    }
    fn params(&self) -> String {
        self.options.to_string()
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    /// The window; the row that is written, and one before that is still looked at.
    fn memory(&self) -> Option<Memory> {
        Some(Memory::elements(dataset::Held::AtMost(self.options.window.window as u64), dataset::Held::AtMost(2)))
    }
    fn check(&self) -> Result<()> {
        self.options.check()
    }
}

impl<D: IterDataset<Item = Element>> IterDataset for WindowPack<D> {
    type Item = Element;
    type Iter = WindowPackIter<D::Iter>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        Ok(WindowPackIter {
            parent: Tracked::new(self.parent.iter(run)?),
            options: self.options.clone(),
            stage: self.stage,
            packer: None,
            restored: HeldState::default(),
            first_piece: 0,
            entering: None,
            slots: VecDeque::new(),
            ended: false,
            rows: 0,
            notes: Notes::default(),
        })
    }
}

/// A pass over a [`WindowPack`].
pub struct WindowPackIter<I: DatasetIterator> {
    parent: Tracked<I>,
    options: Arc<WindowPackOptions>,
    stage: StageId,
    /// Made when the first element shows the dtypes.
    packer: Option<Packer>,
    /// Where the window of a restored state is, until the first element comes.
    restored: HeldState,
    /// Pieces of the next element that are behind the window of a restored state.
    first_piece: u64,
    /// The element whose pieces enter the window.
    entering: Option<Entering>,
    /// Sequences of the window by ordinal, from its oldest on.
    slots: VecDeque<Slot>,
    ended: bool,
    rows: u64,
    notes: Notes,
}

struct Packer {
    columns: Columns,
    features: Vec<Feature>,
    planner: WindowPacker,
    /// Writes one row at a time.
    writer: GroupPacker,
    row: Vec<u64>,
    lens: Vec<usize>,
}

struct Entering {
    element: Element,
    number: u64,
    piece: u64,
    pieces: u64,
}

struct Slot {
    /// `None` once it is in a row.
    element: Option<Element>,
    number: u64,
    piece: u64,
}

/// Where a [`WindowPackIter`] is: the oldest sequence of the window, and which of those behind it are in rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowPackState<S> {
    /// The element that the oldest sequence is of.
    pub parent: ParentState<S>,
    /// Which piece of it, if it was split.
    pub piece: u64,
    /// The window.
    pub window: HeldState,
}

impl Packer {
    fn learn(options: &WindowPackOptions, restored: &HeldState, first: &Element) -> Result<Self> {
        let (columns, features) = Columns::learn(&options.rows, first)?;
        let mut planner = WindowPacker::new(&features, options.window)?;
        planner.restore(restored)?;
        let one_row = GroupOptions { over_long: options.window.over_long, ..GroupOptions::new(1) };
        let writer = GroupPacker::new(&features, one_row)?;
        Ok(Self { columns, writer, planner, features, row: Vec::new(), lens: Vec::new() })
    }

    /// Lets one piece of an element into the window.
    fn push(&mut self, entering: Entering) -> Result<Slot> {
        let Entering { element, number, piece, .. } = entering;
        self.columns.lens(&element, &mut self.lens)?;
        for (feature, len) in self.features.iter().zip(&mut self.lens) {
            *len = piece_range(feature, *len, piece as usize).len();
        }
        let held = self.planner.push(&self.lens)?.is_some();
        Ok(Slot { element: held.then_some(element), number, piece })
    }

    /// Plans and writes the next row.
    fn row(&mut self, slots: &mut VecDeque<Slot>, ended: bool) -> Result<Option<Element>> {
        let oldest = self.planner.oldest();
        let Some(row) = self.planner.next_row(ended) else { return Ok(None) };
        self.row.clear();
        self.row.extend_from_slice(row);
        let mut lists = Vec::new();
        for ordinal in &self.row {
            let slot = &mut slots[(ordinal - oldest) as usize];
            let element = slot.element.take().ok_or_else(|| Error::state(format!("sequence {ordinal} is not held")))?;
            let (writer, piece) = (&mut self.writer, slot.piece as usize);
            self.columns.with_cells(&element, |cells| writer.push_piece(cells, piece))?;
            if self.columns.lists() {
                self.columns.list(&element, &mut lists)?;
            }
        }
        slots.drain(..((self.planner.oldest() - oldest) as usize).min(slots.len()));
        let Some(group) = self.writer.finish() else { return Ok(None) };
        self.columns.row(&group.arena, 0, lists).map(Some)
    }

    /// The planner counts what is split and dropped, the writer what is written.
    fn stats(&self) -> PackStats {
        let PackStats { splits, dropped, dropped_tokens, .. } = self.planner.stats();
        PackStats { splits, dropped, dropped_tokens, ..self.writer.stats() }
    }
}

impl<I: DatasetIterator<Item = Element>> WindowPackIter<I> {
    /// Reads until the window is full or the data ends.
    fn fill(&mut self, cx: &mut Cx) -> Result<()> {
        while !(self.ended || self.packer.as_ref().is_some_and(|packer| packer.planner.is_full())) {
            if self.entering.is_none() {
                let number = self.parent.number();
                match self.parent.next(cx)? {
                    Some(element) => self.enter(element, number, cx)?,
                    None => self.ended = true,
                }
                continue;
            }
            let (Some(piece), Some(packer)) = (self.next_piece(), &mut self.packer) else { continue };
            let number = piece.number;
            match cx.consumed(self.stage, || packer.push(piece)) {
                Ok(slot) => self.slots.push_back(slot),
                Err(error) => return Err(self.blame(error, number, cx)),
            }
        }
        Ok(())
    }

    /// The next piece of the element that enters; its last one takes the element along.
    fn next_piece(&mut self) -> Option<Entering> {
        let mut now = self.entering.take_if(|now| now.piece + 1 >= now.pieces).filter(|now| now.piece < now.pieces);
        if let Some(entering) = &mut self.entering {
            let Entering { element, number, piece, pieces } = &*entering;
            now = Some(Entering { element: element.clone(), number: *number, piece: *piece, pieces: *pieces });
            entering.piece += 1;
        }
        now
    }

    /// Finds out how many sequences an element is.
    fn enter(&mut self, element: Element, number: u64, cx: &mut Cx) -> Result<()> {
        let pieces = self.pieces(&element).map_err(|e| cx.blame(self.stage, NAME, e.index(number)))?;
        let piece = std::mem::take(&mut self.first_piece);
        self.entering = Some(Entering { element, number, piece, pieces });
        Ok(())
    }

    fn pieces(&mut self, element: &Element) -> Result<u64> {
        let packer = match &mut self.packer {
            Some(packer) => packer,
            None => self.packer.insert(Packer::learn(&self.options, &self.restored, element)?),
        };
        // The first look at the element: are its dtypes and shapes those of the others?
        packer.columns.with_cells(element, |_| Ok(()))?;
        packer.columns.lens(element, &mut packer.lens)?;
        Ok(packer.planner.pieces(&packer.lens)? as u64)
    }

    /// An error takes the element along that it is about.
    #[cold]
    fn blame(&mut self, error: Error, number: u64, cx: &Cx) -> Error {
        self.entering = None;
        cx.blame(self.stage, NAME, error.index(number))
    }

    /// The element and piece of the oldest sequence, or of the next one if the window is empty.
    fn front(&self) -> (u64, u64) {
        match (self.slots.front(), &self.entering) {
            (Some(slot), _) => (slot.number, slot.piece),
            (None, Some(entering)) if entering.piece < entering.pieces => (entering.number, entering.piece),
            _ => (self.parent.number(), self.first_piece),
        }
    }
}

impl<I: DatasetIterator<Item = Element>> DatasetIterator for WindowPackIter<I> {
    type Item = Element;
    type State = WindowPackState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Element>> {
        self.fill(cx)?;
        let Some(packer) = &mut self.packer else { return Ok(None) };
        let (slots, ended) = (&mut self.slots, self.ended);
        let row = cx.timed_exactly(self.stage, || packer.row(slots, ended));
        let row = row.map_err(|e| cx.blame(self.stage, NAME, e))?;
        self.rows += 1;
        if row.is_none() || self.rows.is_multiple_of(TELL_EVERY) {
            self.notes.tell(packer.stats(), cx);
        }
        self.parent.forget(self.front().0);
        if let Some(row) = &row {
            cx.produced(self.stage, 1, row.nbytes() as u64);
        }
        Ok(row)
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
        self.slots.clear();
        Ok(())
    }
}

impl<D: fmt::Debug> fmt::Debug for WindowPack<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowPack")
            .field("parent", &self.parent)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<I: DatasetIterator> fmt::Debug for WindowPackIter<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowPackIter").field("options", &self.options).finish_non_exhaustive()
    }
}
