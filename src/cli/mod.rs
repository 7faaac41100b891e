//! The `gristmill` command: data on stdout, everything else on stderr. The binary and the Python package run the same.

mod bad;
mod bench;
mod completions;
mod consume;
mod convert;
mod demo;

pub(crate) mod doctor;
#[cfg_attr(
    not(all(feature = "python", feature = "workers", target_os = "linux")),
    allow(dead_code, reason = "engines are written in Python")
)]
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
mod lengths;
mod man;
mod output;
pub(crate) mod own;
mod padding;
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
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing::Level;

/// Feeds training jobs: runs data pipelines and says where their time goes.
#[derive(Parser)]
#[command(
    version,
    long_version = version::long(),
    max_term_width = 100,
    after_help = EXIT_CODES,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say what the library notes while it runs; twice: all of it
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say nothing but results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done (also when the reader of stdout has gone away)
  1    something is wrong with the data or with a saved state
  2    could not run: arguments, pipeline file, missing files
  130  interrupted; what had to be saved is saved
  131  stopped at once by a second Ctrl-C, before it was saved

Results go to stdout, everything else to stderr. --json turns results into JSON.
NO_COLOR is respected.";

#[derive(Subcommand)]
enum Command {
    /// Runs a pipeline file and reports where the time went
    Run(run::Args),
    /// Measures how fast a pipeline delivers, over settings and runs
    Bench(bench::Args),
    /// Generates text, packs it into batches and reports: nothing else is needed
    Demo(demo::Args),
    /// Shows what a recorded run waited for, also one that was killed
    Report(report::Args),
    /// Shows what a run of this machine waits for, while it runs
    #[cfg(all(feature = "top", target_os = "linux"))]
    Top(top::Args),
    /// Shows what is in files of data
    Inspect(inspect::Args),
    /// Shows what padding would cost on your documents, and what removes it
    #[command(alias = "analyse-padding")]
    AnalyzePadding(padding::Args),
    /// Shows the stages of a pipeline file, what they hold in memory and what comes out
    Explain(explain::Args),
    /// Writes data in another format, in shards
    Convert(convert::Args),
    /// Writes text as token ids, in shards
    #[command(alias = "tokenize")]
    Tokenise(tokenise::Args),
    /// Builds the indices by which records of text, TFRecord and tar files are found
    Index(index::Args),
    /// Adds up digests of rows that several hosts or runs delivered
    Hash(hash::Args),
    /// Reads everything, and lists what is damaged
    Verify(verify::Args),
    /// Finds out with how many threads and how much memory a pipeline should run
    Tune(tune::Args),
    /// Says what will hurt on this machine, and the command that mends it
    Doctor(doctor::Args),
    /// Lists the sources and stages that a pipeline file can name
    Stages(stages::Args),
    /// Prints the JSON Schema of pipeline files, for editors
    Schema(schema::Args),
    /// Prints what a shell completes
    Completions(completions::Args),
    /// Writes the manual's pages, for `man`
    Man(man::Args),
}

/// The end of a command, besides errors.
pub(crate) enum Outcome {
    Done,
    /// It ran, and told of what is wrong.
    Found,
    Interrupted,
}

/// Runs the command that `arguments` say, the first of which is the program's name, and returns the exit code.
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
            // Help is an answer, on stdout; nobody reading is fine.
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
        Command::Convert(args) => (convert::main(args), args.json),
        Command::Tokenise(args) => (tokenise::main(args), args.json),
        Command::Index(args) => (index::main(args), args.json),
        Command::Hash(args) => (hash::main(args), args.json),
        Command::Verify(args) => (verify::main(args), args.json),
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
    let command = Cli::command().mut_subcommands(|command| {
        // What is below zero is a wrong value, and no option that is not known.
        command.mut_args(|argument| {
            let may_be_negative = is_option(&argument);
            argument.allow_negative_numbers(may_be_negative)
        })
    });
    let matches = command.try_get_matches_from(arguments).map_err(|mut told| {
        // `-5ms` is a wrong value: nobody who is told to write `-- -5ms` would be helped.
        told.remove(clap::error::ContextKind::Suggested);
        told
    })?;
    Cli::from_arg_matches(&matches)
}

/// Makes an object like that of other errors of what the parser of arguments says: its first line is what is wrong.
fn argument_error(text: &str) -> serde_json::Value {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let help: Vec<&str> = lines.take_while(|line| !line.starts_with("Usage:")).collect();
    serde_json::json!({"error": {"kind": ErrorKind::Config.as_str(), "message": message, "help": help.join("; ")}})
}

/// 1 if it ran and found something wrong, 2 if it could not run.
fn code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Data | ErrorKind::State => 1,
        ErrorKind::Cancelled => 130,
        _ => 2,
    }
}
