//! The ribbon as a single picture that includes its text: for notebooks, and for pages that accept no HTML.

use std::fmt::Write;

use super::super::format::{percent, time};
use super::super::{Report, why};
use super::columns::Columns;
use super::svg::{HEIGHT, WIDTH, escaped};
use super::tracks::{axis, legend, tracks};
use super::{colours, page};

/// Number of columns: fewer than in a page, because the picture is committed and sent.
const COLUMNS: usize = 240;
/// Pixels of the picture, of its margin, of the text left of the tracks, and of the tracks.
const ACROSS: u32 = 960;
const MARGIN: u32 = 20;
const LEFT: u32 = 214;
const PLOT: u32 = 540;
/// Pixels between the name of a track and its picture, for the scale.
const SCALE: u32 = 62;
/// Approximate width of a letter in pixels: text cannot be measured here.
const LETTER: f64 = 6.9;

const STYLE: &str = "svg.gristmill text{font:13px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"DejaVu Sans\",sans-serif;\
                     fill:var(--ink)}svg.gristmill .soft{fill:var(--soft)}svg.gristmill .y{font-size:10.5px;fill:var(--soft)}svg.gristmill .big{font-size:19px;font-weight:650}\
                     svg.gristmill .paper{fill:var(--paper)}svg.gristmill .ground{fill:var(--ground)}svg.gristmill .lead{stroke:var(--ink);fill:none}";

/// Returns the ribbon of a run, with its headline and the longest wait; empty if no element was delivered.
pub(super) fn picture(report: &Report) -> String {
    let columns = Columns::of(report, COLUMNS);
    if columns.all.is_empty() {
        return String::new();
    }
    let mut body = text(MARGIN, 40, "big", &page::headline(report));
    let _ = write!(body, "{}", text(MARGIN, 62, "soft", &shortened(&report.verdict.text, 130)));
    let mut y = 84;
    if let Some(wait) = report.picture.waits.first() {
        let x = LEFT + (columns.place(wait.at_s + wait.wait_s / 2.0) * f64::from(PLOT)) as u32;
        let who = why::who(wait).map_or_else(String::new, |who| format!(": {who}"));
        let told = shortened(&format!("{}{who}", time(wait.wait_s * 1e6)), 120);
        let width = (told.chars().count() as f64 * LETTER) as u32;
        // Starts the text so that all of it is visible.
        let from = x.saturating_sub(width / 2).clamp(MARGIN, (ACROSS - MARGIN).saturating_sub(width).max(MARGIN));
        body += &text(from, y + 8, "", &told);
        let _ = write!(body, "<path class=\"lead\" d=\"M{x} {}v10\"/>", y + 14);
        y += 28;
    }
    for track in tracks(report, &columns) {
        let middle = y + track.height / 2 + 4;
        let _ = write!(
            body,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>",
            LEFT - SCALE,
            escaped(track.name)
        );
        for (place, label) in &track.scale {
            let at = y + ((1.0 - place) * f64::from(track.height - 10)) as u32 + 9;
            let _ = write!(
                body,
                "<text class=\"y\" x=\"{}\" y=\"{at}\" text-anchor=\"end\">{}</text>",
                LEFT - 6,
                escaped(label)
            );
        }
        let _ = write!(
            body,
            "<rect class=\"ground\" x=\"{LEFT}\" y=\"{y}\" width=\"{PLOT}\" height=\"{0}\"/><svg x=\"{LEFT}\" y=\"{y}\" width=\"{PLOT}\" \
             height=\"{0}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\">{1}</svg>",
            track.height, track.shapes
        );
        body += &text(LEFT + PLOT + 14, middle, "soft", &track.detail);
        y += track.height + 5;
    }
    for (place, tick) in axis(columns.span()) {
        body += &text(LEFT + (place * f64::from(PLOT)) as u32, y + 12, "soft", &tick);
    }
    y += 38;
    let mut x = f64::from(LEFT);
    let busy = ("busy", "at work".to_owned());
    let causes = legend(report, &columns)
        .into_iter()
        .map(|entry| (entry.class, format!("{} {}", entry.name, percent(entry.share))));
    for (class, name) in std::iter::once(busy).chain(causes) {
        let width = name.chars().count() as f64 * LETTER + 36.0;
        if x > f64::from(LEFT) && x + width > f64::from(ACROSS - MARGIN) {
            (x, y) = (f64::from(LEFT), y + 20);
        }
        let _ =
            write!(body, "<rect class=\"{class}\" x=\"{x:.0}\" y=\"{}\" width=\"11\" height=\"11\" rx=\"2\"/>", y - 10);
        body += &text(x as u32 + 17, y, "", &name);
        x += width;
    }
    let height = y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gristmill\" viewBox=\"0 0 {ACROSS} {height}\" width=\"100%\" \
         style=\"max-width:{ACROSS}px\" role=\"img\"><title>{}</title><style>{}{STYLE}</style>\
         <rect class=\"paper\" width=\"{ACROSS}\" height=\"{height}\" rx=\"6\"/>{body}</svg>\n",
        escaped(&page::headline(report)),
        colours("svg.gristmill")
    )
}

fn text(x: u32, y: u32, class: &str, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<text x=\"{x}\" y=\"{y}\"{class}>{}</text>", escaped(text))
}

/// Returns a text of at most `letters` letters; `…` replaces the rest.
fn shortened(text: &str, letters: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(letters) { format!("{}…", &text[..end]) } else { text.to_owned() }
}
