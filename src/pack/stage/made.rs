//! Packed rows, made from the elements that an earlier planning pass assigned to them.

use std::ops::Range;
use std::sync::Arc;

use super::columns::Columns;
use super::item::PackItem;
use super::options::WindowPackOptions;
use super::plan::GroupPlan;
use super::rows::RowSpec;
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::DatasetIterator;
use crate::dataset::iter::{Parted, Start};
use crate::dataset::plan::{Make, Member, Part, Plan, PlanPass, PlannedRows, Reuse, Segments, Span, StandIn};
use crate::element::{Element, Value};
use crate::error::{Error, Result};
use crate::exec::Failed;
use crate::pack::concat::ConcatThenSplit;
use crate::pack::feature::{Feature, piece_range};
use crate::pack::writer::{RowWriter, span, span_of_part};

/// Stage that planned the rows.
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

impl MadeBy {
    /// Returns the cells that [`Writer::write`] fills for a part of an element of `len` cells, in feature `at`.
    fn span(&self, features: &[Feature], at: usize, len: usize, cut: Option<&[u64]>, used: &mut usize) -> Span {
        let (tokens, cells) = match self {
            Self::Group(plan) if plan.is_concat() => {
                let (from, takes) = from_and_takes(cut);
                let of = |cells: &[usize]| cells.get(at).copied().unwrap_or_default();
                span_of_part(of(&from), of(&takes), used)
            }
            _ => span(&features[at], len, piece(cut), used),
        };
        let wide = |range: Range<usize>| range.start as u64..range.end as u64;
        Span { tokens: wide(tokens), cells: wide(cells) }
    }
}

/// Writer of a single row. Uses the row-writing code of an ordinary pass.
enum Writer {
    Pieces(Box<RowWriter>),
    Parts(Box<ConcatThenSplit>),
}

impl Writer {
    /// Writes the part of an element that `cut` describes; the whole element if `cut` is `None`.
    fn write(&mut self, cells: &[&[u8]], cut: Option<&[u64]>) -> Result<()> {
        match self {
            Self::Pieces(writer) => writer.write(0, cells, piece(cut)),
            Self::Parts(writer) => {
                let (from, takes) = from_and_takes(cut);
                writer.write_part(cells, &from, &takes)
            }
        }
    }

    /// Writes padding for the part that `cut` describes of an element with `lens` cells.
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

/// Returns the piece number of a cut; 0 if there is no cut.
fn piece(cut: Option<&[u64]>) -> usize {
    cut.and_then(<[u64]>::first).map_or(0, |&piece| piece as usize)
}

/// Returns the first cell and the number of cells of each feature in a cut.
fn from_and_takes(cut: Option<&[u64]>) -> (Vec<usize>, Vec<usize>) {
    let mut from: Vec<usize> = cut.unwrap_or_default().iter().map(|&number| number as usize).collect();
    let takes = from.split_off(from.len() / 2);
    (from, takes)
}

#[cold]
fn no_element() -> Error {
    Error::state("a row was planned without an element")
}

/// Maker of packed rows. An element that is cut over several rows is made only once if these rows are near each other.
struct MakeRows {
    make: Box<dyn Make<Element>>,
    by: MadeBy,
    /// Features for planning, with cells of 1 byte.
    counted: Vec<Feature>,
    /// Columns and writer, created when the first element shows the dtypes.
    learned: Option<(Columns, Writer)>,
    /// Cut elements that will be used again; `None` for a failed element.
    reuse: Reuse<ElementId, Option<Element>>,
    stage: StageId,
}

/// Plans rows that `pass` packs. Returns `None` if the parent's elements are rows, or if a later stage needs the lengths of
/// the rows.
pub(super) fn plan_rows<S, P>(
    parent: Parted<Element, S>,
    at: Start<'_>,
    by: MadeBy,
    pass: impl FnOnce(PlanPass<S>) -> P,
) -> Option<Parted<Element, P::State>>
where
    P: DatasetIterator<Item = StandIn> + 'static,
{
    let (Parted::Plan(parent), Some(planning)) = (parent, at.planning) else { return None };
    if !parent.single || !planning.names.is_empty() {
        return None;
    }
    let make = Box::new(MakeRows::new(parent.make, by, at.stage));
    Some(Parted::Plan(Plan { pass: Box::new(pass(parent.pass)), make, single: false, chains: Vec::new() }))
}

/// Returns the element of a member that is a part of it.
fn whole(member: &Member) -> Option<ElementId> {
    member.cut.as_ref().map(|_| member.id)
}

impl MakeRows {
    fn array(&self, name: String, feature: usize, of_targets: bool) -> Segments {
        let length = self.counted.get(feature).map_or(0, |feature| feature.length);
        Segments { name, feature, of_targets, length }
    }

