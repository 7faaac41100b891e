//! Streams that one process reads: workers apply the functions of their stages, and the data is the same.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gristmill::dataset::{Node, Role};
use gristmill::rng::ElementRng;
use gristmill::workers::{MpOptions, Poison, mp_prefetch};
use gristmill::{
    Array, BoxIter, Checkpoint, Cx, DatasetIterator, Element, Error, IterDataset, IterDatasetExt, Load, LoaderBuilder,
    Result, Runtime, Stage,
};
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Config {
    len: u64,
    /// Bytes that every 50th element becomes.
    large: usize,
    /// The element that is bad.
    bad: Option<u64>,
    /// The element that kills its worker.
    deadly: Option<u64>,
    /// The folder where it is noted that it has done so; without it, it kills each time.
    once: Option<PathBuf>,
}

/// Numbers in order, without random access.
#[derive(Clone, Debug)]
struct Numbers(u64);

impl Stage for Numbers {
    fn node(&self) -> Node<'_> {
        Node::new("numbers", Role::Source)
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }
}

impl IterDataset for Numbers {
    type Item = Element;
    type Iter = Pass;

    fn iter(&self, _: &Runtime) -> Result<Pass> {
        Ok(Pass { next: 0, len: self.0 })
    }
}

struct Pass {
    next: u64,
    len: u64,
}

impl DatasetIterator for Pass {
    type Item = Element;
    type State = u64;

    fn next(&mut self, _: &mut Cx) -> Result<Option<Element>> {
        let x = self.next;
        self.next += u64::from(x < self.len);
        Ok((x < self.len).then(|| Element::new().with("x", Array::scalar(x))))
    }
    fn state(&self) -> u64 {
        self.next
    }
    fn restore(&mut self, state: u64, _: &mut Cx) -> Result<()> {
        self.next = state;
        Ok(())
    }
}

fn number(element: &Element) -> Result<u64> {
    element.array("x")?.as_slice::<u64>().map(|x| x[0])
}

impl Config {
    /// What becomes of a number.
    fn element(&self, element: Element) -> Result<Element> {
        let (x, start) = (number(&element)?, Instant::now());
        // Functions that cost less are applied where the stream is read.
        while start.elapsed() < Duration::from_micros(100) {
            std::hint::spin_loop();
        }
        if self.bad == Some(x) {
            return Err(Error::data("a bad record"));
        }
        if self.deadly == Some(x)
            && self.once.as_ref().is_none_or(|dir| std::fs::File::create_new(dir.join(x.to_string())).is_ok())
        {
            std::process::abort();
        }
        let len = if x % 50 == 49 { self.large } else { (x % 13) as usize };
        let pid = Array::scalar(u64::from(std::process::id()));
        Ok(element.with("y", Array::from_vec(vec![x as u8; len])).with("pid", pid))
    }
}

fn pipeline(config: Config) -> Result<BoxIter<Element>> {
    let odd = |element: &Element| number(element).is_ok_and(|x| x % 5 != 0);
    let draw = |element: Element, rng: &mut ElementRng| element.with("draw", Array::scalar(rng.random_raw()));
    Ok(Numbers(config.len).filter(odd).random_map(7, draw).try_map(move |e| config.element(e)).boxed())
}

/// Each element of [`pipeline`] becomes up to three pieces.
fn pieces(config: Config) -> Result<BoxIter<Element>> {
    let draw = |element: Element, rng: &mut ElementRng| element.with("draw", Array::scalar(rng.random_raw()));
    let len = config.len;
    let split = move |element: Element| {
        let (count, element) = (number(&element)? % 4, config.element(element)?);
        Ok((0..count).map(move |_| element.clone()))
    };
    Ok(Numbers(len).random_map(7, draw).try_flat_map(split).boxed())
}

fn options(workers: usize) -> MpOptions {
    let options = MpOptions::auto().workers(workers).threads_per_worker(2);
    options.worker_heap(64 * MIB).ram_budget(400 * MIB).deadline(None)
}

