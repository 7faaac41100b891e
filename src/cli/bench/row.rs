//! Rows of a sweep: the results of its points.

use crate::Error;
use crate::element::OrderHash;
use serde::Serialize;

use super::change::Change;
use super::digest::Digested;
use super::measure::Run;
use super::point::Measured;
use super::sweep::Point;
use super::usage::Memory;
use crate::cli::hash::Rows;
use crate::consumer::Metrics;
use crate::report::TokenCount;
use crate::stats::Stats;

/// Row of the table: a point of the sweep, and its figures or its error.
#[derive(Serialize)]
pub(super) struct Row {
    #[serde(serialize_with = "as_map")]
    pub(super) settings: Vec<(String, String)>,
    /// Settings that change the data.
    #[serde(serialize_with = "as_map")]
    pub(super) data: Vec<(String, String)>,
    pub(super) figures: Option<Figures>,
    pub(super) error: Option<Failed>,
    /// Change against the baseline, if there is a baseline.
    pub(super) baseline: Option<Change>,
}

impl Row {
    /// Returns true if this row has figures for the batches that `point` yields.
    pub(super) fn has_figures_of(&self, point: &Point) -> bool {
        self.figures.is_some() && self.data == point.data()
    }

    /// Returns the metrics of the device, if there was a device.
    pub(super) fn accelerator(&self) -> Option<&Metrics> {
        self.figures.as_ref()?.accelerator.as_ref()
    }
}

/// Comparison of a row with the best row of its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Best {
    This,
    /// Slower than the best row by no more than the sum of both standard deviations.
    AsGood,
    /// Factor by which the best row is faster.
    Faster(f64),
}

impl Best {
    /// Compares `row` with the best row of its group; `None` if `row` has no figures or its runs are too short.
    pub(super) fn of(rows: &[Row], row: &Row) -> Option<Self> {
        let mine = row.figures.as_ref().filter(|figures| !figures.rate.too_short)?.rate.batches_per_s;
        let rates = rows.iter().filter(|other| other.data == row.data).filter_map(|other| other.figures.as_ref());
        let rates = rates.filter(|figures| !figures.rate.too_short);
        let best = rates.map(|figures| figures.rate.batches_per_s).max_by(|a, b| a.mean.total_cmp(&b.mean))?;
        let noise = mine.std_dev.zip(best.std_dev).map_or(0.0, |(a, b)| a + b);
        Some(match best.mean - mine.mean {
            more if more <= 0.0 => Self::This,
            more if more <= noise => Self::AsGood,
            _ => Self::Faster(best.mean / mine.mean),
        })
    }
}

fn as_map<S: serde::Serializer>(settings: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(settings.iter().map(|(key, value)| (key, value)))
}

/// Error of a point without figures.
#[derive(Serialize)]
pub(super) struct Failed {
    kind: &'static str,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Failed {
    pub(super) fn new(error: &Error) -> Self {
        Self { kind: error.kind().as_str(), message: error.to_string(), help: error.help_text().map(str::to_owned) }
    }
}

/// Figures of a row. Rates are means over its runs; times of `next` are taken from all runs together.
#[derive(Serialize)]
pub(super) struct Figures {
    /// Executor of the pipeline, in words.
    pub(super) executor: String,
    /// Number of batches per run that the order hash covers, including the warm-up.
    pub(super) batches: u64,
    pub(super) order_hash: OrderHash,
    /// Digest of the rows of these batches; `None` if no digest pass was made.
    pub(super) rows: Option<Rows>,
    #[serde(flatten)]
    pub(super) rate: BatchRate,
    pub(super) next_ms: Stats,
    #[serde(flatten)]
    pub(super) tokens: Tokens,
    pub(super) bytes_per_s: f64,
    pub(super) first_batch_s: Stats,
    pub(super) peak: Option<Memory>,
    /// Metrics of the device, if there was a device.
    pub(super) accelerator: Option<Metrics>,
    /// Batches per second of the loop over batches in memory.
    pub(super) headroom_batches_per_s: Option<f64>,
    /// Share of all cores that other processes used during the runs.
    pub(super) others_cpu_share: Option<f64>,
    pub(super) runs: Vec<Run>,
    #[serde(skip)]
    pub(super) further: Further,
}

