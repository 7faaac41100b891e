//! The steps of the edits of a mix: constant weights from a batch on.

use super::Edits;
use super::change::{Change, Edit};
use crate::error::{Error, Result};
use crate::rng::{MOST_STEPS, Row, shares};

impl Edit {
    /// Returns the number of steps before the last weights.
    fn steps(&self) -> u64 {
        self.over().min(MOST_STEPS)
    }

    /// Returns the first batch of each step, in order.
    fn due(&self) -> impl Iterator<Item = u64> {
        let (steps, over, at) = (self.steps(), u128::from(self.over()), self.at);
        // At most `over`.
        let first = move |step| at.saturating_add((over * u128::from(step) / u128::from(steps.max(1))) as u64);
        (0..steps).map(first).chain([self.end()])
    }

    /// Returns the weights after the transition, by the datasets `names` of the mix. `before` are the weights before it.
    fn target(&self, before: &[f64], names: &[String]) -> Vec<f64> {
        match &self.change {
            Change::Mix { weights, .. } => names.iter().map(|name| weights.get(name).copied().unwrap_or(0.0)).collect(),
            Change::Remove(removed) => {
                let left = |(weight, name): (&f64, &String)| if removed.contains(name) { 0.0 } else { *weight };
                before.iter().zip(names).map(left).collect()
            }
            Change::Skip(_) | Change::GlobalBatch(_) | Change::Exclude(_) => before.to_vec(),
        }
    }
}

impl Edits {
    fn of_mix(&self) -> impl Iterator<Item = &Edit> {
        self.0.iter().filter(|edit| edit.is_of_mix())
    }

    /// Returns the first batch of each step of the edits of a mix, in order.
    pub(super) fn due(&self) -> Vec<u64> {
        self.of_mix().flat_map(Edit::due).collect()
    }

    /// Returns the weights of a mix of the datasets `names`, whose weights without edits are `base`. The first steps begin
    /// at `positions` of the mix; later steps have not begun.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no dataset with a weight is left.
    pub(super) fn rows(&self, base: &[Row], names: &[String], positions: &[u64]) -> Result<Vec<Row>> {
        let (mut rows, mut positions) = (base.to_vec(), positions.iter());
        for edit in self.of_mix() {
            let mut ends = None;
            for step in 0..=edit.steps() {
                let Some(&position) = positions.next() else { return Ok(rows) };
                let (from, to) = ends.get_or_insert_with(|| {
                    let before = rows.iter().rev().find(|row| row.from <= position);
                    let before = before.map_or_else(Vec::new, |row| row.weights.to_vec());
                    let target = edit.target(&before, names);
                    (before, target)
                });
                if to.iter().all(|weight| *weight == 0.0) {
                    let error = Error::config(format!("the edit `{edit}` leaves no part of the mix with a weight"));
                    return Err(error.help("keep a part, or end the run before this batch"));
                }
                let weights = if step == edit.steps() { to.clone() } else { between(from, to, step, edit.steps()) };
                rows.retain(|row| row.from < position);
                rows.push(Row { from: position, weights: weights.into() });
            }
        }
        Ok(rows)
    }
}

/// Returns the weights in the middle of step `step` of `count` of a transition.
fn between(from: &[f64], to: &[f64], step: u64, count: u64) -> Vec<f64> {
    let done = (step as f64 + 0.5) / count as f64;
    shares(from).into_iter().zip(shares(to)).map(|(from, to)| from * (1.0 - done) + to * done).collect()
}
