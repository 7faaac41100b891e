//! The report as HTML: a separate page, and a fragment for notebooks.

mod chart;
mod columns;
mod document;
mod heat;
mod histogram;
mod knobs;
mod page;
mod ribbon;
mod row;
mod svg;
mod tracks;

pub(crate) use chart::Powers;
pub(crate) use chart::{Chart, Line, Scale};
pub(crate) use document::Document;
pub(crate) use knobs::turned;

use super::Report;
use svg::escaped;

// Columns need a monospaced font, which some notebooks' style sheets do not set.
const STYLE: &str = "font-family: monospace; line-height: 1.3; overflow-x: auto; white-space: pre";

impl Report {
    /// Returns a fragment of HTML for a notebook: the ribbon, and the text of `Display` below it with the verdict in bold.
    pub fn html(&self) -> String {
        self.to_svg() + &notebook(&self.to_string())
    }

    /// Returns the ribbon of [`to_html`](Self::to_html) as a separate picture; empty if no element was delivered.
    pub fn to_svg(&self) -> String {
        ribbon::picture(self)
    }

    /// Returns a self-contained page of HTML with the ribbon of the run. Its size is less than 1 MB for a run of any length.
    pub fn to_html(&self) -> String {
        page::page(self, &[])
    }

    /// Returns the page with further `facts` about the run, as pairs of a name and a value.
    pub(crate) fn page(&self, facts: &[(&str, String)]) -> String {
        page::page(self, facts)
    }
}

/// Returns the light and dark colours for the elements that `scope` selects.
fn colours(scope: &str) -> String {
    include_str!("colours.css").replace("SCOPE", scope)
}

/// Returns a text in columns as a fragment of HTML, with its verdict, if any, in bold.
pub(crate) fn notebook(text: &str) -> String {
    let verdict = text.find("VERDICT").unwrap_or(text.len());
    let (figures, verdict) = (escaped(&text[..verdict]), escaped(text[verdict..].trim_end()));
    format!("<pre style=\"{STYLE}\">{figures}<b>{verdict}</b></pre>")
}

#[cfg(test)]
mod tests {
    use crate::dataset::map::Range;
    use crate::{Load, MapDatasetExt};

    #[test]
    fn its_words_are_those_of_the_text() {
        let mut loader = Range::new(0, 9).map(|x| x + 1).to_iter().batch(2).loader().build().unwrap();
        assert_eq!(loader.by_ref().count(), 5);
        let mut report = loader.report();
        report.remarks.push("a < b & c".into());
        let html = report.html();
        let html = html.strip_prefix(&report.to_svg()).unwrap();
        assert!(html.starts_with("<pre style=\"font-family: monospace;"), "{html}");
        assert!(html.contains("note: a &lt; b &amp; c\n<b>VERDICT"), "{html}");
        let (_, inner) = html.split_once('>').unwrap();
        let words = inner.replace("<b>", "").replace("</b></pre>", "\n");
        let plain = words
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&#39;", "'")
            .replace("&quot;", "\"")
            .replace("&amp;", "&");
        assert_eq!(plain, report.to_string());
        let page = report.to_html();
        assert!(page.contains("<li>a &lt; b &amp; c</li>") && page.len() < 1 << 20, "{page}");
    }
}
