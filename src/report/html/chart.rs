//! Charts of pages: lines below each other, each with a name, shapes on an axis that all share, and words.

use std::fmt::Write;

use super::super::format::bytes;
use super::svg::{self, HEIGHT, WIDTH, escaped, number};

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    name: String,
    detail: String,
    shapes: String,
    height: u32,
}

impl Line {
    /// A line of that name, with words beside it.
    pub(crate) fn new(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), detail: detail.into(), shapes: String::new(), height: 22 }
    }

    /// The same, of so many pixels.
    pub(crate) fn high(self, height: u32) -> Self {
        Self { height, ..self }
    }

    /// Adds a bar over all of its height. Places are shares of the axis, from 0 to 1; what lies outside is cut off.
    pub(crate) fn bar(self, class: &'static str, from: f64, to: f64) -> Self {
        self.lane(class, (from, to), (0.0, 1.0))
    }

    /// Adds a bar over a part of its height, from the top.
    pub(crate) fn lane(mut self, class: &'static str, (from, to): (f64, f64), (top, bottom): (f64, f64)) -> Self {
        let [from, to, top, bottom] = [from, to, top, bottom].map(|share| share.clamp(0.0, 1.0));
        if to > from && bottom > top {
            let [x, w] = [from, to - from].map(|share| number(share * WIDTH));
            let [y, h] = [top, bottom - top].map(|share| number(share * HEIGHT));
            let _ = write!(self.shapes, "<path class=\"{class}\" d=\"M{x} {y}h{w}v{h}h-{w}z\"/>");
        }
        self
    }

    /// Adds a thin mark at a place.
    pub(crate) fn mark(self, class: &'static str, at: f64, lane: (f64, f64)) -> Self {
        // Two pixels where a page is wide.
        let half = 1.5 / WIDTH;
        self.lane(class, (at - half, at + half), lane)
    }

    /// Adds bars side by side over all of its width, whose heights are these shares.
    pub(crate) fn bars(mut self, class: &'static str, heights: &[f64]) -> Self {
        self.shapes += &svg::area(class, heights);
        self
    }

    /// Adds bars as [`bars`](Self::bars) does, with gaps between them.
    pub(crate) fn columns(mut self, class: &'static str, heights: &[f64]) -> Self {
        let each = 1.0 / heights.len().max(1) as f64;
        for (at, height) in heights.iter().enumerate() {
            let from = (at as f64 + 0.08) * each;
            self = self.lane(class, (from, from + 0.84 * each), (1.0 - height.clamp(0.0, 1.0), 1.0));
        }
        self
    }
}

/// A chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    lines: String,
    axis: String,
    legend: String,
}

impl Chart {
    /// Adds a line below the others.
    pub(crate) fn line(&mut self, line: Line) {
        let label = format!("{}: {}", line.name, line.detail);
        let _ = write!(
            self.lines,
            "<div class=\"track\" style=\"--h:{}px\"><div class=\"name\">{}</div><div class=\"plot\">{}</div><div class=\"detail\">{}</div></div>",
            line.height,
            escaped(&line.name),
            svg::stretched(&label, &line.shapes),
            svg::in_parts(&line.detail)
        );
    }

    /// Sets what stands below the lines: places from 0 to 1, and texts.
    pub(crate) fn axis(&mut self, ticks_at: &[(f64, String)]) {
        let ticks: String = ticks_at
            .iter()
            .map(|(place, text)| format!("<span style=\"left:{:.2}%\">{}</span>", place * 100.0, escaped(text)))
            .collect();
        // Texts stand in the middle of their places, but for one at the very beginning.
        let class = if ticks_at.first().is_some_and(|(place, _)| *place > 0.01) { "axis mid" } else { "axis" };
        self.axis = format!("<div class=\"track bare\"><span></span><div class=\"{class}\">{ticks}</div></div>");
    }

    /// Sets the names of its colours.
    pub(crate) fn legend(&mut self, names: &[(&'static str, &str)]) {
        let names: String =
            names.iter().map(|(class, name)| format!("<li><i class=\"{class}\"></i>{}</li>", escaped(name))).collect();
        self.legend = format!("<ul class=\"legend\">{names}</ul>");
    }

    /// It as markup; empty without lines.
    pub(super) fn markup(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        format!("<div class=\"rows\">{}{}{}</div>", self.lines, self.axis, self.legend)
    }
}

/// A scale from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    most: f64,
}

impl Scale {
    /// A scale on which `most` has room, and a little more.
    pub(crate) fn to(most: f64) -> Self {
        Self { most: if most.is_finite() && most > 0.0 { most * 1.05 } else { 1.0 } }
    }

