//! The turns of components of a mix that counts tokens.

use std::sync::Arc;

use super::proportions;
use super::schedule::Row;
use super::turns::left;
use crate::error::Result;

/// Bits of a fraction of a token. Shares are multiples of 2^-48 and sum to 1 exactly.
const BITS: u32 = 48;

/// Chooses the component that is furthest below its target, ties by the order of the components.
///
/// The target of a component is the integral of its share over all tokens. All sums are exact integers in units of 2^-48
/// tokens. A component exceeds its target by at most its last document. It falls below its target by at most `1 + 1/2 + …
/// + 1/(n - 1)` longest documents, for `n` components that all have weights; one document, for two components.
///
/// If a component ends, all targets begin anew, and its share goes to the others.
pub(crate) struct TokenTurns {
    rows: Arc<[Row]>,
    has_ended: Box<[bool]>,
    /// Tokens of each component.
    taken: Box<[u64]>,
    /// Tokens of all components.
    total: u64,
    origin: Origin,
    /// Shares in the current row, of components that have not ended.
    shares: Box<[u64]>,
    /// Target of each component at the start of the row, less its tokens before the origin.
    due: Box<[i128]>,
    /// Start of the current row, or the origin in it.
    start: u64,
    /// Start of the next row.
    until: u64,
}

/// The last end of a component.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// Tokens of all components before.
    pub(crate) total: u64,
    /// Tokens of each component before. Empty at the start of the mix.
    pub(crate) taken: Box<[u64]>,
}

impl TokenTurns {
    /// Starts at position 0. The first of the `rows` must begin there.
    ///
    /// # Errors
    /// Errors of the weights.
    pub(crate) fn new(rows: Arc<[Row]>) -> Result<Self> {
        let components = rows.first().map_or(0, |row| row.weights.len());
        let mut turns = Self {
            rows,
            has_ended: vec![false; components].into(),
            taken: vec![0; components].into(),
            total: 0,
            origin: Origin::default(),
            shares: Box::default(),
            due: Box::default(),
            start: 0,
            until: 0,
        };
        turns.begin()?;
        Ok(turns)
    }

    /// Moves to a position with these tokens of each component.
    ///
    /// # Errors
    /// Errors of the weights.
    pub(crate) fn restore(&mut self, taken: Box<[u64]>, origin: Origin, has_ended: Box<[bool]>) -> Result<()> {
        self.total = taken.iter().fold(0, |sum, taken| sum.saturating_add(*taken));
        (self.taken, self.origin, self.has_ended) = (taken, origin, has_ended);
        self.begin()?;
        self.advance()
    }

    /// Returns the number of tokens of all components.
    pub(crate) fn position(&self) -> u64 {
        self.total
    }

    /// Returns the tokens of each component.
    pub(crate) fn taken(&self) -> &[u64] {
        &self.taken
    }

