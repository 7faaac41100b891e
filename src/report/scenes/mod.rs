//! Scenes: measurements of a run in a few lines of text, and the verdict, the advice and the words that follow from them.
//!
//! `by_hand.txt` holds made-up runs on both sides of every threshold; `recorded.txt` holds runs that were measured once. Scenes are
//! separated by empty lines. The first line of a scene is its title; lines after `>` are expected. A scene that begins with `==`
//! is a heading, whose lines are prepended to the scenes after it:
//!
//! | line | meaning |
//! |---|---|
//! | `run wall=10 first=0.5` | figures of the run; see [`Scene::run`] |
//! | `1 map threads self=9 cpu=8 interpreted` | stage 1: its name, place, role, seconds and traits |
//! | `wait evaluation=3 reader=1` | seconds that the loader waited, by cause |
//! | `held 1=0.5` | of `head_of_line`, seconds owed to stage 1 |
//! | `around lock=2` | seconds that a loop around the loader waited besides |
//! | `store requests=4 retries=1 bytes=4096` | blocks of stores that were waited for |
//! | `longest head_of_line at=1 wait=0.2 stage=1 …` | one of the longest waits |
//! | `note 3 records skipped` | a counted remark |
//! | `made 0.3 NumPy imported` | seconds of the first wait for something that was made |
//! | `work 1=0.4` | seconds of stage 1 until the first element |
//!
//! Expected are the verdict (`bottleneck @stage: text`) and each advice (gain, change as JSON, text). Lines that begin with
//! `why`, `longest` or `start-up` are compared if the scene has any; `no why` is expected if there is none.

use std::path::Path;
use std::time::Duration;

use super::format::time;
use super::{
    Execution, First, LongWait, Place, Report, StageReport, StageWork, Verdict, WaitSuspect, Waits, startup, text,
    verdict, waited, why,
};
use crate::cx::{Account, Cause, Shares, StoreUse};
use crate::dataset::Role;
use crate::exec::{WorkerReport, WorkersReport};

/// A report of no run.
pub(super) fn nothing() -> Report {
    Report {
        execution: Execution { cores: 2, ..Execution::default() },
        wall_s: 0.0,
        delivered: 0,
        is_drained: false,
        others_cpu_share: None,
        waits: Waits { next_p50_us: 1.0, next_p99_us: 1.0, ..Waits::default() },
        workers: None,
        is_tuned: false,
        decisions: Vec::new(),
        stages: Vec::new(),
        components: Vec::new(),
        notes: Vec::new(),
        remarks: Vec::new(),
        verdict: Verdict::default(),
        picture: Default::default(),
    }
}

/// Measurements of a run.
struct Scene {
    report: Report,
    account: Account,
    around: Shares,
    first: First,
}

/// A word with a value, `name=value`; the value is 1 if there is none.
fn figures(words: &str) -> impl Iterator<Item = (&str, f64)> {
    words.split_whitespace().map(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, "1"));
        (name, value.parse().unwrap_or_else(|_| panic!("`{word}` has no number")))
    })
}

