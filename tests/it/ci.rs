//! `.ci/run` describes every stage, and calls scripts that exist.

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

/// The features of the manifest.
fn features() -> BTreeSet<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, features) = manifest.split_once("\n[features]\n").unwrap();
    let (features, _) = features.split_once("\n[").unwrap();
    let lines = features.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn the_landing_checks_sets_of_features_that_exist() {
    let Some(script) = run() else { return };
    let mut sets = list(&script, "sets");
    assert!(sets.remove(""), "the library alone is a set, too");
    assert!(sets.len() == 6 && sets.is_subset(&features()), "{sets:?}");
}

#[test]
fn every_stage_is_listed_and_calls_scripts_that_exist() {
    let Some(script) = run() else { return };
    let stages: BTreeSet<String> = script
        .lines()
        .filter_map(|line| line.strip_prefix("stage_")?.strip_suffix("() {"))
        .map(str::to_owned)
        .collect();
    assert_eq!(stages, &list(&script, "landing") | &list(&script, "weekly"));
    for stage in list(&script, "landing") {
        let runs = [format!("    stage_{stage}\n"), format!("lane_{stage}() {{")];
        assert!(runs.iter().any(|line| script.contains(line)), "no lane of the landing runs {stage}");
    }
    let listed = Command::new("bash").arg(".ci/run").arg("--list").current_dir(root()).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for stage in &stages {
        let about =
            listed.lines().find_map(|line| line.strip_prefix(stage.as_str())).unwrap_or_else(|| panic!("{listed}"));
        assert!(about.trim_start().ends_with(['.', ')']), "{stage} has no description: {listed}");
    }
    for line in script.lines().map(str::trim_start).filter(|line| !line.starts_with('#')) {
        for words in line.split_whitespace().collect::<Vec<_>>().windows(2) {
            if ["bash", "sh", "python3"].contains(&words[0]) && [".sh", ".py"].iter().any(|end| words[1].ends_with(end))
            {
                assert!(root().join(words[1]).exists(), "{line}");
            }
        }
    }
    let wrong = Command::new("bash").args([".ci/run", "lint", "no-stage"]).current_dir(root()).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "an unknown stage ends the script before any stage runs");
}
