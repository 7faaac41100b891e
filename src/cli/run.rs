//! `gristmill run`: runs a pipeline file from its source to its last batch.

use std::path::PathBuf;

use crate::spec::Pipeline;
use crate::{Part, Result};

use crate::cli::consume::{Plan, Stopped, Summary, consume};
use crate::cli::how::How;
use crate::cli::saved::States;
use crate::cli::step_time::StepTime;
use crate::cli::{OUTPUT, Outcome, examples, output};

/// Runs a pipeline file and reports where the time went
///
/// Pipeline files are YAML, TOML or JSON. Prints the report, the share of real tokens and the order hash: a digest of every delivered byte in
/// order, which is the same for any number of threads and after any interruption. Ctrl-C saves the state and prints the command that resumes.
/// Options that are not given are those of the pipeline file, under `executor`.
///
/// Several hosts read one pipeline with --part 0/4 to 3/4. Each delivers its rows of every batch. The state that the first host saves is
/// that of all, and any number of hosts resumes from it. With --guard, a host that reads something else stops all hosts. The row
/// digests of all hosts add up to that of one: see `gristmill hash`.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill run pipeline.yaml"
    "gristmill run pipeline.yaml --steps 100 --html report.html"
    "gristmill run pipeline.yaml --resume --checkpoint /data/state"
    "gristmill run pipeline.yaml --part 0/4 --guard /shared/guard"
))]
pub(crate) struct Args {
    /// The pipeline file
    pipeline: PathBuf,
    /// Continue from the saved state, and save it at the end
    ///
    /// If there is no state, the run begins at the beginning.
    #[arg(long)]
    resume: bool,
    /// Begin anew although a state is saved
    ///
    /// The last three states are kept as run-state.1.json and so on. If one of them is renamed to run-state.json, it is resumed.
    #[arg(long, conflicts_with = "resume")]
    restart: bool,
    /// Resume although the pipeline file or its data has changed
    ///
    /// Positions are taken as they are, and the state records the change.
    #[arg(long, requires = "resume")]
    accept_changes: bool,
    /// Folder of the saved state [default: that of the pipeline file]
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Stop after N batches
    ///
    /// The state is saved if there is a checkpoint folder.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    #[command(flatten)]
    step: StepTime,
    #[command(flatten)]
    how: How<true>,
    /// Write a page that shows what happened when, and why the consumer waited
    ///
    /// The page is HTML in one file. FILE.svg is its ribbon alone.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,
    /// Print only the order hash
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    order_hash: bool,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let pipeline = Pipeline::from_file(&args.pipeline)?;
    let settings = pipeline.settings();
    let declared = settings.checkpoint.as_ref().map(|c| pipeline.folder().join(&c.folder));
    let options = args.how.options(&pipeline);
    let part = options.part();
    // A single state covers all hosts: the first host saves it.
    let saves = args.checkpoint.is_some() || part.is_none_or(Part::is_first);
    let save_at_end = saves && (args.resume || args.checkpoint.is_some() || declared.is_some());
    let folder = args.checkpoint.clone().or(declared).unwrap_or_else(|| args.pipeline.with_extension("checkpoint"));
    let mut states = States::new(folder);
    if save_at_end {
        // Claimed before the run: an unusable folder would waste the work.
        states.claim()?;
    }
    let resume = if args.resume { states.load()? } else { None };
    let folder = states.folder.display();
    match &resume {
        Some(state) => {
            output::say(&format!("resuming after {} batches, from {folder}", state.checkpoint.delivered));
        }
        // First start of a job that always passes `--resume`.
        None if args.resume => output::say(&format!("no state in {folder}: starts from the beginning")),
        None if args.restart => {}
        None if !saves => {}
        None => states.check_free()?,
    }
    // An unwritable file would waste the work, too.
    args.html.iter().try_for_each(|file| crate::store::check_writable(file))?;
    let (dataset, indices, context) = pipeline.opened()?;
    let plan = Plan {
        indices,
        steps: args.steps,
        step_time: args.step.time().unwrap_or_default(),
        states,
        save_at_end,
        save_if_interrupted: saves,
        every: settings.checkpoint.as_ref().and_then(|c| c.every).filter(|_| saves),
        resume,
    };
    let loader = args.how.loader(dataset, &pipeline)?;
    let loader = loader.accept_changes(args.accept_changes).skipped_shards(context.skipped().len());
    let mut summary = consume(loader, plan)?;
    let unsaved = summary.unsaved.take();
    print(args, &summary);
    args.html.iter().try_for_each(|file| summary.write_html(file, &args.pipeline))?;
    match unsaved {
        Some(error) => Err(error),
        None if summary.stopped == Stopped::Interrupted => Ok(Outcome::Interrupted),
        None => Ok(Outcome::Done),
    }
}

fn print(args: &Args, summary: &Summary) {
    if args.json {
        output::json(summary);
    } else if args.order_hash {
        output::data(&format!("{}\n", summary.order_hash));
    } else {
        summary.print();
    }
    let Some(file) = &summary.state_file else {
        if summary.stopped == Stopped::Interrupted && summary.unsaved.is_none() && summary.is_empty() {
            output::say("interrupted before the first batch: there is nothing to save");
        }
        return;
    };
    match summary.stopped {
        Stopped::Unsaved => {}
        Stopped::End => output::say(&format!("state saved in {}", file.display())),
        Stopped::Steps | Stopped::Interrupted => {
            let why = if summary.stopped == Stopped::Interrupted { "interrupted: " } else { "" };
            output::say(&format!("{why}state saved in {}", file.display()));
            output::say(&format!("continue with: {}", resume_command(args)));
        }
    }
}

fn resume_command(args: &Args) -> String {
    let mut command = format!("{} run {} --resume", output::program(), output::shell_word(&args.pipeline));
    if let Some(folder) = &args.checkpoint {
        command += &format!(" --checkpoint {}", output::shell_word(folder));
    }
    command
}
