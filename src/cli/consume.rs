//! The loop over a loader, shared by `run` and `demo`.

use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::element::OrderHash;
use crate::{BoxIter, Element, Error, Loader, LoaderBuilder, Part, Report, Result};
use serde::Serialize;

use crate::cli::format::{count, grouped, percent, time};
use crate::cli::hash::Rows;
use crate::cli::progress::Progress;
use crate::cli::saved::{RunState, States};
use crate::cli::{interrupt, output, report, views};
use crate::report::{Cells, TokenCount};

/// Settings of a run.
pub(crate) struct Plan {
    /// Number of batches after which the run stops.
    pub(crate) steps: Option<u64>,
    /// Indices that a pass reads, if known; the total of the progress display.
    pub(crate) indices: Option<u64>,
    /// Duration of the sleep in place of a training step.
    pub(crate) step_time: Duration,
    /// Destination of the states. The last state is saved at the end if `save_at_end`.
    pub(crate) states: States,
    pub(crate) save_at_end: bool,
    pub(crate) save_if_interrupted: bool,
    pub(crate) every: Option<u64>,
    pub(crate) resume: Option<RunState>,
}

/// Reason why a run stopped.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stopped {
    /// The pipeline has ended.
    End,
    /// The requested number of steps is reached.
    Steps,
    /// The run was interrupted.
    Interrupted,
    /// The state could not be saved during the run.
    Unsaved,
}

/// Figures of a run.
#[derive(Serialize)]
pub(crate) struct Summary {
    pub(crate) stopped: Stopped,
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    rates: Rates,
    /// Share of real tokens in all cells; `None` if the batches contain no tokens.
    real_token_share: Option<f64>,
    pub(crate) order_hash: OrderHash,
    /// Delivered rows, which [`hash`](crate::cli::hash) adds up.
    /// Rows before a resume are included unless the run delivers a part of each batch.
    rows: Rows,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    consumer_wait_share: f64,
    verdict: String,
    seconds: f64,
    /// Duration of the sleep in place of a training step after each batch. All rates include it.
    step_s: f64,
    resumed: bool,
    /// File with the state, if it was written.
    pub(crate) state_file: Option<PathBuf>,
    pub(crate) report: Report,
    /// Error that prevented saving the state, if a save was due.
    #[serde(skip)]
    pub(crate) unsaved: Option<Error>,
}

/// Amounts that a run has delivered.
#[derive(Serialize)]
struct Counts {
    /// Batches since the beginning, including batches before a resume.
    batches: u64,
    batches_this_run: u64,
    tokens: u64,
}

/// Rates after the first batch of a run, so that they do not include the start-up.
#[derive(Serialize)]
struct Rates {
    tokens_per_s: f64,
    batches_per_s: f64,
    /// Seconds until the first batch of this run; `None` without a batch.
    first_batch_s: Option<f64>,
}

