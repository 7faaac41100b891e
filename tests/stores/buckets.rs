//! Buckets of S3 and Google: found, read, resumed and written as files of a disk are.

use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use super::{gristmill, run, shards, told, write};
use crate::objects::{Server, Trouble};

/// A kind of buckets: its scheme, and the variables that lead its client to the server.
struct Store {
    scheme: &'static str,
    variables: Vec<(&'static str, String)>,
}

/// All kinds, with secrets.
fn stores(server: &Server) -> [Store; 2] {
    let root = server.url("").trim_end_matches('/').to_owned();
    let account = format!(
        "{{\"gcs_base_url\": \"{root}\", \"disable_oauth\": true, \"client_email\": \"hidden-id\", \
         \"private_key\": \"hidden-key\", \"private_key_id\": \"hidden-id\"}}"
    );
    let of_s3 = [
        ("AWS_ENDPOINT_URL", root.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "here"),
        ("AWS_ACCESS_KEY_ID", "hidden-id"),
        ("AWS_SECRET_ACCESS_KEY", "hidden-key"),
        ("AWS_SESSION_TOKEN", "hidden-token"),
    ];
    // It is sent even where nobody asks for it.
    let token = ("GOOGLE_BEARER_TOKEN", "hidden-token".to_owned());
    let owned = |(name, value): (&'static str, &str)| (name, value.to_owned());
    [
        Store { scheme: "s3", variables: of_s3.map(owned).to_vec() },
        Store { scheme: "gs", variables: vec![("GOOGLE_SERVICE_ACCOUNT_KEY", account), token] },
    ]
}

impl Store {
    /// An object of the bucket `data`, or a folder or a pattern.
    fn url(&self, key: &str) -> String {
        format!("{}://data/{key}", self.scheme)
    }

    fn gristmill(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = gristmill(folder, args);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, folder: &Path, key: &str, executor: &str, args: &[&str]) -> Json {
        write(folder, &format!("\"{}\"", self.url(key)), executor, "stall: 2");
        told(self.gristmill(folder, &[&["run", "p.yaml", "--json"], args].concat()))
    }
}

/// A listing gives sizes, so that the end of each is what is asked for first; of a version that is known nothing is asked for again.
#[cfg(feature = "parquet")]
#[test]
fn parquet_files_of_a_listing_take_a_request_each_and_none_the_second_time() {
    use gristmill::source::{ParquetWriter, ParquetWriterOptions};
    use gristmill::{Array, Element};
    const OBJECTS: usize = 70;
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let noise = |i: u64| (0..60_000).map(move |at| (at + 7 * i).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
    let mut sizes = std::collections::BTreeSet::new();
    for i in 0..OBJECTS as u64 {
        let mut writer = ParquetWriter::new(Vec::new(), ParquetWriterOptions::new()).unwrap();
        writer.write(&Element::new().with("x", Array::from_vec(noise(i).collect()))).unwrap();
        let file = writer.finish().unwrap();
        // The beginning lies in another block than the end, and both are not all of it.
        assert!(file.len() > 3 * (128 << 10));
        sizes.insert(file.len() as u64);
        server.put(&format!("data/in/{i:03}.parquet"), file);
    }
    for store in stores(&server) {
        let url = store.url("in/");
        // Counts the requests for ends: a row of one file is read, too.
        let count = |source: &str| {
            let stages = "slice: {start: 0, stop: 1}\n  - to_iter\n  - batch: 1";
            std::fs::write(
                dir.path().join("p.yaml"),
                format!("source: {source}\nstages:\n  - {stages}\nexecutor: inline\n"),
            )
            .unwrap();
            server.requests();
            told(store.gristmill(dir.path(), &["run", "p.yaml", "--json"]));
            let requests = server.requests();
            assert!(requests.iter().all(|request| request.method == "GET"), "{requests:?}");
            requests.iter().filter_map(|request| request.range).filter(|(_, to)| sizes.contains(to)).count()
        };
        let parquet = format!("{{parquet: {{paths: \"{url}\"}}}}");
        assert_eq!(count(&parquet), OBJECTS, "{url}");
        let mix = format!("{{mix: {{parts: [{{source: {parquet}}}, {{source: {parquet}}}]}}}}");
        assert_eq!(count(&mix), OBJECTS, "{url}");
    }
}

#[test]
fn objects_are_found_by_name_range_pattern_and_folder() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let [first, second] = shards();
    // Folders are walked where no object lies directly in them.
    let below = ["d=0/a", "d=1/a", "d=1/p=x/a"];
    for (i, shard) in [first.as_str(), &second, "{\"n\": -1, \"text\": \"\"}\n"].into_iter().enumerate() {
        std::fs::write(dir.path().join(format!("a-{i:02}.jsonl")), shard).unwrap();
        server.put(&format!("data/in/a-{i:02}.jsonl"), shard);
        server.put(&format!("data/lake/{}.jsonl", below[i]), shard);
    }
    for other in [
        "lake/_tmp/a.jsonl",
        "lake/d=0/_a.jsonl",
        "in/a-03.txt",
        "in/below/a-04.jsonl",
        "in/below/a-05.jsonl",
        "into/a-06.jsonl",
    ] {
        server.put(&format!("data/{other}"), "{\"n\": 0, \"text\": \"another\"}\n");
    }
    let near = run(dir.path(), "\"a-{00..02}.jsonl\"", "inline", &[])["order_hash"].clone();
    for store in stores(&server) {
        for (key, executor) in [
            ("in/a-{00..02}.jsonl", "inline"),
            ("in/a-*.jsonl", "{threads: 2}"),
            ("i?/a-??.jsonl", "{workers: 0}"),
            ("in/", "{workers: 2}"),
            ("lake/", "inline"),
        ] {
            assert_eq!(store.run(dir.path(), key, executor, &[])["order_hash"], near, "{}", store.url(key));
        }
    }
}

#[test]
fn a_run_over_a_bucket_resumes_and_refuses_other_objects() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let [first, second] = shards();
    for store in stores(&server) {
        server.put("data/a.jsonl", first.clone());
        let run = |executor, args: &[&str]| store.run(dir.path(), "a.jsonl", executor, args);
        let straight = run("inline", &["--restart"])["order_hash"].clone();
        run("{workers: 2}", &["--steps", "10"]);
        server.trouble([Trouble::Cut(100_000), Trouble::Status(503, "Retry-After: 0")]);
        assert_eq!(run("{threads: 2}", &["--resume"])["order_hash"], straight);
        assert_eq!(server.troubles_left(), 0);

        run("inline", &["--steps", "10"]);
        server.put("data/a.jsonl", second.clone());
        let output = store.gristmill(dir.path(), &["run", "p.yaml", "--resume"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("a.jsonl, bytes="), "{text}");
    }
}

#[test]
fn shards_are_written_into_a_bucket_and_read_again() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    // Larger than a part of an upload, and none of a whole number of them.
    let line = |i: usize| format!("{{\"n\": {i}, \"text\": \"{}\"}}\n", "x".repeat(2000 + i * 7919 % 1500));
    std::fs::write(dir.path().join("a.jsonl"), (0..10_000).map(line).collect::<String>()).unwrap();
    let near = run(dir.path(), "a.jsonl", "inline", &[])["order_hash"].clone();
    for store in stores(&server) {
        let folder = format!("out-{}", store.scheme);
        let (out, object) = (store.url(&folder), |name: &str| format!("data/{folder}/{name}"));
        let convert = |args: &[&str]| {
            let all = ["convert", "a.jsonl", "--to", "jsonl", "--shard-size", "10MiB", "--out", &out, "--json"];
            store.gristmill(dir.path(), &[&all, args].concat())
        };
        assert_eq!(told(convert(&[]))["report"]["shards"], 3);
        assert_eq!(store.run(dir.path(), &format!("{folder}/"), "{threads: 2}", &[])["order_hash"], near);
        assert_eq!(server.unfinished(), 0);

        // As a kill between the second shard and the third leaves it.
        let mut manifest: Json = serde_json::from_slice(&server.object(&object("manifest.json")).unwrap()).unwrap();
        manifest["records"] = manifest["shards"][2]["first_record"].clone();
        manifest["shards"].as_array_mut().unwrap().truncate(2);
        manifest["complete"] = Json::Bool(false);
        server.put(&object("manifest.json"), manifest.to_string());
        server.put(&object("shard-00007.jsonl"), "what nobody lists");
        let last = server.object(&object("shard-00002.jsonl"));
        let refused = String::from_utf8(convert(&[]).output().unwrap().stderr).unwrap();
        assert!(refused.contains("holds a data set of 2 shards already"), "{refused}");
        assert_eq!(told(convert(&["--resume"]))["report"]["shards"], 3);
        assert!(last.is_some() && server.object(&object("shard-00002.jsonl")) == last);
        assert_eq!(server.object(&object("shard-00007.jsonl")), None);
    }
}

/// The one that comes second is refused, one that was killed leaves the folder to the next, and one that was only taken for dead
/// publishes nothing more.
#[test]
fn a_folder_of_a_bucket_has_one_writer() {
    const LATER: &str = "Fri, 02 Jan 2026 03:06:00 GMT";
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    std::fs::write(dir.path().join("a.jsonl"), shards().concat()).unwrap();
    for store in stores(&server) {
        server.date("Fri, 02 Jan 2026 03:04:09 GMT");
        let (folder, lease) = (format!("one-{}", store.scheme), ".gristmill-writer.json");
        let (out, object) = (store.url(&folder), |name: &str| format!("data/{folder}/{name}"));
        let convert = |args: &[&str]| {
            let all = ["convert", "a.jsonl", "--to", "jsonl", "--shard-records", "1000", "--out", &out, "--json"];
            store.gristmill(dir.path(), &[&all, args].concat())
        };
        let told_of = |args: &[&str]| String::from_utf8(convert(args).output().unwrap().stderr).unwrap();
        // Somebody on another machine, as far as can be seen.
        let other = r#"{"gristmill_writer": 1, "id": "x", "process": {"host": "there", "pid": 7, "boot": "b", "namespace": "n", "began": 1}}"#;
        server.put(&object(lease), other);
        let refused = told_of(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            refused.contains("another sink writes to this folder: process 7 on there, last seen 4 s ago"),
            "{refused}"
        );
        assert_eq!(server.object(&object("manifest.json")), None);
        // Long silent: its place is taken, and given back.
        server.date(LATER);
        assert_eq!(told(convert(&[]))["report"]["shards"], 5);
        assert_eq!(server.object(&object(lease)), None);
        // A process of this machine that is gone need not be silent.
        server.date("Fri, 02 Jan 2026 03:04:09 GMT");
        let killed = killed_writer(&store, dir.path(), &server, &object(lease));
        server.put(&object(lease), killed);
        assert_eq!(told(convert(&["--resume"]))["report"]["shards"], 5);
        assert_eq!(server.object(&object(lease)), None);
    }
}

/// What a writer that was killed leaves in a folder.
fn killed_writer(store: &Store, dir: &Path, server: &Server, lease: &str) -> Vec<u8> {
    // It waits for the answers to its shards.
    let args = ["convert", "a.jsonl", "--to", "jsonl", "--shard-records", "7", "--out", &store.url("killed"), "--json"];
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_gristmill"));
    child.current_dir(dir).args(args).envs(store.variables.iter().map(|(name, value)| (name, value)));
    let mut child = child.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let at = lease.replace(&format!("one-{}", store.scheme), "killed");
    let text = loop {
        if let Some(text) = server.object(&at) {
            break text.to_vec();
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::yield_now();
    };
    child.kill().unwrap();
    child.wait().unwrap();
    for name in server.names(&at.replace(".gristmill-writer.json", "")) {
        server.remove(&name);
    }
    text
}

/// The manifest is replaced only where it is the one that this writer left.
#[test]
fn a_writer_that_was_taken_for_dead_publishes_nothing_more() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    std::fs::write(dir.path().join("a.jsonl"), shards().concat()).unwrap();
    for store in stores(&server) {
        let manifest = format!("data/late-{}/manifest.json", store.scheme);
        // While it works, another leaves a manifest of its own.
        server.replace_at(&manifest, 2, "another's");
        let out = store.url(&format!("late-{}", store.scheme));
        let args = ["convert", "a.jsonl", "--to", "jsonl", "--shard-records", "100", "--out", &out, "--json"];
        let output = store.gristmill(dir.path(), &args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("another sink has taken over this folder"), "{text}");
        assert_eq!(&*server.object(&manifest).unwrap(), b"another's");
    }
}

/// Keys and tokens are in headers that go wherever a request is sent.
#[test]
fn nothing_signed_follows_a_redirect() {
    let (server, other, dir) = (Server::start(), Server::start(), tempfile::tempdir().unwrap());
    other.put("data/a.jsonl", shards().concat());
    server.redirect("data/a.jsonl", &other.url("data/a.jsonl"));
    for store in stores(&server) {
        let output = store.gristmill(dir.path(), &["inspect", &store.url("a.jsonl")]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("the server answered 307"), "{text}");
        assert!(other.requests().is_empty());
    }
}

/// Of listings, whose client tries again by itself, and of objects.
#[test]
fn a_refusal_is_told_with_its_code_and_a_remedy() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let body = "<Error><Code>ExpiredToken</Code><Message>hidden-token</Message><RequestId>4F2A</RequestId></Error>";
    for name in ["data", "data/a.jsonl"] {
        server.refuse(name, 400, "x: y", body);
    }
    for store in stores(&server) {
        for key in ["in/", "*.jsonl", "a.jsonl"] {
            let output = store.gristmill(dir.path(), &["inspect", &store.url(key)]).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("the server answered 400 (ExpiredToken, request 4F2A)"), "{key}: {text}");
            assert!(text.contains("the credentials have expired") && !text.contains("hidden"), "{key}: {text}");
        }
    }
}

