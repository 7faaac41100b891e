//! `gristmill doctor`: checks this machine and this build for problems that affect a pipeline.

mod check;
mod cores;
mod host;
mod libc;
mod limits;
mod memory;
mod places;
mod python;
mod runs;
mod versions;

use std::path::PathBuf;

use serde::Serialize;

use self::check::{Check, Health};
use self::host::Host;
use self::places::Places;
#[cfg(feature = "python")]
pub(crate) use self::python::{Packages, set_packages};
use crate::Result;
use crate::cli::format::plural;
use crate::cli::{Outcome, examples, output};

/// Checks this machine, and prints the command that fixes each problem
///
/// Checks cores, memory, control groups, limits, shared memory, versions and plugins, and runs a small pipeline on threads and in a
/// worker process. With a pipeline file, it checks the file systems that the file names, and opens no file of data.
///
/// Exits with 1 if something does not work.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill doctor"
    "gristmill doctor pipeline.yaml --folder /data/checkpoints"
))]
pub(crate) struct Args {
    /// A pipeline file, whose files and folders are checked
    pipeline: Option<PathBuf>,
    /// A folder that will be written to, such as that of checkpoints
    #[arg(long, value_name = "DIR")]
    folder: Vec<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// All findings. Keys may be added within a format, but are never removed.
#[derive(Serialize)]
struct Findings {
    format: u32,
    /// Worst health of all checks.
    health: Health,
    checks: Vec<Check>,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let host = Host::here();
    let places = args.pipeline.as_deref().map(Places::of).transpose()?.unwrap_or_default();
    let mut checks = versions::checks(&host);
    checks.extend(cores::checks(&host));
    checks.extend(memory::checks(&host));
    checks.extend(limits::checks(&host, places.files.len() as u64));
    checks.extend(runs::checks());
    checks.extend(places.checks(&host));
    checks.extend(args.folder.iter().map(|folder| places::writable(&host, folder)));
    let health = checks.iter().map(|check| check.health).max().unwrap_or(Health::Good);
    if args.json {
        output::json(&Findings { format: 1, health, checks });
    } else {
        let width = output::width();
        let lines: String = checks.iter().map(|check| check.lines(width)).collect();
        output::data(&(lines + "\n" + &output::wrapped_to(&verdict(&checks), 0, width)));
    }
    Ok(if health == Health::Bad { Outcome::Found } else { Outcome::Done })
}

/// Returns a summary that names the problems.
fn verdict(checks: &[Check]) -> String {
    let of = |health: Health| {
        let found: Vec<&str> =
            checks.iter().filter(|check| check.health == health).map(|check| check.what.as_str()).collect();
        (found.len() as u64, found.join(", "))
    };
    match (of(Health::Bad), of(Health::Poor)) {
        ((0, _), (0, _)) => "nothing here will hurt".to_owned(),
        ((0, _), (1, poor)) => format!("1 thing will hurt: {poor}"),
        ((0, _), (n, poor)) => format!("{n} things will hurt: {poor}"),
        ((n, bad), _) => {
            format!("{} not work: {bad}", if n == 1 { "1 thing does".to_owned() } else { plural(n, "thing") + " do" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_what_will_hurt() {
        let (good, poor) = (Check::good("cores", ""), Check::good("clock", "").poor_if(true, "", ""));
        let bad = Check::bad("threads", &crate::Error::data("none"));
        assert_eq!(verdict(std::slice::from_ref(&good)), "nothing here will hurt");
        assert_eq!(verdict(&[good.clone(), poor.clone()]), "1 thing will hurt: clock");
        assert_eq!(verdict(&[poor.clone(), good, poor.clone()]), "2 things will hurt: clock, clock");
        assert_eq!(verdict(&[poor, bad.clone()]), "1 thing does not work: threads");
        assert_eq!(verdict(&[bad.clone(), bad]), "2 things do not work: threads, threads");
    }
}
