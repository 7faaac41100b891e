//! `gristmill stages`: lists the sources and stages of pipeline files.

use std::ffi::OsStr;

use clap::Command;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use serde::Serialize;

use crate::cli::{Outcome, examples, output};
use crate::spec::arguments::About;
use crate::spec::nearest;
use crate::spec::reference::{Described, entries, line, nature};
use crate::{Error, Result};

/// Lists the sources and stages that a pipeline file can name
///
/// Arguments with `?` may be left out.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill stages"
    "gristmill stages shuffle"
    "gristmill stages pack"
))]
pub(crate) struct Args {
    /// The source or stage to explain, or a part of names to list
    #[arg(value_parser = Names, hide_possible_values = true)]
    name: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parser that accepts any text. Shells complete the names of sources and stages.
#[derive(Clone)]
struct Names;

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new(entries().into_iter().map(|(_, entry)| PossibleValue::new(entry.name).help(entry.doc))))
    }
}

/// Source or stage in JSON.
#[derive(Serialize)]
struct Row {
    /// Either `source` or `stage`.
    kind: &'static str,
    names: [&'static str; 1],
    doc: &'static str,
    /// Feature that the entry needs and this build lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<&'static str>,
    /// All arguments in a single line.
    arguments: String,
    options: Vec<Argument>,
}

#[derive(Serialize)]
struct Argument {
    name: &'static str,
    kind: String,
    required: bool,
    /// Default value, as written in a pipeline file.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
    doc: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<Argument>,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let found = found(args.name.as_deref().unwrap_or_default());
    if args.json {
        let rows: Vec<_> = found.iter().map(row).collect();
        output::json(&serde_json::json!({"entries": rows}));
        return Ok(Outcome::Done);
    }
    let text: String = match found.as_slice() {
        [] => {
            let wanted = args.name.as_deref().unwrap_or_default();
            let error = Error::config(format!("no source or stage has a name with `{wanted}` in it"));
            let meant = nearest(wanted, entries().into_iter().map(|(_, entry)| entry.name));
            return Err(match meant {
                Some(name) => error.help(format!("did you mean `{name}`?")),
                None => error.help("`gristmill stages` lists them all"),
            });
        }
        [one] => shown(one),
        many => many.iter().map(listed).collect(),
    };
    output::data(&text);
    Ok(Outcome::Done)
}

/// Returns the entry named `wanted`, or all entries whose names contain `wanted`.
fn found(wanted: &str) -> Vec<(&'static str, Described)> {
    let mut found = entries();
    let is_name = found.iter().any(|(_, entry)| entry.name == wanted);
    found.retain(|(_, entry)| if is_name { entry.name == wanted } else { entry.name.contains(wanted) });
    found
}

fn listed(described: &(&str, Described)) -> String {
    let line = line(described.1.about);
    let arguments = if line.is_empty() { line } else { output::wrapped(&format!("    {line}"), 4) };
    head(described) + &arguments
}

/// Formats the name of an entry, the feature that this build lacks for it, and its description.
fn head((kind, entry): &(&str, Described)) -> String {
    let lacks = entry.lacks.map_or_else(String::new, |feature| format!(" (needs a build with `--features {feature}`)"));
    format!("{kind} {}{lacks}\n{}", entry.name, output::wrapped(&format!("    {}", entry.doc), 4))
}

/// Formats the full description of an entry.
fn shown(described: &(&str, Described)) -> String {
    head(described) + &arguments(described.1.about, 4)
}

fn arguments(about: &About, indent: usize) -> String {
    let mut out = String::new();
    for arg in about.all() {
        let (name, deep) = (" ".repeat(indent), " ".repeat(indent + 4));
        out += &output::wrapped(&format!("\n{name}{}: {}", arg.name, nature(arg)), indent + 4);
        out += &output::wrapped(&format!("{deep}{}", arg.doc()), indent + 4);
        for section in arg.kind.sections() {
            out += &arguments(section, indent + 4);
        }
    }
    out
}

fn row((kind, entry): &(&'static str, Described)) -> Row {
    let options = options(entry.about);
    Row { kind, names: [entry.name], doc: entry.doc, lacks: entry.lacks, arguments: line(entry.about), options }
}

fn options(about: &About) -> Vec<Argument> {
    let one = |arg: &crate::spec::arguments::Arg| Argument {
        name: arg.name,
        kind: arg.kind.to_string(),
        required: arg.is_required(),
        default: arg.default,
        doc: arg.doc(),
        options: arg.kind.sections().into_iter().flat_map(options).collect(),
    };
    about.all().into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_shows_one_and_a_part_of_names_lists_several() {
        assert!(entries().len() > 50);
        assert_eq!(found("shuffle").len(), 1);
        assert_eq!(found("shuf").len(), 3);
        let text = shown(&found("window_shuffle")[0]);
        assert!(
            text.contains("\n    window_size: whole number from 1 on; needed\n        Number of elements in a window"),
            "{text}"
        );
        let text = shown(&found("length_buckets")[0]);
        assert!(
            text.contains("\n        per_bucket: whole number, or a list of these\n            Number of elements"),
            "{text}"
        );
        let text = listed(&found("limit")[0]);
        assert!(text.starts_with("stage limit\n    ") && text.ends_with(".\n    count\n"), "{text}");
        let text = listed(&found("jsonl")[0]);
        assert!(text.starts_with("source jsonl\n    Reads the records of JSON Lines files."), "{text}");
        assert!(text.contains("\n    paths, repeated_names?: last or error, "), "{text}");
        let (kind, entry) = found("parquet").remove(0);
        let text = listed(&(kind, Described { lacks: Some("parquet"), ..entry }));
        assert!(text.starts_with("source parquet (needs a build with `--features parquet`)\n    Reads"), "{text}");
    }

    #[test]
    fn json_has_every_argument() {
        let row = serde_json::to_value(row(&found("rebatch")[0])).unwrap();
        assert_eq!(row["options"][1]["default"], "\"keep\"");
        assert_eq!(row["options"][0]["required"], true);
    }
}
