//! How far a run is: a bar on a terminal, a plain line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::format::{count, percent};
use crate::output;
use crate::tokens::TokenCount;

/// Between two refreshes of the bar.
const BAR_EVERY: Duration = Duration::from_millis(100);
/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress on stderr.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    shown: Instant,
    tokens_before: u64,
}

impl Progress {
    /// For a run of `steps` batches, where that is known, that begins with `tokens` already delivered.
    pub(crate) fn new(steps: Option<u64>, tokens: TokenCount) -> Self {
        let bar = output::is_terminal().then(|| bar(steps));
        let now = Instant::now();
        Self { bar, started: now, shown: now, tokens_before: tokens.real }
    }

    /// Shows the state of things, if it is time. `batches` are those of this run.
    pub(crate) fn show(&mut self, batches: u64, tokens: TokenCount) {
        let every = if self.bar.is_some() { BAR_EVERY } else { LINE_EVERY };
        let now = Instant::now();
        if now - self.shown < every {
            return;
        }
        self.shown = now;
        let seconds = (now - self.started).as_secs_f64().max(1e-9);
        let mut text = format!("{} batches/s", count(batches as f64 / seconds));
        if let Some(share) = tokens.share() {
            let rate = (tokens.real - self.tokens_before) as f64 / seconds;
            text += &format!(" · {} tokens/s · {} real", count(rate), percent(share));
        }
        match &self.bar {
            Some(bar) => {
                bar.set_position(batches);
                bar.set_message(text);
            }
            None => output::say(&format!("{seconds:.0} s · {batches} batches · {text}")),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Counts things on a terminal; says nothing elsewhere, as it is over in seconds.
pub(crate) struct Counter {
    bar: Option<ProgressBar>,
}

impl Counter {
    /// Of `what`.
    pub(crate) fn new(what: &str) -> Self {
        let style = |bar: ProgressBar| bar.with_style(style("{spinner:.cyan} {elapsed} · {pos} {msg}"));
        let bar = output::is_terminal().then(|| style(ProgressBar::new_spinner()).with_message(what.to_owned()));
        Self { bar }
    }

    /// So many so far.
    pub(crate) fn show(&mut self, count: u64) {
        if count.is_multiple_of(1024)
            && let Some(bar) = &self.bar
        {
            bar.set_position(count);
        }
    }

    /// Removes the count.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// All templates are constants that parse.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn bar(steps: Option<u64>) -> ProgressBar {
    let (bar, template) = match steps {
        Some(steps) => (ProgressBar::new(steps), "{bar:30.cyan} {pos}/{len} batches · {msg} · {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner:.cyan} {elapsed} · {pos} batches · {msg}"),
    };
    bar.with_style(style(template))
}
