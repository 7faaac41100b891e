//! The report as text of at most 100 columns, or of the format's width, as in `{report:80}`.

use std::fmt;

use super::format::{bytes, count, percent, time};
use super::model::MOST_GAIN;
use super::{Report, StageReport};

const BAR: usize = 6;
/// Width of the whole table, and of the table without bars, bytes and lock.
const WHOLE: usize = 98;
const LESS: usize = 76;
/// Columns of the table: name, width, and the least width of the report that shows the column.
const COLUMNS: [(&str, usize, usize); 8] = [
    ("wait %", 6, 0),
    ("self/elem", 9, 0),
    ("cpu", 4, LESS),
    ("waits", 5, LESS),
    ("lock", 4, WHOLE),
    ("elements", 8, 0),
    ("elem/s", 8, 0),
    ("bytes/s", 9, WHOLE),
];
/// Smallest share of all cores used by other programs that is mentioned.
const WORTH_A_WORD: f64 = 0.1;
/// Shortest time that is reported, in microseconds: a call without a wait takes this long.
pub(super) const LEAST_US: f64 = 1.0;

display_as!(Report, |self, f| {
    writeln!(
        f,
        "{:.1} s · {} delivered · {}/s · {}{}",
        self.wall_s,
        count(self.delivered as f64),
        count(self.delivered_per_s()),
        self.execution.executor,
        if self.execution.threads > 0 {
            format!(" {:.0} % busy", self.execution.threads_busy_share * 100.0)
        } else {
            String::new()
        }
    )?;
    if let Some(part) = &self.execution.part {
        wrapped(f, "part ", part)?;
    }
    let fill = self
        .waits
        .buffer_fill
        .map_or_else(String::new, |fill| format!(" · buffer {:.0}{NO_BREAK}% full when asked", fill * 100.0));
    let waited = format!(
        "{}{} · next() p50 {} p99 {}{fill}",
        unbroken(&format!("{} of the time", percent(self.waits.consumer_wait_share))),
        self.parts(),
        unbroken(&latency(self.waits.next_p50_us)),
        unbroken(&latency(self.waits.next_p99_us))
    );
    wrapped(f, if self.is_drained { "waits took " } else { "the consumer waited " }, &waited)?;
    if let Some(why) = super::why::in_words(&self.waits.why, &self.stages) {
        wrapped(f, "why ", &why)?;
    }
    if let Some(longest) = super::why::longest_in_words(&self.waits.longest_waits, &self.stages) {
        wrapped(f, "longest ", &longest)?;
    }
    if self.delivered > 0 {
        let first = unbroken(&time(self.waits.first_wait_s * 1e6));
        let causes: String = self.waits.startup.iter().map(|cause| format!("; {cause}")).collect();
        wrapped(f, "start-up ", &format!("{first} until the first element{causes}"))?;
    }
    if let Some(workers) = &self.workers {
        super::workers::lines(workers, self.wall_s).iter().try_for_each(|line| wrapped(f, "  ", line))?;
    }
    let decisions = self.decisions.iter().rev().take(5).rev();
    decisions.into_iter().try_for_each(|decision| wrapped(f, "  ", &format!("tuned at {decision}")))?;
    row(f, "stage", 0, COLUMNS.map(|(name, ..)| name.to_owned()))?;
    for stage in self.stages.iter().rev() {
        stage_line(f, stage)?;
    }
    for line in self.stages.iter().rev().filter_map(super::hosts::line) {
        wrapped(f, "  ", &line)?;
    }
    for line in super::components::lines(&self.components) {
        wrapped(f, "mix ", &line)?;
    }
    if !self.notes.is_empty() {
        let note = |(what, n): &(String, u64)| format!("{what} {}", unbroken(&count(*n as f64)));
        let notes: Vec<_> = self.notes.iter().map(note).collect();
        wrapped(f, "counted: ", &notes.join(", "))?;
    }
    if let Some(share) = self.others_cpu_share.filter(|share| *share > WORTH_A_WORD) {
        wrapped(f, "note: ", &format!("other programs used {} of all cores meanwhile", unbroken(&percent(share))))?;
    }
    for remark in &self.remarks {
        wrapped(f, "note: ", remark)?;
    }
    wrapped(f, "VERDICT  ", &self.verdict.text)?;
    for (i, advice) in self.verdict.advice.iter().enumerate() {
        let gain = gain(advice.expected_speedup);
        wrapped(f, &format!("  {}. ", i + 1), &format!("{}: up to {gain}", advice.text))?;
    }
    Ok(())
});

impl Report {
    /// Returns the consumer's wait by cause, in shares that add up.
    fn parts(&self) -> String {
        let stages: f64 = self.stages.iter().map(|stage| stage.wait_share).sum();
        let parts = [
            ("start-up", self.waits.startup_share),
            ("for stages", stages),
            ("hand-over", self.waits.handover_share),
            ("for what is no stage's", self.waits.aside_share),
        ];
        // Parts that would print as 0.0 % are left out.
        let shown: Vec<_> = parts.into_iter().filter(|(_, share)| *share >= 0.000_5).collect();
        let part = |(what, share): &(&str, f64)| unbroken(&format!("{} {what}", percent(*share)));
        if shown.is_empty() {
            String::new()
        } else {
            format!(": {}", shown.iter().map(part).collect::<Vec<_>>().join(", "))
        }
    }
}

