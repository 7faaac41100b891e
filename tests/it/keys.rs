//! Plans over keys: hosts that plan what all of them make, and evaluate their own rows alone, deliver what hosts do that evaluate everything.

mod recorded;
mod unplanned;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::{BadRecords, mix};
use gristmill::dataset::map::{Mix, Range};
use gristmill::keys::{Key, KeyFolder, KeySource, Keyed, Keys, Recompute};
use gristmill::pack::{
    BatchSize, BinPackOptions, ConcatPackOptions, LengthBucketOptions, OverLong, Packing, Positions, RowSpec,
    WindowPackOptions,
};
use gristmill::part::{InMemory, Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, BoxMap, Checkpoint, Element, Error, Executor, Loader, Result};
use proptest::prelude::*;

/// Rows of a global batch, and the numbers of hosts that divide them.
const BATCH: usize = 24;
const HOSTS: [usize; 6] = [1, 2, 3, 4, 8, 24];

/// Counts of elements that were made.
type Made = Arc<AtomicU64>;

/// Sequences of 1 to 11 tokens, each of its own; `made` counts them.
fn documents(first: i64, len: i64, seed: u32, made: &Made) -> BoxMap<Element> {
    let made = made.clone();
    let sequence = move |x: i64| {
        made.fetch_add(1, Ordering::Relaxed);
        let tokens = Array::from_vec(vec![x as i32 + 1; 1 + (x * 5 % 11) as usize]);
        Element::new().with("t", tokens).with("id", Array::scalar(x))
    };
    Range::new(first, first + len).shuffle(seed).map(sequence).boxed()
}

fn id(element: &Element) -> i64 {
    element.array("id").unwrap().as_slice::<i64>().unwrap()[0]
}

/// What stands in front of the border.
#[derive(Clone, Copy, Debug)]
enum Prefix {
    Plain,
    Filter,
    Fan,
    Bad,
    Mixed,
    Repeated,
}

impl Prefix {
    fn build(self, made: &Made) -> BoxIter<Element> {
        let ds = documents(0, 900, 7, made);
        match self {
            Self::Plain => ds.to_iter().boxed(),
            Self::Filter => ds.to_iter().filter(|e| id(e) % 3 != 0).map(|e| e).boxed(),
            Self::Fan => {
                let pieces = |e: Element| {
                    let piece = |k| {
                        Element::new()
                            .with("t", Array::from_vec(vec![k as i32; 1 + k]))
                            .with("id", Array::scalar(k as i64))
                    };
                    (0..id(&e) as usize % 4).map(piece).collect::<Vec<_>>()
                };
                ds.to_iter().flat_map(pieces).filter(|e| id(e) != 1).boxed()
            }
            Self::Bad => {
                let bad = |e: Element| if id(&e) % 7 == 3 { Err(Error::data("bad")) } else { Ok(e) };
                ds.to_iter().try_map(bad).on_bad_record(BadRecords::skip()).boxed()
            }
            Self::Mixed => Mix::new(vec![ds, documents(2000, 500, 3, made)]).map(|e| e).to_iter().boxed(),
            Self::Repeated => ds.slice(..400).shuffle(5).repeat(2).to_iter().filter(|e| id(e) % 5 != 0).boxed(),
        }
    }
}

/// What stands between the border and the rows.
#[derive(Clone, Copy, Debug)]
enum Change {
    Mix,
    Shuffle,
    Limit,
    Skip,
    Repeat,
}

/// How rows are made.
#[derive(Clone, Copy, Debug)]
enum Rows {
    Plain,
    FirstFit,
    BestFit,
    Concat,
    Window,
    Buckets,
}

#[derive(Clone, Debug)]
struct Pipeline {
    prefix: Prefix,
    changes: Vec<Change>,
    rows: Rows,
    remainder: bool,
    over_long: OverLong,
}

