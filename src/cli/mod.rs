//! The `gristmill` command: data on stdout, everything else on stderr.
//! The binary and the Python package run this code.

mod bad;
mod bench;
mod completions;
mod consume;
mod convert;
mod demo;

pub(crate) mod doctor;
pub(crate) mod elsewhere;
pub(crate) mod explain;
mod format;
mod hash;
mod how;
mod index;
mod inspect;
mod interrupt;
mod keys;
mod layout;
mod ledger;
mod lengths;
mod man;
mod output;
pub(crate) mod own;
mod padding;
mod plan;
mod progress;
mod report;
mod run;
mod saved;
mod schema;
mod shown;
mod stages;
mod step_time;
mod tokenise;
#[cfg(all(feature = "top", target_os = "linux"))]
mod top;
mod tune;
mod verify;
mod version;
mod views;
mod write;

use std::ffi::OsString;

use crate::ErrorKind;
use crate::spec::nearest;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing::Level;

/// Feeds training jobs: runs data pipelines and says where their time goes.
#[derive(Parser)]
#[command(
    version,
    long_version = version::long(),
    max_term_width = 100,
    after_help = FIRST_STEPS,
    after_long_help = EXIT_CODES,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print notes of the library, too; -vv prints all of them
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL)]
    verbose: u8,
    /// Print results and errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    quiet: bool,
}

/// Headings of options that several commands have.
const GLOBAL: &str = "Global options";
const OUTPUT: &str = "Output";

/// Makes the text after the long help of a command: its examples.
macro_rules! examples {
    ($($line:literal)*) => {
        concat!(
            "Examples:\n",
            $("  ", $line, "\n",)*
            "\nExit codes: 0 done, 1 data or a state is wrong, 2 could not run, 130 interrupted. See `gristmill --help`."
        )
    };
}
use examples;

