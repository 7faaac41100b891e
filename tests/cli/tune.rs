//! `gristmill tune`: the plan keeps to the budget, and `--write` changes the executor and nothing else.
#![cfg(all(feature = "cli", feature = "workers", target_os = "linux"))]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;

const YAML: &str = "\
# numbers
source: {range: 400}
executor:
  threads: 3
stages:
  - shuffle: {seed: 7} # seven
  - batch: {batch_size: 8, remainder: drop}
";
const TOML: &str = "stages = [{ shuffle = 7 }, { batch = 8 }]\n\n[source]\nrange = 400\n";
const JSON: &str = "{\n  \"source\": {\"range\": 400},\n  \"stages\": [{\"shuffle\": 7}, {\"batch\": 8}]\n}\n";

fn gristmill(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gristmill")).current_dir(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hash(folder: &Path, file: &str, args: &[&str]) -> String {
    let output = gristmill(folder, &[&["run", file, "--order-hash"], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

const SHORT: [&str; 5] = ["--ram", "256MiB", "--seconds", "0.4", "--max-threads"];

#[test]
fn what_is_written_runs_and_delivers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (file, old) in [("p.yaml", YAML), ("p.toml", TOML), ("p.json", JSON)] {
        std::fs::write(folder.join(file), old).unwrap();
        let before = hash(folder, file, &["--inline"]);
        let output = gristmill(folder, &[&["tune", file], &SHORT[..], &["2", "--write"]].concat());
        assert!(output.status.success(), "{file}: {}", text(&output.stderr));
        let told = text(&output.stdout);
        for part in ["plan       1 worker of ", "memory     ", "decisions  ", "gain       ", "@@ line ", "\n+ "] {
            assert!(told.contains(part), "{file}: no {part:?} in {told}");
        }
        assert!(told.lines().all(|line| line.chars().count() <= 100), "{told}");
        let new = std::fs::read_to_string(folder.join(file)).unwrap();
        let about =
            |line: &&str| ["executor", "threads", "workers", "ram_budget", "buffer"].iter().any(|w| line.contains(w));
        let rest =
            |text: &str| text.lines().filter(|l| !about(l) && !l.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rest(&new), rest(old), "{file}: {new}");
        assert!(new.contains("workers") && new.contains("MiB") && !new.contains("threads: 3"), "{file}: {new}");
        assert_eq!(hash(folder, file, &[]), before, "{file}: {new}");
        let again = gristmill(folder, &["explain", file, "--json"]);
        assert!(again.status.success(), "{}", text(&again.stderr));
    }
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.ends_with(".new")), "nothing is left beside the files");
}

#[test]
fn the_plan_is_told_as_json_and_the_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("p.yaml"), YAML).unwrap();
    let output = gristmill(folder, &[&["tune", "p.yaml"], &SHORT[..], &["1", "--json", "--step-ms", "1"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: Json = serde_json::from_slice(&output.stdout).unwrap();
    let plan = |key: &str| told["plan"][key].as_u64().unwrap_or_else(|| panic!("{key} in {told}"));
    assert_eq!((plan("workers"), plan("threads_per_worker"), plan("batch_bytes")), (1, 1, 64));
    let ready = plan("batch_bytes") * (plan("buffer") + 2);
    assert!(
        plan("ram_budget") + ready <= 256 << 20 && plan("slab_bytes") + plan("worker_heap_bytes") <= plan("ram_budget")
    );
    assert!(told["plan"]["chosen"]["batches_per_s"].as_f64().unwrap() > 0.0 && told["written"] == false);
    assert!(told["executor"].as_str().unwrap().starts_with("executor: {workers: 1, threads_per_worker: 1, "), "{told}");
    assert_eq!(std::fs::read_to_string(folder.join("p.yaml")).unwrap(), YAML);
}

#[test]
fn what_cannot_be_tuned_exits_with_2_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("p.yaml"), YAML).unwrap();
    let output = gristmill(folder, &["tune", "p.yaml", "--ram", "10MiB", "--seconds", "0.1", "--write"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("ram_budget is 10 MiB; 1 x ("), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(folder.join("p.yaml")).unwrap(), YAML);
    std::fs::write(folder.join("q.yaml"), "{source: {range: 400}, stages: [batch: 8]}").unwrap();
    let output = gristmill(folder, &["tune", "q.yaml", "--ram", "256MiB", "--seconds", "0.1", "--write"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("write it yourself: executor: {workers: 1,"), "{}", text(&output.stderr));
    for bad in [&["--ram", "much"][..], &["--seconds", "0"], &["--step-ms", "x"], &["absent.yaml"]] {
        assert_eq!(gristmill(folder, &[&["tune", "p.yaml"], bad].concat()).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
fn a_page_draws_what_was_chosen_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("<p>.yaml"), YAML).unwrap();
    let output = gristmill(folder, &[&["tune", "<p>.yaml"], &SHORT[..], &["2", "--html", "plan.html"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.join("plan.html")).unwrap();
    for word in ["1 worker with ", "Gain", "Where memory goes", "heaps of workers", "&lt;p&gt;.yaml"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    assert!(!page.contains("<p>.yaml") && !page.contains("://") && !page.contains("NaN"), "{page}");
}
