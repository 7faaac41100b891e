//! `gristmill doctor`: what it looks at, and how it says so.

use std::process::Command;

use super::{PIPELINE, demo, fails, gristmill, json, stderr, stdout, write};

#[test]
fn the_doctor_runs_threads_and_workers_and_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let found = json(folder, &["doctor", "--json", "--folder", "."]);
    let checks = found["checks"].as_array().unwrap();
    for what in ["build", "system", "cores", "threads", "."] {
        assert!(checks.iter().any(|check| check["what"] == what && check["health"] != "bad"), "{what} in {checks:?}");
    }
    let workers = checks.iter().any(|check| check["what"] == "workers" && check["health"] == "good");
    assert_eq!(workers, cfg!(all(feature = "workers", target_os = "linux")));
    write(folder, "file", "");
    let output = gristmill(folder, &["doctor", "--folder", "file"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).lines().any(|line| line.starts_with("✗ file")), "{}", stdout(&output));
    assert!(stdout(&output).ends_with("\n1 thing does not work: file\n"), "{}", stdout(&output));
}

#[test]
fn its_json_has_the_same_keys_on_every_machine() {
    let folder = tempfile::tempdir().unwrap();
    let found = json(folder.path(), &["doctor", "--json"]);
    assert_eq!(found["format"], 1);
    assert!(["good", "poor"].iter().any(|health| found["health"] == *health), "{found}");
    for check in found["checks"].as_array().unwrap() {
        let keys: Vec<&str> = check.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["figures", "found", "health", "hurts", "mend", "what"], "{check}");
        assert_eq!(check["health"] == "poor", check["hurts"].is_string(), "{check}");
        assert!(check["hurts"].is_null() || check["mend"].is_string(), "what hurts can be mended: {check}");
    }
    #[cfg(target_os = "linux")]
    for (what, figure) in [("cores", "online"), ("memory", "available_bytes"), ("open files", "limit")] {
        let check = found["checks"].as_array().unwrap().iter().find(|check| check["what"] == what).unwrap();
        assert!(check["figures"][figure].as_u64() > Some(0), "{check}");
    }
}

#[test]
fn it_is_read_in_a_narrow_window_and_without_colours() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    let output = command.current_dir(folder.path()).env("COLUMNS", "60").arg("doctor").output().unwrap();
    let text = stdout(&output);
    // A path or a command may be longer than a line, but not what has blanks.
    let too_wide = |line: &&str| line.chars().count() > 60 && line.trim_start().contains(' ');
    assert_eq!(text.lines().find(too_wide), None, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.lines().count() > 8 && text.starts_with(['✓', '!']), "{text}");
}

#[test]
fn the_file_systems_of_a_pipeline_are_looked_at_and_nothing_is_opened() {
    let (folder, _) = demo();
    let folder = folder.path();
    let found = json(folder, &["doctor", PIPELINE, "--json"]);
    let checks = found["checks"].as_array().unwrap();
    let data = folder.join("gristmill-demo").canonicalize().unwrap().display().to_string();
    #[cfg(target_os = "linux")]
    {
        let files: Vec<_> = checks.iter().filter(|check| check["what"] == "files").collect();
        assert_eq!(files.len(), 1, "{checks:?}");
        assert_eq!((&files[0]["figures"]["folder"], &files[0]["figures"]["files"]), (&data.as_str().into(), &2.into()));
    }
    // Where its checkpoints go.
    let written = |check: &&serde_json::Value| check["what"].as_str().unwrap().contains("gristmill-demo");
    assert!(checks.iter().any(|check| written(&check)), "{checks:?}");
    // What is damaged is for `verify`: it is not read.
    write(&folder.join("gristmill-demo"), "demo.tokenizer.json", "no tokenizer");
    assert_eq!(json(folder, &["doctor", PIPELINE, "--json"])["checks"].as_array().unwrap().len(), checks.len());
    write(folder, "bad.yaml", "source: {jsonl: {paths: [absent.jsonl]}}\n");
    let (code, said) = fails(folder, &["doctor", "bad.yaml"]);
    assert!(code == 2 && said.contains("absent.jsonl"), "{code}: {said}");
}
