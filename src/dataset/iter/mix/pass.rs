use std::any::Any;

use super::cells_of;
use super::edited::Edited;
use super::state::{Entries, MixOrigin, MixProgress, MixState};
use crate::cx::{Cx, StageId};
use crate::dataset::AtEnd;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::siblings::Siblings;
use crate::error::{Error, Result};
use crate::rng::{Origin, TokenTurns, Turns};

/// A pass over [`IterMix`](super::IterMix).
#[doc(hidden)]
pub struct IterMixIter<I: DatasetIterator> {
    parents: Siblings<I>,
    turns: Counted,
    ends: Ends<I::State>,
    entries: Entries,
    stop: bool,
    /// Whether a position and the parents' positions determine the next elements.
    is_plain: bool,
    /// The last stage id of each parent, by which the report counts its elements.
    lasts: Box<[usize]>,
    stage: StageId,
    /// Edits of the weights.
    edited: Box<Edited>,
}

/// Turns of parents, by the unit of weights.
pub(super) enum Counted {
    Elements(Turns),
    /// With the name of the column whose length is the number of tokens.
    Tokens(TokenTurns, Box<str>),
}

/// Ends of parents.
pub(super) struct Ends<S> {
    at_end: AtEnd,
    /// Limit of the tokens or elements of each parent. Empty if there is none.
    budget: Box<[Option<u64>]>,
    /// Elements of each parent, if there are budgets in elements.
    taken: Box<[u64]>,
    /// Start of each parent, if parents repeat.
    starts: Vec<S>,
    epochs: Box<[u64]>,
    has_ended: Box<[bool]>,
}

impl<S: Clone> Ends<S> {
    /// Makes the ends of `parents` at their starts.
    pub(super) fn new<I>(at_end: AtEnd, budget: Box<[Option<u64>]>, parents: &Siblings<I>) -> Self
    where
        I: DatasetIterator<State = S>,
    {
        let (count, is_repeated) = (parents.len(), at_end == AtEnd::Repeat);
        let is_limited = budget.iter().any(Option::is_some);
        Self {
            at_end,
            budget: if is_limited { budget } else { Box::default() },
            taken: vec![0; if is_limited { count } else { 0 }].into(),
            starts: if is_repeated { parents.positions() } else { Vec::new() },
            epochs: vec![0; if is_repeated { count } else { 0 }].into(),
            has_ended: vec![false; count].into(),
        }
    }
}

impl<I: DatasetIterator> IterMixIter<I> {
    pub(super) fn new(
        parents: Siblings<I>,
        turns: Counted,
        ends: Ends<I::State>,
        entries: Entries,
        is_plain: bool,
        (stage, edited): (StageId, Edited),
    ) -> Self {
        let lasts = parents.last_stages(stage.index()).into();
        Self { parents, turns, ends, entries, stop: false, is_plain, lasts, stage, edited: Box::new(edited) }
    }

    /// Applies the changes of the weights that have taken effect.
    #[cold]
    fn renew(&mut self, cx: &Cx) -> Result<()> {
        let edited = &mut self.edited;
        match &mut self.turns {
            Counted::Elements(turns) => {
                let (position, origin) = (turns.position(), turns.origin());
                edited.renew(&mut self.turns, cx.changes())?;
                if let Counted::Elements(turns) = &mut self.turns {
                    turns.restore(position, origin, self.ends.has_ended.clone())?;
                }
            }
            Counted::Tokens(turns, _) => {
                let (taken, origin) = (turns.taken().into(), turns.origin().clone());
                edited.renew(&mut self.turns, cx.changes())?;
                if let Counted::Tokens(turns, _) = &mut self.turns {
                    turns.restore(taken, origin, self.ends.has_ended.clone())?;
                }
            }
        }
        Ok(())
    }

    fn next_turn(&mut self) -> Result<Option<usize>> {
        match &mut self.turns {
            Counted::Elements(turns) => turns.next(),
            Counted::Tokens(turns, _) => Ok(turns.next()),
        }
    }

