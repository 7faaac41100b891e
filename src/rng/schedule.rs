//! Weights that change during a run.

use std::borrow::Cow;

use crate::error::{Error, Result};

/// Largest number of steps of a transition.
pub(crate) const MOST_STEPS: u64 = 100;

/// Weights of a mix that change at certain positions of the mix.
///
/// Positions count what the mix counts: its elements, or its tokens. [`per_step`](Self::per_step) converts positions in
/// training steps. A component with weight 0 is absent. Weights apply exactly as written, as in
/// [`MixOrder::exact`](super::MixOrder::exact).
///
/// A schedule without an error in [`check`](Self::check) never changes the past: an added entry at position `p` changes
/// no element before `p`.
/// ```
/// use gristmill::{dataset::map::{Mix, Range}, rng::Schedule, prelude::*};
/// let parts = vec![Range::new(0, 8), Range::new(100, 108)];
/// let mixed = Mix::new(parts).schedule(Schedule::new([1.0, 0.0]).then(3, [1.0, 1.0]));
/// assert_eq!(mixed.slice(..7).collect()?, [0, 1, 2, 3, 100, 4, 101]);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    entries: Vec<ScheduleEntry>,
}

/// Weights from a position on: an entry of a [`Schedule`].
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleEntry {
    /// First position with these weights, or with a first step towards them.
    pub at: u64,
    /// A weight for each component, 0 or more.
    pub weights: Vec<f64>,
    /// Length of the transition from the weights before. 0 changes the weights at once.
    pub over: u64,
}

/// Constant weights from a position on.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) from: u64,
    pub(crate) weights: Box<[f64]>,
}

impl Schedule {
    /// Starts a schedule with the weights from position 0 on.
    pub fn new(weights: impl Into<Vec<f64>>) -> Self {
        Self::of(vec![ScheduleEntry { at: 0, weights: weights.into(), over: 0 }])
    }

    /// Makes a schedule of `entries`, in the order of their positions.
    pub fn of(entries: Vec<ScheduleEntry>) -> Self {
        Self { entries }
    }

    /// Adds weights from position `at` on.
    pub fn then(mut self, at: u64, weights: impl Into<Vec<f64>>) -> Self {
        self.entries.push(ScheduleEntry { at, weights: weights.into(), over: 0 });
        self
    }

    /// Makes the last entry a linear transition over `positions`: a staircase of at most 100 equal steps, each with the
    /// weights in the middle of the step.
    pub fn over(mut self, positions: u64) -> Self {
        if let Some(entry) = self.entries.last_mut() {
            entry.over = positions;
        }
        self
    }

    /// Multiplies all positions by `batch_size`, so that a schedule in training steps becomes a schedule in elements.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `batch_size` is 0, or if a position exceeds 2^64 - 1.
    pub fn per_step(mut self, batch_size: u64) -> Result<Self> {
        if batch_size == 0 {
            return Err(Error::config("the batch size of a schedule is 0, and must be 1 or more"));
        }
        for entry in &mut self.entries {
            for position in [&mut entry.at, &mut entry.over] {
                *position = position.checked_mul(batch_size).ok_or_else(|| {
                    Error::config(format!("step {position} of a schedule, times {batch_size}, exceeds 2^64 - 1"))
                })?;
            }
        }
        Ok(self)
    }

    /// Returns the entries.
    pub fn entries(&self) -> &[ScheduleEntry] {
        &self.entries
    }

    /// Checks the schedule for a mix of `components`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no entry, if the first entry has a position other than 0
    /// or a transition, or if entries are not in order. Also if an entry begins before the transition before it ends, if
    /// the number of weights is not `components`, or if a weight is not a finite number, 0 or above. Also if all weights
    /// of an entry are 0.
    pub fn check(&self, components: usize) -> Result<()> {
        let Some(first) = self.entries.first() else { return Err(Error::config("a schedule has no entries")) };
        if first.at != 0 || first.over != 0 {
            let text =
                format!("the first entry of a schedule is `{first}`, and must be at position 0, without a transition");
            return Err(Error::config(text).help("begin the schedule with the weights at position 0"));
        }
        for (number, entry) in self.entries.iter().enumerate() {
            entry.check(number, components)?;
        }
        for (number, pair) in (1..).zip(self.entries.windows(2)) {
            if let [before, entry] = pair {
                entry.check_after(number, before)?;
            }
        }
        Ok(())
    }