impl Pipeline {
    fn build(&self, made: &Made) -> BoxIter<Element> {
        let changed = self.changes.iter().fold(self.prefix.build(made), |ds, change| match change {
            Change::Mix => mix([ds, documents(5000, 700, 1, made).to_iter().boxed()]).weights([2.0, 1.0]).boxed(),
            Change::Shuffle => ds.window_shuffle(50, 5).boxed(),
            Change::Limit => ds.limit(800).boxed(),
            Change::Skip => ds.skip(5).boxed(),
            Change::Repeat => ds.repeat(2).boxed(),
        });
        if let Rows::Buckets = self.rows {
            return self.buckets(changed);
        }
        let spec = |length| RowSpec::new([("t", length)]);
        let listed = || spec(8).meta_features(["id"]);
        let rows = match self.rows {
            Rows::Plain => IterDatasetExt::map(changed, |e| Element::new().with("t", Array::scalar(id(&e)))).boxed(),
            Rows::FirstFit => {
                changed.first_fit_pack(BinPackOptions::new(listed(), 9).over_long(self.over_long)).boxed()
            }
            Rows::BestFit => changed
                .best_fit_pack(BinPackOptions::new(spec(8), 9).over_long(self.over_long).shuffle_bins(false))
                .boxed(),
            Rows::Concat => {
                let options = ConcatPackOptions::new(spec(8)).split_full_length_features(false);
                changed.concat_then_split_pack(options.positions(Positions::Continue)).boxed()
            }
            Rows::Window => {
                changed.window_pack(WindowPackOptions::new(listed()).window(40).over_long(self.over_long)).boxed()
            }
            Rows::Buckets => unreachable!("they are batches"),
        };
        let rows = IterDatasetExt::map(rows, |e| e.with("one", Array::scalar(1i32)));
        match self.remainder {
            true => rows.batch_masked(BATCH).boxed(),
            false => rows.batch_with(BATCH, Remainder::Drop).boxed(),
        }
    }

    /// Batches by length, which are no others behind a limit: the last ones are short, and in between those whose elements cannot wait.
    fn buckets(&self, changed: BoxIter<Element>) -> BoxIter<Element> {
        let drops = self.over_long == OverLong::Drop;
        let boundaries = [4, if drops { 9 } else { 11 }];
        let size = BatchSize::PerBucket(vec![2 * BATCH, BATCH]);
        // What is no feature is listed, and lists are not padded.
        let features = if self.remainder { vec!["t", "id"] } else { vec!["t"] };
        let options = LengthBucketOptions::new(features, boundaries, size).window(60).drop_over_long(drops);
        match self.remainder {
            true => changed.length_buckets(options.pad_remainder().padding("t", -1.0)).limit(30).boxed(),
            false => changed.length_buckets(options.remainder(Remainder::Drop)).boxed(),
        }
    }
}

fn pipeline() -> impl Strategy<Value = Pipeline> {
    use Change::{Limit, Mix, Repeat, Shuffle, Skip};
    let prefix = prop::sample::select(vec![
        Prefix::Plain,
        Prefix::Filter,
        Prefix::Fan,
        Prefix::Bad,
        Prefix::Mixed,
        Prefix::Repeated,
    ]);
    let change = prop::sample::select(vec![Mix, Shuffle, Limit, Skip, Repeat]);
    let rows = prop::sample::select(vec![
        Rows::Plain,
        Rows::FirstFit,
        Rows::BestFit,
        Rows::Concat,
        Rows::Window,
        Rows::Buckets,
    ]);
    let over_long = prop::sample::select(vec![OverLong::Split, OverLong::Drop]);
    (prefix, prop::collection::vec(change, 0..3), rows, any::<bool>(), over_long).prop_map(
        |(prefix, changes, rows, remainder, over_long)| Pipeline { prefix, changes, rows, remainder, over_long },
    )
}

/// One host, with keys or without.
struct Host {
    loader: Loader<BoxIter<Element>>,
    digest: RowDigest,
}

impl Host {
    fn start(ds: &BoxIter<Element>, part: Part, keys: bool, executor: Executor, at: Option<&Checkpoint>) -> Self {
        let builder = ds.clone().loader().executor(executor).part(part);
        let builder = if keys { builder.keys(Recompute) } else { builder };
        let builder = match at {
            Some(checkpoint) => builder.resume(checkpoint.clone()),
            None => builder,
        };
        Self { loader: builder.build().unwrap(), digest: RowDigest::default() }
    }

