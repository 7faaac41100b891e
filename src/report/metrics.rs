//! Figures of a report under stable names, for dashboards, which need numbers instead of sentences.
//!
//! All figures are declared in a single list. A name ends in its unit, if any. A family with several figures (causes, stages, notes)
//! has a label that distinguishes them.

use std::collections::BTreeMap;

use super::{Cause, ComponentReport, Report, StageReport};
use crate::exec::WorkersReport;

/// Unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A plain number.
    None,
    /// A share from 0 to 1.
    Ratio,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

/// Behaviour of a metric over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A sum since the start of the pass.
    Counter,
}

/// Figures that share a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Family {
    /// The name, such as `wait_share`.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// Gauge or counter.
    pub kind: Kind,
    /// The label that distinguishes figures of this name, if there can be several.
    pub label: Option<&'static str>,
    /// One-line description.
    pub help: &'static str,
}

/// A single figure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// The name, unit and meaning.
    pub family: &'static Family,
    /// The value of the label, if the family has a label.
    pub label: Option<String>,
    /// The value, always finite.
    pub value: f64,
}

impl Metric {
    /// Returns the name in a flat list, such as `input/wait_share` or `input/wait/head_of_line`. A name contains only letters, digits, `_`
    /// and `/`.
    pub fn path(&self) -> String {
        match &self.label {
            Some(label) => format!("input/{}/{}", self.family.name, plain(label)),
            None => format!("input/{}", self.family.name),
        }
    }
}

