//! `gristmill bench`: rows, hashes, failing points and exports. Nothing here depends on how fast the machine is.
#![cfg(feature = "cli")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

const PIPELINE: &str = "\
source: {range: 400}
stages:
  - shuffle: {seed: 7}
  - to_iter
  - batch: {batch_size: 8, remainder: drop}
";

fn gristmill(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gristmill")).current_dir(folder).args(args).output().unwrap()
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.yaml"), PIPELINE).unwrap();
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What `bench p.yaml ARGS --json` prints; it must succeed.
fn bench(folder: &Path, args: &[&str]) -> Json {
    let output = gristmill(folder, &[&["bench", "p.yaml", "--json"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn rows_of_one_pipeline_have_the_hash_of_a_plain_run() {
    let folder = folder();
    let folder = folder.path();
    let args =
        ["--warmup", "3", "--steps", "10", "--runs", "2", "--sweep", "inline=true,false", "--sweep", "batch=8,4"];
    let result = bench(folder, &args);
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let figures = &row["figures"];
        assert_eq!((figures["batches"].as_u64(), figures["runs"].as_array().unwrap().len()), (Some(13), 2));
        let batch = row["settings"]["batch"].as_str().unwrap();
        std::fs::write(folder.join("plain.yaml"), PIPELINE.replace("batch_size: 8", &format!("batch_size: {batch}")))
            .unwrap();
        let plain = gristmill(folder, &["run", "plain.yaml", "--inline", "--steps", "13", "--order-hash"]);
        assert_eq!(figures["order_hash"].as_str(), Some(text(&plain.stdout).trim()), "{row}");
        for run in figures["runs"].as_array().unwrap() {
            // A run goes on until it has seen as much time as the first batch took.
            let steps = run["next_s"].as_array().unwrap().len() as u64;
            assert!((10..=400).contains(&steps), "{run}");
            assert_eq!(run["bytes"].as_u64(), Some(steps * 8 * batch.parse::<u64>().unwrap()));
        }
        let ms = |key: &str| figures["next_ms"][key].as_f64().unwrap();
        assert!(ms("min") <= ms("p50") && ms("p50") <= ms("p99") && ms("p99") <= ms("max"), "{figures}");
        assert!(figures["batches_per_s"]["mean"].as_f64().unwrap() > 0.0 && figures["accelerator"].is_null());
    }
}

#[test]
fn the_row_digest_is_that_of_a_run_and_adds_up_over_parts() {
    let folder = folder();
    let folder = folder.path();
    let write = |name: &str, printed: &Output| {
        assert!(printed.status.success(), "{}", text(&printed.stderr));
        std::fs::write(folder.join(name), &printed.stdout).unwrap();
    };
    let sizes = ["bench", "p.yaml", "--inline", "--warmup", "3", "--steps", "10", "--runs", "1"];
    let with = |args: &[&str]| gristmill(folder, &[&sizes[..], args].concat());
    write("run.json", &gristmill(folder, &["run", "p.yaml", "--inline", "--steps", "13", "--json"]));
    write("bench.json", &with(&["--json", "--sweep", "buffer=1,2", "-o", "file.json"]));
    write("parts.json", &with(&["--json", "--sweep", "part=0/4,1/4,2/4,3/4", "--sweep", "buffer=1,2"]));
    write("first.json", &with(&["--json", "--part", "0/2"]));
    write("second.json", &with(&["--json", "--part", "1/2"]));
    for same in [&["bench.json"][..], &["file.json"], &["parts.json"], &["first.json", "second.json"]] {
        let output = gristmill(folder, &[&["hash", "--same-as", "run.json", "--json"], same].concat());
        assert!(output.status.success(), "{same:?}: {}", text(&output.stderr));
        assert_eq!(serde_json::from_slice::<Json>(&output.stdout).unwrap()["count"].as_u64(), Some(104), "{same:?}");
    }
    let shown = text(&with(&["--part", "1/2"]).stdout);
    assert!(shown.contains("row digest ") && shown.contains("(52 rows, part 1/2)"), "{shown}");
    write("sizes.json", &with(&["--json", "--sweep", "batch=8,4"]));
    let output = gristmill(folder, &["hash", "sizes.json"]);
    let told = text(&output.stderr);
    assert!(told.contains("sizes.json: digests of several pipelines do not add up: batch=4; batch=8"), "{told}");
}

#[test]
#[cfg(all(feature = "workers", target_os = "linux"))]
fn workers_and_threads_deliver_the_same() {
    let folder = folder();
    let args = ["--warmup", "0", "--steps", "50", "--runs", "1", "--sweep", "workers=0,1,2", "--ram", "256MiB"];
    let result = bench(folder.path(), &args);
    let rows = result["rows"].as_array().unwrap();
    let hashes: Vec<_> = rows.iter().map(|row| row["figures"]["order_hash"].as_str().unwrap()).collect();
    assert_eq!(hashes.len(), 3);
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    assert!(rows[2]["figures"]["executor"].as_str().unwrap().starts_with("2 workers"), "{result}");
    let threads =
        bench(folder.path(), &["--warmup", "0", "--steps", "50", "--runs", "1", "--sweep", "threads=1,3,auto"]);
    let rows = threads["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["figures"]["order_hash"].as_str() == Some(hashes[0])), "{threads}");
    assert_eq!(rows[2]["figures"]["executor"].as_str(), Some("threads, tuned automatically"));
}

#[test]
fn a_point_that_fails_is_a_row_and_the_sweep_goes_on() {
    let folder = folder();
    let folder = folder.path();
    let args = ["--warmup", "1", "--steps", "2", "--runs", "1", "--inline", "--sweep", "batch_size=0,two,8"];
    let result = bench(folder, &args);
    let rows = result["rows"].as_array().unwrap();
    let message = |i: usize| rows[i]["error"]["message"].as_str().unwrap();
    assert!(message(0).contains("p.yaml: line 5: the batch size is 0"), "{}", message(0));
    assert!(message(1).contains("needs a whole number"), "{}", message(1));
    assert!(rows[2]["error"].is_null() && rows[2]["figures"].is_object());
    // Without any row that works nothing was measured.
    let output = gristmill(folder, &["bench", "p.yaml", "--inline", "--sweep", "batch_size=0", "--steps", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("the batch size is 0") && output.stdout.is_empty());
    let output = gristmill(folder, &["bench", "p.yaml", "--inline", "--sweep", "batch_size=0,two"]);
    assert!(text(&output.stderr).contains("no point of the sweep could be measured"));
    assert!(text(&output.stdout).contains("✗ batch_size=0") && !text(&output.stdout).contains("batches/s"));
    let output = gristmill(folder, &["bench", "p.yaml", "--inline", "--sweep", "bach_size=1,2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `batch_size`?"), "{}", text(&output.stderr));
    let output = gristmill(folder, &["bench", "p.yaml", "--inline", "--warmup", "50"]);
    assert!(text(&output.stderr).contains("ends after 50 batches, within the warm-up of 50"));
    for bad in [&["--sweep", "batch"][..], &["--step-ms", "x"], &["-o", "x.txt"], &["--runs", "0"]] {
        assert_eq!(gristmill(folder, &[&["bench", "p.yaml"], bad].concat()).status.code(), Some(2), "{bad:?}");
    }
}

#[test]
#[cfg(all(feature = "workers", target_os = "linux"))]
fn a_budget_that_is_too_small_is_a_row_with_the_arithmetic() {
    let folder = folder();
    let args = ["--warmup", "0", "--steps", "2", "--runs", "1", "--sweep", "ram=10MiB,256MiB"];
    let result = bench(folder.path(), &args);
    let message = result["rows"][0]["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("ram_budget is 10 MiB; 1 x (64 MiB of heap"), "{message}");
    assert!(result["rows"][1]["figures"].is_object());
}

#[test]
fn a_step_gives_utilisation_and_the_headroom() {
    let folder = folder();
    let args = ["--warmup", "0", "--steps", "5", "--runs", "2", "--inline", "--step-ms", "1", "--headroom"];
    let result = bench(folder.path(), &args);
    let figures = &result["rows"][0]["figures"];
    let share = |key: &str| figures["accelerator"][key].as_f64().unwrap();
    assert!(share("utilisation") > 0.0 && share("utilisation") <= 1.0, "{figures}");
    assert!(share("stall") >= 0.0 && share("utilisation") + share("stall") <= 1.0 + 1e-9, "{figures}");
    assert!(figures["headroom_batches_per_s"].as_f64().unwrap() > 0.0, "{figures}");
    #[cfg(target_os = "linux")]
    assert!(figures["others_cpu_share"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{figures}");
}

#[test]
fn an_emulated_accelerator_says_whether_it_waits() {
    let folder = folder();
    let folder = folder.path();
    let args = ["--consumer", "emulated", "--step-time", "2ms", "--exclude-first", "1", "--steps", "6", "--runs", "2"];
    let result = bench(folder, &args);
    assert_eq!((&result["consumer"], &result["step_ms"]), (&Json::from("emulated"), &Json::from(2.0)));
    let metrics = &result["rows"][0]["figures"]["accelerator"];
    let figure = |key: &str| metrics[key].as_f64().unwrap_or_else(|| panic!("{key}: {metrics}"));
    assert_eq!(figure("steps"), 6.0);
    assert!(figure("step_ms") >= 2.0 && figure("samples_per_s") > figure("steps_per_s"), "{metrics}");
    assert!(figure("next_over_1_ms") <= figure("next_over_50_us"), "{metrics}");
    assert!(metrics["input_bound"].as_str().is_some_and(|class| ["not", "moderately", "highly"].contains(&class)));
    assert_eq!(result["rows"][0]["figures"]["runs"][1]["accelerator"]["steps"], 6);

    let output = gristmill(folder, &[&["bench", "p.yaml", "--headroom", "--inline"], &args[..]].concat());
    let told = text(&output.stdout);
    for word in ["AU", "stall", "input-bound", "samples/s", "relative speed", "VERDICT  the "] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(told.lines().all(|line| line.chars().count() <= 100), "{told}");
}

#[test]
fn a_consumer_that_cannot_be_is_refused_before_anything_runs() {
    let folder = folder();
    let told = |args: &[&str]| {
        let output = gristmill(folder.path(), &[&["bench", "absent.yaml"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr)
    };
    assert!(told(&["--consumer", "emulated"]).contains("--step-time 5ms"));
    assert!(told(&["--consumer", "tpu"]).contains("pjrt: and the path of a plugin"));
    assert!(told(&["--step-time", "5min"]).contains("the units are us, ms and s"));
    let told = told(&["--consumer", "pjrt:/absent.so"]);
    let why = if cfg!(feature = "pjrt") { "No such file" } else { "build with `--features pjrt`" };
    assert!(told.contains("/absent.so") && told.contains(why), "{told}");
}

#[test]
#[cfg(feature = "pjrt")]
fn a_device_takes_the_batches() {
    let Some(paths) = std::env::var_os("GRISTMILL_PJRT_PLUGIN") else {
        eprintln!("skipped: GRISTMILL_PJRT_PLUGIN names no plugin");
        return;
    };
    let folder = folder();
    for path in std::env::split_paths(&paths) {
        let consumer = format!("pjrt:{}", path.display());
        let hash = |args: &[&str]| {
            let result = bench(folder.path(), &[&["--warmup", "1", "--steps", "20", "--runs", "1"], args].concat());
            let figures = &result["rows"][0]["figures"];
            (figures["order_hash"].clone(), figures["accelerator"].clone())
        };
        let (sent, transfers) = hash(&["--consumer", &consumer]);
        assert_eq!(transfers["steps"], 20);
        let (also_sent, steps) = hash(&["--consumer", &consumer, "--step-time", "2ms"]);
        // By the clock of the device, so exactly that, on however busy a machine.
        assert!(steps["step_ms"].as_f64().is_some_and(|ms| (ms - 2.0).abs() < 1e-6), "{steps}");
        assert_eq!([&sent, &also_sent], [&hash(&[]).0; 2]);
    }
}

#[test]
fn exports_hold_every_row() {
    let folder = folder();
    let folder = folder.path();
    let args = ["bench", "p.yaml", "--inline", "--warmup", "1", "--steps", "4", "--runs", "2"];
    let sweep = ["--sweep", "buffer=1,2", "--sweep", "batch_size=0,8", "-o", "x.csv", "-o", "x.json", "-o", "x.md"];
    let output = gristmill(folder, &[&args[..], &sweep].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in text(&output.stdout).lines().chain(text(&output.stderr).lines()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let csv = read("x.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(
        lines[0].starts_with("buffer,batch_size,executor,runs,") && lines[0].ends_with(",order_hash,row_digest,error")
    );
    assert_eq!(lines.len(), 5);
    let columns = lines[0].split(',').count();
    assert_eq!(lines[2].split(',').count(), columns, "{csv}");
    assert!(lines[2].starts_with("1,8,inline,2,5,"), "{csv}");
    let json: Json = serde_json::from_str(&read("x.json")).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 4);
    assert!(lines[4].contains(json["rows"][3]["figures"]["order_hash"].as_str().unwrap()), "{csv}");
    let markdown = read("x.md");
    let table: Vec<_> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(table.len(), 2 + 4);
    assert!(table.iter().all(|line| line.matches('|').count() == table[0].matches('|').count()), "{markdown}");
    assert!(markdown.contains("buffer=1 batch_size=0 failed: "), "{markdown}");
}

#[test]
fn a_later_measurement_stands_beside_an_earlier_one() {
    let folder = folder();
    let folder = folder.path();
    let sizes = ["--warmup", "1", "--steps", "5", "--runs", "2", "--inline"];
    bench(folder, &[&sizes[..], &["--sweep", "batch=8,4", "-o", "before.json"]].concat());
    let before = std::fs::read_to_string(folder.join("before.json")).unwrap();

    let args = [&sizes[..], &["--sweep", "batch=4,2", "--baseline", "before.json", "-o", "after.csv"]].concat();
    let after = bench(folder, &args);
    let (compared, new) = (&after["rows"][0]["baseline"], &after["rows"][1]["baseline"]);
    let earlier: Json = serde_json::from_str(&before).unwrap();
    let was = &earlier["rows"][1]["figures"]["batches_per_s"]["mean"];
    assert_eq!((&compared["batches_per_s"], &compared["same_batches"]), (was, &Json::from(true)));
    let is = after["rows"][0]["figures"]["batches_per_s"]["mean"].as_f64().unwrap();
    let change = compared["change"].as_f64().unwrap();
    assert!((change - (is / was.as_f64().unwrap() - 1.0)).abs() < 1e-9, "{compared}");
    assert!(compared["beyond_noise"].is_boolean() && new.is_null(), "{after}");
    let warnings = after["warnings"].to_string();
    assert!(warnings.contains("batch=2: before.json has no figures for these settings"), "{warnings}");
    let csv = std::fs::read_to_string(folder.join("after.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains(",baseline_change,baseline_beyond_noise,order_hash"), "{csv}");

    // Ten times as fast as it was, and other batches.
    let mut faked = earlier;
    let figures = &mut faked["rows"][1]["figures"];
    figures["batches_per_s"]["mean"] = Json::from(is / 10.0);
    figures["batches_per_s"]["std_dev"] = Json::from(0.0);
    figures["order_hash"] = Json::from("0");
    std::fs::write(folder.join("faked.json"), faked.to_string()).unwrap();
    let args = [&["bench", "p.yaml"], &sizes[..], &["--sweep", "batch=4", "--baseline", "faked.json"]].concat();
    let output = gristmill(folder, &args);
    assert!(output.status.success());
    let (table, warnings) = (text(&output.stdout), text(&output.stderr));
    assert!(table.contains("baseline") && table.contains(" %"), "{table}");
    assert!(warnings.contains("faked.json has another order hash"), "{warnings}");

    std::fs::write(folder.join("other.json"), "{\"rows\": 3}").unwrap();
    let output = gristmill(folder, &["bench", "p.yaml", "--baseline", "other.json"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("other.json: this is no measurement") && told.contains("--output FILE.json"), "{told}");
}

#[test]
fn a_page_draws_the_rows_beside_earlier_ones() {
    let folder = folder();
    let folder = folder.path();
    let sizes = ["--warmup", "1", "--steps", "6", "--runs", "2", "--inline"];
    for file in ["first.json", "<second>.json"] {
        bench(folder, &[&sizes[..], &["--sweep", "batch=8,4", "-o", file]].concat());
    }
    let both = ["--baseline", "first.json", "--baseline", "<second>.json", "--html", "rows.html"];
    let sweep = ["--sweep", "batch=8,4,no"];
    let output = gristmill(folder, &[&["bench", "p.yaml"], &sizes[..], &sweep, &both].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the page is in rows.html"), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.join("rows.html")).unwrap();
    for word in [
        "batch=8",
        "batch=4",
        "Batches per second",
        "How long next() took",
        "Time in next() at each step",
        "Peak memory",
    ] {
        assert!(page.contains(word), "{word}: {page}");
    }
    // Both earlier ones are named, the last is compared with, and no name is markup.
    assert!(page.contains("first, &lt;second&gt;") && page.contains(" against &lt;second&gt;"), "{page}");
    assert!(!page.contains("<second>") && page.contains("failed: "), "{page}");
    // A bar of each measurement for each row that both have.
    let section = page.split("<h2>Batches per second</h2>").nth(1).unwrap().split("</section>").next().unwrap();
    assert_eq!(
        (section.matches("<path class=\"start\"").count(), section.matches("<path class=\"reader\"").count()),
        (4, 2)
    );
    assert!(page.len() < 256 << 10 && !page.contains("://") && !page.contains("NaN"), "{} bytes", page.len());
    let refused = gristmill(folder, &["bench", "p.yaml", "--html", "nowhere/rows.html"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// The processes that a process has started.
#[cfg(target_os = "linux")]
fn children(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_point_whose_process_dies_is_a_row_and_the_others_are_measured() {
    let folder = folder();
    let folder = folder.path();
    // The first point does not end by itself.
    let pipeline = "source: {range: 4}\nstages:\n  - repeat: {num_epochs: 1}\n  - to_iter\n  - batch: 2\n";
    std::fs::write(folder.join("p.yaml"), pipeline).unwrap();
    let args = ["--warmup", "0", "--steps", "1000000000", "--runs", "1", "--inline", "-o", "rows.csv"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gristmill"));
    command.current_dir(folder).args(["bench", "p.yaml", "--sweep", "num_epochs=1000000000,1"]).args(args);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let point = loop {
        match children(child.id())[..] {
            [point, ..] => break point,
            // Until the process of the first point is there.
            [] => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    assert!(std::process::Command::new("kill").args(["-KILL", &point.to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.contains("✗ num_epochs=1000000000: its process died: signal: 9"), "{table}");
    let rows = std::fs::read_to_string(folder.join("rows.csv")).unwrap();
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[1].contains("its process died") && rows[2].starts_with("1,inline,"), "{rows:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_measured() {
    let folder = folder();
    let folder = folder.path();
    let output = gristmill(folder, &["bench", "p.yaml", "--inline", "-o", "none/rows.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("none/") && !text(&output.stderr).contains("run 1"),
        "{}",
        text(&output.stderr)
    );
    let output = gristmill(folder, &["bench", "p.yaml", "--inline", "--step-time", "5"]);
    assert!(text(&output.stderr).contains("it needs a unit, such as 5ms"), "{}", text(&output.stderr));
    let drop = "source: {range: 4}\nstages: [to_iter, batch: {batch_size: 8, remainder: drop}]\n";
    std::fs::write(folder.join("drop.yaml"), drop).unwrap();
    let output = gristmill(folder, &["bench", "drop.yaml", "--inline", "--warmup", "0"]);
    assert!(text(&output.stderr).contains("the pipeline yields no batch"), "{}", text(&output.stderr));
}
