//! The report as a single, self-contained page.

use std::fmt::Write;

use super::super::format::{bytes, count, percent, time};
use super::super::{LongWait, Place, Report, StageReport, text, why};
use super::chart::{Chart, Line, Scale};
use super::columns::Columns;
use super::document::{self, foot, shell};
use super::row::{self, Row};
use super::svg::{escaped, with_code};
use super::tracks::{Entry, RUN, Track, axis, cause, legend, meaning, tracks};
use super::{heat, histogram};
use crate::cx::Cause;

/// Number of columns of the ribbon.
const COLUMNS: usize = 480;
/// Place on the axis after which a narrow page has no room for both a tick and the end time.
const LATE: f64 = 0.76;
/// Smallest distance between the numbers of two waits above the ribbon.
const CLOSE: f64 = 0.035;
/// Number of waits that are numbered in the ribbon, and number of waits in the table.
const MARKED: usize = 5;
const LISTED: usize = 12;
/// Maximum number of workers whose memory is shown.
const SHOWN: usize = 16;

/// Returns the page. `facts` are pairs of a name and a value that the report does not contain.
pub(super) fn page(report: &Report, facts: &[(&str, String)]) -> String {
    let columns = Columns::of(report, COLUMNS);
    let mut body = top(report);
    body += &ribbon(report, &columns);
    body += &advice(report);
    body += &gaps(report);
    body += &stages(report);
    body += &heat::stages(report, &columns);
    body += &heat::buffer(report, &columns);
    body += &histogram::section(report);
    body += &cells(report);
    body += &document::section("Memory of workers, within their budget", &budget(report));
    body += &decisions(report);
    body += &remarks(report);
    body += &about(report, facts);
    let behind = format!(
        "<div id=\"tip\" role=\"status\"></div>\n<script type=\"application/json\" id=\"data\">{}</script>\n<script>{}</script>",
        data(report, &columns),
        include_str!("page.js")
    );
    shell(&headline(report), &body, &behind)
}

/// Returns the headline: the throughput if the run was only drained, otherwise the consumer's wait.
pub(super) fn headline(report: &Report) -> String {
    if report.delivered == 0 {
        return "Nothing was delivered yet".to_owned();
    }
    if report.is_drained {
        return format!("{} batches a second", count(report.delivered_per_s()));
    }
    format!("The consumer waited {} of the time", percent(report.waits.consumer_wait_share))
}

fn top(report: &Report) -> String {
    let busy = if report.execution.threads > 0 {
        format!(", {:.0} % busy", report.execution.threads_busy_share * 100.0)
    } else {
        String::new()
    };
    let run = format!(
        "{} · {} batches · {}/s · {}{busy}",
        time(report.wall_s * 1e6),
        count(report.delivered as f64),
        count(report.delivered_per_s()),
        report.execution.executor
    );
    let part = report
        .execution
        .part
        .as_ref()
        .map_or_else(String::new, |part| format!("<p class=\"soft\">Part {}</p>", escaped(part)));
    document::head(&headline(report), &(sentence(&report.verdict.text) + "."), &run, &part)
}

/// Capitalises the first letter of a text, unless the text begins with the name of a stage.
fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = [
        "single",
        "nothing",
        "too",
        "the",
        "start-up",
        "hand-over",
        "stores",
        "another",
        "transfers",
        "what",
        "workers",
        "going",
    ]
    .contains(&first);
    match text.chars().next() {
        Some(c) if is_word => c.to_uppercase().chain(text.chars().skip(1)).collect(),
        _ => text.to_owned(),
    }
}

fn ribbon(report: &Report, columns: &Columns) -> String {
    if columns.all.is_empty() {
        return String::new();
    }
    let mut out = "<section class=\"ribbon scaled\" aria-label=\"What happened when\">".to_owned();
    let waits = marked(report).map(|(number, wait)| {
        (columns.place(wait.at_s + wait.wait_s / 2.0), number.to_string(), chain(wait, &report.stages))
    });
    let mark = |(place, numbers, text): (f64, String, String)| {
        format!("<b style=\"left:{:.2}%\" title=\"{}\">{numbers}</b>", 100.0 * place, escaped(&text))
    };
    let marks: String = apart(waits.collect()).into_iter().map(mark).collect();
    let _ = write!(out, "<div class=\"track bare\"><span></span><div class=\"marks\">{marks}</div></div>");
    for Track { name, detail, shapes, height, scale } in tracks(report, columns) {
        out += &Row { name, detail: &detail, height, scale: &scale, shapes: &shapes }.markup();
    }
    // The end always has a time. In a narrow page it replaces a late tick.
    let tick = |(place, text): &(f64, String)| {
        let late = if *place > LATE { " class=\"late\"" } else { "" };
        format!("<span{late} style=\"left:{:.2}%\">{}</span>", place * 100.0, escaped(text))
    };
    let ticks: String = axis(columns.span()).iter().map(tick).collect();
    let end = escaped(&time(columns.span() * 1e6));
    out += &row::whole_axis("axis", &format!("{ticks}<span class=\"end\">{end}</span>"), RUN);
    out += "<div id=\"line\"></div><ul class=\"legend\"><li><i class=\"busy\"></i>at work</li>";
    for Entry { cause, class, name, meaning, share } in legend(report, columns) {
        let share = percent(share);
        let _ = write!(out, "<li><i class=\"{class}\"></i>{} <em>{share}</em></li>", explained(cause, name, meaning));
    }
    out + "</ul></section>\n"
}

