//! Worker processes never change the data.
#![cfg(all(feature = "workers", target_os = "linux"))]

use std::path::PathBuf;

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::interleave;
use gristmill::dataset::map::Range;
use gristmill::workers::{MpOptions, crosses, mp_prefetch};
use gristmill::{
    Array, Checkpoint, Element, Error, IterDataset, IterDatasetExt, Load, MapDataset, MapDatasetExt, Result,
};

const MIB: u64 = 1 << 20;

/// Elements of all kinds and many sizes, some dropped, some bad; packed into batches after a window shuffle.
fn pipeline(len: i64) -> Result<impl IterDataset<Item = (Vec<i64>, Vec<String>)>> {
    Ok(Range::new(0, len)
        .seed(7)
        .shuffle(None)
        .filter(|x| x % 5 != 0)
        .map(|x| (x, "x".repeat((x % 97) as usize)))
        .to_iter()
        .window_shuffle(50, None)
        .batch_with(16, Remainder::Keep))
}

fn options(workers: usize) -> MpOptions {
    MpOptions::auto().workers(workers).threads_per_worker(2).worker_heap(64 * MIB).ram_budget(400 * MIB)
}

#[test]
fn any_number_of_workers_gives_the_inline_stream() {
    let expected = pipeline(5000).unwrap().collect().unwrap();
    for workers in [0, 1, 2, 5] {
        let loader = mp_prefetch(pipeline, 5000, options(workers)).unwrap().build().unwrap();
        assert_eq!(loader.collect::<Result<Vec<_>>>().unwrap(), expected, "{workers} workers");
    }
}

#[test]
fn a_checkpoint_restores_into_any_number_of_workers() {
    let expected = pipeline(5000).unwrap().collect().unwrap();
    let (mut seen, mut checkpoint) = (Vec::new(), None::<Checkpoint>);
    for workers in [2, 0, 1, 5, 1] {
        let mut builder = mp_prefetch(pipeline, 5000, options(workers)).unwrap();
        if let Some(checkpoint) = checkpoint.take() {
            builder = builder.resume(checkpoint);
        }
        let mut loader = builder.build().unwrap();
        seen.extend(loader.by_ref().take(40).map(Result::unwrap));
        checkpoint = Some(Checkpoint::from_json(&loader.state().unwrap().to_json()).unwrap());
    }
    assert_eq!(seen, expected[..200]);
}

fn elements(bytes: usize) -> Result<impl IterDataset<Item = Element>> {
    Ok(Range::new(0, 300)
        .try_map(move |x| {
            if x == 250 {
                return Err(Error::data("a bad record"));
            }
            let len = if x % 50 == 49 { bytes } else { 3 };
            Ok(Element::new().with("x", Array::from_vec(vec![x as u8; len])).with("t", "text"))
        })
        .to_iter())
}

/// Elements that outgrow the extents they are given, and an error in its place.
#[test]
fn large_elements_and_errors_come_in_their_place() {
    let bytes = 20 * MIB as usize;
    let run = |workers| {
        let loader = mp_prefetch(elements, bytes, options(workers)).unwrap().build().unwrap();
        loader.map(|e| e.map_err(|e| e.to_string())).collect::<Vec<_>>()
    };
    let inline = run(0);
    assert_eq!(inline.len(), 251);
    assert_eq!(inline[250].as_ref().unwrap_err(), "stage 1 map: element 250: a bad record");
    assert!(run(1) == inline);
    assert!(run(2) == inline);
}

#[test]
fn an_element_that_can_never_fit_is_an_error_with_the_arithmetic() {
    let small = MpOptions::auto().workers(1).worker_heap(100 * MIB).ram_budget(120 * MIB);
    let mut loader = mp_prefetch(elements, 30 * MIB as usize, small).unwrap().build().unwrap();
    let error = loader.find_map(Result::err).unwrap().to_string();
    assert!(
        error.contains("element 49: an element of 30 MiB does not fit: max_element is 4.5 MiB, of a slab of 18 MiB"),
        "{error}"
    );
}