/// Returns a label in lower case. Each run of characters other than letters and digits becomes a single `_`.
fn plain(label: &str) -> String {
    let mut plain = String::with_capacity(label.len());
    for char in label.chars() {
        match char {
            c if c.is_ascii_alphanumeric() => plain.push(c.to_ascii_lowercase()),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    plain.trim_matches('_').to_owned()
}

const fn gauge(name: &'static str, unit: Unit, help: &'static str) -> Family {
    Family { name, unit, kind: Kind::Gauge, label: None, help }
}

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Family {
    Family { name, unit, kind: Kind::Counter, label: None, help }
}

const fn by(label: &'static str, family: Family) -> Family {
    Family { label: Some(label), ..family }
}

/// Declares the families: a constant each, and [`Family::ALL`].
macro_rules! families {
    ($($id:ident = $family:expr;)*) => {
        $(static $id: Family = $family;)*

        impl Family {
            /// All families that a report has figures of.
            pub const ALL: &'static [&'static Self] = &[$(&$id),*];
        }
    };
}

families! {
    RUN = counter("run_s", Unit::Seconds, "Time from the first call of next to the end of the last.");
    ELEMENTS = counter("elements", Unit::None, "Elements (batches) delivered.");
    ELEMENTS_PER_S = gauge("elements_per_s", Unit::None, "Elements (batches) delivered per second of the run.");
    WAIT_SHARE = gauge("wait_share", Unit::Ratio, "Share of the run that the consumer waited in next.");
    STEADY_WAIT = gauge("steady_wait_share", Unit::Ratio, "Share of the run that the consumer waited in next, without the first element.");
    FIRST_WAIT = gauge("first_wait_s", Unit::Seconds, "Wait for the first element.");
    HANDOVER = gauge("handover_share", Unit::Ratio, "Share of the run that the consumer waited for an element that was ready.");
    WAIT = by("cause", gauge("wait", Unit::Ratio, "Share of the run that the consumer waited, by cause."));
    WAIT_S = by("cause", counter("wait_s", Unit::Seconds, "Time that the consumer waited, by cause."));
    LONGEST = gauge("longest_wait_s", Unit::Seconds, "The longest wait after the first, if it took a millisecond or more.");
    NEXT_P50 = gauge("next_p50_s", Unit::Seconds, "Median time of a call of next.");
    NEXT_P99 = gauge("next_p99_s", Unit::Seconds, "99th percentile of the time of a call of next.");
    BUFFER = gauge("buffer_share", Unit::Ratio, "Share of the buffer that was full when the consumer asked, where there is one.");
    THREADS = gauge("threads", Unit::None, "Threads that evaluate elements, 0 for the consumer's own.");
    BUSY = gauge("threads_busy_share", Unit::Ratio, "Share of their time for which those threads had work.");
    CORES = gauge("cores", Unit::None, "Cores that this process may use.");
    TOKENS = counter("tokens", Unit::None, "Tokens in packed rows, without padding.");
    TOKENS_PER_S = gauge("tokens_per_s", Unit::None, "Tokens in packed rows per second of the run.");
    PADDING = gauge("padding_share", Unit::Ratio, "Share of the cells of packed rows that hold padding.");
    WORKERS = gauge("workers", Unit::None, "Worker processes.");
    WORKER_THREADS = gauge("worker_threads", Unit::None, "Threads of each worker process.");
    WORKERS_REPLACED = counter("workers_replaced", Unit::None, "Worker processes that died and were replaced.");
    RAM = gauge("ram_bytes", Unit::Bytes, "Memory of worker processes: private memory now, and the most shared memory at once.");
    RAM_BUDGET = gauge("ram_budget_bytes", Unit::Bytes, "The budget of that memory.");
    SHARED = gauge("shared_bytes", Unit::Bytes, "The most shared memory with worker processes at once.");
    HEAPS = gauge("heap_bytes", Unit::Bytes, "Private memory of all worker processes.");
    HANDED_OVER = counter("handed_over_bytes", Unit::Bytes, "Bytes that came from worker processes.");
    COPIES = counter("copies", Unit::None, "Parts that were copied because views held the shared memory.");
    LINK = by("host", counter("link_bytes", Unit::Bytes, "Bytes that crossed the link to another machine."));
    STAGE_WAIT = by("stage", gauge("stage_wait_share", Unit::Ratio, "Share of the run that the consumer waited because of a stage."));
    STAGE_SELF = by("stage", counter("stage_self_s", Unit::Seconds, "A stage's own work on all threads, estimated from a sample where elements are cheap."));
    STAGE_CPU = by("stage", counter("stage_cpu_s", Unit::Seconds, "The part of a stage's work that was spent on a core."));
    STAGE_BLOCKED = by("stage", counter("stage_blocked_s", Unit::Seconds, "The part of a stage's work that was spent blocked on a disk, a network or a sleep."));
    STAGE_ELEMENTS = by("stage", counter("stage_elements", Unit::None, "Elements that left a stage."));
    STAGE_RATE = by("stage", gauge("stage_elements_per_s", Unit::None, "Elements that left a stage per second of the run."));
    COMPONENT_ELEMENTS = by("component", counter("component_elements", Unit::None, "Elements that a mix took from a component."));
    COMPONENT_TOKENS = by("component", counter("component_tokens", Unit::None, "Tokens of these elements, where the mix counts tokens."));
    COMPONENT_EPOCHS = by("component", gauge("component_epochs", Unit::None, "Epochs of a component that a mix has read to the end and begun again."));
    NOTES = by("note", counter("notes", Unit::None, "Counted remarks: bad records skipped, sequences split, workers replaced and why."));
}

/// Collector of metrics.
struct List(Vec<Metric>);

impl List {
    fn add(&mut self, family: &'static Family, value: f64) {
        self.push(family, None, value);
    }

    fn count(&mut self, family: &'static Family, n: u64) {
        self.push(family, None, n as f64);
    }

    fn of(&mut self, family: &'static Family, label: impl Into<String>, value: f64) {
        self.push(family, Some(label.into()), value);
    }

    fn push(&mut self, family: &'static Family, label: Option<String>, value: f64) {
        self.0.push(Metric { family, label, value: if value.is_finite() { value } else { 0.0 } });
    }
}

impl Report {
    /// Returns the figures of the report under stable names, in the order of [`Family::ALL`]. Families that do not apply to the pass
    /// (workers, packing, a buffer) are left out. Causes without waits are included as 0.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut list = List(Vec::with_capacity(32 + 6 * self.stages.len()));
        list.add(&RUN, self.wall_s);
        list.count(&ELEMENTS, self.delivered);
        list.add(&ELEMENTS_PER_S, self.delivered_per_s());
        list.add(&WAIT_SHARE, self.waits.consumer_wait_share);
        list.add(&STEADY_WAIT, self.waits.steady_wait_share);
        list.add(&FIRST_WAIT, self.waits.first_wait_s);
        list.add(&HANDOVER, self.waits.handover_share);
        let of_cause = |cause| self.waits.why.iter().filter(move |why| why.cause == cause);
        let causes = || Cause::ALL.into_iter().map(|cause| (cause, cause.name()));
        causes().for_each(|(cause, name)| list.of(&WAIT, name, of_cause(cause).map(|why| why.share).sum()));
        causes().for_each(|(cause, name)| list.of(&WAIT_S, name, of_cause(cause).map(|why| why.seconds).sum()));
        list.add(&LONGEST, self.waits.longest_waits.first().map_or(0.0, |wait| wait.wait_s));
        list.add(&NEXT_P50, self.waits.next_p50_us / 1e6);
        list.add(&NEXT_P99, self.waits.next_p99_us / 1e6);
        self.waits.buffer_fill.iter().for_each(|&fill| list.add(&BUFFER, fill));
        list.add(&THREADS, self.execution.threads as f64);
        list.add(&BUSY, self.execution.threads_busy_share);
        list.add(&CORES, self.execution.cores as f64);
        self.packed(&mut list);
        self.workers.iter().for_each(|workers| of_workers(workers, &mut list));
        of_stages(&self.stages, &mut list);
        of_components(&self.components, &mut list);
        let mut notes = BTreeMap::<&str, u64>::new();
        self.notes.iter().for_each(|(what, count)| *notes.entry(what).or_default() += count);
        notes.into_iter().for_each(|(what, count)| list.of(&NOTES, what, count as f64));
        list.0
    }

    /// Returns the [metrics](Self::metrics) as a flat list of [paths](Metric::path) and values. Values are added up if their labels
    /// differ only in punctuation, such as two notes with equal words.
    pub fn flat_metrics(&self) -> Vec<(String, f64)> {
        let mut flat: Vec<(String, f64)> = Vec::new();
        for metric in self.metrics() {
            let path = metric.path();
            match flat.iter_mut().find(|(other, _)| metric.label.is_some() && *other == path) {
                Some((_, value)) => *value += metric.value,
                None => flat.push((path, metric.value)),
            }
        }
        flat
    }

    /// Adds the figures of packing, if rows were packed.
    fn packed(&self, list: &mut List) {
        let noted =
            |what: &str| self.notes.iter().filter(|(note, _)| note == what).map(|(_, count)| *count).sum::<u64>();
        let (tokens, padding) = (noted("real tokens"), noted("padding cells"));
        if tokens + padding > 0 {
            list.count(&TOKENS, tokens);
            list.add(&TOKENS_PER_S, if self.wall_s > 0.0 { tokens as f64 / self.wall_s } else { 0.0 });
            list.add(&PADDING, padding as f64 / (tokens + padding) as f64);
        }
    }
}

