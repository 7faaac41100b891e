//! Pipelines over objects: the data of the same files on a disk, whoever reads it and whatever happens on the way.
#![cfg(all(feature = "http", feature = "s3", feature = "cli", feature = "workers", target_os = "linux"))]

#[cfg(feature = "gcs")]
mod buckets;
mod hub;
#[path = "../support/objects.rs"]
mod objects;

use std::path::Path;
use std::process::Command;

use objects::{Server, Trouble};
use serde_json::Value as Json;

/// Runs a pipeline of this source, and says what it did.
fn run(folder: &Path, paths: &str, executor: &str, args: &[&str]) -> Json {
    run_with(folder, paths, executor, "cache_dir: cache, cache_size: 1GiB, stall: 2", args)
}

fn run_with(folder: &Path, paths: &str, executor: &str, store: &str, args: &[&str]) -> Json {
    write(folder, paths, executor, store);
    told(gristmill(folder, &[&["run", "p.yaml", "--json"], args].concat()))
}

/// Writes a pipeline of this source.
fn write(folder: &Path, paths: &str, executor: &str, store: &str) {
    let text = format!(
        "source: {{jsonl: {{paths: {paths}}}}}\nstages:\n  - shuffle: {{seed: 5}}\n  - to_iter\n  - batch: 64\n\
         executor: {executor}\ncheckpoint: {{folder: saved}}\nstore: {{{store}}}\n"
    );
    std::fs::write(folder.join("p.yaml"), text).unwrap();
}

fn gristmill(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.current_dir(folder).args(args);
    command
}

/// What a command that succeeds says as JSON.
fn told(mut command: Command) -> Json {
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {err}");
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

/// Neither the blocks of objects nor decoded row groups have room all together. In processes of their own: the memory of
/// blocks is that of a process.
#[cfg(feature = "parquet")]
#[test]
fn row_groups_in_random_order_are_fetched_once() {
    use gristmill::source::{ParquetWriter, ParquetWriterOptions};
    use gristmill::{Array, Element};
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let noise = |i: u64| (0..1024).map(move |at| (at + 1024 * i).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
    let row = |i: u64| Element::new().with("i", Array::scalar(i)).with("x", Array::from_vec(noise(i).collect()));
    let mut writer = ParquetWriter::new(Vec::new(), ParquetWriterOptions::new().row_group_rows(200)).unwrap();
    (0..6_000).for_each(|i| writer.write(&row(i)).unwrap());
    let file = writer.finish().unwrap();
    std::fs::write(dir.path().join("a.parquet"), &file).unwrap();
    let url = server.put("a.parquet", file.clone());
    let run = |path: &str, executor: &str| {
        let text = format!(
            "source: {{parquet: {{paths: \"{path}\", cache_bytes: 20MiB}}}}\nstages:\n  - block_shuffle: {{window_blocks: 5, \
             seed: 1}}\n  - to_iter\n  - batch: 64\nexecutor: {executor}\nstore: {{memory: 32MiB}}\n"
        );
        std::fs::write(dir.path().join("p.yaml"), text).unwrap();
        told(gristmill(dir.path(), &["run", "p.yaml", "--json"]))["order_hash"].clone()
    };
    let near = run("a.parquet", "inline");
    for executor in ["inline", "{threads: 2}"] {
        server.requests();
        assert_eq!(run(&url, executor), near, "{executor}");
        let ranges = server.requests().into_iter().filter_map(|request| request.range);
        let fetched: u64 = ranges.map(|(from, to)| to - from).sum();
        // Of a few blocks one part belongs to one row group and the rest to another; by a plain `shuffle` each comes many times.
        let share = fetched as f64 / file.len() as f64;
        assert!((0.99..1.5).contains(&share), "{executor}: {share} times the data");
    }
}

#[test]
fn what_is_indexed_is_shown_without_its_signature() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let url = server.put("a.jsonl", "{\"n\": 1}\n") + "?X-Amz-Signature=hid/den";
    for json in [&[][..], &["--json"]] {
        let output = gristmill(dir.path(), &[&["index", &url], json].concat()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("/a.jsonl") && !text.contains("den"), "{text}");
    }
}

/// No folder is looked for where a file is named.
#[test]
fn a_file_that_is_inspected_is_the_one_that_is_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = gristmill(dir.path(), &["inspect", "http://127.0.0.1:1/a.jsonl"]);
    let output = command.env("GRISTMILL_STORE_ATTEMPTS", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("http://127.0.0.1:1/a.jsonl: ") && !text.contains("manifest"), "{text}");
    let output = gristmill(dir.path(), &["inspect", "none.jsonl"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("none.jsonl: No such file or directory"), "{text}");
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
    let output = Command::new(env!("CARGO_BIN_EXE_gristmill")).current_dir(dir.path()).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("a.jsonl, bytes="), "{text}");
}

