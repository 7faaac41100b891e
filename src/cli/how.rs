//! Evaluators of a pipeline: threads of this process, or worker processes.

use std::path::PathBuf;

use crate::cli::HOSTS;
use crate::cli::elsewhere::Cluster;
use crate::keys::KeyFolder;
use crate::spec::{Pipeline, parse_bytes, parse_deal};
use crate::units::check_budget;
use crate::{BoxIter, Deal, Element, Error, Executor, FailedElements, Load, LoaderBuilder, Part, Result};

/// Who evaluates the pipeline. The choice never changes what is delivered.
#[derive(Clone, Default, clap::Args)]
#[command(next_help_heading = "Threads and processes")]
pub(crate) struct How {
    /// Worker processes [default: as in the pipeline file, or 1]
    ///
    /// Without any choice there is one worker with a thread for every core.
    #[arg(long, value_name = "N", conflicts_with_all = ["threads", "inline"])]
    workers: Option<usize>,
    /// Maximum number of worker processes if it is tuned [default: 1]
    #[arg(long, value_name = "N", conflicts_with_all = ["workers", "threads", "inline"])]
    max_workers: Option<usize>,
    /// Threads of each worker process
    #[arg(long, value_name = "N", conflicts_with_all = ["threads", "inline"])]
    threads_per_worker: Option<usize>,
    /// Memory of worker processes, such as 2GiB [default: a quarter of what is available]
    ///
    /// It includes the memory that they share with this process. It does not include what this process holds: the elements of a batch, a
    /// window or rows that are being packed.
    #[arg(long, value_name = "BYTES", value_parser = budget, conflicts_with_all = ["threads", "inline"])]
    ram: Option<u64>,
    /// Actors of a Ray cluster instead of worker processes
    ///
    /// `auto` is the cluster that runs here, `local` a cluster that is started for this run, HOST:PORT the head of another cluster. This
    /// machine must be a node of it. --workers, --max-workers, --threads-per-worker and --ram apply to the actors [default: 1 to 8 of one
    /// thread, 1GiB].
    #[arg(long, value_name = "ray://CLUSTER", value_parser = Cluster::parse, conflicts_with_all = ["threads", "inline"])]
    on: Option<Cluster>,
    /// Threads of this process instead of workers
    ///
    /// `auto` tunes their number.
    #[arg(long, value_name = "N|auto", value_parser = threads, conflicts_with = "inline")]
    threads: Option<Executor>,
    /// One thread, which reads nothing ahead
    #[arg(long)]
    inline: bool,
    /// Batches kept ready for the consumer [default: as in the pipeline file, or 2]
    #[arg(long, value_name = "N")]
    buffer: Option<usize>,
    /// Deliver only part I of N of the rows of each batch [default: as in the pipeline file, or all]
    ///
    /// 3/64 is the fourth of 64 hosts.
    #[arg(long, value_name = "I/N", value_parser = part, help_heading = HOSTS)]
    part: Option<Part>,
    /// Folder of key files, by which rows of other hosts are planned [default: as in the pipeline file]
    ///
    /// `gristmill index --keys` writes them. The folder NAME.keys beside the pipeline file is used if it is there.
    #[arg(long, value_name = "DIR", help_heading = HOSTS)]
    keys: Option<PathBuf>,
    /// Write missing key files during the run, for the next start
    ///
    /// It applies without --part, or on the host of the first part.
    #[arg(long, help_heading = HOSTS)]
    record_keys: bool,
    /// How rows are dealt among parts [default: as in the pipeline file, or even]
    ///
    /// `even`: consecutive rows. `balanced: {d_model: 4096}`: rows that take all ranks equally long in a transformer of that width.
    /// `shadow: {…}`: even rows, and a report of what `balanced` would save.
    #[arg(long, value_name = "DEAL", value_parser = deal, help_heading = HOSTS)]
    deal: Option<Deal>,
    /// What to do if an element fails after its row was planned [default: as in the pipeline file, or error]
    ///
    /// `error` ends the run. `pad` puts padding in its place, which the report counts.
    #[arg(long, value_name = "POLICY", value_parser = ["error", "pad"], hide_possible_values = true, help_heading = HOSTS)]
    on_failed_element: Option<String>,
    /// Maximum number of elements that become padding [default: as in the pipeline file, or no limit]
    #[arg(long, value_name = "N", help_heading = HOSTS)]
    failed_element_limit: Option<u64>,
}

