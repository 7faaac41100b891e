//! Options of a run, described once: `executor` of pipeline files, flags of the command and its help are read from these descriptions.

mod start;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};

pub(super) use self::values::Limit;
use self::values::{Address, Budget, Deadline, EditLog, OnFailed, OnPoison, Seconds, Share, Threads};
use super::arguments::{About, Arg, Arguments, Kind, arguments};
use super::deal::Dealt;
use super::decode::Fields;
use super::node::{Field, Node, Tree};
use super::values::{Amount, AtLeast, Between, Decode};
use super::yaml;
use crate::edits::Edits;
use crate::error::{Error, Result};
use crate::exec::{Executor, FailedElements, MOST_THREADS};
use crate::part::{Deal, Part};

/// Most processes, and most threads of a process.
const MOST: u32 = MOST_THREADS as u32;

/// Options, each of which may be left open.
trait Options {
    /// Takes the options of `base` that are open here.
    fn or(self, base: Self) -> Self;

    /// Returns the name of the first option that is given.
    fn first_given(&self) -> Option<&'static str>;
}

/// A struct of [`Options`] with their descriptions.
macro_rules! options {
    ($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $doc:literal])+ $option:ident: $type:ty),* $(,)? }) => {
        arguments! {
            $(#[doc = $about])+
            #[derive(Clone, Debug, Default, PartialEq)]
            pub(crate) struct $name {
                $($(#[doc = $doc])+ $option: Option<$type>),*
            }
        }

        impl Options for $name {
            fn or(self, base: Self) -> Self {
                Self { $($option: self.$option.or(base.$option)),* }
            }

            fn first_given(&self) -> Option<&'static str> {
                let given = [$((stringify!($option), self.$option.is_some())),*];
                given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
            }
        }
    };
}

options! {
    /// Threads of this process that evaluate a pipeline.
    Evaluators {
        /// Threads of this process instead of worker processes, or `auto`, which tunes their number.
        threads: Threads,
        /// One thread, which reads nothing ahead.
        inline: bool,
        /// Batches kept ready for the consumer [default: 2].
        buffer: AtLeast<1>,
        /// Seconds after which a wait for an element is an error [default: no limit].
        ///
        /// It needs threads or worker processes.
        timeout: Limit,
    }
}

options! {
    /// Worker processes that evaluate a pipeline.
    Processes {
        /// Worker processes; 0 starts none [default: 1, with a thread for every core].
        workers: Between<0, MOST>,
        /// Maximum number of worker processes if it is tuned [default: 1].
        max_workers: Between<1, MOST>,
        /// Threads of each worker process.
        threads_per_worker: Between<1, MOST>,
        /// Memory of worker processes, such as 2GiB [default: a quarter of what is available].
        ///
        /// It includes the memory that they share with this process. It does not include what this process holds: the elements of a batch, a
        /// window or rows that are being packed.
        ram_budget: Budget,
    }
}

options! {
    /// Limits of worker processes, which seldom need to be set.
    Limits {
        /// Private memory of each worker process [default: half of the budget, divided by the workers].
        ///
        /// The default is at least 192 MiB if workers call Python functions, and 64 MiB otherwise.
        worker_heap: Amount,
        /// Maximum size of an element or batch in shared memory [default: a quarter of the shared memory].
        max_element: Amount,
        /// Seconds after which a worker process counts as hanging, or `none` [default: 300].
        deadline: Deadline,
        /// Worker processes that a range of elements may kill before the element that does so is searched [default: 3].
        retries: Between<1, { u32::MAX }>,
        /// What to do with an element that kills every worker process: `error` ends the run, `skip` leaves it out and counts it [default: error].
        on_poison: OnPoison,
        /// Whether the numbers of active threads and of prefetched elements follow the needs of the consumer [default: true].
        tune: bool,
    }
}

options! {
    /// Rows that a host delivers, and what several hosts share.
    Hosts {
        /// Part of the rows of each batch to deliver, such as 3/64 for the fourth of 64 hosts [default: all rows].
        part: Share,
        /// Folder of key files, by which rows of other hosts are planned [default: NAME.keys beside the pipeline file, if it exists].
        ///
        /// `gristmill index --keys` writes them.
        keys: PathBuf,
        /// Whether missing key files are written during the run, for the next start.
        ///
        /// It applies without a part, or on the host of the first part.
        record_keys: bool,
        /// How rows are dealt among parts [default: even].
        ///
        /// `even`: consecutive rows. `lanes`: rows by the index of their lane. `balanced: {d_model: 4096}`: rows that take all ranks equally long in a
        /// transformer of that width. `shadow: {…}`: even rows, and a report of what `balanced` would save.
        deal: Dealt,
        /// Folder in which hosts compare their data.
        ///
        /// All hosts must see it. All hosts stop if one reads different data or runs a different pipeline.
        guard: PathBuf,
        /// Seconds after which a silent host is an error [default: 600].
        guard_timeout: Seconds,
        /// What to do if an element fails after its row was planned: `error` ends the run, `pad` delivers padding and counts it [default: error].
        on_failed_element: OnFailed,
        /// Maximum number of elements that become padding [default: no limit].
        failed_element_limit: u64,
    }
}

options! {
    /// Changes of the data during a run.
    Program {
        /// Changes of the batches, each from a batch on: a file in YAML or JSON, or a list.
        ///
        /// `[{at: 70100, skip: 400}]` leaves out 400 batches at batch 70,100. `{at: 160000, mix: {web: 0.7, books: 0.3}, over: 2000}` changes the
        /// weights of a mix of streams, `remove` its parts, `global_batch` the batch size, and `exclude` leaves out records. An edit changes no batch before it, so edits may be appended to the file
        /// during the run; they apply after the next resume. All hosts need equal edits.
        edits: EditLog,
    }
}

options! {
    /// Views of a run while it runs.
    Views {
        /// Address at which the figures of the run are served to Prometheus.
        ///
        /// The address is [everybody@][HOST:]PORT. GET /metrics answers. A port without a host listens on this machine only; 0 selects a free port. Other
        /// users of this machine are refused, unless the address is everybody@PORT.
        metrics: Address,
        /// Whether `gristmill top` may look at the run.
        ///
        /// GRISTMILL_TOP=1 in the environment does the same.
        top: bool,
    }
}

options! {
    /// Files that are written during a run.
    Files {
        /// Recording of the run, a file for `gristmill report`.
        ///
        /// A recording of a run that was killed is read as well. An earlier recording is kept as NAME.1.ENDING.
        record: PathBuf,
        /// Trace of the run, a file for ui.perfetto.dev and chrome://tracing.
        ///
        /// It is compressed if its name ends in .gz.
        trace: PathBuf,
        /// Run log, a file for `gristmill which`, `when`, `audit` and `replay`.
        ///
        /// Each start, resume and 1,000 batches add a line with the position and a checksum. The host of the first part writes it. An existing log is
        /// extended.
        ledger: PathBuf,
    }
}

arguments! {
    /// Options of a run: who evaluates a pipeline, which rows are delivered, who may look. None of them but `edits` changes an element. Each may be
    /// left open.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct RunOptions with Evaluators as evaluators, Processes as processes, Limits as limits, Hosts as hosts, Program as program, Views as views, Files as files {}
}

/// Options under a heading of the help.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "the help of the command reads them"))]
pub(crate) struct Group {
    pub(crate) heading: &'static str,
    pub(crate) about: &'static About,
    /// Whether the short help omits the options.
    pub(crate) is_rare: bool,
    /// Whether they cannot be shared by several runs.
    pub(crate) is_of_one_run: bool,
}

/// Kinds of evaluators, which exclude each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Evaluator {
    Threads,
    Inline,
    Workers,
}

