//! Rows that were planned elsewhere, made of their elements.

use std::sync::Arc;

use super::columns::Columns;
use super::options::WindowPackOptions;
use super::plan::GroupPlan;
use super::rows::RowSpec;
use crate::cx::{Cx, StageId};
use crate::dataset::plan::{Again, Make, Member, Segments};
use crate::element::{Element, Value};
use crate::error::{Error, Result};
use crate::exec::Failed;
use crate::pack::concat::ConcatThenSplit;
use crate::pack::feature::{Feature, piece_range};
use crate::pack::writer::RowWriter;

/// The stage whose rows are made.
pub(super) enum MadeBy {
    Group(Arc<GroupPlan>),
    Window(Arc<WindowPackOptions>),
}

impl MadeBy {
    fn name(&self) -> &'static str {
        match self {
            Self::Group(plan) => plan.name(),
            Self::Window(_) => "window_pack",
        }
    }

    fn rows(&self) -> &RowSpec {
        match self {
            Self::Group(plan) => plan.rows(),
            Self::Window(options) => &options.rows,
        }
    }

    fn writer(&self, columns: &Columns, features: &[Feature]) -> Result<Writer> {
        Ok(match self {
            Self::Group(plan) => match &**plan {
                GroupPlan::Concat(options) => {
                    let options = options.kernel(|at| columns.dtype(at), features)?;
                    Writer::Parts(Box::new(ConcatThenSplit::new(features, options)?))
                }
                GroupPlan::Bins(_) => Writer::Pieces(Box::new(RowWriter::new(features, 1)?)),
            },
            Self::Window(_) => Writer::Pieces(Box::new(RowWriter::new(features, 1)?)),
        })
    }
}

/// Writes one row, by the code that writes those of a pass over all.
enum Writer {
    Pieces(Box<RowWriter>),
    Parts(Box<ConcatThenSplit>),
}

impl Writer {
    /// Writes the part of an element that `cut` is.
    fn write(&mut self, cells: &[&[u8]], cut: Option<&[u64]>) -> Result<()> {
        match self {
            Self::Pieces(writer) => writer.write(0, cells, piece(cut)),
            Self::Parts(writer) => {
                let (from, takes) = from_and_takes(cut);
                writer.write_part(cells, &from, &takes)
            }
        }
    }

    /// Leaves the place of that part of an element of so many cells as padding.
    fn leave(&mut self, lens: &[u32], cut: Option<&[u64]>) -> Result<()> {
        match self {
            Self::Pieces(writer) => {
                let lens: Vec<usize> = lens.iter().map(|&len| len as usize).collect();
                writer.leave(0, &lens, piece(cut))
            }
            Self::Parts(writer) => writer.leave_part(&from_and_takes(cut).1),
        }
    }

    fn finish(&mut self, columns: &Columns, lists: Vec<Vec<Value>>) -> Result<Element> {
        let group = match self {
            Self::Pieces(writer) => writer.finish(),
            Self::Parts(writer) => writer.finish(),
        };
        match group {
            Some(group) => columns.row(&group.arena, group.rows.start, lists),
            None => Err(no_element()),
        }
    }
}

/// The number of the piece that a cut is.
fn piece(cut: Option<&[u64]>) -> usize {
    cut.and_then(<[u64]>::first).map_or(0, |&piece| piece as usize)
}

/// The first cell of each feature that a cut has, and their number.
fn from_and_takes(cut: Option<&[u64]>) -> (Vec<usize>, Vec<usize>) {
    let mut from: Vec<usize> = cut.unwrap_or_default().iter().map(|&number| number as usize).collect();
    let takes = from.split_off(from.len() / 2);
    (from, takes)
}

#[cold]
fn no_element() -> Error {
    Error::state("a row was planned of no element")
}

/// An element that is cut: its border, index and piece.
type Whole = (u32, u64, u32);

/// Makes packed rows. An element that is cut over several of them is made once, where they are near each other.
pub(super) struct MakeRows {
    make: Box<dyn Make<Element>>,
    by: MadeBy,
    /// The features as rows are planned.
    counted: Vec<Feature>,
    /// Made when the first element shows the dtypes.
    learned: Option<(Columns, Writer)>,
    /// Elements that are cut; none of those that have failed.
    again: Again<Whole, Option<Element>>,
    stage: StageId,
}

fn whole(member: &Member) -> Option<Whole> {
    member.cut.as_ref().map(|_| (member.leaf, member.slot, member.piece))
}

impl MakeRows {
    pub(super) fn new(make: Box<dyn Make<Element>>, by: MadeBy, stage: StageId) -> Self {
        // What the features cannot be, the plan says, which counts by the same ones.
        let counted = by.rows().resolve_counted().unwrap_or_default();
        Self { make, by, counted, learned: None, again: Again::default(), stage }
    }

