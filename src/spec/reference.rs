//! Descriptions of sources, stages and their arguments as text: for `gristmill stages`, and for the pages of the documentation.

use std::fmt;

use super::arguments::{About, Arg, Kind};
pub(crate) use super::registry::Described;
use super::registry::{described_sources, described_stages};

/// Lists every source and every stage, each with its kind.
pub(crate) fn entries() -> Vec<(&'static str, Described)> {
    let sources = described_sources().map(|source| ("source", source));
    sources.chain(described_stages().map(|stage| ("stage", stage))).collect()
}

/// Lists the arguments in a line. A `?` marks an optional argument.
pub(crate) fn line(about: &About) -> String {
    let one = |arg: &&Arg| {
        let mark = if arg.is_required() { "" } else { "?" };
        match arg.kind {
            Kind::Words(_) => format!("{}{mark}: {}", arg.name, arg.kind),
            _ => format!("{}{mark}", arg.name),
        }
    };
    match &about.free {
        Some(kind) => format!("names, and for each {kind}"),
        None => about.all().iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// The kind and the default of an argument.
pub(crate) fn nature(arg: &Arg) -> String {
    match arg.default {
        Some(default) => format!("{}; `{}` by default", arg.kind, default.trim_matches('"')),
        None if arg.is_required() => format!("{}; needed", arg.kind),
        None => arg.kind.to_string(),
    }
}

display_as!(Kind, |self, f| {
    match self {
        Self::Any => f.write_str("any value"),
        Self::Bool => f.write_str("true or false"),
        Self::Integer { min: 1, .. } => f.write_str("whole number from 1 on"),
        Self::Integer { .. } => f.write_str("whole number"),
        Self::Number => f.write_str("number"),
        Self::Seconds => f.write_str("number of seconds"),
        Self::Text => f.write_str("text"),
        Self::Byte => f.write_str("one character"),
        Self::Words(words) => write_choice(f, words),
        Self::Share => f.write_str("INDEX/COUNT"),
        Self::Memory => f.write_str("bytes, or text such as 512MiB"),
        Self::Path => f.write_str("path"),
        Self::Tokenizer => f.write_str("path, or contents"),
        Self::List(item) if matches!(item, Self::Map(_) | Self::Part) => write!(f, "list; each item a {item}"),
        Self::List(item) => write!(f, "{item}, or a list of these"),
        Self::Map(Self::Any) => f.write_str("mapping"),
        Self::Map(item) => write!(f, "mapping of names, each with its {item}"),
        Self::Section(about) => match about.main_arg() {
            Some(arg) => write!(f, "{} or mapping", arg.kind),
            None => f.write_str("mapping"),
        },
        Self::Either(kinds) => write_choice(f, kinds),
        Self::Source => f.write_str("source"),
        Self::Stages => f.write_str("list of stages"),
        Self::Part => f.write_str("source, or mapping of source and stages"),
    }
});

/// `a, b or c`.
fn write_choice(f: &mut fmt::Formatter<'_>, choices: &[impl fmt::Display]) -> fmt::Result {
    for (i, choice) in choices.iter().enumerate() {
        let before = match i {
            0 => "",
            _ if i + 1 == choices.len() => " or ",
            _ => ", ",
        };
        write!(f, "{before}{choice}")?;
    }
    Ok(())
}

#[cfg(all(test, feature = "formats"))]
mod pages;
