//! An earlier measurement, compared row by row with the current measurement.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{Error, Result};
use serde::Deserialize;

use super::change::Change;
use super::row::Row;

/// Rows of a file that `--output FILE.json` wrote.
pub(super) struct Baseline {
    pub(super) file: PathBuf,
    rows: Vec<Before>,
}

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

/// Batches per second, over all runs of a row.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Rate {
    pub(super) mean: f64,
    /// Standard deviation over the runs; `None` for a single run.
    pub(super) std_dev: Option<f64>,
}

impl Baseline {
    /// Reads the measurement in `file`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read;
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the file is not a measurement.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = crate::regular::read_text(file)?;
        let read: File = serde_json::from_str(&text).map_err(|e| {
            Error::data(format!("this is no measurement: {e}")).path(file).help("`bench --output FILE.json` writes one")
        })?;
        Ok(Self { file: file.to_owned(), rows: read.rows })
    }

    /// Returns the file name without folder and extension.
    pub(super) fn name(&self) -> String {
        self.file.file_stem().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned()
    }

    /// Returns the earlier rate of the row with the settings of `row`.
    pub(super) fn rate(&self, row: &Row) -> Option<Rate> {
        Some(self.figures(row)?.batches_per_s)
    }

    fn figures(&self, row: &Row) -> Option<&Figures> {
        let settings: BTreeMap<_, _> = row.settings.iter().cloned().collect();
        self.rows.iter().find(|before| before.settings == settings)?.figures.as_ref()
    }

    /// Compares `row` with its earlier counterpart; `None` if either has no figures.
    pub(super) fn change(&self, row: &Row) -> Option<Change> {
        let now = row.figures.as_ref()?;
        let before = self.figures(row)?;
        let (old, new) = (&before.batches_per_s, &now.rate.batches_per_s);
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
