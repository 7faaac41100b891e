//! The law of hosts that plan, where stages that decide by elements stand behind those that change their order: in any order, by keys of their own.

use std::path::Path;

use gristmill::dataset::{AtEnd, Remainder};
use gristmill::keys::{KeyFolder, Recompute};
use gristmill::{BoxIter, LoaderBuilder};
use proptest::sample::{Index, select};

use super::hosts::run;
use super::keyed::Recorder;
use super::pipelines::{is_kept, sequence};
use super::*;

/// What stands behind the change before it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behind {
    Filter,
    /// Makes elements shorter, and so rows others.
    Trim,
    Fan,
    Shuffle,
}

const BEHIND: [Behind; 4] = [Behind::Filter, Behind::Trim, Behind::Fan, Behind::Shuffle];
const ORDERS: [[Behind; 3]; 12] = [
    [Behind::Filter, Behind::Trim, Behind::Filter],
    [Behind::Filter, Behind::Shuffle, Behind::Filter],
    [Behind::Trim, Behind::Shuffle, Behind::Trim],
    [Behind::Trim, Behind::Filter, Behind::Fan],
    [Behind::Shuffle, Behind::Fan, Behind::Shuffle],
    [Behind::Filter, Behind::Filter, Behind::Trim],
    [Behind::Shuffle, Behind::Trim, Behind::Fan],
    // Elements of a record that are made of others of it.
    [Behind::Fan, Behind::Shuffle, Behind::Filter],
    [Behind::Fan, Behind::Filter, Behind::Trim],
    [Behind::Fan, Behind::Trim, Behind::Fan],
    [Behind::Fan, Behind::Fan, Behind::Filter],
    [Behind::Filter, Behind::Fan, Behind::Fan],
];
/// What stands in front of them.
const FIRST: [Change; 6] = [Change::Shuffle, Change::Mix, Change::Tokens, Change::Limit, Change::Repeat, Change::Fan];
const ROWS: [Rows; 5] = [Rows::Plain, Rows::FirstFit, Rows::BestFit, Rows::Concat, Rows::Window];

fn trim(element: Element) -> Element {
    let tokens = element.array("tokens").unwrap().as_slice::<i32>().unwrap();
    let half = tokens[..tokens.len().div_ceil(2)].to_vec();
    Element::new().with("tokens", Array::from_vec(half))
}

/// Up to three elements of each: its first cells, its last ones, and all of them. No two of a document are alike.
fn parts_of(element: Element) -> Vec<Element> {
    let tokens = element.array("tokens").unwrap().as_slice::<i32>().unwrap();
    let (of, half) = (tokens[0], tokens.len() / 2);
    let part = |number: i32, cells: usize| Element::new().with("tokens", Array::from_vec(vec![3 * of + number; cells]));
    let all = [part(0, tokens.len() - half), part(1, 1 + half), part(2, tokens.len())];
    all.into_iter().take((of % 4) as usize).collect()
}

fn build(first: Change, order: &[Behind], rows: Rows, batch: usize) -> BoxIter<Element> {
    let len = 50 * batch as i64;
    let fanned = |seed| Range::new(0, len).shuffle(seed).map(sequence).to_iter().flat_map(parts_of).boxed();
    let changed = match first {
        Change::Mix => mix([documents(7, len), documents(3, len / 2)]).weights([2.0, 1.0]).boxed(),
        Change::Tokens => {
            mix([fanned(7), documents(3, len / 4)]).by_tokens("tokens").at_end(AtEnd::Repeat).limit(len as u64).boxed()
        }
        Change::Fan => mix([fanned(7), documents(3, len)]).boxed(),
        Change::Limit => documents(7, len).limit(len as u64 * 3 / 4).boxed(),
        Change::Repeat => documents(7, len).repeat(2).boxed(),
        _ => documents(7, len).window_shuffle(50, 5).boxed(),
    };
    let changed = order.iter().fold(changed, |ds, behind| match behind {
        Behind::Filter => ds.filter(is_kept).boxed(),
        Behind::Trim => ds.map(trim).boxed(),
        Behind::Fan => ds.flat_map(parts_of).boxed(),
        Behind::Shuffle => ds.window_shuffle(30, 9).boxed(),
    });
    Pipeline { batch, documents: len, ..Pipeline::new(&[], rows) }.batches(changed)
}

