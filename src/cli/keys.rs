//! `gristmill index --keys`: makes keys before hosts plan with them.

use std::path::Path;
use std::time::Instant;

use crate::cli::format::{bytes, grouped};
use crate::cli::progress::Counter;
use crate::cli::{Outcome, output};
use crate::dataset::iter::{keyed_by, lanes_of};
use crate::keys::{KeyFolder, RecordedKeys};
use crate::spec::Pipeline;
use crate::{Error, Result};

/// Makes the keys of a pipeline file, with a key file for each of its sources.
pub(super) fn main(file: &Path, folder: Option<&Path>, json: bool) -> Result<Outcome> {
    let pipeline = Pipeline::from_file(file)?;
    let dataset = pipeline.build()?;
    let folder = folder.map(Path::to_owned).or_else(|| Some(pipeline.keys()?.0));
    let folder = KeyFolder::new(folder.ok_or_else(|| Error::config("there is no folder for the keys"))?);
    let mut rows = Vec::new();
    let lanes = lanes_of(&dataset)?;
    for lanes in &lanes {
        let start = Instant::now();
        let mut progress = Counter::new("elements of lanes");
        let recorded = folder.record_lanes(&**lanes, |elements| progress.show(elements));
        progress.finish();
        rows.push((recorded?, start.elapsed().as_secs_f64()));
    }
    let keyed = if lanes.is_empty() { keyed_by(&dataset)? } else { Vec::new() };
    for keyed in keyed {
        let start = Instant::now();
        let mut progress = Counter::new(&format!("of {} records", grouped(keyed.records())));
        let recorded = folder.record(&*keyed, |records| progress.show(records));
        progress.finish();
        rows.push((recorded?, start.elapsed().as_secs_f64()));
    }
    if json {
        let keys: Vec<_> = rows.iter().map(|(recorded, seconds)| as_json(recorded, *seconds)).collect();
        output::json(&serde_json::json!({"keys": keys}));
        return Ok(Outcome::Done);
    }
    let rows: Vec<_> = rows.iter().map(|(recorded, seconds)| row(recorded, *seconds)).collect();
    let head = ["source", "records", "elements", "keys", "an element", "time"];
    output::data(&output::table(&head, &rows, &[1, 2, 3, 4]));
    output::say(&format!("in {}: hosts that run with --part plan by them", folder.path().display()));
    Ok(Outcome::Done)
}

fn as_json(recorded: &RecordedKeys, seconds: f64) -> serde_json::Value {
    let RecordedKeys { path, source, records, elements, bytes, was_there } = recorded;
    serde_json::json!({
        "file": path, "source": source, "records": records, "elements": elements, "bytes": bytes, "was_there": was_there, "seconds": seconds,
    })
}

fn row(recorded: &RecordedKeys, seconds: f64) -> Vec<String> {
    let each = recorded.bytes as f64 / recorded.elements.max(1) as f64;
    vec![
        recorded.source.clone(),
        grouped(recorded.records),
        grouped(recorded.elements),
        bytes(recorded.bytes),
        format!("{each:.2} B"),
        if recorded.was_there { "was there".to_owned() } else { format!("{seconds:.2} s") },
    ]
}