    /// Returns the tokens or elements of each parent; empty if nothing depends on them.
    fn taken(&self) -> &[u64] {
        match &self.turns {
            Counted::Elements(_) => &self.ends.taken,
            Counted::Tokens(turns, _) => turns.taken(),
        }
    }

    fn position(&self) -> u64 {
        match &self.turns {
            Counted::Elements(turns) => turns.position(),
            Counted::Tokens(turns, _) => turns.position(),
        }
    }

    /// Returns true if the budget of a parent is used up.
    fn is_spent(&self, which: usize) -> bool {
        let budget = self.ends.budget.get(which).copied().flatten();
        budget.is_some_and(|budget| self.taken().get(which).is_some_and(|taken| *taken >= budget))
    }

    /// Reads the next element of a parent, which restarts at its end if parents repeat.
    fn read(&mut self, which: usize, cx: &mut Cx) -> Result<Option<I::Item>> {
        if let Some(element) = self.parents.next(which, cx)? {
            return Ok(Some(element));
        }
        let Some(start) = self.ends.starts.get(which) else { return Ok(None) };
        self.parents.restore_one(which, start.clone(), cx)?;
        let element = self.parents.next(which, cx)?;
        if element.is_none() {
            let error = Error::data(format!("dataset {which} yields no element, so repeating it never will"));
            return Err(cx.blame(self.stage, "mix", error));
        }
        self.ends.epochs[which] += 1;
        self.show(which, cx);
        Ok(element)
    }

    /// Passes the restarts and the end of a parent to the report.
    #[cold]
    fn show(&self, which: usize, cx: &mut Cx) {
        if let Some(counts) = cx.component(self.lasts[which]) {
            counts.restarts = self.ends.epochs.get(which).copied().unwrap_or_default();
            counts.has_ended = self.ends.has_ended[which];
        }
    }

    /// Ends a parent, or the mix.
    fn end(&mut self, which: usize, cx: &mut Cx) -> Result<()> {
        self.ends.has_ended[which] = self.ends.at_end != AtEnd::Stop;
        if let Some(counts) = cx.component(self.lasts[which]) {
            counts.has_ended = true;
        }
        if self.ends.at_end == AtEnd::Stop {
            self.stop = true;
            return Ok(());
        }
        match &mut self.turns {
            Counted::Elements(turns) => turns.end(which),
            Counted::Tokens(turns, _) => turns.end(which),
        }
    }

    fn progress(&self) -> MixProgress {
        let ended = self.ends.has_ended.iter().enumerate();
        let ended: Vec<usize> = ended.filter(|(_, has_ended)| **has_ended).map(|(which, _)| which).collect();
        let origin = (!ended.is_empty()).then(|| match &self.turns {
            Counted::Elements(turns) => MixOrigin { index: turns.origin(), taken: Vec::new() },
            Counted::Tokens(turns, _) => {
                MixOrigin { index: turns.origin().total, taken: turns.origin().taken.to_vec() }
            }
        });
        let schedule = self.entries.effective(self.position());
        MixProgress { schedule, taken: self.taken().to_vec(), epochs: self.ends.epochs.to_vec(), ended, origin }
    }

