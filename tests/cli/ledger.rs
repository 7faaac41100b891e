//! Run logs: `which`, `when`, `audit` and `replay`.

use std::path::Path;

use super::*;

const LOG: &str = "run.ledger";
const CORPUS: &str = "gristmill-demo/corpus.jsonl";

/// Runs the demo with a run log, and resumes it after 3 batches.
fn logged() -> TempDir {
    let (folder, _) = demo();
    let args = ["run", PIPELINE, "--ledger", LOG, "--threads", "2", "--json"];
    json(folder.path(), &[&args[..], &["--steps", "3"]].concat());
    json(folder.path(), &[&args[..], &["--resume"]].concat());
    folder
}

fn segments(found: &Json) -> Vec<Json> {
    let rows = found["rows"].as_array().unwrap();
    rows.iter().flat_map(|row| row["segments"].as_array().unwrap().clone()).collect()
}

#[test]
fn which_and_when_find_the_records_of_a_batch() {
    let folder = logged();
    let folder = folder.path();
    let found = json(folder, &["which", LOG, "--step", "4", "--text", "--json"]);
    assert_eq!((found["step"].as_u64(), found["planned_from"].as_u64()), (Some(4), Some(3)));
    let segments = segments(&found);
    let first = &segments[0];
    assert!(first["file"].as_str().unwrap().ends_with(CORPUS) && first["cells"][0] == 0, "{first}");
    // The bytes of the record are its line.
    let corpus = std::fs::read(folder.join(CORPUS)).unwrap();
    let record = first["record"].as_u64().unwrap() as usize;
    let line = corpus.split_inclusive(|byte| *byte == b'\n').nth(record).unwrap();
    let [start, end] = [0, 1].map(|at| first["bytes"][at].as_u64().unwrap() as usize);
    assert_eq!(&corpus[start..end], line);
    assert_eq!(found["texts"][0][0].as_str().unwrap(), std::str::from_utf8(line).unwrap().trim_end());

    let text = ok(folder, &["which", LOG, "--step", "4", "--row", "2"]);
    assert!(text.trim_start().starts_with("row") && text.contains(CORPUS), "{text}");
    let (code, text) = fails(folder, &["which", LOG, "--step", "4", "--row", "99"]);
    assert!(code == 2 && text.contains("batch 4 has 32 rows, and no row 99"), "{text}");
    assert!(fails(folder, &["which", LOG, "--step", "9999"]).1.contains("the stream ends"));

    let record = record.to_string();
    let seen = json(folder, &["when", LOG, "--file", "corpus.jsonl", "--record", &record, "--json"]);
    let places: Vec<_> = seen["seen"].as_array().unwrap().iter().filter(|seen| seen["step"] == 4).collect();
    assert!(places.iter().any(|place| place["row"] == 0 && place["segment"] == *first), "{seen}");
    write(folder, "ids.txt", &format!("{CORPUS} {record}\n\n{CORPUS}\t0\n"));
    let both = ok(folder, &["when", LOG, "--ids", "ids.txt", "--steps", "0:9"]);
    assert!(both.trim_start().starts_with("step") && both.lines().count() >= 3, "{both}");
    // The output of `which` names records, as a table and as JSON.
    let spike = ["which", LOG, "--step", "4", "--row", "0"];
    let places = |ids: &str| json(folder, &["when", LOG, "--ids", ids, "--json"])["seen"].clone();
    write(folder, "spike.txt", &ok(folder, &spike));
    write(folder, "spike.json", &ok(folder, &[&spike[..], &["--json"]].concat()));
    assert_eq!(places("spike.txt"), places("spike.json"));
    assert!(places("spike.txt").as_array().unwrap().iter().any(|seen| seen["segment"] == *first));
    let (code, text) = fails(folder, &["when", LOG, "--file", "other.jsonl", "--record", "1"]);
    assert!(code == 2 && text.contains("no source of the pipeline has record 1 of other.jsonl"), "{text}");
}

#[test]
fn audit_and_replay_agree_with_the_run_until_a_file_changes() {
    let folder = logged();
    let folder = folder.path();
    let audited = json(folder, &["audit", LOG, "--json"]);
    assert!(audited["batches"].as_u64() > Some(4) && audited["positions"].as_u64() == Some(2), "{audited}");
    assert!(ok(folder, &["audit", LOG]).contains("2 positions"));

    json(folder, &["replay", LOG, "--steps", "2:4", "--out", "again", "--json"]);
    let lineage = std::fs::read_to_string(folder.join("again/lineage.jsonl")).unwrap();
    let lines: Vec<Json> = lineage.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let steps: Vec<_> = lines.iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [2, 3]);
    assert_eq!(lines[1]["rows"], json(folder, &["which", LOG, "--step", "3", "--json"])["rows"]);
    let batch = json(folder, &["inspect", "again", "-n", "1", "--json"]);
    assert_eq!(batch["records"], 2);

    // Another folder has no effect: the log has the folder of the pipeline file.
    let log = folder.join(LOG);
    json(Path::new("/"), &["which", log.to_str().unwrap(), "--step", "0", "--json"]);

    let mut corpus = std::fs::read(folder.join(CORPUS)).unwrap();
    corpus.extend_from_slice(b"{\"text\": \"one more\"}\n");
    std::fs::write(folder.join(CORPUS), corpus).unwrap();
    let (code, text) = fails(folder, &["audit", LOG]);
    assert!(code == 1 && text.contains("has changed since the run") && text.contains("corpus.jsonl"), "{text}");
}

#[test]
fn a_source_without_files_is_searched_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "p.yaml", "source: {range: 40}\nstages:\n  - shuffle: {seed: 1}\n  - batch: 4\n");
    json(folder, &["run", "p.yaml", "--ledger", LOG, "--json", "--inline"]);
    let seen = json(folder, &["when", LOG, "--file", "range", "--record", "7", "--json"]);
    let step = seen["seen"][0]["step"].to_string();
    let found = segments(&json(folder, &["which", LOG, "--step", &step, "--json"]));
    assert!(found.contains(&seen["seen"][0]["segment"]) && found.len() == 4, "{seen}");
}
