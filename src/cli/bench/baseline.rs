//! An earlier measurement, row by row beside this one.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

use super::row::Row;

/// Rows of a file that `--output FILE.json` wrote.
pub(super) struct Baseline(Vec<Before>);

#[derive(Deserialize)]
struct File {
    rows: Vec<Before>,
}

#[derive(Deserialize)]
struct Before {
    settings: BTreeMap<String, String>,
    figures: Option<Figures>,
}

#[derive(Deserialize)]
struct Figures {
    batches: u64,
    order_hash: String,
    batches_per_s: Rate,
}

#[derive(Deserialize)]
struct Rate {
    mean: f64,
    std_dev: Option<f64>,
}

/// How a row differs from the one with its settings in the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Change {
    /// Batches per second then.
    pub(super) batches_per_s: f64,
    /// What came since, as a share: 0.13 for 13 % more.
    pub(super) change: f64,
    /// Whether that is more than the standard deviations of both together; `None` where one of them was a single run.
    pub(super) beyond_noise: Option<bool>,
    /// Whether the same batches were delivered; `None` where their numbers differ.
    pub(super) same_batches: Option<bool>,
}

impl Baseline {
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if it is
    /// something else.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).map_err(|e| Error::io(e, file))?;
        let read: File = serde_json::from_str(&text).map_err(|e| {
            Error::data(format!("this is no measurement: {e}")).path(file).help("`bench --output FILE.json` writes one")
        })?;
        Ok(Self(read.rows))
    }

    /// What has changed for `row`; `None` if it or its counterpart has no figures.
    pub(super) fn change(&self, row: &Row) -> Option<Change> {
        let now = row.figures.as_ref()?;
        let settings: BTreeMap<_, _> = row.settings.iter().cloned().collect();
        let before = self.0.iter().find(|before| before.settings == settings)?.figures.as_ref()?;
        let (old, new) = (&before.batches_per_s, &now.batches_per_s);
        let noise = old.std_dev.zip(new.std_dev).map(|(a, b)| a + b);
        let same_number = before.batches == now.batches;
        Some(Change {
            batches_per_s: old.mean,
            change: new.mean / old.mean - 1.0,
            beyond_noise: noise.map(|noise| (new.mean - old.mean).abs() > noise),
            same_batches: same_number.then(|| before.order_hash == now.order_hash.to_string()),
        })
        .filter(|change| change.change.is_finite())
    }
}

impl Change {
    /// `+13.0 %`, with an arrow if it is more than noise.
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
