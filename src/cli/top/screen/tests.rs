use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;

use super::*;
use crate::report::Interval;

/// A minute of a run that is written down.
fn seen(has_colours: bool, tab: Tab) -> Seen {
    let frame: Told = serde_json::from_str(include_str!("frame.json")).unwrap();
    let mut seen = Seen::new(has_colours);
    seen.tab = tab;
    let before = {
        let mut before = frame.clone();
        before.at_s -= 1.0;
        before
            .report
            .workers
            .iter_mut()
            .flat_map(|workers| &mut workers.workers)
            .for_each(|worker| worker.cpu_s -= 1.5);
        before
    };
    seen.add(before);
    let intervals = (0..600_u64).map(|tenth| {
        let between = [tenth, tenth + 1].map(|tenth| tenth * 100_000_000);
        let waited = if (400..430).contains(&tenth) { 90_000_000 } else { 2_000_000 };
        serde_json::from_value::<Interval>(serde_json::json!({
            "from": between[0], "to": between[1], "shares": {"head_of_line": waited}, "elements": 2, "work": [0.1, 0.0, 0.5, 0.004],
            "ready": if tenth < 400 { 3 } else { 1 }, "looks": 1, "memory": 1_200_000_000_u64 + tenth * 1_000_000,
        }))
        .unwrap()
    });
    let mut frame = frame;
    frame.intervals = intervals.collect();
    seen.add(frame);
    seen
}

fn screen(width: u16, height: u16, seen: &Seen) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, seen)).unwrap();
    terminal
}

fn text(width: u16, height: u16, seen: &Seen) -> String {
    screen(width, height, seen).backend().to_string()
}

#[test]
fn a_small_terminal_shows_all_tables() {
    insta::assert_snapshot!("stages", text(80, 24, &seen(true, Tab::Stages)));
    insta::assert_snapshot!("workers", text(80, 24, &seen(true, Tab::Workers)));
    insta::assert_snapshot!("elements", text(80, 24, &seen(true, Tab::Elements)));
}

#[test]
fn a_wide_terminal_shows_more_of_each() {
    insta::assert_snapshot!("wide", text(132, 30, &seen(true, Tab::Elements)));
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(60, 20), (40, 10), (20, 5), (5, 2), (1, 1)] {
        for tab in [Tab::Stages, Tab::Workers, Tab::Elements] {
            assert!(!text(width, height, &seen(false, tab)).is_empty());
        }
    }
    assert!(text(60, 20, &seen(false, Tab::Stages)).contains("VERDICT tokenise (stage 2) limits the run"));
}

#[test]
fn without_colours_there_are_none() {
    let colours = |has: bool| {
        let terminal = screen(80, 24, &seen(has, Tab::Stages));
        terminal
            .backend()
            .buffer()
            .content()
            .iter()
            .filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
            .count()
    };
    assert_eq!(colours(false), 0);
    assert!(colours(true) > 0);
}

#[test]
fn a_run_that_has_not_spoken_or_is_over_is_told() {
    assert!(text(80, 24, &Seen::new(true)).contains("waiting for the run"));
    let mut over = seen(true, Tab::Stages);
    over.over = Some("the run is over".into());
    let text = text(80, 24, &over);
    assert!(text.contains("the run is over") && !text.contains("waits now"), "{text}");
}

#[test]
fn lines_add_up_to_what_was_waited() {
    let seen = seen(true, Tab::Stages);
    let lines = Lines::of(&seen, 40);
    let waited: f64 =
        seen.intervals.iter().flat_map(|interval| interval.shares.iter()).map(|(_, time)| time.as_secs_f64()).sum();
    let shown: f64 = lines.waits.iter().sum::<f64>() * 60.0 / 40.0;
    assert!((shown - waited).abs() < 1e-6, "{shown} {waited}");
    assert!(lines.ready[0] > 0.7 && lines.ready[39] < 0.3 && lines.waits[27] > 0.8, "{lines:?}");
    assert_eq!(seen.intervals.back().unwrap().to, Duration::from_secs(60));
}
