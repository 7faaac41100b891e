//! Bad rows and shards: an error that names the place and the remedy, or left out, counted and named.

use std::path::Path;

use serde_json::Value as Json;

use super::{fails, gristmill, json, ok, on_one_line, stderr, write};

/// Three shards of text, the second of which has a damaged row, and the third one that has no text.
fn corpus(folder: &Path) {
    let lines = |shard: usize| -> String { (0..5).map(|i| format!("{{\"text\":\"{shard}-{i}\"}}\n")).collect() };
    write(folder, "in/a.jsonl", &lines(0));
    write(folder, "in/b.jsonl", &lines(1).replace("\"1-2\"}", "\"1-2"));
    write(folder, "in/c.jsonl", &lines(2).replace("\"2-3\"", "5"));
}

fn texts(folder: &Path) -> Vec<String> {
    let mut shards: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    shards.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    shards.sort();
    let lines = shards.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect::<String>();
    lines.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["text"].to_string()).collect()
}

#[test]
fn rows_that_cannot_be_read_are_left_out_of_what_convert_writes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("in")).unwrap();
    corpus(folder);
    let convert = ["convert", "in", "--to", "jsonl", "--out"];
    let (code, text) = fails(folder, &[&convert[..], &["a"]].concat());
    let text = on_one_line(&text);
    assert!(code == 1 && text.contains("in/b.jsonl: line 3: "), "{text}");
    assert!(text.contains("help: skip damaged records by `--on-bad-record skip`"), "{text}");
    let skip = [&convert[..], &["b", "--on-bad-record", "skip", "--json"]].concat();
    let output = gristmill(folder, &skip);
    assert!(output.status.success());
    assert!(
        on_one_line(&stderr(&output))
            .contains("warning: bad record skipped: stage 0 jsonl: element 7: in/b.jsonl: line 3")
    );
    let written: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&written["report"]["records"], &written["skipped"]["records"]), (&Json::from(14), &Json::from(1)));
    assert_eq!(texts(&folder.join("b")).len(), 14);
    // A run that ended at a bad row goes on behind it under another policy.
    let shards = ["a", "--shard-records", "3", "--resume"];
    std::fs::remove_dir_all(folder.join("a")).unwrap();
    assert_eq!(fails(folder, &[&convert[..], &shards].concat()).0, 1);
    ok(folder, &[&convert[..], &shards, &["--on-bad-record", "skip"]].concat());
    assert_eq!(texts(&folder.join("a")), texts(&folder.join("b")));
    let (code, text) =
        fails(folder, &[&convert[..], &["c", "--on-bad-record", "skip", "--bad-record-limit", "0"]].concat());
    assert!(
        code == 1 && on_one_line(&text).contains("0 bad records were skipped before it, which is the limit"),
        "{text}"
    );
    let (code, text) = fails(folder, &[&convert[..], &["c", "--bad-record-limit", "3"]].concat());
    assert!(code == 2 && text.contains("--on-bad-record skip"), "{text}");
}

#[test]
fn rows_without_text_are_left_out_of_what_tokenise_writes() {
    let (folder, _) = super::demo();
    let folder = folder.path();
    std::fs::create_dir(folder.join("in")).unwrap();
    corpus(folder);
    std::fs::remove_file(folder.join("in/b.jsonl")).unwrap();
    let tokenise = ["tokenise", "in", "--tokenizer", "gristmill-demo/demo.tokenizer.json", "--out"];
    let (code, text) = fails(folder, &[&tokenise[..], &["a"]].concat());
    let text = on_one_line(&text);
    assert!(code == 1 && text.contains("stage 2 tokenise: element 8: in/c.jsonl:4: column \"text\""), "{text}");
    assert!(text.contains("`--on-bad-record skip`"), "{text}");
    let written = json(folder, &[&tokenise[..], &["b", "--on-bad-record", "skip", "--json"]].concat());
    assert_eq!((&written["report"]["records"], &written["skipped"]["records"]), (&Json::from(9), &Json::from(1)));
}

#[cfg(feature = "parquet")]
#[test]
fn shards_that_cannot_be_opened_are_left_out_whole() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("in")).unwrap();
    corpus(folder);
    ok(folder, &["convert", "in/a.jsonl", "--to", "parquet", "--shard-records", "2", "--out", "p"]);
    std::fs::remove_file(folder.join("p/manifest.json")).unwrap();
    let first = folder.join("p/shard-00000.parquet");
    let bytes = std::fs::read(&first).unwrap();
    std::fs::write(&first, &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(folder.join("p/shard-00001.parquet"), b"").unwrap();
    let skip = ["--on-bad-record", "skip"];
    let convert = ["convert", "p", "--to", "jsonl", "--out"];
    let (code, text) = fails(folder, &[&convert[..], &["a"]].concat());
    assert!(code == 1 && on_one_line(&text).contains("`--on-bad-record skip`"), "{text}");
    let written = json(folder, &[&convert[..], &["b"], &skip, &["--json"]].concat());
    let shards = written["skipped"]["shards"].as_array().unwrap();
    assert_eq!((&written["report"]["records"], shards.len()), (&Json::from(1), 2));
    assert!(shards[0].as_str().unwrap().starts_with("p/shard-00000.parquet: "), "{written}");
    assert_eq!(texts(&folder.join("b")), ["\"0-4\""]);
    let (code, text) = fails(folder, &[&convert[..], &["c"], &skip, &["--bad-record-limit", "1"]].concat());
    assert!(
        code == 1 && on_one_line(&text).contains("1 bad shards were skipped before it, which is the limit"),
        "{text}"
    );
    let indexed = json(folder, &[&["index", "p", "--json"], &skip[..]].concat());
    assert_eq!((indexed["files"].as_array().unwrap().len(), indexed["skipped"].as_array().unwrap().len()), (1, 2));

    // A pipeline file has the policy in `to_iter`; its state is that of the shards that were read.
    write(
        folder,
        "p.yaml",
        "source: {parquet: p}\nstages: [to_iter: {on_bad_record: skip}]\ncheckpoint: {folder: state}\n",
    );
    let run = json(folder, &["run", "p.yaml", "--steps", "1", "--json"]);
    assert_eq!(run["batches"], 1);
    let notes = run["report"]["notes"].as_array().unwrap();
    assert!(notes.contains(&serde_json::json!(["bad shards skipped", 2])), "{notes:?}");
    ok(folder, &["run", "p.yaml", "--resume"]);
    std::fs::write(&first, &bytes).unwrap();
    let (code, text) = fails(folder, &["run", "p.yaml", "--resume"]);
    assert!(code == 1 && text.contains("stage 0"), "{text}");
}
