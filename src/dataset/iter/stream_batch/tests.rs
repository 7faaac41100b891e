use crate::{IterDatasetExt, MapDatasetExt};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::checkpoint::Checkpoint;
use crate::dataset::iter::{FilterThresholds, laws};
use crate::dataset::map::Range;
use crate::dataset::{Node, Role};
use crate::element::Array;
use crate::exec::Executor;
use crate::report::Place;
use crate::{Error, ErrorKind, Load};

/// Indices of bad elements and of missing elements.
#[derive(Clone, Debug, Default)]
struct Faults {
    errors: BTreeSet<i64>,
    /// Dropped by a stage that reports that it drops nothing.
    holes: BTreeSet<i64>,
}

/// A stage that drops elements, and reports that it drops none.
struct Liar(Range, Faults);

impl Stage for Liar {
    fn node(&self) -> Node<'_> {
        Node::new("liar", Role::Elementwise)
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.0]
    }
}

impl MapDataset for Liar {
    type Item = i64;
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<i64>> {
        match self.0.get(index, cx)? {
            Some(x) if self.1.errors.contains(&x) => Err(Error::data(format!("{x} is bad"))),
            other => Ok(other.filter(|x| !self.1.holes.contains(x))),
        }
    }
}

fn stream(len: i64, faults: &Faults) -> Stream<Liar> {
    Liar(Range::new(0, len), faults.clone()).to_iter()
}

/// Runs a pass. Returns up to `most` results, errors included, each with the state after it.
fn pass<I: DatasetIterator>(iter: &mut I, run: &Runtime, most: usize) -> Vec<(String, I::State)>
where
    I::Item: std::fmt::Debug,
{
    let (mut cx, mut seen) = (run.cx(), Vec::new());
    while seen.len() < most {
        let next = iter.next(&mut cx);
        let end = matches!(next, Ok(None));
        seen.push((format!("{next:?}"), iter.state()));
        if end {
            break;
        }
    }
    seen
}

