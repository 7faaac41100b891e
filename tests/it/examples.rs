//! Every example runs, ends well and prints what it promises; each is short enough to read in a minute.

use std::path::PathBuf;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Built by cargo next to this test, or now, where only this test was asked for.
fn built(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    if !path.exists() {
        let mut build = Command::new(env!("CARGO"));
        build.current_dir(ROOT).args(["build", "--example", name]);
        if cfg!(feature = "pjrt") {
            build.args(["--features", "pjrt"]);
        }
        assert!(build.status().unwrap().success(), "cargo build --example {name}");
    }
    path
}

fn example(name: &str) -> String {
    output(name, &mut Command::new(built(name)))
}

fn output(name: &str, command: &mut Command) -> String {
    let output = command.output().unwrap();
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

#[cfg(all(feature = "workers", target_os = "linux"))]
#[test]
fn own_parts() {
    let text = example("own_parts");
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("10 batches, tokens int32[8, 256]"), "{text}");
    assert!(lines[1].ends_with("equal to those of the first run: true"), "{text}");
    assert!(lines[2].contains("record 7777") && lines[2].contains("the sentence has no end"), "{text}");
}

#[test]
fn several_hosts() {
    let text = example("several_hosts");
    let digests: Vec<_> = text.lines().filter(|line| line.starts_with("rows of ")).collect();
    let digest = |line: &str| line.split_whitespace().last().unwrap().to_owned();
    assert_eq!((digests.len(), text.matches("on all: true").count()), (2, 3), "{text}");
    assert_eq!(digest(digests[0]), digest(digests[1]));
}

#[test]
fn resume_after_kill() {
    let text = example("resume_after_kill");
    let hashes: Vec<_> = text.lines().filter_map(|l| l.strip_prefix("order hash of ")).collect();
    let digest = |line: &str| line.split_whitespace().last().unwrap().to_owned();
    assert_eq!(hashes.len(), 2, "{text}");
    assert_eq!(digest(hashes[0]), digest(hashes[1]));
}

/// Losses of a run that stopped and went on are those of one that did not, and they fall.
#[test]
#[cfg(all(feature = "pjrt", feature = "text"))]
fn pjrt_train() {
    if std::env::var_os("GRISTMILL_PJRT_PLUGIN").is_none() {
        eprintln!("skipped: GRISTMILL_PJRT_PLUGIN names no plugin");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, steps: usize| {
        let mut command = Command::new(built("pjrt_train"));
        output("pjrt_train", command.arg(folder.path().join(name)).arg(steps.to_string()))
    };
    let (whole, parts) = (run("whole", 40), run("parts", 15) + &run("parts", 25));
    assert_eq!(whole, parts);
    let losses: Vec<f32> = whole.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!((losses.len(), losses[39] < losses[0] - 1.0), (40, true), "{whole}");
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
