//! The floors of `ARCHITECTURE.md`, held against the `use` lines: a room imports only from rooms on floors below its own. And no file
//! is longer than what is read in one go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[test]
fn no_import_runs_up() {
    let floors = floors();
    let found = imports(&source());
    let rooms: BTreeSet<_> = found.keys().flat_map(|(from, to)| [from, to]).collect();
    for room in rooms {
        assert!(floors.contains_key(room), "src/{room} stands on no floor of ARCHITECTURE.md");
    }
    for ((from, to), file) in found {
        assert!(
            floors[&to] < floors[&from],
            "{} imports crate::{to}, which is on floor {}, and {from} is on floor {}: let the lower one offer a trait, or move \
             what both need to a floor below both",
            file.display(),
            floors[&to],
            floors[&from],
        );
    }
}

/// Lines of a file at most.
const MOST_LINES: usize = 500;

#[test]
fn no_file_is_longer_than_500_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut long = Vec::new();
    for file in ["src", "tests", "benches", "examples"].iter().flat_map(|folder| all_files(&root.join(folder))) {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        let file = file.strip_prefix(root).unwrap();
        if lines > MOST_LINES {
            long.push(format!("{} has {lines} lines", file.display()));
        }
    }
    assert!(long.is_empty(), "more than {MOST_LINES} lines, split them along an idea: {}", long.join(", "));
}

/// All files of Rust below a folder, those of tests among them.
pub(super) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            all.push(path);
        }
    }
    all
}

/// The floor of every room: rows `| 3 | `a`, `b` | … |` of the table.
fn floors() -> BTreeMap<String, u32> {
    let text = include_str!("../../ARCHITECTURE.md");
    let mut floors = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, floor, rooms, ..] = cells[..] else { continue };
        let Ok(floor) = floor.parse() else { continue };
        for room in rooms.split('`').skip(1).step_by(2) {
            assert_eq!(floors.insert(room.to_owned(), floor), None, "{room} stands on two floors");
        }
    }
    floors
}

pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Which room imports from which, and a file that does.
fn imports(source: &Path) -> BTreeMap<(String, String), PathBuf> {
    let mut found = BTreeMap::new();
    for file in files(source) {
        let inside = file.strip_prefix(source).unwrap();
        let room = name_of(inside.iter().next().unwrap().as_ref());
        // The list of all rooms, and the binary, which calls one function.
        if room == "lib" || room == "bin" {
            continue;
        }
        for to in named(&without_tests(&std::fs::read_to_string(&file).unwrap())) {
            if to != room && (source.join(&to).is_dir() || source.join(format!("{to}.rs")).is_file()) {
                found.entry((room.clone(), to)).or_insert_with(|| file.clone());
            }
        }
    }
    found
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The files below a folder that are compiled without `cfg(test)`.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut modules_of_tests = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            modules_of_tests.extend(test_modules(&path));
            all.push(path);
        }
    }
    all.retain(|path| {
        let modules = path.ancestors().skip(1).map(|folder| folder.join("tests")).any(|tests| path.starts_with(tests));
        !modules && !modules_of_tests.contains(path) && name_of(path) != "tests"
    });
    all
}

/// Files that `file` declares under `cfg(test)`.
fn test_modules(file: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|pair| is_of_tests(pair[0])).filter_map(|pair| {
        let name = pair[1].rsplit("mod ").next()?.strip_suffix(';')?;
        let stem = name_of(file);
        let folder = if stem == "mod" || stem == "lib" { file.with_file_name("") } else { file.with_extension("") };
        Some(folder.join(format!("{name}.rs")))
    });
    declared.collect()
}

fn is_of_tests(line: &str) -> bool {
    line.starts_with("#[cfg(") && (line.contains("test") || line.contains("loom"))
}

/// The text in front of the module of tests, without comments.
pub(crate) fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        // Attributes may stand between the two.
        if is_of_tests(line) {
            let behind = lines.clone().find(|next| !next.trim_start().starts_with("#["));
            if behind.is_some_and(|next| next.contains("mod ") && next.ends_with('{')) {
                break;
            }
        }
        kept += line.split("//").next().unwrap_or_default();
        kept.push('\n');
    }
    kept
}

/// The first names behind `crate::`, those in braces too.
fn named(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in text.split("crate::").skip(1) {
        let list = match rest.strip_prefix('{') {
            Some(inner) => top_level(inner),
            None => vec![rest],
        };
        names.extend(list.iter().map(|part| {
            part.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
        }));
    }
    names
}

/// What commas separate up to the brace that closes the list.
fn top_level(inner: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&inner[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts
}

#[test]
fn names_behind_crate_are_found() {
    let text = "use crate::error::{Error, Result};\nuse crate::{cx::Cx, element::{Array, Batch}, rng};\nlet x = crate::store::get();";
    assert_eq!(named(text), ["error", "cx", "element", "rng", "store"]);
    assert_eq!(without_tests("a // crate::b\n#[cfg(test)]\nmod tests {\n    crate::c\n}\n"), "a \n");
}
