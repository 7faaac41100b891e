//! The command line as a user meets it: what it prints where, its exit codes, its errors, and resuming.

#[path = "../support/browser.rs"]
mod browser;

mod bad;
mod bench;
#[cfg(feature = "compress")]
mod convert;
mod doctor;
mod help;
mod hosts;
mod ledger;
mod pictures;
mod plan;
mod snapshots;
mod states;
mod stdin;
#[cfg(target_os = "linux")]
mod top;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod tune;
mod verify;
mod views;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

fn gristmill(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.current_dir(folder).env_remove("NO_COLOR").args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Runs it, expects success, and returns what it wrote to stdout.
fn ok(folder: &Path, args: &[&str]) -> String {
    let output = gristmill(folder, args);
    assert!(output.status.success(), "{args:?}: {}\n{}", output.status, stderr(&output));
    stdout(&output)
}

/// The last line of stdout as JSON.
fn json(folder: &Path, args: &[&str]) -> Json {
    let text = ok(folder, args);
    serde_json::from_str(text.lines().last().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Exit code and stderr of a failing run.
fn fails(folder: &Path, args: &[&str]) -> (i32, String) {
    let output = gristmill(folder, args);
    (output.status.code().unwrap(), stderr(&output))
}

/// The words of a text whose long lines are broken, on one line.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A folder with the small demo, its corpus, tokenizer and pipeline.
fn demo() -> (TempDir, Json) {
    let folder = tempfile::tempdir().unwrap();
    let summary = json(folder.path(), &["demo", "--mb", "2", "--json"]);
    (folder, summary)
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

const PIPELINE: &str = "gristmill-demo/pipeline.yaml";

#[test]
fn the_demo_runs_and_its_files_run_again_with_the_same_order_hash() {
    let (folder, summary) = demo();
    let folder = folder.path();
    for key in ["batches", "tokens_per_s", "real_token_share", "order_hash", "consumer_wait_share", "verdict"] {
        assert!(!summary[key].is_null(), "{key} in {summary}");
    }
    assert!(summary["real_token_share"].as_f64().unwrap() > 0.95, "{summary}");
    let hash = summary["order_hash"].as_str().unwrap();
    for threads in [&["--threads", "1"][..], &["--threads", "4"], &["--threads", "auto"], &["--inline"]] {
        let args = [&["run", PIPELINE, "--order-hash"], threads].concat();
        assert_eq!(ok(folder, &args).trim(), hash, "{threads:?}");
    }
}

#[test]
fn a_stopped_run_resumes_to_the_hash_of_one_that_was_not_stopped() {
    let (folder, summary) = demo();
    let folder = folder.path();
    let batches = summary["batches"].as_u64().unwrap();
    assert!(batches > 8, "{batches}");
    let mut last = Json::Null;
    for (i, threads) in ["1", "4", "2"].iter().enumerate() {
        let mut args = vec!["run", PIPELINE, "--json", "--threads", threads];
        args.extend(if i == 0 { &["--steps", "3"][..] } else { &["--resume", "--steps", "4"] });
        last = json(folder, &args);
        assert_eq!(last["stopped"], "steps");
    }
    assert_eq!(last["batches"].as_u64(), Some(11));
    last = json(folder, &["run", PIPELINE, "--json", "--resume", "--inline"]);
    assert_eq!((&last["stopped"], &last["batches"]), (&Json::from("end"), &Json::from(batches)));
    assert_eq!(last["order_hash"], summary["order_hash"]);
    assert_eq!(last["tokens"], summary["tokens"]);
    let again = json(folder, &["run", PIPELINE, "--json", "--resume"]);
    assert_eq!((&again["order_hash"], &again["batches_this_run"]), (&summary["order_hash"], &Json::from(0)));
}

#[test]
#[cfg(unix)]
fn ctrl_c_saves_the_state_and_says_how_to_go_on() {
    let (folder, summary) = demo();
    let folder = folder.path();
    // Endless, so that it is certainly still running; the plain run below is not.
    let text = std::fs::read_to_string(folder.join(PIPELINE)).unwrap();
    let slow = text.replace("  - tokenise", "  - repeat: {num_epochs: 1000}\n  - tokenise");
    let slow = slow.replace("{folder: checkpoints}", "{folder: checkpoints, every: 1}");
    write(&folder.join("gristmill-demo"), "long.yaml", &slow);
    let exe = env!("CARGO_BIN_EXE_gristmill");
    let mut child = std::process::Command::new(exe);
    let child = child.current_dir(folder).args(["run", "gristmill-demo/long.yaml", "--checkpoint", "saved"]);
    let child = child.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while !folder.join("saved/run-state.json").exists() {
        // The handler of signals is there before the first state is saved.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted: state saved in saved/run-state.json"), "{}", stderr(&output));
    assert!(stderr(&output).contains("run gristmill-demo/long.yaml --resume --checkpoint saved"));
    let resumed = json(
        folder,
        &["run", "gristmill-demo/long.yaml", "--resume", "--checkpoint", "saved", "--json", "--steps", "5"],
    );
    let saved: Json =
        serde_json::from_str(&std::fs::read_to_string(folder.join("saved/run-state.json")).unwrap()).unwrap();
    assert_eq!(saved["checkpoint"]["delivered"], resumed["batches"]);
    let steps = resumed["batches"].to_string();
    let straight = json(folder, &["run", "gristmill-demo/long.yaml", "--json", "--steps", &steps]);
    assert_eq!(straight["order_hash"], resumed["order_hash"]);
    assert_ne!(straight["order_hash"], summary["order_hash"]);
}

#[test]
fn errors_name_file_line_key_and_the_nearest_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "c.jsonl", "{\"text\": \"a b c\"}\n");
    let error = |stages: &str| {
        write(folder, "p.yaml", &format!("source: {{jsonl: {{paths: [c.jsonl]}}}}\nstages:\n{stages}\n"));
        let (code, text) = fails(folder, &["run", "p.yaml"]);
        assert_eq!(code, 2, "{text}");
        text
    };
    let text = error("  - batch: {bach_size: 2}");
    assert!(text.contains("p.yaml: line 3: stages[0].batch: unknown key `bach_size`"), "{text}");
    assert!(text.contains("did you mean `batch_size`?"), "{text}");
    let text = error("  - batch: {batch_size: two}");
    assert!(text.contains("p.yaml: line 3: stages[0].batch.batch_size: needs a whole number, got the text"), "{text}");
    let text = error("  - tokenise: {tokenizer: t.json, column: txt}");
    assert!(text.contains("line 3") && text.contains("txt") || text.contains("t.json"), "{text}");
    let text = error("  - filter: {column: txt, min_length: 3}");
    assert!(text.contains("no column `txt`; there are text") && text.contains("did you mean `text`?"), "{text}");
    write(folder, "q.yaml", "name: q\nsource:\n  jsonl: {paths: [d.jsonl]}\n");
    let (code, text) = fails(folder, &["run", "q.yaml"]);
    assert!(code == 2 && text.contains("q.yaml: line 3: source.jsonl.paths[0]: no file d.jsonl"), "{text}");
    assert!(text.contains("did you mean `c.jsonl`?"), "{text}");
    let (code, text) = fails(folder, &["run", "absent.yaml"]);
    assert!(code == 2 && text.contains("absent.yaml"), "{text}");
    assert_eq!(fails(folder, &["run"]).0, 2);
}

#[test]
fn bad_data_and_foreign_states_exit_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "c.jsonl", "{\"text\": \"a\"}\n{\"text\": oops}\n");
    write(folder, "p.yaml", "source: {jsonl: {paths: c.jsonl}}\ncheckpoint: state\n");
    // What is asked for where there is none is no mistake: it is the first start of a job.
    let (code, text) = fails(folder, &["run", "p.yaml", "--resume"]);
    assert!(code == 1 && text.contains("no state in state: starts from the beginning"), "{text}");
    assert!(text.contains("c.jsonl: line 2"), "{text}");
    assert!(text.contains("state before the error saved in state/run-state.json"), "{text}");
    write(folder, "c.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
    ok(folder, &["run", "p.yaml", "--steps", "1", "--restart"]);
    write(folder, "p.yaml", "source: {jsonl: {paths: c.jsonl}}\nstages: [limit: 2]\ncheckpoint: state\n");
    let (code, text) = fails(folder, &["run", "p.yaml", "--resume"]);
    assert!(code == 1 && text.contains("of another pipeline") && text.contains("accept_changes"), "{text}");
    assert_eq!(fails(folder, &["run", "p.yaml", "--accept-changes"]).0, 2);
    write(folder, "p.yaml", "source: {jsonl: {paths: c.jsonl}}\ncheckpoint: state\n");
    write(folder, "c.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n");
    let accepted = json(folder, &["run", "p.yaml", "--resume", "--accept-changes", "--json"]);
    assert_eq!((&accepted["batches"], &accepted["resumed"]), (&3.into(), &true.into()), "{accepted}");
    let state = std::fs::read_to_string(folder.join("state/run-state.json")).unwrap();
    assert!(state.contains("\"accepted_changes\""), "{state}");
    write(&folder.join("state"), "run-state.json", "{\"gristmill_run\": 99}");
    let (code, text) = fails(folder, &["run", "p.yaml", "--resume"]);
    assert!(code == 1 && text.contains("run-state.json") && text.contains("99"), "{text}");
    let output = gristmill(folder, &["run", "p.yaml", "--resume", "--json"]);
    let error: Json = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(error["error"]["kind"], "state");
}

#[test]
fn results_are_on_stdout_and_nothing_is_wider_than_100_columns() {
    let (folder, _) = demo();
    let folder = folder.path();
    let corpus = "gristmill-demo/corpus.jsonl";
    let commands = [
        vec!["run", PIPELINE],
        vec!["explain", PIPELINE],
        vec!["inspect", corpus],
        vec!["analyze-padding", corpus, "--seq-len", "512", "--batch", "8"],
        vec!["demo", "--print-pipeline"],
    ];
    for args in commands {
        let output = gristmill(folder, &args);
        assert!(output.status.success() && !output.stdout.is_empty(), "{args:?}: {}", stderr(&output));
        let text = stdout(&output) + &stderr(&output);
        let widest = text.lines().max_by_key(|l| l.chars().count()).unwrap();
        assert!(widest.chars().count() <= 100, "{args:?}: {widest}");
        assert!(!text.contains('\x1b'), "{args:?} prints escape codes to a pipe");
    }
}

#[test]
fn explain_inspect_and_analyze_padding_speak_json() {
    let (folder, _) = demo();
    let folder = folder.path();
    let explained = json(folder, &["explain", PIPELINE, "--json"]);
    let names: Vec<_> = explained["stages"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["jsonl", "shuffle", "tokenise", "to_iter", "window_pack", "batch"]);
    assert_eq!(explained["element_spec"][0][1], "int32[32, 1024]");
    let bytes = |key: &str| explained[key].as_u64().unwrap();
    assert_eq!(bytes("total_bytes"), bytes("memory_bytes") + bytes("buffer_bytes"));
    // A window of 1,024 documents of at least 100 tokens on average, 4 bytes each.
    assert!(explained["stages"][4]["memory_bytes"].as_u64().unwrap() > 400_000, "{explained}");
    let inspected = json(folder, &["inspect", "gristmill-demo/corpus.jsonl", "-n", "2", "--json"]);
    assert_eq!((&inspected["format"], inspected["first"].as_array().unwrap().len()), (&Json::from("jsonl"), 2));
    assert_eq!(inspected["columns"], serde_json::json!([["text", "text"], ["source", "text"]]));
    let tokenizer = "gristmill-demo/demo.tokenizer.json";
    let args = ["analyze-padding", "gristmill-demo/corpus.jsonl", "--tokenizer", tokenizer, "--json"];
    let padding = json(folder, &args);
    assert_eq!(padding["documents"], inspected["records"]);
    let share = |strategy: &str| {
        let all = padding["strategies"].as_array().unwrap();
        all.iter().find(|s| s["strategy"] == strategy).unwrap()["padding_share"].as_f64().unwrap()
    };
    assert!(share("pad_to_max") > 0.5 && share("window_best_fit") < 0.05, "{padding}");
    let (code, text) = fails(folder, &["analyze-padding", "gristmill-demo/corpus.jsonl", "--column", "txt"]);
    assert!(code == 2 && text.contains("did you mean `text`?"), "{text}");
}

#[test]
#[cfg(unix)]
fn a_closed_pipe_is_success() {
    let (folder, _) = demo();
    let exe = env!("CARGO_BIN_EXE_gristmill");
    let mut child = std::process::Command::new(exe)
        .current_dir(folder.path())
        .args(["inspect", "gristmill-demo/corpus.jsonl", "-n", "1000"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
}

/// The acceptance run: the shared sample with GPT-2's vocabulary, the same hash for 1 and 4 threads and after a resume.
#[test]
fn the_acceptance_run() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let tokenizers = std::env::var_os("GRISTMILL_TOKENIZERS").map_or(shared.join("tokenizers"), PathBuf::from);
    let (corpus, tokenizer) = (shared.join("data/corpus-sample.jsonl"), tokenizers.join("gpt2.tokenizer.json"));
    if !corpus.exists() || !tokenizer.exists() {
        println!("skipped: no {} or no {}", corpus.display(), tokenizer.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = serde_json::json!({
        "source": {"jsonl": {"paths": corpus, "columns": ["text"]}},
        "stages": [
            {"shuffle": {"seed": 42}},
            {"tokenise": {"tokenizer": tokenizer, "column": "text", "append_eos": "<|endoftext|>", "into": "tokens"}},
            {"repeat": {"num_epochs": 2}},
            "to_iter",
            {"best_fit_pack": {"length": {"tokens": 1024}, "num_packing_bins": 64, "over_long": "split"}},
            {"batch": {"batch_size": 8, "remainder": "drop"}},
        ],
        "checkpoint": {"folder": "state", "every": 10},
    });
    write(folder, "lm.json", &text.to_string());
    let one = json(folder, &["run", "lm.json", "--json", "--threads", "1"]);
    let four = json(folder, &["run", "lm.json", "--json", "--threads", "4"]);
    json(folder, &["run", "lm.json", "--json", "--steps", "37", "--threads", "4"]);
    let resumed = json(folder, &["run", "lm.json", "--json", "--resume", "--threads", "1"]);
    assert_eq!(one["order_hash"], four["order_hash"]);
    assert_eq!(one["order_hash"], resumed["order_hash"]);
    assert!(one["batches"].as_u64().unwrap() > 100, "{one}");
    assert!(one["real_token_share"].as_f64().unwrap() > 0.96, "{one}");
}

/// With the default features there is no Parquet.
#[test]
#[cfg(not(feature = "parquet"))]
fn a_format_whose_feature_is_off_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "x.parquet", "PAR1");
    write(folder, "p.yaml", "source: {parquet: {paths: x.parquet}}\n");
    for args in [&["inspect", "x.parquet"][..], &["analyze-padding", "x.parquet"], &["run", "p.yaml"]] {
        let (code, text) = fails(folder, args);
        assert!(text.contains("parquet files need the feature `parquet`, which this build lacks"), "{args:?}: {text}");
        assert!(text.contains("help: build with `--features parquet`"), "{args:?}: {text}");
        assert_eq!(code, 2, "{args:?}: {text}");
    }
}

#[test]
fn warnings_and_skipped_records_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "p.yaml", "source: {range: 5000}\nstages: [{filter: {column: index, min: 4900}}]\n");
    let output = gristmill(folder, &["run", "p.yaml"]);
    assert!(
        output.status.success() && stderr(&output).contains("warning: a filter drops nearly"),
        "{}",
        stderr(&output)
    );
    write(folder, "c.jsonl", "{\"text\": \"a\"}\n{\"text\": oops}\n");
    write(folder, "q.yaml", "source: {jsonl: c.jsonl}\nstages: [to_iter: {on_bad_record: skip}]\n");
    let output = gristmill(folder, &["run", "q.yaml"]);
    assert!(output.status.success() && stdout(&output).contains("bad records skipped 1"), "{}", stdout(&output));
    assert!(stderr(&output).contains("warning: bad record skipped:"), "{}", stderr(&output));
    assert!(stderr(&output).contains("c.jsonl: line 2"), "{}", stderr(&output));
}

#[test]
fn arguments_that_are_wrong_are_json_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let output = gristmill(folder, &["run", "p.yaml", "--steps", "-1", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let error: Json = serde_json::from_slice(&output.stdout).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("invalid value '-1' for '--steps <N>'"), "{error}");
    assert!(!stderr(&output).contains("tip: to pass"), "{}", stderr(&output));
    assert!(gristmill(folder, &["run", "p.yaml", "--steps", "-1"]).stdout.is_empty());
    // Both spellings of a command are known.
    assert!(ok(folder, &["tokenize", "--help"]).contains("tokenizer.json"));
    assert!(ok(folder, &["analyse-padding", "--help"]).contains("--seq-len"));
}

#[test]
fn data_that_is_given_as_a_pipeline_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "c.jsonl", "{\"text\": \"a b c\"}\n");
    for command in ["run", "explain", "bench", "tune"] {
        let (code, text) = fails(folder, &[command, "c.jsonl"]);
        assert_eq!(code, 2);
        assert!(text.contains("c.jsonl: this is data: jsonl, not a pipeline file"), "{text}");
        assert!(text.contains("gristmill inspect"), "{text}");
    }
    assert!(fails(folder, &["inspect", "none.jsonl"]).1.contains("none.jsonl: No such file or directory"));
}

