//! Views of a run while it runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{PIPELINE, demo, fails, json, ok, on_one_line};

/// A run that goes on until it is killed.
pub(crate) struct Running(Child);

impl Running {
    /// Starts it, and reads what it says up to a line with `word`.
    pub(crate) fn start(folder: &Path, args: &[&str], env: &[(&str, &Path)], word: &str) -> (Self, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.envs(env.iter().copied());
        let mut child =
            command.current_dir(folder).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let line = said.lines().map(Result::unwrap).find(|line| line.contains(word)).expect("it says so");
        (Self(child), line)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_answers_for_its_metrics() {
    let (folder, _) = demo();
    let args = ["demo", "--mb", "1", "--folder", "long", "--threads", "1", "--step-time", "60s", "--metrics", "0"];
    let (_running, line) = Running::start(folder.path(), &args, &[], "metrics are at");
    let address = line.split("http://").nth(1).unwrap().strip_suffix("/metrics").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\n# EOF\n"), "{answer}");
    assert!(answer.contains("gristmill_input_stage_self_seconds_total{stage=\"0_jsonl\"}"), "{answer}");
}

#[test]
fn metrics_need_an_address() {
    let (folder, _) = demo();
    let (code, said) = fails(folder.path(), &["run", PIPELINE, "--restart", "--metrics", "here"]);
    assert!(code == 2 && said.contains("`here` is no address to listen at"), "{code}: {said}");
}

/// Lines of a report that are the same a moment later: without the first, which says when it was made, and without what other programs do.
fn lasting(text: &str) -> Vec<&str> {
    assert!(text.contains("VERDICT"), "{text}");
    let lines = text.lines().skip(1).take_while(|line| !line.starts_with("VERDICT"));
    lines.filter(|line| !line.starts_with("note: other programs")).collect()
}

#[test]
fn a_recorded_run_is_shown_again() {
    let (folder, _) = demo();
    let folder = folder.path();
    let said = ok(folder, &["run", PIPELINE, "--restart", "--threads", "2", "--record", "run.gmr"]);
    let shown = ok(folder, &["report", "run.gmr", "--html", "run.html"]);
    assert_eq!(lasting(&shown), lasting(&said));
    assert!(std::fs::read_to_string(folder.join("run.html")).unwrap().contains("your step"));
    assert_eq!(json(folder, &["report", "run.gmr", "--json"])["stages"][0]["name"], "jsonl");
    let (code, said) = fails(folder, &["report", PIPELINE]);
    assert!(code == 1 && said.contains("byte 0: not a recording of a run"), "{code}: {said}");
    assert_eq!(fails(folder, &["report", "nothing.gmr"]).0, 2);
    let (code, said) = fails(folder, &["run", PIPELINE, "--restart", "--record", PIPELINE]);
    assert!(code == 2 && on_one_line(&said).contains("it is not overwritten"), "{code}: {said}");
}

#[test]
fn a_run_that_was_killed_is_shown_as_far_as_it_was_recorded() {
    let (folder, _) = demo();
    let folder = folder.path();
    let args =
        ["demo", "--mb", "4", "--folder", "long", "--threads", "1", "--step-time", "100ms", "--record", "run.gmr"];
    let (running, _) = Running::start(folder, &args, &[], "documents");
    // Until there are two looks, of which the second may be cut.
    let file = folder.join("run.gmr");
    let size = || std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let mut looks = std::collections::BTreeSet::new();
    while looks.len() < 4 {
        looks.insert(size());
        // Nothing tells that a look was written.
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(running);
    let shown = ok(folder, &["report", "run.gmr"]);
    assert!(on_one_line(&shown).contains("the recording has no end: the run was killed"), "{shown}");
    assert!(shown.contains("window_pack") && shown.contains("VERDICT"), "{shown}");
}

#[test]
fn a_run_is_traced() {
    let (folder, _) = demo();
    ok(folder.path(), &["run", PIPELINE, "--restart", "--threads", "2", "--trace", "t.json"]);
    let text = std::fs::read_to_string(folder.path().join("t.json")).unwrap();
    let events: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(events.iter().any(|event| event["ph"] == "f") && events.iter().any(|event| event["ph"] == "C"), "{text}");
    let (code, said) = fails(folder.path(), &["run", PIPELINE, "--restart", "--trace", "nowhere/t.json"]);
    assert!(code == 2 && said.contains("nowhere"), "{code}: {said}");
}