    /// Returns the last end of a component.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the component of the next element. Returns `None` if no component with a share is left.
    pub(crate) fn next(&self) -> Option<usize> {
        let present = self.shares.iter().enumerate().filter(|(_, share)| **share > 0);
        let below = present.map(|(component, _)| (self.deficit(component), component));
        below.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, component)| component)
    }

    /// Counts an element with `tokens` of a component.
    ///
    /// # Errors
    /// Errors of the weights.
    pub(crate) fn take(&mut self, component: usize, tokens: u64) -> Result<()> {
        self.taken[component] = self.taken[component].saturating_add(tokens);
        self.total = self.total.saturating_add(tokens);
        if self.total < self.until { Ok(()) } else { self.advance() }
    }

    /// Gives the share of a component to the others, because it has ended.
    ///
    /// # Errors
    /// Errors of the weights.
    pub(crate) fn end(&mut self, component: usize) -> Result<()> {
        self.has_ended[component] = true;
        self.origin = Origin { total: self.total, taken: self.taken.clone() };
        self.begin()
    }

    /// Returns the target of a component less its tokens, in units of 2^-48 tokens.
    fn deficit(&self, component: usize) -> i128 {
        let before = self.origin.taken.get(component).copied().unwrap_or(0);
        let taken = i128::from(self.taken[component]) - i128::from(before);
        self.due[component] + self.since_start(component, self.total) - (taken << BITS)
    }

    /// Returns the growth of the target of a component from the start of the row to `total`.
    fn since_start(&self, component: usize, total: u64) -> i128 {
        // At most 2^48 * 2^64.
        i128::from(self.shares[component]) * i128::from(total.saturating_sub(self.start))
    }

    /// Enters the row of the origin.
    fn begin(&mut self) -> Result<()> {
        self.due = vec![0; self.taken.len()].into();
        self.enter(self.origin.total)
    }

    /// Enters the row of the current position.
    fn advance(&mut self) -> Result<()> {
        while self.total >= self.until {
            for component in 0..self.due.len() {
                self.due[component] += self.since_start(component, self.until);
            }
            let at = self.until;
            self.enter(at)?;
            if at == u64::MAX {
                break;
            }
        }
        Ok(())
    }

    fn enter(&mut self, position: u64) -> Result<()> {
        let next = self.rows.partition_point(|row| row.from <= position);
        self.start = position;
        self.until = self.rows.get(next).map_or(u64::MAX, |row| row.from);
        self.shares = shares(&left(&self.rows[next.saturating_sub(1)].weights, &self.has_ended))?;
        Ok(())
    }
}

