//! `gristmill report`: shows a recorded run.

use std::path::{Path, PathBuf};

use crate::cli::{Outcome, examples, output};
use crate::{Error, Report, Result};

/// Shows what a recorded run waited for, also if it was killed
///
/// `--record`, or `record=` in Python, records a run. A run that goes on, or was killed, is shown as of its last write: once a second at first,
/// and every ten seconds later.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill report run.gmr --html report.html"
))]
pub(crate) struct Args {
    /// The recording
    file: PathBuf,
    /// Write a page that shows what happened when, and why the consumer waited
    ///
    /// The page is HTML in one file. FILE.svg is its ribbon alone.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    args.html.iter().try_for_each(|file| crate::store::check_writable(file))?;
    let report = Report::from_record(&args.file)?;
    output::either(args.json, &report, || format!("{report:0$}", output::width().max(60)));
    args.html.iter().try_for_each(|file| write_html(&report, &[], file))?;
    Ok(Outcome::Done)
}

/// Writes a report as a page with `facts` of the run, and prints its path. A file that ends in `.svg` gets only the ribbon.
pub(crate) fn write_html(report: &Report, facts: &[(&str, String)], file: &Path) -> Result<()> {
    let is_picture = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    let page = if is_picture { report.to_svg() } else { report.page(facts) };
    std::fs::write(file, page).map_err(|e| Error::io(e, file))?;
    output::say(&format!("the report is in {}", file.display()));
    Ok(())
}
