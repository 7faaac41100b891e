//! Pipelines of every shape: worker processes yield what the same pipeline yields inline, wherever it is resumed.
#![cfg(all(feature = "workers", target_os = "linux"))]

use gristmill::dataset::AtEnd;
use gristmill::dataset::iter::{ZipLength, interleave, interleave_from, lanes, lanes_from, mix, zip_all};
use gristmill::dataset::map::Range;
use gristmill::rng::Schedule;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{
    Array, BoxIter, Checkpoint, Element, Error, ErrorKind, IterDataset, IterDatasetExt, MapDatasetExt, Result, Value,
};

use crate::tight::tight;

const MIB: u64 = 1 << 20;

fn options(workers: usize) -> MpOptions {
    MpOptions::auto().workers(workers).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(300 * MIB)
}

/// A stream with a border of its own, some of whose elements are dropped.
fn stream(start: i64, len: i64) -> BoxIter<i64> {
    Range::new(start, start + len).shuffle(start as u32).filter(|x| x % 7 != 3).map(|x| x * 3).to_iter().boxed()
}

const SHAPES: [&str; 14] = [
    "mix",
    "mix that changes",
    "mix by tokens",
    "zip",
    "zip all",
    "interleave",
    "one by one",
    "interleave from",
    "repeat",
    "fan",
    "lanes",
    "lanes from",
    "lanes among others",
    "nested",
];

fn shape(name: String) -> Result<BoxIter<i64>> {
    let three = || [stream(0, 120), stream(1000, 90), stream(2000, 150)];
    Ok(match name.as_str() {
        "mix" => mix(three()).weights([3.0, 1.0, 2.0]).boxed(),
        "mix that changes" => {
            let schedule = Schedule::new([1.0, 0.0, 1.0]).then(60, [1.0, 3.0, 0.0]).over(50);
            mix(three()).schedule(schedule).at_end(AtEnd::Repeat).budget(0, 130).limit(400).boxed()
        }
        "mix by tokens" => {
            let text = |x: i64| {
                Element::new().with("x", Array::scalar(x)).with("tokens", Array::from_vec(vec![0u8; x as usize % 9]))
            };
            let mixed = mix(three().map(|ds| ds.map(text))).weights([3.0, 1.0, 1.0]).by_tokens("tokens");
            mixed.at_end(AtEnd::Redistribute).try_map(|e| Ok(e.array("x")?.as_slice::<i64>()?[0])).boxed()
        }
        "zip" => stream(0, 90).zip_with(stream(500, 200), ZipLength::Shortest).map(|(a, b)| a * 1000 + b).boxed(),
        "zip all" => zip_all(three(), ZipLength::Shortest).map(|all| all.iter().sum()).boxed(),
        "interleave" => interleave(three(), 2).boxed(),
        "one by one" => interleave(three(), 1).boxed(),
        // Streams that are made while it runs are evaluated in the parent.
        "interleave from" => interleave_from(Range::new(0, 5).map(|k| stream(100 * k, 20 + k)), 2).boxed(),
        "repeat" => stream(0, 50).repeat(4).boxed(),
        "fan" => {
            let fan = Range::new(0, 150).to_iter().flat_map(|x| (0..x % 4).map(|i| 10 * x + i).collect::<Vec<_>>());
            fan.filter(|x| x % 5 != 0).boxed()
        }
        "lanes" => lanes(three().map(|ds| ds.window_shuffle(9, 1)), 2).boxed(),
        "lanes from" => lanes_from(Range::new(0, 7).map(|k| stream(100 * k, 20 + k).repeat(2)), 3).boxed(),
        "lanes among others" => {
            let inner = || lanes(three(), 2).window_shuffle(5, 3);
            mix([lanes([inner(), inner()], 2).repeat(2).boxed(), stream(7000, 60)]).weights([4.0, 1.0]).boxed()
        }
        _ => mix([interleave(three(), 3).boxed(), stream(7000, 60).repeat(2).boxed()]).window_shuffle(20, 5).boxed(),
    })
}

