//! `.ci/run`: every feature is checked by itself, every stage says what it is, and every script that a stage calls is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The script, or `None` in a package that was published without it.
fn run() -> Option<String> {
    let path = root().join(".ci/run");
    path.exists().then(|| fs::read_to_string(path).unwrap())
}

/// The words of a list of the script.
fn list(script: &str, name: &str) -> BTreeSet<String> {
    let (_, rest) = script.split_once(&format!("\n{name}=(")).unwrap_or_else(|| panic!("no list {name}"));
    let (words, _) = rest.split_once(')').unwrap();
    words.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect()
}

#[test]
fn every_feature_is_checked_by_itself() {
    let Some(script) = run() else { return };
    let checked: BTreeSet<String> =
        ["small_features", "large_features"].iter().flat_map(|name| list(&script, name)).collect();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, features) = manifest.split_once("\n[features]\n").unwrap();
    let (features, _) = features.split_once("\n[").unwrap();
    // Those of others alone; `cli` is checked with all, and `columns` and `store` are of no use by themselves.
    let groups = ["default", "formats", "full", "stores", "cli", "columns", "store"];
    let names = features.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
    let mut wanted: BTreeSet<String> =
        names.map(|(name, _)| name.to_owned()).filter(|name| !groups.contains(&name.as_str())).collect();
    wanted.insert(String::new());
    assert_eq!(checked, wanted);
}

#[test]
fn every_stage_is_listed_and_calls_what_is_there() {
    let Some(script) = run() else { return };
    let stages: BTreeSet<String> = script
        .lines()
        .filter_map(|line| line.strip_prefix("stage_")?.strip_suffix("() {"))
        .map(str::to_owned)
        .collect();
    let listed = &list(&script, "always") | &list(&script, "on_request");
    assert_eq!(stages, listed);
    let told = Command::new("bash").arg(".ci/run").arg("--list").current_dir(root()).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    for stage in &stages {
        let about = told.lines().find_map(|line| line.strip_prefix(stage.as_str())).unwrap_or_else(|| panic!("{told}"));
        assert!(about.trim_start().ends_with(['.', ')']), "{stage} says nothing of itself: {told}");
    }
    for line in script.lines().map(str::trim_start).filter(|line| !line.starts_with('#')) {
        for words in line.split_whitespace().collect::<Vec<_>>().windows(2) {
            if ["bash", "sh"].contains(&words[0]) && words[1].ends_with(".sh") {
                assert!(root().join(words[1]).exists(), "{line}");
            }
        }
    }
    let wrong = Command::new("bash").args([".ci/run", "lint", "no-stage"]).current_dir(root()).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "a stage that is not there ends it before the first runs");
}
