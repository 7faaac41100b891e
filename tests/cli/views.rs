//! Views of a run while it runs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{PIPELINE, demo, fails};

/// A run that goes on until it is killed.
struct Running(Child);

impl Running {
    /// Starts it, and reads what it says up to a line with `word`.
    fn start(folder: &Path, args: &[&str], word: &str) -> (Self, String) {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("gristmill"));
        let mut child =
            command.current_dir(folder).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let line = said.lines().map(Result::unwrap).find(|line| line.contains(word)).expect("it says so");
        (Self(child), line)
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
    let (_running, line) = Running::start(folder.path(), &args, "metrics are at");
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
