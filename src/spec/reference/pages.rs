//! Pages that are written from the descriptions, and fail when they are stale: `GRISTMILL_REFERENCE=write cargo test --features formats
//! --lib spec::reference` writes them anew.

use std::fs;
use std::path::Path;

use super::*;
use crate::spec::RunOptions;
use crate::spec::arguments::Arguments;
use crate::spec::schema;
use crate::spec::settings::{CheckpointArgs, FileArgs, Store};

const WIDTH: usize = 120;

/// Compares a page with its expected text, or writes it. A page that is no part of the package may be absent.
fn hold(path: &str, page: impl Fn(&str) -> String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let Some(folder) = file.parent().filter(|folder| folder.is_dir()) else {
        eprintln!("skipped: {path} is not here");
        return;
    };
    let written = fs::read_to_string(&file).unwrap_or_default();
    let wanted = page(&written);
    if std::env::var_os("GRISTMILL_REFERENCE").is_some_and(|what| what == "write") {
        fs::write(folder.join(file.file_name().unwrap()), wanted).unwrap();
    } else {
        assert!(written == wanted, "{path} is stale: run this test with GRISTMILL_REFERENCE=write");
    }
}

/// `text` in lines of at most [`WIDTH`] columns, all but the first indented.
fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            out += &format!("\n{}", " ".repeat(indent));
            column = indent;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += width;
    }
    out + "\n"
}

/// A list of arguments, in which arguments of mappings are indented.
fn arguments(about: &About, depth: usize) -> String {
    let mut out = String::new();
    for arg in about.all() {
        out += &" ".repeat(2 * depth);
        out += &wrapped(&format!("- `{}` ({}): {}", arg.name, nature(arg), arg.doc()), 2 * depth + 2);
        for section in arg.kind.sections() {
            out += &arguments(section, depth + 1);
        }
    }
    out
}

fn details(kind: &str) -> String {
    let mut out = String::new();
    for (_, entry) in entries().into_iter().filter(|(is, _)| *is == kind) {
        out += &format!("### `{}`\n{}\n", entry.name, wrapped(entry.doc, 0));
        if entry.about.free.is_none() && !entry.about.all().is_empty() {
            out += &arguments(entry.about, 0);
            out.push('\n');
        }
    }
    out
}

/// A table with a row for each source or stage.
fn overview(kind: &str) -> String {
    let rows = entries().into_iter().filter(|(is, _)| *is == kind);
    let rows: String = rows.map(|(_, entry)| format!("| `{}` | {} |\n", entry.name, entry.doc)).collect();
    format!("| {kind} | what it does |\n|---|---|\n{rows}")
}

fn keys(about: &About) -> String {
    let args = about.shared.iter().flat_map(|shared| shared.args).chain(about.args);
    let rows: String = args.map(|arg| format!("| `{}` | {} | {} |\n", arg.name, arg.doc(), nature(arg))).collect();
    format!("| key | what it says | |\n|---|---|---|\n{rows}")
}

/// `page` with the text between `<!-- written: name -->` and `<!-- end -->` replaced.
fn put(page: &str, name: &str, text: &str) -> String {
    let mark = format!("<!-- written: {name} -->\n");
    let (before, rest) = page.split_once(&mark).unwrap_or_else(|| panic!("no {mark}"));
    let (_, after) = rest.split_once("<!-- end -->").expect("an end");
    format!("{before}{mark}{text}<!-- end -->{after}")
}

#[test]
fn the_reference_is_up_to_date() {
    let page = format!("## Sources\n{}## Stages\n{}", details("source"), details("stage"));
    hold("src/spec/reference.md", |_| page.trim_end().to_owned() + "\n");
}

#[test]
fn the_page_of_pipelines_is_up_to_date() {
    let texts = [
        ("file", keys(&FileArgs::ABOUT)),
        ("executor", keys(&RunOptions::ABOUT)),
        ("checkpoint", keys(&CheckpointArgs::ABOUT)),
        ("store", keys(&Store::ABOUT)),
        ("sources", overview("source")),
        ("stages", overview("stage")),
    ];
    hold("python/docs/pipelines.md", |page| {
        texts.iter().fold(page.to_owned(), |page, (name, text)| put(&page, name, text))
    });
}

/// A number may be in the file's text as any text that means it: the values are compared.
#[test]
fn the_schema_is_up_to_date() {
    let tree = schema::tree();
    hold("python/gristmill/pipeline.schema.json", |written| match serde_json::from_str::<serde_json::Value>(written) {
        Ok(there) if there == tree => written.to_owned(),
        _ => schema::schema(),
    });
}
