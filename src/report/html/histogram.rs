//! Histogram of the time of calls of `next()`.

use super::super::Report;
use super::super::format::{count, time};
use super::svg::{self, escaped};

/// Bars per power of ten.
const EACH: usize = 6;

/// Returns the histogram of the time of calls, on a scale of powers of ten.
pub(super) fn section(report: &Report) -> String {
    let times = &report.picture.next;
    // Times below 1 µs share the first bar.
    let place = |ns: u64| (((ns.max(1000) as f64).log10() - 3.0) * EACH as f64) as usize;
    let Some(last) = times.iter().map(|(ns, _)| place(*ns)).max() else { return String::new() };
    let powers = (last / EACH + 1).max(3);
    let mut bars = vec![0_u64; powers * EACH];
    times.iter().for_each(|(ns, calls)| bars[place(*ns)] += calls);
    let most = bars.iter().copied().max().unwrap_or(1).max(1) as f64;
    // The height is the square root of the count, so that rare slow calls remain visible next to many fast calls.
    let spans: Vec<_> = bars.iter().map(|calls| (0.0, 0.95 * (*calls as f64 / most).sqrt())).collect();
    let at = |us: f64| ((us.max(1.0)).log10() / powers as f64).clamp(0.0, 1.0);
    let mark = |us: f64, name: &str| {
        let text = if us < 1.0 { format!("{name} < 1 µs") } else { format!("{name} {}", time(us)) };
        format!("<b style=\"left:{:.2}%\">{}</b>", 100.0 * at(us), escaped(&text))
    };
    let (p50, p99) = (report.next_p50_us, report.next_p99_us);
    // Two labels that are close would overlap.
    let marks = match at(p99) - at(p50) < 0.16 {
        true => mark(p99, &format!("p50 {} · p99", if p50 < 1.0 { "< 1 µs".to_owned() } else { time(p50) })),
        false => mark(p50, "p50") + &mark(p99, "p99"),
    };
    let ticks = (0..powers).map(|power| {
        let text = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"].get(power).copied();
        format!("<span style=\"left:{:.2}%\">{}</span>", 100.0 * power as f64 / powers as f64, text.unwrap_or_default())
    });
    let calls: u64 = times.iter().map(|(_, calls)| calls).sum();
    format!(
        "<section><h2>How long next() took</h2><div class=\"track bare\"><span></span><div class=\"marks\">{marks}</div></div>\
         <div class=\"track\" style=\"--h:84px\"><div class=\"name\">calls</div><div class=\"plot\">{}</div><div class=\"detail\">{} calls; bar height: square root of the count</div></div>\
         <div class=\"track bare\"><span></span><div class=\"axis\">{}</div></div></section>\n",
        svg::stretched("calls of next by duration", &svg::bars("work", &spans)),
        count(calls as f64),
        ticks.collect::<String>()
    )
}