/// Number, draw and size of an element.
type Row = (u64, u64, usize);

/// All elements, and the processes that made them; the error that ended them.
fn run(loader: LoaderBuilder<BoxIter<Element>>) -> (Vec<Row>, Vec<u64>, Option<String>) {
    let (mut all, mut pids) = (Vec::new(), Vec::new());
    for element in loader.build().unwrap() {
        match element {
            Ok(element) => {
                let of = |name| element.array(name).unwrap().as_slice::<u64>().unwrap()[0];
                all.push((of("x"), of("draw"), element.array("y").unwrap().size()));
                pids.push(of("pid"));
            }
            Err(error) => return (all, pids, Some(error.to_string())),
        }
    }
    (all, pids, None)
}

/// Makes a pipeline.
type Make = fn(Config) -> Result<BoxIter<Element>>;

fn there(config: Config, options: MpOptions) -> (Vec<Row>, Vec<u64>, Option<String>) {
    run(mp_prefetch(pipeline, config, options).unwrap())
}

#[test]
fn workers_apply_functions_to_the_elements_that_the_parent_reads() {
    let config = Config { len: 600, large: 3 << 20, ..Config::default() };
    for (make, len) in [(pipeline as Make, 480), (pieces, 900)] {
        let (expected, _, _) = run(make(config.clone()).unwrap().loader());
        assert_eq!(expected.len(), len);
        for workers in [1, 2] {
            let (all, pids, error) = run(mp_prefetch(make, config.clone(), options(workers)).unwrap());
            assert_eq!((all, error), (expected.clone(), None));
            assert!(pids.iter().all(|pid| *pid != u64::from(std::process::id())), "this process applied the function");
        }
    }
}

#[test]
fn a_state_is_that_of_one_process_at_every_element() {
    a_state_is_that_of_one_process(pipeline, (0..90).filter(|x| x % 5 != 0).collect());
    a_state_is_that_of_one_process(pieces, (0..90).flat_map(|x| vec![x; (x % 4) as usize]).collect());
}

fn a_state_is_that_of_one_process(make: Make, expected: Vec<u64>) {
    let config = Config { len: 90, large: 100, ..Config::default() };
    let ds = make(config.clone()).unwrap();
    let mut here = ds.loader().build().unwrap();
    let mut there = mp_prefetch(make, config.clone(), options(1)).unwrap().build().unwrap();
    for at in 0.. {
        let states = [here.state(), there.state()].map(|state| state.unwrap().to_json());
        assert_eq!(states[0], states[1]);
        if at % 17 == 0 {
            let resumed = mp_prefetch(make, config.clone(), options(1)).unwrap();
            let resumed = resumed.resume(Checkpoint::from_json(&states[0]).unwrap()).build().unwrap();
            let rest = resumed.map(|element| number(&element.unwrap()).unwrap()).collect::<Vec<_>>();
            assert_eq!(rest, expected[at..]);
        }
        match (here.next(), there.next()) {
            (Some(here), Some(there)) => assert_eq!(number(&here.unwrap()).unwrap(), number(&there.unwrap()).unwrap()),
            (here, there) => return assert!(here.is_none() && there.is_none(), "at {at}"),
        }
    }
}

#[test]
fn errors_and_deaths_stand_where_their_elements_do() {
    let bad = Config { len: 300, bad: Some(121), ..Config::default() };
    let (all, _, error) = there(bad, options(2));
    assert_eq!((all.len(), error.as_deref()), (96, Some("stage 3 map: a bad record")));
    let temp = tempfile::tempdir().unwrap();
    let dies = |once| Config { len: 300, deadly: Some(121), once, ..Config::default() };
    let (all, _, error) = there(dies(Some(temp.path().into())), options(2));
    assert_eq!((all.len(), error), (240, None), "another worker has the element");
    let (all, _, error) = there(dies(None), options(1).on_poison(Poison::Skip));
    assert_eq!((all.len(), error), (239, None), "{all:?}");
    assert!(!all.iter().any(|(x, ..)| *x == 121));
}