/// Converts weights to multiples of 2^-48 that sum to 1. A weight above 0 is at least one of them.
fn shares(weights: &[f64]) -> Result<Box<[u64]>> {
    let present: Vec<f64> = weights.iter().copied().filter(|weight| *weight > 0.0).collect();
    if present.is_empty() {
        return Ok(vec![0; weights.len()].into());
    }
    let proportions = proportions::exact(&present)?;
    let sum: u128 = proportions.iter().map(|&proportion| u128::from(proportion)).sum();
    let mut shares: Vec<u64> =
        proportions.iter().map(|&proportion| ((u128::from(proportion) << BITS) / sum).max(1) as u64).collect();
    // The remainder is at most one unit per component. It goes to the first of the largest shares, so that equal weights
    // take turns in order.
    let rest = (1i64 << BITS) - shares.iter().sum::<u64>() as i64;
    if let Some(largest) = shares.iter_mut().rev().max() {
        *largest = largest.saturating_add_signed(rest);
    }
    let mut shares = shares.into_iter();
    Ok(weights.iter().map(|weight| if *weight > 0.0 { shares.next().unwrap_or(0) } else { 0 }).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Schedule;
    use super::super::piecewise::tests::schedule;
    use super::*;

    const COMPONENTS: usize = 4;

    fn rows(schedule: &Schedule) -> Arc<[Row]> {
        schedule.rows(COMPONENTS).unwrap().into()
    }

    /// Targets by adding up every token.
    fn targets(rows: &[Row], total: u64) -> Vec<f64> {
        let mut targets = vec![0.0; COMPONENTS];
        for (number, row) in rows.iter().enumerate() {
            let end = rows.get(number + 1).map_or(u64::MAX, |next| next.from).min(total);
            let sum: f64 = row.weights.iter().sum();
            let tokens = end.saturating_sub(row.from) as f64;
            targets.iter_mut().zip(&row.weights).for_each(|(target, weight)| *target += tokens * weight / sum);
        }
        targets
    }

    /// Weights above 0 that change.
    fn always_present() -> impl Strategy<Value = Schedule> {
        let weights = || prop::collection::vec(0.01..5.0f64, COMPONENTS);
        (weights(), prop::collection::vec((weights(), 1u64..4000, 0u64..4000), 0..4)).prop_map(|(first, entries)| {
            let mut at = 0;
            entries.into_iter().fold(Schedule::new(first), |schedule, (weights, gap, over)| {
                let schedule = schedule.then(at + gap, weights).over(over);
                at += gap + over;
                schedule
            })
        })
    }

    proptest! {
        #[test]
        fn every_prefix_is_near_its_targets(
            schedule in always_present(), lens in prop::collection::vec(1u64..400, 50..400),
        ) {
            let rows = rows(&schedule);
            let mut turns = TokenTurns::new(rows.clone()).unwrap();
            let (mut longest, mut longest_of) = (0, [0; COMPONENTS]);
            for len in lens {
                let component = turns.next().unwrap();
                turns.take(component, len).unwrap();
                (longest, longest_of[component]) = (longest.max(len), longest_of[component].max(len));
                let most_below = longest as f64 * (1..COMPONENTS).map(|k| 1.0 / k as f64).sum::<f64>();
                for (component, target) in targets(&rows, turns.position()).into_iter().enumerate() {
                    let above = turns.taken()[component] as f64 - target;
                    prop_assert!(above <= longest_of[component] as f64 + 1e-3, "{component}: {above}");
                    prop_assert!(-above <= most_below + 1e-3, "{component}: {above}");
                }
            }
        }

        #[test]
        fn a_restored_position_continues(
            schedule in schedule(COMPONENTS), lens in prop::collection::vec(0u64..20, 1..120),
            at in any::<prop::sample::Index>(), ends in prop::option::of((any::<prop::sample::Index>(), 0..COMPONENTS)),
        ) {
            let rows = rows(&schedule);
            let mut turns = TokenTurns::new(rows.clone()).unwrap();
            let mut other: Option<TokenTurns> = None;
            for (number, &len) in lens.iter().enumerate() {
                if let Some((_, component)) = ends.filter(|(end, _)| end.index(lens.len()) == number) {
                    turns.end(component).unwrap();
                    other.iter_mut().for_each(|other| other.end(component).unwrap());
                }
                if at.index(lens.len()) == number {
                    let mut restored = TokenTurns::new(rows.clone()).unwrap();
                    restored.restore(turns.taken.clone(), turns.origin.clone(), turns.has_ended.clone()).unwrap();
                    other = Some(restored);
                }
                let next = turns.next();
                other.iter().for_each(|other| assert_eq!(other.next(), next));
                let Some(component) = next else { break };
                turns.take(component, len).unwrap();
                other.iter_mut().for_each(|other| other.take(component, len).unwrap());
            }
        }
    }

    #[test]
    fn shares_sum_to_one() {
        for weights in [&[0.29, 0.71][..], &[1.0, 1.0, 1.0], &[1e-30, 1.0], &[0.0, 3.0, 0.0], &[1.0 / 3.0; 7]] {
            let shares = shares(weights).unwrap();
            assert_eq!(shares.iter().sum::<u64>(), 1 << BITS);
            assert!(shares.iter().zip(weights).all(|(share, weight)| (*share > 0) == (*weight > 0.0)), "{weights:?}");
        }
        assert_eq!(*shares(&[0.0, 0.0]).unwrap(), [0, 0]);
    }

    #[test]
    fn equal_weights_take_turns_in_order() {
        let rows: Arc<[Row]> = Schedule::new([1.0; 7]).rows(7).unwrap().into();
        let mut turns = TokenTurns::new(rows).unwrap();
        for turn in 0..70 {
            assert_eq!(turns.next(), Some(turn % 7));
            turns.take(turn % 7, 5).unwrap();
        }
    }

    #[test]
    fn a_position_may_be_the_last() {
        let rows: Arc<[Row]> = Schedule::new([1.0, 1.0]).then(u64::MAX, [1.0, 0.0]).rows(2).unwrap().into();
        let mut turns = TokenTurns::new(rows).unwrap();
        for component in [0, 1, 0, 1] {
            turns.take(component, u64::MAX / 2 + 1).unwrap();
        }
        assert_eq!(turns.next(), Some(0));
    }
}
