//! The maker of planned elements of a `flat_map` after the border.

use std::sync::Arc;

use super::again::Again;
use super::late_keys::{LateKeys, Origin, PiecesByKey};
use super::own::only;
use super::own_pieces::Pieces;
use super::stale::stale;
use super::{Make, Member, Plan, PlanPass, Planning};
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::map::{Each, apply};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Failed;

/// Plans a `flat_map` after the border: `each` is the function of `stage`, and `start` starts its pass over stand-ins.
/// Returns `None` if no keys record the number of elements.
///
/// # Errors
/// Errors of the search for keys.
pub(in crate::dataset) fn plan_pieces<T, S, E, U, P>(
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
    let (each, name) = (Arc::new(each), "flat_map");
    let leaves: Vec<_> = parent.leaves.iter().map(|leaf| leaf.listed(&each)).collect();
    if leaves.is_empty() {
        return Ok(None);
    }
    let Some(keys) = LateKeys::find(&leaves, planning)? else { return Ok(None) };
    let keys = Arc::new(keys);
    planning.record_late(stage, &keys);
    let pass = start(parent.pass, PiecesByKey { keys: keys.clone(), name });
    let make = LatePieces { make: parent.make, each, keys, again: Again::default(), stage };
    Ok(Some(Plan { pass, make: Box::new(make), single: true, leaves }))
}

/// Makes planned pieces. Makes an input element once for all its pieces that are requested close together.
struct LatePieces<T, E, U> {
    make: Box<dyn Make<T>>,
    each: Arc<E>,
    keys: Arc<LateKeys>,
    /// The pieces of input elements.
    again: Again<ElementId, Pieces<U>>,
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

impl<T, E, U> LatePieces<T, E, U>
where
    E: Each<T, Out = Vec<U>>,
{
    fn planned(&self, id: ElementId) -> Result<Planned> {
        let origin = self.keys.origin(id)?;
        Ok(Planned { id, input: ElementId { piece: origin.piece, ..id }, origin })
    }

    /// Returns the pieces of an input element, and makes the element unless its pieces are kept.
    fn pieces(&mut self, planned: &Planned, failed: &Failed, cx: &mut Cx) -> Result<&mut Pieces<U>> {
        let key = planned.input;
        if self.again.get(&key).is_none() {
            let pieces = match self.make.make(&[planned.input()], failed, cx)? {
                Some(element) => self.apply(element, planned, failed, cx)?,
                None => Pieces::Failed,
            };
            self.again.put(key, pieces);
        }
        self.again.get(&key).ok_or_else(|| Error::state(format!("element {} is not kept", planned.id.index)))
    }

    fn apply(&self, element: T, planned: &Planned, failed: &Failed, cx: &mut Cx) -> Result<Pieces<U>> {
        let (name, index) = (self.each.name(), planned.id.index);
        let pieces = match apply(&*self.each, self.stage, 0, element, cx) {
            Ok(pieces) => pieces.unwrap_or_default(),
            Err(error) => return failed.pad(error.index(index)).map(|()| Pieces::Failed),
        };
        if planned.origin.count as usize == pieces.len() {
            return Ok(Pieces::Whole(pieces.into_iter().map(Some).collect()));
        }
        let why = format!("it became {} elements, which is not the number in its key", pieces.len());
        Err(cx.blame(self.stage, name, stale(&why).index(index)))
    }
}

impl<T, E, U> Make<U> for LatePieces<T, E, U>
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
            if self.again.expect(planned.input, Some(at), |pieces| pieces.gives(at)) {
                self.make.expect(&[planned.input()]);
            }
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<U>> {
        let planned = self.planned(only(recipe)?)?;
        let id = planned.id;
        let given = self.pieces(&planned, failed, cx)?.give(planned.origin.at, id.index)?;
        self.again.used(&planned.input);
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
        self.again.forget();
        self.make.forget()
    }
}
