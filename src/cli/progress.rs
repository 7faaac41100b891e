//! Progress of a run: a bar on a terminal, a plain line every few seconds elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::format::{count, percent};
use crate::cli::output;
use crate::report::TokenCount;
use crate::units::Bytes;

/// Interval between two refreshes of the bar.
const BAR_EVERY: Duration = Duration::from_millis(100);
/// Interval between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Bar on a terminal or lines elsewhere, refreshed at intervals.
struct Display {
    bar: Option<ProgressBar>,
    started: Instant,
    shown: Instant,
}

impl Display {
    fn new(bar: impl FnOnce() -> ProgressBar) -> Self {
        let now = Instant::now();
        Self { bar: output::is_terminal().then(bar), started: now, shown: now }
    }

    /// Returns the seconds since the start, if a refresh is due.
    fn due(&mut self) -> Option<f64> {
        let every = if self.bar.is_some() { BAR_EVERY } else { LINE_EVERY };
        let now = Instant::now();
        if now - self.shown < every {
            return None;
        }
        self.shown = now;
        Some((now - self.started).as_secs_f64().max(1e-9))
    }

    fn say(&self, seconds: f64, text: String) {
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => output::say(&format!("{seconds:.0} s · {text}")),
        }
    }
}

/// Removes a bar.
fn clear(bar: Option<ProgressBar>) {
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Progress of a run, shown on stderr.
pub(crate) struct Progress {
    display: Display,
    /// Whether the bar counts indices instead of batches.
    by_index: bool,
    tokens_before: u64,
}

impl Progress {
    /// Starts the display for a run of `steps` batches or over `indices` indices, if either is known.
    /// `tokens` contains the tokens delivered before the run.
    pub(crate) fn new(steps: Option<u64>, indices: Option<u64>, tokens: TokenCount) -> Self {
        let by_index = steps.is_none() && indices.is_some();
        Self { display: Display::new(|| bar(steps, indices)), by_index, tokens_before: tokens.real }
    }

    /// Shows the current state, if a refresh is due. `batches` counts this run only; `index` is called only if needed.
    pub(crate) fn show(&mut self, batches: u64, tokens: TokenCount, index: impl FnOnce() -> Option<u64>) {
        let Some(seconds) = self.display.due() else { return };
        let mut text = format!("{batches} batches · {} batches/s", count(batches as f64 / seconds));
        if let Some(share) = tokens.share() {
            let rate = (tokens.real - self.tokens_before) as f64 / seconds;
            text += &format!(" · {} tokens/s · {} real", count(rate), percent(share));
        }
        if let Some(bar) = &self.display.bar {
            let position = if self.by_index { index() } else { Some(batches) };
            bar.set_position(position.unwrap_or(0));
        }
        self.display.say(seconds, text);
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        clear(self.display.bar);
    }
}

/// Counter on a terminal. Nothing is shown elsewhere, because the work takes seconds.
pub(crate) struct Counter {
    bar: Option<ProgressBar>,
}

impl Counter {
    /// Starts a counter of `what`.
    pub(crate) fn new(what: &str) -> Self {
        let style = |bar: ProgressBar| bar.with_style(style("{spinner:.cyan} {elapsed} · {pos} {msg}"));
        let bar = output::is_terminal().then(|| style(ProgressBar::new_spinner()).with_message(what.to_owned()));
        Self { bar }
    }

    /// Shows the current count.
    pub(crate) fn show(&mut self, count: u64) {
        if count.is_multiple_of(1024)
            && let Some(bar) = &self.bar
        {
            bar.set_position(count);
        }
    }

    /// Removes the counter.
    pub(crate) fn finish(self) {
        clear(self.bar);
    }
}

/// Progress of writing records: a spinner on a terminal, a plain line every few seconds elsewhere.
pub(crate) struct Written {
    display: Display,
    before: u64,
}

impl Written {
    /// Starts the display for a run that begins with `before` records already written.
    pub(crate) fn new(before: u64) -> Self {
        Self { display: Display::new(|| bar(None, None)), before }
    }

    /// Shows the number of records and the bytes since the start, if a refresh is due.
    pub(crate) fn show(&mut self, records: u64, bytes: impl FnOnce() -> u64) {
        // Reading the clock takes as long as a small record.
        if !records.is_multiple_of(16) {
            return;
        }
        let Some(seconds) = self.display.due() else { return };
        let rate = |n: u64| count(n as f64 / seconds);
        let bytes_per_s = Bytes((bytes() as f64 / seconds) as u64);
        let text = format!("{records} records · {}/s · {bytes_per_s}/s", rate(records - self.before));
        self.display.say(seconds, text);
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        clear(self.display.bar);
    }
}

/// Makes a style. All templates are constants that parse.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn bar(steps: Option<u64>, indices: Option<u64>) -> ProgressBar {
    match steps.or(indices) {
        Some(length) => ProgressBar::new(length).with_style(style("{bar:20.cyan} {percent} % · {msg} · {eta} left")),
        None => ProgressBar::new_spinner().with_style(style("{spinner:.cyan} {elapsed} · {msg}")),
    }
}

/// Progress of a measurement. The clock is read rarely, so that the display does not disturb the measurement.
pub(crate) struct Steps {
    bar: Option<ProgressBar>,
    shown: std::cell::Cell<Instant>,
}

impl Steps {
    /// Starts the display of `most` steps, described by `what`.
    pub(crate) fn new(what: &str, most: u64) -> Self {
        let template = "{bar:20.cyan} {pos} of {len} batches · {msg}";
        let bar = output::is_terminal().then(|| ProgressBar::new(most).with_style(style(template)));
        match &bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => output::say(what),
        }
        Self { bar, shown: std::cell::Cell::new(Instant::now()) }
    }

    /// Shows the current count.
    pub(crate) fn show(&self, count: u64) {
        let Some(bar) = &self.bar else { return };
        if self.shown.get().elapsed() >= BAR_EVERY {
            self.shown.set(Instant::now());
            bar.set_position(count);
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        clear(self.bar);
    }
}
