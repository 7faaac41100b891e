//! Checkpoints: small, readable and versioned. They contain positions only.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use crate::dataset::Stage;
use crate::edits::{EditedMix, Edits};
use crate::error::{Error, Result};
use crate::rng::without_schedule;

/// Version of the format that this crate writes.
pub const FORMAT: u32 = 1;

/// Position of a run, as returned by [`Loader::state`](crate::Loader::state); JSON by `serde`.
///
/// A checkpoint is independent of threads, workers, hosts and prefetched elements, so any executor can restore it.
/// It does depend on the pipeline: a restore into another pipeline is refused, and the error names the first stage that differs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Version of this format: [`FORMAT`].
    pub gristmill_checkpoint: u32,
    /// Version of the crate that wrote the checkpoint.
    pub crate_version: String,
    /// Hash of `pipeline`.
    pub fingerprint: String,
    /// Stages with their parameters, in post-order, for people and for errors. The fingerprint is computed from them.
    pub pipeline: Vec<String>,
    /// Number of elements delivered before this point.
    pub delivered: u64,
    /// Positions of all stateful stages.
    pub state: Json,
    /// Changes of the pipeline that restores have accepted, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_changes: Vec<AcceptedChange>,
    /// Edits that have changed a batch before this point: see [`edits`](crate::LoaderBuilder::edits).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<String>,
    /// Progress of the mix that edits change. `None` if no edit changes a mix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_mix: Option<EditedMix>,
}

/// Change of the pipeline that a restore accepted: see [`accept_changes`](crate::LoaderBuilder::accept_changes).
///
/// The stages before and after the different lines are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedChange {
    /// Number of elements delivered before the change.
    pub delivered: u64,
    /// Number of the first stage that differs.
    pub stage: usize,
    /// Lines of [`pipeline`](Checkpoint::pipeline) from that stage on, before the change.
    pub was: Vec<String>,
    /// Lines from that stage on, after the change.
    pub is: Vec<String>,
}

impl AcceptedChange {
    fn between(checkpoint: &Checkpoint, lines: &[String]) -> Self {
        let theirs = checkpoint.pipeline.as_slice();
        let stage = theirs.iter().zip(lines).take_while(|(a, b)| a == b).count();
        let (was, is) = (&theirs[stage..], &lines[stage..]);
        let equal = was.iter().rev().zip(is.iter().rev()).take_while(|(a, b)| a == b).count();
        let (was, is) = (&was[..was.len() - equal], &is[..is.len() - equal]);
        Self { delivered: checkpoint.delivered, stage, was: was.to_vec(), is: is.to_vec() }
    }
}

display_as!(AcceptedChange, |self, f| {
    let side = |lines: &[String]| if lines.is_empty() { "nothing".to_owned() } else { lines.join(", ") };
    let Self { delivered, stage, was, is } = self;
    write!(f, "stage {stage} was {} and is {} after {delivered} elements", side(was), side(is))
});

/// Returns a short hash of all stages and their parameters, in hexadecimal.
pub fn fingerprint(pipeline: &dyn Stage) -> String {
    Identity::of(pipeline).fingerprint
}

/// Part of a checkpoint that identifies its pipeline. It is constant during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    fingerprint: String,
    lines: Vec<String>,
    /// Lines as older checkpoints contain them, with borders at the cuts of prefixes.
    lines_with_cuts: Vec<String>,
    accepted_changes: Vec<AcceptedChange>,
    edits: Edits,
}

impl Identity {
    /// Describes `pipeline`, stage by stage.
    pub(crate) fn of(pipeline: &dyn Stage) -> Self {
        let lines = pipeline.lines();
        let fingerprint = format!("{:016x}", xxh3_64(lines.join("\n").as_bytes()));
        Self {
            fingerprint,
            lines,
            lines_with_cuts: pipeline.lines_with_cuts(),
            accepted_changes: Vec::new(),
            edits: Edits::default(),
        }
    }

    /// Sets the edits of the run.
    pub(crate) fn edited(self, edits: Edits) -> Self {
        Self { edits, ..self }
    }

    /// Returns the edits of the run.
    pub(crate) fn edits(&self) -> &Edits {
        &self.edits
    }

    /// Returns the hash of all stages.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the lines of all stages and edits, which all hosts share.
    pub(crate) fn shared_lines(&self) -> Vec<String> {
        let edits = self.edits.lines().into_iter().map(|edit| format!("edit {edit}"));
        self.lines.iter().cloned().chain(edits).collect()
    }

    /// Returns the hash of all stages and edits.
    pub(crate) fn shared_fingerprint(&self) -> String {
        if self.edits.is_empty() {
            return self.fingerprint.clone();
        }
        format!("{:016x}", xxh3_64(self.shared_lines().join("\n").as_bytes()))
    }

    /// Returns the changes that restores have accepted.
    pub(crate) fn accepted_changes(&self) -> &[AcceptedChange] {
        &self.accepted_changes
    }

    /// Returns the identity of a run that continues from `checkpoint`, with its history of accepted changes.
    /// If the pipeline has changed since and `accepts` is set, the history ends with that change.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) for another pipeline, unless `accepts` is set, and for other edits of
    /// the past.
    pub(crate) fn after(&self, checkpoint: &Checkpoint, accepts: bool) -> Result<Self> {
        self.edits.continues(&checkpoint.edits, checkpoint.delivered)?;
        let mut accepted_changes = checkpoint.accepted_changes.clone();
        match checkpoint.check(self) {
            Err(error) if !accepts => return Err(error),
            Err(_) => accepted_changes.push(AcceptedChange::between(checkpoint, &self.lines)),
            Ok(()) => {}
        }
        Ok(Self { accepted_changes, ..self.clone() })
    }

