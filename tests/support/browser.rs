//! A browser, where there is one.

use std::path::Path;
use std::process::Command;

/// Opens a page of this machine, and returns what the browser made of it and what it complained of; `None` where there is no browser.
pub(crate) fn opened(page: &Path) -> Option<(String, String)> {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_there(name))
    else {
        eprintln!("skipped: there is no chromium to open the page with");
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let quiet = ["--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--enable-logging=stderr"])
        .args(quiet)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", "--window-size=1280,2000"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let complaints = complaints.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    Some((shown, complaints))
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
