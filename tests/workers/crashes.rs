//! Workers die in every way, and the data does not change.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, Poison, mp_prefetch};
use gristmill::{Array, Element, ErrorKind, IterDataset, IterDatasetExt, MapDataset, MapDatasetExt, Result};
use serde::{Deserialize, Serialize};

use crate::children::living_children;

const MIB: u64 = 1 << 20;
const LEN: i64 = 4000;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Death {
    Signal(i32),
    Abort,
    Exit,
    Loop,
    Sleep,
    StackOverflow,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Config {
    /// Elements at which a worker dies, and how.
    deaths: Vec<(i64, Death)>,
    /// Where it is noted who has died already; without it they die each time.
    once: Option<PathBuf>,
}

impl Config {
    /// Dies at `x`, if that is what is meant to be.
    fn pass(&self, x: i64) {
        if let Some((_, death)) = self.deaths.iter().find(|(at, _)| *at == x)
            && self.once.as_ref().is_none_or(|dir| first_time(dir, x))
        {
            die(*death);
        }
    }
}

fn pipeline(config: Config) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| {
        config.pass(x);
        let len = (x % 300) as usize;
        Element::new().with("x", Array::from_vec(vec![x; len])).with("t", &*format!("element {x}"))
    };
    Ok(Range::new(0, LEN).shuffle(3).map(element).to_iter().filter(|e| e.array("x").is_ok_and(|a| a.size() % 7 != 0)))
}

/// Batches that are stacked in the workers.
fn batched(config: Config) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| {
        config.pass(x);
        Element::new().with("x", Array::from_vec(vec![x; 50])).with("t", &*format!("element {x}"))
    };
    Ok(Range::new(0, LEN).shuffle(3).map(element).to_iter().batch(7))
}

fn first_time(dir: &Path, x: i64) -> bool {
    std::fs::File::create_new(dir.join(x.to_string())).is_ok()
}

fn die(death: Death) {
    match death {
        Death::Signal(number) => {
            let pid = std::process::id().to_string();
            std::process::Command::new("kill").args([format!("-{number}"), pid]).status().unwrap();
            // The signal may take a moment.
            std::thread::sleep(Duration::from_secs(60));
        }
        Death::Abort => std::process::abort(),
        Death::Exit => std::process::exit(0),
        Death::Loop => loop {
            std::hint::spin_loop();
        },
        // Until it is killed, beyond the deadline.
        Death::Sleep => std::thread::sleep(Duration::from_secs(600)),
        Death::StackOverflow => drop(std::hint::black_box(deep(1))),
    }
}

fn deep(n: u64) -> u64 {
    let big = std::hint::black_box([n; 1000]);
    if n == 0 { 0 } else { deep(n + 1) + big[(n % 1000) as usize] }
}

fn options(workers: usize) -> MpOptions {
    let options = MpOptions::auto().workers(workers).threads_per_worker(2);
    options.worker_heap(64 * MIB).ram_budget(300 * MIB).deadline(None)
}

fn inline() -> Vec<Element> {
    pipeline(Config { deaths: Vec::new(), once: None }).unwrap().collect().unwrap()
}

#[test]
fn whatever_a_worker_dies_of_nothing_is_lost_or_repeated() {
    let expected = inline();
    let ways =
        [Death::Signal(9), Death::Signal(11), Death::Signal(15), Death::Abort, Death::Exit, Death::StackOverflow];
    let causes = ["killed by signal 9", "killed by signal 11", "signal 6 (SIGABRT)", "exit code 0"];
    for workers in [1, 3] {
        survive(&expected, &ways, &causes, options(workers));
    }
}

/// On a busy machine other elements may be late, too: each would have to be late 20 times to be given up.
#[test]
fn a_worker_that_hangs_is_killed_at_the_deadline_and_nothing_is_lost_or_repeated() {
    let expected = inline();
    for workers in [1, 3] {
        let options = options(workers).deadline(Duration::from_secs(1)).retries(20);
        survive(&expected, &[Death::Loop, Death::Sleep], &["longer than the deadline"], options);
    }
}

/// Has workers die in these ways, two times each, and checks the data and the causes that the report names.
fn survive(expected: &[Element], ways: &[Death], causes: &[&str], options: MpOptions) {
    let dir = tempfile::tempdir().unwrap();
    let deaths = (0..2 * ways.len()).map(|n| (n as i64 * 250 + 3, ways[n % ways.len()])).collect();
    let config = Config { deaths, once: Some(dir.path().to_owned()) };
    let mut loader = mp_prefetch(pipeline, config, options).unwrap().build().unwrap();
    let got: Vec<Element> = loader.by_ref().collect::<Result<_>>().unwrap();
    assert!(got == expected, "{} elements of {}", got.len(), expected.len());
    let notes = loader.report().notes;
    for cause in causes {
        assert!(notes.iter().any(|(note, _)| note.contains(cause)), "{cause:?} is not among {notes:?}");
    }
}