/// Batches straight behind the border, of elements and of other things, some of which fail to become one.
fn batches(how: u32) -> Result<gristmill::BoxIter<String>> {
    let element = move |x: i64| {
        if how == 4 && x == 2500 {
            return Err(Error::data("a bad record"));
        }
        let len = if how == 5 && x == 2600 { 7 } else { 5 };
        Ok(Element::new().with("x", Array::from_vec(vec![x; len])).with("t", &*format!("{x}")))
    };
    let elements = || Range::new(0, 3001).shuffle(5).to_iter().try_map(element);
    Ok(match how {
        0 | 4 | 5 => elements().batch(8).map(|batch| contents(&batch)).boxed(),
        1 => elements().batch_masked(8).map(|batch| contents(&batch)).boxed(),
        2 => Range::new(0, 3001).to_iter().batch_padded(7).map(|batch| format!("{batch:?}")).boxed(),
        _ => elements()
            .batch_with_fn(9, Remainder::Drop, |items: Vec<Element>| Ok(items.iter().map(contents).collect::<String>()))
            .boxed(),
    })
}

fn contents(element: &Element) -> String {
    let x = element.array("x").unwrap();
    format!("{element:?} {:?}", x.as_slice::<i64>().unwrap())
}

#[test]
fn batches_come_as_they_are_stacked_inline() {
    for how in 0..6 {
        let run = |workers| {
            let loader = mp_prefetch(batches, how, options(workers)).unwrap().build().unwrap();
            loader.map(|batch| batch.map_err(|e| e.to_string())).collect::<Vec<_>>()
        };
        let inline: Vec<_> =
            batches(how).unwrap().loader().build().unwrap().map(|b| b.map_err(|e| e.to_string())).collect();
        assert_eq!(inline.last().unwrap().is_err(), how >= 4, "{:?}", inline.last());
        for workers in [0, 1, 3] {
            assert!(run(workers) == inline, "{how} in {workers} workers");
        }
    }
}

/// The processes in which batches are made.
fn makers(len: i64) -> Result<impl IterDataset<Item = u32>> {
    Ok(Range::new(0, len).to_iter().batch_with_fn(16, Remainder::Keep, |_: Vec<i64>| Ok(std::process::id())))
}

#[test]
fn batches_are_made_by_the_workers_that_evaluate_their_elements() {
    let mut loader = mp_prefetch(makers, 50_000, options(2)).unwrap().build().unwrap();
    let pids: Vec<u32> = loader.by_ref().map(Result::unwrap).collect();
    assert_eq!(pids.len(), 3125);
    let here = pids.iter().filter(|pid| **pid == std::process::id()).count();
    assert!(here < 1000, "{here} of 3125 were made here");
    let batch = loader.report().stages.into_iter().find(|stage| stage.name == "batch").unwrap();
    assert_eq!((batch.elements, batch.place), (3125, gristmill::report::Place::Threads));
}

fn large_batches(bytes: usize) -> Result<impl IterDataset<Item = Element>> {
    let element = move |x: i64| Element::new().with("x", Array::from_vec(vec![x as u8; bytes]));
    Ok(Range::new(0, 400).map(element).to_iter().batch(8))
}

/// Batches that have no room in an extent, or in all the shared memory there is, although their elements have.
#[test]
fn batches_too_large_to_come_as_one_come_apart() {
    for (bytes, budget) in [(100 << 10, 400 * MIB), (1 << 20, 400 * MIB), (1 << 20, 80 * MIB)] {
        let options = options(1).ram_budget(budget);
        let loader = mp_prefetch(large_batches, bytes, options).unwrap().build().unwrap();
        let mut firsts = Vec::new();
        for batch in loader {
            let batch = batch.unwrap();
            let x = batch.array("x").unwrap();
            assert_eq!(x.shape(), [8, bytes]);
            assert!(x.bytes().chunks(bytes).all(|row| row.iter().all(|b| *b == row[0])));
            firsts.extend(x.bytes().chunks(bytes).map(|row| row[0]));
        }
        assert_eq!(firsts, (0..400).map(|x| x as u8).collect::<Vec<_>>());
    }
}

