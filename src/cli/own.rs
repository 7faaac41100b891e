//! This command once more, in a process of its own.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use crate::{Error, ErrorKind, Result};

static STARTED_AS: OnceLock<Vec<OsString>> = OnceLock::new();
static INTERPRETED: OnceLock<(OsString, Vec<OsString>)> = OnceLock::new();

/// Notes the arguments of this process, the first of which is the program's name.
pub(super) fn set_arguments(arguments: &[OsString]) {
    // Commands after the first in one process are tests of ours, which start no other.
    let _ = STARTED_AS.set(arguments.iter().skip(1).cloned().collect());
}

/// Has [`command`] start `interpreter` with `arguments` in front of those of this process: what runs is not the binary itself.
#[cfg(feature = "python")]
pub(crate) fn set_interpreter(interpreter: OsString, arguments: &[&str]) {
    let _ = INTERPRETED.set((interpreter, arguments.iter().map(OsString::from).collect()));
}

/// A process that does the same with the same arguments.
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
