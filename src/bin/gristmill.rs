//! The `gristmill` command: see `gristmill --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gristmill::cli::main(std::env::args_os()))
}