fn cause(name: &str) -> Cause {
    Cause::ALL.into_iter().find(|cause| cause.name() == name).unwrap_or_else(|| panic!("no cause is called {name}"))
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

impl Scene {
    /// Reads the lines of a scene.
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let (account, around, first) = Default::default();
        let mut scene = Self { report: nothing(), account, around, first };
        for line in lines {
            let (kind, words) = line.split_once(' ').unwrap_or((line, ""));
            match kind {
                "run" => figures(words).for_each(|(name, value)| scene.run(name, value)),
                "wait" => figures(words).for_each(|(name, s)| scene.account.shares.count(cause(name), seconds(s))),
                "around" => figures(words).for_each(|(name, s)| scene.around.count(cause(name), seconds(s))),
                "held" => figures(words).for_each(|(stage, s)| {
                    scene.account.held_up.insert(stage.parse().unwrap(), seconds(s).as_nanos() as u64);
                }),
                "store" => figures(words).for_each(|(name, n)| match name {
                    "requests" => scene.account.store.requests = n as u64,
                    "retries" => scene.account.store.retries = n as u64,
                    "bytes" => scene.account.store.bytes = n as u64,
                    _ => panic!("{line}"),
                }),
                "longest" => scene.report.waits.longest_waits.push(longest(words)),
                "note" => {
                    let (count, what) = words.split_once(' ').unwrap();
                    scene.report.notes.push((what.to_owned(), count.parse().unwrap()));
                }
                "made" => {
                    let (took, what) = words.split_once(' ').unwrap();
                    scene.first.made.push((what.to_owned().leak(), seconds(took.parse().unwrap())));
                }
                "work" => figures(words).for_each(|(stage, s)| {
                    let stage: usize = stage.parse().unwrap();
                    scene.first.work.resize(scene.first.work.len().max(stage + 1), Duration::ZERO);
                    scene.first.work[stage] = seconds(s);
                }),
                id => scene.stage(id.parse().unwrap_or_else(|_| panic!("`{line}` is no line of a scene")), words),
            }
        }
        scene
    }

    /// Takes in a figure of the run: seconds of `wall` and until the `first` element, batches `delivered`, `threads` and their `busy`
    /// share, `cores`; the share of its time that the consumer `waits`, and in the `steady`
    /// state, if those are not the sums of the waits; `workers`, their `budget` in bytes, how many were `replaced`, and the seconds
    /// until the first was `started` and had `built` its pipeline; whether it is `tuned`, or only `drained`; the share of all cores that `others` used.
    fn run(&mut self, name: &str, value: f64) {
        let count = value as usize;
        let report = &mut self.report;
        match name {
            "wall" => report.wall_s = value,
            "first" => report.waits.first_wait_s = value,
            "delivered" => report.delivered = count as u64,
            "threads" => report.execution.threads = count,
            "busy" => report.execution.threads_busy_share = value,
            "cores" => report.execution.cores = count,
            "waits" => report.waits.consumer_wait_share = value,
            "steady" => report.waits.steady_wait_share = value,
            "tuned" => report.is_tuned = true,
            "drained" => report.is_drained = true,
            "others" => report.others_cpu_share = Some(value),
            _ => {
                let workers = report.workers.get_or_insert_default();
                match name {
                    "workers" => workers.workers = vec![WorkerReport::default(); count],
                    "budget" => workers.ram_budget = count as u64,
                    "replaced" => workers.replaced = count as u64,
                    "started" => workers.started_s = value,
                    "built" => workers.built_s = value,
                    _ => panic!("a run has no {name}"),
                }
            }
        }
    }

    /// Takes in a stage, or more of one that is there.
    fn stage(&mut self, id: usize, words: &str) {
        let (name, words) = words.split_once(' ').unwrap_or((words, ""));
        let stages = &mut self.report.stages;
        if id == stages.len() {
            stages.push(super::advised::stage(id, name, Role::Elementwise, Place::Threads, 0.0));
        }
        let stage = &mut stages[id];
        stage.name = name.into();
        for (name, value) in figures(words) {
            match name {
                "source" => stage.traits.role = Role::Source,
                "order" => stage.traits.role = Role::Order,
                "may_drop" => stage.traits.role = Role::MayDrop,
                "fan_out" => stage.traits.role = Role::FanOut,
                "stateful" => (stage.traits.role, stage.traits.in_order) = (Role::Stateful, true),
                "threads" => stage.place = Place::Threads,
                "suffix" => stage.place = Place::Suffix,
                "consumer" => stage.place = Place::Consumer,
                "self" => stage.work.self_s = value,
                "cpu" => stage.work.cpu_s = value,
                "blocked" => stage.work.blocked_s = value,
                "lock" => stage.work.lock_s = value,
                "elements" => stage.elements = value as u64,
                "interpreted" => stage.interpreted = true,
                "far" => stage.traits.reads_far = true,
                "behind" => stage.traits.is_behind = true,
                "in_order" => stage.traits.in_order = true,
                _ => panic!("a stage has no {name}"),
            }
        }
        stage.self_us_per_element = stage.work.self_s * 1e6 / stage.elements.max(1) as f64;
    }

    /// The report of the run.
    fn judged(mut self) -> Report {
        let mut report = self.report;
        if self.account.shares.iter().all(|(cause, wait)| cause != Cause::Start || wait.is_zero()) {
            self.account.shares.count(Cause::Start, seconds(report.waits.first_wait_s));
        }
        let waited = (self.account.shares.total() + self.around.total()).as_secs_f64();
        if report.waits.consumer_wait_share == 0.0 {
            let steady_s = report.wall_s - report.waits.first_wait_s;
            report.waits.consumer_wait_share = (waited / report.wall_s).min(1.0);
            report.waits.steady_wait_share = ((waited - report.waits.first_wait_s) / steady_s).clamp(0.0, 1.0);
        }
        report.waits.why = why::parts(
            &self.account,
            self.around,
            why::Locks::of(report.workers.as_ref()),
            &report.stages,
            report.wall_s,
        );
        let rest = waited::share_out(&report.waits.why, &mut report.stages);
        (report.waits.startup_share, report.waits.handover_share, report.waits.aside_share) =
            (rest.startup, rest.handover, rest.aside);
        let first_wait = seconds(report.waits.first_wait_s);
        report.waits.startup = startup::causes(first_wait, report.workers.as_ref(), &self.first, &report.stages);
        report.verdict = verdict::judge(&report);
        report
    }
}