#[test]
fn an_error_about_another_file_says_where_the_pipeline_names_it() {
    let (folder, _) = demo();
    let folder = folder.path();
    let text = std::fs::read_to_string(folder.join(PIPELINE)).unwrap().replace("<|endoftext|>", "<eos>");
    write(&folder.join("gristmill-demo"), "p.yaml", &text);
    let line = 1 + text.lines().position(|line| line.contains("- tokenise:")).unwrap();
    let (_, text) = fails(folder, &["run", "gristmill-demo/p.yaml"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("p.yaml: line {line}: ")), "{text}");
    assert!(text.contains("demo.tokenizer.json: no token \"<eos>\" in the vocabulary"), "{text}");
    // A stage that is not known is told before a tokenizer is read.
    let late = "source: {range: 3}\nstages:\n  - tokenise: {tokenizer: none.json, column: text}\n  - bach: 2\n";
    write(folder, "late.yaml", late);
    assert!(fails(folder, &["run", "late.yaml"]).1.contains("late.yaml: line 4: stages[1]: unknown stage `bach`"));
}

#[test]
fn a_quiet_command_says_results_and_errors_only() {
    let (folder, _) = demo();
    let folder = folder.path();
    let output = gristmill(folder, &["run", PIPELINE, "--order-hash", "--steps", "2", "-q"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    assert_eq!(stdout(&output).lines().count(), 1);
    assert!(fails(folder, &["run", "none.yaml", "--quiet"]).1.starts_with("error: none.yaml"));
    assert!(ok(folder, &["--version"]).contains("features  "));
}

#[test]
fn shells_and_readers_learn_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let help = ok(folder.path(), &["--help"]);
    let commands = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let commands: Vec<&str> = commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ok(folder.path(), &["completions", shell]);
        assert!(script.contains("analyze-padding") && script.contains("order-hash"), "{shell}");
        let completes_values = ["bash", "zsh", "fish"].contains(&shell);
        assert!(script.contains("window_pack") || !completes_values, "{shell} completes names of stages");
        assert_eq!(commands.iter().find(|command| !script.contains(*command)), None, "{shell}");
    }
    assert!(ok(folder.path(), &["man"]).contains(".TH gristmill 1"));
    ok(folder.path(), &["man", "pages"]);
    assert!(
        commands
            .iter()
            .all(|name| *name == "help" || folder.path().join(format!("pages/gristmill-{name}.1")).is_file())
    );
    assert!(ok(folder.path(), &["stages", "shuffle"]).starts_with("stage shuffle\n    Shuffles the elements"));
    let listed = ok(folder.path(), &["stages", "shuf"]);
    assert!(listed.contains("\n    seed?\nstage window_shuffle\n"), "{listed}");
    let schema: serde_json::Value = serde_json::from_str(&ok(folder.path(), &["schema"])).unwrap();
    assert!(schema["$defs"]["source"]["properties"]["jsonl"].is_object(), "{schema}");
    let entries = json(folder.path(), &["stages", "--json"]);
    assert!(entries["entries"].as_array().unwrap().len() > 30);
    assert_eq!(fails(folder.path(), &["stages", "no such"]).0, 2);
}

