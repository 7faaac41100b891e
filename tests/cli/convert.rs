//! Data in another format: what is written, told, refused, and how it survives.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{demo, fails, gristmill, json, ok, on_one_line, stderr, write};

/// Every file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

#[test]
fn what_is_written_is_what_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines: String = (0..100).map(|i| format!("{{\"i\":{i},\"text\":\"no {i}\",\"x\":0.5}}\n")).collect();
    write(folder, "a.jsonl", &lines);
    let args = ["convert", "a.jsonl", "--to", "jsonl", "--shard-records", "30", "--out", "b", "--json"];
    let summary = json(folder, &args);
    assert_eq!((summary["stopped"].as_str(), summary["report"]["shards"].as_u64()), (Some("end"), Some(4)));
    let written = files(&folder.join("b"));
    let shards = written.iter().filter(|(name, _)| name.ends_with(".jsonl"));
    assert_eq!(shards.flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>(), lines.as_bytes());
    // A folder that a sink wrote is data again.
    let again = ["convert", "b", "--to", "jsonl", "--columns", "text", "--out", "c", "--compression", "zstd:1"];
    let text = ok(folder, &again);
    assert!(text.contains("100 records in 1 shard of jsonl (zstd:1)") && text.contains("VERDICT"), "{text}");
    assert!(ok(folder, &["inspect", "c"]).contains("text: \"no 0\""));
    write(folder, "p.yaml", "source: {jsonl: a.jsonl}\nstages:\n  - filter: {column: i, min: 90}\n");
    let filtered = json(folder, &["convert", "p.yaml", "--to", "jsonl", "--out", "d", "--json"]);
    assert_eq!(filtered["report"]["records"], 10);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.jsonl", "{\"i\": 1}\n{\"i\": 2}\n");
    let error = |more: &[&str]| fails(folder, &[&["convert", "a.jsonl", "--out", "b"], more].concat());
    let (code, text) = error(&["--to", "xml"]);
    assert!(code == 2 && text.contains("possible values: jsonl"), "{text}");
    let (code, text) = error(&["--to", "jsonl", "--compression", "zstd:99"]);
    assert!(code == 2 && text.contains("is not a level of zstd"), "{text}");
    let (code, text) = error(&["--to", "jsonl", "--compression", "snappy"]);
    assert!(code == 2 && text.contains("jsonl has no compression snappy"), "{text}");
    let (code, text) = error(&["--to", "jsonl", "--columns", "j"]);
    assert!(code == 2 && text.contains("no column `j`; there are i"), "{text}");
    ok(folder, &["convert", "a.jsonl", "--to", "jsonl", "--out", "b"]);
    let (code, text) = error(&["--to", "jsonl"]);
    assert!(code == 2 && text.contains("holds a data set of 1 shard already") && text.contains("resume"), "{text}");
    let (code, text) = error(&["--to", "jsonl", "--shard-size", "1MB", "--resume"]);
    assert!(code == 1 && text.contains("shard_bytes 268435456, and this is 1000000"), "{text}");
    ok(folder, &["convert", "a.jsonl", "--to", "jsonl", "--out", "b", "--resume"]);
}

/// The demo's corpus, several times over and shuffled.
fn pipeline(folder: &Path) {
    let text = "source: {jsonl: gristmill-demo/corpus.jsonl}\nstages:\n  - shuffle: 7\n  - repeat: 4\n";
    write(folder, "p.yaml", text);
}

const CONVERT: [&str; 10] =
    ["convert", "p.yaml", "--to", "jsonl", "--compression", "zstd:1", "--shard-size", "300kB", "--resume", "--out"];

