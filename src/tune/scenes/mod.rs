//! Scenes: measurements, second by second, and the decisions of the controller.
//!
//! `scenes.txt` has them, separated by empty lines. The first line of a scene is its title; lines after `>` are expected: each
//! decision, and the setting at the end. A block that begins with `==` is a heading: its lines stand in front of those of the scenes
//! that follow.
//!
//! | line | meaning |
//! |---|---|
//! | `start threads=2 processes=1 window=8` | the setting at the start |
//! | `bounds threads=64 each=64 cores=8 least=1 processes=4 window=99 idle=60` | its bounds |
//! | `second wait=0.5 elements=100 busy=2 cpu=2 taken=2 full` | a measurement of a second |
//! | `again 5 wait=0.1` | the last measurement, five times, with some figures changed |
//! | `allow 2` | from now on there is memory for two processes |
//! | `machine cpu=0.001 blocked=0.01 step=0.002 cores=8 locks server=100 suffix=0.001` | a simulated machine |
//! | `run 60` | sixty seconds on it |

use std::path::Path;
use std::time::Duration;

use super::world::NOTHING;
use super::{Bounds, Controller, Measurement, Setting};

/// A word with a value, `name=value`; the value is 1 if there is none.
fn figures(words: &str) -> impl Iterator<Item = (&str, f64)> {
    words.split_whitespace().map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, "1"));
        (name, value.parse().unwrap_or_else(|_| panic!("`{word}` has no number")))
    })
}

fn measure(m: &mut Measurement, words: &str) {
    for (name, value) in figures(words) {
        match name {
            "wall" => m.wall_s = value,
            "wait" => m.wait_s = value,
            "elements" => m.elements = value,
            "busy" => m.busy_s = value,
            "locked" => m.locked_s = value,
            "cpu" => m.cpu_s = value,
            "taken" => m.taken_s = value,
            "full" => m.window_full = value > 0.0,
            "short" => m.short_s = value,
            "disturbed" => m.disturbed = value > 0.0,
            _ => panic!("a measurement has no {name}"),
        }
    }
}

/// Plays the lines of a scene. Returns its decisions and the setting at the end.
fn play(lines: &[&str]) -> Vec<String> {
    let mut start = Setting { threads: 1, processes: 1, window: 8 };
    let mut bounds = Bounds { cores: 8, ..Bounds::of_threads(64, 1 << 10) };
    let (mut m, mut world) = (Measurement { wall_s: 1.0, ..Measurement::default() }, NOTHING);
    let (mut controller, mut said) = (None, Vec::new());
    for line in lines {
        let (kind, words) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "start" => figures(words).for_each(|(name, n)| match name {
                "threads" => start.threads = n as usize,
                "processes" => start.processes = n as usize,
                "window" => start.window = n as usize,
                _ => panic!("{line}"),
            }),
            "bounds" => figures(words).for_each(|(name, n)| match name {
                "threads" => bounds.most_threads = n as usize,
                "each" => bounds.most_threads_each = n as usize,
                "cores" => bounds.cores = n as usize,
                "least" => bounds.processes.0 = n as usize,
                "processes" => bounds.processes.1 = n as usize,
                "window" => bounds.most_window = n as usize,
                "idle" => bounds.idle = Some(Duration::from_secs_f64(n)),
                _ => panic!("{line}"),
            }),
            "machine" => figures(words).for_each(|(name, n)| match name {
                "cpu" => world.cpu_s = n,
                "blocked" => world.blocked_s = n,
                "step" => world.step_s = n,
                "suffix" => world.suffix_s = n,
                "server" => world.server = n,
                "cores" => world.cores = n as usize,
                "locks" => world.locks = true,
                "locks_while_blocked" => world.locks_while_blocked = true,
                _ => panic!("{line}"),
            }),
            _ => {
                let controller = controller.get_or_insert_with(|| Controller::new(start, bounds));
                let mut step = |m: &Measurement| said.extend(controller.step(m).map(|decision| decision.to_string()));
                let (count, words) = words.split_once(' ').unwrap_or((words, ""));
                match kind {
                    "second" => {
                        m = Measurement { wall_s: 1.0, ..Measurement::default() };
                        measure(&mut m, line.trim_start_matches("second"));
                        step(&m);
                    }
                    "again" => {
                        measure(&mut m, words);
                        (0..count.parse().unwrap()).for_each(|_| step(&m));
                    }
                    "run" => {
                        for _ in 0..count.parse().unwrap() {
                            let setting = controller.setting();
                            said.extend(
                                controller.step(&world.second(setting, 0.5)).map(|decision| decision.to_string()),
                            );
                        }
                    }
                    "allow" => controller.allow_processes(count.parse().unwrap()),
                    _ => panic!("`{line}` is no line of a scene"),
                }
            }
        }
    }
    let Setting { threads, processes, window } = controller.unwrap().setting();
    said.push(format!("threads {threads} processes {processes} window {window}"));
    said
}

#[test]
fn measurements_lead_to_their_decisions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tune/scenes/scenes.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let (mut heading, mut common, mut count, mut wrong) = ("", Vec::new(), 0, Vec::new());
    for block in text.split("\n\n") {
        let mut lines = block.lines().filter(|line| !line.is_empty());
        let Some(title) = lines.next() else { continue };
        if let Some(title) = title.strip_prefix("== ") {
            (heading, common) = (title, lines.collect());
            continue;
        }
        let (expected, given): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with('>'));
        let expected: Vec<_> = expected.into_iter().map(|line| line.trim_start_matches("> ")).collect();
        let said = play(&[common.clone(), given].concat());
        count += 1;
        if said != expected {
            wrong.push(format!("{heading}: {title}\n> {}", said.join("\n> ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} scenes end otherwise:\n\n{}\n", wrong.len(), wrong.join("\n\n"));
    assert!(count >= 20, "{count}");
}
