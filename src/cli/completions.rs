//! `gristmill completions`: completion scripts for shells.

use clap::Command;
use clap_complete::Shell;

use crate::Result;
use crate::cli::{Outcome, examples, output};

/// Prints the completion script of a shell
///
/// The lines of bash and fish belong in ~/.bashrc and ~/.config/fish/config.fish; the file of zsh in a folder of $fpath.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "eval \"$(gristmill completions bash)\""
    "gristmill completions fish | source"
    "gristmill completions zsh > ~/.zfunc/_gristmill"
))]
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