/// Merges marks that would touch in a narrow page. Each mark has a place, a label and a text.
fn apart(mut marks: Vec<(f64, String, String)>) -> Vec<(f64, String, String)> {
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut kept: Vec<(f64, String, String)> = Vec::new();
    for (place, label, text) in marks {
        match kept.last_mut() {
            // A label of several numbers is wider.
            Some(last) if place - last.0 < CLOSE * last.1.split(", ").count() as f64 => {
                last.1 += &format!(", {label}");
                last.2 += &format!("\n{text}");
            }
            _ => kept.push((place, label, text)),
        }
    }
    kept
}

/// Documentation of a cause: the section of the variant in the API reference.
const REFERENCE: &str = "https://docs.rs/gristmill/latest/gristmill/report/enum.Cause.html#variant.";

/// Returns a text about a cause, with its meaning as a tooltip and a link to its documentation.
fn explained(cause: Cause, text: &str, meaning: &str) -> String {
    format!("<a href=\"{REFERENCE}{cause:?}\" title=\"{}\">{}</a>", escaped(meaning), escaped(text))
}

/// Returns the longest waits, each with its number in the ribbon.
fn marked(report: &Report) -> impl Iterator<Item = (usize, &LongWait)> {
    report.picture.waits.iter().take(MARKED).enumerate().map(|(at, wait)| (at + 1, wait))
}

/// Describes the chain from a wait to its cause.
pub(super) fn chain(wait: &LongWait, stages: &[StageReport]) -> String {
    let name = |id: Option<usize>| {
        id.and_then(|id| stages.get(id)).map(|stage| format!("{} (stage {})", stage.name, stage.id))
    };
    let ms = |seconds: f64| time(seconds * 1e6);
    let mut text = format!("batch {} was waited for {}", wait.batch, ms(wait.wait_s));
    text += match wait.cause {
        Cause::Start => ": it was the first",
        Cause::Restore => ": it was the first after a restore",
        Cause::Memory => ": a chunk waited for memory within the budget",
        Cause::Leases => ": a chunk waited for memory that earlier batches held",
        Cause::Store => ": a chunk waited for a store",
        Cause::Death => ": a worker died, and its work was repeated",
        Cause::Lock => ": another thread held the interpreter's lock",
        Cause::Transfer => ": it was ready, and the device accepted no transfer",
        Cause::Reader => ": the stages on the single thread were busy",
        Cause::Queue => ": a chunk waited for a free thread",
        Cause::Evaluation => ": a chunk was being evaluated",
        Cause::HeadOfLine => ": one chunk took long, and later chunks were ready",
        Cause::HandOver => ": a chunk was done and on its way to the consumer",
    };
    if wait.cause == Cause::Reader {
        let there = stages.iter().filter(|stage| stage.place == Place::Suffix);
        let most = there.max_by(|a, b| a.work.self_s.total_cmp(&b.work.self_s)).filter(|stage| stage.work.self_s > 0.0);
        text += &most.map_or_else(String::new, |stage| format!(", mostly {}", stage.name));
    }
    if let Some(who) = why::who(wait) {
        let took = wait.took_s.map_or_else(String::new, |took| format!(", took {}", ms(took)));
        let stage = name(wait.stage).map_or_else(String::new, |stage| format!(" in {stage}"));
        let _ = write!(text, "; the slowest part: {who}{took}{stage}");
    }
    text
}

fn advice(report: &Report) -> String {
    let mut out = String::new();
    if report.verdict.advice.is_empty() {
        return out;
    }
    out += "<section><h2>What to do</h2><ol class=\"do\">";
    for advice in &report.verdict.advice {
        let _ = write!(
            out,
            "<li>{} — <b>up to {}</b></li>",
            with_code(&advice.text),
            escaped(&text::gain(advice.expected_speedup))
        );
    }
    out + "</ol></section>\n"
}

