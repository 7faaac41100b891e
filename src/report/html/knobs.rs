//! Decisions of the tuner over time: a line for each knob, as high as its value.

use crate::tune::{Decision, Knob};

/// Values of a knob over a run.
#[derive(Debug)]
pub(crate) struct Turned {
    /// Name of the knob.
    pub(crate) name: &'static str,
    /// First and last value, and the number of changes, as text.
    pub(crate) detail: String,
    /// Largest value.
    pub(crate) most: usize,
    /// Value in each column, as a share of the largest value.
    pub(crate) heights: Vec<f64>,
    /// Places of the changes, from 0 to 1.
    pub(crate) changes: Vec<f64>,
}

impl Turned {
    /// Returns the scale of the values.
    pub(crate) fn scale(&self) -> super::row::Ticks {
        super::row::up_to(self.most.to_string())
    }
}

/// Returns every knob that was turned, over `count` columns. `place` returns the place of a time on the axis, from 0 to 1.
pub(crate) fn turned<'a>(
    decisions: impl IntoIterator<Item = &'a Decision> + Clone,
    count: usize,
    place: impl Fn(f64) -> f64,
) -> Vec<Turned> {
    let of = |(knob, name): (Knob, &'static str)| {
        let own: Vec<&Decision> = decisions.clone().into_iter().filter(|decision| decision.knob == knob).collect();
        let (first, last) = (own.first()?, own.last()?);
        let most = own.iter().map(|decision| decision.from.max(decision.to)).max().unwrap_or(1).max(1);
        let changes: Vec<f64> = own.iter().map(|decision| place(decision.at_s).clamp(0.0, 1.0)).collect();
        let value = |column: usize| {
            let at = (column as f64 + 0.5) / count as f64;
            let before = changes.partition_point(|change| *change <= at);
            let value = if before == 0 { first.from } else { own[before - 1].to };
            value as f64 / most as f64
        };
        let times = if own.len() == 1 { "1 change".to_owned() } else { format!("{} changes", own.len()) };
        let detail = format!("{} → {}, {times}", first.from, last.to);
        Some(Turned { name, detail, most, heights: (0..count).map(value).collect(), changes })
    };
    let knobs =
        [(Knob::Processes, "worker processes"), (Knob::Threads, "tuned threads"), (Knob::Window, "tuned window")];
    knobs.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(at_s: f64, knob: Knob, from: usize, to: usize) -> Decision {
        Decision { at_s, knob, from, to, reason: String::new(), rate_before: 0.0, rate_after: None }
    }

    #[test]
    fn values_hold_from_one_decision_to_the_next() {
        let decisions = [
            decision(2.0, Knob::Threads, 1, 2),
            decision(5.0, Knob::Window, 8, 4),
            decision(6.0, Knob::Threads, 2, 4),
            decision(99.0, Knob::Threads, 4, 3),
        ];
        let found = turned(&decisions, 8, |at| at / 8.0);
        assert_eq!(found.iter().map(|knob| knob.name).collect::<Vec<_>>(), ["tuned threads", "tuned window"]);
        assert_eq!(found[0].detail, "1 → 3, 3 changes");
        assert_eq!(found[0].changes, [0.25, 0.75, 1.0]);
        let levels: Vec<f64> = found[0].heights.iter().map(|height| (height * 4.0).round()).collect();
        assert_eq!(levels, [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0]);
        assert_eq!(found[1].detail, "8 → 4, 1 change");
        assert!(turned(&[], 8, |at| at).is_empty());
    }
}
