//! Starter of the workers of one pool, where that is not this program started again.

#[cfg(feature = "python")]
use std::os::fd::OwnedFd;
#[cfg(feature = "python")]
use std::sync::{Arc, OnceLock};

#[cfg(feature = "python")]
use super::command::Call;
use super::command::WorkerCommand;
#[cfg(feature = "python")]
use super::zygote::Zygote;
#[cfg(feature = "python")]
use crate::workers::sys::process::Process;

/// A command, and the process that forks workers instead, if it can have one.
#[derive(Debug)]
pub(crate) struct Starter {
    command: WorkerCommand,
    /// The process that forks, once it was asked for.
    #[cfg(feature = "python")]
    zygote: OnceLock<Option<Arc<Zygote>>>,
}

impl Starter {
    #[cfg(feature = "python")]
    pub(crate) fn new(command: WorkerCommand) -> Self {
        Self { command, zygote: OnceLock::new() }
    }

    pub(super) fn command(&self) -> &WorkerCommand {
        &self.command
    }

    /// Has the process that forks workers started, if there is to be one: there is something to do until they are wanted.
    #[cfg(feature = "python")]
    pub(crate) fn begin(&self) {
        let _ = self.zygote();
    }

    /// Has it load what all workers need.
    #[cfg(feature = "python")]
    pub(crate) fn load(&self, modules: &[String]) {
        if let Some(zygote) = self.zygote() {
            zygote.load(modules);
        }
    }

    #[cfg(feature = "python")]
    fn zygote(&self) -> Option<&Arc<Zygote>> {
        self.command.to_fork.as_ref()?;
        self.zygote.get_or_init(|| Zygote::start(&self.command).map(Arc::new)).as_ref()
    }

    /// A worker for `call` that was forked; `None` where it has to be started.
    #[cfg(feature = "python")]
    pub(super) fn fork(&self, call: Call, socket: &OwnedFd) -> Option<Process> {
        self.zygote()?.fork(Call { forked: true, ..call }, socket)
    }
}