fn gaps(report: &Report) -> String {
    let waits = &report.picture.waits;
    if waits.is_empty() {
        return String::new();
    }
    let mut out =
        "<section><h2>The longest gaps</h2><div class=\"scroll\"><table><thead><tr><th></th><th>waited</th><th>at</th>\
                   <th>batch</th><th class=\"l\">because of</th></tr></thead><tbody>"
            .to_owned();
    for (at, wait) in waits.iter().take(LISTED).enumerate() {
        let number = if at < MARKED { format!("<b>{}</b>", at + 1) } else { String::new() };
        let because = chain(wait, &report.stages);
        let because = because.split_once(": ").map_or(because.as_str(), |(_, because)| because);
        let (class, _) = cause(wait.cause);
        let (what, more) = because.split_at(because.find(';').unwrap_or(because.len()));
        let _ = write!(
            out,
            "<tr data-wait=\"{at}\"><td class=\"l\">{number}</td><td>{}</td><td>{:.2} s</td><td>{}</td><td class=\"w\">\
             <i class=\"bar {class}\" style=\"width:9px;background:currentColor\"></i> {}{}</td></tr>",
            escaped(&time(wait.wait_s * 1e6)),
            wait.at_s - report.start_s(),
            wait.batch,
            explained(wait.cause, what, meaning(wait.cause)),
            escaped(more)
        );
    }
    out + "</tbody></table></div></section>\n"
}

/// Columns of the table of stages, with their meanings.
const STAGE_HEAD: [(&str, &str); 8] = [
    ("stage", "Stages from last to first"),
    ("waited for it", "Share of the run in which the loop waited for this stage"),
    ("own work per element", "Mean time of the stage for an element, without the stages before it"),
    ("p99", "1 % of the elements took longer than this"),
    ("on a core", "Share of its work that was computation; the rest was waiting"),
    ("elements", "Number of elements that the stage yielded"),
    ("elements/s", "Elements a second of the run"),
    ("bytes/s", "Bytes a second of the run"),
];

fn stages(report: &Report) -> String {
    let most = report.stages.iter().map(|stage| stage.wait_share).fold(0.0, f64::max);
    let head: String = STAGE_HEAD
        .iter()
        .enumerate()
        .map(|(at, (name, meaning))| {
            let left = if at < 2 { " class=\"l\"" } else { "" };
            format!("<th{left} title=\"{meaning}\">{name}</th>")
        })
        .collect();
    let mut out = format!("<section><h2>Stages</h2><div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>");
    for stage in report.stages.iter().rev() {
        let dash = |shown: bool, text: String| if shown { escaped(&text) } else { "–".to_owned() };
        let worked = stage.work.self_s > 0.0;
        let known = stage.work.cpu_s + stage.work.blocked_s + stage.work.lock_s > 0.0;
        let width = if most > 0.0 { 60.0 * stage.wait_share / most } else { 0.0 };
        let _ = write!(
            out,
            "<tr><td class=\"l\">{} <small>stage {}</small></td><td class=\"l\"><i class=\"bar\" style=\"width:{width:.0}px\"></i> {}</td>\
             <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&stage.name),
            stage.id,
            dash(worked, percent(stage.wait_share)),
            dash(worked, time(stage.self_us_per_element)),
            dash(worked, time(stage.p99_us)),
            dash(worked && known, format!("{:.0} %", 100.0 * stage.work.cpu_s / stage.work.self_s)),
            dash(stage.elements > 0, count(stage.elements as f64)),
            dash(stage.elements > 0, count(stage.elements_per_s)),
            dash(stage.bytes_per_s > 0.0, bytes(stage.bytes_per_s)),
        );
    }
    out + "</tbody></table></div></section>\n"
}

/// Returns a chart of the memory of workers and its limits; empty without workers on this machine.
fn budget(report: &Report) -> Chart {
    let mut chart = Chart::default();
    let Some(workers) = &report.workers else { return chart };
    let own = workers.workers.iter().filter(|worker| worker.heap_limit_bytes > 0).take(SHOWN);
    let parts: Vec<(String, u64, u64)> = own
        .map(|worker| (format!("worker {}", worker.number), worker.heap_bytes, worker.heap_limit_bytes))
        .chain([("shared memory".to_owned(), workers.slab_high_water_bytes, workers.slab_bytes)])
        .collect();
    if workers.ram_budget == 0 {
        return chart;
    }
    let scale = Scale::to(workers.ram_budget as f64);
    let size = |size: u64| bytes(size as f64);
    for (name, used, most) in parts {
        let line = Line::new(name, format!("{} · of {}", size(used), size(most)))
            .bar("busy", 0.0, scale.at(most as f64))
            .bar("memory", 0.0, scale.at(used as f64));
        chart.line(line.mark("ink", scale.at(workers.ram_budget as f64), (0.0, 1.0)));
    }
    chart.axis(&scale.ticks_of_bytes(), "memory");
    let all = format!("the budget of all, {}", size(workers.ram_budget));
    chart.legend(&[("memory", "used"), ("busy", "may be used"), ("ink", &all)]);
    chart
}

