//! Rows dealt by lanes: each host reads its own lanes, and all of them together are one host inline, with its states.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::lanes;
use gristmill::dataset::map::Range;
use gristmill::keys::{KeyFolder, KeySource, Keyed, Keys, LaneFile, MarkedLanes};
use gristmill::pack::{RowSpec, WindowPackOptions};
use gristmill::part::{Deal, Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, Checkpoint, Element, ErrorKind, Executor, Loader, Result};
use proptest::prelude::*;

use super::hosts::{Host, alone, come_and_go, run};
use super::pipelines::documents;

/// Rows of a batch: all counts of hosts divide it.
const ROWS: usize = 840;
const COUNTS: [usize; 6] = [1, 2, 3, 5, 7, 24];

/// Makes the index of lanes where it is asked for.
#[derive(Debug)]
struct Indexer(KeyFolder);

impl KeySource for Indexer {
    fn find(&self, _: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        Ok(None)
    }

    fn find_lanes(&self, lanes: &Arc<dyn MarkedLanes>) -> Result<Option<Arc<LaneFile>>> {
        self.0.record_lanes(&**lanes, |_| ())?;
        self.0.find_lanes(lanes)
    }
}

/// What stands inside each stream of a lane.
#[derive(Clone, Copy, Debug)]
enum Inside {
    Plain,
    Filter,
    Pack,
}

fn stream(k: usize, len: u64, inside: Inside, made: &Arc<Vec<AtomicU64>>) -> BoxIter<Element> {
    let (made, first) = (made.clone(), 100_000 * k as i64);
    let element = move |x: i64| {
        made[k].fetch_add(1, Ordering::Relaxed);
        Element::new().with("x", Array::scalar(x))
    };
    match inside {
        Inside::Plain => Range::new(first, first + len as i64).to_iter().boxed().map(element).boxed(),
        Inside::Filter => {
            let odd = |x: &Element| x.array("x").is_ok_and(|x| x.bytes()[0] % 3 != 0);
            Range::new(first, first + len as i64).to_iter().boxed().map(element).filter(odd).boxed()
        }
        Inside::Pack => {
            let packed = WindowPackOptions::new(RowSpec::new([("tokens", 8)])).window(40);
            documents(k as u32, len as i64).window_pack(packed).boxed()
        }
    }
}

fn start(
    ds: &BoxIter<Element>,
    part: Part,
    folder: &Path,
    executor: Executor,
    at: Option<&Checkpoint>,
) -> Result<Host> {
    let keys = Indexer(KeyFolder::new(folder));
    let builder = ds.clone().loader().executor(executor).deal(Deal::Lanes).part(part).keys(keys);
    let builder = match at {
        Some(at) => builder.resume(at.clone()),
        None => builder,
    };
    Ok(Host { loader: builder.build()?, digest: RowDigest::default() })
}

