use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;
use crate::dataset::map::Range;
use crate::{Executor, Load, Loader, MapDatasetExt};

/// A pass with an endpoint at a free port; `n` batches of it.
fn pass(n: u64, executor: Executor) -> Loader<impl crate::IterDataset<Item = Vec<u64>>> {
    let ds = Range::new(0, 2 * n as i64).map(|x| x as u64).to_iter().batch(2);
    ds.loader().executor(executor).metrics("0").build().unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(10 * MOST_TIME)).unwrap();
    stream
}

/// Everything that is answered to `request`, in head and body.
fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn get(address: SocketAddr) -> String {
    let (head, body) = ask(address, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\nAccept: */*\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    assert!(
        head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{head}"
    );
    body
}

fn value(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// The figures, once they count `elements`: before that, older figures are answered.
fn get_with(address: SocketAddr, elements: f64) -> String {
    loop {
        let text = get(address);
        match value(&text, "gristmill_input_elements_total") {
            // Nothing tells that the figures have become too old.
            Some(count) if count < elements => std::thread::sleep(FRESH / 4),
            count => {
                assert_eq!(count, Some(elements));
                return text;
            }
        }
    }
}

#[test]
fn figures_are_answered_before_during_and_behind_a_pass() {
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let mut loader = pass(50, executor);
        let address = loader.metrics_address().unwrap();
        assert!(address.ip().is_loopback());
        let text = get(address);
        assert!(text.ends_with("# EOF\n") && value(&text, "gristmill_input_elements_total") == Some(0.0), "{text}");
        loader.by_ref().take(20).for_each(|batch| drop(batch.unwrap()));
        get_with(address, 20.0);
        assert_eq!(loader.by_ref().count(), 30);
        let (text, report) = (get_with(address, 50.0), loader.report());
        assert_eq!(value(&text, "gristmill_input_stage_elements_total{stage=\"1_map\"}"), Some(100.0));
        assert_eq!(value(&text, "gristmill_input_run_seconds_total"), Some(report.wall_s));
        drop(loader);
        assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    }
}

#[test]
fn other_requests_are_refused() {
    let loader = pass(1, Executor::Inline);
    let address = loader.metrics_address().unwrap();
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(64 << 10));
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("GET /metrics/../secret HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405"),
        ("DELETE / HTTP/1.1\r\n\r\n", "404"),
        ("GET /metrics\r\n\r\n", "400"),
        ("GET /metrics HTTP/2.0\r\n\r\n", "400"),
        ("\0\u{fe}\u{ff}\r\n\r\n", "400"),
        ("\r\n\r\n", "400"),
        (&long, "431"),
        ("GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n", "421"),
        ("GET /metrics HTTP/1.1\r\nhost: rebound.example:80\r\nHost: localhost\r\n\r\n", "421"),
        ("GET /metrics HTTP/1.1\r\nHost: localhost.example\r\n\r\n", "421"),
    ] {
        let (head, body) = ask(address, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")) && !body.contains('#'), "{request:?}: {head}");
    }
    assert!(value(&get(address), "gristmill_input_threads").is_some());
    for head in ["", "Host: LocalHost:1\r\n", "Host: [::1]:9464\r\n", "Host: [::1]\r\n", "Host: 10.0.0.7\r\n"] {
        let (head, _) = ask(address, &format!("GET /metrics?name=all HTTP/1.0\r\n{head}\r\n"));
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
}

#[test]
fn clients_that_say_nothing_hold_up_nobody() {
    let loader = pass(1, Executor::Inline);
    let address = loader.metrics_address().unwrap();
    // More than are kept, and each asks for half of something.
    let silent: Vec<TcpStream> = (0..3 * MOST_OPEN).map(|_| connect(address)).collect();
    for mut stream in &silent {
        // It may be gone already.
        let _ = stream.write_all(b"GET /metr");
    }
    for _ in 0..20 {
        assert!(get(address).ends_with("# EOF\n"));
    }
    for mut stream in silent {
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() && ended.map_or_else(|e| e.kind() == io::ErrorKind::ConnectionReset, |n| n == 0));
    }
    assert!(get(address).ends_with("# EOF\n"));
}

#[test]
fn an_address_that_is_taken_or_none_is_an_error() {
    let loader = pass(1, Executor::Inline);
    let taken = loader.metrics_address().unwrap().to_string();
    let start = |address: &str| Range::new(0, 1).to_iter().loader().metrics(address).build().map(drop).unwrap_err();
    let error = start(&taken);
    assert!(error.message().starts_with(&format!("metrics cannot be offered at {taken}: ")), "{error}");
    assert_eq!((error.kind(), error.help_text().is_some()), (ErrorKind::Config, true));
    assert!(start("nowhere").message().contains("`nowhere` is no address to listen at"));
}

#[test]
fn a_pass_without_an_endpoint_has_no_address() {
    assert_eq!(Range::new(0, 1).to_iter().loader().build().unwrap().metrics_address(), None);
}

/// What another user of this machine is answered at `address`; `None` where nobody can be another.
#[cfg(target_os = "linux")]
fn ask_as_another(address: SocketAddr) -> Option<String> {
    use std::os::unix::process::CommandExt;

    let ask = r#"exec 3<>/dev/tcp/127.0.0.1/"$0"; printf 'GET /metrics HTTP/1.1\r\n\r\n' >&3; cat <&3"#;
    let mut bash = std::process::Command::new("bash");
    let asked = bash.args(["-c", ask, &address.port().to_string()]).current_dir("/").uid(65_534).gid(65_534).output();
    match asked {
        Ok(asked) if asked.status.success() => Some(String::from_utf8_lossy(&asked.stdout).into_owned()),
        failed => {
            eprintln!("skipped: nobody else can be asked for: {failed:?}");
            None
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn other_users_are_refused_unless_it_is_for_everybody() {
    let loader = pass(9, Executor::Inline);
    let Some(answer) = ask_as_another(loader.metrics_address().unwrap()) else { return };
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("everybody@"), "{answer}");
    get(loader.metrics_address().unwrap());
    let open = Range::new(0, 9).to_iter().loader().metrics("everybody@0").build().unwrap();
    let answer = ask_as_another(open.metrics_address().unwrap()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("# EOF\n"), "{answer}");
}
