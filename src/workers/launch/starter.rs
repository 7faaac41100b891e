//! Custom starter for the workers of one pool, if they are not this program started again.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use super::command::Call;
use super::command::WorkerCommand;
#[cfg(feature = "python")]
use super::zygote::Zygote;
use crate::workers::sys::process::Process;

/// Command that starts workers, and the process that forks them instead, if the command supports it.
#[derive(Debug)]
pub(crate) struct Starter {
    pub(super) command: WorkerCommand,
    /// The forking process, after its first use.
    #[cfg(feature = "python")]
    zygote: OnceLock<Option<Arc<Zygote>>>,
}

#[cfg(feature = "python")]
impl Starter {
    pub(crate) fn new(command: WorkerCommand) -> Self {
        Self { command, zygote: OnceLock::new() }
    }

    /// Starts the forking process ahead of the first worker, if the command supports it, to use the time until then.
    pub(crate) fn begin(&self) {
        let _ = self.zygote();
    }

    /// Makes the forking process load the modules that all workers need.
    pub(crate) fn load(&self, modules: &[String]) {
        if let Some(zygote) = self.zygote() {
            zygote.load(modules);
        }
    }

    fn zygote(&self) -> Option<&Arc<Zygote>> {
        self.command.to_fork.as_ref()?;
        self.zygote.get_or_init(|| Zygote::start(&self.command).map(Arc::new)).as_ref()
    }

    /// Forks a worker for `call`; returns `None` if the worker has to be started by the command.
    pub(super) fn fork(&self, call: Call, socket: &OwnedFd) -> Option<Process> {
        self.zygote()?.fork(Call { forked: true, ..call }, socket)
    }
}
