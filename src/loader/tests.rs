use super::*;
use crate::IterDatasetExt;
use crate::MapDatasetExt;
use crate::dataset::map::Range;
use crate::exec::Executor;
use crate::{AcceptedChange, ErrorKind};

fn pipeline(add: i64) -> impl IterDataset<Item = i64> + 'static {
    Range::new(0, 5000).map(move |x| x + add).to_iter().filter(|x| x % 7 != 0).boxed()
}

fn run(loader: Loader<impl IterDataset<Item = i64> + 'static>) -> Vec<i64> {
    loader.collect::<Result<_>>().unwrap()
}

#[test]
fn executors_agree_and_a_checkpoint_restores_into_any() {
    let inline = run(pipeline(1).loader().build().unwrap());
    assert_eq!(inline.len(), 5000 - 5000 / 7);
    for threads in [1, 3] {
        let mut loader = pipeline(1).loader().threads(threads).build().unwrap();
        let mut seen: Vec<i64> = loader.by_ref().take(1234).map(Result::unwrap).collect();
        let json = loader.state().unwrap().to_json();
        let checkpoint = Checkpoint::from_json(&json).unwrap();
        assert_eq!(checkpoint.delivered, 1234);
        let resumed = pipeline(1).loader().resume(checkpoint).build().unwrap();
        assert_eq!(resumed.state().unwrap().to_json(), json);
        seen.extend(run(resumed));
        assert_eq!(seen, inline);
    }
}

#[test]
fn a_wait_beyond_the_timeout_is_an_error_and_the_state_goes_on() {
    let (gate, opened) = std::sync::mpsc::channel::<()>();
    let opened = std::sync::Mutex::new(opened);
    let held = Range::new(0, 9).map(move |x| {
        if x == 5 {
            // Ends when the gate is dropped.
            let _ = opened.lock().unwrap().recv();
        }
        x
    });
    let mut loader = held.to_iter().loader().threads(1).timeout(Duration::from_millis(30)).build().unwrap();
    let seen: Vec<_> = loader.by_ref().take_while(Result::is_ok).map(Result::unwrap).collect();
    assert!(seen.len() <= 5 && loader.next().is_none());
    let state = loader.state().unwrap();
    assert_eq!(state.delivered, seen.len() as u64);
    drop(gate);
    drop(loader);
    let error = Range::new(0, 9).to_iter().loader().timeout(Duration::from_secs(1)).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

#[test]
fn a_foreign_checkpoint_is_refused_by_name() {
    let state = Range::new(0, 9).to_iter().loader().build().unwrap().state().unwrap();
    let error = Range::new(0, 8).to_iter().loader().resume(state).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.message().contains("stage 0 was range(0, 9, 1) and is range(0, 8, 1)"), "{error}");
}

#[test]
fn an_accepted_change_is_in_the_report_and_in_all_later_states() {
    let pipeline = |end| Range::new(0, end).map(|x| x).to_iter().filter(|x| x % 2 == 0);
    let mut loader = pipeline(9).loader().build().unwrap();
    assert_eq!(loader.by_ref().take(2).map(Result::unwrap).collect::<Vec<_>>(), [0, 2]);
    let state = loader.state().unwrap();
    assert!(!state.to_json().contains("accepted_changes"));
    let resumed = |end, state| pipeline(end).loader().accept_changes(true).resume(state).build();
    // Nothing has changed.
    assert_eq!(resumed(9, state.clone()).unwrap().state().unwrap().to_json(), state.to_json());
    let mut loader = resumed(8, state).unwrap();
    let (was, is) = ("range(0, 9, 1)", "range(0, 8, 1)");
    let lines = |line: &str| vec![line.to_owned()];
    let change = AcceptedChange { delivered: 2, stage: 0, was: lines(was), is: lines(is) };
    let remark = format!("accepted change: stage 0 was {was} and is {is} after 2 elements");
    assert!(loader.report().remarks.contains(&remark), "{:?}", loader.report().remarks);
    assert_eq!(loader.next().unwrap().unwrap(), 4);
    let later = Checkpoint::from_json(&loader.state().unwrap().to_json()).unwrap();
    assert_eq!(later.accepted_changes, std::slice::from_ref(&change));
    // The state is one of the pipeline as it is now, and another change is the next.
    let same = pipeline(8).loader().resume(later.clone()).build().unwrap();
    assert_eq!(same.state().unwrap().accepted_changes, std::slice::from_ref(&change));
    let longer = pipeline(12).map(|x| x).loader().accept_changes(true).resume(later).build().unwrap();
    let changes = longer.state().unwrap().accepted_changes;
    assert_eq!((changes.len(), &changes[0]), (2, &change));
    assert_eq!((changes[1].was.len() + 1, changes[1].is.len()), (changes[1].is.len(), 4), "{changes:?}");
    assert_eq!(run(longer), [6, 8, 10]);
}

