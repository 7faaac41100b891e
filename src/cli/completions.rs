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
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if args.shell == Shell::Fish {
        script += &values_for_fish(&command);
    }
    output::data(&script);
    Ok(Outcome::Done)
}

/// Returns completions for the values of positional arguments, which the generator for fish omits.
fn values_for_fish(command: &Command) -> String {
    let mut lines = String::new();
    for (subcommand, argument) in
        command.get_subcommands().flat_map(|sub| sub.get_positionals().map(move |arg| (sub, arg)))
    {
        let values: Vec<String> =
            argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        if !values.is_empty() {
            let (name, values) = (subcommand.get_name(), values.join(" "));
            lines +=
                &format!("complete -c gristmill -n \"__fish_gristmill_using_subcommand {name}\" -f -a \"{values}\"\n");
        }
    }
    lines
}
