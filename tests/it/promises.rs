//! What pages for people who change or judge gristmill name, held against the tree: tests of SECURITY.md, paths of all of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Pages whose paths are checked.
const PAGES: [&str; 5] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "UNSAFE.md", "VERSIONS.md"];
/// Folders in which a path of a page lies.
const FOLDERS: [&str; 12] = [
    "src/",
    "tests/",
    "benches/",
    "examples/",
    "fuzz/",
    "python/",
    "release/",
    "rfcs/",
    ".github/",
    ".ci/",
    "README.md",
    "Cargo.toml",
];
/// Parts of the tree that the published package does not have.
const UNPUBLISHED: [&str; 6] = ["fuzz/", "python/", "release/", "rfcs/", ".github/", ".ci/"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The texts between backticks, those of blocks of code left out.
fn quoted(text: &str) -> Vec<&str> {
    text.split("```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2)).collect()
}

/// Returns whether a path of a page need not be there, in a package without that folder.
fn is_absent(path: &str) -> bool {
    UNPUBLISHED.iter().any(|folder| path.starts_with(folder) && !root().join(folder).exists())
}

/// The paths that a page names, and the tests in them (`tests/a.rs::name`).
fn named(text: &str) -> Vec<(&str, Option<&str>)> {
    let is_path = |word: &&str| FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.contains(' ');
    let words = quoted(text).into_iter().filter(is_path);
    words.map(|word| word.split_once("::").map_or((word, None), |(path, test)| (path, Some(test)))).collect()
}

/// Finds a path, in which `*`, `NAME` and `…` stand for any name: then its folder is looked for.
fn exists(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let fixed = path
        .split('/')
        .take_while(|part| !["*", "NAME", "TARGET", "VERSION", "…"].iter().any(|any| part.contains(any)));
    root().join(fixed.collect::<Vec<_>>().join("/")).exists()
}

fn has_test(code: &str, name: &str) -> bool {
    ["fn ", "def "].iter().any(|word| {
        let function = format!("{word}{name}(");
        code.contains(&function)
    })
}

#[test]
fn what_pages_name_exists() {
    let mut lacking = BTreeSet::new();
    for name in PAGES {
        let text = page(name);
        for (path, test) in named(&text).into_iter().filter(|(path, _)| !is_absent(path)) {
            if !exists(path) {
                lacking.insert(format!("{name}: no {path}"));
            } else if let Some(test) = test
                && !has_test(&fs::read_to_string(root().join(path)).unwrap_or_default(), test)
            {
                lacking.insert(format!("{name}: no test {test} in {path}"));
            }
        }
    }
    assert!(lacking.is_empty(), "{}", lacking.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn every_row_of_the_security_page_names_a_test() {
    let text = page("SECURITY.md");
    let mut rows = 0;
    for row in text.lines().filter(|line| line.starts_with("| ") && !line.contains("may not | held by")) {
        let held_by = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(held_by.split(", ").all(|test| test.starts_with('`') && test.contains("::")), "no test: {row}");
        rows += 1;
    }
    assert!(rows > 30, "{rows} rows");
}

#[test]
fn names_are_found_where_they_stand() {
    assert_eq!(
        named("a `src/x.rs::t`, `src` and `tests/*.rs`\n```\n`src/y`\n```\n"),
        [("src/x.rs", Some("t")), ("tests/*.rs", None)]
    );
    assert!(exists("tests/it/promises.rs") && exists("src/NAME/x.rs") && !exists("src/nowhere.rs"));
    assert!(has_test("fn one() {", "one") && !has_test("fn one_more() {", "one"));
}
