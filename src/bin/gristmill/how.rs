//! Who evaluates a pipeline: threads of this process, or worker processes.

use gristmill::spec::{Pipeline, parse_bytes};
use gristmill::{BoxIter, Element, Executor, IterDataset, LoaderBuilder, Result};

/// Who evaluates the pipeline. The choice never changes what is delivered.
#[derive(clap::Args)]
pub(crate) struct How {
    /// Worker processes [default: what the pipeline file says, or one with a thread for every core]
    #[arg(long, value_name = "N", conflicts_with_all = ["threads", "inline"])]
    workers: Option<usize>,
    /// Threads of each worker process
    #[arg(long, value_name = "N", conflicts_with_all = ["threads", "inline"])]
    threads_per_worker: Option<usize>,
    /// Memory for worker processes and what they share with this one, such as 2GiB [default: a quarter of what is available]
    #[arg(long, value_name = "BYTES", value_parser = memory, conflicts_with_all = ["threads", "inline"])]
    ram: Option<u64>,
    /// Threads of this process, and no workers
    #[arg(long, value_name = "N", conflicts_with = "inline")]
    threads: Option<usize>,
    /// Everything on one thread, nothing ahead of the consumer
    #[arg(long)]
    inline: bool,
}

fn memory(text: &str) -> std::result::Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "an amount of memory is needed, such as 512MiB or 2GiB".to_owned())
}

impl How {
    /// A loader of `dataset`, which is what `pipeline` makes: by the arguments, else as the file says.
    pub(crate) fn loader(
        &self,
        dataset: BoxIter<Element>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let settings = pipeline.settings();
        let in_workers = self.workers.is_some() || self.threads_per_worker.is_some() || self.ram.is_some();
        let here = match (self.threads, self.inline) {
            (Some(n), _) => Some(Executor::Threads(n)),
            (None, true) => Some(Executor::Inline),
            (None, false) => settings.executor.filter(|_| !in_workers),
        };
        let builder = dataset.loader();
        let builder = match here {
            Some(executor) => builder.executor(executor),
            None => self.in_workers(builder, pipeline)?,
        };
        Ok(match settings.buffer {
            Some(batches) => builder.buffer(batches),
            None => builder,
        })
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn in_workers(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        use gristmill::workers::MpOptions;
        let settings = pipeline.settings();
        let mut options = MpOptions::auto();
        if let Some(n) = self.workers.or(settings.workers) {
            options = options.workers(n);
        }
        if let Some(n) = self.threads_per_worker.or(settings.threads_per_worker) {
            options = options.threads_per_worker(n);
        }
        if let Some(bytes) = self.ram.or(settings.ram_budget) {
            options = options.ram_budget(bytes);
        }
        builder.mp_prefetch(|pipeline: Pipeline| pipeline.build(), pipeline, options)
    }

    #[cfg(not(all(feature = "workers", target_os = "linux")))]
    fn in_workers(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let settings = pipeline.settings();
        if self.workers.or(settings.workers).is_some_and(|n| n > 0) {
            return Err(gristmill::Error::config("this build has no worker processes")
                .help("they need Linux and the feature `workers`; --threads N works everywhere"));
        }
        Ok(builder.executor(Executor::all_cores()))
    }
}