#[test]
#[cfg(unix)]
fn a_run_that_is_killed_again_and_again_leaves_the_same_bytes() {
    let (folder, _) = demo();
    let folder = folder.path();
    pipeline(folder);
    ok(folder, &[&CONVERT[..], &["whole"]].concat());
    let exe = env!("CARGO_BIN_EXE_gristmill");
    let (mut kills, mut wait) = (0, 1);
    loop {
        let mut child = Command::new(exe)
            .current_dir(folder)
            .args(CONVERT)
            .args(["killed", "--threads", ["1", "auto", "3"][kills % 3]])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Places all over the run; a machine that is slower is given longer, so that it comes to its end.
        std::thread::sleep(Duration::from_millis(wait));
        wait = (wait * 3 + 7) % 97 + kills as u64 * 2;
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 2, "{kills}");
    assert_eq!(files(&folder.join("killed")), files(&folder.join("whole")));
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_a_folder_that_is_resumed() {
    let (folder, _) = demo();
    let folder = folder.path();
    let text = "source: {jsonl: gristmill-demo/corpus.jsonl}\nstages:\n  - repeat: {num_epochs: 100000}\n";
    write(folder, "p.yaml", text);
    let exe = env!("CARGO_BIN_EXE_gristmill");
    let mut child = Command::new(exe);
    let child = child.current_dir(folder).args(CONVERT).arg("out").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    while !folder.join("out/shard-00001.jsonl.zst").exists() {
        // Nothing else tells that a shard is done.
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("with --resume to continue after them"), "{}", stderr(&output));
    let manifest = std::fs::read_to_string(folder.join("out/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["complete"], false);
    assert!(manifest["records"].as_u64().unwrap() > 0);
    let listed = manifest["shards"].as_array().unwrap().len();
    assert_eq!(files(&folder.join("out")).len(), listed + 1);
    assert!(gristmill(folder, &["inspect", "out"]).status.success());
}

#[test]
#[cfg(feature = "parquet")]
fn columns_are_those_of_the_first_records_unless_they_are_declared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let score = |i: u32| if i == 1300 { "7".to_owned() } else { format!("{i}.5") };
    let lines: String = (0..2000).map(|i| format!("{{\"i\":{i},\"score\":{}}}\n", score(i))).collect();
    write(folder, "a.jsonl", &lines);
    let args = ["convert", "a.jsonl", "--to", "parquet", "--shard-records", "100"];
    let (code, text) = fails(folder, &[&args[..], &["--out", "b"]].concat());
    let words = on_one_line(&text);
    assert!(
        code == 1 && words.contains("record 1300: column score: a number of int64 where a number of float64"),
        "{text}"
    );
    assert!(words.contains("declare the column by a schema"), "{text}");
    ok(folder, &[&args[..], &["--out", "c", "--schema", "{\"score\": \"float32\"}"]].concat());
    assert!(ok(folder, &["verify", "c"]).contains("nothing is damaged"));
    write(folder, "schema.json", "{\"score\": \"number\"}");
    let (code, text) = fails(folder, &[&args[..], &["--out", "d", "--schema", "schema.json"]].concat());
    assert!(code == 2 && text.contains("is no type of the format"), "{text}");
}

/// Every format that this build writes, and the column that it is given.
fn formats() -> Vec<(&'static str, &'static str)> {
    let mut formats = vec![("jsonl", "n,text"), ("tokens", "tokens"), ("megatron", "tokens"), ("npy", "point")];
    let more = [
        (cfg!(feature = "parquet"), "parquet", "n,text,tokens"),
        (cfg!(feature = "arrow"), "arrow", "n,text,tokens"),
        (cfg!(feature = "arrow"), "hugging_face", "n,text,point"),
        (cfg!(feature = "array_record"), "array_record", "text"),
        (cfg!(feature = "tf_record"), "tfrecord", "n,point"),
        (cfg!(feature = "webdataset"), "webdataset", "n,text,tokens"),
        (cfg!(feature = "mds"), "mds", "n,text,tokens"),
        (cfg!(feature = "safetensors"), "safetensors", "point"),
    ];
    formats.extend(more.into_iter().filter(|(is_built, ..)| *is_built).map(|(_, format, columns)| (format, columns)));
    formats
}

#[test]
#[cfg(unix)]
fn every_format_survives_being_killed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line =
        |i: u32| format!("{{\"n\":{i},\"text\":\"number {i}\",\"tokens\":[{i},{}],\"point\":[{i}.5,0.5]}}\n", i % 7);
    write(folder, "a.jsonl", &(0..1500).map(line).collect::<String>());
    let exe = env!("CARGO_BIN_EXE_gristmill");
    for (format, columns) in formats() {
        let args = |out: &str| {
            let args =
                ["convert", "a.jsonl", "--to", format, "--columns", columns, "--shard-records", "60", "--resume"];
            args.iter().map(|arg| (*arg).to_owned()).chain(["--out".to_owned(), out.to_owned()]).collect::<Vec<_>>()
        };
        let (whole, killed) = (format!("{format}-whole"), format!("{format}-killed"));
        ok(folder, &args(&whole).iter().map(String::as_str).collect::<Vec<_>>());
        let manifest = folder.join(&killed).join("manifest.json");
        for records in [1, 700] {
            let mut child = Command::new(exe);
            let child = child.current_dir(folder).args(args(&killed)).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = child.spawn().unwrap();
            // As far as the manifest lists that many, or to the end, if that comes first.
            let listed = || {
                let text = std::fs::read_to_string(&manifest).unwrap_or_default();
                serde_json::from_str::<serde_json::Value>(&text).map_or(0, |m| m["records"].as_u64().unwrap())
            };
            while child.try_wait().unwrap().is_none() && listed() < records {
                // Between two looks at the manifest.
                std::thread::sleep(Duration::from_millis(1));
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
        ok(folder, &args(&killed).iter().map(String::as_str).collect::<Vec<_>>());
        assert!(files(&folder.join(&killed)) == files(&folder.join(&whole)), "{format}");
        assert!(ok(folder, &["verify", &killed]).contains("nothing is damaged"), "{format}");
    }
}

#[test]
fn columns_of_token_ids_are_named_and_bare_files_are_known_by_their_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.jsonl", "{\"ids\": [1, 2, 70000]}\n{\"ids\": []}\n{\"ids\": [4]}\n");
    let args = ["convert", "a.jsonl", "--to", "tokens", "--bare", "--ids", "uint32", "--out"];
    let (code, text) = fails(folder, &[&args[..], &["x"]].concat());
    assert!(code != 0 && text.contains("no field \"tokens\"") && text.contains("name the column"), "{text}");
    ok(folder, &[&args[..], &["bare", "--column", "ids"]].concat());
    assert!(ok(folder, &["verify", "bare"]).contains("nothing is damaged"));
    assert!(ok(folder, &["inspect", "bare"]).contains("70000"));
    std::fs::rename(folder.join("bare/shard-00000.bin"), folder.join("a.bin")).unwrap();
    assert!(fails(folder, &["verify", "a.bin"]).1.contains("u16"));
    assert!(ok(folder, &["verify", "a.bin", "--layout", "u32"]).contains("1 record"));
}

#[test]
#[cfg(all(feature = "parquet", feature = "webdataset"))]
fn lists_that_are_empty_at_first_and_names_without_endings_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.jsonl", "{\"tags\": [], \"n\": 1}\n{\"tags\": [\"a\"], \"n\": 2}\n");
    ok(folder, &["convert", "a.jsonl", "--to", "parquet", "--out", "p"]);
    assert!(ok(folder, &["inspect", "p"]).contains("[\"a\"]"));
    ok(folder, &["convert", "p", "--to", "webdataset", "--compression", "lz4", "--out", "w"]);
    assert!(folder.join("w/shard-00000.tar.lz4").exists());
    assert!(ok(folder, &["verify", "w"]).contains("2 records"));
    let shown = ok(folder, &["inspect", "w"]);
    assert!(shown.contains("tags.json") && shown.contains("n.npy") && !shown.contains("tags.npy"), "{shown}");
}

#[test]
#[cfg(feature = "tf_record")]
fn sequences_that_are_named_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines = "{\"id\":[7],\"frames\":[[1,2],[3,4],[5,6]]}\n{\"id\":[8],\"frames\":[[1],[2,3]]}\n";
    write(folder, "a.jsonl", lines);
    ok(folder, &["convert", "a.jsonl", "--to", "tfrecord", "--sequences", "frames", "--out", "t"]);
    write(folder, "p.yaml", "source: {tfrecord: {paths: t, sequence_examples: true}}\n");
    ok(folder, &["convert", "p.yaml", "--to", "jsonl", "--out", "again"]);
    assert_eq!(std::fs::read_to_string(folder.join("again/shard-00000.jsonl")).unwrap(), lines);
    let (code, text) = fails(folder, &["convert", "a.jsonl", "--to", "tfrecord", "--sequences", "frame", "--out", "x"]);
    assert!(code == 1 && text.contains("record 0") && text.contains("\"frame\" is missing"), "{text}");
}