impl RunOptions {
    /// Groups of options.
    pub(crate) const GROUPS: [Group; 7] = [
        Group { heading: "Threads and processes", about: &Evaluators::ABOUT, is_rare: false, is_of_one_run: false },
        Group { heading: "Threads and processes", about: &Processes::ABOUT, is_rare: false, is_of_one_run: false },
        Group { heading: "Limits of worker processes", about: &Limits::ABOUT, is_rare: true, is_of_one_run: false },
        Group { heading: "Several hosts", about: &Hosts::ABOUT, is_rare: false, is_of_one_run: false },
        Group { heading: "Changes of the data", about: &Program::ABOUT, is_rare: false, is_of_one_run: false },
        Group { heading: "Views of the run", about: &Views::ABOUT, is_rare: false, is_of_one_run: false },
        Group { heading: "Files of the run", about: &Files::ABOUT, is_rare: false, is_of_one_run: true },
    ];

    /// Takes the options of `base` that are open here. If these options choose other evaluators, such as threads instead of worker processes,
    /// all options of `base` about evaluators but `buffer` and `timeout` are dropped.
    #[must_use]
    pub fn over(self, mut base: Self) -> Self {
        let chosen = |options: &Self| options.evaluators().first().map(|first| first.0);
        if let (Some(ours), Some(theirs)) = (chosen(&self), chosen(&base))
            && ours != theirs
        {
            let Evaluators { buffer, timeout, .. } = base.evaluators;
            base.evaluators = Evaluators { buffer, timeout, ..Evaluators::default() };
            (base.processes, base.limits) = (Processes::default(), Limits::default());
        }
        if self.processes.max_workers.is_some() {
            base.processes.workers = None;
        }
        if self.processes.workers.is_some() {
            base.processes.max_workers = None;
        }
        if self.hosts.on_failed_element == Some(OnFailed(false)) {
            base.hosts.failed_element_limit = None;
        }
        Self {
            evaluators: self.evaluators.or(base.evaluators),
            processes: self.processes.or(base.processes),
            limits: self.limits.or(base.limits),
            hosts: self.hosts.or(base.hosts),
            program: self.program.or(base.program),
            views: self.views.or(base.views),
            files: self.files.or(base.files),
        }
    }

