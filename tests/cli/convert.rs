//! Data in another format: what is written, told, refused, and how it survives.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{demo, fails, gristmill, json, ok, stderr, write};

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
    assert!(text.contains("100 records in 1 shards of jsonl (zstd:1)") && text.contains("VERDICT"), "{text}");
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
    assert!(code == 2 && text.contains("levels") | text.contains("no level of zstd"), "{text}");
    let (code, text) = error(&["--to", "jsonl", "--compression", "lz4"]);
    assert!(code == 2 && text.contains("jsonl has no compression lz4"), "{text}");
    let (code, text) = error(&["--to", "jsonl", "--columns", "j"]);
    assert!(code == 2 && text.contains("no column `j`; there are i"), "{text}");
    ok(folder, &["convert", "a.jsonl", "--to", "jsonl", "--out", "b"]);
    let (code, text) = error(&["--to", "jsonl"]);
    assert!(code == 2 && text.contains("holds a data set of 1 shards already") && text.contains("resume"), "{text}");
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
    let exe = assert_cmd::cargo::cargo_bin("gristmill");
    let (mut kills, mut wait) = (0, 1);
    loop {
        let mut child = Command::new(&exe)
            .current_dir(folder)
            .args(CONVERT)
            .args(["killed", "--threads", ["1", "2", "3"][kills % 3]])
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
    let exe = assert_cmd::cargo::cargo_bin("gristmill");
    let mut child = Command::new(exe);
    let child = child.current_dir(folder).args(CONVERT).arg("out").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    while !folder.join("out/shard-00001.jsonl.zst").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("with --resume goes on behind them"), "{}", stderr(&output));
    let manifest = std::fs::read_to_string(folder.join("out/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["complete"], false);
    assert!(manifest["records"].as_u64().unwrap() > 0);
    let listed = manifest["shards"].as_array().unwrap().len();
    assert_eq!(files(&folder.join("out")).len(), listed + 1);
    assert!(gristmill(folder, &["inspect", "out"]).status.success());
}