#[test]
fn a_change_that_positions_do_not_fit_is_refused() {
    let mut loader = Range::new(0, 9).to_iter().loader().build().unwrap();
    loader.next();
    let parents = || Range::new(0, 9).to_iter();
    let zipped = parents().zip(parents());
    let refused = zipped.loader().accept_changes(true).resume(loader.state().unwrap()).build().unwrap_err();
    assert!(
        refused.message().starts_with("the checkpoint's state does not have the shape of this pipeline's state: "),
        "{refused}"
    );
}

#[test]
fn an_error_arrives_in_its_place_and_ends_the_run() {
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let ds = Range::new(0, 100).try_map(|x| if x == 30 { Err(Error::data("bad")) } else { Ok(x) });
        let mut loader = ds.to_iter().loader().executor(executor).build().unwrap();
        assert_eq!(loader.by_ref().take(30).filter_map(Result::ok).count(), 30);
        assert_eq!(loader.next().unwrap().unwrap_err().to_string(), "stage 1 map: element 30: bad");
        assert!(loader.next().is_none());
        assert_eq!(loader.state().unwrap().state["next_index"], 30);
    }
}

/// The fourth element is only there once the third has arrived. Each takes longer than the 2 ms that a range may take, so no two share a range.
#[test]
fn elements_do_not_wait_for_the_next() {
    let (arrived, has_arrived) = crossbeam_channel::bounded(1);
    let next = move |x: i64| {
        // A lower bound: a busy machine makes it longer, and ranges stay single.
        std::thread::sleep(std::time::Duration::from_millis(3));
        let late = x == 3 && has_arrived.recv_timeout(std::time::Duration::from_secs(30)).is_err();
        if late { Err(Error::data("nothing has arrived")) } else { Ok(x) }
    };
    for stateful in [false, true] {
        let stream = Range::new(0, 9).to_iter().try_map(next.clone());
        let stream = if stateful { stream.window_shuffle(1, 1).boxed() } else { stream.boxed() };
        let mut loader = stream.loader().threads(2).build().unwrap();
        assert_eq!(loader.by_ref().take(3).map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2]);
        arrived.send(()).unwrap();
        assert_eq!(run(loader), [3, 4, 5, 6, 7, 8]);
    }
}

#[test]
fn a_consumer_may_look_up_while_it_waits() {
    let (open, gate) = crossbeam_channel::bounded::<()>(1);
    let ds = Range::new(0, 3).map(move |x| gate.recv().map_or(x, |()| x));
    let mut loader = ds.to_iter().loader().threads(1).build().unwrap();
    let patience = Duration::from_millis(1);
    assert!((0..3).all(|_| loader.next_within(patience).is_pending()));
    assert_eq!((loader.delivered(), loader.report().delivered), (0, 0));
    drop(open);
    let first = std::iter::repeat_with(|| loader.next_within(patience)).find(Poll::is_ready);
    assert!(matches!(first, Some(Poll::Ready(Some(Ok(0))))));
    assert_eq!(run(loader), [1, 2]);
}

#[cfg(unix)]
#[test]
fn a_fork_neither_reads_it_nor_ends_it() {
    use crate::fork::tests::in_fork;
    for executor in [Executor::Threads(1), Executor::Threads(3), Executor::Auto] {
        let mut loader = Some(pipeline(0).loader().executor(executor).build().unwrap());
        let mut seen: Vec<i64> = loader.iter_mut().flatten().take(10).map(Result::unwrap).collect();
        let refused = |error: Error| error.kind() == ErrorKind::Worker && error.message().contains("is a fork of it");
        let code = in_fork(|| {
            let Some(mut loader) = loader.take() else { return false };
            let errors = [loader.next().and_then(Result::err), loader.state().err()];
            // The next time it has ended, as after any error.
            let over = loader.next().is_none() && loader.report().delivered == 10;
            drop(loader);
            over && errors.into_iter().flatten().filter_map(|e| refused(e).then_some(())).count() == 2
        });
        assert_eq!(code, 0);
        seen.extend(loader.into_iter().flatten().map(Result::unwrap));
        assert_eq!(seen, run(pipeline(0).loader().build().unwrap()));
    }
}