macro_rules! first_steps {
    () => {
        "\
Examples:
  gristmill demo                      generated text becomes packed batches
  gristmill inspect data/*.parquet    format, columns and records of files
  gristmill run pipeline.yaml         a run of a pipeline file, and its report

`gristmill COMMAND -h` lists options, `gristmill COMMAND --help` explains them."
    };
}

const FIRST_STEPS: &str = first_steps!();

const EXIT_CODES: &str = concat!(
    first_steps!(),
    "

Exit codes:
  0    done (also if the reader of stdout has gone away)
  1    something is wrong with the data or with a saved state
  2    could not run: arguments, pipeline file, missing files
  130  interrupted, after the state was saved
  131  stopped at once by a second Ctrl-C, before the state was saved

Results go to stdout, everything else to stderr. --json turns results into JSON.
NO_COLOR is respected."
);

// The first paragraph of a command's arguments is its line in the list of commands.
#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Bench(bench::Args),
    Demo(demo::Args),
    Report(report::Args),
    #[cfg(all(feature = "top", target_os = "linux"))]
    Top(top::Args),
    Inspect(inspect::Args),
    #[command(alias = "analyse-padding")]
    AnalyzePadding(padding::Args),
    Explain(explain::Args),
    Plan(plan::Args),
    Convert(convert::Args),
    #[command(alias = "tokenize")]
    Tokenise(tokenise::Args),
    Index(index::Args),
    Hash(hash::Args),
    Verify(verify::Args),
    Which(ledger::which::Args),
    When(ledger::when::Args),
    Audit(ledger::audit::Args),
    Replay(ledger::replay::Args),
    Tune(tune::Args),
    Doctor(doctor::Args),
    Stages(stages::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Outcome of a command that did not fail.
pub(crate) enum Outcome {
    Done,
    /// The command ran and reported a problem.
    Found,
    Interrupted,
}

/// Runs the command in `arguments`, which begin with the program's name, and returns the exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(program) = arguments.first() {
        output::set_program(program);
    }
    own::set_arguments(&arguments);
    let as_json = arguments.iter().any(|argument| argument == "--json");
    let cli = match parse(arguments) {
        Ok(cli) => cli,
        Err(told) => {
            // Help is a result and goes to stdout. A closed stdout is not an error.
            let _ = told.print();
            if as_json && told.use_stderr() {
                output::json(&argument_error(&told.render().to_string()));
            }
            return told.exit_code() as u8;
        }
    };
    output::set_quiet(cli.quiet);
    crate::events::set_level(match (cli.quiet, cli.verbose) {
        (true, _) => Level::ERROR,
        (false, 0) => Level::WARN,
        (false, 1) => Level::INFO,
        (false, _) => Level::TRACE,
    });
    crate::events::listen(output::event);
    let (result, json) = match &cli.command {
        Command::Run(args) => (run::main(args), args.json),
        Command::Bench(args) => (bench::main(args), args.json),
        Command::Demo(args) => (demo::main(args), args.json),
        Command::Report(args) => (report::main(args), args.json),
        #[cfg(all(feature = "top", target_os = "linux"))]
        Command::Top(args) => (top::main(args), false),
        Command::Inspect(args) => (inspect::main(args), args.json),
        Command::AnalyzePadding(args) => (padding::main(args), args.json),
        Command::Explain(args) => (explain::main(args), args.json),
        Command::Plan(args) => (plan::main(args), args.json),
        Command::Convert(args) => (convert::main(args), args.json),
        Command::Tokenise(args) => (tokenise::main(args), args.json),
        Command::Index(args) => (index::main(args), args.json),
        Command::Hash(args) => (hash::main(args), args.json),
        Command::Verify(args) => (verify::main(args), args.json),
        Command::Which(args) => (ledger::which::main(args), args.json),
        Command::When(args) => (ledger::when::main(args), args.json),
        Command::Audit(args) => (ledger::audit::main(args), args.json),
        Command::Replay(args) => (ledger::replay::main(args), args.json),
        Command::Tune(args) => (tune::main(args), args.json),
        Command::Doctor(args) => (doctor::main(args), args.json),
        Command::Stages(args) => (stages::main(args), args.json),
        Command::Schema(args) => (schema::main(args), false),
        Command::Completions(args) => (completions::main(args, Cli::command()), false),
        Command::Man(args) => (man::main(args, Cli::command()), false),
    };
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Found) => 1,
        Ok(Outcome::Interrupted) => 130,
        Err(error) => {
            output::error(&error, json);
            code(error.kind())
        }
    }
}

fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let is_option = |argument: &clap::Arg| !argument.is_positional() && argument.get_action().takes_values();
    let mut command = Cli::command().mut_subcommands(|command| {
        // A negative number is a wrong value, not an unknown option.
        command.mut_args(|argument| {
            let may_be_negative = is_option(&argument);
            argument.allow_negative_numbers(may_be_negative)
        })
    });
    let matches = command.try_get_matches_from_mut(arguments);
    let matches = matches.map_err(|mut told| {
        // `-5ms` is a wrong value: the suggestion to write `-- -5ms` would not help.
        told.remove(ContextKind::Suggested);
        suggest_command(&mut told, &command);
        told
    })?;
    Cli::from_arg_matches(&matches)
}

/// Suggests the command that was probably meant, with the rule for all names.
fn suggest_command(told: &mut clap::Error, command: &clap::Command) {
    let Some(ContextValue::String(got)) = told.get(ContextKind::InvalidSubcommand) else { return };
    let names =
        command.get_subcommands().flat_map(|each| std::iter::once(each.get_name()).chain(each.get_all_aliases()));
    let meant = nearest(got, names).map(str::to_owned);
    let is_left_out = got == "top";
    told.remove(ContextKind::SuggestedSubcommand);
    if is_left_out {
        let tip = "`top` needs Linux and a build with `--features top`";
        told.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    } else if let Some(name) = meant {
        told.insert(ContextKind::SuggestedSubcommand, ContextValue::String(name));
    }
}

/// Makes an error object from the output of the argument parser. The first line is the message.
fn argument_error(text: &str) -> serde_json::Value {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let help: Vec<&str> = lines.take_while(|line| !line.starts_with("Usage:")).collect();
    serde_json::json!({"error": {"kind": ErrorKind::Config.as_str(), "message": message, "help": help.join("; ")}})
}

/// Returns the exit code: 1 if a command ran and found a problem, 2 if it could not run, 130 if it was cancelled.
fn code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Data | ErrorKind::State => 1,
        ErrorKind::Cancelled => 130,
        _ => 2,
    }
}
