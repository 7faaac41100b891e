//! `gristmill top`: the view of a run, by itself and in a terminal.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::views::Running;
use super::{demo, stderr, stdout};

/// A run that offers its view, in whose session the sockets are. Its corpus is its own: a run fails if another writes the files
/// that it reads.
fn running(folder: &Path, corpus: &str) -> Running {
    let args = ["demo", "--mb", "1", "--folder", corpus, "--threads", "1", "--step-time", "20s", "--top"];
    Running::start(folder, &args, &[("XDG_RUNTIME_DIR", folder)], "gristmill top").0
}

fn top(folder: &Path, args: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.arg("top").args(args).env("XDG_RUNTIME_DIR", folder).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn without_a_terminal_the_report_is_printed() {
    let (folder, _) = demo();
    let folder = folder.path();
    let nobody = top(folder, &[]);
    assert!(
        nobody.status.code() == Some(2) && stderr(&nobody).contains("no run offers a live view"),
        "{}",
        stderr(&nobody)
    );
    let run = running(folder, "first");
    let (process, pass) = (run.pid().to_string(), format!("{}.0", run.pid()));
    for args in [&[][..], &[&*process], &[&*pass]] {
        let shown = top(folder, args);
        assert!(
            shown.status.success() && stdout(&shown).contains("window_pack"),
            "{}{}",
            stdout(&shown),
            stderr(&shown)
        );
    }
    let other = top(folder, &["1"]);
    assert!(
        other.status.code() == Some(2) && stderr(&other).contains("no run of process 1 offers"),
        "{}",
        stderr(&other)
    );
    let second = running(folder, "second");
    let both = top(folder, &[]);
    let told = stdout(&both);
    for run in [&run, &second] {
        assert!(
            told.lines().any(|line| line.starts_with(&format!("{}.0  ", run.pid())) && line.contains("demo --mb 1")),
            "{told}"
        );
    }
    assert!(stderr(&both).contains("top PID"));
    // Those that were killed leave nothing behind.
    drop((run, second));
    assert_eq!(top(folder, &[]).status.code(), Some(2));
    assert_eq!(std::fs::read_dir(folder.join("gristmill")).unwrap().count(), 0);
}

#[test]
fn a_terminal_shows_the_run_and_answers_keys() {
    let is_there = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("skipped: there is no tmux to have a terminal in");
        return;
    }
    let (folder, _) = demo();
    let folder = folder.path();
    let run = running(folder, "first");
    let tmux = |args: &[&str]| {
        let socket = folder.join("tmux");
        let output = Command::new("tmux").arg("-S").arg(&socket).args(["-f", "/dev/null"]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let program = env!("CARGO_BIN_EXE_gristmill");
    let command = format!("XDG_RUNTIME_DIR={} {} top {}; sleep 60", folder.display(), program, run.pid());
    tmux(&["new-session", "-d", "-x", "80", "-y", "24", &command]);
    // A screen that is captured may be half drawn.
    let shows_all = |words: &[&str]| {
        let start = Instant::now();
        loop {
            let screen = tmux(&["capture-pane", "-p"]);
            if words.iter().all(|word| screen.contains(word)) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "not {words:?}: {screen}");
            // Nothing tells that the screen was drawn.
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let shows = |word: &str| shows_all(&[word]);
    shows_all(&["window_pack", "your step", "VERDICT", &format!("process {}", run.pid())]);
    tmux(&["send-keys", "w"]);
    shows("of this process evaluate elements");
    tmux(&["send-keys", "e"]);
    shows("No wait after the first");
    // It comes to its end, and the terminal is as it was.
    drop(run);
    shows("the run is over");
    tmux(&["send-keys", "q"]);
    let start = Instant::now();
    while tmux(&["capture-pane", "-p"]).contains("your step") {
        assert!(start.elapsed() < Duration::from_secs(60));
        // Nothing tells that the screen was drawn.
        std::thread::sleep(Duration::from_millis(50));
    }
    tmux(&["kill-server"]);
}
