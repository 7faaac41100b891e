//! `--html`: the page of a run, and its ribbon alone.

use std::path::Path;

use super::{PIPELINE, browser, demo, fails, gristmill, stderr};

#[test]
fn the_demo_writes_its_page_beside_its_corpus_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let output = gristmill(folder.path(), &["demo", "--mb", "2", "--threads", "2", "--html"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("the report is in gristmill-demo/report.html"), "{said}");
    let page = std::fs::read_to_string(folder.path().join("gristmill-demo/report.html")).unwrap();
    for word in ["your step", "Stages", "window_pack", "of all cells are real", "order hash"] {
        assert!(page.contains(word), "{word}: {page}");
    }
}

#[test]
fn a_run_writes_its_page_or_its_ribbon_alone() {
    let (folder, _) = demo();
    let folder = folder.path();
    for (file, begins) in [("run.html", "<!doctype html>"), ("run.svg", "<svg xmlns=")] {
        let output =
            gristmill(folder, &["run", PIPELINE, "--threads", "2", "--steps", "5", "--restart", "--html", file]);
        assert!(output.status.success(), "{}", stderr(&output));
        let picture = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(picture.starts_with(begins) && picture.contains(" batches a second"), "{picture}");
    }
    // Said before anything runs.
    let (code, said) = fails(folder, &["run", PIPELINE, "--restart", "--html", "nowhere/run.html"]);
    assert!(code == 2 && said.contains("nowhere"), "{code}: {said}");
}

#[test]
fn padding_has_a_page_of_charts() {
    let (folder, _) = demo();
    let folder = folder.path();
    let data = ["analyze-padding", "gristmill-demo/corpus.jsonl", "--docs", "500"];
    let output = gristmill(folder, &[&data[..], &["--html", "padding.html"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("the page is in padding.html"), "{}", stderr(&output));
    let page = std::fs::read_to_string(folder.join("padding.html")).unwrap();
    for word in ["Documents by length", "Tokens and padding", "window best-fit, 1024", "of all cells"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    assert!(fails(folder, &[&data[..], &["--html", "nowhere/padding.html"]].concat()).1.contains("nowhere"));
}

/// Opens a page in a browser, where there is one: it shows these words and has nothing to complain of. Nothing in it has an address.
fn opens(page: &Path, words: &[&str]) {
    let text = std::fs::read_to_string(page).unwrap();
    // A reader can follow a link to the documentation. The page loads nothing.
    let text = text.replace("<a href=\"https://docs.rs/gristmill/latest/", "<a href=\"");
    for address in ["http:", "https:", "url(", "@import", "src="] {
        assert!(!text.contains(address), "{address} in {text}");
    }
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    let Some((shown, complaints)) = browser::opened(page) else { return };
    assert_eq!(complaints, "");
    assert_eq!(words.iter().find(|word| !shown.contains(*word)), None, "{shown}");
}

#[test]
fn every_page_opens_in_a_browser() {
    let (folder, _) = demo();
    let folder = folder.path();
    let sweep = ["--warmup", "1", "--steps", "3", "--runs", "2", "--sweep", "threads=1,2", "--step-time", "1ms"];
    let run = ["run", PIPELINE, "--threads", "2", "--steps", "9", "--restart", "--html", "run.html"];
    let pages: [(&str, Vec<&str>, &[&str]); 3] = [
        (
            "run.html",
            run.to_vec(),
            &[
                "your step",
                "time of the run",
                "Sequences by length",
                "tokens of a sequence",
                "How long next() took",
                "<div class=\"y\">",
            ],
        ),
        (
            "bench.html",
            [&["bench", PIPELINE][..], &sweep, &["--html", "bench.html"]].concat(),
            &["Batches per second", "batches/s", "Time of the accelerator", "threads=2", "<div class=\"y\">"],
        ),
        (
            "padding.html",
            vec!["analyze-padding", "gristmill-demo/corpus.jsonl", "--docs", "300", "--html", "padding.html"],
            &["Tokens and padding", "concat then split", "<div class=\"unit\">cells</div>", "<div class=\"y\">"],
        ),
    ];
    for (page, arguments, words) in pages {
        let output = gristmill(folder, &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        opens(&folder.join(page), words);
    }
    #[cfg(all(feature = "workers", target_os = "linux"))]
    {
        let short = ["--seconds", "0.4", "--ram", "256MiB", "--max-threads", "2", "--html", "tune.html"];
        let output = gristmill(folder, &[&["tune", PIPELINE][..], &short].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        opens(&folder.join("tune.html"), &["Gain", "Where memory goes", "<div class=\"unit\">batches/s</div>"]);
    }
}