    /// Makes an element, unless it is kept; `None` if it has failed.
    fn element(&mut self, member: &Member, failed: &Failed, cx: &mut Cx) -> Result<Option<Element>> {
        let whole = whole(member);
        if let Some(kept) = whole.and_then(|whole| self.again.get(&whole).cloned()) {
            whole.iter().for_each(|whole| self.again.used(whole));
            return Ok(kept);
        }
        let element = self.make.make(std::slice::from_ref(member), failed, cx)?;
        if let Some(whole) = whole {
            self.again.put(whole, element.clone());
            self.again.used(&whole);
        }
        Ok(element)
    }

    /// Learns from an element what rows are made of, if that is not known.
    fn learn(&mut self, element: &Element) -> Result<&mut (Columns, Writer)> {
        match &mut self.learned {
            Some(learned) => Ok(learned),
            none => {
                let (columns, features) = Columns::learn(self.by.rows(), element)?;
                let writer = self.by.writer(&columns, &features)?;
                Ok(none.insert((columns, writer)))
            }
        }
    }

    /// Writes an element into the row under way, and lists its meta features.
    fn write(&mut self, element: &Element, cut: Option<&[u64]>, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        let (columns, writer) = self.learn(element)?;
        columns.check(element)?;
        if columns.lists() {
            columns.list(element, lists)?;
        }
        columns.with_cells(element, |cells| writer.write(cells, cut))
    }

    /// Leaves the place of an element that has failed as padding.
    fn leave(&mut self, member: &Member, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        if self.learned.is_none() {
            let sample = self.make.sample(std::slice::from_ref(member))?.ok_or_else(|| no_sample(member))?;
            self.learn(&sample)?;
        }
        let mut lens = Vec::new();
        self.make.lens(member, &mut lens)?;
        let Some((columns, writer)) = &mut self.learned else { return Err(no_element()) };
        columns.list_nothing(lists);
        writer.leave(&lens, member.cut.as_deref())
    }

    /// Makes an element of the row under way, and writes it.
    fn add(&mut self, member: &Member, lists: &mut Vec<Vec<Value>>, failed: &Failed, cx: &mut Cx) -> Result<()> {
        let element = self.element(member, failed, cx)?;
        let written = cx.consumed(self.stage, || match &element {
            Some(element) => self.write(element, member.cut.as_deref(), lists),
            None => self.leave(member, lists),
        });
        written.map_err(|error| cx.blame(self.stage, self.by.name(), error))
    }

    fn finish(&mut self, lists: Vec<Vec<Value>>) -> Result<Element> {
        match &mut self.learned {
            Some((columns, writer)) => writer.finish(columns, lists),
            None => Err(no_element()),
        }
    }
}

/// The error where padding cannot be made like any element.
#[cold]
fn no_sample(member: &Member) -> Error {
    let text = "it has failed, and so have those behind it, from which it would show what its padding is like";
    Error::data(text).index(member.slot)
}

impl Make<Element> for MakeRows {
    fn expect(&mut self, recipe: &[Member]) {
        for member in recipe {
            if whole(member).is_none_or(|whole| self.again.expect(whole, None, |_| true)) {
                self.make.expect(std::slice::from_ref(member));
            }
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<Element>> {
        let mut lists = Vec::new();
        for member in recipe {
            if let Err(error) = self.add(member, &mut lists, failed, cx) {
                // What is in the row already is in the way of the next.
                self.learned = None;
                return Err(error);
            }
        }
        let row = cx.timed_exactly(self.stage, || self.finish(lists));
        let row = row.map_err(|error| cx.blame(self.stage, self.by.name(), error))?;
        cx.produced(self.stage, 0, row.nbytes() as u64);
        Ok(Some(row))
    }

    fn find_segments(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Option<Segments> {
        self.by.rows().find_segments(is_it)
    }

    fn segments(&self, recipe: &[Member], of: &Segments) -> Result<Vec<u64>> {
        let feature = self.counted.get(of.feature);
        let feature = feature.ok_or_else(|| Error::state(format!("no feature is number {}", of.feature)))?;
        let (mut all, mut lens) = (Vec::with_capacity(recipe.len()), Vec::new());
        for member in recipe {
            lens.clear();
            self.make.lens(member, &mut lens)?;
            let len = lens.get(of.feature).map_or(0, |&len| len as usize);
            let cells = match (&self.by, member.cut.as_deref()) {
                (MadeBy::Group(plan), cut) if plan.is_concat() => {
                    from_and_takes(cut).1.get(of.feature).copied().unwrap_or_default()
                }
                (_, cut) => piece_range(feature, len, piece(cut)).len(),
            };
            all.push(cells.saturating_sub(usize::from(of.of_targets)) as u64);
        }
        Ok(all)
    }

    fn forget(&mut self) -> Result<()> {
        self.again.forget();
        self.make.forget()
    }
}