/// Returns the charts of sequence lengths and padding.
fn cells(report: &Report) -> String {
    report.picture.cells.charts().iter().map(|(heading, chart)| document::section(heading, chart)).collect()
}

fn decisions(report: &Report) -> String {
    let workers = report.workers.iter().flat_map(|workers| &workers.decisions);
    let lines: String = report
        .decisions
        .iter()
        .chain(workers)
        .map(|decision| format!("<li>at {}</li>", escaped(&decision.to_string())))
        .collect();
    if lines.is_empty() {
        lines
    } else {
        format!("<section><h2>What the tuner changed</h2><ul>{lines}</ul></section>\n")
    }
}

fn remarks(report: &Report) -> String {
    let notes = report.notes.iter().map(|(what, n)| format!("{what}: {}", count(*n as f64)));
    let startup = report.waits.startup.iter().map(|cause| format!("start-up: {cause}"));
    let all: String = startup
        .chain(notes)
        .chain(report.remarks.iter().cloned())
        .map(|line| format!("<li>{}</li>", escaped(&line)))
        .collect();
    if all.is_empty() { all } else { format!("<section><h2>Notes</h2><ul>{all}</ul></section>\n") }
}

fn about(report: &Report, facts: &[(&str, String)]) -> String {
    let mut parts = vec![format!("{} cores", report.execution.cores)];
    if let Some(workers) = &report.workers {
        parts.push(format!(
            "budget of workers {}, of it shared {}, {} used at most",
            bytes(workers.ram_budget as f64),
            bytes(workers.slab_bytes as f64),
            bytes(workers.slab_high_water_bytes as f64)
        ));
    }
    parts.extend(facts.iter().map(|(name, value)| format!("{name} {value}")));
    foot(parts)
}

/// Returns the data of the script for its tooltips: waits by cause in thousandths of each column, and the longest waits.
fn data(report: &Report, columns: &Columns) -> String {
    let thousandths = |share: &f64| (share * 1000.0).round() as u32;
    let shares: Vec<Vec<u32>> =
        columns.all.iter().map(|column| column.waits.iter().map(thousandths).collect()).collect();
    let waits = report.picture.waits.iter().map(|wait| {
        let at = wait.at_s - columns.start;
        serde_json::json!({"at": at, "wait": wait.wait_s, "place": columns.place(wait.at_s), "text": chain(wait, &report.stages)})
    });
    let waits = waits.collect::<Vec<_>>();
    let names = Cause::ALL.map(|kind| cause(kind).1);
    // In MiB, which is precise enough for a tooltip.
    let mib = |bytes: u64| bytes >> 20;
    let memory = columns.all.iter().map(|column| [mib(column.memory as u64), mib(column.workers.used())]);
    let memory: Vec<[u64; 2]> = memory.collect();
    let data = serde_json::json!({
        "columns": shares, "width": columns.width, "causes": names, "waits": waits, "memory": memory
    });
    // Escaped so that no text ends the script element.
    data.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_meaning_and_a_link_to_its_documentation() {
        let source = include_str!("../../cx/waits/cause.rs");
        for kind in Cause::ALL {
            let link = explained(kind, cause(kind).1, meaning(kind));
            let (_, variant) = link.split_once("#variant.").unwrap();
            let variant = variant.split('"').next().unwrap();
            let documented = source.find(&format!("\n    {variant},\n")).map(|at| source[..at].lines().last().unwrap());
            assert!(documented.is_some_and(|line| line.starts_with("    /// ")), "{variant} is not documented");
            let row = format!("| `{0}`{{ #{0} }} |", kind.name());
            assert!(include_str!("../../../python/docs/waits.md").contains(&row), "waits.md has no row of {variant}");
            assert!(
                link.contains(&format!("title=\"{}\"", escaped(meaning(kind)))) && meaning(kind).ends_with('.'),
                "{link}"
            );
        }
    }

    #[test]
    fn numbers_of_close_waits_share_a_place() {
        let mark = |place: f64, label: &str| (place, label.to_owned(), format!("wait {label}"));
        let marks = apart(vec![mark(0.5, "1"), mark(0.9, "2"), mark(0.51, "3"), mark(0.0, "4")]);
        let shown: Vec<_> = marks.iter().map(|(place, label, _)| (*place, label.as_str())).collect();
        assert_eq!(shown, [(0.0, "4"), (0.5, "1, 3"), (0.9, "2")]);
        assert_eq!(marks[1].2, "wait 1\nwait 3");
    }
}
