//! Printing: data on stdout, the rest on stderr, colours only on a terminal.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::how::spelled;
use crate::{Error, Result};
use serde::Serialize;
use tracing::Level;

/// Prints data to stdout. A closed stdout is not an error: the process ends with success.
pub(crate) fn data(text: &str) {
    let mut out = io::stdout().lock();
    let written = out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush());
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(e) => {
            always(&format!("error: cannot write to stdout: {e}"));
            std::process::exit(2);
        }
        Ok(()) => {}
    }
}

/// Prints results as a JSON object if `as_json`, and otherwise as text.
pub(crate) fn either(as_json: bool, value: &impl Serialize, text: impl FnOnce() -> String) {
    if as_json { json(value) } else { data(&text()) }
}

/// Prints a JSON object and a line break.
pub(crate) fn json(value: &impl Serialize) {
    // Reports and tables contain strings, finite numbers and lists of them.
    let text = serde_json::to_string(value).expect("results serialise");
    // `serde_json` does not escape all of these characters.
    let text = if text.contains(acts) { text.chars().map(json_escaped).collect() } else { text };
    data(&(text + "\n"));
}

fn json_escaped(c: char) -> String {
    if acts(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }
}

/// Returns true if a character controls a terminal, or changes the order in which other characters appear.
fn acts(c: char) -> bool {
    let is_bidi = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_bidi
}

/// Escapes the control characters of `text`, except for the colours of this module.
/// Names of files, columns and stages come from untrusted data.
fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let colours = [RED, YELLOW, GREEN, CYAN, PLAIN].map(|code| format!("\x1b[{code}m"));
    let (mut out, mut rest) = (String::with_capacity(text.len() + 16), text);
    while let Some(at) = rest.find(acts) {
        out += &rest[..at];
        rest = &rest[at..];
        if let Some(colour) = colours.iter().find(|colour| rest.starts_with(colour.as_str())) {
            out += colour;
            rest = &rest[colour.len()..];
        } else {
            let mut chars = rest.chars();
            out.extend(chars.next().into_iter().flat_map(char::escape_default));
            rest = chars.as_str();
        }
    }
    Cow::Owned(out + rest)
}

/// Writes a page for a browser, and prints its path.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn page(file: &Path, page: &str) -> Result<()> {
    crate::store::replace(file, page.as_bytes())?;
    say(&format!("the page is in {}", file.display()));
    Ok(())
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses all messages except errors if `quiet`.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line to stderr, unless messages are suppressed.
pub(crate) fn say(line: &str) {
    if !is_quiet() {
        always(line);
    }
}

/// Prints a line to stderr, even if messages are suppressed. A closed stderr is not an error.
pub(crate) fn always(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
}

/// Prints an event of the library.
pub(crate) fn event(level: Level, text: &str) {
    match level {
        Level::ERROR => always(&labelled("error:", RED, text)),
        Level::WARN => warn(text),
        _ => say(&labelled("note:", CYAN, text)),
    }
}

/// Prints a warning to stderr.
pub(crate) fn warn(text: &str) {
    say(&labelled("warning:", YELLOW, text));
}

/// Prints an error and its remedy to stderr; with `as_json`, also an object to stdout.
pub(crate) fn error(error: &Error, as_json: bool) {
    // An error in a pipeline file refers to its keys, not to flags.
    let is_in_file = error.kind() == crate::ErrorKind::Config && error.file().is_some();
    let spell = |text: &str| if is_in_file { text.to_owned() } else { spelled(text) };
    let (message, help) = (spell(&error.to_string()), error.help_text().map(spell));
    always(&labelled("error:", RED, &message));
    if let Some(help) = &help {
        always(&labelled(" help:", CYAN, help));
    }
    if as_json {
        json(&serde_json::json!({"error": {"kind": error.kind().as_str(), "message": message, "help": help}}));
    }
}

pub(crate) const RED: &str = "1;31";
pub(crate) const YELLOW: &str = "1;33";
pub(crate) const GREEN: &str = "32";
const CYAN: &str = "1;36";
const PLAIN: &str = "0";
const WIDTH: usize = 100;

