//! `release/mutants.toml` fits the tree: a fault whose place has changed would no longer be planted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    least_killed: usize,
    cargo: Vec<String>,
    mutant: Vec<Mutant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    number: u32,
    file: String,
    about: String,
    before: String,
    after: String,
    tests: Vec<String>,
}

#[test]
fn every_mutant_has_one_place_in_the_tree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A package that was published comes without the table.
    let Ok(text) = fs::read_to_string(root.join("release/mutants.toml")) else { return };
    let table: Table = toml::from_str(&text).unwrap();
    let (mut numbers, mut planted, mut wrong) = (BTreeSet::new(), BTreeMap::new(), Vec::new());
    for Mutant { number, file, about, before, after, tests } in &table.mutant {
        let original = fs::read_to_string(root.join(file)).unwrap_or_default();
        let text: &mut String = planted.entry(file).or_insert_with(|| original.clone());
        let (found, left) = (original.matches(before.as_str()).count(), text.matches(before.as_str()).count());
        let is_sound = numbers.insert(number) && after.contains("{on}") && !tests.is_empty();
        if (found, left, is_sound) != (1, 1, true) {
            wrong.push(format!("{number} ({about}): {found} places in {file}, {left} of them without another mutant"));
        }
        *text = text.replace(before.as_str(), after);
    }
    assert!(wrong.is_empty(), "release/mutants.toml does not fit the tree:\n{}", wrong.join("\n"));
    assert!(table.least_killed <= table.mutant.len() && !table.cargo.is_empty());
}
