//! Streams without random access, read as lanes: whoever reads them, the data is the same.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill::dataset::iter::lanes;
use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, Poison, mp_prefetch};
use gristmill::{
    Array, BoxIter, Checkpoint, Element, Error, ErrorKind, IterDataset, IterDatasetExt, Load, LoaderBuilder,
    MapDatasetExt, Result, Value,
};
use serde::{Deserialize, Serialize};

use crate::tight::tight;

const MIB: u64 = 1 << 20;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Config {
    datasets: i64,
    len: i64,
    lanes: usize,
    /// Bytes of every 50th element.
    large: usize,
    /// The element that is bad.
    bad: Option<i64>,
    /// The element that kills its worker, and how.
    deadly: Option<(i64, Death)>,
    /// Where it is noted that it has done so; without it, it kills each time.
    once: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Death {
    Abort,
    Loop,
    Panic,
}

fn small() -> Config {
    Config { datasets: 7, len: 300, lanes: 4, large: 3, ..Config::default() }
}

impl Config {
    /// What becomes of a number.
    fn element(&self, x: i64) -> Result<Element> {
        if self.bad == Some(x) {
            return Err(Error::data("a bad record"));
        }
        if let Some((at, death)) = self.deadly
            && at == x
            && self.once.as_ref().is_none_or(|dir| std::fs::File::create_new(dir.join(x.to_string())).is_ok())
        {
            match death {
                Death::Abort => std::process::abort(),
                Death::Panic => panic!("boom"),
                Death::Loop => loop {
                    std::hint::spin_loop();
                },
            }
        }
        let len = if x % 50 == 49 { self.large } else { (x % 13) as usize };
        Ok(Element::new().with("x", Array::from_vec(vec![x as u8; len])).with("t", &*format!("element {x}")))
    }
}

/// Streams that have to be read in order.
fn pipeline(config: Config) -> Result<BoxIter<Element>> {
    let dataset = |k: i64| {
        let (config, start) = (config.clone(), k * config.len);
        // None of the same length.
        let numbers = Range::new(start, start + config.len - 10 * k).to_iter().boxed();
        let counted = numbers.try_map_with_index(move |i, x| match x - start == i as i64 {
            true => Ok(x),
            false => Err(Error::data(format!("element {i} of dataset {k} is {x}"))),
        });
        counted.try_map(move |x| config.element(x)).boxed()
    };
    Ok(lanes((0..config.datasets).map(dataset), config.lanes).boxed())
}

fn options(workers: usize) -> MpOptions {
    let options = MpOptions::auto().workers(workers).threads_per_worker(2);
    options.worker_heap(64 * MIB).ram_budget(400 * MIB).deadline(None)
}

/// All elements up to the end or the first error.
fn run(
    builder: LoaderBuilder<impl IterDataset<Item = Element> + 'static>,
) -> Vec<std::result::Result<Element, String>> {
    builder.build().unwrap().map(|e| e.map_err(|e| e.to_string())).collect()
}

fn inline(config: &Config) -> Vec<std::result::Result<Element, String>> {
    run(pipeline(config.clone()).unwrap().loader())
}

fn on_workers(config: &Config, options: MpOptions) -> Vec<std::result::Result<Element, String>> {
    run(mp_prefetch(pipeline, config.clone(), options).unwrap())
}

#[test]
fn every_executor_gives_the_inline_stream() {
    for config in [
        small(),
        Config { datasets: 3, lanes: 1, ..small() },
        Config { datasets: 40, len: 410, lanes: 37, ..small() },
        Config { lanes: 9, large: 3 * MIB as usize, ..small() },
        Config { bad: Some(777), ..small() },
        Config { datasets: 0, ..small() },
    ] {
        let expected = inline(&config);
        assert_eq!(expected.iter().any(Result::is_err), config.bad.is_some());
        assert!(run(pipeline(config.clone()).unwrap().loader().threads(3)) == expected, "{config:?} on threads");
        for workers in [0, 1, 2, 5] {
            let got = on_workers(&config, options(workers));
            assert!(got == expected, "{config:?} in {workers} workers: {} of {}", got.len(), expected.len());
        }
        // Less shared memory than all lanes would like to have.
        let tight = MpOptions::auto().workers(1).worker_heap(64 * MIB).ram_budget((64 + 2 + 16) * MIB);
        assert!(on_workers(&config, tight) == expected, "{config:?} in little memory");
    }
}

/// Elements of all sizes around that of an extent: each ends one early, and is asked for again.
fn uneven(seed: u64) -> Result<BoxIter<Vec<u8>>> {
    let bytes = move |x: i64| {
        let mixed = (x as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        vec![x as u8; [10, 3_000, 30_000, 70_000, 200_000][mixed as usize % 5] + (mixed % 977) as usize]
    };
    Ok(lanes((0..4).map(|k| Range::new(100 * k, 100 * k + 100).to_iter().limit(90 + k as u64).map(bytes)), 3).boxed())
}

#[test]
fn no_extent_is_too_small() {
    let expected = uneven(3).unwrap().collect().unwrap();
    for (slab_mib, workers, options) in tight() {
        let mut loader = mp_prefetch(uneven, 3, options).unwrap().build().unwrap();
        assert!(loader.by_ref().collect::<Result<Vec<_>>>().unwrap() == expected, "{slab_mib} MiB");
        // What did not fit was not read twice, nor what is before it.
        let report = loader.report();
        let maps = report.stages.iter().filter(|stage| stage.name == "map");
        let read: u64 = maps.map(|stage| stage.elements).sum();
        assert!(workers > 1 || (366..400).contains(&read), "{read} of 366 elements read, {slab_mib} MiB\n{report}");
    }
}

/// An element in so many others that no chunk can hold it.
fn deep(at: i64) -> Result<BoxIter<Element>> {
    let element = move |x: i64| {
        let flat = Element::new().with("x", Array::scalar(x));
        let levels = if x == at { 1000 } else { 3 };
        (0..levels).fold(flat, |inner, _| Element::new().with("inner", Value::from(inner)))
    };
    Ok(lanes((0..2).map(|k| Range::new(100 * k, 100 * k + 100).to_iter().limit(90).map(element)), 2).boxed())
}

#[test]
fn an_element_that_cannot_be_written_is_an_error_in_its_place() {
    let mut all = run(mp_prefetch(deep, 160, options(1)).unwrap());
    assert_eq!(all.len(), 122);
    let error = all.pop().unwrap().unwrap_err();
    assert!(all.iter().all(Result::is_ok));
    assert!(error.contains("128 nested lists and trees"), "{error}");
}

/// Elements that cannot leave a worker.
fn stuck(_: ()) -> Result<BoxIter<std::time::Instant>> {
    let now = |_| std::time::Instant::now();
    Ok(lanes([Range::new(0, 9).to_iter().limit(5).map(now)], 1).boxed())
}

#[test]
fn elements_that_only_the_program_knows_stay_where_they_are() {
    let Err(error) = mp_prefetch(stuck, (), options(1)).unwrap().build() else { panic!("no error") };
    assert!(error.to_string().contains("Instant cannot leave a worker process"), "{error}");
    assert_eq!(stuck(()).unwrap().loader().threads(2).build().unwrap().count(), 5);
}

#[test]
fn a_checkpoint_restores_into_any_shape() {
    let config = Config { datasets: 5, len: 90, lanes: 3, large: 3, ..Config::default() };
    let expected: Vec<Element> = inline(&config).into_iter().map(Result::unwrap).collect();
    let (mut seen, mut checkpoint, mut states) = (Vec::new(), None::<Checkpoint>, Vec::new());
    for (hop, workers) in [2, 0, 1, 5, 9, 1].into_iter().cycle().enumerate() {
        let mut builder = match workers {
            9 => pipeline(config.clone()).unwrap().loader(),
            workers => mp_prefetch(pipeline, config.clone(), options(workers)).unwrap(),
        };
        if let Some(checkpoint) = checkpoint.take() {
            builder = builder.resume(checkpoint);
        }
        let mut loader = builder.build().unwrap();
        let before = seen.len();
        seen.extend(loader.by_ref().take(23 + hop % 3).map(Result::unwrap));
        let json = loader.state().unwrap().to_json();
        states.push((seen.len(), json.clone()));
        checkpoint = Some(Checkpoint::from_json(&json).unwrap());
        if seen.len() == before {
            break;
        }
    }
    assert!(seen == expected);
    // It is the state of the position, not of whoever was there.
    let mut loader = pipeline(config).unwrap().loader().build().unwrap();
    for (len, state) in states.iter().take(states.len() - 1) {
        while loader.delivered() < *len as u64 {
            loader.next().unwrap().unwrap();
        }
        assert_eq!(&loader.state().unwrap().to_json(), state, "after {len}");
    }
}

#[test]
fn a_death_inside_a_lane_changes_nothing_or_is_named() {
    let expected = inline(&small());
    for death in [Death::Abort, Death::Loop] {
        let dir = tempfile::tempdir().unwrap();
        let once = Config { deadly: Some((1310, death)), once: Some(dir.path().to_owned()), ..small() };
        // On a busy machine other elements may be late, too.
        let options = match death {
            Death::Loop => options(2).deadline(Duration::from_secs(1)).retries(20),
            _ => options(2),
        };
        assert!(on_workers(&once, options) == expected, "{death:?}");
    }
    let deadly = Config { deadly: Some((1310, Death::Abort)), ..small() };
    for poison in [Poison::Error, Poison::Skip] {
        let mut loader = mp_prefetch(pipeline, deadly.clone(), options(2).on_poison(poison)).unwrap().build().unwrap();
        let mut seen = 0;
        let error = loader.by_ref().inspect(|e| seen += usize::from(e.is_ok())).find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::Worker);
        let text = |e: &Element| e.text("t").unwrap().to_owned();
        let place = expected.iter().position(|e| text(e.as_ref().unwrap()) == "element 1310").unwrap();
        assert_eq!(seen, place);
        // Dataset 4 begins at 1200, and lane 0 reads 0 first, of 300.
        let in_lane = expected[..place].iter().filter(|e| {
            let x: i64 = text(e.as_ref().unwrap())[8..].parse().unwrap();
            [0, 4].contains(&(x / 300))
        });
        let what = format!("element {}: 3 workers died over this element of lane 0; the last: ", in_lane.count());
        assert!(error.to_string().starts_with(&what), "{error}");
        assert!(error.help_text().unwrap().contains("inside a lane cannot be skipped"));
    }
    let panicking = Config { deadly: Some((1310, Death::Panic)), ..small() };
    let error = on_workers(&panicking, options(2)).pop().unwrap().unwrap_err();
    assert!(error.ends_with("a function panicked: boom"), "{error}");
}

/// Kills from outside, at moments that have nothing to do with what the worker is at.
#[test]
fn kills_at_any_moment_change_nothing() {
    let config = Config { datasets: 12, len: 700, lanes: 6, large: 1000, ..Config::default() };
    let (expected, done) = (inline(&config), AtomicBool::new(false));
    let mut killed = 0;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut passes = 0;
            while !done.load(Ordering::Relaxed) || passes == 0 {
                let loader = mp_prefetch(pipeline, config.clone(), options(2).retries(20)).unwrap().build().unwrap();
                let mut got = Vec::new();
                for element in loader {
                    got.push(element.map_err(|e| e.to_string()));
                    if got.len() % 64 == 0 {
                        // Slow enough that workers are killed in the middle of a pass.
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
                assert!(got == expected, "pass {passes}");
                passes += 1;
            }
        });
        let mut random = 1u64;
        while killed < 25 && !reader.is_finished() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Kills are spread at random over what workers do.
            std::thread::sleep(Duration::from_micros(random >> 33 & 0x7fff));
            let pids = workers();
            if let Some(pid) = pids.get(random as usize % pids.len().max(1)) {
                let sent = std::process::Command::new("kill").args(["-9", &pid.to_string()]).output().unwrap();
                killed += usize::from(sent.status.success());
            }
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert!(killed >= 25);
}

/// Pids of the children of this process that are workers.
fn workers() -> Vec<u32> {
    let me = std::process::id();
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
        fields.next() != Some("Z") && fields.next().and_then(|p| p.parse().ok()) == Some(me)
    })
    .collect()
}