#[test]
fn an_element_that_kills_every_worker_is_named_or_left_out() {
    let config = Config { deaths: vec![(1234, Death::Abort)], once: None };
    let run = |poison| {
        let mut loader = mp_prefetch(pipeline, config.clone(), options(2).on_poison(poison)).unwrap().build().unwrap();
        let all: Vec<_> = loader.by_ref().collect();
        (all, loader.report())
    };
    let (mut all, _) = run(Poison::Error);
    let error = all.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Worker);
    let place = (0..LEN as u64)
        .find(|&i| Range::new(0, LEN).shuffle(3).get(i, &mut gristmill::Cx::default()).unwrap() == Some(1234));
    assert!(
        error.to_string().contains(&format!("element {}: 3 workers died over this element", place.unwrap())),
        "{error}"
    );
    assert!(error.to_string().contains("SIGABRT"), "{error}");

    let (all, report) = run(Poison::Skip);
    let all: Vec<Element> = all.into_iter().collect::<Result<_>>().unwrap();
    let expected: Vec<Element> = inline().into_iter().filter(|e| e.text("t").unwrap() != "element 1234").collect();
    assert!(all == expected);
    assert!(
        report.notes.iter().any(|(note, n)| note.starts_with("elements left out") && *n == 1),
        "{:?}",
        report.notes
    );
}

#[test]
fn batches_close_over_what_is_left_out() {
    let run = |config, poison| {
        let loader = mp_prefetch(batched, config, options(2).on_poison(poison)).unwrap().build().unwrap();
        loader.collect::<Result<Vec<Element>>>()
    };
    let quiet = Config { deaths: Vec::new(), once: None };
    let expected = batched(quiet.clone()).unwrap().collect().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let deaths: Vec<_> = (0..12).map(|n| (n * 300 + 7, [Death::Signal(9), Death::Abort][n as usize % 2])).collect();
    let config = Config { deaths, once: Some(dir.path().to_owned()) };
    assert!(run(config, Poison::Error).unwrap() == expected);

    let poisonous = Config { deaths: vec![(1234, Death::Abort), (77, Death::Exit)], once: None };
    let error = run(poisonous.clone(), Poison::Error).unwrap_err();
    assert!(error.to_string().contains("3 workers died over this element"), "{error}");
    let left: Vec<i64> = xs(&expected).into_iter().filter(|x| ![1234, 77].contains(x)).collect();
    let skipped = run(poisonous, Poison::Skip).unwrap();
    assert_eq!(xs(&skipped), left);
    assert!(skipped.iter().rev().skip(1).all(|batch| batch.num_rows().unwrap() == 7));
}

/// The first number of every row.
fn xs(batches: &[Element]) -> Vec<i64> {
    batches.iter().flat_map(|b| b.array("x").unwrap().as_slice::<i64>().unwrap().chunks(50).map(|row| row[0])).collect()
}

/// Kills from outside, at moments that have nothing to do with what the worker is at: start, writing, waiting.
#[test]
fn kills_at_any_moment_change_nothing() {
    let kills = std::env::var("GRISTMILL_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let (expected, done) = (inline(), AtomicBool::new(false));
    let mut killed = 0;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut passes = 0;
            while !done.load(Ordering::Relaxed) || passes == 0 {
                let config = Config { deaths: Vec::new(), once: None };
                let loader = mp_prefetch(pipeline, config, options(2).retries(20)).unwrap().build().unwrap();
                let mut got = Vec::new();
                for element in loader {
                    got.push(element.unwrap());
                    if got.len() % 64 == 0 {
                        // Slow enough that workers are killed in the middle of a pass.
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
                assert!(got == expected, "pass {passes}");
                passes += 1;
            }
        });
        let mut random = 1u64;
        while killed < kills && !reader.is_finished() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Kills are spread at random over what workers do.
            std::thread::sleep(Duration::from_micros(random >> 33 & 0x7fff));
            if let Some(pid) = living_children().first() {
                let sent = std::process::Command::new("kill").args(["-9", &pid.to_string()]).output().unwrap();
                killed += usize::from(sent.status.success());
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert!(killed >= kills);
    println!("{killed} workers killed");
}

/// Takes until the file is there to build in a worker: workers are killed before.
fn slow_to_build((parent, enough): (u32, PathBuf)) -> Result<impl IterDataset<Item = i64>> {
    while std::process::id() != parent && !enough.exists() {
        // Nothing else tells a worker that enough of them were killed.
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(Range::new(0, 200).to_iter())
}

#[test]
fn workers_that_are_killed_before_they_are_ready_do_not_end_a_run() {
    let (mut killed, dir) = (std::collections::BTreeSet::new(), tempfile::tempdir().unwrap());
    let enough = dir.path().join("enough");
    let got = std::thread::scope(|scope| {
        let config = (std::process::id(), enough.clone());
        let run =
            || mp_prefetch(slow_to_build, config, options(1)).unwrap().build().unwrap().collect::<Result<Vec<i64>>>();
        let run = scope.spawn(run);
        while killed.len() < 14 && !run.is_finished() {
            for pid in living_children() {
                let sent = std::process::Command::new("kill").args(["-9", &pid.to_string()]).output().unwrap();
                if sent.status.success() {
                    killed.insert(pid);
                }
            }
            // Until the next worker is there.
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(&enough, "").unwrap();
        run.join().unwrap()
    });
    assert_eq!(got.unwrap(), (0..200).collect::<Vec<_>>());
    assert!(killed.len() >= 14, "{} workers were killed", killed.len());
}

/// Ends a worker as it begins, by itself.
fn ends_itself(parent: u32) -> Result<impl IterDataset<Item = i64>> {
    if std::process::id() != parent {
        std::process::abort();
    }
    Ok(Range::new(0, 200).to_iter())
}

#[test]
fn a_program_that_dies_each_time_it_starts_is_an_error() {
    let loader = mp_prefetch(ends_itself, std::process::id(), options(2)).unwrap().build().unwrap();
    let error = loader.collect::<Result<Vec<i64>>>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Worker);
    assert!(error.to_string().contains("the last of many that died with nothing done between"), "{error}");
}
