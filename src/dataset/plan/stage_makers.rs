//! Plans of stages after a border that see each element alone, and the makers of their elements.

use std::sync::Arc;

use super::border_makers::Pieces;
use super::make::only;
use super::measure::stale;
use super::reuse::Reuse;
use super::stage_keys::{ByKey, Origin, PiecesByKey, StageKeys};
use super::{Make, Member, Part, Plan, PlanPass, PlannedRows, Planning, Segments, Span};
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::iter::left_out;
use crate::dataset::map::{Each, apply};
use crate::dataset::stage::Role;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Failed;

/// Plans a stage that makes at most one element from each element: `each` is the function of `stage`, and `start`
/// starts its pass over stand-ins. Returns `None` if no keys record the dropped elements and the lengths of the output.
///
/// # Errors
/// Errors of the search for keys.
pub(in crate::dataset) fn plan_each<T, S, E, P>(
    parent: Plan<T, S>,
    each: &Arc<E>,
    stage: StageId,
    planning: &Planning<'_>,
    start: impl FnOnce(PlanPass<S>, ByKey) -> PlanPass<P>,
) -> Result<Option<Plan<E::Out, P>>>
where
    T: 'static,
    E: Each<T, Out: 'static> + 'static,
{
    let chains: Vec<_> = parent.chains.iter().map(|chain| chain.through(each)).collect();
    // A stand-in of an element also represents the output, if no decision and no length depends on the stage.
    let is_unchanged = planning.names.is_empty() && each.role() == Role::Elementwise;
    let keys = if is_unchanged { None } else { StageKeys::find(&chains, stage, planning)? };
    if keys.is_none() && !is_unchanged {
        return Ok(None);
    }
    let pass = start(parent.pass, ByKey { keys: keys.clone(), name: each.name() });
    let make = EachMaker { make: parent.make, each: each.clone(), keys, single: parent.single, stage };
    Ok(Some(Plan { pass, make: Box::new(make), single: parent.single, chains }))
}

/// Makes planned elements of a stage that makes at most one element from each element.
struct EachMaker<T, E> {
    make: Box<dyn Make<T>>,
    each: Arc<E>,
    /// Keys from which dropped elements and output lengths were planned. `None` if the stage keeps all elements and no
    /// lengths are required.
    keys: Option<Arc<StageKeys>>,
    /// True if the function is applied to single elements.
    single: bool,
    stage: StageId,
}

impl<T, E> EachMaker<T, E> {
    /// Returns the input element of a planned element, if the two have different numbers within their record.
    fn input(&self, recipe: &[Member]) -> Result<Option<Member>> {
        match (&self.keys, recipe) {
            (Some(keys), [one]) => Ok(keys.input(one.id)?.map(|id| Member { id, cut: None })),
            _ => Ok(None),
        }
    }
}

/// Returns the recipe to request from the parent: `input` if present, otherwise `recipe`.
fn in_place_of<'a>(recipe: &'a [Member], input: &'a Option<Member>) -> &'a [Member] {
    input.as_ref().map_or(recipe, std::slice::from_ref)
}

