//! Histogram of the time of calls of `next()`.

use super::super::Report;
use super::super::format::{count, time};
use super::row::{Row, Ticks, axis};
use super::svg;

/// Bars per power of ten.
const EACH: usize = 6;
/// Smallest distance between two labels above the bars. Closer labels share a place.
const CLOSE: f64 = 0.1;

/// Returns the histogram of the time of calls. Both axes are scales of powers of ten.
pub(super) fn section(report: &Report) -> String {
    let times = &report.picture.next;
    // Times below 1 µs share the first bar.
    let place = |ns: u64| (((ns.max(1000) as f64).log10() - 3.0) * EACH as f64) as usize;
    let Some(last) = times.iter().map(|(ns, _)| place(*ns)).max() else { return String::new() };
    let powers = (last / EACH + 1).max(3);
    let mut bars = vec![0_u64; powers * EACH];
    times.iter().for_each(|(ns, calls)| bars[place(*ns)] += calls);
    let (high, scale) = calls_scale(bars.iter().copied().max().unwrap_or(1));
    let heights: Vec<f64> = bars.iter().map(|calls| high(*calls)).collect();
    let at = |us: f64| ((us.max(1.0)).log10() / powers as f64).clamp(0.0, 1.0);
    let (p50, p99) = (report.waits.next_p50_us, report.waits.next_p99_us);
    let ticks = (0..powers).map(|power| {
        let text = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"].get(power).copied();
        (power as f64 / powers as f64, text.unwrap_or_default().to_owned())
    });
    let calls: u64 = times.iter().map(|(_, calls)| calls).sum();
    let short = |us: f64| if us < 1.0 { "< 1 µs".to_owned() } else { time(us) };
    let row = Row {
        name: "calls",
        detail: &format!("{} calls · p50 {} · p99 {}", count(calls as f64), short(p50), short(p99)),
        height: 96,
        scale: &scale,
        shapes: &(svg::area("work", &heights) + &svg::mark("ink", at(p50)) + &svg::mark("ink", at(p99))),
    };
    format!(
        "<section><h2>How long next() took</h2><div class=\"rows scaled\"><div class=\"track bare\"><span></span><div class=\"marks\">{}</div></div>{}{}</div></section>\n",
        marks(at(p50), at(p99)),
        row.markup(),
        axis(&ticks.collect::<Vec<_>>(), "time of a call")
    )
}

/// Returns the height of a number of calls, as a share of the height of `most`, and the labels of the scale. The scale is
/// logarithmic, so that rare slow calls remain visible next to many fast calls.
fn calls_scale(most: u64) -> (impl Fn(u64) -> f64, Ticks) {
    let high = move |calls: u64| (calls as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    let tens = (0..20).map(|power| 10_u64.saturating_pow(power)).take_while(|calls| *calls <= most);
    let scale = std::iter::once(0).chain(tens).map(|calls| (high(calls), count(calls as f64).replace(".0 ", " ")));
    (high, scale.collect())
}

/// Returns the labels of the median and of the 99th percentile.
fn marks(p50: f64, p99: f64) -> String {
    let mark = |at: f64, name: &str| format!("<b style=\"left:{:.2}%\">{name}</b>", 100.0 * at.min(0.97));
    if p99 - p50 < CLOSE { mark(p99.min(0.92), "p50, p99") } else { mark(p50, "p50") + &mark(p99, "p99") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_slow_call_is_visible_and_its_scale_is_readable() {
        let (high, scale) = calls_scale(25_000);
        assert!(high(1) > 0.05 && (high(25_000) - 1.0).abs() < 1e-9, "{}", high(1));
        let texts: Vec<&str> = scale.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0", "1", "10", "100", "1000", "10 k"]);
        assert!(scale.windows(2).all(|pair| pair[0].0 < pair[1].0), "{scale:?}");
    }

    #[test]
    fn labels_of_close_percentiles_share_a_place_inside_the_page() {
        assert_eq!(marks(0.5, 0.55).matches("<b").count(), 1);
        assert_eq!(marks(0.5, 0.9).matches("<b").count(), 2);
        for labels in [marks(0.99, 1.0), marks(0.5, 1.0)] {
            assert!(!labels.contains("left:100") && !labels.contains("left:99"), "{labels}");
        }
    }
}
