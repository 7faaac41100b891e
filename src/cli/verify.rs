//! `gristmill verify`: reads everything and lists the damage.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use crate::element::OrderHash;
use crate::sink::Manifest;
use crate::source::{REPEATED, TokenLayout};
use crate::spec::{Checked, Data, Watch};
use crate::{Error, ErrorKind, Result, place};
use serde::Serialize;

use crate::cli::format::{bytes, grouped, plural};
use crate::cli::layout::Layout;
use crate::cli::progress::Written;
use crate::cli::{Outcome, examples, output};

/// Reads everything and lists what is damaged
///
/// All checksums of the formats are compared; of a folder that a sink wrote, also sizes, hashes and counts with those in
/// manifest.json. The order hash is that of `run` over the same records in this order.
#[derive(clap::Args)]
#[command(after_long_help = examples!(
    "gristmill verify shards/"
    "gristmill verify data/*.tfrecord --json"
))]
pub(crate) struct Args {
    /// Files, globs or folders; `-` is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    layout: Layout,
    /// Problems to list; the count includes all
    #[arg(long, value_name = "N", default_value_t = 100)]
    most: usize,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Problem in the data.
#[derive(Serialize)]
struct Problem {
    file: Option<PathBuf>,
    record: Option<u64>,
    offset: Option<u64>,
    message: String,
}

#[derive(Serialize)]
struct Verification {
    /// Names of all formats, joined by "and".
    format: String,
    files: usize,
    records: u64,
    damaged: u64,
    bytes: u64,
    order_hash: OrderHash,
    /// Records in which an object has a name twice.
    repeated_names: u64,
    /// Whether everything matches the manifest; `None` without a manifest.
    manifest: Option<bool>,
    problems: Vec<Problem>,
    /// Number of problems, including problems that are not listed.
    problem_count: u64,
}

pub(crate) fn main(args: &Args) -> Result<Outcome> {
    let verification = verify(args)?;
    output::either(args.json, &verification, || verification.text());
    Ok(if verification.problem_count > 0 { Outcome::Found } else { Outcome::Done })
}

fn verify(args: &Args) -> Result<Verification> {
    let mut found = Found { most: args.most, problems: Vec::new(), count: 0, progress: Written::new(0) };
    let mut checked = Checked::default();
    let files = Data::find(&args.data)?;
    let layout = args.layout.of(&args.data)?;
    let manifest = match args.data.as_slice() {
        [folder] if place::may_be_folder(folder) => Manifest::of(folder)?.map(|manifest| (folder, manifest)),
        _ => None,
    };
    let mut formats: Vec<&str> = Vec::new();
    let mut sets: BTreeMap<(PathBuf, &str), Vec<PathBuf>> = BTreeMap::new();
    let mut refused = Vec::new();
    for file in &files {
        let format = match found.read(file, layout, &mut checked) {
            Ok(Some(format)) => format,
            Ok(None) => continue,
            Err(error) if matches!(error.kind(), ErrorKind::Config | ErrorKind::Unsupported) => {
                refused.push(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if !formats.contains(&format) {
            formats.push(format);
        }
        sets.entry((place::folder_of(file), format)).or_default().push(file.clone());
    }
    // A refused file is a problem if other files can be read. The command cannot run if no file can be read.
    for error in refused {
        if formats.is_empty() {
            return Err(error);
        }
        found.found(error);
    }
    sets.iter().for_each(|((_, format), shards)| found.compare_shards(format, shards, layout));
    let as_written = manifest.map(|(folder, manifest)| found.compare(folder, &manifest, &checked));
    let Found { problems, count, progress, .. } = found;
    progress.finish();
    Ok(Verification {
        format: formats.join(" and "),
        files: files.len(),
        records: checked.records,
        damaged: checked.damaged,
        repeated_names: checked.notes.notes().iter().filter(|(what, _)| what == REPEATED).map(|(_, count)| count).sum(),
        bytes: checked.bytes,
        order_hash: checked.order_hash,
        manifest: as_written,
        problems,
        problem_count: count,
    })
}

/// Formats whose shards are read together only if their columns agree.
const AGREEING: [&str; 5] = ["arrow", "csv", "npy", "parquet", "safetensors"];

/// Compares hashes that are not checked when records are read.
#[cfg(feature = "mds")]
fn hashes(format: &str, file: &Path) -> Result<()> {
    if format == "mds" { crate::source::Mds::open(file)?.verify() } else { Ok(()) }
}

#[cfg(not(feature = "mds"))]
fn hashes(_: &str, _: &Path) -> Result<()> {
    Ok(())
}

/// Returns true if a file is missing. A manifest may list missing files.
fn is_gone(error: &Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|io| io.kind() == io::ErrorKind::NotFound)
}

/// Damage found so far.
struct Found {
    most: usize,
    problems: Vec<Problem>,
    count: u64,
    progress: Written,
}

impl Watch for Found {
    fn found(&mut self, error: Error) {
        self.count += 1;
        if self.problems.len() < self.most {
            let file = error.file().map(Path::to_owned);
            let (record, offset) = (error.record_number(), error.byte_offset());
            self.problems.push(Problem { file, record, offset, message: error.message().to_owned() });
        }
    }

    fn read(&mut self, so_far: &Checked) {
        self.progress.show(so_far.records / 16 * 16, || so_far.bytes);
    }
}

impl Found {
    /// Reads a file and returns its format; `None` if the file is damaged or missing.
    fn read(&mut self, file: &Path, layout: TokenLayout, checked: &mut Checked) -> Result<Option<&'static str>> {
        let damaged = |error: &Error| matches!(error.kind(), ErrorKind::Data | ErrorKind::State);
        let data = match Data::open_with(file, None, layout) {
            Ok(data) => data,
            Err(error) if damaged(&error) || is_gone(&error) => {
                self.found(error.path(file));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let format = data.format();
        for result in [hashes(format, file), data.check(checked, self)] {
            if let Err(error) = result {
                self.found(error.path(file));
            }
        }
        Ok(Some(format))
    }

    /// Checks that the shards of a folder, each of which opens alone, also open together.
    fn compare_shards(&mut self, format: &str, shards: &[PathBuf], layout: TokenLayout) {
        if shards.len() < 2 || !AGREEING.contains(&format) {
            return;
        }
        let opened = Data::open_with(shards, None, layout);
        opened.err().filter(|error| error.kind() == ErrorKind::Data).into_iter().for_each(|error| self.found(error));
    }

    /// Returns true if everything matches the manifest.
    fn compare(&mut self, folder: &Path, manifest: &Manifest, checked: &Checked) -> bool {
        let before = self.count;
        manifest.check_files(folder).into_iter().for_each(|error| self.found(error));
        if !manifest.complete {
            let error = Error::state("the folder is not complete: its writer was stopped");
            self.found(error.path(folder));
        }
        // A token file is a single record, regardless of the number of elements in it.
        let counted = checked.records + checked.damaged;
        if manifest.format.keeps_records() && checked.damaged == 0 && counted != manifest.records {
            let text = format!("{counted} records were read, but {} were written", manifest.records);
            self.found(Error::data(text).path(folder));
        }
        self.count == before
    }
}

impl Problem {
    fn text(&self) -> String {
        let mut text = self.file.as_ref().map_or_else(String::new, |file| format!("{}: ", file.display()));
        for (name, value) in [("record", self.record), ("byte", self.offset)] {
            text += &value.map_or_else(String::new, |value| format!("{name} {value}: "));
        }
        text + &self.message
    }
}

impl Verification {
    fn text(&self) -> String {
        let mut text = String::new();
        for problem in &self.problems {
            text += &output::wrapped(&problem.text(), 2);
        }
        let listed = self.problems.len() as u64;
        if self.problem_count > listed {
            text += &format!("… and {} more\n", grouped(self.problem_count - listed));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        // The format is unknown if no file could be opened.
        let of = |format: &str| if format.is_empty() { String::new() } else { format!(" of {format}") };
        let (records, files) = (plural(self.records, "record"), plural(self.files as u64, "file"));
        text += &format!("read        {records} · {} of values · {files}{}\n", bytes(self.bytes), of(&self.format));
        if self.damaged > 0 {
            text += &format!("damaged     {}\n", grouped(self.damaged));
        }
        if self.repeated_names > 0 {
            let records = plural(self.repeated_names, "record");
            text += &format!("repeated    {records} with a repeated name, of which the last value stands\n");
        }
        if let Some(as_written) = self.manifest {
            text += &format!("manifest    {}\n", if as_written { "matches" } else { "does not match" });
        }
        text += &format!("order hash  {}\n", self.order_hash);
        text += &match self.problem_count {
            0 => "VERDICT  nothing is damaged\n".to_owned(),
            n => format!("VERDICT  {}\n", plural(n, "problem")),
        };
        text
    }
}

#[cfg(all(test, feature = "formats"))]
mod tests;