    /// Returns the kinds of evaluators that are chosen, each with an option that chooses it.
    fn evaluators(&self) -> Vec<(Evaluator, &'static str)> {
        let workers = self.processes.first_given().or_else(|| self.limits.first_given());
        let workers = workers.map(|name| (Evaluator::Workers, name));
        let threads = self.evaluators.threads.map(|_| (Evaluator::Threads, "threads"));
        let inline = self.evaluators.inline.filter(|yes| *yes).map(|_| (Evaluator::Inline, "inline"));
        threads.into_iter().chain(inline).chain(workers).collect()
    }

    /// Drops the guard and the files of the run, which belong to a single run.
    #[cfg(feature = "cli")]
    pub(crate) fn repeatable(mut self) -> Self {
        self.hosts.guard = None;
        self.files = Files::default();
        self
    }

    /// The part of every batch that is delivered, if it is not all.
    pub fn part(&self) -> Option<&Part> {
        self.given_part().filter(|part| **part != Part::whole())
    }

    /// The executor in this process, if one is chosen.
    pub fn executor(&self) -> Option<Executor> {
        let inline = self.evaluators.inline.filter(|yes| *yes).map(|_| Executor::Inline);
        self.evaluators.threads.map(|Threads(executor)| executor).or(inline)
    }

    /// Batches kept ready for the consumer, if they are given.
    pub fn buffer(&self) -> Option<usize> {
        self.evaluators.buffer.map(|batches| batches.0 as usize)
    }

    /// The folder of key files, if it is given.
    pub(crate) fn keys(&self) -> Option<&Path> {
        self.hosts.keys.as_deref()
    }

    /// The deal of rows among parts, if it is given.
    pub(crate) fn deal(&self) -> Option<&Deal> {
        self.hosts.deal.as_ref().map(|dealt| &dealt.0)
    }

    fn given_part(&self) -> Option<&Part> {
        self.hosts.part.as_ref().map(|Share(part)| part)
    }

    /// The edits of the run.
    ///
    /// # Errors
    /// The file of the edits cannot be read, or has an invalid edit.
    pub(crate) fn edits(&self) -> Result<Edits> {
        self.program.edits.as_ref().map_or_else(|| Ok(Edits::default()), EditLog::edits)
    }