fn threads(n: usize) -> Runtime {
    Runtime::new(Executor::Threads(n), None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Compares with the batch of an arbitrary stream: for any errors, any executor and any resume position.
    #[test]
    fn it_is_the_batch_of_the_stream(
        len in 0i64..2500,
        size in 1usize..40,
        drop in any::<bool>(),
        errors in btree_set(0i64..2500, 0..6),
        holes in btree_set(0i64..2500, 0..4),
        skip in any::<bool>(),
        raise in prop::option::of(prop_oneof![Just(0.001), Just(0.003)]),
        picks in vec(any::<prop::sample::Index>(), 3),
    ) {
        let faults = Faults { errors, holes };
        let remainder = if drop { Remainder::Drop } else { Remainder::Keep };
        let bad = if skip { BadRecords::Skip { limit: Some(3), consecutive: None } } else { BadRecords::Error };
        let border = || {
            let thresholds = FilterThresholds { warn: None, raise };
            stream(len, &faults).on_bad_record(bad).filter_thresholds(thresholds)
        };
        let naive = IterDatasetExt::batch_with(border(), size, remainder);
        let inline = Runtime::inline();
        let expected = pass(&mut naive.iter(&inline).unwrap(), &inline, usize::MAX);
        let ours = border().batch_with(size, remainder);
        prop_assert_eq!((&ours as &dyn Stage).lines(), (&naive as &dyn Stage).lines());
        for run in [Runtime::inline(), threads(1), threads(3)] {
            prop_assert_eq!(&pass(&mut ours.iter(&run).unwrap(), &run, usize::MAX), &expected);
            for pick in &picks {
                let at = pick.index(expected.len());
                let mut resumed = ours.iter(&run).unwrap();
                // Elements that an error left in the unfinished batch are read again, and so is the error.
                resumed.restore(expected[at].1, &mut run.cx()).unwrap();
                let mut again = naive.iter(&inline).unwrap();
                again.restore(expected[at].1, &mut inline.cx()).unwrap();
                prop_assert_eq!(resumed.state(), again.state());
                prop_assert_eq!(pass(&mut resumed, &run, 30), pass(&mut again, &inline, 30));
            }
        }
    }
}

#[test]
fn it_keeps_the_laws() {
    for remainder in [Remainder::Keep, Remainder::Drop] {
        for (len, size) in [(0, 3), (1, 3), (3, 3), (700, 3), (701, 7), (2000, 1), (100, 101), (5000, 2000)] {
            let naive = IterDatasetExt::batch_with(Range::new(0, len).to_iter(), size, remainder).collect().unwrap();
            assert_eq!(laws::check(&Range::new(0, len).to_iter().batch_with(size, remainder)), naive);
        }
    }
    let padded = laws::check(&Range::new(0, 1000).to_iter().batch_padded(16));
    assert_eq!((padded[62].real, padded[62].batch.len()), (8, 16));
    let filtered = Range::new(0, 1000).to_iter().filter(|x| x % 3 != 1).batch(8);
    assert_eq!(laws::check(&filtered).concat(), (0..1000).filter(|x| x % 3 != 1).collect::<Vec<_>>());
}

#[test]
fn elements_are_stacked_alike() {
    let element = |x: i64| Element::new().with("x", Array::from_vec(vec![x; 5])).with("t", &*x.to_string());
    let ds = || Range::new(0, 999).map(element).to_iter();
    assert_eq!(laws::check(&ds().batch(8)), IterDatasetExt::batch(ds(), 8).collect().unwrap());
    assert_eq!(laws::check(&ds().batch_masked(8)), IterDatasetExt::batch_masked(ds(), 8).collect().unwrap());
    let ragged = Range::new(0, 999).map(|x| Element::new().with("x", Array::from_vec(vec![x; 1 + x as usize / 700])));
    let mut loader = ragged.to_iter().batch(8).loader().threads(2).build().unwrap();
    let error = loader.by_ref().find_map(Result::err).unwrap();
    assert!(error.to_string().starts_with("stage 3 batch: cannot stack 8 elements"), "{error}");
    assert_eq!(loader.state().unwrap().state["next_index"], 696);
}

/// Returns the names of the threads that made batches.
fn makers(len: i64, pause: Duration) -> BTreeSet<String> {
    let names = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = names.clone();
    let make = move |items: Vec<i64>| {
        seen.lock().unwrap().insert(std::thread::current().name().unwrap_or_default().to_owned());
        Ok(items.len())
    };
    let slow = move |x| {
        // A sleep takes at least the given time.
        std::thread::sleep(pause);
        x
    };
    let ds = Range::new(0, len).map(slow).to_iter().batch_with_fn(8, Remainder::Keep, make);
    let sizes: Result<Vec<usize>> = ds.loader().threads(2).build().unwrap().collect();
    assert_eq!(sizes.unwrap().iter().sum::<usize>(), len as usize);
    std::mem::take(&mut names.lock().unwrap())
}

#[test]
fn threads_make_the_batches_unless_a_batch_takes_long() {
    let makers_of_cheap = makers(50_000, Duration::ZERO);
    assert!(makers_of_cheap.iter().any(|name| name == "gristmill-0" || name == "gristmill-1"), "{makers_of_cheap:?}");
    // 8 sleeps of 4 ms exceed the time limit of a batch on any machine, so the elements come one by one.
    assert_eq!(makers(64, Duration::from_millis(4)), BTreeSet::from(["gristmill-suffix".to_owned()]));
}

#[test]
fn the_report_has_the_batch_where_it_ran() {
    let spin = |items: Vec<i64>| {
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_micros(200) {}
        Ok(items.len())
    };
    let mut loader =
        Range::new(0, 8000).to_iter().batch_with_fn(8, Remainder::Keep, spin).loader().threads(2).build().unwrap();
    assert_eq!(loader.by_ref().count(), 1000);
    let report = loader.report();
    let batch = &report.stages[2];
    assert_eq!((batch.name.as_str(), batch.place, batch.elements), ("batch", Place::Threads, 1000));
    assert!(batch.work.self_s > 0.19, "{}", batch.work.self_s);
    assert_eq!((report.stages[1].name.as_str(), report.stages[1].elements), ("to_iter", 8000));
    let mut alone = Range::new(0, 800).to_iter().batch_with_fn(8, Remainder::Keep, spin).loader().build().unwrap();
    assert_eq!(alone.by_ref().count(), 100);
    assert_eq!(alone.report().stages[2].place, Place::Consumer);
}

#[test]
fn a_panic_of_the_batchs_function_is_an_error_of_the_batch() {
    let make = |items: Vec<i64>| if items.contains(&40_000) { panic!("boom") } else { Ok(items.len()) };
    let ds = Range::new(0, 50_000).to_iter().batch_with_fn(8, Remainder::Keep, make);
    let (run, mut cx) = (threads(2), Cx::default());
    let mut iter = ds.iter(&run).unwrap();
    let mut results = std::iter::from_fn(|| iter.next(&mut cx).transpose());
    let error = results.by_ref().find_map(Result::err).unwrap();
    assert_eq!((error.kind(), error.message()), (ErrorKind::User, "a function panicked: boom"));
    assert_eq!(results.filter_map(Result::ok).sum::<usize>(), 50_000 - 40_008);
}

#[test]
fn checkpoints_are_those_of_any_other_batch() {
    let ds = || Range::new(0, 1000).to_iter();
    let (mut ours, mut theirs) =
        (ds().batch(7).loader().threads(2).build().unwrap(), ds().boxed().batch(7).loader().build().unwrap());
    for _ in 0..50 {
        assert_eq!(ours.next().unwrap().unwrap(), theirs.next().unwrap().unwrap());
    }
    let text = ours.state().unwrap().to_json();
    assert_eq!(text, theirs.state().unwrap().to_json());
    let state = || Checkpoint::from_json(&text).unwrap();
    let ours = ds().batch(7).loader().threads(2).resume(state()).build().unwrap();
    let theirs = ds().boxed().batch(7).loader().resume(state()).build().unwrap();
    assert_eq!(ours.collect::<Result<Vec<_>>>().unwrap(), theirs.collect::<Result<Vec<_>>>().unwrap());
}
