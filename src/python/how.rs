//! Options of a pass in Python: the run options of every interface, and options whose values are Python objects.

use super::guard::GivenGuard;
use super::item::Item;
use super::part::Given;
use super::workers::Workers;
use crate::dataset::BoxIter;
use crate::spec::RunOptions;
use crate::{Deal, Executor, Load, LoaderBuilder, Part, Result};

/// Options that a pass keeps when it is started again, at another position or with other rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct How {
    /// Run options without `part`, `deal` and `guard`, whose values are Python objects here.
    pub(crate) run: RunOptions,
    /// Whether consumers may write to the arrays.
    pub(crate) writable: bool,
    /// Whether states of other pipelines are accepted.
    pub(crate) accept_changes: bool,
    /// Name of the functions of the pipeline, by which key files are found. Empty without keys.
    pub(crate) functions: String,
}

/// Options of a pass.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) how: How,
    /// Whether `mp_prefetch` starts processes.
    pub(crate) workers: bool,
    pub(crate) part: Option<Given>,
    pub(crate) deal: Deal,
    pub(crate) guard: GivenGuard,
}

default_as!(Setup, Self { how: How::default(), workers: true, part: None, deal: Deal::Even, guard: GivenGuard::Auto });

impl Setup {
    /// Sets whether `mp_prefetch` starts processes.
    pub(crate) fn with_workers(self, workers: bool) -> Self {
        Self { workers, ..self }
    }
}

impl How {
    /// Returns the executor in this process. By default, the consumer's thread evaluates.
    pub(super) fn executor(&self) -> Executor {
        self.run.executor().unwrap_or(Executor::Inline)
    }

    /// Prepares a pass over the rows of `part`, or over all rows, without guard and views.
    pub(super) fn builder(
        &self,
        dataset: &BoxIter<Item>,
        workers: Option<&Workers>,
        part: Option<Part>,
        deal: Deal,
    ) -> Result<LoaderBuilder<BoxIter<Item>>> {
        let builder = dataset.clone().loader().executor(self.executor()).deal(deal).accept_changes(self.accept_changes);
        let mut builder = self.run.with_keys(self.run.with_policies(builder)?, None, &self.functions)?;
        if let Some(workers) = workers {
            builder = workers.run(builder)?;
        }
        Ok(if let Some(part) = part { builder.part(part) } else { builder })
    }
}