/// A long wait: its cause, and what is known of it.
fn longest(words: &str) -> LongWait {
    let (name, words) = words.split_once(' ').unwrap_or((words, ""));
    let mut wait = LongWait {
        batch: 0,
        at_s: 0.0,
        wait_s: 0.0,
        cause: cause(name),
        border: None,
        stage: None,
        element: None,
        elements: None,
        took_s: None,
        worker: None,
        host: None,
        host_number: None,
        store: None,
        suspect: WaitSuspect::default(),
    };
    for word in words.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        let number = || value.parse::<f64>().unwrap();
        match name {
            "batch" => wait.batch = number() as u64,
            "at" => wait.at_s = number(),
            "wait" => wait.wait_s = number(),
            "took" => wait.took_s = Some(number()),
            "border" => wait.border = Some(number() as usize),
            "stage" => wait.stage = Some(number() as usize),
            "element" => wait.element = Some(number() as u64),
            "elements" => wait.elements = Some(number() as u64),
            "largest" => wait.suspect.largest = Some(number() as u64),
            "record" => wait.suspect.record = Some(value.replace('_', " ")),
            "bytes" => wait.suspect.record_bytes = Some(number() as u64),
            "retries" => wait.store = Some(StoreUse { retries: number() as u64, ..StoreUse::default() }),
            _ => panic!("a wait has no {name}"),
        }
    }
    wait
}

/// A report in the words of a scene: what was found.
fn said(report: &Report) -> Vec<String> {
    let plain = |text: &str| text.replace('\u{a0}', " ");
    let Verdict { bottleneck, stage, text, advice } = &report.verdict;
    let at = stage.map_or_else(String::new, |id| format!(" @{id}"));
    let mut said = vec![format!("{bottleneck}{at}: {text}")];
    said.extend(advice.iter().map(|advice| {
        let change = serde_json::to_string(&advice.change).unwrap();
        plain(&format!("{} {change} {}", text::gain(advice.expected_speedup), advice.text))
    }));
    said.extend(why::in_words(&report.waits.why, &report.stages).map(|why| plain(&format!("why {why}"))));
    let longest = why::longest_in_words(&report.waits.longest_waits, &report.stages);
    said.extend(longest.map(|longest| plain(&format!("longest {longest}"))));
    said.extend(report.waits.startup.iter().map(|cause| format!("start-up {cause}")));
    said
}

