//! `--html`: the page of a run, and its ribbon alone.

use super::{PIPELINE, demo, fails, gristmill, stderr};

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
        assert!(picture.starts_with(begins) && picture.contains("The consumer waited"), "{picture}");
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
    for word in ["How long the documents are", "What becomes of the cells", "window best-fit, 1024", "of all cells"] {
        assert!(page.contains(word), "{word}: {page}");
    }
    assert!(fails(folder, &[&data[..], &["--html", "nowhere/padding.html"]].concat()).1.contains("nowhere"));
}