    /// A scale that ends there.
    pub(crate) fn exactly(most: f64) -> Self {
        Self { most: if most.is_finite() && most > 0.0 { most } else { 1.0 } }
    }

    /// The place of a value.
    pub(crate) fn at(self, value: f64) -> f64 {
        value / self.most
    }

    /// A few round values with their places.
    pub(crate) fn ticks(self, text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        let power = 10_f64.powf((self.most / 5.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        self.multiples(steps.into_iter().find(|step| self.most / step <= 6.0), text)
    }

    /// A few round numbers of bytes with their places.
    pub(crate) fn ticks_of_bytes(self) -> Vec<(f64, String)> {
        let steps = (0..63).map(|power| (1_u64 << power) as f64);
        let text = |size: f64| bytes(size).replace(".0 ", " ");
        self.multiples(steps.into_iter().find(|step| self.most / step <= 6.0), text)
    }

    fn multiples(self, step: Option<f64>, text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        let step = step.unwrap_or(self.most);
        let ticks = (0..8).map(|tick| f64::from(tick) * step).filter(|value| *value < 0.97 * self.most);
        ticks.map(|value| (self.at(value), brief(&text(value)))).collect()
    }
}

/// A scale of powers of ten, from 1 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Powers {
    count: u32,
}

impl Powers {
    /// A scale on which `most` has room; of three powers at least.
    pub(crate) fn to(most: f64) -> Self {
        Self { count: (most.max(1.0).log10() + 1e-9).ceil().clamp(3.0, 12.0) as u32 }
    }

    /// The place of a value; what is less than 1 stands at its beginning.
    pub(crate) fn at(self, value: f64) -> f64 {
        value.max(1.0).log10() / f64::from(self.count)
    }

    /// Its powers with their places.
    pub(crate) fn ticks(self, text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        (0..self.count)
            .map(|power| (f64::from(power) / f64::from(self.count), brief(&text(10_f64.powi(power as i32)))))
            .collect()
    }
}

/// A number and its unit, without zeros behind the point that say nothing: `1 µs` of `1.00 µs`.
fn brief(text: &str) -> String {
    let (number, unit) = text.split_at(text.find(' ').unwrap_or(text.len()));
    match number.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|digit| digit == b'0') => format!("{whole}{unit}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_cut_to_the_axis_and_nothing_is_drawn_of_none() {
        assert_eq!(Line::new("a", "").bar("work", -1.0, 0.5).shapes, "<path class=\"work\" d=\"M0 0h500v100h-500z\"/>");
        for (from, to) in [(0.5, 0.5), (0.7, 0.2), (1.5, 2.0), (f64::NAN, f64::NAN)] {
            assert_eq!(Line::new("a", "").bar("work", from, to).shapes, "", "{from} {to}");
        }
        let marked = Line::new("a", "").mark("ink", 0.5, (0.0, 0.5)).shapes;
        assert_eq!(marked, "<path class=\"ink\" d=\"M498.5 0h3v50h-3z\"/>");
    }

    #[test]
    fn scales_have_a_few_round_ticks() {
        for most in [0.003, 0.9, 1.0, 7.0, 1234.0, 5e9] {
            let ticks = Scale::to(most).ticks(|value| format!("{value}"));
            assert!((3..=7).contains(&ticks.len()), "{most}: {ticks:?}");
            assert!(ticks[0].0 == 0.0 && ticks.iter().all(|(place, _)| *place < 1.0), "{most}: {ticks:?}");
        }
        for most in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            assert!(Scale::to(most).at(0.5).is_finite());
        }
        let sizes: Vec<String> = Scale::to(5.66e9).ticks_of_bytes().into_iter().map(|(_, text)| text).collect();
        assert_eq!(sizes, ["0 B", "1 GiB", "2 GiB", "3 GiB", "4 GiB", "5 GiB"]);
        assert_eq!(["1.00 M", "1.50 M", "100.0 µs", "0", "2.0×"].map(brief), ["1 M", "1.50 M", "100 µs", "0", "2.0×"]);
        let powers = Powers::to(20_000.0);
        assert_eq!((powers.at(0.0), powers.at(100.0)), (0.0, 0.4));
        assert_eq!(powers.ticks(|value| format!("{value}")).last().unwrap(), &(0.8, "10000".to_owned()));
    }
}