    fn feature(&self, of: &Segments) -> Result<&Feature> {
        self.counted.get(of.feature).ok_or_else(|| Error::state(format!("no feature is number {}", of.feature)))
    }

    /// Returns the cells in the array `of` of the part that `cut` describes of `len` cells; of all cells if `cut` is
    /// empty.
    fn cells_of(&self, feature: &Feature, of: &Segments, len: usize, cut: &[u64]) -> usize {
        let cells = match &self.by {
            MadeBy::Group(plan) if plan.is_concat() => {
                cut.get(cut.len() / 2 + of.feature).copied().unwrap_or_default() as usize
            }
            _ => piece_range(feature, len, piece(Some(cut))).len(),
        };
        cells.saturating_sub(usize::from(of.of_targets))
    }

    fn new(make: Box<dyn Make<Element>>, by: MadeBy, stage: StageId) -> Self {
        // An error is ignored here: the plan resolves the features too, and reports the error.
        let counted = by.rows().resolve_counted().unwrap_or_default();
        Self { make, by, counted, learned: None, reuse: Reuse::default(), stage }
    }

    /// Makes an element, or returns the kept copy; `None` if the element failed.
    fn element(&mut self, member: &Member, failed: &Failed, cx: &mut Cx) -> Result<Option<Element>> {
        let whole = whole(member);
        if let Some(kept) = whole.and_then(|whole| self.reuse.get(&whole).cloned()) {
            whole.iter().for_each(|whole| self.reuse.used(whole));
            return Ok(kept);
        }
        let element = self.make.make(std::slice::from_ref(member), failed, cx)?;
        if let Some(whole) = whole {
            self.reuse.put(whole, element.clone());
            self.reuse.used(&whole);
        }
        Ok(element)
    }

    /// Creates columns and writer from an element, if they do not exist yet.
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

    /// Writes an element into the row under construction, and lists its meta features.
    fn write(&mut self, element: &Element, cut: Option<&[u64]>, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        let (columns, writer) = self.learn(element)?;
        columns.check(element)?;
        if columns.lists() {
            columns.list(element, lists)?;
        }
        element.with_cells(&columns.names, |cells| writer.write(cells, cut))?
    }

    /// Writes padding for a failed element into the row under construction.
    fn leave(&mut self, member: &Member, lists: &mut Vec<Vec<Value>>) -> Result<()> {
        if self.learned.is_none() {
            let sample = self.make.sample(std::slice::from_ref(member))?.ok_or_else(|| no_sample(member))?;
            self.learn(&sample)?;
        }
        let mut lens = Vec::new();
        self.make.lens(member.id, &mut lens)?;
        let Some((columns, writer)) = &mut self.learned else { return Err(no_element()) };
        columns.list_nothing(lists);
        writer.leave(&lens, member.cut.as_deref())
    }