/// Formats a coloured label and text, wrapped at spaces to 100 columns.
fn labelled(label: &str, colour: &str, text: &str) -> String {
    let indent = label.chars().count() + 1;
    let mut out = coloured(label, colour, io::stderr().is_terminal());
    let mut column = indent - 1;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column + 1 + width > WIDTH && column >= indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent - 1));
            column = indent - 1;
        }
        out.push(' ');
        out.push_str(word);
        column += 1 + width;
    }
    out
}

/// Returns the width of a line on stdout in columns, from the terminal or from `COLUMNS`.
/// The result is between 40 and 100, and 100 if neither is known.
pub(crate) fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(said).map_or(WIDTH, |width| width.clamp(40, WIDTH))
}

/// Wraps `text` at spaces to 100 columns. Further lines are indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    wrapped_to(text, indent, WIDTH)
}

/// Wraps `text` at spaces to `most` columns. Further lines are indented.
pub(crate) fn wrapped_to(text: &str, indent: usize, most: usize) -> String {
    let mut out = String::new();
    for line in text.split('\n') {
        let mut column = 0;
        for (i, word) in line.split(' ').enumerate() {
            let width = word.chars().count();
            if column > indent && column + 1 + width > most {
                out += &format!("\n{}", " ".repeat(indent));
                column = indent;
            } else if i > 0 {
                out.push(' ');
                column += 1;
            }
            out += word;
            column += width;
        }
        out.push('\n');
    }
    out
}

/// Colours `text` if stdout is a terminal and `NO_COLOR` is not set.
pub(crate) fn painted(text: &str, code: &str) -> String {
    coloured(text, code, io::stdout().is_terminal())
}

fn coloured(text: &str, code: &str, is_terminal: bool) -> String {
    let objects = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    if objects || !is_terminal { text.to_owned() } else { format!("\x1b[{code}m{text}\x1b[{PLAIN}m") }
}

/// Returns true if stderr is a terminal and messages are not suppressed, so that a bar can be shown.
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal() && !is_quiet()
}

static PROGRAM: OnceLock<String> = OnceLock::new();

/// Records the name with which the user started this program.
pub(crate) fn set_program(name: &OsStr) {
    // A second command in a process has the same name.
    let _ = PROGRAM.set(shell_word(Path::new(name)));
}

/// Returns the name with which the user started this program, for printing commands that work.
pub(crate) fn program() -> &'static str {
    PROGRAM.get().map_or("gristmill", String::as_str)
}

/// Formats a path as a single word of a shell command.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Formats rows as a table without lines.
/// The first column and the columns in `left` are aligned left, the others right.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>], left: &[usize]) -> String {
    use comfy_table::{CellAlignment, Table, presets};
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.iter().copied());
    table.add_rows(rows.iter().map(|row| row.iter().map(String::as_str)));
    for at in 0..header.len() {
        let right = at != 0 && !left.contains(&at);
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(if right { CellAlignment::Right } else { CellAlignment::Left });
        }
    }
    table.trim_fmt() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_text_of_strangers() {
        let title = "k\u{1b}]0;pwn\u{7}\u{1b}[2J\rforged\u{9b}8m\u{202e}txt\n\tok é";
        let shown = r"k\u{1b}]0;pwn\u{7}\u{1b}[2J\rforged\u{9b}8m\u{202e}txt";
        assert_eq!(harmless(title), format!("{shown}\n\tok é"));
        let red = format!("\x1b[{RED}merror:\x1b[0m ");
        assert_eq!(harmless(&format!("{red}{title}")), format!("{red}{shown}\n\tok é"));
        // A style that the command does not use, and a truncated sequence.
        assert_eq!(harmless("\x1b[8mhidden\x1b["), r"\u{1b}[8mhidden\u{1b}[");
        assert!(matches!(harmless("plain\n\té"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_lines_are_broken_and_keep_their_indent() {
        assert_eq!(wrapped("  a b", 4), "  a b\n");
        let words = vec!["four"; 25].join(" ");
        let text = wrapped(&words, 3);
        assert_eq!(text, format!("{}\n   {}\n", ["four"; 20].join(" "), ["four"; 5].join(" ")));
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }
}