    /// Reads options from their names and their values as text.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for an unknown name, a wrong value, and options that exclude each other.
    ///
    /// ```
    /// use gristmill::spec::RunOptions;
    /// let options = RunOptions::from_texts([("part", "3/64"), ("ram_budget", "2GiB")])?;
    /// assert_eq!(options.part().map(ToString::to_string).as_deref(), Some("3/64"));
    /// assert!(RunOptions::from_texts([("threads", "2"), ("workers", "1")]).is_err());
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    pub fn from_texts<'a>(options: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        Self::spelled(options, str::to_owned)
    }

    /// Reads options, which errors spell as `spell` does.
    pub(crate) fn spelled<'a>(
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
        spell: impl Fn(&str) -> String,
    ) -> Result<Self> {
        let value = |name: &str, text| value_of(Self::option(name).map(|option| option.kind), text);
        Self::from_values(options.into_iter().map(|(name, text)| (name.to_owned(), value(name, text))), spell)
    }

    /// Reads options from their names and values, which errors spell as `spell` does.
    pub(crate) fn from_values(
        options: impl IntoIterator<Item = (String, Tree)>,
        spell: impl Fn(&str) -> String,
    ) -> Result<Self> {
        let options = Self::from_nodes(options.into_iter().map(|(key, value)| {
            let mut value = Node::new(value, 0, 0);
            value.set_paths(spell(&key));
            Field { key, line: 0, value }
        }))?;
        options.check(spell).map(|()| options)
    }

    fn from_nodes(options: impl Iterator<Item = Field>) -> Result<Self> {
        let node = Node::new(Tree::Map(options.collect()), 0, 0);
        let fields = Fields::new(&node)?;
        let options = Self::read(&fields)?;
        fields.finish().map(|()| options)
    }

    /// Checks the value of an option.
    #[cfg(feature = "cli")]
    pub(crate) fn check_value(option: &Arg, text: &str) -> Result<()> {
        let mut value = Node::new(value_of(Some(option.kind), text), 0, 0);
        value.set_paths(option.name.to_owned());
        Self::from_nodes(std::iter::once(Field { key: option.name.to_owned(), line: 0, value })).map(drop)
    }

    /// Finds an option by its name.
    pub(crate) fn option(name: &str) -> Option<&'static Arg> {
        Self::all().find(|option| option.name == name)
    }

    /// Returns true for an option of worker processes.
    #[cfg(feature = "python")]
    pub(crate) fn is_of_processes(name: &str) -> bool {
        Self::processes().any(|option| option.name == name)
    }

    /// Lists the options of worker processes.
    #[cfg(feature = "python")]
    pub(crate) fn processes() -> impl Iterator<Item = &'static Arg> {
        [&Processes::ABOUT, &Limits::ABOUT].into_iter().flat_map(|about| about.args)
    }

    /// Returns true if anything views or records the run.
    #[cfg(feature = "python")]
    pub(crate) fn has_views(&self) -> bool {
        let is_shown = self.views.top == Some(true) || self.views.metrics.is_some();
        is_shown || self.files.first_given().is_some()
    }

    /// Spells options in backticks as `spell` does, which gets the option and the value: `` `ram_budget` ``, `` `on_poison: skip` ``.
    #[cfg(any(feature = "cli", feature = "python"))]
    pub(crate) fn spell(text: &str, spell: impl Fn(&'static Arg, Option<&str>) -> String) -> String {
        let parts = text.split('`').enumerate().map(|(at, part)| {
            let (name, value) = part.split_once(": ").map_or((part, None), |(name, value)| (name, Some(value)));
            let option = Self::option(name).filter(|_| at % 2 == 1);
            option.map_or_else(|| part.to_owned(), |option| spell(option, value))
        });
        parts.collect::<Vec<_>>().join("`")
    }

    /// Lists every option.
    pub(crate) fn all() -> impl Iterator<Item = &'static Arg> {
        Self::GROUPS.into_iter().flat_map(|group| group.about.args)
    }

    /// Checks options that exclude each other.
    fn check(&self, spell: impl Fn(&str) -> String) -> Result<()> {
        if let [(_, one), (_, other), ..] = self.evaluators()[..] {
            let text = format!("{} and {} exclude each other", spell(one), spell(other));
            return Err(Error::config(text).help("choose threads, inline or worker processes"));
        }
        if self.processes.workers.is_some() && self.processes.max_workers.is_some() {
            let (workers, most) = (spell("workers"), spell("max_workers"));
            let help = format!("{most} leaves the number of worker processes to tuning");
            return Err(Error::config(format!("{workers} and {most} exclude each other")).help(help));
        }
        Ok(())
    }

    /// The policy for elements that fail after their rows were planned.
    fn failed_elements(&self) -> Result<FailedElements> {
        let pads = self.hosts.on_failed_element.is_some_and(|OnFailed(pads)| pads);
        FailedElements::chosen(pads, self.hosts.failed_element_limit)
    }

    /// Joins relative folders and files of a pipeline file with its folder.
    pub(super) fn below(mut self, folder: &Path) -> Self {
        let Files { record, trace, ledger } = &mut self.files;
        let places = [&mut self.hosts.keys, &mut self.hosts.guard, record, trace, ledger];
        places.into_iter().flatten().for_each(|place| *place = folder.join(&*place));
        if let Some(EditLog::File(file)) = &mut self.program.edits {
            *file = folder.join(&*file);
        }
        self
    }
}

/// Parses the text of a value.
fn value_of(kind: Option<Kind>, text: &str) -> Tree {
    match kind {
        // An address is text, also if it looks like a list: `[::1]:9464`.
        None | Some(Kind::Text | Kind::Path | Kind::Words(_) | Kind::Either([Kind::Text | Kind::Path, ..])) => {
            Tree::Str(text.to_owned())
        }
        Some(_) => yaml::parse(text).map_or_else(|_| Tree::Str(text.to_owned()), |node| node.value),
    }
}

impl Decode for RunOptions {
    const KIND: Kind = Kind::Either(&[Kind::Words(&["inline"]), Kind::Section(&Self::ABOUT)]);

    fn decode(node: &Node) -> Result<Self> {
        let options = match &node.value {
            Tree::Str(word) if word.as_str() == "inline" => {
                let evaluators = Evaluators { inline: Some(true), ..Evaluators::default() };
                return Ok(Self { evaluators, ..Self::default() });
            }
            Tree::Str(word) => {
                return Err(node
                    .error(format!("`{word}` is no executor"))
                    .help("`executor: inline`, `executor: {threads: 2}` or `executor: {workers: 1}`"));
            }
            _ => {
                let fields = Fields::new(node)?;
                let options = Self::read(&fields)?;
                fields.finish()?;
                options
            }
        };
        let at = |e: Error| node.error(e.message()).help(e.help_text().unwrap_or_default());
        options.check(|name| format!("`executor.{name}`")).map_err(at)?;
        options.failed_elements().map_err(at)?;
        Ok(options)
    }
}
