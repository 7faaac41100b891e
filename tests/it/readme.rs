//! What the README and pages of the site show and claim, where no other test does.
#![cfg(feature = "spec")]

use std::collections::BTreeMap;

use gristmill::prelude::*;
use gristmill::spec::{Format, Pipeline};
use gristmill::{Element, ElementSpec, Result, demo};

#[path = "../../benches/support/lengths.rs"]
mod lengths;

const README: &str = include_str!("../../README.md");

/// The page with the features of the crate.
const FEATURES: &str = include_str!("../../python/docs/rust/index.md");

thread_local! {
    static TRAINED: std::cell::RefCell<Vec<Element>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn train(batch: Element) -> Result<()> {
    TRAINED.with_borrow_mut(|all| all.push(batch));
    Ok(())
}

#[rustfmt::skip]
fn example() -> Result<()> {
    // Shown:
    let pipeline = gristmill::jsonl("corpus/*.jsonl", ["text"])?
        .shuffle(42)
        .tokenise("gpt2.tokenizer.json", "text")?
        .to_iter()
        .window_pack(WindowPackOptions::new(1024).over_long(OverLong::Split))   // tokens, tokens_segment_ids, tokens_positions
        .batch(32);

    let mut loader = pipeline.loader().threads(4).build()?;
    for batch in loader.by_ref() { train(batch?)?; }
    println!("{}", loader.report());
    // Until here.
    Ok(())
}

/// The first block of a language on a page.
fn block<'a>(page: &'a str, language: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("its end").0
}

fn spec(element: &Element) -> BTreeMap<String, String> {
    ElementSpec::of(element).leaves().map(|(path, leaf)| (path.to_owned(), leaf.to_string())).collect()
}

/// One test, because it works in a folder of its own.
#[test]
fn both_pipelines_run_as_they_are_shown() {
    let source = include_str!("readme.rs");
    let shown = source.split("    // Shown:\n").nth(1).unwrap().split("    // Until here.").next().unwrap();
    let shown: String = shown.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    assert_eq!(shown, block(README, "rust"));

    let folder = tempfile::tempdir().unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    std::fs::write("gpt2.tokenizer.json", demo::TOKENIZER_JSON).unwrap();
    std::fs::create_dir("corpus").unwrap();
    let line = |text: &str| serde_json::json!({ "text": text }).to_string() + "\n";
    let texts: String = demo::corpus::Documents::new(3).take(600).map(|document| line(&document.text)).collect();
    std::fs::write("corpus/a.jsonl", texts).unwrap();
    example().unwrap();
    let trained = TRAINED.take();
    let names = ["tokens", "tokens_positions", "tokens_segment_ids"];
    let specs = names.map(|name| (name.to_owned(), "int32[32, 1024]".to_owned()));
    assert_eq!(spec(&trained[0]), BTreeMap::from(specs.clone()));

    let Some(page) = page_of_pipelines() else { return };
    let declared = Pipeline::from_text(block(&page, "yaml"), Format::Yaml, ".").unwrap();
    let mut loader = declared.build().unwrap().loader().build().unwrap();
    let first = loader.next().unwrap().unwrap();
    assert_eq!(spec(&first), BTreeMap::from(specs));
    assert_eq!(declared.settings().checkpoint.as_ref().unwrap().every, Some(100));
    // "JSON of a few hundred bytes", with the stages.
    assert!((300..1000).contains(&loader.state().unwrap().to_json().len()), "{}", loader.state().unwrap().to_json());
}

#[test]
fn features_that_are_on_by_default_are_named() {
    let manifest = include_str!("../../Cargo.toml");
    let list = manifest.lines().find_map(|line| line.strip_prefix("default = [")).unwrap().trim_end_matches(']');
    let on = FEATURES.split_once(" are on by default").unwrap().0;
    for feature in list.split(", ") {
        assert!(on.contains(&feature.replace('"', "`")), "{feature} is on by default");
    }
    let msrv = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(FEATURES.contains(&format!("Minimum supported Rust version: {msrv}.")), "{msrv}");
}

/// The rows of `real tokens` of the record of the benches, and what the documentation of `window_pack` says.
#[test]
fn a_window_fills_rows_better_than_bins_do() {
    use gristmill::pack::{Strategy, compare};
    let lens: Vec<u32> = lengths::log_normal(100_000, 220.0, 1.0, 1024).into_iter().map(|len| len as u32).collect();
    let outcomes = compare(&lens, 1024, 32).unwrap();
    let real = |strategy| 100.0 * (1.0 - outcomes.iter().find(|o| o.strategy == strategy).unwrap().padding_share);
    let shares = [Strategy::WindowBestFit, Strategy::BestFit].map(real);
    for (share, claimed) in shares.into_iter().zip([99.97, 98.95]) {
        // Here the last batch counts as a whole one.
        assert!((share - claimed).abs() < 0.15, "{shares:?}, {claimed} claimed");
    }
}

