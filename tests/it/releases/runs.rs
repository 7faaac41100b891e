//! Recordings of runs, and folders of sinks: whole ones, and one that was stopped in the middle.

use std::path::Path;

use gristmill::sink::{Manifest, Sink, SinkFormat, SinkOptions};
use gristmill::{BoxIter, Element, Executor, Load, Report};
use serde::{Deserialize, Serialize};

use super::{pipeline, read_json, write_json};

/// The pipeline that is recorded, and whose rows are written.
const FILE: &str = "pipelines/first_fit_pack.yaml";

/// Facts of a recording, as it told them when it was made.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Recorded {
    delivered: u64,
    executor: String,
    stages: Vec<String>,
}

impl Recorded {
    fn of(report: &Report) -> Self {
        let stages = report.stages.iter().map(|stage| stage.name.clone()).collect();
        Self { delivered: report.delivered, executor: report.execution.executor.clone(), stages }
    }
}

fn record(folder: &Path) {
    std::fs::create_dir_all(folder.join("runs")).unwrap();
    let file = folder.join("runs/threads.gmr");
    let mut loader =
        pipeline(&folder.join(FILE)).loader().executor(Executor::Threads(2)).record(&file).build().unwrap();
    loader.by_ref().for_each(|batch| drop(batch.unwrap()));
    write_json(&file.with_extension("json"), &Recorded::of(&loader.report()));
}

fn options() -> SinkOptions {
    Sink::options(SinkFormat::Jsonl).shard_records(2).threads(1)
}

fn begin(dataset: &BoxIter<Element>, folder: &Path) {
    let (mut sink, mut loader) = Sink::of_pipeline(options(), folder, dataset.clone().loader()).unwrap();
    for _ in 0..3 {
        assert!(sink.write_next(&mut loader).unwrap());
    }
    sink.stop().unwrap();
}

pub(crate) fn write(folder: &Path) {
    record(folder);
    let dataset = pipeline(&folder.join(FILE));
    begin(&dataset, &folder.join("stopped"));
    dataset.loader().write_to(options(), folder.join("written")).unwrap();
}

pub(crate) fn read(folder: &Path) {
    let report = Report::from_record(folder.join("runs/threads.gmr")).unwrap();
    assert_eq!(Recorded::of(&report), read_json(&folder.join("runs/threads.json")));
    // The folders of data are written by sinks, too.
    let mut manifests = 0;
    for parent in [folder.to_owned(), folder.join("data")] {
        for entry in std::fs::read_dir(parent).unwrap() {
            let path = entry.unwrap().path();
            if let Some(manifest) = Manifest::of(&path).unwrap() {
                assert!(manifest.check_files(&path).is_empty(), "{}", path.display());
                manifests += 1;
            }
        }
    }
    assert!(manifests > 10, "{manifests} folders of sinks");
    go_on(folder);
}

/// The job that was stopped writes what the one that was not has written.
fn go_on(folder: &Path) {
    let stopped = folder.join("stopped");
    assert!(!Manifest::of(&stopped).unwrap().unwrap().complete);
    pipeline(&folder.join(FILE)).loader().write_to(options().resume(true), &stopped).unwrap();
    let [of_one, of_two] = [folder.join("written"), stopped].map(|folder| {
        let manifest = Manifest::of(folder).unwrap().unwrap();
        manifest.files().map(|file| (file.name.clone(), file.bytes, file.xxh3.clone())).collect::<Vec<_>>()
    });
    assert_eq!(of_one, of_two);
}
