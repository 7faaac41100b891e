//! Self-contained HTML pages: the head, the style, and the sections.

use std::fmt::Write;

use super::chart::Chart;
use super::colours;
use super::svg::escaped;

/// Content security policy of a page: no requests, and no script except `page.js`, whose SHA-256 this is. Styles are inline.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-C1bksN9PaLhC8H1/SpWPk3Jlgf0X75jH4MuyXnrpHPw='";

/// Returns a whole page with this title. `behind` is the markup of its scripts, after the body.
pub(super) fn shell(title: &str, body: &str, behind: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <title>{}</title><link rel=\"icon\" href=\"data:,\"><style>{}{}</style></head>\n<body>{body}{behind}</body></html>\n",
        escaped(title),
        colours(":root"),
        include_str!("page.css"),
    )
}

/// Returns the head of a page: a headline, a sentence, a summary of the figures, and `more` markup.
pub(super) fn head(headline: &str, lead: &str, figures: &str, more: &str) -> String {
    format!(
        "<header><h1>{}</h1><p class=\"lead\">{}</p><p class=\"soft\">{}</p>{more}</header>\n",
        escaped(headline),
        escaped(lead),
        escaped(figures)
    )
}

/// Returns the foot of a page: this version, this machine, and further `facts`.
pub(super) fn foot(facts: impl IntoIterator<Item = String>) -> String {
    let machine = [
        format!("gristmill {}", env!("CARGO_PKG_VERSION")),
        format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    ];
    let parts: Vec<String> = machine.into_iter().chain(facts).map(|part| escaped(&part)).collect();
    format!("<footer class=\"foot\">{}</footer>\n", parts.join(" · "))
}

/// Returns a chart below a heading; empty if the chart is empty.
pub(super) fn section(heading: &str, chart: &Chart) -> String {
    match chart.markup() {
        nothing if nothing.is_empty() => nothing,
        shown => format!("<section><h2>{}</h2>{shown}</section>\n", escaped(heading)),
    }
}

/// Builder of a page. All texts are plain text and are escaped.
#[derive(Debug)]
pub(crate) struct Document {
    title: String,
    body: String,
}

impl Document {
    /// Begins a page with a headline, a sentence and a summary of the figures.
    pub(crate) fn new(headline: &str, lead: &str, figures: &str) -> Self {
        Self { title: headline.to_owned(), body: head(headline, lead, figures, "") }
    }

    /// Adds a chart below a heading, if the chart is not empty.
    pub(crate) fn chart(&mut self, heading: &str, chart: &Chart) {
        self.body += &section(heading, chart);
    }

    /// Adds a table below a heading. The first column is aligned left.
    pub(crate) fn table(&mut self, heading: &str, head: &[&str], rows: &[Vec<String>]) {
        let cell = |tag: &str, at: usize, text: &str| {
            let class = if at == 0 { " class=\"l\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escaped(text))
        };
        let head: String = head.iter().enumerate().map(|(at, text)| cell("th", at, text)).collect();
        let row = |row: &Vec<String>| {
            let cells: String = row.iter().enumerate().map(|(at, text)| cell("td", at, text)).collect();
            format!("<tr>{cells}</tr>")
        };
        let rows: String = rows.iter().map(row).collect();
        let _ = writeln!(
            self.body,
            "<section><h2>{}</h2><div class=\"scroll\"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>",
            escaped(heading)
        );
    }

    /// Adds lines below a heading, if there are any.
    pub(crate) fn list(&mut self, heading: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let lines: String = lines.iter().map(|line| format!("<li>{}</li>", escaped(line))).collect();
        let _ = writeln!(self.body, "<section><h2>{}</h2><ul>{lines}</ul></section>", escaped(heading));
    }

    /// Returns the whole page, with further `facts` in its foot.
    pub(crate) fn finish(self, facts: impl IntoIterator<Item = String>) -> String {
        shell(&self.title, &(self.body + &foot(facts)), "")
    }
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::super::Line;
    use super::*;

    #[test]
    fn no_text_is_markup() {
        let mut page = Document::new("<x-one>", "a & b", "'c'");
        let mut chart = Chart::default();
        chart.line(Line::new("<x-name>", "<x-detail>").bar("work", 0.0, 0.5));
        chart.axis(&[(0.0, "<x-tick>".to_owned())], "<x-unit>");
        chart.legend(&[("work", "<x-legend>")]);
        page.chart("<x-chart>", &chart);
        page.table("<x-table>", &["<x-head>"], &[vec!["<x-cell>".to_owned()]]);
        page.list("<x-list>", &["<x-line>".to_owned()]);
        let page = page.finish(["<x-fact>".to_owned()]);
        let words = [
            "one", "name", "detail", "tick", "unit", "legend", "chart", "table", "head", "cell", "list", "line", "fact",
        ];
        assert_eq!(words.iter().find(|word| !page.contains(&format!("&lt;x-{word}&gt;"))), None, "{page}");
        assert!(!page.contains("<x-") && page.contains("a &amp; b") && page.contains("&#39;c&#39;"), "{page}");
        assert!(page.starts_with("<!doctype html>") && !page.contains("<script"), "{page}");
    }

    #[test]
    fn a_chart_without_lines_has_no_heading() {
        let mut page = Document::new("a", "b", "c");
        page.chart("nothing", &Chart::default());
        page.list("none", &[]);
        assert!(!page.finish([]).contains("<h2>"));
    }
}
