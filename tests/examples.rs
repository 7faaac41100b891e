//! Every example runs, ends well and prints what it promises; each is short enough to read in a minute.

use std::path::PathBuf;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Built by cargo next to this test, or now, where only this test was asked for.
fn example(name: &str) -> String {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.current_dir(ROOT).args(["build", "--example", name]);
        assert!(build.status().unwrap().success(), "cargo build --example {name}");
    }
    let output = Command::new(&path).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn training_loop() {
    let text = example("training_loop");
    assert!(text.contains("625 steps") && text.contains("VERDICT"), "{text}");
}

#[test]
fn custom_source() {
    let text = example("custom_source");
    assert!(text.contains("image uint8[64, 28, 28]") && text.contains("gradients(1000 images of 28x28)"), "{text}");
}

#[test]
fn custom_stage() {
    let text = example("custom_stage");
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|s| !s.is_empty()).count();
    assert_eq!(numbers, 30 / 4, "{text}");
}

#[test]
fn resume_after_kill() {
    let text = example("resume_after_kill");
    let hashes: Vec<_> = text.lines().filter_map(|l| l.strip_prefix("order hash of ")).collect();
    let digest = |line: &str| line.split_whitespace().last().unwrap().to_owned();
    assert_eq!(hashes.len(), 2, "{text}");
    assert_eq!(digest(hashes[0]), digest(hashes[1]));
}

#[test]
fn each_is_under_80_lines_of_code() {
    let folder = PathBuf::from(ROOT).join("examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|l| !l.trim().is_empty()).count();
            assert!(code < 80, "{}: {code} lines that are not blank", path.display());
        }
    }
}
