//! The run log of a running pass.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use super::log::{Entry, Event, Run, RunLog};
use crate::checkpoint::unwritable;
use crate::dataset::Stage;
use crate::edits::{Edits, RunEdits};
use crate::element::StreamHasher;
use crate::error::{Error, Result};
use crate::place::Location;
use crate::temporary;

/// Number of batches between two lines. Smaller in tests, whose runs are short.
const EVERY: u64 = if cfg!(test) { 7 } else { 1000 };

/// A run log that is extended while a pass runs.
pub(crate) struct Ledger {
    file: File,
    path: PathBuf,
    /// Hash of the sources of the last line with a run.
    last_sources: Option<String>,
    run: Run,
    edits: Arc<RunEdits>,
    fingerprint: String,
    /// Number of batches before the last line, and before the next batch.
    last: u64,
    next: u64,
    /// Digest of the plans since the last line. `None` if a batch had no plan.
    plans: Option<u128>,
    /// True after an error, which ends the log.
    has_failed: bool,
}

/// A delivered batch.
pub(crate) struct Batch<'a, S> {
    /// Number of the batch.
    pub(crate) number: u64,
    /// Digest of its plan, if it was planned from keys.
    pub(crate) digest: Option<u128>,
    /// State before the batch.
    pub(crate) before: Option<&'a S>,
    /// State after the batch.
    pub(crate) after: &'a S,
}

impl Ledger {
    /// Opens or creates a run log. Removes a last line that was not written completely.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written, [`ErrorKind::Config`](crate::ErrorKind::Config) if the file
    /// exists and is not a run log.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if Location::from(path).is_object() {
            return Err(Error::config(format!("a run log is a local file, not {}", path.display())));
        }
        let io = |e| Error::io(e, path);
        let (mut file, mut bytes) = (temporary::open_part(path).map_err(io)?, Vec::new());
        file.read_to_end(&mut bytes).map_err(io)?;
        let log = RunLog::parse(&bytes).map_err(|e| e.path(path))?;
        if log.lines().is_empty() && !bytes.is_empty() && !b"{\"xxh3\":\"".starts_with(&bytes[..bytes.len().min(9)]) {
            let text = format!("{} exists and is not a run log, so it is not extended", path.display());
            return Err(Error::config(text).help("give the run log another name"));
        }
        file.set_len(log.valid).map_err(io)?;
        file.seek(SeekFrom::Start(log.valid)).map_err(io)?;
        Ok(Self {
            file,
            path: path.to_owned(),
            last_sources: log.run().map(|run| run.sources_hash.clone()),
            run: Run::default(),
            edits: Arc::default(),
            fingerprint: String::new(),
            last: 0,
            next: 0,
            plans: Some(0),
            has_failed: false,
        })
    }

    /// Sets the edits of the run, whose progress the lines contain.
    pub(crate) fn edited(self, edits: &Arc<RunEdits>) -> Self {
        Self { edits: edits.clone(), ..self }
    }

    /// Writes the line of a start or resume of `pipeline` at `at`. `run` lacks the pipeline and its sources.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the line cannot be written.
    pub(crate) fn begin(
        &mut self,
        pipeline: &dyn Stage,
        run: Run,
        fingerprint: &str,
        at: u64,
        state: &impl Serialize,
    ) -> Result<()> {
        let sources = pipeline.source_files(usize::MAX);
        let listed = serde_json::to_vec(&sources).unwrap_or_default();
        let (version, sources_hash) = (env!("CARGO_PKG_VERSION").to_owned(), format!("{:016x}", xxh3_64(&listed)));
        self.run = Run { version, pipeline: pipeline.lines(), sources, sources_hash, ..run };
        fingerprint.clone_into(&mut self.fingerprint);
        self.begin_at(if at == 0 { Event::Start } else { Event::Resume }, at, json(state)?)
    }

    /// Writes the line of a run that continues at `at` with `edits`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the line cannot be written.
    pub(crate) fn edit(&mut self, edits: Edits, at: u64, state: &impl Serialize) -> Result<()> {
        self.run.edits = edits;
        self.begin_at(Event::Resume, at, json(state)?)
    }

    /// Writes the line of a start or resume at `at`.
    fn begin_at(&mut self, event: Event, at: u64, state: Json) -> Result<()> {
        let mut run = self.run.clone();
        if self.last_sources.replace(run.sources_hash.clone()).as_ref() == Some(&run.sources_hash) {
            run.sources.clear();
        }
        (self.plans, self.next) = (Some(0), at);
        let entry = Entry::new(event, at, now(), &self.fingerprint, state);
        self.write(&Entry { edited_mix: self.edits.progress(at), run: Some(run), ..entry })
    }

    /// Counts a delivered batch, and writes a line after every 1,000 batches. After an error, warns and writes nothing more.
    pub(crate) fn delivered<S: Serialize>(&mut self, batch: Batch<'_, S>) {
        if self.has_failed {
            return;
        }
        if let Err(error) = self.try_delivered(batch) {
            self.fail(&error);
        }
    }

    fn try_delivered<S: Serialize>(&mut self, Batch { number, digest, before, after }: Batch<'_, S>) -> Result<()> {
        if let Some(before) = before.filter(|_| number != self.next) {
            self.begin_at(Event::Resume, number, json(before)?)?;
        }
        self.next = number + 1;
        self.plans = self.plans.zip(digest).map(|(plans, digest)| and_plan(plans, digest));
        if self.next.is_multiple_of(EVERY) { self.line(Event::Batches, json(after)?) } else { Ok(()) }
    }

    /// Writes the line of the end of the stream.
    pub(crate) fn end<S: Serialize>(&mut self, state: &S) {
        if self.has_failed {
            return;
        }
        if let Err(error) = json(state).and_then(|state| self.line(Event::End, state)) {
            self.fail(&error);
        }
    }

    /// Writes a line after the last batch.
    fn line(&mut self, event: Event, state: Json) -> Result<()> {
        let plans = self.plans.replace(0).filter(|_| self.next > self.last);
        let plan = plans.map(|plans| format!("{plans:032x}"));
        let entry = Entry::new(event, self.next, now(), &self.fingerprint, state);
        self.write(&Entry { edited_mix: self.edits.progress(self.next), plan, ..entry })
    }

    fn write(&mut self, entry: &Entry) -> Result<()> {
        let text = entry.text()?;
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        self.last = entry.at_batch;
        written.map_err(|e| Error::io(e, &self.path))
    }

    #[cold]
    fn fail(&mut self, error: &Error) {
        self.has_failed = true;
        tracing::warn!("the run log is not continued: {error}");
    }
}

/// Returns the digest of `plans` and of another plan after them. Without plans, the digest is 0.
pub(super) fn and_plan(plans: u128, digest: u128) -> u128 {
    let mut hasher = StreamHasher::new();
    hasher.bytes(&plans.to_le_bytes());
    hasher.bytes(&digest.to_le_bytes());
    hasher.finish()
}

fn json(state: &impl Serialize) -> Result<Json> {
    serde_json::to_value(state).map_err(unwritable)
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