    /// Restores everything but the parents. Parents that have joined the mix since have counts of 0.
    fn restore_turns(&mut self, index: u64, progress: MixProgress) -> Result<()> {
        let count = self.parents.len();
        let MixProgress { schedule, mut taken, mut epochs, ended, origin } = progress;
        self.entries.check(&schedule, index)?;
        if !self.taken().is_empty() && taken.is_empty() && index > 0 {
            let text = "the state has no counts of tokens or elements: the mix that wrote it had no budget and counted elements";
            return Err(
                Error::state(text).help("resume with the arguments of that mix, or start without the checkpoint")
            );
        }
        let origin = origin.unwrap_or(MixOrigin { index: 0, taken: Vec::new() });
        let most = [taken.len(), epochs.len(), origin.taken.len()].into_iter().max().unwrap_or(0);
        if most > count || ended.iter().any(|which| *which >= count) || origin.index > index {
            return Err(Error::state(
                "the state of a mix has more datasets than the pipeline, or an end after its position",
            ));
        }
        taken.resize(count, 0);
        epochs.resize(count, 0);
        let has_ended: Box<[bool]> = (0..count).map(|which| ended.contains(&which)).collect();
        match &mut self.turns {
            Counted::Elements(turns) => turns.restore(index, origin.index, has_ended.clone())?,
            Counted::Tokens(turns, _) => {
                let origin = Origin { total: origin.index, taken: origin.taken.into() };
                turns.restore(taken.as_slice().into(), origin, has_ended.clone())?;
                if turns.position() != index {
                    let text =
                        format!("the state is at token {index}, but its datasets have {} tokens", turns.position());
                    return Err(Error::state(text));
                }
            }
        }
        self.ends.has_ended = has_ended;
        let counts = [(&mut self.ends.taken, taken), (&mut self.ends.epochs, epochs)];
        counts.into_iter().filter(|(ours, _)| !ours.is_empty()).for_each(|(ours, theirs)| *ours = theirs.into());
        Ok(())
    }
}

impl<I: DatasetIterator<Item: 'static>> IterMixIter<I> {
    /// Counts an element of a parent. Returns its tokens, if the mix counts tokens.
    fn count(&mut self, which: usize, element: &I::Item) -> Result<u64> {
        match &mut self.turns {
            Counted::Elements(_) => self.ends.taken.get_mut(which).into_iter().for_each(|taken| *taken += 1),
            Counted::Tokens(turns, column) => {
                let tokens = cells_of(element as &dyn Any, column)?;
                turns.take(which, tokens)?;
                return Ok(tokens);
            }
        }
        Ok(0)
    }
}

impl<I: DatasetIterator<Item: 'static>> DatasetIterator for IterMixIter<I> {
    type Item = I::Item;
    type State = MixState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        if self.edited.seen != cx.changes() {
            self.renew(cx).map_err(|error| cx.blame(self.stage, "mix", error))?;
        }
        while !self.stop {
            let Some(which) = self.next_turn()? else {
                self.stop = true;
                break;
            };
            let element = if self.is_spent(which) { None } else { self.read(which, cx)? };
            let Some(element) = element else {
                self.end(which, cx)?;
                continue;
            };
            let tokens = match self.is_plain {
                true => 0,
                false => self.count(which, &element).map_err(|error| cx.blame(self.stage, "mix", error))?,
            };
            if let Some(counts) = cx.component(self.lasts[which]) {
                counts.elements += 1;
                counts.tokens += tokens;
            }
            cx.produced(self.stage, 1, 0);
            if self.edited.is_active {
                // Elements without tokens do not move the position. Edits begin after them.
                let is_empty = tokens == 0 && matches!(self.turns, Counted::Tokens(..));
                cx.note_read(self.position().saturating_add(u64::from(is_empty)));
            }
            return Ok(Some(element));
        }
        if self.edited.is_active {
            // The end was read with the weights at this position, so later edits do not change it.
            cx.note_read(self.position().saturating_add(1));
        }
        Ok(None)
    }

    fn state(&self) -> Self::State {
        let progress = (!self.is_plain).then(|| Box::new(self.progress()));
        MixState { parents: self.parents.positions(), index: self.position(), stop: self.stop, progress }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        let MixState { parents, index, stop, progress } = state;
        let progress = progress.map_or_else(MixProgress::default, |progress| *progress);
        // Parents without a weight before this position may have joined the mix.
        let least = if self.entries.is_empty() { self.parents.len() } else { self.entries.present(index) };
        let renewed = self.edited.renew(&mut self.turns, cx.changes());
        renewed.map_err(|error| cx.blame(self.stage, "mix", error))?;
        cx.note_read(index);
        let restored =
            self.restore_turns(index, progress).and_then(|()| self.parents.restore_first(parents, least, cx));
        restored.map_err(|error| cx.blame(self.stage, "mix", error))?;
        self.stop = stop;
        (0..self.lasts.len()).for_each(|which| self.show(which, cx));
        Ok(())
    }
}

debug_name!(IterMixIter<I: DatasetIterator>);
