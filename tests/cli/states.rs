//! What a run saves is neither lost by the next run nor by a second signal.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Json, PIPELINE, demo, fails, gristmill, json, ok, stderr, write};

fn delivered(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    serde_json::from_str::<Json>(&text).unwrap()["checkpoint"]["delivered"].as_u64().unwrap()
}

#[test]
fn a_run_that_forgot_to_resume_leaves_the_state() {
    let (folder, _) = demo();
    let folder = folder.path();
    let states = folder.join("gristmill-demo/checkpoints");
    ok(folder, &["run", PIPELINE, "--steps", "3"]);
    let (code, text) = fails(folder, &["run", PIPELINE, "--steps", "2"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("run-state.json: a run stopped here after 3 batches"), "{text}");
    assert!(text.contains("--resume continues") && text.contains("--restart starts over"), "{text}");
    assert_eq!(delivered(&states.join("run-state.json")), 3);
    ok(folder, &["run", PIPELINE, "--steps", "2", "--restart"]);
    assert_eq!(["run-state.json", "run-state.1.json"].map(|name| delivered(&states.join(name))), [2, 3]);
    assert_eq!(json(folder, &["run", PIPELINE, "--resume", "--json"])["resumed"], true);
    // Of a run that came to its end there is nothing to resume.
    ok(folder, &["run", PIPELINE, "--steps", "1"]);
    assert_eq!(fails(folder, &["run", PIPELINE, "--resume", "--restart"]).0, 2);
}

#[test]
fn a_folder_that_cannot_be_written_is_told_before_the_run() {
    let (folder, _) = demo();
    let folder = folder.path();
    write(folder, "file", "");
    let output = gristmill(folder, &["run", PIPELINE, "--checkpoint", "file/states"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{}", stderr(&output));
}

/// A run that does not end, when it has saved its first state in `saved`.
#[cfg(unix)]
fn endless(folder: &Path) -> Child {
    let text = std::fs::read_to_string(folder.join(PIPELINE)).unwrap();
    let text = text.replace("  - tokenise", "  - repeat: {num_epochs: 100000}\n  - tokenise");
    let text = text.replace("{folder: checkpoints}", "{folder: ../saved, every: 1}");
    write(&folder.join("gristmill-demo"), "long.yaml", &text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.current_dir(folder).args(["run", "gristmill-demo/long.yaml", "--inline"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !folder.join("saved/run-state.json").exists() {
        // Nothing else tells that a state is saved.
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[cfg(unix)]
#[test]
fn signals_in_quick_succession_save_the_state() {
    let (folder, _) = demo();
    let folder = folder.path();
    let child = endless(folder);
    // By one shell, so that no process has to be started between them. The run may be gone by then.
    let kill = "kill -TERM $0; kill -INT $0; kill -HUP $0; kill -TERM $0";
    let _ = Command::new("sh").args(["-c", kill, &child.id().to_string()]).stderr(Stdio::null()).status();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted: state saved in"), "{}", stderr(&output));
    let steps = delivered(&folder.join("saved/run-state.json")).to_string();
    let saved: Json =
        serde_json::from_str(&std::fs::read_to_string(folder.join("saved/run-state.json")).unwrap()).unwrap();
    let straight =
        ["run", "gristmill-demo/long.yaml", "--inline", "--order-hash", "--steps", &steps, "--checkpoint", "b"];
    assert_eq!(saved["order_hash"].as_str(), Some(ok(folder, &straight).trim()));
}

#[cfg(unix)]
#[test]
fn two_runs_do_not_save_in_one_folder() {
    let (folder, _) = demo();
    let folder = folder.path();
    let mut child = endless(folder);
    let (code, text) = fails(folder, &["run", "gristmill-demo/long.yaml", "--resume", "--steps", "1"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(code == 2 && text.contains("another run writes to this folder"), "{code}: {text}");
    // The lock ends with its process.
    ok(folder, &["run", "gristmill-demo/long.yaml", "--resume", "--steps", "1"]);
}
