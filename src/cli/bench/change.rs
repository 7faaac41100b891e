//! Differences between a row and its earlier counterpart.

use serde::Serialize;

/// Change of a row against the baseline row with equal settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    /// Batches per second of the baseline.
    pub(super) batches_per_s: f64,
    /// Relative change since the baseline: 0.13 for 13 % more.
    pub(super) change: f64,
    /// Whether the change exceeds the sum of both standard deviations; `None` if either row has a single run.
    pub(super) beyond_noise: Option<bool>,
    /// Whether both delivered the same batches; `None` if the numbers of batches differ.
    pub(super) same_batches: Option<bool>,
}

impl Change {
    /// Formats the change as `+13.0 %`, with an arrow if it exceeds the noise.
    pub(super) fn cell(self) -> String {
        let arrow = match self.beyond_noise {
            Some(true) if self.change > 0.0 => " ▲",
            Some(true) => " ▼",
            _ => "",
        };
        format!("{:+.1} %{arrow}", 100.0 * self.change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_marked_where_it_is_more_than_noise() {
        let change = Change { batches_per_s: 100.0, change: 0.13, beyond_noise: Some(true), same_batches: None };
        assert_eq!(change.cell(), "+13.0 % ▲");
        assert_eq!(Change { change: -0.021, ..change }.cell(), "-2.1 % ▼");
        assert_eq!(Change { change: -0.021, beyond_noise: Some(false), ..change }.cell(), "-2.1 %");
        assert_eq!(Change { beyond_noise: None, ..change }.cell(), "+13.0 %");
    }
}