#[test]
fn every_shape_yields_what_it_yields_inline() {
    for name in SHAPES {
        let expected = shape(name.into()).unwrap().collect().unwrap();
        assert!(expected.len() > 60, "{name}");
        for workers in [1, 2] {
            let loader = mp_prefetch(shape, name.to_owned(), options(workers)).unwrap().build().unwrap();
            assert_eq!(loader.collect::<Result<Vec<_>>>().unwrap(), expected, "{name}, {workers} workers");
        }
    }
}

/// Chains of resumes, each into another number of workers.
#[test]
fn every_shape_resumes_anywhere() {
    for (n, name) in SHAPES.into_iter().enumerate() {
        let expected = shape(name.into()).unwrap().collect().unwrap();
        let (mut seen, mut checkpoint) = (Vec::new(), None::<Checkpoint>);
        for step in 0.. {
            let mut builder = mp_prefetch(shape, name.to_owned(), options((step + n) % 3)).unwrap();
            if let Some(checkpoint) = checkpoint.take() {
                builder = builder.resume(checkpoint);
            }
            let mut loader = builder.build().unwrap();
            let before = seen.len();
            let most = [17, 40, 1, 0, 55, 1000][step];
            seen.extend(loader.by_ref().take(most).map(Result::unwrap));
            if seen.len() < before + most {
                break;
            }
            checkpoint = Some(Checkpoint::from_json(&loader.state().unwrap().to_json()).unwrap());
        }
        assert_eq!(seen, expected, "{name}");
    }
}

fn in_worker() -> bool {
    std::thread::current().name() == Some("gristmill-serve")
}

fn moody(panics: bool) -> Result<impl IterDataset<Item = i64>> {
    match (in_worker(), panics) {
        (true, true) => panic!("no mood for it"),
        (true, false) => Err(Error::config("not in this process").help("elsewhere")),
        (false, _) => Ok(Range::new(0, 10).to_iter()),
    }
}

#[test]
fn a_factory_that_fails_in_the_worker_alone_ends_the_run() {
    for (panics, words) in [(false, "not in this process"), (true, "no mood for it")] {
        let mut loader = mp_prefetch(moody, panics, options(2)).unwrap().build().unwrap();
        let error = loader.next().unwrap().unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(loader.next().is_none());
        if !panics {
            assert_eq!((error.kind(), error.help_text()), (ErrorKind::Config, Some("elsewhere")));
        }
    }
}

/// An element in so many others that no chunk can hold it.
fn deep(at: i64) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| {
        let flat = Element::new().with("x", Array::scalar(x));
        let levels = if x == at { 1000 } else { 3 };
        (0..levels).fold(flat, |inner, _| Element::new().with("inner", Value::from(inner)))
    };
    Ok(Range::new(0, 100).map(element).to_iter())
}

#[test]
fn an_element_that_cannot_be_written_is_an_error_in_its_place() {
    let loader = mp_prefetch(deep, 60, options(1)).unwrap().build().unwrap();
    let all: Vec<_> = loader.collect();
    assert_eq!(all.len(), 61);
    assert!(all[..60].iter().all(Result::is_ok));
    let error = all[60].as_ref().unwrap_err().to_string();
    assert!(error.contains("128 nested lists and trees"), "{error}");
}

/// Elements of all sizes around that of an extent: each ends one early, and is asked for again.
fn uneven(seed: u64) -> Result<impl IterDataset<Item = Vec<u8>>> {
    let bytes = move |x: i64| {
        let mixed = (x as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        vec![x as u8; [10, 3_000, 30_000, 70_000, 200_000][mixed as usize % 5] + (mixed % 977) as usize]
    };
    Ok(Range::new(0, 300).map(bytes).to_iter())
}

#[test]
fn no_extent_is_too_small() {
    let expected = uneven(3).unwrap().collect().unwrap();
    for (slab_mib, _, options) in tight() {
        let mut loader = mp_prefetch(uneven, 3, options).unwrap().build().unwrap();
        assert!(loader.by_ref().collect::<Result<Vec<_>>>().unwrap() == expected, "{slab_mib} MiB");
        // What did not fit was not evaluated twice, or hardly ever.
        let evaluated = loader.report().stages[1].elements;
        assert!((300..330).contains(&evaluated), "{evaluated} evaluations of 300 elements, {slab_mib} MiB");
    }
}