    /// Logs the change that [`after`](Self::after) has accepted for `checkpoint`, if any.
    pub(crate) fn log_change_since(&self, checkpoint: &Checkpoint) {
        for change in self.accepted_changes.iter().skip(checkpoint.accepted_changes.len()) {
            tracing::warn!(
                "the pipeline differs from the pipeline of the state, which `accept_changes` permits: {change}"
            );
        }
    }

    /// Makes the checkpoint of a position in this pipeline.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if JSON cannot hold `state`.
    pub(crate) fn at(&self, delivered: u64, state: &impl Serialize) -> Result<Checkpoint> {
        let state = serde_json::to_value(state).map_err(unwritable)?;
        Ok(Checkpoint {
            gristmill_checkpoint: FORMAT,
            crate_version: env!("CARGO_PKG_VERSION").into(),
            fingerprint: self.fingerprint.clone(),
            pipeline: self.lines.clone(),
            delivered,
            state,
            accepted_changes: self.accepted_changes.clone(),
            edits: self.edits.effective(delivered),
            edited_mix: None,
        })
    }
}

/// Returns the error for a state that JSON cannot hold.
#[cold]
pub(crate) fn unwritable(error: serde_json::Error) -> Error {
    Error::state(format!("the state of a stage cannot be written as JSON: {error}"))
}

impl Checkpoint {
    /// Reads a checkpoint from JSON.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if `json` is not a checkpoint, or has another format version.
    pub fn from_json(json: &str) -> Result<Self> {
        let value: Json = serde_json::from_str(json).map_err(|e| Error::state(format!("not a checkpoint: {e}")))?;
        match value.get("gristmill_checkpoint").and_then(Json::as_u64) {
            None => return Err(Error::state("not a checkpoint: no field \"gristmill_checkpoint\"")),
            Some(version) if version != u64::from(FORMAT) => {
                let text = format!("checkpoint format {version}, but this gristmill reads format {FORMAT}");
                return Err(Error::state(text).help("resume with the version of gristmill that wrote it"));
            }
            Some(_) => {}
        }
        serde_json::from_value(value).map_err(|e| Error::state(format!("not a checkpoint: {e}")))
    }

    /// Returns the checkpoint as indented JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and JSON values serialise")
    }

    /// Writes the checkpoint to a file, which is replaced atomically: a crash leaves the old or the new checkpoint.
    ///
    /// ```
    /// use gristmill::dataset::map::Range;
    /// use gristmill::{Checkpoint, prelude::*};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-checkpoint-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let file = dir.join("loader.json");
    /// let mut loader = Range::new(0, 10).to_iter().loader().build()?;
    /// loader.next();
    /// loader.state()?.save(&file)?;
    /// let resumed = Range::new(0, 10).to_iter().loader().resume(Checkpoint::load(&file)?).build()?;
    /// assert_eq!(resumed.count(), 9);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written. An old file is then kept.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        crate::store::replace(path.as_ref(), self.to_json().as_bytes())
    }

    /// Reads a [saved](Self::save) checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; errors of [`from_json`](Self::from_json), with the path.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let json = std::fs::read_to_string(path).map_err(|e| Error::io(e, path))?;
        Self::from_json(&json).map_err(|e| e.path(path))
    }

    /// Checks that the checkpoint belongs to the pipeline of `identity`.
    pub(crate) fn check(&self, identity: &Identity) -> Result<()> {
        let lines = &identity.lines;
        // A schedule may be longer than before. Its stage compares the entries that have taken effect.
        let differ = |(a, b): (&String, &String)| without_schedule(a) != without_schedule(b);
        let differs = |ours: &[String]| {
            let (theirs, count) = (self.pipeline.len(), ours.len());
            let first = self.pipeline.iter().zip(ours).position(differ);
            first.or((theirs != count).then_some(theirs.min(count)))
        };
        let Some(at) = differs(lines) else { return Ok(()) };
        if differs(&identity.lines_with_cuts).is_none() {
            return Ok(());
        }
        let side = |lines: &[String]| lines.get(at).map_or_else(|| "nothing".to_owned(), Clone::clone);
        Err(Error::state(format!(
            "the checkpoint is of another pipeline: stage {at} was {} and is {}",
            side(&self.pipeline),
            side(lines)
        ))
        .help("resume with the pipeline and data that wrote it, accept the change by `accept_changes`, or start without the checkpoint"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;
    use crate::{ErrorKind, Load, MapDatasetExt};

    #[test]
    fn a_checkpoint_of_another_format_is_refused_with_both_versions() {
        let json = Range::new(0, 9).to_iter().loader().build().unwrap().state().unwrap().to_json();
        assert!(Checkpoint::from_json(&json).is_ok());
        let refused = |json: &str| {
            let error = Checkpoint::from_json(json).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::State);
            error.message().to_owned()
        };
        let other = json.replace("\"gristmill_checkpoint\": 1", "\"gristmill_checkpoint\": 2");
        assert_eq!(refused(&other), "checkpoint format 2, but this gristmill reads format 1");
        for text in ["", "{}", "[1]", "{\"gristmill_checkpoint\": \"1\"}"] {
            assert!(refused(text).starts_with("not a checkpoint: "), "{text}");
        }
    }
}