/// Also where tasks that are under way hold the threads, and where the stateful part would wait for ever.
#[test]
fn dropping_it_ends_its_threads() {
    let calls = Arc::new(());
    for round in 0..20 {
        let call = calls.clone();
        let slow = move |x: i64| {
            let _call = &call;
            // Some calls are under way when the loader is dropped.
            std::thread::sleep(Duration::from_micros(300));
            x
        };
        let ds = Range::new(0, 1 << 40).map(slow).to_iter().filter(move |&x| round % 2 == 0 || x < 3);
        let mut loader = ds.loader().threads(2).build().unwrap();
        assert_eq!(loader.next().unwrap().unwrap(), 0);
        drop(loader);
        assert_eq!(Arc::strong_count(&calls), 1);
    }
}

#[test]
fn a_panic_on_a_thread_is_an_error_of_its_element() {
    let ds = Range::new(0, 10).map(|x| if x == 3 { panic!("boom") } else { x });
    let mut loader = ds.to_iter().loader().threads(2).build().unwrap();
    let error = loader.by_ref().find_map(Result::err).unwrap();
    assert_eq!(error.to_string(), "element 3: a function panicked: boom");
}

/// The looks of a recording are made at given batches, not by its thread at some time.
#[test]
fn a_recording_that_is_cut_is_read_up_to_there() {
    use crate::live::{RecordView, View};

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.gmr");
    let ds = Range::new(0, 800).shuffle(3).map(|x| x + 1).to_iter().batch(4);
    // A pass with an endpoint has viewers; this recording is one more.
    let mut loader = ds.loader().executor(Executor::Threads(1)).metrics("0").build().unwrap();
    let live = loader.live().unwrap();
    let mut view = RecordView::create(&file).unwrap();
    let mut size_after = |loader: &mut Loader<_>, batches: usize, end: bool| {
        loader.by_ref().take(batches).for_each(|batch| drop(batch.unwrap()));
        loader.tell();
        view.look(&live, end).unwrap();
        std::fs::metadata(&file).unwrap().len() as usize
    };
    let head = std::fs::metadata(&file).unwrap().len() as usize;
    let first = size_after(&mut loader, 20, false);
    let second = size_after(&mut loader, 21, false);
    size_after(&mut loader, 0, true);
    let bytes = std::fs::read(&file).unwrap();
    let read = |bytes: &[u8]| {
        let cut = folder.path().join("cut.gmr");
        std::fs::write(&cut, bytes).unwrap();
        Report::from_record(&cut)
    };
    let remark = |report: &Report| report.remarks.iter().any(|remark| remark.contains("the recording has no end"));
    let whole = read(&bytes).unwrap();
    assert!(whole.delivered == 41 && !remark(&whole));
    for (cut, delivered) in
        [(first, 20), (first + 1, 20), (second - 1, 20), (second, 41), (second + 1, 41), (bytes.len() - 1, 41)]
    {
        let report = read(&bytes[..cut]).unwrap();
        assert!(report.delivered == delivered && remark(&report), "{cut}: {report}");
        assert!(report.to_html().contains("your step"));
    }
    let error = read(&bytes[..head]).unwrap_err();
    assert!(error.kind() == ErrorKind::Data && error.to_string().contains("cut.gmr"), "{error}");
    let mut damaged = bytes.clone();
    damaged[first - 20] ^= 0x55;
    let error = read(&damaged).unwrap_err();
    assert!(error.message().starts_with(&format!("byte {head}: the recording is damaged: ")), "{error}");
}

#[cfg(all(feature = "workers", target_os = "linux"))]
#[test]
fn a_consumer_that_goes_elsewhere_waits_no_longer() {
    let (open, gate) = crossbeam_channel::bounded::<()>(1);
    let ds = Range::new(0, 3).map(move |x| if x == 0 { x } else { gate.recv().map_or(x, |()| x) });
    let mut loader = ds.to_iter().loader().threads(1).build().unwrap();
    assert_eq!(loader.next().unwrap().unwrap(), 0);
    assert!(loader.next_within(Duration::from_millis(1)).is_pending());
    let waiting = |loader: &Loader<_>| loader.run.demand.waiting(std::time::Instant::now());
    assert!(waiting(&loader).is_some());
    drop(open);
    // Its thread may be too busy to follow; the wait has ended in any case.
    let _ = loader.back(1);
    assert_eq!(waiting(&loader), None);
}

#[test]
fn elements_are_given_back_once_and_counted_off() {
    let mut loader = pipeline(0).loader().build().unwrap();
    let first: Vec<i64> = loader.by_ref().take(3).map(Result::unwrap).collect();
    loader.back(2).unwrap();
    assert_eq!((loader.delivered(), loader.state().unwrap().delivered), (1, 1));
    // States from before it are no longer kept.
    assert!(loader.back(1).unwrap_err().message().contains("only 0 are kept"));
    assert_eq!(loader.by_ref().take(2).map(Result::unwrap).collect::<Vec<_>>(), first[1..]);
}