fn of_workers(workers: &WorkersReport, list: &mut List) {
    let heaps: u64 = workers.workers.iter().map(|worker| worker.heap_bytes).sum();
    list.count(&WORKERS, workers.workers.len() as u64);
    list.count(&WORKER_THREADS, workers.threads_per_worker as u64);
    list.count(&WORKERS_REPLACED, workers.replaced);
    list.count(&RAM, heaps + workers.slab_high_water_bytes);
    list.count(&RAM_BUDGET, workers.ram_budget);
    list.count(&SHARED, workers.slab_high_water_bytes);
    list.count(&HEAPS, heaps);
    list.count(&HANDED_OVER, workers.handed_over_bytes);
    list.count(&COPIES, workers.copies);
    workers.links.iter().for_each(|link| list.of(&LINK, &*link.host, link.wire_bytes as f64));
}

fn of_components(components: &[ComponentReport], list: &mut List) {
    let mut each = |family, figure: fn(&ComponentReport) -> Option<u64>| {
        for component in components {
            let label = format!("{}_{}", component.mix, component.name);
            figure(component).into_iter().for_each(|figure| list.of(family, label.clone(), figure as f64));
        }
    };
    each(&COMPONENT_ELEMENTS, |component| Some(component.elements));
    each(&COMPONENT_TOKENS, |component| component.tokens);
    each(&COMPONENT_EPOCHS, |component| component.epochs);
}