/// Runs a pipeline to its end, to the number of steps, or until an interrupt.
pub(crate) fn consume(mut builder: LoaderBuilder<BoxIter<Element>>, mut plan: Plan) -> Result<Summary> {
    let resume = plan.resume.take();
    if let Some(state) = &resume {
        builder = builder.resume(state.checkpoint.clone());
    }
    let mut loader = builder.command(plan.step_time.is_zero()).build()?;
    views::tell(&loader);
    let resumed = resume.is_some();
    // A part begins with the state of the whole stream: its hashes and tokens cover this run only.
    let known = resume.filter(|_| loader.part().is_none());
    let mut position = known.map(Position::behind).unwrap_or_default();
    interrupt::listen();
    let (delivered, tokens) = (loader.delivered(), position.tokens.real);
    let mut progress = Progress::new(plan.steps, plan.indices, position.tokens);
    let start = Instant::now();
    let (mut first, mut state_file, mut unsaved) = (None, None, None);
    let stopped = loop {
        let batches = loader.delivered() - delivered;
        if plan.steps == Some(batches) {
            break Stopped::Steps;
        }
        let batch = match interrupt::next(&mut loader) {
            Poll::Pending => break Stopped::Interrupted,
            Poll::Ready(None) => break Stopped::End,
            Poll::Ready(Some(Ok(batch))) => batch,
            Poll::Ready(Some(Err(error))) => {
                progress.finish();
                // The cause may be fixed before a resume: a full disk, a server that was away.
                if plan.save_at_end && loader.delivered() > 0 {
                    match position.save(&loader, &mut plan.states, false) {
                        Ok(file) => output::say(&format!("state before the error saved in {}", file.display())),
                        Err(unsaved) => output::warn(&format!("the state before the error is not saved: {unsaved}")),
                    }
                }
                return Err(error);
            }
        };
        let arrived = start.elapsed();
        position.take(&batch, &loader);
        first.get_or_insert((arrived, position.tokens.real));
        if !plan.step_time.is_zero() {
            // The sleep of `--step-time`.
            std::thread::sleep(plan.step_time);
        }
        progress.show(batches + 1, position.tokens, || next_index(&loader.state().ok()?.state));
        if plan.every.is_some_and(|every| (batches + 1) % every == 0) {
            match position.save(&loader, &mut plan.states, false) {
                Ok(file) => state_file = Some(file),
                Err(error) => {
                    unsaved = Some(error);
                    break Stopped::Unsaved;
                }
            }
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    progress.finish();
    let is_due = plan.save_at_end || plan.save_if_interrupted && stopped == Stopped::Interrupted;
    // A run that delivered nothing has nothing to resume from.
    if is_due && unsaved.is_none() && (loader.delivered() > 0 || stopped == Stopped::End) {
        match position.save(&loader, &mut plan.states, stopped == Stopped::End) {
            Ok(file) => state_file = Some(file),
            Err(error) => unsaved = Some(error),
        }
    }
    if unsaved.is_none() {
        interrupt::saved();
    }
    let report = loader.report().with_cells(position.cells);
    let batches_this_run = loader.delivered() - delivered;
    // The rates of a single batch include its start-up, as there is nothing else.
    let (started, skipped, before) = match first {
        Some((arrived, tokens)) if batches_this_run > 1 => (arrived.as_secs_f64(), 1, tokens),
        _ => (0.0, 0, tokens),
    };
    let per_s = |n: u64| if seconds > started { n as f64 / (seconds - started) } else { 0.0 };
    let summary = Summary {
        stopped,
        counts: Counts { batches: loader.delivered(), batches_this_run, tokens: position.tokens.real },
        rates: Rates {
            tokens_per_s: per_s(position.tokens.real - before),
            batches_per_s: per_s(batches_this_run - skipped),
            first_batch_s: first.map(|(arrived, _)| arrived.as_secs_f64()),
        },
        real_token_share: position.tokens.share(),
        order_hash: position.hash,
        rows: position.rows,
        part: loader.part().map(Part::to_string),
        consumer_wait_share: report.waits.consumer_wait_share,
        verdict: report.verdict.bottleneck.clone(),
        seconds,
        step_s: plan.step_time.as_secs_f64(),
        resumed,
        state_file,
        report,
        unsaved,
    };
    if stopped == Stopped::Interrupted {
        loader.end_views();
        // The loader's threads may wait for a store that does not respond; they end with the process.
        std::mem::forget(loader);
    }
    Ok(summary)
}

/// Returns the next index of the first source in a state.
fn next_index(state: &serde_json::Value) -> Option<u64> {
    match state {
        serde_json::Value::Object(fields) => match fields.get("next_index") {
            Some(index) => index.as_u64(),
            None => fields.values().find_map(next_index),
        },
        serde_json::Value::Array(items) => items.iter().find_map(next_index),
        _ => None,
    }
}

/// Part of the stream's state that the command line keeps.
#[derive(Default)]
struct Position {
    hash: OrderHash,
    tokens: TokenCount,
    rows: Rows,
    /// Cells of this run only.
    cells: Cells,
}

impl Position {
    fn behind(state: RunState) -> Self {
        Self {
            hash: state.order_hash,
            tokens: state.tokens,
            rows: state.rows.unwrap_or_default(),
            cells: Cells::default(),
        }
    }

    fn take(&mut self, batch: &Element, loader: &Loader<BoxIter<Element>>) {
        self.hash.update(batch);
        let brought = TokenCount::of(batch);
        self.tokens = self.tokens.with(brought);
        self.cells.look(loader.delivered() - 1, batch, Some(brought));
        self.rows.take(loader.delivered() - 1, batch, loader.rows());
    }

    fn save(&self, loader: &Loader<BoxIter<Element>>, states: &mut States, finished: bool) -> Result<PathBuf> {
        // The state covers all parts, so the hash and rows of a single part are not saved.
        let (hash, rows) = match loader.part() {
            Some(_) => (OrderHash::default(), Rows::default()),
            None => (self.hash, self.rows),
        };
        let mut state = RunState::new(loader.state()?, hash, self.tokens, finished);
        state.rows = Some(rows);
        states.save(&state)
    }
}

impl Summary {
    /// Returns true if nothing was delivered, including before a resume.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.batches == 0
    }

    /// Writes the report as a page with facts of this run, and prints its path. A file that ends in `.svg` gets only the ribbon.
    pub(crate) fn write_html(&self, file: &Path, pipeline: &Path) -> Result<()> {
        let mut facts = vec![("pipeline", pipeline.display().to_string())];
        if let Some(share) = self.real_token_share {
            facts
                .push(("tokens", format!("{}, {} of all cells are real", grouped(self.counts.tokens), percent(share))));
        }
        facts.push(("order hash", self.order_hash.to_string()));
        facts.push(("row digest", self.rows.digest.to_string()));
        report::write_html(&self.report, &facts, file)
    }

    /// Prints the report as text to stdout.
    pub(crate) fn print(&self) {
        let mut text = format!("{:1$}\n", self.report, output::width().max(60));
        if let Some(share) = self.real_token_share {
            text += &format!(
                "tokens      {} · {}/s · {} of all cells are real\n",
                grouped(self.counts.tokens),
                count(self.rates.tokens_per_s),
                percent(share)
            );
        }
        let run = if self.resumed {
            format!(" ({} in this run)", grouped(self.counts.batches_this_run))
        } else {
            String::new()
        };
        let step = match self.step_s {
            step if step > 0.0 => format!(" · with a sleep of {} for a step after each", time(step * 1e6)),
            _ => String::new(),
        };
        let first = match self.rates.first_batch_s {
            Some(first) if self.counts.batches_this_run > 1 => {
                format!(" after the first, which took {}", time(first * 1e6))
            }
            _ => String::new(),
        };
        text += &format!(
            "batches     {}{run} · {}/s{first}{step}\n",
            grouped(self.counts.batches),
            count(self.rates.batches_per_s)
        );
        text += &format!("order hash  {}\n", self.order_hash);
        let of = self.part.as_ref().map_or_else(String::new, |part| format!(", part {part}"));
        text += &format!("row digest  {} · {} rows{of}\n", self.rows.digest, grouped(self.rows.count));
        output::data(&text);
    }
}