fn latency(us: f64) -> String {
    if us < LEAST_US { format!("< {}", time(LEAST_US)) } else { time(us) }
}

fn stage_line(f: &mut fmt::Formatter<'_>, stage: &StageReport) -> fmt::Result {
    let filled = ((stage.wait_share * BAR as f64).round() as usize).min(BAR);
    let name = format!("{} {}", stage.id, stage.name);
    // A stage without work per element, which only reorders indices, has no figures.
    let worked = stage.work.self_s > 0.0;
    let dash = |text: String| if worked { text } else { "–".into() };
    let known = stage.work.cpu_s + stage.work.blocked_s + stage.work.lock_s > 0.0;
    let part = |seconds: f64| if known { format!("{:.0}%", 100.0 * seconds / stage.work.self_s) } else { "–".into() };
    let cells = [
        dash(format!("{:.1}%", stage.wait_share * 100.0)),
        dash(time(stage.self_us_per_element)),
        part(stage.work.cpu_s),
        part(stage.work.blocked_s),
        if stage.interpreted { part(stage.work.lock_s) } else { "–".into() },
        if stage.elements > 0 { count(stage.elements as f64) } else { "–".into() },
        if stage.elements > 0 { count(stage.elements_per_s) } else { "–".into() },
        if stage.bytes_per_s > 0.0 { bytes(stage.bytes_per_s) } else { "–".into() },
    ];
    row(f, &name, filled, cells)
}

/// Writes a row of the table, with the columns that fit.
fn row(f: &mut fmt::Formatter<'_>, name: &str, filled: usize, cells: [String; COLUMNS.len()]) -> fmt::Result {
    let width = columns(f);
    let wide = if width >= LESS { 22 } else { 19 };
    write!(f, "  {name:<wide$.wide$}")?;
    if width >= WHOLE {
        write!(f, " {:<BAR$}", "█".repeat(filled))?;
    }
    for (cell, (_, wide, least)) in cells.iter().zip(COLUMNS) {
        if width >= least {
            write!(f, "  {cell:>wide$}")?;
        }
    }
    writeln!(f)
}

/// Returns the maximum number of columns of a line.
fn columns(f: &fmt::Formatter<'_>) -> usize {
    f.width().unwrap_or(100)
}

/// Formats a speedup: `+50 %`, `6×`, `10× or more`.
pub(super) fn gain(speedup: f64) -> String {
    let gain = (speedup - 1.0) * 100.0;
    if speedup >= MOST_GAIN {
        format!("{MOST_GAIN:.0}×{NO_BREAK}or more")
    } else if gain > 400.0 {
        format!("{speedup:.0}×")
    } else {
        format!("+{gain:.0}{NO_BREAK}%")
    }
}

/// A space at which [`wrapped`] never breaks a line.
const NO_BREAK: char = '\u{a0}';

/// Joins a number and its unit with [`NO_BREAK`].
pub(super) fn unbroken(number: &str) -> String {
    number.replace(' ', &NO_BREAK.to_string())
}

/// Writes `head` and `text`, broken at spaces so that each line fits the width.
fn wrapped(f: &mut fmt::Formatter<'_>, head: &str, text: &str) -> fmt::Result {
    let (indent, width) = (head.chars().count(), columns(f));
    let mut line = head.to_owned();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() >= width && line.trim_end().chars().count() > indent {
            writeln!(f, "{}", line.trim_end().replace(NO_BREAK, " "))?;
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    writeln!(f, "{}", line.trim_end().replace(NO_BREAK, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_unit() {
        struct Line(usize);
        impl fmt::Display for Line {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                wrapped(f, "head ", &format!("{} {}", "x".repeat(self.0), unbroken("1.5 ms")))
            }
        }
        assert_eq!(Line(87).to_string(), format!("head {} 1.5 ms\n", "x".repeat(87)));
        assert_eq!(Line(90).to_string(), format!("head {}\n     1.5 ms\n", "x".repeat(90)));
        assert_eq!(format!("{:60}", Line(50)), format!("head {}\n     1.5 ms\n", "x".repeat(50)));
    }

    #[test]
    fn a_row_has_the_columns_for_which_there_is_room() {
        struct Row;
        impl fmt::Display for Row {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                row(f, "stage", 3, COLUMNS.map(|(name, ..)| name.to_owned()))
            }
        }
        let names = |width: usize| {
            let text = format!("{Row:width$}");
            assert!(text.trim_end().chars().count() <= width, "{text}");
            text.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(100), "███ wait % self/elem cpu waits lock elements elem/s bytes/s");
        assert_eq!(names(80), "wait % self/elem cpu waits elements elem/s");
        assert_eq!(names(60), "wait % self/elem elements elem/s");
    }
}