    /// Returns the constant weights that the schedule consists of.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub(crate) fn rows(&self, components: usize) -> Result<Vec<Row>> {
        self.check(components)?;
        let (mut rows, mut before): (Vec<Row>, &[f64]) = (Vec::new(), &[]);
        for entry in &self.entries {
            entry.steps(before, &mut rows);
            rows.push(Row { from: entry.at.saturating_add(entry.over), weights: entry.weights.as_slice().into() });
            before = &entry.weights;
        }
        Ok(rows)
    }
}

impl ScheduleEntry {
    fn check(&self, number: usize, components: usize) -> Result<()> {
        let count = self.weights.len();
        if count != components {
            let text = format!("entry {number} of the schedule has {count} weights for {components} components");
            return Err(Error::config(text).help("give each component a weight; 0 leaves it out"));
        }
        if let Some((component, weight)) = self.weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w >= 0.0))
        {
            let text = format!("entry {number} of the schedule has weight {weight} for component {component}");
            return Err(Error::config(format!("{text}, which is not a finite number, 0 or above")));
        }
        if self.weights.iter().all(|weight| *weight == 0.0) {
            return Err(Error::config(format!("entry {number} of the schedule, `{self}`, has no weight above 0")));
        }
        Ok(())
    }

    /// Checks that the entry begins after the entry `before`.
    fn check_after(&self, number: usize, before: &Self) -> Result<()> {
        if self.at <= before.at {
            let text = format!(
                "entry {number} of the schedule begins at {}, and the entry before it at {}",
                self.at, before.at
            );
            return Err(Error::config(text).help("sort the entries by position, each position once"));
        }
        match before.at.checked_add(before.over) {
            Some(end) if end <= self.at => Ok(()),
            _ => {
                let text = format!(
                    "entry {number} of the schedule begins at {}, before the transition `{before}` ends",
                    self.at
                );
                Err(Error::config(text).help("shorten the transition (`over`), or begin later"))
            }
        }
    }

    /// Adds the steps of the transition from the weights `before`.
    fn steps(&self, before: &[f64], rows: &mut Vec<Row>) {
        let count = self.over.min(MOST_STEPS);
        let (from, to) = (shares(before), shares(&self.weights));
        for step in 0..count {
            let begin = u128::from(self.over) * u128::from(step) / u128::from(count);
            let done = (step as f64 + 0.5) / count as f64;
            let weights = from.iter().zip(&to).map(|(from, to)| from * (1.0 - done) + to * done);
            rows.push(Row { from: self.at + begin as u64, weights: weights.collect() });
        }
    }
}

/// The weights divided by their sum.
pub(crate) fn shares(weights: &[f64]) -> Vec<f64> {
    // Dividing by the largest weight first keeps the sum finite.
    let largest = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scaled: Vec<f64> = weights.iter().map(|weight| weight / largest).collect();
    let sum: f64 = scaled.iter().sum();
    scaled.into_iter().map(|weight| weight / sum).collect()
}

// Writes the entry as states and fingerprints contain it. Trailing components without a weight are left out, so a
// component that joins later changes no earlier entry.
display_as!(ScheduleEntry, |self, f| {
    let present = self.weights.iter().rposition(|weight| *weight != 0.0).map_or(0, |last| last + 1);
    write!(f, "{}: {:?}", self.at, &self.weights[..present])?;
    if self.over > 0 {
        write!(f, " over {}", self.over)?;
    }
    Ok(())
});

// Writes the entries between braces.
display_as!(Schedule, |self, f| {
    let entries: Vec<_> = self.entries.iter().map(ScheduleEntry::to_string).collect();
    write!(f, "{{{}}}", entries.join("; "))
});

/// Start of the line of a stage whose state contains the entries of the schedule that have taken effect.
const IN_STATE: &str = "mix(schedule={";

