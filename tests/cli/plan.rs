//! `gristmill plan`: its figures are the figures of the run, and conditions decide its exit code.

use super::{PIPELINE, demo, fails, gristmill, json, ok, stderr, stdout, write};

#[test]
fn a_plan_counts_the_tokens_of_the_run() {
    let (folder, _) = demo();
    let folder = folder.path();
    let run = json(folder, &["run", PIPELINE, "--inline", "--steps", "12", "--json"]);
    let plan = json(folder, &["plan", PIPELINE, "--batches", "12", "--parts", "2", "--json"]);
    assert_eq!((&plan["batches"], &plan["tokens"]), (&run["batches"], &run["tokens"]));
    assert_eq!(plan["sources"][0]["tokens"], plan["tokens"]);
    assert!(plan["straggler"]["even"].as_f64() >= plan["straggler"]["balanced"].as_f64(), "{plan}");
    assert!(plan["keys_computed"].as_array().is_some_and(|made| made.len() == 1), "{plan}");
    // Keys from a file give equal figures.
    ok(folder, &["index", "--keys", PIPELINE]);
    let with_file = json(folder, &["plan", PIPELINE, "--batches", "12", "--parts", "2", "--json"]);
    assert_eq!(with_file["keys_computed"].as_array().map(Vec::len), Some(0));
    assert_eq!((&with_file["tokens"], &with_file["sources"]), (&plan["tokens"], &plan["sources"]));
}

#[test]
fn a_condition_that_is_met_is_exit_code_1() {
    let (folder, _) = demo();
    let folder = folder.path();
    let plan = ["plan", PIPELINE, "--batches", "3"];
    let text = ok(folder, &[&plan[..], &["--fail-if", "epochs > 4", "--fail-if", "padding > 90%"]].concat());
    assert!(text.contains("of documents") && text.contains("jsonl") && text.contains("longest run"), "{text}");
    let output = gristmill(folder, &[&plan[..], &["--fail-if", "batches >= 3"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains("failed: batches is 3"), "{}", stderr(&output));
    let (code, said) = fails(folder, &[&plan[..], &["--fail-if", "batch > 3"]].concat());
    assert!(code == 2 && said.contains("did you mean `batches`?"), "{said}");
    let two = json(folder, &["plan", PIPELINE, PIPELINE, "--batches", "3", "--sample", "50%", "--json"]);
    assert_eq!(two["plans"].as_array().map(Vec::len), Some(2));
    ok(folder, &[&plan[..], &["--html", "plan.html"]].concat());
    assert!(std::fs::read_to_string(folder.join("plan.html")).unwrap().contains("What this run will see"));
}

#[test]
fn a_pipeline_without_a_plan_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "p.yaml", "source: {range: 40}\nstages: [to_iter]\n");
    let (code, said) = fails(folder.path(), &["plan", "p.yaml"]);
    assert!(code == 2 && said.contains("does not end in `batch`") && said.contains("help:"), "{said}");
    write(folder.path(), "p.yaml", "source: {range: 40}\nstages: [to_iter, batch: {batch_size: 8}]\n");
    let plan = json(folder.path(), &["plan", "p.yaml", "--json"]);
    assert_eq!(
        (plan["batches"].as_u64(), plan["documents"].as_u64(), plan["tokens"].as_u64()),
        (Some(5), Some(40), None)
    );
}
