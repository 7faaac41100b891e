//! Recordings of runs: what is read back is what the run said of itself, and a run that is killed has lost no more than its last seconds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill::dataset::map::Range;
use gristmill::{ErrorKind, Executor, IterDataset, Load, Loader, MapDataset, Report};

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
fn a_recording_that_is_cut_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.gmr");
    let mut loader = recorded(&file, Executor::Threads(1));
    loader.by_ref().take(20).for_each(|batch| drop(batch.unwrap()));
    // Until it has been looked at once, and then a second time.
    let size = || std::fs::metadata(&file).unwrap().len();
    let head = size();
    let wait_for_more = |than: u64| {
        while size() <= than {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Of one that is just being written, all.
        std::thread::sleep(Duration::from_millis(50));
        size()
    };
    let first = wait_for_more(head);
    loader.by_ref().take(20).for_each(|batch| drop(batch.unwrap()));
    std::thread::sleep(Duration::from_millis(150));
    loader.next().unwrap().unwrap();
    wait_for_more(first);
    drop(loader);
    let bytes = std::fs::read(&file).unwrap();
    let read = |bytes: &[u8]| {
        let cut = folder.path().join("cut.gmr");
        std::fs::write(&cut, bytes).unwrap();
        Report::from_record(&cut)
    };
    assert_eq!(read(&bytes).unwrap().delivered, 41);
    let remark = |report: &Report| report.remarks.iter().any(|remark| remark.contains("the recording has no end"));
    assert!(!remark(&read(&bytes).unwrap()));
    for cut in [first as usize, first as usize + 1, (first as usize + bytes.len()) / 2, bytes.len() - 1] {
        let report = read(&bytes[..cut]).unwrap();
        assert!([20, 41].contains(&report.delivered) && remark(&report), "{cut}: {report}");
        assert!(report.to_html().contains("your step"));
    }
    let error = read(&bytes[..head as usize]).unwrap_err();
    assert!(error.kind() == ErrorKind::Data && error.to_string().contains("cut.gmr"), "{error}");
    let mut damaged = bytes.clone();
    damaged[first as usize - 20] ^= 0x55;
    let error = read(&damaged).unwrap_err();
    assert!(error.message().starts_with(&format!("byte {head}: the recording is damaged: ")), "{error}");
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
    assert!(error.message().contains("is no recording of a run: it is not overwritten"), "{error}");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "name: mine\n");
    let error = pipeline(4).loader().record(folder.path().join("no/run.gmr")).build().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}