/// A report in the words of a scene: what was measured. With a loop around the loader it is as if the loader had waited all of it.
fn written(report: &Report) -> String {
    let mut lines = vec![format!(
        "run wall={} first={} delivered={} threads={} busy={} cores={} waits={} steady={}",
        report.wall_s,
        report.waits.first_wait_s,
        report.delivered,
        report.execution.threads,
        report.execution.threads_busy_share,
        report.execution.cores,
        report.waits.consumer_wait_share,
        report.waits.steady_wait_share
    )];
    if report.is_tuned {
        lines.push("run tuned".into());
    }
    if let Some(WorkersReport { workers, ram_budget, replaced, started_s, built_s, .. }) = &report.workers {
        let workers = workers.len();
        lines.push(format!(
            "run workers={workers} budget={ram_budget} replaced={replaced} started={started_s} built={built_s}"
        ));
    }
    for StageReport { id, name, work, elements, .. } in &report.stages {
        let StageWork { self_s, cpu_s, blocked_s, lock_s } = work;
        let stage = &report.stages[*id];
        let place = match stage.place {
            Place::Consumer => "consumer",
            Place::Threads => "threads",
            Place::Suffix => "suffix",
        };
        let role = match stage.traits.role {
            Role::Source => " source",
            Role::Order => " order",
            Role::Elementwise => "",
            Role::MayDrop => " may_drop",
            Role::FanOut => " fan_out",
            Role::Stateful => " stateful",
        };
        let is = |is: bool, word: &'static str| if is { word } else { "" };
        lines.push(format!(
            "{id} {name} {place}{role} self={self_s} cpu={cpu_s} blocked={blocked_s} lock={lock_s} elements={elements}{}{}{}{}",
            is(stage.interpreted, " interpreted"),
            is(stage.traits.reads_far, " far"),
            is(stage.traits.is_behind, " behind"),
            is(stage.traits.in_order && stage.traits.role != Role::Stateful, " in_order")
        ));
    }
    let (mut waits, mut held) = (Vec::<(Cause, f64)>::new(), Vec::new());
    for part in &report.waits.why {
        match waits.iter_mut().find(|(cause, _)| *cause == part.cause) {
            Some((_, sum)) => *sum += part.seconds,
            None => waits.push((part.cause, part.seconds)),
        }
        if let (Cause::HeadOfLine, Some(stage)) = (part.cause, part.stage) {
            held.push(format!("{stage}={}", part.seconds));
        }
        if let Some(StoreUse { requests, retries, bytes }) = part.store {
            lines.push(format!("store requests={requests} retries={retries} bytes={bytes}"));
        }
    }
    let waits = waits.iter().map(|(cause, s)| format!("{}={s}", cause.name()));
    lines.push(format!("wait {}", waits.collect::<Vec<_>>().join(" ")));
    if !held.is_empty() {
        lines.push(format!("held {}", held.join(" ")));
    }
    for wait in report.waits.longest_waits.iter().take(2) {
        let LongWait { batch, at_s, wait_s, cause, .. } = wait;
        let mut line = format!("longest {} batch={batch} at={at_s} wait={wait_s}", cause.name());
        let mut add = |name: &str, value: Option<String>| {
            line += &value.map_or_else(String::new, |value| format!(" {name}={value}"));
        };
        let count = |count: Option<u64>| count.map(|count| count.to_string());
        add("took", wait.took_s.map(|s| s.to_string()));
        add("stage", wait.stage.map(|id| id.to_string()));
        add("element", count(wait.element));
        add("elements", count(wait.elements));
        add("largest", count(wait.suspect.largest));
        add("record", wait.suspect.record.as_ref().map(|record| record.replace(' ', "_")));
        add("bytes", count(wait.suspect.record_bytes));
        add("retries", wait.store.map(|store| store.retries.to_string()));
        lines.push(line);
    }
    lines.extend(report.notes.iter().map(|(what, n)| format!("note {n} {what}")));
    lines.join("\n")
}

/// Each scene with its heading: title, lines, and what is expected.
fn scenes(text: &str) -> Vec<(String, Vec<&str>, Vec<&str>)> {
    let (mut heading, mut common, mut scenes) = ("", Vec::new(), Vec::new());
    for block in text.split("\n\n") {
        let mut lines = block.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let Some(title) = lines.next() else { continue };
        if let Some(title) = title.strip_prefix("== ") {
            (heading, common) = (title, lines.collect());
            continue;
        }
        let (expected, given): (Vec<_>, Vec<_>) = lines.partition(|line| line.starts_with('>'));
        let expected = expected.into_iter().map(|line| line.trim_start_matches("> ")).collect();
        scenes.push((format!("{heading}: {title}"), [common.clone(), given].concat(), expected));
    }
    scenes
}