#[test]
fn the_heaps_of_all_workers_and_shared_memory_are_within_the_budget() {
    let options = MpOptions::auto().workers(3).ram_budget(600 * MIB);
    let mut loader = mp_prefetch(makers, 500, options).unwrap().build().unwrap();
    loader.next().unwrap().unwrap();
    while loader.report().workers.unwrap().workers.len() < 3 {
        std::thread::yield_now();
    }
    assert_eq!(loader.by_ref().map(Result::unwrap).count(), 31);
    let report = loader.report().workers.unwrap();
    let heaps: u64 = report.workers.iter().map(|worker| worker.heap_limit_bytes).sum();
    assert!(heaps + report.slab_bytes <= 600 * MIB, "{report:?}");
    assert_eq!((report.workers.len(), report.replaced), (3, 0));
}

fn other(_: ()) -> Result<impl IterDataset<Item = i64>> {
    // What differs between parent and worker must not go unnoticed.
    let len = if std::thread::current().name() == Some("gristmill-serve") { 10 } else { 11 };
    Ok(Range::new(0, len).to_iter())
}

#[test]
fn a_factory_that_makes_another_pipeline_in_the_worker_is_refused() {
    let mut loader = mp_prefetch(other, (), options(1)).unwrap().build().unwrap();
    let error = loader.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("stage 0 is range(0, 10, 1), but in the parent range(0, 11, 1)"), "{error}");
}

/// A type of the program's own.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Own {
    name: String,
    at: Option<i64>,
}

fn owned(len: i64) -> Result<impl MapDataset<Item = Own> + Clone> {
    crosses::<Own>();
    let own = |x: i64| Own { name: "x".repeat((x % 97) as usize), at: (x % 3 > 0).then_some(x) };
    Ok(Range::new(0, len).map(own))
}

fn owned_alone(len: i64) -> Result<impl IterDataset<Item = Own>> {
    Ok(owned(len)?.to_iter().filter(|own| own.at != Some(5)))
}

fn owned_in_batches(len: i64) -> Result<impl IterDataset<Item = Vec<Own>>> {
    Ok(owned(len)?.to_iter().batch_with_fn(7, Remainder::Keep, Ok))
}

#[test]
fn types_of_the_programs_own_cross() {
    let alone = mp_prefetch(owned_alone, 2000, options(2)).unwrap().build().unwrap();
    assert_eq!(alone.collect::<Result<Vec<_>>>().unwrap(), owned_alone(2000).unwrap().collect().unwrap());
    let batches = mp_prefetch(owned_in_batches, 2000, options(2)).unwrap().build().unwrap();
    assert_eq!(batches.collect::<Result<Vec<_>>>().unwrap(), owned_in_batches(2000).unwrap().collect().unwrap());
}

struct Foreign;

/// A pipeline that leaves a file in `folder` for each process that makes it.
fn foreign(folder: PathBuf) -> Result<impl IterDataset<Item = Foreign>> {
    std::fs::write(folder.join(std::process::id().to_string()), "").map_err(|e| Error::io(e, &folder))?;
    Ok(Range::new(0, 5).map(|_| Foreign).to_iter())
}

#[test]
fn elements_that_cannot_cross_are_refused_with_advice_before_a_worker_starts() {
    let folder = tempfile::tempdir().unwrap();
    let loader = mp_prefetch(foreign, folder.path().to_owned(), options(1)).unwrap();
    let Err(error) = loader.build() else { panic!("no error") };
    assert!(error.to_string().contains("Foreign cannot leave a worker process"), "{error}");
    assert!(error.help_text().unwrap().contains("`Element`"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn foreign_later(_: ()) -> Result<impl IterDataset<Item = i64>> {
    let stream = |end| Range::new(0, end).map(|_| Foreign).to_iter().limit(3);
    Ok(interleave([stream(5), stream(7)], 1).map(|_| 1))
}

/// A stream whose turn comes later starts its pass then.
#[test]
fn elements_of_streams_that_are_not_open_yet_are_refused_as_well() {
    let Err(error) = mp_prefetch(foreign_later, (), options(1)).unwrap().build() else { panic!("no error") };
    assert!(error.to_string().contains("Foreign cannot leave a worker process"), "{error}");
}