    /// Takes the next batch in; `false` at the end.
    fn step(&mut self) -> bool {
        let Some(batch) = self.loader.next() else { return false };
        let batch = batch.unwrap();
        self.digest.add_batch(self.loader.delivered() - 1, self.loader.rows().unwrap(), &batch);
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 300, ..ProptestConfig::default() })]

    /// Chains of resumes, each by another number of hosts, with keys or without, have one digest and the states of one host inline.
    #[test]
    fn planned_rows_are_those_of_one_host_that_evaluates_all(
        pipeline in pipeline(),
        chain in prop::collection::vec((prop::sample::select(HOSTS.to_vec()), 0u64..5, any::<bool>()), 4),
        threads in any::<bool>(),
    ) {
        let ds = pipeline.build(&Made::default());
        let mut alone = Host::start(&ds, Part::whole(), false, Executor::Inline, None);
        while alone.step() {}
        let executor = if threads { Executor::Threads(2) } else { Executor::Inline };
        let (mut digest, mut at) = (RowDigest::default(), None);
        for (count, steps, keys) in chain.into_iter().chain([(3, u64::MAX, true)]) {
            let mut states = Vec::new();
            for index in 0..count {
                let mut host = Host::start(&ds, Part::of(index, count), keys, executor, at.as_ref());
                prop_assert!((0..steps).all(|_| host.step()) || host.loader.next().is_none());
                digest.add(host.digest);
                states.push(host.loader.state().unwrap());
            }
            // A host that evaluates everything comes to the same state.
            let mut whole = Host::start(&ds, Part::whole(), false, Executor::Inline, at.as_ref());
            prop_assert!((0..steps).all(|_| whole.step()) || whole.loader.next().is_none());
            let expected = whole.loader.state().unwrap().to_json();
            prop_assert!(states.iter().all(|state| state.to_json() == expected), "{}\n{}", states[0].to_json(), expected);
            at = states.pop();
        }
        prop_assert_eq!((digest, at.unwrap().delivered), (alone.digest, alone.loader.delivered()));
    }
}

/// Keys that were made once.
#[derive(Debug)]
struct Recorded;

struct List(Vec<(Key, Vec<u32>)>);

impl KeySource for Recorded {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        let mut list = Vec::new();
        keyed.make(0..keyed.records(), &mut |key, lens| list.push((key, lens.to_vec())))?;
        Ok(Some(Arc::new(List(list))))
    }
}

impl Keys for List {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let (key, lengths) = &self.0[record as usize];
        lens.extend_from_slice(lengths);
        Ok(*key)
    }
}

#[test]
fn elements_of_other_parts_are_not_made() {
    for (rows, executor) in [
        (Rows::Plain, Executor::Inline),
        (Rows::FirstFit, Executor::Inline),
        (Rows::Window, Executor::Threads(2)),
        (Rows::Concat, Executor::Inline),
        (Rows::Buckets, Executor::Threads(2)),
    ] {
        let made = Made::default();
        let over_long = OverLong::Split;
        let pipeline =
            Pipeline { prefix: Prefix::Filter, changes: vec![Change::Shuffle], rows, remainder: false, over_long };
        let ds = pipeline.build(&made);
        let all = ds.clone().loader().build().unwrap().count();
        let total = made.swap(0, Ordering::Relaxed);
        let loader = ds.loader().part(Part::of(5, 8)).keys(Recorded).executor(executor).build().unwrap();
        let keys = made.swap(0, Ordering::Relaxed);
        assert_eq!(keys, 900, "each record once");
        assert_eq!(loader.count(), all);
        let own = made.load(Ordering::Relaxed);
        assert!(own * 8 <= total * 13 / 10, "{rows:?}: {own} of {total}");
    }
}

/// Has the keys of what it is asked for written into a folder.
#[derive(Clone, Debug)]
struct Recorder(KeyFolder);