/// Bytes of an amount of memory.
pub(crate) fn memory(text: &str) -> std::result::Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "an amount of memory is needed, such as 512MiB or 2GiB".to_owned())
}

/// Parses a number of threads, or as many as pay.
pub(crate) fn threads(text: &str) -> std::result::Result<Executor, String> {
    match text {
        "auto" => Ok(Executor::Auto),
        _ => match text.parse() {
            Ok(threads @ 1..) => Ok(Executor::Threads(threads)),
            _ => Err("a number of threads from 1 on is needed, or `auto`".to_owned()),
        },
    }
}

/// A part of every batch.
fn part(text: &str) -> std::result::Result<Part, String> {
    text.parse().map_err(|e: Error| format!("{}; {}", e.message(), e.help_text().unwrap_or_default()))
}

/// A deal of rows among parts.
fn deal(text: &str) -> std::result::Result<Deal, String> {
    parse_deal(text).map_err(|e| match e.help_text() {
        Some(help) => format!("{}; {help}", e.message()),
        None => e.message().to_owned(),
    })
}

/// Bytes of a RAM budget.
fn budget(text: &str) -> std::result::Result<u64, String> {
    let bytes = memory(text)?;
    check_budget(bytes).map_err(|e| format!("{}; {}", e.message(), e.help_text().unwrap_or_default()))?;
    Ok(bytes)
}

impl How {
    /// Names of the choices that are made here.
    pub(crate) const NAMES: [&str; 9] =
        ["workers", "max_workers", "threads_per_worker", "ram", "threads", "inline", "buffer", "part", "deal"];

    /// Whether `key` names a choice that is made here: one that never changes the data.
    pub(crate) fn has(key: &str) -> bool {
        Self::NAMES.contains(&key)
    }

    /// Whether `key` names a choice of the rows that are delivered.
    pub(crate) fn picks_rows(key: &str) -> bool {
        matches!(key, "part" | "deal")
    }

    /// These choices with others in their place, each a name and a value; names that are not [`has`](Self::has) are left
    /// to others. A choice of another kind (threads, where it was workers) replaces what was chosen before.
    ///
    /// # Errors
    /// For a value that is none, and for choices that exclude each other.
    pub(crate) fn with(&self, choices: &[(String, String)]) -> Result<Self> {
        let mut how = self.clone();
        let mut kinds: Vec<&str> = Vec::new();
        for (key, value) in choices.iter().filter(|(key, _)| Self::has(key)) {
            let kind = match key.as_str() {
                "threads" | "inline" | "buffer" | "part" | "deal" => key,
                _ => "workers",
            };
            let counts = !matches!(kind, "buffer" | "part" | "deal") && (kind != "inline" || value != "false");
            if counts && !kinds.contains(&kind) {
                if kinds.is_empty() && !how.is(kind) {
                    let Self { buffer, part, deal, keys, on_failed_element, failed_element_limit, .. } = how;
                    how = Self { buffer, part, deal, keys, on_failed_element, failed_element_limit, ..Self::default() };
                }
                kinds.push(kind);
            }
            how.set(key, value)?;
        }
        match kinds[..] {
            [one, other, ..] => Err(Error::config(format!("`{one}` and `{other}` exclude each other"))),
            _ => Ok(how),
        }
    }

