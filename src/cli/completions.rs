//! `gristmill completions`: what a shell completes.

use clap::Command;
use clap_complete::Shell;

use crate::Result;
use crate::cli::{Outcome, output};

/// Prints the completions for a shell.
///
/// Bash: `eval "$(gristmill completions bash)"` in ~/.bashrc; fish: `gristmill completions fish | source`; zsh: into a file `_gristmill`
/// in a folder of $fpath.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn main(args: &Args, mut command: Command) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "gristmill", &mut script);
    output::data(&String::from_utf8_lossy(&script));
    Ok(Outcome::Done)
}