fn start(ds: &BoxIter<Element>, keys: Option<&Path>, part: Part, at: Option<&Checkpoint>) -> Host {
    try_start(ds, keys, part, at).unwrap()
}

fn try_start(ds: &BoxIter<Element>, keys: Option<&Path>, part: Part, at: Option<&Checkpoint>) -> Result<Host> {
    let builder: LoaderBuilder<BoxIter<Element>> = ds.clone().loader().part(part);
    let builder = match keys {
        Some(folder) => builder.keys(Recorder(KeyFolder::new(folder))),
        None => builder.keys(Recompute),
    };
    let builder = match at {
        Some(checkpoint) => builder.resume(checkpoint.clone()),
        None => builder,
    };
    Ok(Host { loader: builder.build()?, digest: RowDigest::default() })
}

/// Five hosts, then seven, then one: rows of all stages in all orders, by keys from files and made anew.
#[test]
fn stages_that_decide_are_planned_in_any_order() {
    let temp = tempfile::tempdir().unwrap();
    let mut orders: Vec<Vec<Behind>> = BEHIND[..3].iter().map(|behind| vec![*behind]).collect();
    orders.extend(ORDERS.map(Vec::from));
    for (number, order) in orders.iter().enumerate() {
        for (at, rows) in ROWS.into_iter().enumerate().filter(|(at, _)| number < 3 || (number + at).is_multiple_of(5)) {
            let first = FIRST[(number + at) % FIRST.len()];
            let what = format!("{first:?} {order:?} {rows:?}");
            let ds = build(first, order, rows, 35);
            let keys = temp.path().join("keys");
            let keys = (number + at / 2).is_multiple_of(2).then_some(keys.as_path());
            let (mut digest, mut at) = (RowDigest::default(), None);
            for (count, steps) in [(5, 2), (7, 1), (1, 1), (5, u64::MAX)] {
                let start = |part| start(&ds, keys, part, at.as_ref());
                let (rows, state) = run(&start, count, steps);
                digest.add(rows);
                at = Some(state);
            }
            let (expected, batches) = alone(&ds);
            assert_eq!((digest, at.map(|at| at.delivered)), (expected, Some(batches)), "{what}");
            assert!(batches > 4, "{batches}: {what}");
            let report = start(&ds, keys, Part::of(0, 5), None).loader.report().to_string().replace("\n      ", " ");
            assert!(report.contains("plans all rows from keys"), "{what}: {report}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// Any stages in any order, among any number of hosts that come and go between two batches, and give some back.
    #[test]
    fn hosts_come_and_go_behind_stages_in_any_order(
        first in select(FIRST.to_vec()),
        order in prop::collection::vec(select(BEHIND.to_vec()), 1..5),
        rows in select(ROWS.to_vec()),
        (batch, counts) in select(vec![(35, vec![1, 5, 7]), (24, vec![1, 2, 3, 24])]),
        changes in prop::collection::vec((any::<Index>(), 0usize..3), 4),
        in_files in any::<bool>(),
    ) {
        let temp = tempfile::tempdir().unwrap();
        let ds = build(first, &order, rows, batch);
        let start = |_| start(&ds, in_files.then_some(temp.path()), Part::whole(), None);
        let hosts = (0..counts[counts.len() - 1]).map(start).collect();
        let changes = changes.into_iter().map(|(count, back)| (*count.get(&counts), back));
        prop_assert_eq!(come_and_go(hosts, changes), alone(&ds).0);
    }
}

/// Records of one prefix may be asked for lengths in one place of a pipeline, and for none in another: each finds a file of its own.
#[test]
fn lengths_of_a_prefix_are_found_beside_a_file_without() {
    let ds = build(Change::Fan, &[Behind::Fan], Rows::FirstFit, 24);
    let (temp, mut digest) = (tempfile::tempdir().unwrap(), RowDigest::default());
    for index in 0..3 {
        let mut host = start(&ds, Some(temp.path()), Part::of(index, 3), None);
        while host.step() {}
        digest.add(host.digest);
    }
    assert_eq!(digest, alone(&ds).0);
    let names = std::fs::read_dir(temp.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    let is_beside =
        |name: &String| name.split_once('-').is_some_and(|(first, _)| names.contains(&format!("{first}.gmk")));
    assert_eq!(names.iter().filter(|name| is_beside(name)).count(), 1, "{names:?}");
}

/// Only what a host's rows are made of is evaluated by it, where keys lie in a file.
#[test]
fn a_host_evaluates_its_own_behind_a_late_filter() {
    let temp = tempfile::tempdir().unwrap();
    let (made, kept) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counting = |counter: &Arc<AtomicU64>| {
        let counter = counter.clone();
        move || counter.fetch_add(1, Ordering::Relaxed)
    };
    let (made_one, looked) = (counting(&made), counting(&kept));
    let prefix = Range::new(0, 2000).map(move |x| {
        made_one();
        super::pipelines::sequence(x)
    });
    let ds = prefix.to_iter().window_shuffle(100, 3).filter(move |element| {
        looked();
        is_kept(element)
    });
    let ds =
        ds.map(|e| Element::new().with("tokens", Array::scalar(first(&e)))).batch_with(40, Remainder::Drop).boxed();
    let all = alone(&ds).0;
    // Makes the keys.
    drop(start(&ds, Some(temp.path()), Part::of(0, 4), None).loader.next());
    let mut digest = RowDigest::default();
    for index in 0..4 {
        let mut host = start(&ds, Some(temp.path()), Part::of(index, 4), None);
        // Without the sample that is compared with the keys.
        made.store(0, Ordering::Relaxed);
        kept.store(0, Ordering::Relaxed);
        while host.step() {}
        digest.add(host.digest);
        let rows = host.loader.delivered() * 10;
        assert_eq!([made.load(Ordering::Relaxed), kept.load(Ordering::Relaxed)], [rows; 2]);
    }
    assert_eq!(digest, all);
}

/// An element that fails is an error where it comes, and none where it does not: others of its record are not bad for it.
#[test]
fn an_element_of_a_record_is_bad_by_itself() {
    let bad = |e: &Element| first(e) == 3 * 31 + 1;
    let fanned = || documents(7, 200).window_shuffle(50, 5).flat_map(parts_of);
    let at = fanned().collect().unwrap().iter().position(bad).unwrap() as u64;
    let ds = |limit: u64| {
        let fails = move |e: Element| if bad(&e) { Err(Error::data("no good")) } else { Ok(e) };
        let rows = fanned().limit(limit).map(trim).try_map(fails).filter(is_kept);
        let rows = rows.map(|e| Element::new().with("tokens", Array::scalar(first(&e))));
        rows.batch_with(5, Remainder::Drop).boxed()
    };
    // The element in front of it is of its record.
    assert_eq!(first(&fanned().collect().unwrap()[at as usize - 1]), 3 * 31);
    let (short, whole) = (ds(at), ds(u64::MAX));
    let mut digest = RowDigest::default();
    for index in 0..5 {
        let mut host = start(&short, None, Part::of(index, 5), None);
        while host.step() {}
        digest.add(host.digest);
    }
    assert_eq!(digest, alone(&short).0);
    let fails = |loader: gristmill::Loader<BoxIter<Element>>| loader.into_iter().find_map(Result::err).unwrap();
    assert!(fails(whole.clone().loader().build().unwrap()).to_string().contains("no good"));
    let error = fails(start(&whole, None, Part::of(1, 5), None).loader);
    assert!(error.kind() == ErrorKind::Data && error.to_string().contains("it is marked as bad in its key"), "{error}");
}

/// A function that keeps something else than when its keys were made is found where it matters, and named.
#[test]
fn keys_of_a_late_filter_that_are_stale_are_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let build = |least: i32, without: i32| {
        let shuffled = documents(7, 400).window_shuffle(50, 5);
        let kept = shuffled.filter(move |e: &Element| first(e) % 3 >= least && first(e) != without);
        kept.map(|e| Element::new().with("tokens", Array::scalar(first(&e)))).batch_with(5, Remainder::Drop).boxed()
    };
    let start = |ds: &BoxIter<Element>| try_start(ds, Some(temp.path()), Part::of(0, 1), None);
    drop(start(&build(1, -1)).unwrap());
    // What differs in many records is found before the first of them.
    let error = start(&build(2, -1)).err().expect("a sample finds it");
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("the keys are stale: record "), "{error}");
    // What differs in one, of which no key is compared, where it is made.
    let dropped = (1..400).filter(|element| element % 3 > 0);
    let mut host = dropped.flat_map(|element| start(&build(1, element))).next().expect("some are not compared");
    let error = (0..80).find_map(|_| host.loader.next().and_then(Result::err)).expect("it drops what was to be kept");
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("filter") && error.to_string().contains("keys are stale"), "{error}");
}