/// Reads a file of scenes as the test runs: a scene that is added needs no build.
fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/scenes").join(file)).unwrap()
}

/// Checks each scene of a file. Returns their number.
fn play(file: &str) -> usize {
    let text = read(file);
    let (scenes, mut wrong) = (scenes(&text), Vec::new());
    for (title, given, expected) in &scenes {
        let mut said = said(&Scene::of(given.iter().copied()).judged());
        for kind in ["why", "longest", "start-up"] {
            // The verdict on start-up begins with that word and a colon.
            let of = |line: &str| {
                line.strip_prefix(kind).is_some_and(|rest| rest.starts_with(' '))
                    || line.strip_prefix("no ") == Some(kind)
            };
            if !expected.iter().any(|line| of(line)) {
                said.retain(|line| !of(line));
            } else if !said.iter().any(|line| of(line)) {
                said.push(format!("no {kind}"));
            }
        }
        if said != *expected {
            wrong.push(format!("{title}\n> {}", said.join("\n> ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} scenes end otherwise:\n\n{}\n", wrong.len(), scenes.len(), wrong.join("\n\n"));
    scenes.len()
}

#[test]
fn made_up_runs_get_their_verdicts_and_advice() {
    assert!(play("by_hand.txt") >= 60);
}

#[test]
fn recorded_runs_get_their_verdicts_and_advice() {
    assert!(play("recorded.txt") >= 15);
}

/// What programs and people read of each scene.
#[test]
fn every_report_is_at_most_100_columns_wide_and_has_its_figures_as_json() {
    for file in ["by_hand.txt", "recorded.txt"] {
        for (title, given, _) in scenes(&read(file)) {
            let report = Scene::of(given.iter().copied()).judged();
            let text = report.to_string();
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{title}\n{text}");
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(&text).contains(&words(&format!("VERDICT {}", report.verdict.text))), "{title}\n{text}");
            let json = serde_json::to_value(&report).unwrap();
            assert_eq!(json["stages"].as_array().unwrap().len(), report.stages.len(), "{title}");
            assert!(json["stages"].as_array().unwrap().iter().all(|stage| stage["blocked_s"].is_number()), "{title}");
            for (advice, json) in report.verdict.advice.iter().zip(json["verdict"]["advice"].as_array().unwrap()) {
                assert!(words(&text).contains(&words(&advice.text)), "{title}\n{text}");
                assert!(json["expected_speedup"].as_f64().unwrap() >= 1.05 && json["change"] != "null", "{title}");
            }
        }
    }
}

/// A run that is written as a scene gets the verdict that it got. `--no-capture` shows the scene: a run is recorded that way.
#[test]
fn a_run_is_judged_alike_when_it_is_written_as_a_scene() {
    use crate::dataset::map::Range;
    use crate::{Executor, IterDatasetExt, Load, MapDatasetExt};

    let ds = Range::new(0, 600).map(|x| x).to_iter().map(|x| x).window_shuffle(20, 1).batch(4).boxed();
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let mut loader = ds.clone().loader().executor(executor).build().unwrap();
        assert_eq!(loader.by_ref().count(), 150);
        let report = loader.report();
        let text = written(&report);
        println!("a run in {}\n{text}\n> {}\n", time(report.wall_s * 1e6), said(&report).join("\n> "));
        let again = Scene::of(text.lines()).judged();
        assert_eq!(
            (&again.verdict.bottleneck, again.verdict.stage),
            (&report.verdict.bottleneck, report.verdict.stage)
        );
        assert_eq!(again.verdict.advice.len(), report.verdict.advice.len(), "{text}");
        for (again, advice) in again.verdict.advice.iter().zip(&report.verdict.advice) {
            assert_eq!(again.change, advice.change, "{text}");
            assert!((again.expected_speedup / advice.expected_speedup - 1.0).abs() < 1e-3, "{text}");
        }
        assert!((again.waits.consumer_wait_share - report.waits.consumer_wait_share).abs() < 1e-3, "{text}");
    }
}