#[cfg(feature = "compress")]
mod compressed {
    use std::io::Write;

    use gristmill::source::StreamOptions;

    use super::*;

    /// Lines of files that are read as lanes, each made an element inside.
    fn lines(dir: PathBuf) -> Result<BoxIter<Element>> {
        let file = |k: usize| {
            let name = format!("{k}.txt.{}", if k.is_multiple_of(2) { "gz" } else { "zst" });
            let lines = StreamOptions::new().lines(dir.join(name))?;
            Ok(lines.map(|line| Element::new().with("t", line.as_str()).with("n", Array::scalar(line.len() as i64))))
        };
        Ok(lanes((0..7).map(file).collect::<Result<Vec<_>>>()?, 3).boxed())
    }

    fn write(dir: &std::path::Path, cut: bool) {
        for k in 0..7usize {
            let text: String =
                (0..150 + 60 * k).map(|n| format!("file {k}, line {n}{}\n", "!".repeat(n % 40))).collect();
            if !k.is_multiple_of(2) {
                std::fs::write(dir.join(format!("{k}.txt.zst")), zstd::encode_all(text.as_bytes(), 1).unwrap())
                    .unwrap();
                continue;
            }
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(3));
            encoder.write_all(text.as_bytes()).unwrap();
            let mut bytes = encoder.finish().unwrap();
            if cut && k == 4 {
                bytes.truncate(bytes.len() / 2);
            }
            std::fs::write(dir.join(format!("{k}.txt.gz")), bytes).unwrap();
        }
    }

    #[test]
    fn compressed_files_are_read_by_workers_and_resumed() {
        let dir = tempfile::tempdir().unwrap();
        for cut in [false, true] {
            write(dir.path(), cut);
            let lines = |workers| mp_prefetch(lines, dir.path().to_owned(), options(workers)).unwrap();
            let expected = run(super::compressed::lines(dir.path().to_owned()).unwrap().loader());
            assert_eq!(expected.iter().any(Result::is_err), cut);
            assert!(expected.len() > if cut { 500 } else { 2300 - 1 }, "{}", expected.len());
            for workers in [0, 1, 2] {
                assert!(run(lines(workers)) == expected, "{workers} workers, cut: {cut}");
            }
            let (mut seen, mut checkpoint) = (0, None::<Checkpoint>);
            for hop in [70, 1, 200, 130] {
                let mut builder = lines(hop % 3);
                if let Some(checkpoint) = checkpoint.take() {
                    builder = builder.resume(checkpoint);
                }
                let mut loader = builder.build().unwrap();
                let got: Vec<_> = loader.by_ref().take(hop).map(|e| e.map_err(|e| e.to_string())).collect();
                assert!(got == expected[seen..seen + hop], "{seen}, {hop}");
                seen += hop;
                checkpoint = Some(loader.state().unwrap());
            }
        }
    }
}
