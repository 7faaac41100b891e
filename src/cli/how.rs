//! Run options as flags, made from the descriptions of [`RunOptions`].

use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches};

use crate::cli::elsewhere::Cluster;
use crate::spec::arguments::{Arg, Kind};
use crate::spec::{Group, Pipeline, RunOptions, parse_bytes};
use crate::{BoxIter, Element, Error, Executor, LoaderBuilder, Result};

/// Run options as flags. `FILES` adds the options that name files of a single run.
#[derive(Clone, Default)]
struct Flags<const FILES: bool>(RunOptions);

impl<const FILES: bool> clap::Args for Flags<FILES> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let groups = RunOptions::GROUPS.into_iter().filter(|group| FILES || !group.is_of_one_run);
        let flags = groups.flat_map(|group| group.about.args.iter().map(move |option| flag(option, group)));
        command.args(flags)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<const FILES: bool> FromArgMatches for Flags<FILES> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let text = |option: &'static Arg| {
            let given = matches.try_get_one::<String>(option.name).ok().flatten();
            given.map(|text| (option.name, text.as_str()))
        };
        let options = RunOptions::spelled(RunOptions::all().filter_map(text), |name| format!("--{}", spelling(name)));
        options.map(Self).map_err(|error| {
            let help = error.help_text().map_or_else(String::new, |help| format!("\n\nhelp: {help}"));
            clap::Error::raw(ErrorKind::ArgumentConflict, format!("{}{help}\n", error.message()))
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the flag of an option, without dashes.
fn spelling(option: &str) -> String {
    // Shorter than the option's name, because users type it often.
    if option == "ram_budget" { "ram".to_owned() } else { option.replace('_', "-") }
}

fn flag(option: &'static Arg, group: Group) -> clap::Arg {
    let mut paragraphs = option.paragraphs();
    let line = paragraphs.next().unwrap_or_default();
    let line = line.trim_end_matches('.').to_owned();
    let rest: Vec<String> = paragraphs.collect();
    let flag = clap::Arg::new(option.name)
        .long(spelling(option.name))
        .alias(option.name.replace('_', "-"))
        .help(&line)
        .help_heading(group.heading)
        .hide_short_help(group.is_rare)
        .value_name(value_name(option))
        .value_parser(move |text: &str| match RunOptions::check_value(option, text) {
            Ok(()) => Ok(text.to_owned()),
            Err(error) => {
                // The parser prints the flag before this message.
                let message = error.message();
                let message = message.strip_prefix(&format!("{}: ", option.name)).unwrap_or(message);
                Err(error.help_text().map_or_else(|| message.to_owned(), |help| format!("{message}; {help}")))
            }
        });
    let flag = match rest.as_slice() {
        [] => flag,
        rest => flag.long_help(StyledStr::from(format!("{line}\n\n{}", rest.join("\n\n")))),
    };
    match option.kind {
        Kind::Bool => flag.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => flag,
    }
}

/// Returns the placeholder of a value in the help.
fn value_name(option: &Arg) -> String {
    fn of(kind: &Kind) -> Option<String> {
        Some(match kind {
            Kind::Bool => "true|false".to_owned(),
            Kind::Integer { .. } => "N".to_owned(),
            Kind::Memory => "BYTES".to_owned(),
            Kind::Seconds => "SECONDS".to_owned(),
            Kind::Path => "PATH".to_owned(),
            Kind::Words(words) => words.join("|"),
            Kind::Share => "INDEX/COUNT".to_owned(),
            Kind::Either([share @ Kind::Share, ..]) => return of(share),
            Kind::Either(kinds) => kinds.iter().map(of).collect::<Option<Vec<_>>>()?.join("|"),
            _ => return None,
        })
    }
    of(&option.kind).unwrap_or_else(|| option.name.to_uppercase())
}

/// Run options of a command. They never change the elements.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct How<const FILES: bool> {
    #[command(flatten)]
    flags: Flags<FILES>,
    /// Actors of a Ray cluster instead of worker processes
    ///
    /// `auto` is the cluster that runs here, `local` a cluster that is started for this run, HOST:PORT the head of another cluster. This
    /// machine must be a node of it. --workers, --max-workers, --threads-per-worker and --ram apply to the actors [default: 1 to 8 of one
    /// thread, 1GiB].
    #[arg(
        long,
        value_name = "ray://CLUSTER",
        value_parser = Cluster::parse,
        conflicts_with_all = ["threads", "inline"],
        help_heading = RunOptions::GROUPS[0].heading
    )]
    on: Option<Cluster>,
}

