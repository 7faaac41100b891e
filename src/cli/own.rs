//! A copy of this command in a separate process.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use crate::{Error, ErrorKind, Result};

static STARTED_AS: OnceLock<Vec<OsString>> = OnceLock::new();
static INTERPRETED: OnceLock<(OsString, Vec<OsString>)> = OnceLock::new();

/// Records the arguments of this process, which begin with the program's name.
pub(super) fn set_arguments(arguments: &[OsString]) {
    // Only tests run further commands in a process, and these commands start no copies.
    let _ = STARTED_AS.set(arguments.iter().skip(1).cloned().collect());
}

/// Makes [`command`] start `interpreter` with `arguments` before the arguments of this process.
/// Needed if this process is not the binary itself.
pub(crate) fn set_interpreter(interpreter: OsString, arguments: &[&str]) {
    let _ = INTERPRETED.set((interpreter, arguments.iter().map(OsString::from).collect()));
}

/// Returns a command that starts this program again with its arguments.
pub(super) fn command() -> Result<Command> {
    let mut command = match INTERPRETED.get() {
        Some((interpreter, arguments)) => {
            let mut command = Command::new(interpreter);
            command.args(arguments);
            command
        }
        None => Command::new(
            std::env::current_exe()
                .map_err(|e| Error::new(ErrorKind::Io, format!("this program cannot be started again: {e}")))?,
        ),
    };
    command.args(STARTED_AS.get().into_iter().flatten());
    Ok(command)
}
