//! The RAM budget holds at every instant: watched from outside, over all worker processes and the shared memory.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, Poison, mp_prefetch, set_worker_command};
use gristmill::{Array, Element, IterDataset, MapDatasetExt, Result};
use serde::{Deserialize, Serialize};

use crate::cgroup::Group;
use crate::children::children;

const MIB: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Sizes {
    /// All of them so many bytes.
    Same(u64),
    /// From 1 KiB to so many bytes.
    Growing(u64),
    /// 1 MiB each, and every tenth worker task asks for far more memory than it may have.
    Wild,
    /// 1 MiB each, and every tenth takes memory until there is no more.
    Greedy,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Config {
    len: i64,
    sizes: Sizes,
}

fn pipeline(Config { len, sizes }: Config) -> Result<impl IterDataset<Item = Element>> {
    Ok(Range::new(0, len)
        .map(move |x| {
            let bytes = match sizes {
                Sizes::Same(bytes) => bytes,
                Sizes::Growing(most) => 1024.max(most >> ((len - 1 - x) / 2)),
                Sizes::Wild | Sizes::Greedy => MIB,
            };
            if matches!(sizes, Sizes::Greedy) && x % 10 == 7 {
                // Each piece is touched as it is given.
                let mut all = Vec::new();
                loop {
                    all.push(vec![x as u8; 4 << 20]);
                    std::hint::black_box(&all);
                }
            }
            if matches!(sizes, Sizes::Wild) && x % 10 == 7 {
                // Beyond any heap here; touched, so that it counts if it is given.
                let big = vec![x as u8; 2 << 30];
                assert_eq!(big[big.len() / 2], x as u8);
            }
            Element::new().with("x", Array::from_vec(vec![x as u8; bytes as usize])).with("n", Array::scalar(x))
        })
        .to_iter())
}

/// Kilobytes of `keys` in the memory map of a process, summed, as bytes.
fn rollup(pid: u32, keys: &[&str]) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let value = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    text.lines().filter(|line| keys.iter().any(|key| line.starts_with(key))).filter_map(value).sum::<u64>() * 1024
}

/// What counts against the budget, now.
fn used() -> u64 {
    let workers: u64 = children().into_iter().map(|pid| rollup(pid, &["Pss_Anon:", "Pss_Shmem:"])).sum();
    workers + rollup(std::process::id(), &["Pss_Shmem:"])
}

/// Runs `consume` while somebody watches; returns the most that was seen.
fn watched(consume: impl FnOnce() + Send) -> (u64, u64) {
    let (most, samples, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                most.fetch_max(used(), Ordering::Relaxed);
                samples.fetch_add(1, Ordering::Relaxed);
                // Between two samples.
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // Also where an assertion fails: the one who watches must end.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(consume));
        done.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    (most.into_inner(), samples.into_inner())
}

fn check(element: &Element, at: i64) {
    assert_eq!(element.array("n").unwrap().as_i64(), Some(at));
    let bytes = element.array("x").unwrap().bytes();
    assert!(bytes == vec![at as u8; bytes.len()], "element {at}");
}

/// One test, because what it watches is the whole process.
#[test]
fn the_budget_holds_whatever_consumer_and_elements_do() {
    let scale = std::env::var("GRISTMILL_PATIENCE").ok().and_then(|s| s.parse().ok()).unwrap_or(2u64);
    let pause = Duration::from_secs(scale);
    let exe = std::env::current_exe().unwrap();
    let run = |name: &str, budget: u64, config: Config, consume: &(dyn Fn(&Element, i64, &mut Vec<Element>) + Sync)| {
        // Workers are started in a group of their own: they touch each page of the slab first, and their own memory.
        // What the trainer has besides is not theirs.
        let group = Group::new("budget");
        if let Ok(group) = &group {
            let (program, arguments) = group.command(&exe);
            set_worker_command(program, arguments);
        }
        let options = MpOptions::auto().workers(2).threads_per_worker(2).ram_budget(budget).on_poison(Poison::Skip);
        let options = options.retries(1).worker_heap(budget / 5).max_element(70 * MIB);
        let (most, samples) = watched(|| {
            let loader = mp_prefetch(pipeline, config, options).unwrap().build().unwrap();
            let mut kept = Vec::new();
            let mut next = 0;
            for element in loader {
                let element = element.unwrap();
                next = element.array("n").unwrap().as_i64().unwrap();
                check(&element, next);
                consume(&element, next, &mut kept);
                next += 1;
            }
            assert_eq!(next, config.len);
            for element in &kept {
                check(element, element.array("n").unwrap().as_i64().unwrap());
            }
        });
        println!("{name}: {} of {} MiB at most, {samples} samples", most / MIB, budget / MIB);
        assert!(most <= budget, "{name}: {most} bytes, and the budget is {budget}");
        assert!(most > 4 * MIB, "{name}: nothing was seen");
        match group {
            Ok(group) => {
                // The kernel's own memory for them is not in the budget; no file is read.
                let (peak, kernel) = (group.peak(), group.kernel());
                println!("    counted by the kernel: {} MiB, {} of them its own", peak / MIB, kernel / MIB);
                assert!(peak - kernel <= budget, "{name}: {peak} bytes less {kernel}, and the budget is {budget}");
                assert!(peak >= most / 2, "{name}: {} counts {peak} bytes of {most}", group.path().display());
            }
            Err(why) => println!("    skipped: what the kernel counts: {why}"),
        }
    };
    let same = Config { len: 24, sizes: Sizes::Same(64 * MIB) };
    run("64 MiB elements, a bursty consumer", 1024 * MIB, same, &|_, n, _| {
        if n % 6 == 5 {
            // Workers run ahead meanwhile, into the budget.
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let growing = Config { len: 34, sizes: Sizes::Growing(64 * MIB) };
    run("elements that grow from 1 KiB to 64 MiB", 1024 * MIB, growing, &|_, _, _| {});
    let small = Config { len: 600, sizes: Sizes::Same(MIB) };
    run("a consumer that stops", 1024 * MIB, small, &|_, n, _| {
        if n == 100 {
            // Workers run ahead meanwhile, into the budget.
            std::thread::sleep(pause);
        }
    });
    run("a consumer that hoards", 1024 * MIB, Config { len: 16, sizes: Sizes::Same(64 * MIB) }, &|element, _, kept| {
        if kept.len() < 10 {
            kept.push(element.clone());
        }
    });
    run("workers that allocate wildly", 1024 * MIB, Config { len: 40, sizes: Sizes::Wild }, &|_, _, _| {});
    run("workers that take all they get", 1024 * MIB, Config { len: 20, sizes: Sizes::Greedy }, &|_, _, _| {});
}