    /// Whether what is chosen, if anything is, is of this kind.
    fn is(&self, kind: &str) -> bool {
        match kind {
            "threads" => self.threads.is_some(),
            "inline" => self.inline,
            _ => self.threads.is_none() && !self.inline,
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let wrong = |what: &str| Error::config(format!("`{value}` is no value for `{key}`: {what} is needed"));
        let number = |least: usize| {
            value.parse().ok().filter(|&n| n >= least).ok_or_else(|| wrong(&format!("a whole number from {least} on")))
        };
        match key {
            "workers" => self.workers = Some(number(0)?),
            "max_workers" => self.max_workers = Some(number(1)?),
            "threads_per_worker" => self.threads_per_worker = Some(number(1)?),
            "ram" => {
                let bytes = parse_bytes(value).ok_or_else(|| wrong("an amount of memory such as 2GiB"))?;
                check_budget(bytes)?;
                self.ram = Some(bytes);
            }
            "threads" if value == "auto" => self.threads = Some(Executor::Auto),
            "threads" => {
                let count = number(1).map_err(|_| wrong("auto or a whole number from 1 on"))?;
                self.threads = Some(Executor::Threads(count));
            }
            "inline" => self.inline = value.parse().map_err(|_| wrong("true or false"))?,
            "buffer" => self.buffer = Some(number(1)?),
            "part" => self.part = Some(value.parse()?),
            "deal" => self.deal = Some(parse_deal(value)?),
            _ => {}
        }
        Ok(())
    }

    /// A loader of `dataset`, which is what `pipeline` makes: by the arguments, else as the file says.
    pub(crate) fn loader(
        &self,
        dataset: BoxIter<Element>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let settings = pipeline.settings();
        let in_workers = self.workers.or(self.max_workers).or(self.threads_per_worker).is_some()
            || self.ram.is_some()
            || self.on.is_some();
        let here = match (self.threads, self.inline) {
            (Some(threads), _) => Some(threads),
            (None, true) => Some(Executor::Inline),
            (None, false) => settings.executor.filter(|_| !in_workers),
        };
        let builder = match (here, &self.on) {
            (Some(executor), _) => dataset.loader().executor(executor),
            (None, Some(cluster)) => self.elsewhere(dataset, pipeline, cluster.clone())?,
            (None, None) => self.in_workers(dataset.loader(), pipeline)?,
        };
        let builder = match self.buffer.or(settings.buffer) {
            Some(batches) => builder.buffer(batches),
            None => builder,
        };
        let failed = self.failed_elements(pipeline)?;
        let builder = builder.on_failed_element(failed);
        // Where elements that fail become padding, all rows are those of a part, too: they are planned.
        let whole = self.given_part(pipeline).filter(|_| failed != FailedElements::Error);
        Ok(match self.part(pipeline).or(whole) {
            Some(part) => self.with_keys(builder.part(part), pipeline)?.deal(self.deal(pipeline)),
            None => {
                self.check_deal(pipeline)?;
                if self.records_keys(pipeline) { self.with_keys(builder, pipeline)? } else { builder }
            }
        })
    }

    /// Whether keys that are not there are written.
    fn records_keys(&self, pipeline: &Pipeline) -> bool {
        self.record_keys || pipeline.settings().record_keys
    }

    /// The same with key files: those that are asked for, or what is there.
    fn with_keys(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let asked = self.keys.clone().map(|folder| (folder, true)).or_else(|| pipeline.keys());
        Ok(match asked {
            Some((folder, _)) if self.records_keys(pipeline) => builder.keys(KeyFolder::new(folder).recorded()),
            Some((folder, true)) => builder.keys(KeyFolder::new(folder).needed()),
            Some((folder, false)) if folder.is_dir() => builder.keys(KeyFolder::new(folder)),
            None if self.records_keys(pipeline) => {
                return Err(
                    Error::config("keys are to be recorded, and there is no folder for them").help("add --keys")
                );
            }
            _ => builder,
        })
    }

    /// How rows are dealt among parts.
    fn deal(&self, pipeline: &Pipeline) -> Deal {
        self.deal.clone().or_else(|| pipeline.settings().deal.clone()).unwrap_or_default()
    }

    /// The policy for elements that fail after rows were planned of them.
    fn failed_elements(&self, pipeline: &Pipeline) -> Result<FailedElements> {
        let of_file = pipeline.settings().failed_elements;
        let pads = match &self.on_failed_element {
            Some(policy) => policy == "pad",
            None => of_file.is_some_and(|policy| policy != FailedElements::Error),
        };
        let limit = match (self.failed_element_limit, of_file) {
            (None, Some(FailedElements::Pad { limit })) if pads => limit,
            (limit, _) => limit,
        };
        FailedElements::chosen(pads, limit)
    }

    /// Checks that a part is said where a deal is asked for: a file may say the deal of all hosts, and an argument is of this one.
    fn check_deal(&self, pipeline: &Pipeline) -> Result<()> {
        let balances = self.deal.as_ref().is_some_and(|deal| *deal != Deal::Even);
        if balances && self.part.is_none() && pipeline.settings().part.is_none() {
            let text = "rows are to be dealt among ranks, and no part says which rank of how many this is";
            return Err(Error::config(text).help("add --part, such as --part 0/64"));
        }
        Ok(())
    }

    /// The part of every batch that is delivered, if it is not all.
    pub(crate) fn part(&self, pipeline: &Pipeline) -> Option<Part> {
        self.given_part(pipeline).filter(|part| *part != Part::whole())
    }

    fn given_part(&self, pipeline: &Pipeline) -> Option<Part> {
        self.part.clone().or_else(|| pipeline.settings().part.clone())
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn in_workers(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        use crate::workers::MpOptions;
        let (settings, auto) = (pipeline.settings(), MpOptions::auto());
        let options = MpOptions {
            workers: self.workers.or(settings.workers.filter(|_| self.max_workers.is_none())).into(),
            max_workers: self.max_workers.or(settings.max_workers).unwrap_or(auto.max_workers),
            threads_per_worker: self.threads_per_worker.or(settings.threads_per_worker).into(),
            ram_budget: self.ram.or(settings.ram_budget),
            ..auto
        };
        builder.mp_prefetch(|pipeline: Pipeline| pipeline.build(), pipeline, options)
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn elsewhere(
        &self,
        dataset: BoxIter<Element>,
        pipeline: &Pipeline,
        cluster: Cluster,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        use crate::Stage;
        use crate::cli::elsewhere::{Request, prepare};
        let settings = pipeline.settings();
        if self.workers == Some(0) {
            return Err(Error::config("--workers is 0, and --on needs an actor at least"));
        }
        let workers = match (self.workers, self.max_workers) {
            (Some(workers), _) => (workers, workers),
            (None, most) => (1, most.unwrap_or(8)),
        };
        let stages = (&dataset as &dyn Stage).lines();
        let backend = prepare(Request {
            cluster,
            workers,
            threads: self.threads_per_worker.unwrap_or(1),
            ram_budget: self.ram.or(settings.ram_budget).unwrap_or(1 << 30),
            pipeline: pipeline.clone(),
            stages,
        })?;
        Ok(dataset.loader().backend(backend))
    }

    #[cfg(not(all(feature = "workers", target_os = "linux")))]
    fn elsewhere(&self, _: BoxIter<Element>, _: &Pipeline, _: Cluster) -> Result<LoaderBuilder<BoxIter<Element>>> {
        Err(crate::cli::elsewhere::no_engine())
    }

    #[cfg(not(all(feature = "workers", target_os = "linux")))]
    fn in_workers(
        &self,
        builder: LoaderBuilder<BoxIter<Element>>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let settings = pipeline.settings();
        if self.workers.or(settings.workers).is_some_and(|n| n > 0) {
            return Err(Error::config("this build has no worker processes")
                .help("they need Linux and the feature `workers`; --threads N works everywhere"));
        }
        Ok(builder.executor(Executor::all_cores()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(base: &How, choices: &[(&str, &str)]) -> Result<How> {
        base.with(&choices.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
    }

    #[test]
    fn a_choice_replaces_those_of_another_kind() {
        let base = How { workers: Some(2), buffer: Some(7), ..How::default() };
        let how = with(&base, &[("threads", "3"), ("batch_size", "9")]).unwrap();
        assert_eq!(
            (how.workers, how.threads, how.inline, how.buffer),
            (None, Some(Executor::Threads(3)), false, Some(7))
        );
        assert_eq!(with(&base, &[("threads", "auto")]).unwrap().threads, Some(Executor::Auto));
        let how = with(&base, &[("ram", "1GiB"), ("inline", "false")]).unwrap();
        assert_eq!((how.workers, how.ram, how.inline), (Some(2), Some(1 << 30), false));
        let how = with(
            &How { threads: Some(Executor::Threads(3)), ..How::default() },
            &[("inline", "true"), ("buffer", "1")],
        )
        .unwrap();
        assert_eq!((how.threads, how.inline, how.buffer), (None, true, Some(1)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let message = |choices: &[(&str, &str)]| with(&How::default(), choices).err().unwrap().message().to_owned();
        assert_eq!(message(&[("workers", "1"), ("threads", "1")]), "`workers` and `threads` exclude each other");
        assert_eq!(
            message(&[("threads", "0")]),
            "`0` is no value for `threads`: auto or a whole number from 1 on is needed"
        );
        assert!(message(&[("ram", "much")]).contains("an amount of memory"));
        assert!(message(&[("inline", "yes")]).contains("true or false"));
    }
}