/// Names of files, columns and stages come from strangers, and a terminal obeys some characters.
#[test]
fn no_command_prints_what_a_terminal_obeys() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let hostile = "k\u{1b}]0;pwn\u{7}\u{1b}[2J\r\u{9b}8m\u{202e}";
    let record = serde_json::json!({hostile: 1, "text": hostile}).to_string() + "\n";
    write(folder, "k.jsonl", &record.repeat(3));
    write(folder, &format!("{hostile}.jsonl"), "{\"a\": 1\n");
    write(
        folder,
        "columns.yaml",
        "source: {jsonl: {paths: k.jsonl, columns: [txet]}}\nstages: [to_iter, {batch: 1}]\n",
    );
    write(folder, "stage.yaml", "source: {jsonl: {paths: k.jsonl}}\nstages: [\"\\e[2Jshuffle\\u202e\", to_iter]\n");
    write(folder, "batch.yaml", "source: {jsonl: {paths: k.jsonl}}\nstages: [to_iter, {batch: 1}]\n");
    let file = format!("{hostile}.jsonl");
    let lost = format!("lost{hostile}.jsonl");
    for args in [
        &["inspect", "k.jsonl"][..],
        &["inspect", "k.jsonl", "--json"],
        &["inspect", &file],
        &["inspect", &lost],
        &["verify", &file],
        &["run", "columns.yaml"],
        &["run", "columns.yaml", "--json"],
        &["run", "stage.yaml"],
        &["explain", "stage.yaml"],
        &["run", "batch.yaml"],
    ] {
        let output = gristmill(folder, args);
        for shown in [stdout(&output), stderr(&output)] {
            let obeyed = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
            assert!(!shown.contains(obeyed), "{args:?}: {shown:?}");
        }
    }
    // In JSON they are escaped as JSON escapes, and come back as they were.
    assert!(json(folder, &["inspect", "k.jsonl", "--json"]).to_string().contains("pwn"));
}
