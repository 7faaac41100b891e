//! Data that is piped to the command: read once, front to back.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use super::{Path, json, ok, stderr, stdout, write};

/// Runs the command with these bytes on standard input.
fn piped(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.current_dir(folder).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command may end before it reads all.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn given(folder: &Path, args: &[&str], input: &[u8]) -> String {
    let output = piped(folder, args, input);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

fn refused(folder: &Path, args: &[&str], input: &[u8]) -> String {
    let output = piped(folder, args, input);
    assert!(!output.status.success(), "{args:?}: {}", stdout(&output));
    stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// More than is looked at to see what the data is.
fn records() -> String {
    (0..5000).map(|i| format!("{{\"text\": \"document {i} of some\", \"n\": {i}}}\n")).collect()
}

#[test]
fn records_of_standard_input_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, text) = (folder.path(), records());
    write(folder, "a.jsonl", &text);
    write(folder, "file.yaml", "source: {jsonl: {paths: a.jsonl}}\nstages: [batch: 100]\n");
    write(folder, "pipe.yaml", "source: {jsonl: {paths: '-'}}\nstages: [batch: 100]\n");
    let hash = ok(folder, &["run", "file.yaml", "--order-hash", "--inline"]);
    for how in [&[][..], &["--inline"], &["--threads", "3"], &["--workers", "2"]] {
        let args = [&["run", "pipe.yaml", "--order-hash"], how].concat();
        assert_eq!(given(folder, &args, text.as_bytes()), hash, "{how:?}");
    }
    for name in ["-", "/dev/stdin"] {
        let seen = given(folder, &["inspect", name, "--json"], text.as_bytes());
        let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
        assert_eq!((&seen["format"], &seen["bytes"]), (&"jsonl".into(), &serde_json::Value::Null));
        assert_eq!(seen["first"][2]["n"], 2);
        assert!(given(folder, &["verify", name], text.as_bytes()).contains("read        5 000 records"));
    }
    given(folder, &["convert", "-", "--to", "jsonl", "--out", "out"], text.as_bytes());
    assert_eq!(std::fs::read_to_string(folder.join("out/shard-00000.jsonl")).unwrap().lines().count(), 5000);
    let from_file = json(folder, &["analyze-padding", "a.jsonl", "--seq-len", "64", "--json"]);
    let from_pipe = given(folder, &["analyze-padding", "-", "--seq-len", "64", "--json"], text.as_bytes());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&from_pipe).unwrap(), from_file);
}

#[cfg(feature = "compress")]
#[test]
fn compressed_and_delimited_input_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let packed = zstd::encode_all(records().as_bytes(), 3).unwrap();
    assert!(given(folder, &["verify", "-"], &packed).contains("read        5 000 records"));
    if cfg!(feature = "csv") {
        let table: String =
            std::iter::once("a,b\n".to_owned()).chain((0..9000).map(|i| format!("{i},x{i}\n"))).collect();
        for bytes in [table.as_bytes(), b"a,b\n1,2\n"] {
            let seen = given(folder, &["inspect", "-"], bytes);
            assert!(seen.contains("csv · unknown") && seen.contains("int64"), "{seen}");
        }
    }
}

#[test]
fn a_second_pass_and_random_access_are_errors_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let (folder, text) = (folder.path(), records());
    let run = |stages: &str, args: &[&str]| {
        write(folder, "p.yaml", &format!("source: {{jsonl: {{paths: '-'}}}}\nstages: [{stages}]\n"));
        refused(folder, &[&["run", "p.yaml"], args].concat(), text.as_bytes())
    };
    let remedy = "help: write it to a file, and read the file";
    let error = run("repeat: {num_epochs: 2}", &["--inline"]);
    assert!(error.contains("standard input is read once, and was read already") && error.contains(remedy), "{error}");
    let error = run("shuffle", &[]);
    assert!(error.contains("shuffle"), "{error}");
    let error = refused(folder, &["index", "-"], text.as_bytes());
    assert!(error.contains("standard input has no random access") && error.contains(remedy), "{error}");
    let error = refused(folder, &["inspect", "-"], b"PAR1 and more");
    assert!(error.contains("standard input has no random access") || error.contains("lacks"), "{error}");
    write(folder, "p.yaml", "source: {jsonl: {paths: '-'}}\nstages: [batch: 10]\n");
    given(folder, &["run", "p.yaml", "--steps", "3", "--checkpoint", "saved"], text.as_bytes());
    let error = refused(folder, &["run", "p.yaml", "--resume", "--checkpoint", "saved"], text.as_bytes());
    assert!(error.contains("standard input is read once, so that no state") && error.contains(remedy), "{error}");
}

#[cfg(all(feature = "workers", target_os = "linux"))]
#[test]
fn workers_do_not_read_their_own_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "p.yaml", "source: {lanes: {parts: [{lines: '-'}], count: 1}}\nstages: [batch: 10]\n");
    let error = refused(folder, &["run", "p.yaml", "--workers", "1"], records().as_bytes());
    assert!(error.contains("standard input is read by the process that started this worker"), "{error}");
}