/// Rate of a row.
#[derive(Serialize)]
pub(super) struct BatchRate {
    pub(super) batches_per_s: Stats,
    /// Whether the runs give no rate: batches arrive in bursts, and the pipeline ended before the second burst.
    pub(super) too_short: bool,
    /// Batches per burst, if batches arrive in bursts.
    pub(super) burst: Option<f64>,
}

/// Tokens of a row; `None` if the batches contain no tokens.
#[derive(Serialize)]
pub(super) struct Tokens {
    /// Real tokens per second.
    pub(super) tokens_per_s: Option<f64>,
    pub(super) real_token_share: Option<f64>,
}

/// Passes besides the timed runs.
pub(super) struct Further {
    /// Run over batches in memory, the source of [`headroom_batches_per_s`](Figures::headroom_batches_per_s).
    pub(super) resident: Option<Run>,
    /// Digest pass, the source of [`rows`](Figures::rows).
    digested: Option<Digested>,
}

impl Figures {
    /// Computes the figures; `None` if nothing ran.
    pub(super) fn new(measured: Measured) -> Option<Self> {
        let Measured { executor, runs, peak, others_cpu_share, digested, .. } = measured;
        let over = |f: &dyn Fn(&Run) -> f64| Stats::of(&runs.iter().map(f).collect::<Vec<_>>());
        let next_ms: Vec<f64> = runs.iter().flat_map(|run| run.next_s.iter().map(|s| s * 1e3)).collect();
        let tokens = runs.iter().fold(TokenCount::default(), |sum, run| TokenCount {
            real: sum.real + run.tokens.real,
            cells: sum.cells + run.tokens.cells,
        });
        let share = tokens.share();
        let accelerators: Vec<Metrics> = runs.iter().filter_map(|run| run.accelerator.clone()).collect();
        Some(Self {
            executor,
            batches: runs.first()?.batches,
            order_hash: runs.first()?.order_hash,
            rows: digested.map(|digested| digested.rows),
            rate: BatchRate {
                batches_per_s: over(&Run::batches_per_s)?,
                too_short: runs.iter().any(|run| run.too_short),
                burst: burst(&runs),
            },
            next_ms: Stats::of(&next_ms)?,
            tokens: Tokens {
                tokens_per_s: share.and(over(&|run| run.per_s(run.tokens.real as f64))).map(|stats| stats.mean),
                real_token_share: share,
            },
            bytes_per_s: over(&|run| run.per_s(run.bytes as f64))?.mean,
            first_batch_s: over(&|run| run.first_batch_s)?,
            peak,
            accelerator: Metrics::mean(&accelerators),
            headroom_batches_per_s: None,
            others_cpu_share,
            runs,
            further: Further { resident: None, digested },
        })
    }

    /// Returns every pass over the batches: its name, order hash and number of batches.
    pub(super) fn passes(&self) -> impl Iterator<Item = (String, OrderHash, u64)> + '_ {
        let runs = self.runs.iter().enumerate().map(|(i, run)| (format!("run {}", i + 1), run.order_hash, run.batches));
        let digested =
            self.further.digested.map(|pass| ("the pass for row digests".to_owned(), pass.order_hash, pass.batches));
        runs.chain(digested)
    }

    /// Adds the figures of the loop over batches in memory.
    pub(super) fn beside(&mut self, resident: Run) {
        self.headroom_batches_per_s = Some(resident.batches_per_s());
        if let Some(resident) = resident.accelerator.as_ref() {
            self.accelerator = self.accelerator.take().map(|metrics| metrics.beside(resident));
        }
        self.further.resident = Some(resident);
    }

    /// Computes the maximum gain from a perfect pipeline: 0.13 for 13 %.
    pub(super) fn headroom(&self) -> Option<f64> {
        let rate = self.rate.batches_per_s.mean;
        self.headroom_batches_per_s.filter(|_| rate > 0.0).map(|perfect| (perfect / rate - 1.0).max(0.0))
    }
}

/// Returns the mean number of batches per burst, if it is at least 1.5.
fn burst(runs: &[Run]) -> Option<f64> {
    let in_bursts = || runs.iter().filter_map(|run| Some((run.next_s.len(), run.periods?)));
    let (batches, periods) = in_bursts().fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    (periods > 0).then(|| batches as f64 / periods as f64).filter(|burst| *burst >= 1.5)
}