/// The page of the documentation says of every format what it can do.
#[test]
fn every_format_is_on_its_page() {
    // No part of the package that is published.
    let Ok(page) = std::fs::read_to_string("python/docs/formats.md") else {
        eprintln!("skipped: python/docs/formats.md is not here");
        return;
    };
    let (read, written) = page.split_once("## What is written").expect("both tables");
    let row = |page: &str, name: &str| {
        let cell = format!("`{name}`");
        page.lines()
            .find(|line| line.starts_with('|') && line.split('|').nth(2).unwrap_or("").contains(&cell))
            .map(str::to_owned)
    };
    for &format in gristmill::source::Format::ALL {
        let row = row(read, format.source()).unwrap_or_else(|| panic!("no row for {format}"));
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let cell = if format.has_random_access() { cells[3] } else { cells[4] };
        assert_ne!(cell, "–", "{format}: {row}");
    }
    for format in gristmill::sink::SinkFormat::ALL {
        assert!(row(written, &format.to_string()).is_some(), "no row for {format}");
    }
}

/// The page of pipeline files, unless this is the package that is published, which has none.
fn page_of_pipelines() -> Option<String> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/python/docs/pipelines.md"));
    page.map_err(|e| eprintln!("skipped: python/docs/pipelines.md: {e}")).ok()
}

/// The tables of keys are what the errors call valid.
#[test]
fn the_page_of_pipelines_has_every_key() {
    let Some(page) = page_of_pipelines() else { return };
    for (heading, key) in
        [("## The top", ""), ("### executor", "executor"), ("### checkpoint", "checkpoint"), ("### store", "store")]
    {
        let slip = if key.is_empty() { "qqqqqq: 1".to_owned() } else { format!("{key}: {{qqqqqq: 1}}") };
        // What must be there is asked for before what is not known is refused.
        let slip = slip.replace("checkpoint: {", "checkpoint: {folder: a, ");
        let error = Pipeline::from_text(format!("source: {{range: 1}}\n{slip}\n"), Format::Yaml, ".").unwrap_err();
        let valid = error.help_text().unwrap().strip_prefix("valid here: ").unwrap();
        let mut valid: Vec<&str> = valid.split(", ").collect();
        let section = page.split_once(&format!("\n{heading}")).expect(heading).1;
        let section = section.split("\n#").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let mut keys: Vec<&str> = rows.map(|(key, _)| key).collect();
        valid.sort_unstable();
        keys.sort_unstable();
        assert_eq!(keys, valid, "{heading}");
    }
}

/// Both files of the page run.
#[cfg(all(feature = "parquet", feature = "compress"))]
#[test]
fn the_files_of_the_page_of_pipelines_run() {
    use gristmill::sink::{Sink, SinkFormat};
    let Some(page) = page_of_pipelines() else { return };
    let blocks = page.split("```yaml\n").skip(1).map(|text| text.split("```").next().unwrap());
    let files: Vec<&str> = blocks.filter(|text| text.contains("source:")).collect();
    assert_eq!(files.len(), 2);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("gpt2.tokenizer.json"), demo::TOKENIZER_JSON).unwrap();
    for name in ["corpus", "web"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    let texts: Vec<String> = demo::corpus::Documents::new(3).take(600).map(|document| document.text).collect();
    let lines: String = texts.iter().map(|text| serde_json::json!({ "text": text }).to_string() + "\n").collect();
    std::fs::write(at("corpus/a.jsonl"), &lines).unwrap();
    for name in ["web/a.jsonl.gz", "web/b.jsonl.gz"] {
        let mut packed =
            flate2::write::GzEncoder::new(std::fs::File::create(at(name)).unwrap(), flate2::Compression::new(1));
        std::io::Write::write_all(&mut packed, lines.as_bytes()).unwrap();
        packed.finish().unwrap();
    }
    let mut books = Sink::options(SinkFormat::Parquet).open(at("books")).unwrap();
    texts.iter().for_each(|text| books.write(Element::new().with("text", text.as_str())).unwrap());
    books.finish().unwrap();
    let names = [["tokens", "tokens_segment_ids"], ["inputs", "inputs_segmentation"]];
    for (text, names) in files.into_iter().zip(names) {
        let pipeline = Pipeline::from_text(text, Format::Yaml, folder.path()).unwrap();
        let batches = pipeline.build().unwrap().collect().unwrap();
        assert!(!batches.is_empty(), "{text}");
        assert!(names.iter().all(|name| batches[0].get(name).is_some()), "{:?}", batches[0]);
    }
}

#[test]
fn every_feature_is_on_its_page_and_in_the_crate_docs() {
    let manifest = include_str!("../../Cargo.toml").parse::<toml::Table>().unwrap();
    // What several features need is of no use by itself.
    let others = ["columns", "default", "store"];
    let features = manifest["features"].as_table().unwrap().keys().filter(|name| !others.contains(&name.as_str()));
    let (_, docs) = include_str!("../../src/lib.rs").split_once("//! # Features").unwrap();
    // Formats and stores stand in the tables of their modules.
    let tables = [include_str!("../../src/source/mod.rs"), include_str!("../../src/store/mod.rs")];
    let is_in_table = |name: &str| tables.iter().any(|text| text.contains(&format!(" `{name}` |")));
    let is_described = |name: &str| docs.contains(name) && FEATURES.contains(name);
    let lacking: Vec<_> = features.filter(|name| !is_in_table(name) && !is_described(&format!("`{name}`"))).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}