/// Returns the line of a stage without such a schedule. States restore if these lines are equal.
pub(crate) fn without_schedule(line: &str) -> Cow<'_, str> {
    match line.strip_prefix(IN_STATE).and_then(|rest| rest.split_once('}')) {
        Some((_, after)) => Cow::Owned(format!("{IN_STATE}}}{after}")),
        None => Cow::Borrowed(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_transition_is_a_staircase() {
        let schedule = Schedule::new([3.0, 1.0]).then(10, [1.0, 3.0]).over(4);
        let rows: Vec<_> = schedule.rows(2).unwrap().into_iter().map(|row| (row.from, row.weights[0])).collect();
        assert_eq!(rows, [(0, 3.0), (10, 0.6875), (11, 0.5625), (12, 0.4375), (13, 0.3125), (14, 1.0)]);
        let long = Schedule::new([1.0, 0.0]).then(7, [0.0, 1.0]).over(1_000_001).rows(2).unwrap();
        assert_eq!((long.len(), long[1].from, long[101].from), (102, 7, 1_000_008));
        assert!(long.is_sorted_by(|a, b| a.from < b.from));
        let sum: f64 = long.windows(2).map(|pair| pair[0].weights[1] * (pair[1].from - pair[0].from) as f64).sum();
        assert!((sum - 500_000.5).abs() < 1.0, "{sum}");
    }

    #[test]
    fn an_impossible_schedule_is_refused() {
        let first = || Schedule::new([1.0, 1.0]);
        let cases = [
            (Schedule::of(Vec::new()), "a schedule has no entries"),
            (Schedule::new([1.0]), "entry 0 of the schedule has 1 weights for 2 components"),
            (first().over(3), "the first entry of a schedule is `0: [1.0, 1.0] over 3`"),
            (Schedule::of(first().then(5, [1.0, 2.0]).entries[1..].to_vec()), "the first entry of a schedule is `5: "),
            (first().then(0, [1.0, 2.0]), "entry 1 of the schedule begins at 0, and the entry before it at 0"),
            (first().then(9, [1.0, 2.0]).then(3, [1.0, 1.0]), "entry 2 of the schedule begins at 3"),
            (
                first().then(9, [1.0, 2.0]).over(4).then(12, [1.0, 1.0]),
                "before the transition `9: [1.0, 2.0] over 4` ends",
            ),
            (first().then(9, [1.0, 2.0]).over(u64::MAX).then(12, [1.0, 1.0]), "before the transition"),
            (first().then(9, [1.0, -2.0]), "entry 1 of the schedule has weight -2 for component 1"),
            (first().then(9, [f64::NAN, 2.0]), "entry 1 of the schedule has weight NaN for component 0"),
            (first().then(9, [0.0, 0.0]), "entry 1 of the schedule, `9: []`, has no weight above 0"),
        ];
        for (schedule, words) in cases {
            let error = schedule.check(2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.message().contains(words), "{error}: {words}");
        }
        assert_eq!(first().per_step(0).unwrap_err().kind(), ErrorKind::Config);
        assert!(first().then(1 << 40, [1.0, 0.0]).per_step(1 << 30).is_err());
        assert!(first().then(9, [1.0, 2.0]).over(3).then(12, [0.0, 1.0]).check(2).is_ok());
    }

    #[test]
    fn positions_in_steps_are_multiplied() {
        let schedule = Schedule::new([7.0, 3.0]).then(160_000, [1.0, 1.0]).over(2000).per_step(32).unwrap();
        assert_eq!(schedule.to_string(), "{0: [7.0, 3.0]; 5120000: [1.0, 1.0] over 64000}");
    }

    #[test]
    fn lines_are_compared_without_the_schedule() {
        let line = |schedule: &Schedule| format!("mix(schedule={schedule}, by=tokens)");
        let (short, long) = (Schedule::new([1.0, 2.0]), Schedule::new([1.0, 2.0]).then(9, [3.0, 1.0]));
        assert_ne!(line(&short), line(&long));
        assert_eq!(without_schedule(&line(&short)), without_schedule(&line(&long)));
        assert_eq!(without_schedule(&line(&short)), "mix(schedule={}, by=tokens)");
        assert_eq!(without_schedule("mix([1.0, 2.0])"), "mix([1.0, 2.0])");
    }
}
