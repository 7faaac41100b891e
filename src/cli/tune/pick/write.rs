//! Insertion of an `executor` into the text of a pipeline file, without changing the rest.

use std::fs::Permissions;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::checkpoint::fingerprint;
use crate::spec::{Format, Pipeline, RunOptions};
use crate::{Error, Result, Stage};

/// Name and value of a setting. The value is a number or an amount of memory.
pub(super) struct Setting(pub(super) &'static str, pub(super) String);

/// Formats bytes as whole mebibytes, rounded down.
pub(super) fn mebibytes(bytes: u64) -> String {
    format!("{}MiB", bytes >> 20)
}

/// Change of a single range of a file.
#[derive(Debug)]
pub(super) struct Change {
    text: String,
    /// Text that is removed; `added` replaces it.
    removed: String,
    added: String,
    /// Line number of the change, from 1.
    line: usize,
}

impl Change {
    /// Makes the change without writing the file.
    ///
    /// # Errors
    /// If the `executor` cannot be located in the file. The help contains the text to insert by hand.
    pub(super) fn new(pipeline: &Pipeline, file: &Path, settings: &[Setting]) -> Result<Self> {
        let (text, format) = (pipeline.text(), Format::of(file));
        let entry = entry(format, settings);
        let by_hand = || {
            Error::config("the executor cannot be written into this file without changes to other lines")
                .path(file)
                .help(format!("write it yourself: {entry}"))
        };
        let edit = match format {
            Format::Json => json(text, &entry),
            Format::Toml => toml(text, &entry),
            _ => yaml(text, &entry),
        };
        let (range, added) = edit.ok_or_else(by_hand)?;
        let removed = text.get(range.clone()).ok_or_else(by_hand)?.to_owned();
        let new = format!("{}{added}{}", &text[..range.start], &text[range.end..]);
        let line = 1 + text[..range.start].matches('\n').count();
        if !says_the_same(pipeline, &new, format, settings) {
            return Err(by_hand());
        }
        Ok(Self { text: new, removed, added, line })
    }

    /// Checks that [`write`](Self::write) can succeed, before a pipeline runs.
    pub(super) fn check(file: &Path) -> Result<()> {
        let (target, permissions) = target(file)?;
        if permissions.readonly() {
            return Err(Error::config("the file is read-only, but --write changes it").path(file));
        }
        crate::store::check_writable(&target)
    }

    /// Writes the changed text. A crash leaves the old file or the new file.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let (target, permissions) = target(file)?;
        crate::store::replace(&target, self.text.as_bytes())?;
        std::fs::set_permissions(&target, permissions).map_err(|e| Error::io(e, file))
    }

    /// Returns the added text.
    pub(super) fn added(&self) -> &str {
        self.added.trim().trim_matches(',')
    }
}

display_as!(Change, |self, f| {
    writeln!(f, "@@ line {} @@", self.line)?;
    let lines = |text: &str, sign: char| -> String {
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("{sign} {line}\n")).collect()
    };
    write!(f, "{}{}", lines(&self.removed, '-'), lines(&self.added, '+'))
});

/// Returns the file to replace, with links resolved, and its permissions.
fn target(file: &Path) -> Result<(PathBuf, Permissions)> {
    let target = std::fs::canonicalize(file).map_err(|e| Error::io(e, file))?;
    let permissions = std::fs::metadata(&target).map_err(|e| Error::io(e, file))?.permissions();
    Ok((target, permissions))
}

/// Formats the settings as a single line.
fn entry(format: Format, settings: &[Setting]) -> String {
    let quoted = |value: &str| if value.parse::<u64>().is_ok() { value.to_owned() } else { format!("\"{value}\"") };
    let all = |f: &dyn Fn(&Setting) -> String| settings.iter().map(f).collect::<Vec<_>>().join(", ");
    match format {
        Format::Json => format!("\"executor\": {{{}}}", all(&|s| format!("\"{}\": {}", s.0, quoted(&s.1)))),
        Format::Toml => format!("executor = {{ {} }}", all(&|s| format!("{} = {}", s.0, quoted(&s.1)))),
        _ => format!("executor: {{{}}}", all(&|s| format!("{}: {}", s.0, s.1))),
    }
}