fn of_stages(stages: &[StageReport], list: &mut List) {
    let mut each = |family, figure: fn(&StageReport) -> f64| {
        stages.iter().for_each(|stage| list.of(family, format!("{}_{}", stage.id, stage.name), figure(stage)));
    };
    each(&STAGE_WAIT, |stage| stage.wait_share);
    each(&STAGE_SELF, |stage| stage.work.self_s);
    each(&STAGE_CPU, |stage| stage.work.cpu_s);
    each(&STAGE_BLOCKED, |stage| stage.work.blocked_s);
    each(&STAGE_ELEMENTS, |stage| stage.elements as f64);
    each(&STAGE_RATE, |stage| stage.elements_per_s);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dataset::map::Range;
    use crate::exec::WorkerReport;
    use crate::{Load, MapDatasetExt};

    fn report(threads: usize) -> Report {
        let dataset = Range::new(0, 99).map(|x| x + 1).to_iter().batch(2);
        let builder = dataset.loader();
        let mut loader = if threads > 0 { builder.threads(threads) } else { builder }.build().unwrap();
        assert_eq!(loader.by_ref().count(), 50);
        loader.report()
    }

    fn value(metrics: &[Metric], path: &str) -> Option<f64> {
        metrics.iter().find(|metric| metric.path() == path).map(|metric| metric.value)
    }

    #[test]
    fn figures_are_those_of_the_report() {
        let report = report(2);
        let metrics = report.metrics();
        let expected = [
            ("input/elements", 50.0),
            ("input/elements_per_s", report.delivered_per_s()),
            ("input/wait_share", report.waits.consumer_wait_share),
            ("input/threads", 2.0),
            ("input/stage_elements/0_range", 99.0),
            ("input/stage_elements/1_map", 99.0),
        ];
        for (path, expected) in expected {
            assert_eq!(value(&metrics, path), Some(expected), "{path}");
        }
        let of = |name| metrics.iter().filter(move |metric| metric.family.name == name).map(|metric| metric.value);
        assert_eq!((of("wait").count(), of("wait_s").count()), (Cause::ALL.len(), Cause::ALL.len()));
        assert!((of("wait").sum::<f64>() - report.waits.why.iter().map(|why| why.share).sum::<f64>()).abs() < 1e-9);
        assert!(value(&metrics, "input/buffer_share").is_some());
        assert_eq!((value(&metrics, "input/tokens"), value(&metrics, "input/workers")), (None, None));
    }

    #[test]
    fn nothing_delivered_is_all_zeros_and_finite() {
        let report = Range::new(0, 9).to_iter().loader().build().unwrap().report();
        for metric in report.metrics().iter().filter(|metric| metric.family.name != "cores") {
            assert_eq!(metric.value, 0.0, "{}", metric.path());
        }
    }

    #[test]
    fn packing_and_workers_have_their_own() {
        let mut report = report(0);
        report.notes = vec![("real tokens".into(), 75), ("padding cells".into(), 25), ("Ünlike notes: (1)".into(), 3)];
        report.wall_s = 3.0;
        let worker = WorkerReport { heap_bytes: 10, ..WorkerReport::default() };
        let workers = vec![worker.clone(), worker];
        report.workers =
            Some(WorkersReport { workers, slab_high_water_bytes: 5, replaced: 1, ..WorkersReport::default() });
        let metrics = report.metrics();
        let expected = [
            ("input/tokens", 75.0),
            ("input/tokens_per_s", 25.0),
            ("input/padding_share", 0.25),
            ("input/notes/nlike_notes_1", 3.0),
            ("input/workers", 2.0),
            ("input/workers_replaced", 1.0),
            ("input/ram_bytes", 25.0),
        ];
        for (path, expected) in expected {
            assert_eq!(value(&metrics, path), Some(expected), "{path}");
        }
    }

    #[test]
    fn notes_of_the_same_words_are_added_up_and_none_is_lost() {
        let mut report = report(0);
        let notes = [("bad records: a", 1), ("bad records (a)", 2), ("bad records, a!", 4), ("other", 8)];
        report.notes = notes.map(|(what, count)| (what.to_owned(), count)).to_vec();
        let flat = report.flat_metrics();
        let told: Vec<_> = flat.iter().filter(|(path, _)| path.starts_with("input/notes/")).collect();
        assert_eq!(told, [&("input/notes/bad_records_a".to_owned(), 7.0), &("input/notes/other".to_owned(), 8.0)]);
        let paths: BTreeSet<_> = flat.iter().map(|(path, _)| path).collect();
        assert_eq!(paths.len(), flat.len());
        // OpenMetrics keeps whole labels, so each note has a separate sample.
        assert_eq!(report.to_openmetrics().matches("gristmill_input_notes_total{").count(), 4);
    }

    #[test]
    fn names_end_in_their_units_and_come_in_the_order_of_the_list() {
        let names: Vec<_> = Family::ALL.iter().map(|family| family.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for family in Family::ALL {
            assert!(family.help.ends_with('.') && family.help.is_ascii(), "{}", family.name);
            let fits = match family.unit {
                Unit::Seconds => family.name.ends_with("_s") && !family.name.ends_with("per_s"),
                Unit::Bytes => family.name.ends_with("_bytes"),
                Unit::Ratio => family.name.ends_with("_share") || family.name == "wait",
                Unit::None => !["_share", "_bytes"].iter().any(|unit| family.name.ends_with(unit)),
            };
            assert!(fits, "{}", family.name);
        }
        let metrics = report(1).metrics();
        let places: Vec<_> =
            metrics.iter().map(|metric| names.iter().position(|name| *name == metric.family.name)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted());
        let paths: BTreeSet<_> = metrics.iter().map(Metric::path).collect();
        assert_eq!(paths.len(), metrics.len());
    }
}