/// Parses an amount of memory in bytes.
pub(crate) fn memory(text: &str) -> std::result::Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "an amount of memory is needed, such as 512MiB or 2GiB".to_owned())
}

/// Parses a number of threads, or `auto`.
pub(crate) fn threads(text: &str) -> std::result::Result<Executor, String> {
    match text {
        "auto" => Ok(Executor::Auto),
        _ => match text.parse() {
            Ok(threads @ 1..) => Ok(Executor::Threads(threads)),
            _ => Err("a number of threads from 1 on is needed, or `auto`".to_owned()),
        },
    }
}

/// Returns the option that a setting of a sweep names.
pub(crate) fn option(key: &str) -> Option<&'static str> {
    let name = |option: &'static Arg| option.name;
    RunOptions::all().map(name).find(|name| *name == key || spelling(name).replace('-', "_") == key)
}

/// Spells options in backticks as flags: `` `ram_budget` `` as `` `--ram` ``, `` `on_poison: skip` `` as `` `--on-poison skip` ``.
pub(crate) fn spelled(text: &str) -> String {
    RunOptions::spell(text, |option, value| {
        let name = spelling(option.name);
        value.map_or_else(|| format!("--{name}"), |value| format!("--{name} {value}"))
    })
}

/// Returns the names of all options.
pub(crate) fn options() -> impl Iterator<Item = &'static str> {
    RunOptions::all().map(|option| option.name)
}

/// Returns true if an option selects the delivered rows.
pub(crate) fn picks_rows(key: &str) -> bool {
    matches!(key, "part" | "deal")
}

impl<const FILES: bool> How<FILES> {
    /// Returns these options with `choices` applied over them, each a name and a value. Unknown names are ignored.
    ///
    /// # Errors
    /// For a wrong value, and for choices that exclude each other.
    pub(crate) fn with(&self, choices: &[(String, String)]) -> Result<Self> {
        let choices = choices.iter().filter_map(|(key, value)| Some((option(key)?, value.as_str())));
        let flags = Flags(RunOptions::from_texts(choices)?.over(self.flags.0.clone()));
        Ok(Self { flags, on: self.on.clone() })
    }

    /// Returns the options of the flags; other options come from the pipeline file.
    pub(crate) fn options(&self, pipeline: &Pipeline) -> RunOptions {
        self.flags.0.clone().over(pipeline.run_options())
    }

    /// Makes a loader of `dataset`, which `pipeline` has built.
    pub(crate) fn loader(
        &self,
        dataset: BoxIter<Element>,
        pipeline: &Pipeline,
    ) -> Result<LoaderBuilder<BoxIter<Element>>> {
        let options = self.options(pipeline);
        self.flags.0.check_deal(&options)?;
        // Several runs would write to the same files.
        let options = if FILES { options } else { options.repeatable() };
        match &self.on {
            Some(cluster) => elsewhere(dataset, pipeline, &options, cluster.clone()),
            None => options.loader(dataset, pipeline),
        }
    }
}

#[cfg(all(feature = "workers", target_os = "linux"))]
fn elsewhere(
    dataset: BoxIter<Element>,
    pipeline: &Pipeline,
    options: &RunOptions,
    cluster: Cluster,
) -> Result<LoaderBuilder<BoxIter<Element>>> {
    use crate::Load;
    use crate::Stage;
    use crate::cli::elsewhere::{Request, prepare};
    use crate::workers::MpOptions;
    let MpOptions { numbers, memory, .. } = options.mp_options();
    let workers = numbers.workers.given();
    if workers == Some(0) {
        return Err(Error::config("--workers is 0, and --on needs an actor at least"));
    }
    let stages = (&dataset as &dyn Stage).lines();
    let backend = prepare(Request {
        cluster,
        workers: workers.map_or((1, numbers.most_workers.unwrap_or(8)), |workers| (workers, workers)),
        threads: numbers.threads.given().unwrap_or(1),
        ram_budget: memory.budget.unwrap_or(1 << 30),
        pipeline: pipeline.clone(),
        stages,
    })?;
    options.around(dataset.loader().backend(backend), pipeline)
}

#[cfg(not(all(feature = "workers", target_os = "linux")))]
fn elsewhere(_: BoxIter<Element>, _: &Pipeline, _: &RunOptions, _: Cluster) -> Result<LoaderBuilder<BoxIter<Element>>> {
    Err(crate::cli::elsewhere::no_engine())
}
