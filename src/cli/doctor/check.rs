//! Checks of the machine, and their findings.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;

use crate::Error;
use crate::cli::output;

/// Health of the subject of a check, ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Health {
    Good,
    /// Works, but slower or only in part.
    Poor,
    Bad,
}

/// Result of a check. Its JSON always has all of these keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Check {
    pub(super) what: String,
    pub(super) health: Health,
    /// Finding in words. `figures` contains its numbers in bytes, cores, shares of 1 and counts; `null` is no limit.
    pub(super) found: String,
    pub(super) figures: BTreeMap<&'static str, Json>,
    /// Harm that the problem causes.
    pub(super) hurts: Option<String>,
    /// Command that fixes the problem, or advice in words if there is no such command.
    pub(super) mend: Option<String>,
}

/// Width of the columns to the left of the finding.
const INDENT: usize = 16;

impl Check {
    pub(super) fn good(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            health: Health::Good,
            found: found.into(),
            figures: BTreeMap::new(),
            hurts: None,
            mend: None,
        }
    }

    /// Makes a check of something that does not work.
    pub(super) fn bad(what: impl Into<String>, error: &Error) -> Self {
        let mend = error.help_text().map(str::to_owned);
        Self { health: Health::Bad, mend, ..Self::good(what, error.to_string()) }
    }

    pub(super) fn figure(mut self, name: &'static str, value: impl Into<Json>) -> Self {
        self.figures.insert(name, value.into());
        self
    }

    /// Marks the check as poor if `is_poor`, with its harm and its remedy. An earlier problem is kept.
    pub(super) fn poor_if(self, is_poor: bool, hurts: impl Into<String>, mend: impl Into<String>) -> Self {
        if !is_poor || self.health > Health::Good {
            return self;
        }
        Self { health: Health::Poor, hurts: Some(hurts.into()), mend: Some(mend.into()), ..self }
    }

    /// Formats the check for people, in lines of at most `width` columns that are wrapped at spaces.
    pub(super) fn lines(&self, width: usize) -> String {
        let (sign, colour) = match self.health {
            Health::Good => ("✓", output::GREEN),
            Health::Poor => ("!", output::YELLOW),
            Health::Bad => ("✗", output::RED),
        };
        let mut text = format!("{:<width$}", self.what, width = INDENT - 3);
        // A name that is too long gets a separate line.
        text += if self.what.chars().count() > INDENT - 3 { "\n" } else { " " };
        text += &whole_numbers(&self.found);
        let mut lines = indented(&text, width, INDENT - 2);
        lines = format!("{} {lines}", output::painted(sign, colour));
        for (mark, more) in [("  ", &self.hurts), ("→ ", &self.mend)] {
            if let Some(more) = more {
                let pad = " ".repeat(INDENT);
                lines += &output::wrapped_to(&format!("{pad}{mark}{more}"), INDENT + 2, width);
            }
        }
        lines.replace(NO_BREAK, " ")
    }
}

const NO_BREAK: char = '\u{a0}';

/// Replaces the blanks within numbers by no-break spaces, so that `1 048 576` is not wrapped.
fn whole_numbers(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let kept = |(at, c): (usize, &char)| match *c == ' ' && at > 0 && is_digit(at - 1) && is_digit(at + 1) {
        true => NO_BREAK,
        false => *c,
    };
    chars.iter().enumerate().map(kept).collect()
}

/// Wraps and indents `text`, with room for a sign and a blank on the first line.
fn indented(text: &str, width: usize, indent: usize) -> String {
    let pad = " ".repeat(indent + 2);
    let text = text.replace('\n', &format!("\n{pad}"));
    // The sign and its blank take two columns.
    let lines: Vec<String> = text
        .split('\n')
        .enumerate()
        .map(|(i, line)| {
            let most = if i == 0 { width - 2 } else { width };
            output::wrapped_to(line, indent + 2, most)
        })
        .collect();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_their_width() {
        let check = Check::good("open files", "256, of which the process may ask for 1 048 576")
            .figure("now", 256)
            .poor_if(true, "a folder of more shards than that does not open as a whole", "ulimit -n 65536")
            .poor_if(true, "never", "never");
        assert_eq!(
            check.lines(60),
            "! open files    256, of which the process may ask for\n\
             \x20               1 048 576\n\
             \x20                 a folder of more shards than that does not\n\
             \x20                 open as a whole\n\
             \x20               → ulimit -n 65536\n"
        );
        let long = Check::good("/a/folder/with/a/long/name", "can be written to").lines(60);
        assert_eq!(long, "✓ /a/folder/with/a/long/name\n                can be written to\n");
    }

    #[test]
    fn json_has_every_key_always() {
        let json = serde_json::to_value(Check::good("cores", "2").figure("allowed", 2)).unwrap();
        let keys = ["what", "health", "found", "figures", "hurts", "mend"];
        assert!(keys.iter().all(|key| json.get(key).is_some()) && json.as_object().unwrap().len() == keys.len());
        assert_eq!(
            (&json["health"], &json["figures"]["allowed"], &json["mend"]),
            (&"good".into(), &2.into(), &Json::Null)
        );
    }
}
