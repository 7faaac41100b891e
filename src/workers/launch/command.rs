//! The command that starts a worker.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use super::failure::LaunchFailure;
use super::hook;
use crate::store;
use crate::sync::Locked;
use crate::workers::sys::modules;

/// Environment variable that marks a process as a worker and names its parent. Only gristmill sets it.
pub(crate) const WORKER: &str = "GRISTMILL_WORKER";
/// Environment variable that names the program to start as a worker. The user sets it.
pub(crate) const WORKER_EXE: &str = "GRISTMILL_WORKER_EXE";

/// Environment of workers: a thread count from the parent instead of a pool per library, and no accelerators.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("OMP_NUM_THREADS", "1"),
    ("OPENBLAS_NUM_THREADS", "1"),
    ("MKL_NUM_THREADS", "1"),
    ("CUDA_VISIBLE_DEVICES", ""),
    ("JAX_PLATFORMS", "cpu"),
    // Otherwise mimalloc would claim the whole heap limit at the start.
    ("MIMALLOC_ARENA_EAGER_COMMIT", "0"),
];

static CHOSEN: Mutex<Option<(PathBuf, Vec<OsString>)>> = Mutex::new(None);

/// Starts workers with `program` and `arguments` instead of the running program.
///
/// The program must be the same build, or must load the shared library that contains gristmill's code and call
/// [`init`](super::init) in it. A script must end with `exec`. This command takes precedence over the environment
/// variable `GRISTMILL_WORKER_EXE`, which names a program without arguments. Workers that already run are not affected.
pub fn set_worker_command<A: Into<OsString>>(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = A>) {
    let chosen = (program.into(), arguments.into_iter().map(Into::into).collect());
    *CHOSEN.locked() = Some(chosen);
}

/// Program that becomes a worker by calling [`init`](super::init) in the library that contains gristmill.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerCommand {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// Working directory of the program; the parent's if `None`.
    pub(crate) folder: Option<PathBuf>,
    /// Arguments that make the program a process that forks workers.
    pub(crate) to_fork: Option<Vec<OsString>>,
}

/// Returns the command for the process that forks workers. The process reads its requests from `control`.
pub(super) fn zygote(given: &WorkerCommand, control: Stdio) -> Result<Command, LaunchFailure> {
    if std::env::var_os(WORKER).is_some() {
        return Err(LaunchFailure::WorkerAstray);
    }
    let mut command = Command::new(&given.program);
    command.args(given.to_fork.iter().flatten()).envs(ENVIRONMENT).envs(store::variables()).stdin(control);
    surround(&mut command, given);
    Ok(command)
}

/// Sets the folder and output of processes that run user functions, so that their output appears as without workers.
fn surround(command: &mut Command, given: &WorkerCommand) {
    if let Some(folder) = &given.folder {
        command.current_dir(folder);
    }
    command.stdout(standard_output().map_or_else(Stdio::null, Stdio::from));
    command.stderr(standard_error().map_or_else(Stdio::null, Stdio::from));
}

/// The call that a worker reads from its environment: its parent, and the code that takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Whether `main` takes over by calling [`init`](super::init). If false, the hook takes over before `main`.
    pub(crate) in_main: bool,
    /// Whether the parent's forking process forked this worker, which is then not a child of the parent.
    pub(crate) forked: bool,
    /// Process id of the parent.
    pub(crate) parent: u32,
}

impl Call {
    pub(crate) fn write(&self) -> String {
        let who = match (self.forked, self.in_main) {
            (true, _) => "fork",
            (false, true) => "main",
            (false, false) => "hook",
        };
        format!("{who};{}", self.parent)
    }

    pub(crate) fn read(text: &OsStr) -> Option<Self> {
        let mut parts = text.to_str()?.splitn(2, ';');
        let (in_main, forked) = match parts.next()? {
            "main" => (true, false),
            "hook" => (false, false),
            "fork" => (true, true),
            _ => return None,
        };
        Some(Self { in_main, forked, parent: parts.next()?.parse().ok()? })
    }
}

/// Returns the command for one worker, which inherits `socket`, and the program's path for messages.
pub(crate) fn build(
    call: Call,
    socket: OwnedFd,
    given: Option<&WorkerCommand>,
) -> Result<(Command, PathBuf), LaunchFailure> {
    // Without this check, a program whose hook does not act would start itself forever.
    if std::env::var_os(WORKER).is_some() {
        return Err(LaunchFailure::WorkerAstray);
    }
    let (program, arguments) = match given {
        Some(given) => (given.program.clone(), given.arguments.clone()),
        None => program()?,
    };
    let mut command = Command::new(&program);
    command.args(arguments).env(WORKER, call.write()).envs(ENVIRONMENT).envs(store::variables());
    if program == Path::new(SELF) {
        command.arg0(format!("gristmill worker of {}", call.parent));
    }
    command.stdin(Stdio::from(socket));
    if let Some(given) = given {
        surround(&mut command, given)
    } else {
        // Output of code in a worker must not mix with the trainer's standard output, which may be data.
        command.stdout(standard_error().map_or_else(Stdio::null, Stdio::from));
        command.stderr(standard_error().map_or_else(Stdio::null, Stdio::from));
    }
    Ok((command, program))
}

const SELF: &str = "/proc/self/exe";

fn program() -> Result<(PathBuf, Vec<OsString>), LaunchFailure> {
    if let Some(chosen) = CHOSEN.locked().clone() {
        return Ok(chosen);
    }
    if let Some(program) = std::env::var_os(WORKER_EXE) {
        return Ok((program.into(), Vec::new()));
    }
    if modules::started_through_loader() {
        return Err(LaunchFailure::ThroughLoader);
    }
    match hook::module() {
        Some(module) if !module.main => Err(LaunchFailure::InLibrary(module.path)),
        _ => Ok((SELF.into(), Vec::new())),
    }
}

/// Returns a duplicate of this process's standard output, or `None` if it is closed.
fn standard_output() -> Option<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).ok()
}

/// Returns a duplicate of this process's standard error, or `None` if it is closed.
fn standard_error() -> Option<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_as_it_was_written() {
        for call in [
            Call { in_main: false, forked: false, parent: 12 },
            Call { in_main: true, forked: false, parent: u32::MAX },
            Call { in_main: true, forked: true, parent: 1 },
        ] {
            assert_eq!(Call::read(OsStr::new(&call.write())), Some(call));
        }
        for other in ["", "1", "hook", "hook;", "hook;x", "hook;-1", "hook;1;2", "else;1"] {
            assert_eq!(Call::read(OsStr::new(other)), None, "{other}");
        }
    }
}
