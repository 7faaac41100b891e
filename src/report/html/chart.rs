//! Charts of pages: lines below each other, each with a name, shapes on a shared axis, and text.

use std::fmt::Write;

use super::super::format::bytes;
use super::row::{self, Row, Ticks};
use super::svg::{self, HEIGHT, WIDTH, escaped, number};

/// A line of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    name: String,
    detail: String,
    shapes: String,
    height: u32,
    scale: Ticks,
}

impl Line {
    /// Returns an empty line with a name and text beside it.
    pub(crate) fn new(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { name: name.into(), detail: detail.into(), shapes: String::new(), height: 22, scale: Ticks::new() }
    }

    setters! {
        /// Sets the height in pixels.
        pub(crate) high(height: u32) => height = height;

        /// Sets the scale left of the line: places from the bottom, from 0 to 1, and texts.
        pub(crate) scale: Ticks;
    }

    /// Adds a bar over the full height. Places are shares of the axis, from 0 to 1; parts outside are cut off.
    pub(crate) fn bar(self, class: &'static str, from: f64, to: f64) -> Self {
        self.lane(class, (from, to), (0.0, 1.0))
    }

    /// Adds a bar over a part of the height, from the top.
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
        // About two pixels in a wide page.
        let half = 1.5 / WIDTH;
        self.lane(class, (at - half, at + half), lane)
    }

    /// Adds bars side by side over the full width. Heights are shares of the line's height.
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

/// A chart of lines with an axis and a legend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    lines: String,
    is_scaled: bool,
    axis: String,
    legend: String,
}

impl Chart {
    /// Adds a line below the others.
    pub(crate) fn line(&mut self, line: Line) {
        let Line { name, detail, shapes, height, scale } = line;
        self.is_scaled |= !scale.is_empty();
        self.lines += &Row { name: &name, detail: &detail, height, scale: &scale, shapes: &shapes }.markup();
    }

    /// Sets the axis below the lines: places from 0 to 1, texts, and the unit of all.
    pub(crate) fn axis(&mut self, ticks: &[(f64, String)], unit: &str) {
        self.axis = row::axis(ticks, unit);
    }

    /// Sets the legend: pairs of a colour class and a name.
    pub(crate) fn legend(&mut self, names: &[(&'static str, &str)]) {
        let names: String =
            names.iter().map(|(class, name)| format!("<li><i class=\"{class}\"></i>{}</li>", escaped(name))).collect();
        self.legend = format!("<ul class=\"legend\">{names}</ul>");
    }

    /// Returns the markup of the chart; empty without lines.
    pub(super) fn markup(&self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        let class = if self.is_scaled { "rows scaled" } else { "rows" };
        format!("<div class=\"{class}\">{}{}{}</div>", self.lines, self.axis, self.legend)
    }
}

/// A linear scale from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    most: f64,
}

impl Scale {
    /// Returns a scale that fits `most`, with a margin of 5 %.
    pub(crate) fn to(most: f64) -> Self {
        Self { most: if most.is_finite() && most > 0.0 { most * 1.05 } else { 1.0 } }
    }

    /// Returns a scale that ends at `most`.
    pub(crate) fn exactly(most: f64) -> Self {
        Self { most: if most.is_finite() && most > 0.0 { most } else { 1.0 } }
    }

    /// Returns the place of a value, as a share of the scale.
    pub(crate) fn at(self, value: f64) -> f64 {
        value / self.most
    }

    /// Returns a few round values with their places.
    pub(crate) fn ticks(self, text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        let power = 10_f64.powf((self.most / 5.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        self.multiples(steps.into_iter().find(|step| self.most / step <= 6.0), text)
    }

    /// Returns a few round numbers of bytes with their places.
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

/// A logarithmic scale of powers of ten, from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Powers {
    count: u32,
}

impl Powers {
    /// Returns a scale that fits `most`, with at least three powers.
    pub(crate) fn to(most: f64) -> Self {
        Self { count: (most.max(1.0).log10() + 1e-9).ceil().clamp(3.0, 12.0) as u32 }
    }

    /// Returns the place of a value. Values below 1 are placed at the beginning.
    pub(crate) fn at(self, value: f64) -> f64 {
        value.max(1.0).log10() / f64::from(self.count)
    }

    /// Returns the powers of ten with their places.
    pub(crate) fn ticks(self, text: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        (0..self.count)
            .map(|power| (f64::from(power) / f64::from(self.count), brief(&text(10_f64.powi(power as i32)))))
            .collect()
    }
}

/// Removes decimals that are all zero from a number with a unit: `1.00 µs` becomes `1 µs`.
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
