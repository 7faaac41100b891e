//! The picture of a run: it names what the consumer waited for, by file and line, and a browser shows it without any help from outside.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill::dataset::map::{Range, Source};
use gristmill::source::Jsonl;
use gristmill::{Element, Executor, Load, MapDatasetExt, Report};

const LINES: u64 = 30_000;
/// The line of the one large document, counted from 1, and its bytes.
const LARGE: (u64, usize) = (1183, 9 << 20);

/// Many small documents and a large one.
fn documents(folder: &Path) -> PathBuf {
    let mut text = String::new();
    for line in 1..=LINES {
        let words = if line == LARGE.0 { "word ".repeat(LARGE.1 / 5) } else { "a few words ".repeat(8) };
        writeln!(text, "{{\"text\": \"{words}\"}}").unwrap();
    }
    let file = folder.join("news <1> & more.jsonl");
    std::fs::write(&file, text).unwrap();
    file
}

/// Takes a second for the large document, far longer than other programs hold up any other.
fn looked_at(element: Element) -> Element {
    if element.nbytes() > LARGE.1 / 2 {
        std::thread::sleep(Duration::from_secs(1));
    }
    element
}

fn run(file: &Path) -> Report {
    let ds = Source::new(Jsonl::open(file).unwrap()).shuffle(11).map(looked_at).to_iter().batch(8);
    let mut loader = ds.loader().executor(Executor::Threads(3)).build().unwrap();
    for batch in loader.by_ref() {
        batch.unwrap();
    }
    loader.report()
}

#[test]
fn the_large_document_among_small_ones_is_named_by_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = documents(folder.path());
    let line = format!("{}:{}", file.display(), LARGE.0);
    let report = run(&file);
    assert_eq!(
        report.waits.longest_waits.first().and_then(|wait| wait.suspect.record.as_ref()),
        Some(&line),
        "{report}"
    );
    let text = report.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("({line}, 9 MiB), which took")), "{text}");
    let page = report.to_html();
    let written = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    assert!(page.contains(&format!("({written}, 9\u{a0}MiB), took")), "{page}");
    assert!(page.contains("an element that held up later ones"), "{page}");
    check_page(&page, &folder.path().join("report.html"), &[&line, "The longest gaps", "What to do"]);
}

#[test]
fn a_page_is_small_however_long_the_run_was() {
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let ds = Range::new(0, 200_000).map(|x| x).to_iter().batch(4);
        let mut loader = ds.loader().executor(executor).build().unwrap();
        assert_eq!(loader.by_ref().map(Result::unwrap).count(), 50_000);
        let page = loader.report().to_html();
        assert!(page.len() < 256 << 10, "{} bytes", page.len());
        assert!(page.contains("your step"));
    }
}

#[test]
fn of_a_run_that_has_not_begun_there_is_a_page_too() {
    let mut loader = Range::new(0, 10).to_iter().loader().build().unwrap();
    assert!(loader.report().to_html().contains("Nothing was delivered yet"));
}

/// Opens a page in a browser, where there is one: it shows `words`, has nothing to complain of and asks for nothing.
fn check_page(page: &str, file: &Path, words: &[&str]) {
    // A reader can follow a link from a cause to its documentation. The page loads nothing.
    let links = "<a href=\"https://docs.rs/gristmill/latest/gristmill/report/enum.Cause.html#variant.";
    assert!(page.contains(&format!("{links}HeadOfLine\" title=\"A slow element held up")), "{page}");
    let page = &page.replace(links, "<a href=\"");
    for address in ["http:", "https:", "//", "url(", "@import", "src="] {
        let script = page.rfind("<script>").unwrap();
        assert!(!page[..script].contains(address) || address == "//", "the page has {address}");
        assert!(!page[script..].contains("http"), "the script has an address");
    }
    // Somebody points at the middle of the ribbon: the script has what stands there.
    let points = "<script>{const plot = document.querySelector('.plot').getBoundingClientRect(); document.querySelector('.ribbon').dispatchEvent(\
                  new PointerEvent('pointermove', {clientX: plot.left + plot.width / 2, clientY: plot.top + 5}))}</script></body>";
    // The policy of the page forbids scripts of others. `pictures` of the command's tests opens pages with their policy.
    let page = page.replace("http-equiv=\"Content-Security-Policy\"", "name=\"policy\"");
    std::fs::write(file, page.replace("</body>", points)).unwrap();
    let Some((shown, complaints)) = crate::browser::opened(file) else { return };
    let shown = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    assert!(words.iter().all(|word| shown.contains(word)), "{shown}");
    let tip =
        shown.split_once("id=\"tip\"").map_or("", |(_, rest)| rest.split_once("</div>").map_or("", |(tip, _)| tip));
    assert!(tip.contains(">at ") && (tip.contains(" % ") || tip.contains("no wait")), "{tip}");
    assert_eq!(complaints, "");
}
