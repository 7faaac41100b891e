//! Recordings of runs: what is read back is what the run said of itself, and a run that is killed has lost no more than its last seconds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::{ErrorKind, Executor, IterDataset, Load, Loader, MapDatasetExt, Report};

fn pipeline(elements: i64) -> impl IterDataset<Item = Vec<i64>> + use<> {
    Range::new(0, elements).shuffle(3).map(|x| x + 1).to_iter().batch(4)
}

/// A pass that is recorded in `file`.
fn recorded(file: &Path, executor: Executor) -> Loader<impl IterDataset<Item = Vec<i64>> + use<>> {
    pipeline(800).loader().executor(executor).record(file).build().unwrap()
}

/// The text of a report without what is as of the time at which it is made.
fn lasting(report: &Report) -> Vec<String> {
    let text = report.to_string();
    text.lines().skip(1).filter(|line| !line.contains("memory hold")).map(str::to_owned).collect()
}

#[test]
fn a_run_that_ended_is_read_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let file = folder.path().join("run.gmr");
        let mut loader = recorded(&file, executor);
        for batch in loader.by_ref() {
            batch.unwrap();
            // The consumer's own step, of which the picture shows the time.
            std::thread::sleep(Duration::from_millis(1));
        }
        let report = loader.report();
        drop(loader);
        let back = Report::from_record(&file).unwrap();
        assert_eq!(lasting(&back), lasting(&report));
        assert_eq!((back.delivered, back.wall_s), (200, report.wall_s));
        // The picture, too: the same numbers of everything that is drawn of single batches.
        let (told, page) = (back.to_html(), report.to_html());
        assert_eq!(told.matches("<path").count(), page.matches("<path").count());
        assert!(told.contains("your step") && page.contains("your step"));
    }
}

#[test]
fn a_recording_that_is_there_is_kept_and_another_file_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kept): (PathBuf, PathBuf) = (folder.path().join("run.gmr"), folder.path().join("run.1.gmr"));
    for batches in [3, 5, 7] {
        let mut loader = recorded(&file, Executor::Inline);
        loader.by_ref().take(batches).for_each(|batch| drop(batch.unwrap()));
        loader.report();
    }
    assert_eq!((Report::from_record(&file).unwrap().delivered, Report::from_record(&kept).unwrap().delivered), (7, 5));
    let other = folder.path().join("pipeline.yaml");
    std::fs::write(&other, "name: mine\n").unwrap();
    let error = pipeline(4).loader().record(&other).build().map(drop).unwrap_err();
    assert!(error.message().contains("exists and is not a recording of a run, so it is not overwritten"), "{error}");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "name: mine\n");
    let error = pipeline(4).loader().record(folder.path().join("no/run.gmr")).build().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}
