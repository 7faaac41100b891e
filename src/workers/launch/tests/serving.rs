use std::collections::BTreeMap;
use std::io::Read;

use super::*;
use crate::error::Error;
use crate::workers::slab::{ExtentId, PAGE, Slab};

#[test]
fn a_worker_answers_and_stops() {
    let (worker, events) = echoing(1000);
    for id in 0..10 {
        worker.send(&task(id)).unwrap();
    }
    for id in 0..10 {
        assert_eq!(next_message(&events), FromWorker::Done(done(id, id + 1001)));
    }
    let exit = worker.stop(PATIENCE).unwrap();
    assert!(exit.is_clean(), "{exit}");
    assert_eq!(next_exit(&events), exit);
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Cfg {
    text: String,
    paths: Vec<std::path::PathBuf>,
    weights: BTreeMap<String, f64>,
    long: Vec<u64>,
}

fn written(cfg: Cfg) -> Result<String> {
    Ok(serde_json::to_string(&cfg).unwrap())
}

/// Says in a failure what it was given.
fn say(text: String, session: Session) -> Result<()> {
    let digest = xxhash_rust::xxh3::xxh3_64(text.as_bytes());
    session.send(FromWorker::Done(done(text.len() as u64, digest)))
}

#[test]
fn a_configuration_of_any_size_arrives_whole() {
    for len in [0, 10_000, 400_000] {
        let cfg = Cfg {
            text: "é\n\"\\".into(),
            paths: vec!["/a b".into()],
            weights: [("x".to_owned(), 0.1 + 0.2)].into(),
            long: (0..len).collect(),
        };
        let text = serde_json::to_string(&cfg).unwrap();
        let (_worker, events) = launch(written, cfg, say);
        let expected = done(text.len() as u64, xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
        assert_eq!(next_message(&events), FromWorker::Done(expected));
    }
}

#[test]
fn a_configuration_that_json_cannot_carry_is_refused_at_once() {
    fn factory(_: Vec<f64>) -> Result<u64> {
        Ok(0)
    }
    let error = Program::new(factory, &vec![1.0, f64::NAN], echo).unwrap_err();
    assert!(error.to_string().contains("cannot be read back"), "{error}");
    fn other(_: BTreeMap<(u8, u8), u8>) -> Result<u64> {
        Ok(0)
    }
    let error = Program::new(other, &[((1, 2), 3)].into(), echo).unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
}

fn generic<T: Default + std::fmt::Display>(_: ()) -> Result<String> {
    Ok(format!("{} {}", std::any::type_name::<T>(), T::default()))
}

#[test]
fn generic_functions_and_closures_without_captures_are_programs() {
    let expected = |text: &str| FromWorker::Done(done(text.len() as u64, xxhash_rust::xxh3::xxh3_64(text.as_bytes())));
    let (_a, events) = launch(generic::<u8>, (), say);
    assert_eq!(next_message(&events), expected("u8 0"));
    let (_b, events) = launch(generic::<bool>, (), say);
    assert_eq!(next_message(&events), expected("bool false"));
    let (_c, events) = launch(|x: u32| Ok(format!("closure {x}")), 9, say);
    assert_eq!(next_message(&events), expected("closure 9"));
}

/// Four threads share the session.
fn crowd(add: u64, session: Session) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    while let Some(ToWorker::Task(task)) = session.recv()? {
                        session.send(FromWorker::Done(done(task.id, task.end + add)))?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}

#[test]
fn many_threads_share_a_session() {
    let (worker, events) = launch(adder, 5, crowd);
    let mut ends = BTreeMap::new();
    for first in (0..1000).step_by(50) {
        (first..first + 50).for_each(|id| worker.send(&task(id)).unwrap());
        for _ in 0..50 {
            let FromWorker::Done(done) = next_message(&events) else { panic!("not done") };
            assert!(ends.insert(done.id, done.evaluated.indices).is_none());
        }
    }
    assert!(ends.into_iter().eq((0..1000).map(|id| (id, id + 6))));
    // All four threads end, or the process would not.
    assert!(worker.stop(PATIENCE).unwrap().is_clean());
}

#[test]
fn the_slab_is_shared_and_standard_input_is_empty() {
    fn serve(_: u64, mut session: Session) -> Result<()> {
        let slab = session.take_slab().ok_or_else(|| Error::config("no slab"))?;
        assert!(session.take_slab().is_none());
        let all = ExtentId { page: 0, pages: 1, generation: 1 };
        slab.extent_mut(all).unwrap()[..15].copy_from_slice(b"from the worker");
        let open =
            std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
        assert!(!open.into_iter().any(|to| to.to_string_lossy().contains("memfd")));
        let read = std::io::stdin().read(&mut [0; 8]).map_err(|e| Error::io(e, "stdin"))?;
        session.send(FromWorker::Done(done(read as u64, 0)))
    }
    let slab = Slab::create(PAGE, 0, 1, || ()).unwrap();
    let memory = slab.file(0).unwrap();
    let (tell, events) = unbounded();
    let options = Options { slab: Some(memory), ..Options::default() };
    let _worker = begin(adder, 0, serve, &options, &tell).unwrap();
    assert_eq!(next_message(&events), FromWorker::Done(done(0, 0)));
    let mut bytes = [0; 32];
    let read = rustix::io::pread(memory, &mut bytes, 0).unwrap();
    assert_eq!((read, &bytes[..15]), (32, b"from the worker".as_slice()));
}

#[test]
fn a_worker_without_a_slab_has_none() {
    fn serve(_: u64, mut session: Session) -> Result<()> {
        let slab = session.take_slab();
        session.send(FromWorker::Done(done(u64::from(slab.is_some()), 0)))
    }
    let (_worker, events) = launch(adder, 0, serve);
    assert_eq!(next_message(&events), FromWorker::Done(done(0, 0)));
}

#[test]
fn a_worker_is_set_up_before_user_code_runs() {
    fn look(_: ()) -> Result<()> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        assert_eq!(read("/proc/self/oom_score_adj").trim(), "900");
        assert_eq!(u64::from_str_radix(read("/proc/self/coredump_filter").trim(), 16).unwrap() & 0b1010, 0);
        assert_eq!(read("/proc/self/comm").trim(), "gristmill");
        assert!(read("/proc/self/cmdline").starts_with("gristmill worker of "));
        assert_eq!(std::env::var_os("GRISTMILL_WORKER"), None);
        for (name, value) in [("OMP_NUM_THREADS", "1"), ("CUDA_VISIBLE_DEVICES", ""), ("JAX_PLATFORMS", "cpu")] {
            assert_eq!(std::env::var(name).unwrap(), value);
        }
        // The one that watches the parent, and this one.
        assert_eq!(std::fs::read_dir("/proc/self/task").unwrap().count(), 2);
        let link = |fd: u32| std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        assert_eq!(link(0), std::path::Path::new("/dev/null"));
        assert_eq!(link(1), link(2));
        let parents = std::fs::read_link(format!("/proc/{}/fd/2", std::os::unix::process::parent_id())).unwrap();
        assert_eq!(link(1), parents);
        Ok(())
    }
    scenario(look);
}

#[test]
fn the_standard_library_works_before_main() {
    fn look(_: ()) -> Result<()> {
        assert!(std::env::args_os().next().is_some());
        assert!(std::panic::catch_unwind(|| panic!("on purpose")).is_err());
        println!("a worker's line on what was standard output");
        let sum: u64 = (0..4).map(|i| std::thread::spawn(move || i).join().unwrap()).sum();
        assert_eq!(sum, 6);
        thread_local!(static LOCAL: std::cell::Cell<u8> = const { std::cell::Cell::new(3) });
        assert_eq!(LOCAL.get(), 3);
        let output = std::process::Command::new("/bin/echo").arg("hi").output().unwrap();
        assert_eq!(output.stdout, b"hi\n");
        assert!(std::net::ToSocketAddrs::to_socket_addrs(&("127.0.0.1", 1)).is_ok());
        assert!(std::time::SystemTime::now().elapsed().is_ok());
        Ok(())
    }
    scenario(look);
}

#[test]
fn usage_is_that_of_the_worker() {
    fn hoard(_: ()) -> Result<Vec<u8>> {
        // Time of this thread: on a busy machine, 50 ms by the clock may be less than that.
        let begun = crate::cx::clock::thread_cpu();
        while crate::cx::clock::thread_cpu() - begun < Duration::from_millis(50) {}
        Ok(vec![1; 64 << 20])
    }
    fn hold(hoard: Vec<u8>, session: Session) -> Result<()> {
        let build_ns = session.built_in.as_nanos() as u64;
        session.send(FromWorker::Ready(Ready { build_ns }))?;
        while session.recv()?.is_some() {}
        drop(hoard);
        Ok(())
    }
    let (worker, events) = launch(hoard, (), hold);
    assert!(matches!(next_message(&events), FromWorker::Ready(ready) if ready.build_ns > 50_000_000));
    assert_eq!(worker.number, 7);
    let memory = worker.memory().unwrap();
    assert!(memory.anonymous >= 64 << 20 && memory.anonymous < 128 << 20, "{memory:?}");
    assert!(memory.data >= 64 << 20);
    assert!(worker.anonymous_share().unwrap() >= 64 << 20);
    assert!(worker.cpu_time().unwrap() >= Duration::from_millis(20));
    worker.kill();
    assert!(matches!(next(&events), What::Exited(_)));
    assert_eq!((worker.memory(), worker.cpu_time(), worker.anonymous_share()), (None, None, None));
}

#[test]
fn starting_and_a_round_trip_are_timed() {
    let program = Program::new(adder, &0, echo).unwrap();
    let mut starts: Vec<_> = (0..20)
        .map(|_| {
            let (tell, events) = unbounded();
            let begin = Instant::now();
            let worker = start(7, &program, &Options::default(), &tell).unwrap();
            let started = begin.elapsed();
            assert!(matches!(next_message(&events), FromWorker::Ready(_)));
            let ready = begin.elapsed();
            drop(worker);
            (started, ready, begin.elapsed() - ready)
        })
        .collect();
    starts.sort();
    let (worker, events) = echoing(0);
    let mut trips: Vec<_> = (0..2000)
        .map(|id| {
            let begin = Instant::now();
            assert_echoes(&worker, &events, id, 0);
            begin.elapsed()
        })
        .collect();
    trips.sort();
    let begin = Instant::now();
    for first in (0..5000).step_by(50) {
        (first..first + 50).for_each(|id| worker.send(&task(id)).unwrap());
        (0..50).for_each(|_| drop(next_message(&events)));
    }
    let each = begin.elapsed() / 5000;
    let (started, ready, end) = starts[starts.len() / 2];
    println!("started {started:?}, ready {ready:?}, ended {end:?}; round trip {:?}, {each:?} each of 50", trips[1000]);
}

/// Says on how many texts the engines were compared for a file that nobody but these tests loads.
#[cfg(feature = "text")]
fn compared(file: Vec<u8>) -> Result<String> {
    let tokenizer = crate::text::Tokenizer::from_bytes("file", &file)?;
    Ok(format!("{:?}", tokenizer.engine_report().reason))
}

#[cfg(feature = "text")]
#[test]
fn a_worker_knows_what_its_parent_found_out_of_a_tokenizer() {
    let file = crate::text::known_tests::file(3);
    crate::text::known_tests::believe(&file, 12_345).unwrap();
    let (_worker, events) = launch(compared, file, say);
    let text = "Checked { texts: 12345 }";
    let expected = done(text.len() as u64, xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
    assert_eq!(next_message(&events), FromWorker::Done(expected));
}