/// Returns true if the new text is the old pipeline with the new executor.
fn says_the_same(old: &Pipeline, new: &str, format: Format, settings: &[Setting]) -> bool {
    let same = || -> Result<bool> {
        let new = Pipeline::from_text(new, format, old.folder())?;
        let (a, b) = (old.settings(), new.settings());
        let run = RunOptions::from_texts(settings.iter().map(|Setting(name, value)| (&**name, &**value)))?;
        let (a_stages, b_stages) = (old.build()?, new.build()?);
        let stages = fingerprint(&a_stages as &dyn Stage) == fingerprint(&b_stages as &dyn Stage);
        Ok(b.run == run && stages && a.name == b.name && a.checkpoint == b.checkpoint)
    };
    same().unwrap_or(false)
}

type Edit = (Range<usize>, String);

/// Returns the lines with their start offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

/// Appends the entry after the last text that is not blank.
fn append(text: &str, entry: &str) -> Edit {
    let end = text.trim_end().len();
    (end..text.len(), format!("\n{entry}\n"))
}

/// Replaces a key at the left margin and the indented lines below it, or appends the entry.
fn yaml(text: &str, entry: &str) -> Option<Edit> {
    // A mapping in braces has no lines to replace.
    let plain = |line: &str| !line.trim().is_empty() && !line.starts_with(['#', '%', '-']);
    lines(text).find(|(_, line)| plain(line)).filter(|(_, line)| !line.starts_with('{'))?;
    let mut found = lines(text).skip_while(|(_, line)| !line.starts_with("executor:"));
    let Some((start, line)) = found.next() else {
        let ended = text.trim_end().ends_with("...");
        return (!ended).then(|| append(text, entry));
    };
    let mut end = start + line.len();
    let mut value = line;
    for (at, line) in found {
        if !line.starts_with([' ', '\t', '}', ']']) {
            break;
        }
        (end, value) = (at + line.len(), line);
    }
    let newline = &value[value.trim_end_matches(['\r', '\n']).len()..];
    // A comment on the line of the old value may also apply to the new value.
    let comment = line.find(" #").map_or("", |at| line[at..].trim_end());
    Some((start..end, format!("{entry}{comment}{newline}")))
}

/// Replaces a key above the first table, or replaces or appends an `[executor]` table.
fn toml(text: &str, entry: &str) -> Option<Edit> {
    let starts = |line: &str| line.trim_start().starts_with("executor") && line.contains('=');
    let mut top = lines(text).take_while(|(_, line)| !line.trim_start().starts_with('['));
    if let Some((start, line)) = top.find(|(_, line)| starts(line)) {
        let end = start + line.trim_end().len();
        return Some((start..end, entry.to_owned()));
    }
    let table = entry.split_once('{')?.1.trim_end_matches('}').trim().replace(", ", "\n");
    let table = format!("[executor]\n{table}\n");
    let mut found = lines(text).skip_while(|(_, line)| line.trim() != "[executor]");
    let Some((start, line)) = found.next() else {
        let (range, _) = append(text, "");
        return Some((range, format!("\n\n{table}")));
    };
    let body = found.take_while(|(_, line)| !line.trim_start().starts_with('['));
    let filled = body.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let end = filled.last().map_or(start + line.len(), |(at, line)| at + line.len());
    Some((start..end, table))
}

/// Replaces a field of the outermost object, or adds it.
fn json(text: &str, entry: &str) -> Option<Edit> {
    let open = text.find('{')?;
    let (mut depth, mut at, mut key) = (0, open, None);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at)?;
                if depth == 1 && &text[at..end] == "\"executor\"" && text[end..].trim_start().starts_with(':') {
                    key = Some(at);
                }
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        let ends = (depth == 1 && bytes[at] == b',') || depth == 0;
        if let Some(start) = key.filter(|_| ends) {
            return Some((start..start + text[start..at].trim_end().len(), entry.to_owned()));
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    // Indented like the first field.
    let inside = &text[open + 1..];
    let space = &inside[..inside.len() - inside.trim_start().len()];
    Some((open + 1..open + 1, format!("{space}{entry},")))
}

