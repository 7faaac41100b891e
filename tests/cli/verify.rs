//! Everything is read, and what is damaged is listed; text becomes ids; indices are built.

use std::path::Path;

use serde_json::Value as Json;

use super::{demo, fails, gristmill, json, ok, stdout, write};

fn verify(folder: &Path, args: &[&str]) -> (i32, Json) {
    let output = gristmill(folder, &[&["verify", "--json"], args].concat());
    (output.status.code().unwrap(), serde_json::from_str(stdout(&output).trim()).unwrap())
}

#[test]
fn what_is_damaged_is_listed_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines: String = (0..1000).map(|i| format!("{{\"i\":{i}}}\n")).collect();
    write(folder, "good.jsonl", &lines);
    write(folder, "bad.jsonl", &lines.replace("{\"i\":7}", "{\"i\":}").replace("{\"i\":500}", "500"));
    insta::assert_snapshot!(ok(folder, &["verify", "good.jsonl"]), @r"
    read        1 000 records · 7.81 KiB of values · 1 file of jsonl
    order hash  4910641cfb823b7e20489d9f1a18a93d
    VERDICT  nothing is damaged
    ");
    write(folder, "p.yaml", "source: {jsonl: good.jsonl}\n");
    assert!(ok(folder, &["verify", "good.jsonl"]).contains(ok(folder, &["run", "p.yaml", "--order-hash"]).trim()));
    let (code, found) = verify(folder, &["bad.jsonl", "good.jsonl"]);
    assert_eq!((code, &found["damaged"], &found["records"]), (1, &Json::from(2), &Json::from(1998)));
    let problems = found["problems"].as_array().unwrap();
    assert!(problems.iter().all(|problem| problem["file"] == "bad.jsonl" && !problem["offset"].is_null()), "{found}");
    let (code, found) = verify(folder, &["bad.jsonl", "--most", "1"]);
    assert_eq!((code, found["problems"].as_array().unwrap().len(), &found["problem_count"]), (1, 1, &Json::from(2)));
}

#[test]
fn a_folder_is_compared_with_its_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines: String = (0..300).map(|i| format!("{{\"i\":{i},\"text\":\"number {i}\"}}\n")).collect();
    write(folder, "a.jsonl", &lines);
    ok(folder, &["convert", "a.jsonl", "--to", "jsonl", "--shard-records", "100", "--out", "b"]);
    let (code, found) = verify(folder, &["b"]);
    assert_eq!((code, &found["manifest"], &found["records"]), (0, &Json::from(true), &Json::from(300)));
    assert_eq!(found["order_hash"], verify(folder, &["a.jsonl"]).1["order_hash"]);
    // Still good records, but not those that were written.
    let shard = folder.join("b/shard-00001.jsonl");
    let text = std::fs::read_to_string(&shard).unwrap();
    std::fs::write(&shard, text.replace("number 150", "number 151")).unwrap();
    let (code, found) = verify(folder, &["b"]);
    assert_eq!((code, &found["manifest"], &found["damaged"]), (1, &Json::from(false), &Json::from(0)));
    assert!(found["problems"][0]["message"].as_str().unwrap().starts_with("its hash is "), "{found}");
    std::fs::write(&shard, &text[..text.len() / 2]).unwrap();
    let (code, found) = verify(folder, &["b"]);
    assert_eq!((code, &found["manifest"]), (1, &Json::from(false)));
    std::fs::remove_file(&shard).unwrap();
    assert_ne!(gristmill(folder, &["verify", "b"]).status.code(), Some(0));
}

#[test]
fn text_becomes_ids_that_are_read_again() {
    let (folder, summary) = demo();
    let folder = folder.path();
    let (corpus, tokenizer) = ("gristmill-demo/corpus.jsonl", "gristmill-demo/demo.tokenizer.json");
    let tokenise = |out: &str, more: &[&str]| {
        let args = ["tokenise", corpus, "--tokenizer", tokenizer, "--shard-size", "1MB", "--json", "--out", out];
        json(folder, &[&args, more].concat())
    };
    let written = tokenise("ids", &["--append-eos", "<|endoftext|>"]);
    assert!(written["report"]["shards"].as_u64().unwrap() > 1, "{written}");
    // Each id takes four bytes before it is written, and two in the file.
    let raw = written["report"]["bytes_in"].as_u64().unwrap();
    assert_eq!(written["tokens"].as_u64(), Some(raw / 4));
    assert_eq!(
        raw / 2 + 1024 * written["report"]["shards"].as_u64().unwrap(),
        written["report"]["bytes_out"].as_u64().unwrap()
    );
    assert!(ok(folder, &["inspect", "ids"]).contains("tokens"));
    let (code, found) = verify(folder, &["ids"]);
    assert_eq!((code, &found["manifest"], &found["bytes"]), (0, &Json::from(true), &Json::from(raw / 2)));
    let documents = tokenise("megatron", &["--format", "megatron", "--append-eos", "<|endoftext|>"]);
    assert_eq!(documents["report"]["bytes_in"], raw);
    let (code, found) = verify(folder, &["megatron"]);
    assert_eq!((code, &found["manifest"], &found["records"]), (0, &Json::from(true), &documents["report"]["records"]));
    let rows = tokenise("rows", &["--format", "jsonl", "--compression", "zstd:1", "--seq-len", "128"]);
    let tokens = summary["tokens"].as_u64().unwrap();
    assert!(rows["report"]["records"].as_u64().unwrap() >= tokens / 128 - 1, "{rows}");
    assert!(ok(folder, &["inspect", "rows"]).contains("tokens_segment_ids  int64[128]"));
    let (code, text) = fails(folder, &["tokenise", corpus, "--tokenizer", tokenizer, "--column", "txt", "--out", "x"]);
    assert!(code != 0 && text.contains("txt"), "{text}");
}

