//! The screen: lines of the last minute, a table, and the verdict. It fits 80 × 24, and uses all available space.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Wrap};

use super::seen::{Lines, Seen, Tab};
use crate::cli::format::{count, percent, time};
use crate::live::top::Frame as Told;
use crate::report::format::bytes;
use crate::report::{StageReport, who};

/// Columns for the names left of the lines; `DETAILS` is for the words right of them.
const NAMES: u16 = 10;
const DETAILS: u16 = 24;
/// Heights of a bar.
const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Palette with or without colours.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn of(self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }

    fn soft(self) -> Style {
        if self.0 { Style::new().fg(Color::DarkGray) } else { Style::new() }
    }

    fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

pub(super) fn draw(to: &mut Frame<'_>, seen: &Seen) {
    let paint = Paint(seen.has_colours);
    let Some(told) = &seen.frame else {
        let text = seen.over.as_deref().unwrap_or("waiting for the run");
        to.render_widget(Paragraph::new(text), to.area());
        return;
    };
    let verdict = verdict(told, to.area().width);
    let [head, ribbon, table, words, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(6),
        Constraint::Min(3),
        Constraint::Length(verdict.len().min(5) as u16 + 1),
        Constraint::Length(1),
    ])
    .areas(to.area());
    to.render_widget(Paragraph::new(title(told, seen, paint, head.width)), head);
    to.render_widget(Paragraph::new(lines(told, seen, paint, ribbon.width)), ribbon);
    match seen.tab {
        Tab::Stages => stages(to, table, told, paint),
        Tab::Workers => workers(to, table, told, seen),
        Tab::Elements => elements(to, table, told),
    }
    to.render_widget(Paragraph::new(verdict).wrap(Wrap { trim: true }), words);
    to.render_widget(Paragraph::new(menu(seen.tab)), keys);
}

/// Formats the process, its state and its speed.
fn title(told: &Told, seen: &Seen, paint: Paint, width: u16) -> Vec<Line<'static>> {
    let report = &told.report;
    let state = match (&seen.over, told.waiting_s) {
        (Some(over), _) => Span::styled(format!(" {over} "), Style::new().add_modifier(Modifier::REVERSED)),
        (None, Some(waiting)) if waiting > 0.5 => {
            Span::styled(format!(" waits now, for {} ", time(waiting * 1e6)), paint.of(Color::Red).patch(Paint::bold()))
        }
        _ => Span::raw(""),
    };
    let room = usize::from(width).saturating_sub(state.width() + 24);
    let command: String = told.command.chars().take(room).collect();
    vec![
        Line::from(vec![
            Span::styled(format!("process {}  ", told.pid), Paint::bold()),
            Span::raw(command),
            Span::raw(" "),
            state,
        ]),
        Line::from(format!(
            "{} · {} batches · {}/s · next() p50 {} p99 {} · {}",
            time(report.wall_s * 1e6),
            count(report.delivered as f64),
            count(report.delivered_per_s()),
            time(report.waits.next_p50_us),
            time(report.waits.next_p99_us),
            report.execution.executor
        )),
    ]
}

/// Formats the lines of the last minute.
fn lines(told: &Told, seen: &Seen, paint: Paint, width: u16) -> Vec<Line<'static>> {
    let report = &told.report;
    let room = usize::from(width.saturating_sub(NAMES + DETAILS + 1).max(10));
    let shares = Lines::of(seen, room);
    let line = |name: &str, values: &[f64], colour: Color, detail: String| {
        let bar: String = values.iter().map(|value| bar(*value)).collect();
        Line::from(vec![
            Span::styled(format!("{name:<10}"), paint.soft()),
            Span::styled(bar, paint.of(colour)),
            Span::raw(format!(" {detail}")),
        ])
    };
    let mean =
        |values: &[f64]| format!("{:.0} % busy", 100.0 * values.iter().sum::<f64>() / values.len().max(1) as f64);
    let most = shares.memory.iter().copied().fold(0.0, f64::max);
    let memory: Vec<f64> = shares.memory.iter().map(|value| value / most.max(1.0)).collect();
    let waited = format!("waited {}", percent(report.waits.consumer_wait_share));
    let mut all = vec![line("your step", &shares.waits, Color::Red, waited)];
    if let Some(fill) = report.waits.buffer_fill {
        all.push(line("ready", &shares.ready, Color::Green, format!("buffer {:.0} % full", 100.0 * fill)));
    }
    all.push(line("in order", &shares.in_order, Color::Blue, mean(&shares.in_order)));
    if report.execution.threads > 0 {
        let (name, who) = match &report.workers {
            Some(workers) => ("workers", format!("{} × {} threads", workers.workers.len(), workers.threads_per_worker)),
            None => ("threads", format!("{} threads", report.execution.threads)),
        };
        all.push(line(name, &shares.threads, Color::Blue, format!("{who}, {}", mean(&shares.threads))));
    }
    all.push(line("memory", &memory, Color::Cyan, bytes(most)));
    all
}

/// Returns the bar of a share; blank if the share is below 1 %.
fn bar(share: f64) -> char {
    match share {
        share if share < 0.01 || share.is_nan() => ' ',
        share => STEPS[((share * STEPS.len() as f64) as usize).min(STEPS.len() - 1)],
    }
}

