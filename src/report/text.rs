//! The report for people: at most 100 columns.

use std::fmt;

use super::format::{count, time};
use super::{Report, StageReport};

const BAR: usize = 8;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.1} s · {} delivered · {}/s · {}{}",
            self.wall_s,
            count(self.delivered as f64),
            count(self.delivered_per_s()),
            self.executor,
            if self.threads > 0 { format!(" {:.0} % busy", self.threads_busy_share * 100.0) } else { String::new() }
        )?;
        let fill =
            self.buffer_fill.map_or_else(String::new, |fill| format!(" · buffer {:.0}{NO_BREAK}% full", fill * 100.0));
        let waited = format!(
            "{:.1}{NO_BREAK}% of the time ({} before the first) · next() p50 {} p99 {}{fill}",
            self.consumer_wait_share * 100.0,
            unbroken(&time(self.first_wait_s * 1e6)),
            unbroken(&time(self.next_p50_us)),
            unbroken(&time(self.next_p99_us))
        );
        wrapped(f, "the consumer waited ", &waited)?;
        if let Some(workers) = &self.workers {
            workers.lines(self.wall_s).iter().try_for_each(|line| wrapped(f, "  ", line))?;
        }
        writeln!(
            f,
            "  {:<22} {:BAR$}  {:>6}  {:>9}  {:>8}  {:>9}  {:>8}  {:>9}",
            "stage", "", "wait %", "self/elem", "p99", "elements", "elem/s", "bytes/s"
        )?;
        for stage in self.stages.iter().rev() {
            stage_line(f, stage)?;
        }
        if !self.notes.is_empty() {
            let note = |(what, n): &(String, u64)| format!("{what} {}", unbroken(&count(*n as f64)));
            let notes: Vec<_> = self.notes.iter().map(note).collect();
            wrapped(f, "counted: ", &notes.join(", "))?;
        }
        for remark in &self.remarks {
            wrapped(f, "note: ", remark)?;
        }
        wrapped(f, "VERDICT  ", &self.verdict.text)?;
        for (i, advice) in self.verdict.advice.iter().enumerate() {
            let gain = (advice.expected_speedup - 1.0) * 100.0;
            let gain = if gain > 400.0 {
                format!("{:.0}×", advice.expected_speedup)
            } else {
                format!("+{gain:.0}{NO_BREAK}%")
            };
            wrapped(f, &format!("  {}. ", i + 1), &format!("{}: up to {gain}", advice.text))?;
        }
        Ok(())
    }
}

fn stage_line(f: &mut fmt::Formatter<'_>, stage: &StageReport) -> fmt::Result {
    let filled = ((stage.wait_share * BAR as f64).round() as usize).min(BAR);
    let name = format!("{} {}", stage.id, stage.name);
    // A stage that does no work of its own per element (it only reorders indices) has no figures to show.
    let worked = stage.self_s > 0.0;
    let dash = |text: String| if worked { text } else { "–".into() };
    writeln!(
        f,
        "  {name:<22.22} {:<BAR$}  {:>6}  {:>9}  {:>8}  {:>9}  {:>8}  {:>9}",
        "█".repeat(filled),
        dash(format!("{:.1}%", stage.wait_share * 100.0)),
        dash(time(stage.self_us_per_element)),
        dash(time(stage.p99_us)),
        if stage.elements > 0 { count(stage.elements as f64) } else { "–".into() },
        if stage.elements > 0 { count(stage.elements_per_s) } else { "–".into() },
        if stage.bytes_per_s > 0.0 { format!("{}B", count(stage.bytes_per_s)) } else { "–".into() }
    )
}

/// Stands for a space at which [`wrapped`] breaks no line.
const NO_BREAK: char = '\u{a0}';

/// A number with its unit.
fn unbroken(number: &str) -> String {
    number.replace(' ', &NO_BREAK.to_string())
}

/// `text` after `head`, broken at spaces so that no line is longer than 100 columns.
fn wrapped(f: &mut fmt::Formatter<'_>, head: &str, text: &str) -> fmt::Result {
    let indent = head.chars().count();
    let mut line = head.to_owned();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() >= 100 && line.trim_end().chars().count() > indent {
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
    }
}
