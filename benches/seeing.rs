//! Cost of observing a run: the page of an hour, and recordings and traces during a run.
//!
//! `cargo bench -p benches --bench seeing --features compress [-- NAME …]`. The page is measured in wall time, median
//! of nine. Recordings and traces are measured in CPU time of all threads, by pairs of runs with and without them.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill::dataset::map::Range;
use gristmill::{Error, Executor, IterDataset, Load, LoaderBuilder, MapDatasetExt, Report, Result};
use serde_json::json;

#[path = "support/median.rs"]
mod median;
#[allow(dead_code, reason = "what it says of pairs is not what other benches ask")]
#[path = "support/pairs.rs"]
mod pairs;
#[path = "support/wanted.rs"]
mod wanted;

use median::seconds;
use pairs::pairs;
use wanted::wanted;

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    if wanted("page") {
        page(&folder.path().join("hour.gmr"))?;
    }
    for what in ["record", "trace"] {
        if wanted(what) {
            beside(what, &folder.path().join(what))?;
        }
    }
    Ok(())
}

/// Elements that take about 60 µs of CPU time each.
fn pipeline() -> impl IterDataset<Item = Vec<i64>> + use<> {
    let work = |x: i64| (0..40_000_i64).fold(x, |sum, i| black_box(sum ^ i));
    Range::new(0, i64::MAX).shuffle(7).map(work).to_iter().batch(16)
}

fn loader() -> LoaderBuilder<impl IterDataset<Item = Vec<i64>>> {
    pipeline().loader().executor(Executor::Threads(1))
}

/// Seconds of an hour of stretches. The last minute is recorded batch by batch.
const HOUR: u64 = 3600;

/// Reads and draws a recording of an hour with 60 batches of 4 chunks per second, 64 threads and 20 stages.
fn page(file: &Path) -> Result<()> {
    write_hour(file)?;
    let clock = Instant::now();
    let now = || clock.elapsed();
    let mut report = Report::from_record(file)?;
    let read = seconds(9, now, || report = Report::from_record(file).expect("what was written here"));
    let mut html = String::new();
    let drawn = seconds(9, now, || html = report.to_html());
    let mut picture = String::new();
    let ribbon = seconds(9, now, || picture = report.to_svg());
    println!(
        "page of an hour: {:.1} ms, {:.0} KiB; ribbon alone {:.1} ms, {:.0} KiB; reading the recording {:.0} ms",
        1e3 * drawn,
        html.len() as f64 / 1024.0,
        1e3 * ribbon,
        picture.len() as f64 / 1024.0,
        1e3 * read
    );
    Ok(())
}

fn write_hour(file: &Path) -> Result<()> {
    let mut loader = loader().build()?;
    loader.by_ref().take(64).for_each(|batch| drop(batch.expect("numbers")));
    let mut report = serde_json::to_value(loader.report()).expect("a report is JSON");
    let stage = report["stages"][2].clone();
    report["stages"] = (0..20)
        .map(|id| {
            let mut stage = stage.clone();
            (stage["id"], stage["self_s"]) = (json!(id), json!(1000.0 + f64::from(id)));
            stage
        })
        .collect();
    (report["wall_s"], report["threads"], report["buffer_fill"]) = (json!(HOUR), json!(64), json!(0.5));
    let wait = |at: u64| {
        json!({"batch": 60 * at, "at_s": at, "wait_s": 0.2, "cause": "head_of_line", "border": 3, "stage": 2, "element": 4 * at, "elements": 1,
            "took_s": 0.3, "largest": null, "record": format!("/data/corpus/part-{at:05}.jsonl:{at}"), "record_bytes": 9_000_000})
    };
    let waits: Vec<_> = (0..64).map(|number| wait(56 * number)).collect();
    let picture = json!({"waits": waits, "next": [[1000, 200_000], [1_000_000, 16_000]], "capacity": 16});
    let mut text = json!({"gristmill_record": 1, "version": "0", "pid": 1, "began": 0}).to_string() + "\n";
    for second in 0..HOUR {
        let (batches, chunks) = if second + 68 < HOUR { Default::default() } else { one_by_one(second) };
        let stretches: Vec<_> = (0..10).map(|tenth| stretch(10 * second + tenth)).collect();
        let look = json!({"batches": batches, "chunks": chunks, "stretches": stretches, "report": report, "picture": picture, "end": second + 1 == HOUR});
        let _ = writeln!(text, "{look}");
    }
    std::fs::write(file, text).map_err(|e| Error::io(e, file))
}