#[test]
fn keys_are_in_no_error() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    server.put("data/a.jsonl", shards().concat());
    for mut store in stores(&server) {
        let limits = [("GRISTMILL_STORE_ATTEMPTS", "2"), ("GRISTMILL_STORE_STALL", "0.3"), ("RUST_LOG", "debug")];
        store.variables.extend(limits.map(|(name, value)| (name, value.to_owned())));
        let pipeline = |key: &str| {
            let url = store.url(key);
            let text = format!("source: {{jsonl: {{paths: \"{url}\"}}}}\nstages:\n  - to_iter\n  - batch: 64\n");
            std::fs::write(dir.path().join("p.yaml"), text).unwrap();
            let output = store.gristmill(dir.path(), &["run", "p.yaml"]).output().unwrap();
            let text =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(!text.contains("hidden"), "{text}");
            (output.status.success(), text)
        };
        assert!(pipeline("a.jsonl").0);
        for trouble in [
            Trouble::Status(403, "x: hidden"),
            Trouble::Status(401, "x: hidden"),
            Trouble::Status(500, "x: hidden"),
            Trouble::Status(429, "Retry-After: 9999"),
            Trouble::Cut(0),
            Trouble::Stall(0),
            Trouble::WrongRange,
        ] {
            // Enough for the requests that a run before this one left on their way.
            server.trouble(vec![trouble.clone(); 99]);
            let (succeeded, text) = pipeline("a.jsonl");
            assert!(!succeeded && text.contains(&store.url("a.jsonl")), "{trouble:?}: {text}");
            server.calm();
        }
        for key in ["none.jsonl", "none-*.jsonl", "none/"] {
            assert!(!pipeline(key).0, "{key}");
        }
    }
}

/// What is said of credentials that are none does not quote them.
#[test]
fn credentials_that_are_damaged_are_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    for key in ["\"hidden\"", "{\"private_key\": \"hidden\", \"disable_oauth\": \"hidden\"}", "hidden"] {
        let mut command = gristmill(dir.path(), &["inspect", "gs://data/a.jsonl"]);
        let output = command.env("GOOGLE_SERVICE_ACCOUNT_KEY", key).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !text.contains("hidden"), "{text}");
        assert!(text.contains("gs://data/a.jsonl") && text.contains("the store cannot be set up"), "{text}");
    }
}