fn stages(to: &mut Frame<'_>, area: Rect, told: &Told, paint: Paint) {
    let worst = told.report.stages.iter().map(|stage| stage.wait_share).fold(0.0, f64::max);
    let part = |seconds: f64, stage: &StageReport| match stage.work.self_s {
        all if all > 0.0 => format!("{:.0}%", 100.0 * seconds / all),
        _ => "–".to_owned(),
    };
    let dash = |is: bool, text: String| if is { text } else { "–".to_owned() };
    let rows = told.report.stages.iter().rev().map(|stage| {
        let style = if worst > 0.01 && stage.wait_share == worst { paint.of(Color::Red) } else { Style::new() };
        let worked = stage.work.self_s > 0.0;
        row([
            format!("{} {}", stage.id, stage.name),
            dash(worked, format!("{:.1}%", 100.0 * stage.wait_share)),
            dash(worked, time(stage.self_us_per_element)),
            part(stage.work.cpu_s, stage),
            part(stage.work.blocked_s, stage),
            dash(stage.elements > 0, count(stage.elements as f64)),
            dash(stage.elements > 0, count(stage.elements_per_s)),
            dash(stage.bytes_per_s > 0.0, bytes(stage.bytes_per_s)),
        ])
        .style(style)
    });
    let widths = [Constraint::Min(14), width(7), width(9), width(5), width(6), width(8), width(8), width(10)];
    let head = ["stage", "wait %", "self/elem", "cpu", "waits", "elements", "elem/s", "bytes/s"];
    table(to, area, rows, &widths, head);
}

fn workers(to: &mut Frame<'_>, area: Rect, told: &Told, seen: &Seen) {
    let Some(workers) = &told.report.workers else {
        let busy = format!("{:.0} %", 100.0 * told.report.execution.threads_busy_share);
        let text = match told.report.execution.threads {
            0 => "The consumer's own thread evaluates everything.".to_owned(),
            threads => format!("{threads} threads of this process evaluate elements, busy {busy} of the time."),
        };
        let decisions = told.report.decisions.iter().rev().map(|decision| format!("tuned at {decision}"));
        let text: Vec<Line<'_>> = std::iter::once(text).chain(decisions).map(Line::from).collect();
        return to.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
    };
    let rows = workers.workers.iter().map(|worker| {
        let cores = seen.cores_of(worker.number, worker.cpu_s);
        row([
            worker.number.to_string(),
            worker.pid.to_string(),
            worker.host.clone().unwrap_or_else(|| "here".to_owned()),
            cores.map_or_else(|| "–".to_owned(), |cores| format!("{:.0}%", 100.0 * cores)),
            bytes(worker.heap_bytes as f64),
            bytes(worker.heap_limit_bytes as f64),
            count(worker.tasks as f64),
        ])
    });
    let widths = [Constraint::Min(7), width(9), width(14), width(6), width(10), width(10), width(8)];
    table(to, area, rows, &widths, ["worker", "pid", "machine", "cpu", "private", "limit", "tasks"]);
}

fn elements(to: &mut Frame<'_>, area: Rect, told: &Told) {
    let waits = &told.report.waits.longest_waits;
    if waits.is_empty() {
        return to.render_widget(Paragraph::new("No wait after the first took a millisecond."), area);
    }
    let rows = waits.iter().map(|wait| {
        let stage = wait.stage.and_then(|stage| told.report.stages.get(stage));
        row([
            time(wait.wait_s * 1e6),
            format!("{:.1} s", wait.at_s),
            count(wait.batch as f64),
            wait.cause.name().replace('_', " "),
            stage.map_or_else(|| "–".to_owned(), |stage| format!("{} {}", stage.id, stage.name)),
            who(wait).unwrap_or_else(|| "–".to_owned()),
        ])
    });
    let widths = [width(9), width(8), width(8), width(12), width(14), Constraint::Min(20)];
    // Names of files are often too long for their column.
    let longest = waits.iter().find_map(who).map(|who| format!("longest {who}")).unwrap_or_default();
    let [upper, lower] = Layout::vertical([Constraint::Min(3), Constraint::Length(2)]).areas(area);
    table(to, upper, rows, &widths, ["wait", "at", "batch", "cause", "stage", "element"]);
    to.render_widget(Paragraph::new(longest).wrap(Wrap { trim: true }), lower);
}

const fn width(columns: u16) -> Constraint {
    Constraint::Length(columns)
}

fn row<const N: usize>(cells: [String; N]) -> Row<'static> {
    Row::new(cells.map(Cell::from))
}

fn table<'a, const N: usize>(
    to: &mut Frame<'_>,
    area: Rect,
    rows: impl Iterator<Item = Row<'a>>,
    widths: &[Constraint; N],
    head: [&'static str; N],
) {
    let head = Row::new(head).style(Paint::bold());
    to.render_widget(Table::new(rows, *widths).header(head).column_spacing(1), area);
}

/// Formats the verdict and its first advice, wrapped to `width` columns.
fn verdict(told: &Told, width: u16) -> Vec<Line<'static>> {
    let verdict = &told.report.verdict;
    let first = std::iter::once(format!("VERDICT {}", verdict.text));
    let advice = verdict.advice.iter().take(1).map(|advice| format!("do      {}", advice.text));
    let mut lines = Vec::new();
    for text in first.chain(advice) {
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > usize::from(width) {
                lines.push(std::mem::replace(&mut line, " ".repeat(8)));
            } else if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.into_iter().map(Line::from).collect()
}

fn menu(tab: Tab) -> Line<'static> {
    let entries = [
        ("s", "stages", Some(Tab::Stages)),
        ("w", "workers", Some(Tab::Workers)),
        ("e", "worst elements", Some(Tab::Elements)),
        ("q", "quit", None),
    ];
    let spans = entries.into_iter().flat_map(|(key, name, of)| {
        let style = if of == Some(tab) { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        [Span::styled(format!(" {key} {name} "), style), Span::raw(" ")]
    });
    Line::from(spans.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