    /// Makes a member of the row under construction, and writes it.
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

/// Returns the error for padding whose dtypes and shapes are unknown, because the sampled elements failed too.
#[cold]
fn no_sample(member: &Member) -> Error {
    let text = "it failed, and so did the elements after it, so the shape of its padding is unknown";
    Error::data(text).index(member.id.index)
}

impl Make<Element> for MakeRows {
    fn expect(&mut self, recipe: &[Member]) {
        for member in recipe {
            if whole(member).is_none_or(|whole| self.reuse.expect(whole, None, |_| true)) {
                self.make.expect(std::slice::from_ref(member));
            }
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<Element>> {
        let mut lists = Vec::new();
        for member in recipe {
            if let Err(error) = self.add(member, &mut lists, failed, cx) {
                // Discards the writer, because it contains a partly written row.
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
        let rows = self.by.rows();
        let arrays = (0..rows.features().len()).flat_map(|feature| {
            rows.outputs(feature).into_iter().enumerate().map(move |(part, name)| (feature, part, name))
        });
        let (feature, part, name) = arrays.into_iter().find(|(.., name)| is_it(name))?;
        matches!(part, 1 | 4).then(|| self.array(name, feature, part == 4))
    }

    fn segment_arrays(&self) -> Vec<Segments> {
        let rows = self.by.rows();
        let arrays = (0..rows.features().len()).flat_map(|feature| {
            let outputs = rows.outputs(feature).into_iter().enumerate();
            outputs.filter(|(part, _)| matches!(part, 1 | 4)).map(move |(part, name)| (feature, part, name))
        });
        arrays.map(|(feature, part, name)| self.array(name, feature, part == 4)).collect()
    }

    fn cells(&self, rows: &PlannedRows, of: &Segments, cells: &mut Vec<u64>, parts: &mut Vec<Part>) -> Result<()> {
        let feature = self.feature(of)?;
        let mut lens = Vec::with_capacity(rows.ids().len() * self.counted.len());
        self.make.lens_of(rows.ids(), &mut lens)?;
        let lens = lens.chunks_exact(self.counted.len()).map(|lens| lens[of.feature] as usize);
        if !rows.has_cuts() {
            cells.extend(lens.map(|len| self.cells_of(feature, of, len, &[]) as u64));
            return Ok(());
        }
        for (member, len) in lens.enumerate() {
            let (cut, all) = (rows.cut(member), &mut *cells);
            let cells = self.cells_of(feature, of, len, cut);
            let part = match (cut, &self.by) {
                ([], _) => Part::Whole,
                (cut, MadeBy::Group(plan)) if plan.is_concat() => {
                    match cut[..cut.len() / 2].iter().any(|&from| from > 0) {
                        true => Part::Later,
                        false if (cells + usize::from(of.of_targets)) < len => Part::First,
                        false => Part::Whole,
                    }
                }
                (cut, _) if piece(Some(cut)) == 0 => Part::First,
                _ => Part::Later,
            };
            all.push(cells as u64);
            parts.push(part);
        }
        Ok(())
    }

    fn segments(&self, recipe: &[Member], of: &Segments) -> Result<Vec<u64>> {
        let feature = self.feature(of)?;
        let (mut all, mut lens) = (Vec::with_capacity(recipe.len()), Vec::new());
        for member in recipe {
            lens.clear();
            self.make.lens(member.id, &mut lens)?;
            let len = lens.get(of.feature).map_or(0, |&len| len as usize);
            all.push(self.cells_of(feature, of, len, member.cut.as_deref().unwrap_or_default()) as u64);
        }
        Ok(all)
    }

    fn spans(&self, recipe: &[Member]) -> Result<Option<Vec<Span>>> {
        let feature = self.counted.iter().position(|feature| !feature.meta);
        let Some(feature) = feature else { return Ok(None) };
        let (mut spans, mut lens, mut used) = (Vec::with_capacity(recipe.len()), Vec::new(), 0);
        for member in recipe {
            lens.clear();
            self.make.lens(member.id, &mut lens)?;
            let len = lens.get(feature).map_or(0, |&len| len as usize);
            spans.push(self.by.span(&self.counted, feature, len, member.cut.as_deref(), &mut used));
        }
        Ok(Some(spans))
    }

    fn forget(&mut self) -> Result<()> {
        self.reuse.forget();
        self.make.forget()
    }
}