/// The state of one host inline behind so many batches.
fn state(ds: &BoxIter<Element>, batches: u64) -> String {
    let mut loader: Loader<_> = ds.clone().loader().build().unwrap();
    loader.by_ref().take(batches as usize).for_each(|batch| drop(batch.unwrap()));
    loader.state().unwrap().to_json()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// Chains of resumes, each by another number of hosts, then hosts that come and go.
    #[test]
    fn hosts_that_read_their_own_lanes_are_one_host_inline(
        lens in prop::collection::vec(0u64..3000, 1..9),
        count in prop::sample::select(vec![1usize, 2, 3, 4, 7, 8]),
        inside in prop::sample::select(vec![Inside::Plain, Inside::Filter, Inside::Pack]),
        chain in prop::collection::vec((prop::sample::select(COUNTS.to_vec()), 0u64..3), 4),
        changes in prop::collection::vec((prop::sample::select(vec![1usize, 2, 3, 5, 7]), 0usize..3), 4),
        (threads, pads, limit) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let made = Arc::new((0..lens.len()).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let streams: Vec<_> = lens.iter().enumerate().map(|(k, &len)| stream(k, len, inside, &made)).collect();
        let ds = lanes(streams, count);
        let ds = if pads { ds.batch_masked(ROWS).boxed() } else { ds.batch_with(ROWS, Remainder::Drop).boxed() };
        let ds = if limit { ds.skip(1).limit(9).boxed() } else { ds };
        let (expected, batches) = alone(&ds);
        let executor = if threads { Executor::Threads(2) } else { Executor::Inline };
        let (mut digest, mut at) = (RowDigest::default(), None);
        for (hosts, steps) in chain.into_iter().chain([(3, u64::MAX)]) {
            let from: Option<Checkpoint> = at.take();
            let begin = |part| start(&ds, part, folder.path(), executor, from.as_ref()).unwrap();
            let (rows, behind) = run(&begin, hosts, steps);
            digest.add(rows);
            let ended = steps == u64::MAX || behind.delivered == batches;
            prop_assert!(ended || behind.to_json() == state(&ds, behind.delivered));
            at = Some(behind);
        }
        prop_assert_eq!((digest, at.unwrap().delivered), (expected, batches));
        let hosts = (0..7).map(|_| start(&ds, Part::whole(), folder.path(), executor, None).unwrap()).collect();
        prop_assert_eq!(come_and_go(hosts, changes), expected);
    }
}

/// While all lanes live, a host makes the elements of its own lanes, and no others.
#[test]
fn a_host_reads_its_own_lanes_alone() {
    for (executor, hosts) in [(Executor::Inline, 4), (Executor::Threads(2), 2)] {
        let folder = tempfile::tempdir().unwrap();
        let made = Arc::new((0..8).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
        let ds = lanes((0..8).map(|k| stream(k, 1000, Inside::Plain, &made)).collect::<Vec<_>>(), 8);
        let ds = ds.batch_with(80, Remainder::Drop).boxed();
        drop(start(&ds, Part::whole(), folder.path(), executor, None).unwrap());
        for part in 0..hosts {
            made.iter().for_each(|made| made.store(0, Ordering::Relaxed));
            let mut host = start(&ds, Part::of(part, hosts), folder.path(), executor, None).unwrap();
            while host.step() {}
            let told = host.loader.report().to_string();
            assert!(told.contains("index of lanes"), "{told}");
            let made: Vec<u64> = made.iter().map(|made| made.load(Ordering::Relaxed)).collect();
            let each = 8 / hosts;
            let expected: Vec<u64> = (0..8).map(|k| if k / each == part { 1000 } else { 0 }).collect();
            assert_eq!(made, expected);
        }
    }
}

/// Without an index, or lanes, or ranks, the deal is refused; a damaged index is never believed.
#[test]
fn what_cannot_be_dealt_by_lanes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let made = Arc::new((0..3).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let ds = |len| lanes((0..3).map(|k| stream(k, len, Inside::Plain, &made)).collect::<Vec<_>>(), 3).batch(6).boxed();
    let refused = |ds: &BoxIter<Element>, part: Part, folder: &Path| {
        let builder = ds.clone().loader().deal(Deal::Lanes).part(part).keys(KeyFolder::new(folder));
        let Err(error) = builder.build() else { panic!("it is not refused") };
        error
    };
    let error = refused(&ds(500), Part::of(0, 2), folder.path());
    assert!(error.message().contains("has no index") && error.help_text().unwrap().contains("index --keys"), "{error}");
    let listed = Part::listed([0, 3], 6).unwrap();
    assert!(refused(&ds(500), listed, folder.path()).message().contains("lists its rows"));
    let no_lanes = documents(1, 50).batch(4).boxed();
    assert!(refused(&no_lanes, Part::of(0, 2), folder.path()).message().contains("no lanes"));

    drop(start(&ds(500), Part::of(0, 2), folder.path(), Executor::Inline, None).unwrap());
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let mark = bytes.windows(9).position(|bytes| bytes == b"\"dataset\"").unwrap();
    bytes[mark + 1] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let mut host = start(&ds(500), Part::of(0, 2), folder.path(), Executor::Inline, None).unwrap();
    let error = host.loader.by_ref().find_map(Result::err).expect("the damage is found");
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("hash"), "{error}");
}

/// Lanes that give fewer or more elements than when their index was made: the host that reads to their ends says so.
#[test]
fn lanes_that_are_not_as_their_index_says_are_stale() {
    for (then, now, said) in
        [(300, 250, "ends after 250 elements, but has 300 in the index"), (250, 300, "has more than the 250 elements")]
    {
        let folder = tempfile::tempdir().unwrap();
        let most = Arc::new(AtomicU64::new(then));
        let stream = |k: i64| {
            let most = most.clone();
            let kept = move |x: &i64| (x % 1000) < most.load(Ordering::Relaxed) as i64;
            let ds = Range::new(1000 * k, 1000 * k + 300).to_iter().boxed().filter(kept);
            ds.map(|x| Element::new().with("x", Array::scalar(x))).boxed()
        };
        let ds = lanes((0..4).map(stream).collect::<Vec<_>>(), 4).batch(8).boxed();
        drop(start(&ds, Part::of(0, 2), folder.path(), Executor::Inline, None).unwrap());
        most.store(now, Ordering::Relaxed);
        for part in 0..2 {
            let mut host = start(&ds, Part::of(part, 2), folder.path(), Executor::Inline, None).unwrap();
            let error = host.loader.by_ref().find_map(Result::err).expect("it is found");
            assert!(error.to_string().contains("the index of lanes is stale"), "{error}");
            assert!(error.to_string().contains(said), "{error}");
            assert!(error.help_text().is_some());
        }
    }
}
