//! `gristmill stages`: what a pipeline file can name.

use serde::Serialize;

use crate::cli::{Outcome, output};
use crate::{Error, Result};

/// Lists the sources and stages that a pipeline file can name, with their arguments; `?` stands behind those that may be left out.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those whose names contain this
    name: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// A row of the reference.
#[derive(Serialize)]
struct Row {
    /// `source` or `stage`.
    kind: &'static str,
    names: Vec<&'static str>,
    arguments: String,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let wanted = args.name.as_deref().unwrap_or_default();
    let mut rows = rows();
    rows.retain(|row| row.names.iter().any(|name| name.contains(wanted)));
    if rows.is_empty() {
        return Err(Error::config(format!("no source or stage has a name with `{wanted}` in it"))
            .help("`gristmill stages` lists them all"));
    }
    if args.json {
        output::json(&serde_json::json!({"entries": rows}));
        return Ok(Outcome::Done);
    }
    let mut text = String::new();
    for row in &rows {
        text += &format!("{} {}\n", row.kind, row.names.join(", "));
        if !row.arguments.is_empty() {
            text += &output::wrapped(&format!("    {}", row.arguments), 4);
        }
    }
    output::data(&text);
    Ok(Outcome::Done)
}

/// The tables of the module's documentation, which a test holds to what there is.
fn rows() -> Vec<Row> {
    let mut kind = "";
    let mut rows = Vec::new();
    for line in include_str!("../spec/mod.rs").lines().filter_map(|line| line.strip_prefix("//! |")) {
        let Some((names, arguments)) = line.trim_end_matches('|').split_once(" | ") else { continue };
        match names.trim() {
            "source" => kind = "source",
            "stage" => kind = "stage",
            names if names.starts_with('`') && !kind.is_empty() => rows.push(Row {
                kind,
                names: names.split(", ").map(|name| name.trim_matches('`')).collect(),
                arguments: arguments.trim().trim_matches('|').replace('`', "").trim().to_owned(),
            }),
            _ => {}
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_and_arguments() {
        let rows = rows();
        let of = |name: &str| rows.iter().find(|row| row.names.contains(&name)).unwrap();
        assert_eq!((of("shuffle").kind, of("mix").kind), ("stage", "source"));
        assert_eq!(
            (of("limit").arguments.as_str(), &of("take").names),
            ("count: the first so many", &of("limit").names)
        );
        assert!(of("jsonl").arguments.starts_with("paths, columns?"));
        assert!(rows.len() > 30, "{}", rows.len());
    }
}