#[test]
fn a_shard_that_is_gone_is_listed_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines: String = (0..300).map(|i| format!("{{\"i\":{i}}}\n")).collect();
    write(folder, "a.jsonl", &lines);
    ok(folder, &["convert", "a.jsonl", "--to", "jsonl", "--shard-records", "100", "--out", "b"]);
    std::fs::remove_file(folder.join("b/shard-00001.jsonl")).unwrap();
    let (code, found) = verify(folder, &["b"]);
    assert_eq!((code, &found["records"], &found["manifest"]), (1, &Json::from(200), &Json::from(false)), "{found}");
    assert!(found["problems"].as_array().unwrap().iter().any(|p| p["file"] == "b/shard-00001.jsonl"), "{found}");
}

#[test]
fn an_index_is_built_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines: String = (0..200_000).map(|i| format!("{{\"i\":{i},\"text\":\"the number {i:030}\"}}\n")).collect();
    write(folder, "large.jsonl", &lines);
    write(folder, "small.jsonl", "{}\n");
    let told = json(folder, &["index", "large.jsonl", "small.jsonl", "--json"]);
    assert_eq!((&told["files"][0]["records"], &told["files"][1]["index_bytes"]), (&Json::from(200_000), &Json::Null));
    let index = std::fs::read(folder.join(".large.jsonl.gmi")).unwrap();
    assert_eq!(told["files"][0]["index_bytes"], index.len() as u64);
    assert!(ok(folder, &["index", "small.jsonl"]).contains("none needed"));
    std::fs::remove_file(folder.join(".large.jsonl.gmi")).unwrap();
    let told = json(folder, &["index", "large.jsonl", "--cache", "indices", "--json"]);
    assert_eq!(told["files"][0]["index_bytes"], index.len() as u64);
    assert_eq!(std::fs::read_dir(folder.join("indices")).unwrap().count(), 1);
    assert!(!folder.join(".large.jsonl.gmi").exists());
}

/// Small files of a folder have an index together, if they are one data set.
#[cfg(feature = "csv")]
#[test]
fn small_files_are_indexed_together() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(999));
    let table = |name: &str| format!("{name}\n{}", line.replace(['{', '}', '"'], "").repeat(2000));
    ["small", "tables"].iter().for_each(|name| std::fs::create_dir(folder.join(name)).unwrap());
    for i in 0..5 {
        write(folder, &format!("small/{i}.jsonl"), &line.repeat(2000));
        write(folder, &format!("tables/{i}.csv"), &table(if i < 4 { "a" } else { "b" }));
    }
    write(folder, "small/few.txt", "a\nb\n");
    let told = json(folder, &["index", "small", "tables", "--json"]);
    let fact = |i: usize, name: &str| told["files"][i][name].clone();
    assert_eq!(told["files"].as_array().unwrap().len(), 7, "{told}");
    let index = std::fs::metadata(folder.join("small/.gmi")).unwrap().len();
    let together = ["files", "records", "index_bytes"].map(|name| fact(0, name));
    assert_eq!(together, [Json::from(5), Json::from(10_000), Json::from(index)], "{told}");
    assert_eq!((fact(1, "files"), fact(1, "index_bytes")), (Json::from(1), Json::Null), "{told}");
    assert_eq!((fact(6, "records"), fact(6, "index_bytes")), (Json::from(2000), Json::Null), "{told}");
    assert!(ok(folder, &["index", "small"]).contains("5 small files of small"));
}

#[cfg(feature = "csv")]
#[test]
fn formats_and_repeated_names_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "a.jsonl", "{\"a\": 1, \"a\": 2}\n{\"a\": 1}\n");
    write(folder, "b.csv", "a,b\n1,2\n");
    let text = ok(folder, &["verify", "a.jsonl", "b.csv"]);
    assert!(text.contains("2 files of jsonl and csv\n"), "{text}");
    assert!(text.contains("repeated    1 record with a repeated name, of which the last value stands\n"), "{text}");
    assert_eq!(json(folder, &["verify", "a.jsonl", "--json"])["repeated_names"], 1);
    let text = ok(folder, &["inspect", "a.jsonl"]);
    assert!(text.contains("1 of the first 2 records with a repeated name: the last value stands\n"), "{text}");
    assert_eq!(json(folder, &["inspect", "a.jsonl", "--json"])["first"][0]["a"], 2);
}
