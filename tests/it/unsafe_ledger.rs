//! The list of files with `unsafe` in UNSAFE.md is that of the tree, and the tests that it names exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All files below `folder`, but for what is built.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

fn is_word(text: &str, word: &str) -> bool {
    // A word of CSP, `unsafe-inline`, is no keyword.
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

fn has_unsafe(code: &str) -> bool {
    code.lines().any(|line| is_word(line.split("//").next().unwrap_or_default(), "unsafe"))
}

/// The reason that a file gives for itself.
fn reason(code: &str) -> Option<&str> {
    let (_, rest) = code.split_once("unsafe_code,")?;
    rest.trim_start().strip_prefix("reason = \"")?.split_once('"').map(|(reason, _)| reason)
}

#[test]
fn the_ledger_of_unsafe_is_that_of_the_tree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in ["src", "tests", "benches", "examples", "fuzz", "python"] {
        files(&root.join(folder), &mut paths);
    }
    let (mut with_unsafe, mut all) = (BTreeSet::new(), String::new());
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "rs" || e == "py")) {
        let code = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".rs") && name != "tests/it/unsafe_ledger.rs" && has_unsafe(&code) {
            with_unsafe.insert(name);
        }
        all.push_str(&code);
    }
    let ledger = fs::read_to_string(root.join("UNSAFE.md")).unwrap();
    let rows = ledger.lines().filter_map(|line| line.strip_prefix("| `")).map(|row| {
        let mut cells = row.trim_end_matches(" |").split(" | ");
        let mut next = || cells.next().unwrap_or_else(|| panic!("three cells: {row}"));
        (next().trim_end_matches('`'), next(), next())
    });
    let mut listed = BTreeSet::new();
    for (file, why, held_by) in rows {
        assert!(listed.insert(file.to_owned()), "{file} is listed twice");
        let code = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(reason(&code).unwrap_or(why), why, "the reason of {file}");
        assert!(held_by != "-" || file.contains("tests/"), "{file} names nothing that would fail");
        for test in held_by.split(", ").filter(|test| *test != "-") {
            let test = test.trim_matches('`');
            let known = is_word(&all, &format!("fn {test}")) || is_word(&all, &format!("def {test}"));
            // The package that is published has no tests in Python.
            let absent = test.starts_with("test_") && !root.join("python").exists();
            assert!(known || absent, "{file}: no test {test}");
        }
    }
    let missing: Vec<_> = with_unsafe.difference(&listed).collect();
    let stale: Vec<_> = listed.difference(&with_unsafe).collect();
    assert!(missing.is_empty() && stale.is_empty(), "UNSAFE.md lacks {missing:?}, and has {stale:?} for nothing");
}