/// Returns the offset after the closing quote of the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> [Setting; 4] {
        [
            Setting("workers", "1".into()),
            Setting("threads_per_worker", "2".into()),
            Setting("ram_budget", mebibytes(4 << 30)),
            Setting("buffer", "3".into()),
        ]
    }

    fn changed(file: &str, text: &str) -> Result<Change> {
        let file = Path::new(file);
        Change::new(&Pipeline::from_text(text, Format::of(file), ".").unwrap(), file, &settings())
    }

    const YAML: &str = "executor: {workers: 1, threads_per_worker: 2, ram_budget: 4096MiB, buffer: 3}";

    #[test]
    fn yaml_keeps_everything_else() {
        let rest = ("# a pipeline\nsource: {range: 9}\nstages:\n- batch: 2 # two\n", "name: x # y\n\n# the end\n");
        for old in
            ["executor: inline\n", "executor:\n  threads: 2\n  # more\n  buffer: 9\n", "executor: {\n  buffer: 9\n}\n"]
        {
            let text = changed("p.yaml", &format!("{}{old}{}", rest.0, rest.1)).unwrap().text;
            assert_eq!(text, format!("{}{YAML}\n{}", rest.0, rest.1));
            assert_eq!(changed("p.yaml", &text).unwrap().text, text, "twice is once");
        }
        assert_eq!(changed("p.yaml", "source: {range: 9}").unwrap().text, format!("source: {{range: 9}}\n{YAML}\n"));
        let windows = changed("p.yaml", "executor: inline\r\nsource: {range: 9}\r\n").unwrap().text;
        assert_eq!(windows, format!("{YAML}\r\nsource: {{range: 9}}\r\n"));
        let change = changed("p.yaml", "source: {range: 9}\nexecutor: inline # slow\n").unwrap();
        assert_eq!(change.to_string(), format!("@@ line 2 @@\n- executor: inline # slow\n+ {YAML} # slow\n"));
        assert_eq!(change.added(), format!("{YAML} # slow"));
    }

    #[test]
    fn toml_keeps_everything_else() {
        let new = "executor = { workers = 1, threads_per_worker = 2, ram_budget = \"4096MiB\", buffer = 3 }";
        let text = changed("p.toml", "executor = \"inline\" \nname = \"x\"\n[source]\nrange = 9\n").unwrap().text;
        assert_eq!(text, format!("{new} \nname = \"x\"\n[source]\nrange = 9\n"));
        let table = "[executor]\nworkers = 1\nthreads_per_worker = 2\nram_budget = \"4096MiB\"\nbuffer = 3\n";
        let text = changed("p.toml", "[source]\nrange = 9\n").unwrap().text;
        assert_eq!(text, format!("[source]\nrange = 9\n\n{table}"));
        let text = changed("p.toml", "[executor]\nthreads = 7\n\n# data\n[source]\nrange = 9\n").unwrap().text;
        assert_eq!(text, format!("{table}\n# data\n[source]\nrange = 9\n"));
    }

    #[test]
    fn json_keeps_everything_else() {
        let new =
            "\"executor\": {\"workers\": 1, \"threads_per_worker\": 2, \"ram_budget\": \"4096MiB\", \"buffer\": 3}";
        let text = changed("p.json", "{\n  \"source\": {\"range\": 9}\n}\n").unwrap().text;
        assert_eq!(text, format!("{{\n  {new},\n  \"source\": {{\"range\": 9}}\n}}\n"));
        for old in ["\"inline\"", "{\"buffer\": 1}", "{\"threads\": 2, \"buffer\": 1}"] {
            let text =
                |executor: &str| format!("{{\"name\": \"}} \\\"executor\", {executor}, \"source\": {{\"range\": 9}}}}");
            assert_eq!(changed("p.json", &text(&format!("\"executor\" : {old}"))).unwrap().text, text(new));
        }
        let last = changed("p.json", "{\"source\": {\"range\": 9}, \"executor\": \"inline\" }").unwrap().text;
        assert_eq!(last, format!("{{\"source\": {{\"range\": 9}}, {new} }}"));
    }

    #[test]
    fn what_cannot_be_changed_safely_is_left_to_the_user() {
        let error = changed("p.yaml", "{source: {range: 9}}").unwrap_err();
        assert_eq!(error.help_text(), Some(format!("write it yourself: {YAML}").as_str()));
        assert!(changed("p.yaml", "source: {range: 9}\n\"executor\": inline\n").is_err(), "a second key is refused");
    }
}
