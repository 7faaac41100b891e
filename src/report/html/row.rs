//! Rows of charts: a name, a scale, a picture and text beside each other, and the axis below them.

use std::fmt::Write;

use super::svg::{self, escaped};

/// Places from 0 to 1 with their texts.
pub(super) type Ticks = Vec<(f64, String)>;

/// Height in pixels that a label of a scale needs.
const LABEL: f64 = 13.0;

/// Largest number of labels of classes that fit side by side in a narrow page. Of more, a narrow page shows every other one.
const DENSE: usize = 5;

/// A row of a chart.
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    /// Text right of the picture.
    pub(super) detail: &'a str,
    /// Height of the picture in pixels.
    pub(super) height: u32,
    /// Scale left of the picture, from the bottom; empty if heights have no meaning.
    pub(super) scale: &'a [(f64, String)],
    /// Shapes in a box of [`svg::WIDTH`] by [`svg::HEIGHT`].
    pub(super) shapes: &'a str,
}

impl Row<'_> {
    /// Returns the markup of the row.
    pub(super) fn markup(&self) -> String {
        format!(
            "<div class=\"track\" style=\"--h:{}px\"><div class=\"name\">{}</div><div class=\"plot\">{}{}</div><div class=\"detail\">{}</div></div>",
            self.height,
            escaped(self.name),
            self.labels(),
            svg::stretched(&format!("{}: {}", self.name, self.detail), self.shapes),
            svg::in_parts(self.detail)
        )
    }

    /// Returns the labels of the scale. Omits labels that would touch the label below them.
    fn labels(&self) -> String {
        if self.scale.is_empty() {
            return String::new();
        }
        let (mut labels, mut below) = (String::new(), f64::NEG_INFINITY);
        for (place, text) in self.scale {
            // The first and the last label keep within the height of the picture.
            let centre = (place * f64::from(self.height)).clamp(LABEL / 2.0, f64::from(self.height) - LABEL / 2.0);
            if centre - below < LABEL - 0.5 {
                continue;
            }
            below = centre;
            let _ = write!(labels, "<span style=\"bottom:{:.1}px\">{}</span>", centre - LABEL / 2.0, escaped(text));
        }
        format!("<div class=\"y\">{labels}</div>")
    }
}

/// Returns a scale from 0 at the bottom to `most` at the top.
pub(super) fn up_to(most: impl Into<String>) -> Ticks {
    vec![(0.0, "0".to_owned()), (1.0, most.into())]
}

/// Returns the axis below rows. `unit` names the values along the axis.
pub(super) fn axis(ticks: &[(f64, String)], unit: &str) -> String {
    let marks: String = ticks
        .iter()
        .map(|(place, text)| format!("<span style=\"left:{:.2}%\">{}</span>", place * 100.0, escaped(text)))
        .collect();
    // Texts are centred on their places, unless the first tick is at the very beginning.
    let class = match ticks.first().is_some_and(|(place, _)| *place > 0.01) {
        true if ticks.len() > DENSE => "axis mid dense",
        true => "axis mid",
        false => "axis",
    };
    whole_axis(class, &marks, unit)
}

/// Returns the axis with these marks.
pub(super) fn whole_axis(class: &str, marks: &str, unit: &str) -> String {
    format!(
        "<div class=\"track bare\"><span></span><div class=\"{class}\">{marks}</div><div class=\"unit\">{}</div></div>",
        escaped(unit)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(height: u32, scale: &[(f64, String)]) -> String {
        Row { name: "a", detail: "b", height, scale, shapes: "" }.labels()
    }

    #[test]
    fn labels_of_a_scale_do_not_touch() {
        let scale: Ticks = (0..=10).map(|at| (f64::from(at) / 10.0, at.to_string())).collect();
        assert_eq!(labels(26, &scale).matches("<span").count(), 2);
        assert_eq!(labels(200, &scale).matches("<span").count(), 11);
        let both = "<div class=\"y\"><span style=\"bottom:0.0px\">0</span><span style=\"bottom:13.0px\">4</span></div>";
        assert_eq!(labels(26, &up_to("4")), both);
        assert_eq!(labels(26, &[]), "");
    }

    #[test]
    fn an_axis_names_its_unit() {
        let axis = axis(&[(0.0, "0".to_owned()), (0.5, "<1>".to_owned())], "steps & more");
        assert!(axis.contains("<div class=\"unit\">steps &amp; more</div>") && axis.contains("&lt;1&gt;"), "{axis}");
    }

    #[test]
    fn many_labels_of_classes_are_thinned_out_in_a_narrow_page() {
        let classes = |count: usize| (0..count).map(move |at| ((at as f64 + 0.5) / count as f64, format!("{at}–{at}")));
        assert!(axis(&classes(8).collect::<Vec<_>>(), "tokens").contains("class=\"axis mid dense\""));
        assert!(axis(&classes(5).collect::<Vec<_>>(), "tokens").contains("class=\"axis mid\""));
        assert!(include_str!("page.css").contains(".axis.dense span:nth-last-child(2n){display:none}"));
    }
}
