//! The start of a pipeline with its run options.

use std::path::PathBuf;

use super::{Address, Limit, RunOptions, Seconds};
#[cfg(all(feature = "workers", target_os = "linux"))]
use super::{Deadline, OnPoison};
use crate::dataset::{BoxIter, IterDataset};
use crate::element::Element;
use crate::error::{Error, Result};
#[cfg(not(all(feature = "workers", target_os = "linux")))]
use crate::exec::Executor;
use crate::exec::FailedElements;
use crate::keys::KeyFolder;
use crate::loader::{Load, LoaderBuilder};
#[cfg(feature = "cli")]
use crate::part::Deal;
use crate::part::SharedFolder;
use crate::spec::Pipeline;

impl RunOptions {
    /// A loader of `dataset`, which `pipeline` has built. Evaluators that are left open are a worker process with a thread for every core.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for options that this build or this pipeline lacks.
    pub fn loader(&self, dataset: BoxIter<Element>, pipeline: &Pipeline) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let builder = dataset.loader();
        let builder = match self.executor() {
            Some(executor) => builder.executor(executor),
            None => self.in_workers(builder, pipeline)?,
        };
        self.around(builder, pipeline)
    }

    /// Sets all options but the evaluators.
    ///
    /// # Errors
    /// As [`loader`](Self::loader).
    pub(crate) fn around(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let mut builder = self.with_rows(self.with_policies(builder)?, pipeline)?;
        // A host that reads all rows has no other host to compare with.
        if let Some(folder) = self.hosts.guard.as_ref().filter(|_| self.part().is_some()) {
            builder = builder.guard(SharedFolder::new(folder));
        }
        if self.files.ledger.is_some() {
            builder = builder.of_file(pipeline.located()?);
        }
        Ok(self.with_views(builder))
    }

    /// Sets the buffer, the time limits, the edits and the policy for failed elements.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a limit of padding without padding; errors of reading edits.
    pub(crate) fn with_policies<D: IterDataset + 'static>(
        &self,
        mut builder: LoaderBuilder<D>,
    ) -> Result<LoaderBuilder<D>> {
        if let Some(batches) = self.buffer() {
            builder = builder.buffer(batches);
        }
        if let Some(Limit(timeout)) = self.evaluators.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(Seconds(timeout)) = self.hosts.guard_timeout {
            builder = builder.guard_timeout(timeout);
        }
        Ok(builder.edits(self.edits()?).on_failed_element(self.failed_elements()?))
    }

    /// Adds the views of the run, and the files that it writes.
    pub(crate) fn with_views<D: IterDataset + 'static>(&self, mut builder: LoaderBuilder<D>) -> LoaderBuilder<D> {
        if let Some(Address(address)) = &self.views.metrics {
            builder = builder.metrics(address);
        }
        if self.views.top == Some(true) {
            builder = builder.top();
        }
        if let Some(file) = &self.files.record {
            builder = builder.record(file);
        }
        if let Some(file) = &self.files.trace {
            builder = builder.trace(file);
        }
        if let Some(file) = &self.files.ledger {
            builder = builder.ledger(file);
        }
        builder
    }

    /// Chooses the rows to deliver, and the keys by which they are planned.
    fn with_rows(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        // If elements that fail become padding, the rows of the whole are planned, too.
        let whole = self.given_part().filter(|_| !matches!(self.failed_elements(), Ok(FailedElements::Error)));
        let deal = self.hosts.deal.as_ref().map(|dealt| dealt.0.clone()).unwrap_or_default();
        match self.part().or(whole) {
            Some(part) => Ok(self.with_keys(builder.part(part.clone()), pipeline.keys(), "")?.deal(deal)),
            None if self.records_keys() => self.with_keys(builder, pipeline.keys(), ""),
            None => Ok(builder),
        }
    }

    fn records_keys(&self) -> bool {
        self.hosts.record_keys == Some(true)
    }

    /// Adds key files: of the folder that is given, or of the folder `beside` the pipeline file. The flag of `beside` is true if that
    /// folder must exist.
    ///
    /// `functions` names the functions of the pipeline that are not described by its file.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if keys are to be recorded and there is no folder.
    pub(crate) fn with_keys<D: IterDataset + 'static>(
        &self,
        builder: LoaderBuilder<D>,
        beside: Option<(PathBuf, bool)>,
        functions: &str,
    ) -> Result<LoaderBuilder<D>> {
        let given = self.hosts.keys.clone().map(|folder| (folder, true)).or(beside);
        let files = |folder: PathBuf| KeyFolder::new(folder).functions(functions);
        Ok(match given {
            Some((folder, _)) if self.records_keys() => builder.keys(files(folder).recorded()),
            Some((folder, true)) => builder.keys(files(folder).needed()),
            Some((folder, false)) if folder.is_dir() => builder.keys(files(folder)),
            None if self.records_keys() => {
                return Err(
                    Error::config("keys cannot be recorded without a folder for them").help("add `keys: FOLDER`")
                );
            }
            _ => builder,
        })
    }

    /// Checks that a deal has a part. A file may name the deal of all hosts, so only options of this start are checked.
    #[cfg(feature = "cli")]
    pub(crate) fn check_deal(&self, all: &Self) -> Result<()> {
        let balances = self.hosts.deal.as_ref().is_some_and(|dealt| dealt.0 != Deal::Even);
        if balances && all.hosts.part.is_none() {
            let text = "rows cannot be dealt among ranks without a part, which gives the rank and the number of ranks";
            return Err(Error::config(text).help("add `part: 0/64`"));
        }
        Ok(())
    }

    #[cfg(not(all(feature = "workers", target_os = "linux")))]
    fn in_workers(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        _: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        if self.processes.workers.is_some_and(|count| count.0 > 0) {
            return Err(Error::config("this build has no worker processes")
                .help("they need Linux and the feature `workers`; `threads: auto` works everywhere"));
        }
        Ok(builder.executor(Executor::all_cores()))
    }
}

#[cfg(all(feature = "workers", target_os = "linux"))]
impl RunOptions {
    fn in_workers(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        builder.mp_prefetch(|pipeline: Pipeline| pipeline.build(), pipeline, self.mp_options())
    }

    /// Options of worker processes.
    pub(crate) fn mp_options(&self) -> crate::workers::MpOptions {
        use crate::workers::options::{Memory, MpOptions, Numbers, Poison};
        let (given, limits, auto) = (&self.processes, &self.limits, MpOptions::auto());
        MpOptions {
            numbers: Numbers {
                workers: given.workers.map(|count| count.0 as usize).into(),
                most_workers: given.max_workers.map(|count| count.0 as usize),
                threads: given.threads_per_worker.map(|count| count.0 as usize).into(),
                ..Numbers::default()
            },
            memory: Memory {
                budget: given.ram_budget.map(|budget| budget.0),
                heap: limits.worker_heap.map(u64::from),
                element: limits.max_element.map(u64::from),
            },
            deadline: limits.deadline.map_or(auto.deadline, |Deadline(limit)| limit),
            retries: limits.retries.map_or(auto.retries, |count| count.0),
            poison: limits
                .on_poison
                .map_or(auto.poison, |OnPoison(skips)| if skips { Poison::Skip } else { Poison::Error }),
            tune: limits.tune.unwrap_or(auto.tune),
            ..auto
        }
    }
}
