//! Edits of the weights of a mix.

use std::sync::Arc;

use super::pass::Counted;
use crate::cx::StageId;
use crate::dataset::stage::{Role, Stage, may_hold};
use crate::edits::{Edits, MixPlace, RunEdits};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::rng::{Row, TokenTurns, Turns};

/// The edits of a mix in a pass.
pub(super) struct Edited {
    edits: Arc<RunEdits>,
    /// The stage id of the mix.
    stage: usize,
    /// Weights without edits.
    base: Arc<[Row]>,
    /// Number of rows of `base` whose weights are rounded as in Grain.
    rounded: usize,
    /// True if edits change this mix.
    pub(super) is_active: bool,
    /// Number of changes that have taken effect in this pass.
    pub(super) seen: u64,
}

impl Edited {
    /// Creates the edits of the mix `stage` with the weights `base`.
    pub(super) fn new(run: &Runtime, stage: StageId, base: &Arc<[Row]>, rounded: usize) -> Self {
        let (edits, stage, base) = (run.edits().clone(), run.id_of(stage), base.clone());
        Self { is_active: edits.is_of(stage), edits, stage, base, rounded, seen: 0 }
    }

    /// Replaces the weights of `turns` by the weights with all edits so far. A restore or a move must follow.
    ///
    /// # Errors
    /// As [`RunEdits::rows`], and errors of the weights.
    pub(super) fn renew(&mut self, turns: &mut Counted, changes: u64) -> Result<()> {
        self.seen = changes;
        self.is_active = self.edits.is_of(self.stage);
        if !self.is_active {
            return Ok(());
        }
        let (rows, keeps_first) = self.edits.rows(&self.base)?;
        let rows: Arc<[Row]> = rows.into();
        match turns {
            Counted::Elements(turns) => *turns = Turns::new(rows, if keeps_first { self.rounded } else { 0 })?,
            Counted::Tokens(turns, _) => *turns = TokenTurns::new(rows)?,
        }
        Ok(())
    }
}

/// A mix of streams in a pipeline.
struct Found {
    place: MixPlace,
    /// Reason why edits cannot change the mix.
    blocked: Option<String>,
}

/// Returns the mix of `pipeline` that `edits` change. Returns `None` if no edit changes a mix.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if no mix of streams or several mixes have the named datasets, or if a later stage
/// restarts the mix.
pub(crate) fn edited_mix(pipeline: &dyn Stage, edits: &Edits) -> Result<Option<MixPlace>> {
    let mut edited: Option<Found> = None;
    for (edit, names) in edits.names() {
        let has_all = |found: &Found| names.iter().all(|name| found.place.names.iter().any(|known| known == name));
        if let Some(found) = &edited {
            if has_all(found) {
                continue;
            }
            let text = format!("the edit `{edit}` changes another mix than the edits before it");
            return Err(Error::config(text).help(format!("the parts are {}", found.place.names.join(", "))));
        }
        let (mut fits, others): (Vec<_>, Vec<_>) = mixes(pipeline).into_iter().partition(has_all);
        if fits.len() > 1 {
            let text = format!("the edit `{edit}` fits {} mixes", fits.len());
            return Err(Error::config(text).help("give the parts of each mix other names"));
        }
        edited = match fits.pop() {
            Some(Found { blocked: Some(why), .. }) => return Err(Error::config(format!("the edit `{edit}`: {why}"))),
            Some(found) => Some(found),
            None => return Err(unknown(&edit, &others)),
        };
    }
    Ok(edited.map(|found| found.place))
}

/// Returns the error for an edit that fits none of the `mixes`.
#[cold]
fn unknown(edit: &str, mixes: &[Found]) -> Error {
    let error = Error::config(format!("the edit `{edit}` fits no mix of the pipeline"));
    if mixes.is_empty() {
        return error.help("the pipeline has no mix of streams with names; a mix has `names`");
    }
    let names: Vec<_> = mixes.iter().map(|found| found.place.names.join(", ")).collect();
    error.help(format!("the parts are {}", names.join("; ")))
}

/// Finds the mixes of `pipeline`.
fn mixes(pipeline: &dyn Stage) -> Vec<Found> {
    let (mut chain, mut next) = (Vec::new(), Some((pipeline.count() - 1, pipeline)));
    while let Some((id, stage)) = next {
        chain.push((id, stage));
        let parents = stage.parents_by_id(id);
        next = if let [parent] = parents.as_slice() { Some(*parent) } else { None };
    }
    let mut found = Vec::new();
    pipeline.walk(&mut |id, stage| {
        let names = stage.node().describe.components();
        if names.is_empty() {
            return;
        }
        let later: Option<Vec<&dyn Stage>> =
            chain.iter().position(|(at, _)| *at == id).map(|at| chain[..at].iter().map(|(_, stage)| *stage).collect());
        let blocked = blocked(stage, id, later.as_deref());
        let is_held = later.is_some_and(|later| later.iter().any(|stage| may_hold(*stage)));
        found.push(Found { place: MixPlace { stage: id, names, is_held }, blocked });
    });
    found
}

/// Returns the reason why edits cannot change the mix `stage`. `later` are the stages after it, if they have one parent
/// each.
fn blocked(stage: &dyn Stage, id: usize, later: Option<&[&dyn Stage]>) -> Option<String> {
    if stage.role() != Role::Stateful {
        return Some(format!(
            "mix (stage {id}) has random access, so its order is fixed before the run; mix streams (`to_iter` before the mix), or use \
             `schedule`"
        ));
    }
    let Some(later) = later else {
        return Some(format!(
            "mix (stage {id}) is a part of another stage; only a mix of the whole stream can be edited"
        ));
    };
    let restarts = later.iter().find(|stage| matches!(stage.name(), "repeat" | "cache"))?;
    Some(format!("{} after the mix (stage {id}) reads the mix again; put it before the mix", restarts.name()))
}
