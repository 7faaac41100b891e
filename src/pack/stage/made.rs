//! Rows that were planned elsewhere, made of their elements.

use std::sync::Arc;

use super::columns::Columns;
use super::options::WindowPackOptions;
use super::plan::GroupPlan;
use super::rows::RowSpec;
use crate::cx::{Cx, StageId};
use crate::dataset::plan::{Make, Member};
use crate::element::{Element, Value};
use crate::error::{Error, Result};
use crate::pack::concat::ConcatThenSplit;
use crate::pack::feature::Feature;
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
            Self::Pieces(writer) => {
                writer.write(0, cells, cut.and_then(<[u64]>::first).map_or(0, |&piece| piece as usize))
            }
            Self::Parts(writer) => {
                let cut: Vec<usize> = cut.unwrap_or_default().iter().map(|&number| number as usize).collect();
                let (from, takes) = cut.split_at(cut.len() / 2);
                writer.write_part(cells, from, takes)
            }
        }
    }

    fn finish(&mut self, columns: &Columns, lists: Vec<Vec<Value>>) -> Result<Element> {
        let group = match self {
            Self::Pieces(writer) => writer.finish(),
            Self::Parts(writer) => writer.finish(),
        };
        match group {
            Some(group) => columns.row(&group.arena, group.rows.start, lists),
            None => Err(Error::state("a row was planned of no element")),
        }
    }
}

/// Makes packed rows.
pub(super) struct MakeRows {
    make: Box<dyn Make<Element>>,
    by: MadeBy,
    /// Made when the first element shows the dtypes.
    learned: Option<(Columns, Writer)>,
    stage: StageId,
}

impl MakeRows {
    pub(super) fn new(make: Box<dyn Make<Element>>, by: MadeBy, stage: StageId) -> Self {
        Self { make, by, learned: None, stage }
    }

    /// Writes an element into the row under way, and lists its meta features.
    fn write(&mut self, element: &Element, cut: Option<&[u64]>, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        let (columns, writer) = match &mut self.learned {
            Some(learned) => learned,
            None => {
                let (columns, features) = Columns::learn(self.by.rows(), element)?;
                let writer = self.by.writer(&columns, &features)?;
                self.learned.insert((columns, writer))
            }
        };
        columns.check(element)?;
        if columns.lists() {
            columns.list(element, lists)?;
        }
        columns.with_cells(element, |cells| writer.write(cells, cut))
    }

    fn finish(&mut self, lists: Vec<Vec<Value>>) -> Result<Element> {
        match &mut self.learned {
            Some((columns, writer)) => writer.finish(columns, lists),
            None => Err(Error::state("a row was planned of no element")),
        }
    }
}

impl Make<Element> for MakeRows {
    fn expect(&mut self, recipe: &[Member]) {
        recipe.iter().for_each(|member| self.make.expect(std::slice::from_ref(member)));
    }

    fn make(&mut self, recipe: &[Member], cx: &mut Cx) -> Result<Element> {
        let mut lists = Vec::new();
        for member in recipe {
            let element = self.make.make(std::slice::from_ref(member), cx);
            let written = element.and_then(|element| {
                let write = cx.consumed(self.stage, || self.write(&element, member.cut.as_deref(), &mut lists));
                write.map_err(|error| cx.blame(self.stage, self.by.name(), error))
            });
            if let Err(error) = written {
                // What is in the row already is in the way of the next.
                self.learned = None;
                return Err(error);
            }
        }
        let row = cx.timed_exactly(self.stage, || self.finish(lists));
        let row = row.map_err(|error| cx.blame(self.stage, self.by.name(), error))?;
        cx.produced(self.stage, 0, row.nbytes() as u64);
        Ok(row)
    }

    fn forget(&mut self) -> Result<()> {
        self.make.forget()
    }
}
