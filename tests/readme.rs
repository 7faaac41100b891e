//! What the README shows and claims, where no other test does.
#![cfg(feature = "spec")]

use std::collections::BTreeMap;

use gristmill::dataset::map::Source;
use gristmill::pack::{OverLong, Packing, RowSpec, WindowPackOptions};
use gristmill::source::Jsonl;
use gristmill::spec::{Format, Pipeline};
use gristmill::text::{TextEncoder, Tokenise, TokeniseMap, TokeniseOptions, Tokenizer};
use gristmill::{Element, ElementSpec, IterDataset, MapDataset, Result, demo};

#[path = "../benches/support/lengths.rs"]
mod lengths;

const README: &str = include_str!("../README.md");

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
    let tokens = Tokenise::column(TextEncoder::new(Tokenizer::from_file("gpt2.tokenizer.json")?, &TokeniseOptions::default())?, "text");
    let rows = WindowPackOptions::new(RowSpec::new([("tokens", 1024)])).over_long(OverLong::Split);

    let pipeline = Source::new(Jsonl::options().columns(["text"]).open("corpus/*.jsonl")?)
        .shuffle(42)
        .tokenise(tokens)
        .to_iter()
        .window_pack(rows)          // tokens, tokens_segment_ids, tokens_positions: int32[1024]
        .batch(32);

    let mut loader = pipeline.loader().threads(4).build()?;
    for batch in loader.by_ref() { train(batch?)?; }
    println!("{}", loader.report());
    // Until here.
    Ok(())
}

/// The first block of a language.
fn block(language: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("```{language}\n")).expect("a block");
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
    assert_eq!(shown, block("rust"));

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

    let declared = Pipeline::from_text(block("yaml"), Format::Yaml, ".").unwrap();
    let mut loader = declared.build().unwrap().loader().build().unwrap();
    let first = loader.next().unwrap().unwrap();
    assert_eq!(spec(&first), BTreeMap::from(specs));
    assert_eq!(declared.settings().checkpoint.as_ref().unwrap().every, Some(100));
    // "JSON of a few hundred bytes", with the stages.
    assert!((300..1000).contains(&loader.state().unwrap().to_json().len()), "{}", loader.state().unwrap().to_json());
}

#[test]
fn features_that_are_on_by_default_are_named() {
    let manifest = include_str!("../Cargo.toml");
    let list = manifest.lines().find_map(|line| line.strip_prefix("default = [")).unwrap().trim_end_matches(']');
    let features = README.split_once("## Features\n").unwrap().1;
    let on = features.split_once(" are on by default").unwrap().0;
    for feature in list.split(", ") {
        assert!(on.contains(&feature.replace('"', "`")), "{feature} is on by default");
    }
    let msrv = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(features.contains(&format!("Minimum supported Rust version: {msrv}.")), "{msrv}");
}

/// The first row of the table, and what the documentation of `window_pack` says.
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

#[test]
fn every_feature_is_in_the_readme_and_in_the_crate_docs() {
    let manifest = include_str!("../Cargo.toml").parse::<toml::Table>().unwrap();
    // What all stores need is of no use by itself.
    let features =
        manifest["features"].as_table().unwrap().keys().filter(|name| !["default", "store"].contains(&name.as_str()));
    let (_, readme) = README.split_once("## Features").unwrap();
    let (_, docs) = include_str!("../src/lib.rs").split_once("//! # Features").unwrap();
    let lacking: Vec<_> = features
        .filter(|name| !readme.contains(&format!("`{name}`")) || !docs.contains(&format!("`{name}`")))
        .collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}
