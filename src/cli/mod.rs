//! The `gristmill` command: data on stdout, everything else on stderr. The binary and the Python package run the same.

mod bench;
mod consume;
mod convert;
mod demo;
mod explain;
mod format;
mod how;
mod index;
mod inspect;
mod interrupt;
mod layout;
mod lengths;
mod output;
mod padding;
mod progress;
mod run;
mod saved;
mod step_time;
mod tokenise;
mod tokens;
mod tune;
mod verify;
mod write;

use std::ffi::OsString;

use crate::ErrorKind;
use clap::{Parser, Subcommand};

/// Feeds training jobs: runs data pipelines and says where their time goes.
#[derive(Parser)]
#[command(version, max_term_width = 100, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done (also when the reader of stdout has gone away)
  1    something is wrong with the data or with a saved state
  2    could not run: arguments, pipeline file, missing files
  130  interrupted; what had to be saved is saved

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
    /// Shows what is in files of data
    Inspect(inspect::Args),
    /// Shows what padding would cost on your documents, and what removes it
    AnalyzePadding(padding::Args),
    /// Shows the stages of a pipeline file, what they hold in memory and what comes out
    Explain(explain::Args),
    /// Writes data in another format, in shards
    Convert(convert::Args),
    /// Writes text as token ids, in shards
    Tokenise(tokenise::Args),
    /// Builds the indices by which records of text, TFRecord and tar files are found
    Index(index::Args),
    /// Reads everything, and lists what is damaged
    Verify(verify::Args),
    /// Finds out with how many threads and how much memory a pipeline should run
    Tune(tune::Args),
}

/// How a command ended, besides errors.
enum Outcome {
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
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(told) => {
            // Help is an answer, on stdout; nobody reading is fine.
            let _ = told.print();
            return told.exit_code() as u8;
        }
    };
    crate::events::listen(output::warn);
    let (result, json) = match &cli.command {
        Command::Run(args) => (run::main(args), args.json),
        Command::Bench(args) => (bench::main(args), args.json),
        Command::Demo(args) => (demo::main(args), args.json),
        Command::Inspect(args) => (inspect::main(args), args.json),
        Command::AnalyzePadding(args) => (padding::main(args), args.json),
        Command::Explain(args) => (explain::main(args), args.json),
        Command::Convert(args) => (convert::main(args), args.json),
        Command::Tokenise(args) => (tokenise::main(args), args.json),
        Command::Index(args) => (index::main(args), args.json),
        Command::Verify(args) => (verify::main(args), args.json),
        Command::Tune(args) => (tune::main(args), args.json),
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

/// 1 if it ran and found something wrong, 2 if it could not run.
fn code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Data | ErrorKind::State => 1,
        ErrorKind::Cancelled => 130,
        _ => 2,
    }
}