/// Returns a number that looks random.
fn draw(seed: u64, below: u64) -> u64 {
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % below
}

const MS: u64 = 1_000_000;

fn stretch(tenth: u64) -> serde_json::Value {
    let work: Vec<f64> = (0..20).map(|stage| draw(20 * tenth + stage, 100) as f64 / 100.0).collect();
    let heaps = (2 << 30) + draw(tenth, 1 << 30);
    json!({"from": 100 * MS * tenth, "to": 100 * MS * (tenth + 1), "shares": {"head_of_line": draw(tenth, 30) * MS, "evaluation": draw(tenth + 1, 30) * MS,
        "queue": draw(tenth + 2, 9) * MS, "reader": draw(tenth + 3, 9) * MS}, "elements": 6, "work": work, "ready": draw(tenth, 90), "looks": 6,
        "fill": [draw(tenth, 3), 1, 1, 1, draw(tenth, 9), 0, 0, 0, 0, 0], "memory": (1u64 << 30) + tenth,
        "workers": {"heaps": heaps, "shared": 1 << 29, "budget": 4_u64 << 30}})
}

/// Returns the batches and chunks of a second.
fn one_by_one(second: u64) -> (Vec<serde_json::Value>, Vec<serde_json::Value>) {
    let each = 1_000 * MS / 60;
    let batch = |number: u64| {
        let (asked, wait) = (number * each, draw(number, 12) * MS);
        json!({"first": number, "count": 1, "ready": draw(number, 17), "asked": asked, "given": asked + wait, "made": [asked.saturating_sub(each), asked],
            "shares": {"evaluation": wait}, "beside": {"transfer": MS}})
    };
    let chunk = |number: u64| {
        let begun = number * each / 4;
        json!({"border": 3, "first": 8 * number, "count": 8, "begun": begun, "done": begun + 20 * MS, "taken": begun + 25 * MS, "waited": 0,
            "who": {"number": number % 64, "host": null}, "bytes": 4096, "slowest": null,
            "off": {"store_ns": 0, "requests": 0, "retries": 0, "store_bytes": 0, "lock_ns": 0}})
    };
    ((60 * second..60 * (second + 1)).map(batch).collect(), (240 * second..240 * (second + 1)).map(chunk).collect())
}

/// Returns the CPU time of all current threads of this process.
fn cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ns = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(ns.sum())
}

/// Duration of a run, duration of a step, and number of pairs of runs.
const RUN: Duration = Duration::from_secs(4);
const STEP: Duration = Duration::from_millis(5);
const PAIRS: usize = 9;

/// Prints the extra CPU time of a recording or a trace during a run of 200 batches per second.
fn beside(what: &str, file: &Path) -> Result<()> {
    let run = |with: bool| -> Result<f64> {
        let loader = match (what, with) {
            ("record", true) => loader().record(file),
            ("trace", true) => loader().trace(file.with_extension("json.gz")),
            _ => loader(),
        };
        let mut loader = loader.build()?;
        let (start, mut taken) = (Instant::now(), 0);
        let before = cpu();
        while start.elapsed() < RUN {
            black_box(loader.next().transpose()?);
            taken += 1;
            std::thread::sleep(STEP);
        }
        // Scaled to 200 batches, whatever the number of batches.
        Ok((cpu() - before).as_secs_f64() / f64::from(taken) * 200.0)
    };
    let mut shares: Vec<f64> = pairs(PAIRS, || run(false), || run(true))?
        .into_iter()
        .map(|(without, with)| 100.0 * (with - without))
        .collect();
    shares.sort_by(f64::total_cmp);
    let [low, middle, high] = [1, 2, 3].map(|quarter| shares[quarter * (PAIRS - 1) / 4]);
    println!("{what}: {middle:.2} % of a core at 200 batches a second, quartiles {low:.2} to {high:.2} %");
    Ok(())
}
