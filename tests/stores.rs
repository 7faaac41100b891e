//! Pipelines over objects: the data of the same files on a disk, whoever reads it and whatever happens on the way.
#![cfg(all(feature = "http", feature = "cli", feature = "workers", target_os = "linux"))]

#[path = "support/objects.rs"]
mod objects;

use std::path::Path;

use assert_cmd::Command;
use objects::{Server, Trouble};
use serde_json::Value as Json;

/// Runs a pipeline of this source, and says what it did.
fn run(folder: &Path, paths: &str, executor: &str, args: &[&str]) -> Json {
    let text = format!(
        "source: {{jsonl: {{paths: {paths}}}}}\nstages:\n  - shuffle: {{seed: 5}}\n  - to_iter\n  - batch: 64\n\
         executor: {executor}\ncheckpoint: {{folder: saved}}\nstore: {{cache_dir: cache, cache_size: 1GiB, stall: 2}}\n"
    );
    std::fs::write(folder.join("p.yaml"), text).unwrap();
    let args = [&["run", "p.yaml", "--json"], args].concat();
    let output = Command::cargo_bin("gristmill").unwrap().current_dir(folder).args(&args).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {err}");
    serde_json::from_str(out.lines().last().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {out}{err}"))
}

/// Two shards of some megabytes.
fn shards() -> [String; 2] {
    let line = |i: usize| format!("{{\"n\": {i}, \"text\": \"{}\"}}\n", "x".repeat(i * 7919 % 1500));
    [0..3000, 3000..5000].map(|range| range.map(line).collect())
}

#[test]
fn objects_give_the_data_of_files_for_any_number_of_workers() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    for (i, shard) in shards().into_iter().enumerate() {
        std::fs::write(dir.path().join(format!("a-{i:03}.jsonl")), &shard).unwrap();
        server.put(&format!("a-{i:03}.jsonl"), shard);
    }
    let near = run(dir.path(), "\"a-{000..001}.jsonl\"", "inline", &[])["order_hash"].clone();
    let far = format!("\"{}\"", server.url("a-{000..001}.jsonl"));
    for executor in ["inline", "{threads: 2}", "{workers: 0}", "{workers: 1}", "{workers: 4}"] {
        // What goes wrong on the way changes nothing.
        server.trouble([Trouble::Cut(100_000), Trouble::Status(503, "Retry-After: 0")]);
        assert_eq!(run(dir.path(), &far, executor, &[])["order_hash"], near, "{executor}");
    }
    // All of it is on the disk by now.
    server.requests();
    run(dir.path(), &far, "inline", &[]);
    let fetched = server.requests().iter().filter(|request| request.range.is_some()).count();
    assert_eq!(fetched, 0);
}

#[test]
fn a_run_over_objects_resumes_and_refuses_other_objects() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let [first, second] = shards();
    server.put("a.jsonl", first);
    let far = format!("\"{}\"", server.url("a.jsonl"));
    let straight = run(dir.path(), &far, "inline", &[])["order_hash"].clone();
    run(dir.path(), &far, "{workers: 2}", &["--steps", "10"]);
    let resumed = run(dir.path(), &far, "{threads: 2}", &["--resume"]);
    assert_eq!(resumed["order_hash"], straight);

    run(dir.path(), &far, "inline", &["--steps", "10"]);
    server.put("a.jsonl", second);
    let args = ["run", "p.yaml", "--resume"];
    let output = Command::cargo_bin("gristmill").unwrap().current_dir(dir.path()).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("a.jsonl, bytes="), "{text}");
}