impl KeySource for Recorder {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        self.0.record(&**keyed, |_| ())?;
        self.0.find(keyed)
    }
}

fn packed(made: &Made) -> BoxIter<Element> {
    let over_long = OverLong::Split;
    let changes = vec![Change::Mix, Change::Shuffle];
    Pipeline { prefix: Prefix::Bad, changes, rows: Rows::Window, remainder: false, over_long }.build(made)
}

#[test]
fn key_files_serve_other_pipelines_over_the_same_records() {
    let (folder, made) = (tempfile::tempdir().unwrap(), Made::default());
    let (ds, keys) = (packed(&made), KeyFolder::new(folder.path()));
    let mut alone = Host::start(&ds, Part::whole(), false, Executor::Inline, None);
    while alone.step() {}
    ds.clone().loader().part(Part::of(0, 2)).keys(Recorder(keys.clone())).build().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "one for each source");
    made.store(0, Ordering::Relaxed);
    let mut digest = RowDigest::default();
    for index in 0..4 {
        let builder = ds.clone().loader().part(Part::of(index, 4)).keys(keys.clone().needed());
        let mut host = Host { loader: builder.build().unwrap(), digest: RowDigest::default() };
        while host.step() {}
        digest.add(host.digest);
    }
    assert_eq!(digest, alone.digest);
    // Another seed, another packing: the same records.
    let other = documents(5000, 700, 9, &made)
        .to_iter()
        .first_fit_pack(BinPackOptions::new(RowSpec::new([("t", 12)]), 5))
        .boxed();
    let batches = |keys: KeyFolder| other.clone().batch(4).loader().part(Part::of(1, 2)).keys(keys).build();
    assert!(batches(keys.needed()).is_ok());
    let error = batches(KeyFolder::new(folder.path().join("none")).needed()).unwrap_err();
    assert_eq!(error.message(), "there are no keys for range(5000, 5700, 1) → map");
    assert!(error.help_text().unwrap().contains("gristmill index --keys"), "{error:?}");
}

/// Keys that say another length of one record, or keep what is dropped.
#[derive(Debug)]
struct Stale(u64, Key, Vec<u32>);

impl KeySource for Stale {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        let mut list = Vec::new();
        keyed.make(0..keyed.records(), &mut |key, lens| list.push((key, lens.to_vec())))?;
        list[self.0 as usize] = (self.1, self.2.clone());
        Ok(Some(Arc::new(List(list))))
    }
}

#[test]
fn keys_that_are_stale_are_found_where_the_element_is_made() {
    let made = Made::default();
    for (record, key, lens, told) in [
        (41, Key::Elements(1), vec![7], "\"t\" has 8 cells, but 7 in its key"),
        (41, Key::Elements(1), vec![9], "\"t\" has 8 cells, but 9 in its key"),
        (42, Key::Elements(1), vec![2], "it is dropped, but was kept when its key was made"),
    ] {
        let pipeline = || {
            let kept = documents(0, 300, 3, &made).to_iter().filter(|e| id(e) % 3 != 0);
            kept.window_pack(WindowPackOptions::new(RowSpec::new([("t", 12)])).window(20)).batch(4)
        };
        let mut errors = Vec::new();
        for index in 0..2 {
            let keys = Stale(record, key, lens.clone());
            let loader = pipeline().loader().part(Part::of(index, 2)).keys(keys).build().unwrap();
            errors.extend(loader.filter_map(Result::err));
        }
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert!(error.message().starts_with("the keys are stale: ") && error.message().contains(told), "{error}");
        assert!(error.help_text().unwrap().contains("gristmill index --keys"));
    }
}