impl<T: 'static, E: Each<T, Out: 'static>> Make<E::Out> for EachMaker<T, E> {
    fn expect(&mut self, recipe: &[Member]) {
        // If the key lookup fails, `make` returns the error.
        if let Ok(input) = self.input(recipe) {
            self.make.expect(in_place_of(recipe, &input));
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<E::Out>> {
        let input = self.input(recipe)?;
        let made = self.make.make(in_place_of(recipe, &input), failed, cx)?;
        let Some(element) = made else { return Ok(None) };
        let made = apply(&*self.each, self.stage, 0, element, cx);
        if let (Some(keys), Ok(made), [one]) = (&self.keys, &made, recipe) {
            let checked = keys.check(made.as_ref(), one.id);
            checked.map_err(|error| cx.blame(self.stage, self.each.name(), error.index(one.id.index)))?;
        }
        match (made, recipe) {
            (Ok(Some(made)), _) => Ok(Some(made)),
            (Ok(None), _) => Err(cx.blame(self.stage, self.each.name(), left_out())),
            (Err(error), [one]) if self.single => failed.pad(error.index(one.id.index)).map(|()| None),
            // An error of several elements cannot be attributed to one element.
            (Err(error), _) => Err(error),
        }
    }

    fn sample(&mut self, recipe: &[Member]) -> Result<Option<E::Out>> {
        let input = self.input(recipe)?;
        let Some(element) = self.make.sample(in_place_of(recipe, &input))? else { return Ok(None) };
        match apply(&*self.each, self.stage, 0, element, &mut Cx::default()) {
            Err(error) if error.kind() != ErrorKind::Data => Err(error),
            made => Ok(made.unwrap_or_default()),
        }
    }

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        match &self.keys {
            Some(keys) => keys.lens(id, lens),
            None => Err(Error::state("a plan does not contain the lengths of its elements")),
        }
    }

    fn segment_arrays(&self) -> Vec<Segments> {
        if self.keys.is_none() { self.make.segment_arrays() } else { Vec::new() }
    }

    fn segments(&self, recipe: &[Member], of: &Segments) -> Result<Vec<u64>> {
        self.make.segments(recipe, of)
    }

    fn cells(&self, rows: &PlannedRows, of: &Segments, cells: &mut Vec<u64>, parts: &mut Vec<Part>) -> Result<()> {
        self.make.cells(rows, of, cells, parts)
    }

    fn spans(&self, recipe: &[Member]) -> Result<Option<Vec<Span>>> {
        if self.single { Ok(None) } else { self.make.spans(recipe) }
    }

    fn forget(&mut self) -> Result<()> {
        self.make.forget()
    }
}

/// Plans a `flat_map` after the border: `each` is the function of `stage`, and `start` starts its pass over stand-ins.
/// Returns `None` if no keys record the number of elements.
///
/// # Errors
/// Errors of the search for keys.
pub(in crate::dataset) fn plan_fan_out<T, S, E, U, P>(
    parent: Plan<T, S>,
    each: E,
    stage: StageId,
    planning: &Planning<'_>,
    start: impl FnOnce(PlanPass<S>, PiecesByKey) -> PlanPass<P>,
) -> Result<Option<Plan<U, P>>>
where
    T: Send + 'static,
    U: Send + 'static,
    E: Each<T, Out = Vec<U>> + 'static,
{
    let each = Arc::new(each);
    let chains: Vec<_> = parent.chains.iter().map(|chain| chain.listed(&each)).collect();
    let Some(keys) = StageKeys::find(&chains, stage, planning)? else { return Ok(None) };
    let pass = start(parent.pass, PiecesByKey(keys.clone()));
    let make = FanOutMaker { make: parent.make, each, keys, reuse: Reuse::default(), stage };
    Ok(Some(Plan { pass, make: Box::new(make), single: true, chains }))
}

/// Makes planned pieces. Makes an input element once for all its pieces that are requested close together.
struct FanOutMaker<T, E, U> {
    make: Box<dyn Make<T>>,
    each: Arc<E>,
    keys: Arc<StageKeys>,
    /// The pieces of input elements.
    reuse: Reuse<ElementId, Pieces<U>>,
    stage: StageId,
}

/// A piece that was planned.
struct Planned {
    id: ElementId,
    /// The input element of the piece.
    input: ElementId,
    origin: Origin,
}

impl Planned {
    fn input(&self) -> Member {
        Member { id: self.input, cut: None }
    }
}

impl<T, E, U> FanOutMaker<T, E, U>
where
    E: Each<T, Out = Vec<U>>,
{
    fn planned(&self, id: ElementId) -> Result<Planned> {
        let origin = self.keys.origin(id)?;
        Ok(Planned { id, input: ElementId { piece: origin.piece, ..id }, origin })
    }
}

/// Returns the pieces of an input element, whose number must be the number in its key.
fn pieces_of<T, U, E: Each<T, Out = Vec<U>>>(
    each: &E,
    stage: StageId,
    element: T,
    planned: &Planned,
    failed: &Failed,
    cx: &mut Cx,
) -> Result<Pieces<U>> {
    let index = planned.id.index;
    let pieces = match apply(each, stage, 0, element, cx) {
        Ok(pieces) => pieces.unwrap_or_default(),
        Err(error) => return failed.pad(error.index(index)).map(|()| Pieces::Failed),
    };
    if planned.origin.count as usize == pieces.len() {
        return Ok(Pieces::Whole(pieces.into_iter().map(Some).collect()));
    }
    let why = format!("it became {} elements, which is not the number in its key", pieces.len());
    Err(cx.blame(stage, each.name(), stale(&why).index(index)))
}

impl<T, E, U> Make<U> for FanOutMaker<T, E, U>
where
    T: Send + 'static,
    U: Send + 'static,
    E: Each<T, Out = Vec<U>> + 'static,
{
    fn expect(&mut self, recipe: &[Member]) {
        for member in recipe {
            // If the key lookup fails, `make` returns the error.
            let Ok(planned) = self.planned(member.id) else { continue };
            let at = planned.origin.at;
            if self.reuse.expect(planned.input, Some(at), |pieces| pieces.gives(at)) {
                self.make.expect(&[planned.input()]);
            }
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<U>> {
        let planned = self.planned(only(recipe)?)?;
        let Planned { id, input, .. } = planned;
        let Self { make, each, reuse, stage, .. } = self;
        let pieces = reuse.get_or_put(input, || match make.make(&[planned.input()], failed, cx)? {
            Some(element) => pieces_of(&**each, *stage, element, &planned, failed, cx),
            None => Ok(Pieces::Failed),
        });
        let given = pieces?.give(planned.origin.at, id.index)?;
        reuse.used(&input);
        if let Some(given) = &given {
            let checked = self.keys.check(Some(given), id);
            checked.map_err(|error| cx.blame(self.stage, self.each.name(), error.index(id.index)))?;
        }
        Ok(given)
    }

    fn sample(&mut self, recipe: &[Member]) -> Result<Option<U>> {
        let planned = self.planned(only(recipe)?)?;
        let Some(element) = self.make.sample(&[planned.input()])? else { return Ok(None) };
        match apply(&*self.each, self.stage, 0, element, &mut Cx::default()) {
            Err(error) if error.kind() != ErrorKind::Data => Err(error),
            made => Ok(made.ok().flatten().and_then(|pieces| pieces.into_iter().next())),
        }
    }

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        self.keys.lens(id, lens)
    }

    fn forget(&mut self) -> Result<()> {
        self.reuse.forget();
        self.make.forget()
    }
}
