//! Datasets of Hugging Face's hub: a server that speaks its protocol, beside one that has the bytes of large files.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::{gristmill, run, shards, told, write};
use crate::objects::{Server, Trouble};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const TOKEN: &str = "hf_hidden";

/// A hub with the dataset `org/name`.
#[derive(Clone)]
struct Hub {
    root: String,
    cdn: Server,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Those whose bytes lie here.
    small: BTreeMap<String, Vec<u8>>,
    /// Sizes of those whose bytes lie elsewhere.
    large: BTreeMap<String, usize>,
    /// Method and address, and whether the token came with them.
    requests: Vec<(String, bool)>,
    /// Statuses and headers of the next answers. Status 0 is none: the connection stands still.
    troubles: VecDeque<(u16, &'static str)>,
    /// Whether the page after the first is the first.
    goes_round: bool,
}

impl Hub {
    fn start(cdn: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let hub = Self { root, cdn: cdn.clone(), state: Arc::default() };
        let served = hub.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hub = served.clone();
                // A client may go away at any time.
                std::thread::spawn(move || drop(hub.serve(&stream)));
            }
        });
        hub
    }

    fn put_small(&self, path: &str, bytes: &str) {
        self.state.lock().unwrap().small.insert(path.to_owned(), bytes.into());
    }

    fn put_large(&self, path: &str, bytes: &str) {
        self.cdn.put(path, bytes);
        self.state.lock().unwrap().large.insert(path.to_owned(), bytes.len());
    }

    fn trouble(&self, troubles: impl IntoIterator<Item = (u16, &'static str)>) {
        self.state.lock().unwrap().troubles.extend(troubles);
    }

    fn requests(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }

    fn run(&self, folder: &Path, paths: &str, executor: &str) -> serde_json::Value {
        write(folder, paths, executor, "stall: 2");
        told(self.gristmill(folder, &["run", "p.yaml", "--json", "--restart"]))
    }

    fn gristmill(&self, folder: &Path, args: &[&str]) -> std::process::Command {
        let mut command = gristmill(folder, args);
        command.env("HF_ENDPOINT", &self.root).env("HF_TOKEN", TOKEN);
        command
    }

    /// What is said where `url` cannot be read.
    fn refusal(&self, url: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut command = self.gristmill(folder.path(), &["inspect", url]);
        let output = command.env("GRISTMILL_STORE_ATTEMPTS", "2").output().unwrap();
        assert!(!output.status.success(), "{url}");
        String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn serve(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut input = BufReader::new(stream);
        loop {
            let (mut line, mut is_known, mut range) = (String::new(), false, None);
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            loop {
                let mut header = String::new();
                input.read_line(&mut header)?;
                let Some((name, value)) = header.trim_end().split_once(": ") else { break };
                is_known |= name.eq_ignore_ascii_case("authorization") && value == format!("Bearer {TOKEN}");
                if name.eq_ignore_ascii_case("range") {
                    let bounds = value.strip_prefix("bytes=").and_then(|bounds| bounds.split_once('-'));
                    range = bounds.map(|(first, last)| (first.parse().unwrap(), last.parse::<usize>().unwrap() + 1));
                }
            }
            let mut words = line.split_whitespace();
            let (method, address) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let mut state = self.state.lock().unwrap();
            state.requests.push((format!("{method} {address}"), is_known));
            let (status, headers, body) = match state.troubles.pop_front() {
                Some((0, _)) => {
                    drop(state);
                    return std::io::copy(&mut input, &mut std::io::sink()).map(drop);
                }
                Some((status, header)) => (status, format!("{header}\r\n"), Vec::new()),
                None => self.answer(&state, address, range),
            };
            drop(state);
            // A HEAD says how long the body of a GET would be.
            let head = format!("HTTP/1.1 {status} \r\n{headers}Content-Length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes())?;
            if method == "GET" {
                stream.write_all(&body)?;
            }
        }
    }

    fn answer(&self, state: &State, address: &str, range: Option<(usize, usize)>) -> (u16, String, Vec<u8>) {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let none = |status, code: &str| (status, format!("X-Error-Code: {code}\r\n"), Vec::new());
        let Some((before, behind)) = path.split_once("org/name/") else {
            let is_gated = path.contains("/org/gated/");
            return if is_gated { none(403, "GatedRepo") } else { none(401, "RepoNotFound") };
        };
        let (kind, rest) = behind.split_once('/').unwrap_or((behind, ""));
        if kind == "revision" {
            return match rest {
                "main" | "refs%2Fpr%2F1" => {
                    (200, String::new(), format!("{{\"sha\": \"{COMMIT}\", \"private\": false}}").into())
                }
                _ => none(404, "RevisionNotFound"),
            };
        }
        let name = rest.strip_prefix(COMMIT).unwrap_or("another commit").trim_start_matches('/');
        match (before, kind) {
            ("/api/datasets/", "tree") => self.tree(state, name, query),
            ("/datasets/", "resolve") => match (state.small.get(name), state.large.get(name)) {
                (Some(_), _) => {
                    (307, format!("Location: /api/resolve-cache/datasets/org/name/x/{COMMIT}/{name}\r\n"), Vec::new())
                }
                (_, Some(size)) => {
                    let to = self.cdn.url(name);
                    let headers = format!(
                        "Location: {to}?X-Amz-Signature=hidden\r\nX-Linked-Size: {size}\r\nX-Linked-ETag: \"of-{name}\"\r\n"
                    );
                    (302, headers, Vec::new())
                }
                _ => none(404, "EntryNotFound"),
            },
            ("/api/resolve-cache/datasets/", "x") => match (state.small.get(name), range) {
                (Some(bytes), Some((first, last))) => {
                    let said = format!("Content-Range: bytes {first}-{}/{}\r\n", last - 1, bytes.len());
                    (206, said, bytes[first..last].to_vec())
                }
                (Some(bytes), None) => (200, "ETag: W/\"of-bytes\"\r\n".to_owned(), bytes.clone()),
                _ => none(404, "EntryNotFound"),
            },
            _ => none(404, "EntryNotFound"),
        }
    }

    /// One file or folder a page.
    fn tree(&self, state: &State, folder: &str, query: &str) -> (u16, String, Vec<u8>) {
        let begins = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut items = BTreeMap::new();
        let small = state.small.iter().map(|(name, bytes)| (name, bytes.len(), false));
        for (name, size, is_large) in small.chain(state.large.iter().map(|(name, size)| (name, *size, true))) {
            let Some(rest) = name.strip_prefix(&begins) else { continue };
            if let Some((below, _)) = rest.split_once('/').filter(|_| query.contains("recursive=false")) {
                let path = format!("{begins}{below}");
                items
                    .insert(path.clone(), format!("{{\"type\": \"directory\", \"path\": \"{path}\", \"oid\": \"f\"}}"));
                continue;
            }
            let lfs = format!(", \"lfs\": {{\"oid\": \"b\", \"size\": {size}, \"pointerSize\": 130}}");
            let (lfs, size) = if is_large { (lfs.as_str(), 130) } else { ("", size) };
            let item = format!("{{\"type\": \"file\", \"path\": \"{name}\", \"oid\": \"a\", \"size\": {size}{lfs}}}");
            items.insert(name.clone(), item);
        }
        let at = query.split_once("cursor=").map_or(0, |(_, at)| at.parse::<usize>().unwrap());
        let Some(item) = items.values().nth(at) else {
            return (404, "X-Error-Code: EntryNotFound\r\n".to_owned(), Vec::new());
        };
        let recursive = query.split('&').next().unwrap_or_default();
        let address = format!(
            "{}/api/datasets/org/name/tree/{COMMIT}/{folder}?{recursive}&cursor={}",
            self.root,
            if state.goes_round { 0 } else { at + 1 }
        );
        let link = format!("Link: <{address}>; rel=\"next\"\r\n");
        let is_last = at + 1 == items.len();
        (200, if is_last { String::new() } else { link }, format!("[{item}]").into())
    }
}

#[test]
fn datasets_of_the_hub_are_found_and_read_as_files_are() {
    let (cdn, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let (hub, [first, second]) = (Hub::start(&cdn), shards());
    let last = "{\"n\": -1, \"text\": \"\"}\n";
    for (i, shard) in [first.as_str(), &second, last].into_iter().enumerate() {
        std::fs::write(dir.path().join(format!("a-{i:02}.jsonl")), shard).unwrap();
    }
    hub.put_large("data/in/a-00.jsonl", &first);
    hub.put_large("data/in/a-01.jsonl", &second);
    hub.put_small("data/in/a-02.jsonl", last);
    for other in ["README.md", "data/in/a-03.txt", "data/in/below/a-04.jsonl", "data/into/a-05.jsonl"] {
        hub.put_small(other, "{\"n\": 0, \"text\": \"another\"}\n");
    }
    let near = run(dir.path(), "\"a-{00..02}.jsonl\"", "inline", &[])["order_hash"].clone();
    for (path, executor) in [
        ("@main/data/in/a-{00..02}.jsonl", "inline"),
        ("/data/in/a-*.jsonl", "{threads: 2}"),
        ("@refs%2Fpr%2F1/data/i?/a-0[0-2].jsonl", "{workers: 0}"),
        ("@main/data/in/", "{workers: 2}"),
        ("@0123456789abcdef0123456789abcdef01234567/data/in/", "{workers: 1}"),
    ] {
        let url = format!("\"hf://datasets/org/name{path}\"");
        // An address has ended, a server is busy and another cuts an answer off: nothing of it changes the data.
        cdn.trouble([Trouble::Status(403, "x: y"), Trouble::Cut(100_000), Trouble::Status(503, "Retry-After: 0")]);
        hub.trouble([(429, "RateLimit: \"resolvers\";r=0;t=0"), (500, "x: y")]);
        assert_eq!(hub.run(dir.path(), &url, executor)["order_hash"], near, "{path}, {executor}");
        let requests = hub.requests();
        assert!(requests.iter().all(|(_, is_known)| *is_known), "{requests:?}");
        let revisions = requests.iter().filter(|(request, _)| request.contains("/revision/")).count();
        // The two that were in trouble may have been of these.
        assert!(revisions <= 3, "{executor}: workers ask for commits: {requests:?}");
        let told: Vec<_> = cdn.requests().into_iter().flat_map(|request| request.headers).collect();
        assert!(!told.is_empty() && !told.iter().any(|header| header.contains(TOKEN)), "{told:?}");
    }
}

/// With ten attempts at each request, all of which share the time that is allowed.
#[test]
fn a_hub_that_does_not_answer_is_given_up() {
    let (cdn, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let hub = Hub::start(&cdn);
    hub.trouble([(0, ""); 100]);
    let mut command = hub.gristmill(dir.path(), &["inspect", "hf://datasets/org/name/*.jsonl"]);
    command.envs([
        ("GRISTMILL_STORE_ATTEMPTS", "10"),
        ("GRISTMILL_STORE_STALL", "0.2"),
        ("GRISTMILL_STORE_TIMEOUT", "1"),
    ]);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("within 1.0 s, the time limit: raise GRISTMILL_STORE_TIMEOUT"), "{told}");
    let asked = hub.requests().len();
    assert!((1..10).contains(&asked), "{asked} requests");
}

#[test]
fn a_listing_that_goes_round_is_an_error() {
    let cdn = Server::start();
    let hub = Hub::start(&cdn);
    for name in ["a.jsonl", "b.jsonl"] {
        hub.put_small(&format!("data/{name}"), "{}");
    }
    hub.state.lock().unwrap().goes_round = true;
    let told = hub.refusal("hf://datasets/org/name/data/*.jsonl");
    assert!(told.contains("the hub gave a next page that was listed before"), "{told}");
}

#[test]
fn what_the_hub_refuses_says_what_to_do() {
    let cdn = Server::start();
    let hub = Hub::start(&cdn);
    hub.put_small("a.jsonl", "{}\n");
    for (url, text) in [
        (
            "org/gated/a.jsonl",
            format!("the dataset org/gated is gated: accept its conditions at {}/datasets/org/gated,", hub.root),
        ),
        ("org/none/a.jsonl", "the hub has no dataset org/none, or it is private: set HF_TOKEN".to_owned()),
        ("org/name@v9/a.jsonl", "the dataset org/name has no revision v9: name a branch, a tag or a commit".to_owned()),
        ("org/name/b.jsonl", "the dataset org/name has no such file in this revision".to_owned()),
    ] {
        let said = hub.refusal(&format!("hf://datasets/{url}"));
        assert!(said.contains(&text), "{url}: {said}");
        assert!(!said.contains(TOKEN), "{said}");
    }
    // A whole dataset is a folder, whatever its name and its revision.
    let said = hub.refusal("hf://datasets/org/gated-1.0@v2.0");
    assert!(said.contains("the hub has no dataset org/gated-1.0"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(told(hub.gristmill(folder.path(), &["inspect", "hf://datasets/org/name@main", "--json"]))["records"], 1);
    assert!(hub.refusal("hf://org/name/a.jsonl").contains("write hf://datasets/org/name@revision/path"));
    hub.trouble([(500, "x: y"); 20]);
    assert!(hub.refusal("hf://datasets/org/name/a.jsonl").contains("answered 500"));
}