#[test]
fn a_record_that_becomes_more_or_fewer_elements_than_its_key_says_is_an_error() {
    let made = Made::default();
    for count in [1, 3] {
        let mut errors = Vec::new();
        for index in 0..2 {
            let twice = documents(0, 300, 3, &made).to_iter().flat_map(|e: Element| vec![e.clone(), e]);
            let rows = twice.window_pack(WindowPackOptions::new(RowSpec::new([("t", 12)])).window(20));
            let rows = rows.batch_with(4, Remainder::Drop);
            let keys = Stale(41, Key::Elements(count), vec![8; count as usize]);
            let loader = rows.loader().part(Part::of(index, 2)).keys(keys).build().unwrap();
            errors.extend(loader.filter_map(Result::err));
        }
        assert!(!errors.is_empty(), "{count}");
        for error in errors {
            assert_eq!(error.message(), "the keys are stale: it became 2 elements, which is not the number in its key");
        }
    }
}

#[test]
fn pieces_of_pieces_are_planned_as_they_are_made() {
    let made = Made::default();
    let cut = |e: Element| {
        let tokens = e.array("t").unwrap().as_slice::<i32>().unwrap().to_vec();
        let piece = |tokens: &[i32]| Element::new().with("t", Array::from_vec(tokens.to_vec()));
        tokens.chunks(3).map(piece).collect::<Vec<_>>()
    };
    let numbered = |e: Element| {
        let tokens = e.array("t").unwrap().as_slice::<i32>().unwrap().to_vec();
        let piece =
            |k: usize| Element::new().with("t", Array::from_vec(vec![tokens[0] * 10 + k as i32; tokens.len() + k]));
        (0..tokens.len()).map(piece).collect::<Vec<_>>()
    };
    let twice = documents(0, 200, 3, &made).to_iter().flat_map(cut).window_shuffle(20, 5).flat_map(numbered);
    let rows = twice.window_pack(WindowPackOptions::new(RowSpec::new([("t", 12)])).window(20));
    let ds = rows.batch_with(4, Remainder::Drop).boxed();
    for index in 0..2 {
        let rows = |keys: bool| -> Vec<Element> {
            let host = Host::start(&ds, Part::of(index, 2), keys, Executor::Inline, None);
            host.loader.map(Result::unwrap).collect()
        };
        assert_eq!(rows(true), rows(false));
    }
}

#[test]
fn rows_that_were_planned_ahead_are_forgotten_when_a_host_goes_back() {
    let ds = packed(&Made::default());
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let start = || Host::start(&ds, Part::of(0, 2), true, executor, None).loader;
        let all: Vec<Element> = start().map(Result::unwrap).collect();
        let mut loader = start();
        assert_eq!(loader.by_ref().take(3).map(Result::unwrap).collect::<Vec<_>>(), all[..3]);
        loader.back(2).unwrap();
        assert_eq!(loader.map(Result::unwrap).collect::<Vec<_>>(), all[1..]);
    }
}

/// A key of one host says that a record is dropped: nobody makes that element, and from there on its rows are others.
#[test]
fn a_host_with_another_key_is_found_within_256_batches() {
    let exchange = InMemory::new();
    let host = |index: usize| {
        let made = Made::default();
        let kept = documents(0, 40_000, 3, &made).to_iter().filter(|e| id(e) % 3 != 0);
        let rows = kept.window_pack(WindowPackOptions::new(RowSpec::new([("t", 12)])).window(20));
        let builder = rows.batch_with(BATCH, Remainder::Drop).boxed().loader().part(Part::of(index, 3));
        let key = Stale(if index == 1 { 4001 } else { 4002 }, Key::Elements(0), Vec::new());
        let mut loader = builder.keys(key).guard(exchange.clone()).build().unwrap();
        let error = loader.by_ref().find_map(Result::err).expect("hosts disagree");
        (error.to_string(), loader.delivered())
    };
    let told: Vec<(String, u64)> = std::thread::scope(|scope| {
        let host = &host;
        let hosts: Vec<_> = (0..3).map(|index| scope.spawn(move || host(index))).collect();
        hosts.into_iter().map(|host| host.join().unwrap()).collect()
    });
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    let (error, batches) = &told[0];
    assert!(
        error.starts_with("hosts disagree: batch ") && error.ends_with("differs between hosts 0 and 2 and host 1"),
        "{error}"
    );
    let first: u64 = error.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(*batches <= first + 256, "{first} is found at {batches}");
}
