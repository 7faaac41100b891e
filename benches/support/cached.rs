//! Pages of a file in the page cache, by the tools of util-linux and coreutils.

use std::path::Path;
use std::process::Command;

use gristmill::{Error, Result};

/// Returns whether both tools are installed.
pub(crate) fn is_known() -> bool {
    ["fincore", "dd"].iter().all(|tool| run(Command::new(tool).arg("--version")).is_ok())
}

/// Returns the bytes of a file that are in memory, in whole pages.
pub(crate) fn cached_bytes(file: &Path) -> Result<u64> {
    let said = run(Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).arg(file))?;
    said.trim().parse().map_err(|_| Error::data(format!("fincore says {said:?}")))
}

/// Makes the system write a file to disk and drop its cached pages.
pub(crate) fn forget(file: &Path) -> Result<()> {
    let mut of = std::ffi::OsString::from("of=");
    of.push(file);
    run(Command::new("dd").arg(of).args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]))?;
    Ok(())
}

fn run(command: &mut Command) -> Result<String> {
    let out = command.output().map_err(|e| Error::config(format!("{command:?} does not start: {e}")))?;
    if !out.status.success() {
        return Err(Error::config(format!("{command:?}: {}", String::from_utf8_lossy(&out.stderr))));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
