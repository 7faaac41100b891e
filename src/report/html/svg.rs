//! Compact SVG shapes.

use std::fmt::Write;

/// Width and height of the box of a picture, which is stretched to its container.
pub(super) const WIDTH: f64 = 1000.0;
pub(super) const HEIGHT: f64 = 100.0;

/// Escapes `text` for markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes `text` for markup, with the parts between backticks as code.
pub(super) fn with_code(text: &str) -> String {
    let code = |(at, part): (usize, &str)| match at % 2 {
        1 => format!("<code>{}</code>", escaped(part)),
        _ => escaped(part),
    };
    text.split('`').enumerate().map(code).collect()
}

/// Maximum letters of a part that is never broken across lines. A longer part is broken as text.
const PART: usize = 28;

/// Escapes a text of parts separated by ` · `, with line breaks only between parts.
pub(super) fn in_parts(text: &str) -> String {
    let part = |part: &str| match part.chars().count() <= PART {
        true => format!("<span>{}</span>", escaped(part)),
        false => escaped(part),
    };
    text.split(" · ").map(part).collect::<Vec<_>>().join(" · ")
}

/// Formats a coordinate of a shape with at most one decimal.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// Returns bars of a colour class, side by side. Each `(start, end)` is a pair of heights from the bottom, as shares of the full
/// height. Neighbouring bars of equal heights are merged.
pub(super) fn bars(class: &str, spans: &[(f64, f64)]) -> String {
    let step = WIDTH / spans.len().max(1) as f64;
    let mut path = String::new();
    let mut at = 0;
    while at < spans.len() {
        let span = spans[at];
        // A height that is no number equals none, not even itself.
        let alike = spans[at..].iter().take_while(|other| close(**other, span)).count().max(1);
        if span.1 - span.0 > 0.002 {
            let (x, y, w, h) =
                (at as f64 * step, (1.0 - span.1) * HEIGHT, alike as f64 * step, (span.1 - span.0) * HEIGHT);
            let _ = write!(path, "M{} {}h{}v{}h-{}z", number(x), number(y), number(w), number(h), number(w));
        }
        at += alike;
    }
    if path.is_empty() { path } else { format!("<path class=\"{class}\" d=\"{path}\"/>") }
}

/// Returns a thin mark over the whole height, at a share of the width.
pub(super) fn mark(class: &str, at: f64) -> String {
    let x = number((at * WIDTH - 0.75).clamp(0.0, WIDTH - 1.5));
    format!("<path class=\"{class}\" d=\"M{x} 0h1.5v{HEIGHT}h-1.5z\"/>")
}

/// Returns a thin line over the whole width, at a share of the height from the bottom.
pub(super) fn level(class: &str, at: f64) -> String {
    let y = number(((1.0 - at) * HEIGHT - 1.5).clamp(0.0, HEIGHT - 3.0));
    format!("<path class=\"{class}\" d=\"M0 {y}h{WIDTH}v3H0z\"/>")
}

fn close(a: (f64, f64), b: (f64, f64)) -> bool {
    (a.0 - b.0).abs() < 0.002 && (a.1 - b.1).abs() < 0.002
}

/// Returns the area below a curve of shares.
pub(super) fn area(class: &str, shares: &[f64]) -> String {
    bars(class, &shares.iter().map(|share| (0.0, share.clamp(0.0, 1.0))).collect::<Vec<_>>())
}

/// Returns a picture of `content`, stretched to its container.
pub(super) fn stretched(label: &str, content: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{content}</svg>",
        escaped(label)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_that_go_on_alike_are_one() {
        let path = bars("a", &[(0.0, 0.5), (0.0, 0.5), (0.0, 0.0), (0.5, 1.0)]);
        assert_eq!(path, "<path class=\"a\" d=\"M0 50h500v50h-500zM750 0h250v50h-250z\"/>");
        assert_eq!(bars("a", &[(0.3, 0.3)]), "");
        assert_eq!(bars("a", &[(0.0, f64::NAN), (0.0, f64::NAN)]), "");
    }

    #[test]
    fn lines_end_between_parts() {
        assert_eq!(in_parts("p50 1 ms · <a>"), "<span>p50 1 ms</span> · <span>&lt;a&gt;</span>");
        let long = "a part that is longer than a line of the column";
        assert_eq!(in_parts(long), long);
    }

    #[test]
    fn backticks_become_code() {
        assert_eq!(with_code("a larger `buffer<` helps"), "a larger <code>buffer&lt;</code> helps");
    }

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped("<b a='1'>&\""), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;");
    }
}