#[test]
fn processes_share_a_folder_of_blocks() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let [first, second] = shards();
    server.put("a.jsonl", first + &second);
    let far = format!("\"{}\"", server.url("a.jsonl"));
    let straight = run(dir.path(), &far, "inline", &[])["order_hash"].clone();
    // Less room than the object takes, so that each removes what others read; and nothing is found in memory.
    let cache = dir.path().join("shared");
    let store = format!("cache_dir: {}, cache_size: 2MiB, memory: 1MiB", cache.display());
    std::thread::scope(|scope| {
        let one = || {
            let folder = tempfile::tempdir().unwrap();
            (0..2).map(|_| run_with(folder.path(), &far, "{threads: 2}", &store, &[])["order_hash"].clone()).collect()
        };
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        for hashes in runs.into_iter().map(|run| -> Vec<Json> { run.join().unwrap() }) {
            assert_eq!(hashes, [straight.clone(), straight.clone()]);
        }
    });
    let folders = std::fs::read_dir(cache.join("blocks")).unwrap().flatten().filter(|entry| entry.path().is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten());
    let (count, bytes) = files.fold((0, 0), |(n, bytes), file| (n + 1, bytes + file.metadata().unwrap().len()));
    // Each looks around after it has written a sixteenth of it, and so may have several at a time.
    assert!(count > 0 && bytes <= 2 * (2 << 20), "{bytes} bytes in {count} files");
}

#[test]
fn blocks_are_in_the_budget_of_workers() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let line = |i: usize| format!("{{\"n\": {i}, \"text\": \"{}\"}}\n", "x".repeat(20_000));
    server.put("a.jsonl", (0..6000).map(line).collect::<String>());
    let far = format!("\"{}\"", server.url("a.jsonl"));
    let run = |executor| run_with(dir.path(), &far, executor, "memory: 1GiB", &[]);
    // 120 MB, and a heap of 80 MiB.
    let report = run("{workers: 1, threads_per_worker: 2, ram_budget: 160MiB}");
    assert_eq!(report["order_hash"], run("inline")["order_hash"]);
    assert_eq!(report["report"]["workers"]["replaced"], 0, "{report}");
}

/// Each is given other rows, and knows nothing of what lies between them but that others may read it.
#[test]
fn workers_fetch_what_they_are_given() {
    use gristmill::dataset::map::Source;
    use gristmill::source::{Npy, NpyWriter};
    use gristmill::workers::{MpOptions, mp_prefetch};
    use gristmill::{Array, BoxIter, Element, IterDatasetExt, MapDatasetExt, Result};
    fn rows(url: String) -> Result<BoxIter<Element>> {
        Ok(Source::new(Npy::open(url)?).to_iter().boxed())
    }
    const ROWS: usize = 1500;
    let mut writer = NpyWriter::options().write_back_to(std::io::Cursor::new(Vec::new()));
    for i in 0..ROWS as u64 {
        writer.write(&Element::new().with("x", Array::from_vec(vec![i; 4 << 10]))).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    let (server, size) = (Server::start(), bytes.len() as u64);
    let url = server.put("a.npy", bytes);
    let options = MpOptions::auto().workers(3).threads_per_worker(2).ram_budget(3 << 30).tune(false);
    let read = mp_prefetch(rows, url, options).unwrap().build().unwrap().collect::<Result<Vec<_>>>().unwrap();
    assert_eq!(read.len(), ROWS);
    let fetched: u64 = server.requests().iter().filter_map(|request| request.range).map(|(from, to)| to - from).sum();
    // Where one ends and another begins both need a block.
    assert!((size..size / 4 * 5).contains(&fetched), "{fetched} of {size}");
}
