//! What plans save: rows that are dealt by what they cost go to whom they would go if each host had made all of them, and each host makes its
//! own alone; of an element that is cut over several rows or yields several, one evaluation serves all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill::dataset::Remainder;
use gristmill::dataset::map::Range;
use gristmill::keys::{Key, KeySource, Keyed, Keys};
use gristmill::pack::{BinPackOptions, ConcatPackOptions, OutputNames, OverLong, Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Balance, Cost, Deal, Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, BoxMap, Element, Error, Executor, FailedElements, Loader, Result};
use proptest::prelude::*;

const BATCH: usize = 24;
const RECORDS: i64 = 1200;
const EXECUTORS: [Executor; 2] = [Executor::Inline, Executor::Threads(2)];

fn len(x: i64) -> usize {
    (x * 5 % 11) as usize
}

/// Counts of elements that were made.
type Made = Arc<AtomicU64>;

/// Sequences of 0 to 10 tokens, and of patches for every second of those; `made` counts them. Those that are `bad` fail.
fn documents(made: &Made, bad: i64) -> BoxMap<Element> {
    let made = made.clone();
    let document = move |x: i64| {
        made.fetch_add(1, Ordering::Relaxed);
        if bad > 0 && x % bad == 1 {
            return Err(Error::data("bad"));
        }
        let array = |len: usize| Array::from_vec(vec![x as i32 + 1; len]);
        Ok(Element::new().with("t", array(len(x))).with("p", array(len(x) / 2)).with("id", Array::scalar(x)))
    };
    Range::new(0, RECORDS).shuffle(3).try_map(document).boxed()
}

/// Keys that take no evaluation.
#[derive(Debug)]
struct Known;

impl KeySource for Known {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        Ok(Some(Arc::new(Lens(keyed.names().to_vec()))))
    }
}

struct Lens(Vec<String>);

impl Keys for Lens {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let len = len(record as i64) as u32;
        lens.extend(self.0.iter().map(|name| if name == "t" { len } else { len / 2 }));
        Ok(Key::Elements(1))
    }
}

#[derive(Clone, Copy, Debug)]
enum Rows {
    FirstFit,
    BestFit,
    Window,
    Concat,
    Aligned,
    Targets,
}

const ROWS: [Rows; 6] = [Rows::FirstFit, Rows::BestFit, Rows::Window, Rows::Concat, Rows::Aligned, Rows::Targets];

fn rows(rows: Rows, made: &Made, bad: i64) -> BoxIter<Element> {
    let ds = documents(made, bad).to_iter();
    let one = || RowSpec::new([("t", 8)]);
    let two = || RowSpec::new([("t", 16), ("p", 9)]);
    let split = |spec| BinPackOptions::new(spec, 9).over_long(OverLong::Split);
    let window = |spec| WindowPackOptions::new(spec).window(40).over_long(OverLong::Split);
    match rows {
        Rows::FirstFit => ds.first_fit_pack(split(one().meta_features(["id"]))).boxed(),
        Rows::BestFit => ds.best_fit_pack(split(two())).boxed(),
        Rows::Window => ds.window_shuffle(30, 1).window_pack(window(two())).boxed(),
        Rows::Concat => ds.concat_then_split_pack(ConcatPackOptions::new(two())).boxed(),
        Rows::Aligned => ds.window_pack(window(two().align("t", 4))).boxed(),
        Rows::Targets => ds.window_pack(window(one().names(OutputNames::MaxText))).boxed(),
    }
}

/// The column that costs of these rows are read from in another way than by what ends like it.
fn second(rows: Rows) -> &'static str {
    match rows {
        Rows::FirstFit => "t_segment_ids",
        Rows::Targets => "targets_segmentation",
        _ => "p_segment_ids",
    }
}

struct Host {
    loader: Loader<BoxIter<Element>>,
    digest: RowDigest,
    /// The numbers of the rows of each batch.
    rows: Vec<Vec<usize>>,
}

impl Host {
    fn start(ds: &BoxIter<Element>, part: Part, deal: &Deal, keys: bool, executor: Executor) -> Self {
        let builder = ds.clone().loader().part(part).deal(deal.clone()).executor(executor);
        let builder = builder.on_failed_element(FailedElements::pad());
        let builder = if keys { builder.keys(Known) } else { builder };
        Self { loader: builder.build().unwrap(), digest: RowDigest::default(), rows: Vec::new() }
    }

    /// Takes so many batches in, or all there are.
    fn take(&mut self, batches: usize) {
        for _ in 0..batches {
            let Some(batch) = self.loader.next() else { return };
            let rows = self.loader.rows().unwrap();
            self.digest.add_batch(self.loader.delivered() - 1, rows, &batch.unwrap());
            self.rows.push(rows.iter().collect());
        }
    }

    fn all(mut self) -> Self {
        self.take(usize::MAX);
        self
    }
}

fn deals(rows: Rows, micro: usize) -> [Deal; 3] {
    let found = || Balance::new(Cost::attention(2, None, true)).micro(micro);
    let named = || Balance::new(Cost::new(3, 1).window(3).segments(second(rows))).micro(micro);
    [Deal::Balanced(found()), Deal::Balanced(named()), Deal::Shadow(found())]
}

#[test]
fn rows_are_dealt_by_the_plan_as_by_what_they_hold() {
    for kind in ROWS {
        let made = Made::default();
        let ds = rows(kind, &made, 0).batch_with(BATCH, Remainder::Drop).boxed();
        let whole = Host::start(&ds, Part::whole(), &Deal::Even, false, Executor::Inline).all();
        let total = made.swap(0, Ordering::Relaxed);
        for (deal, count, executor) in
            std::iter::zip(deals(kind, 2), [(4, Executor::Inline), (3, Executor::Threads(2)), (4, Executor::Inline)])
                .map(|(deal, (count, executor))| (deal, count, executor))
        {
            let mut sum = RowDigest::default();
            for index in 0..count {
                let part = || Part::of(index, count);
                let held = Host::start(&ds, part(), &deal, false, Executor::Inline).all();
                made.store(0, Ordering::Relaxed);
                let mut planned = Host::start(&ds, part(), &deal, true, executor).all();
                assert_eq!(planned.rows, held.rows, "{kind:?}, {deal:?}");
                assert_eq!(planned.digest, held.digest);
                let own = made.load(Ordering::Relaxed);
                assert!(own * count as u64 <= total * 14 / 10, "{kind:?}, {deal:?}: {own} of {total}");
                let mut held = held;
                let remarks = [&mut planned, &mut held].map(|host| host.loader.report().remarks.join("\n"));
                assert_eq!(remarks[0], remarks[1]);
                assert!(remarks[0].contains("a balanced deal "), "{remarks:?}");
                let text = planned.loader.report().execution.part.unwrap();
                assert!(text.contains("plans all rows from keys"), "{text}");
                sum.add(planned.digest);
            }
            assert_eq!(sum, whole.digest, "{kind:?}, {deal:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// Hosts that come and go, with elements that fail, and a last batch that is padded, with padding that costs something or not.
    #[test]
    fn hosts_that_come_and_go_deal_alike(
        kind in prop::sample::select(ROWS.to_vec()),
        which in 0usize..3,
        counts in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 4, 6]), 3),
        bad in prop::sample::select(vec![0i64, 7]),
        value in prop::sample::select(vec![0.0, 3.0]),
        threads in any::<bool>(),
    ) {
        let made = Made::default();
        let padding = || gristmill::dataset::iter::Padding { value, ..Default::default() };
        let whole = rows(kind, &made, 0).batch_masked_with(BATCH, padding()).boxed();
        let ds = rows(kind, &made, bad).batch_masked_with(BATCH, padding()).boxed();
        let deal = &deals(kind, 2)[which];
        let executor = if threads { Executor::Threads(2) } else { Executor::Inline };
        let alone = Host::start(&ds, Part::whole(), &Deal::Even, true, Executor::Inline).all();
        let mut sum = RowDigest::default();
        for index in 0..6 {
            let mut held = Host::start(&whole, Part::whole(), deal, false, Executor::Inline);
            let mut planned = Host::start(&ds, Part::whole(), deal, true, executor);
            for (at, &count) in counts.iter().enumerate() {
                let steps = if at + 1 == counts.len() { usize::MAX } else { 3 };
                let part = Part::of(index.min(count - 1), count);
                let before = planned.digest;
                held.loader.repart(part.clone()).unwrap();
                planned.loader.repart(part).unwrap();
                held.take(steps);
                planned.take(steps);
                if index >= count {
                    planned.digest = before;
                }
            }
            prop_assert_eq!(&planned.rows, &held.rows);
            sum.add(planned.digest);
        }
        prop_assert_eq!(sum, alone.digest);
    }
}

/// Costs that are in a column of lengths, or of ids that a function has made, are read from the rows, which all hosts make.
#[test]
fn costs_that_no_plan_says_are_read_from_the_rows() {
    let made = Made::default();
    let packed = || rows(Rows::Window, &made, 0);
    let cost = |cost| Deal::Balanced(Balance::new(cost));
    let meta = RowSpec::new([("t", 8), ("p", 16)]).meta_features(["p"]);
    let lengths = documents(&made, 0).to_iter().first_fit_pack(BinPackOptions::new(meta, 9).over_long(OverLong::Split));
    for (ds, deal) in [
        (packed().batch(BATCH).boxed(), cost(Cost::new(1, 1).lengths("t_positions"))),
        (packed().batch(BATCH).boxed(), cost(Cost::new(1, 1).segments("t"))),
        (lengths.batch(BATCH).boxed(), cost(Cost::column("p"))),
        (IterDatasetExt::try_map(packed(), Ok).batch(BATCH).boxed(), cost(Cost::new(1, 1))),
    ] {
        let take = |keys: bool| {
            let mut host = Host::start(&ds, Part::of(1, 2), &deal, keys, Executor::Inline);
            host.take(5);
            host
        };
        let (held, mut planned) = (take(false), take(true));
        assert_eq!((planned.rows, planned.digest), (held.rows, held.digest));
        let text = planned.loader.report().execution.part.unwrap();
        assert!(text.contains("evaluates all elements and takes its rows"), "{text}");
        assert!(text.ends_with("; rows are dealt by costs that keys do not contain"), "{text}");
    }
    // Indices say which elements are a row, and nothing of their lengths.
    let ds = documents(&made, 0).to_iter().map(|e| Element::new().with("id", e.array("id").unwrap().clone())).batch(4);
    let mut host = ds.loader().part(Part::of(1, 2)).deal(cost(Cost::column("id"))).build().unwrap();
    let batch = host.next().unwrap().unwrap();
    let text = host.report().execution.part.unwrap();
    assert!(text.ends_with("takes its rows: rows are dealt by cost"), "{text}");
    assert_eq!(batch.num_rows().unwrap(), 2);
    let short = packed().batch(10).boxed().loader().part(Part::of(1, 4)).deal(cost(Cost::new(1, 1))).keys(Known);
    let error = short.build().and_then(|mut loader| loader.next().transpose()).unwrap_err();
    assert!(error.message().contains("a global batch of 10 rows does not divide among 4 "), "{error}");
}

/// Makes the elements of a part, and counts the evaluations.
fn evaluations(ds: &BoxIter<Element>, made: &Made, executor: Executor, keys: impl KeySource + 'static) -> u64 {
    let mut loader = ds.clone().loader().part(Part::whole()).keys(keys).executor(executor).build().unwrap();
    made.store(0, Ordering::Relaxed);
    loader.by_ref().for_each(|batch| drop(batch.unwrap()));
    made.load(Ordering::Relaxed)
}

#[test]
fn an_element_that_is_cut_over_rows_is_evaluated_once() {
    let made = Made::default();
    let one = || RowSpec::new([("t", 3)]);
    let ds = || documents(&made, 0).to_iter();
    let bins = BinPackOptions::new(one(), 5).over_long(OverLong::Split).shuffle_bins(false);
    let window = WindowPackOptions::new(one()).window(6).over_long(OverLong::Split);
    let concat = || ds().concat_then_split_pack(ConcatPackOptions::new(one())).boxed();
    // Rows that share an element follow one another only where they are cut one behind the other; and inline, no more than a batch is planned.
    for (rows, any_batch) in
        [(concat(), true), (ds().first_fit_pack(bins).boxed(), false), (ds().window_pack(window).boxed(), false)]
    {
        for (executor, batch) in EXECUTORS.into_iter().flat_map(|executor| [(executor, 1), (executor, 7)]) {
            let ds = rows.clone().batch(batch).boxed();
            let expected: Vec<Element> = ds.clone().loader().build().unwrap().collect::<Result<_>>().unwrap();
            let planned = ds.clone().loader().part(Part::whole()).keys(Known).executor(executor).build().unwrap();
            assert!(planned.map(Result::unwrap).eq(expected));
            let evaluated = evaluations(&ds, &made, executor, Known);
            let most = if any_batch || executor != Executor::Inline { RECORDS } else { 2 * RECORDS };
            assert!(evaluated <= most as u64, "{ds:?}, batches of {batch}, {executor}: {evaluated}");
        }
    }
}

#[test]
fn a_record_whose_pieces_are_shuffled_is_evaluated_once() {
    #[derive(Debug)]
    struct Three;
    impl KeySource for Three {
        fn find(&self, _: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
            Ok(Some(Arc::new(Three)))
        }
    }
    impl Keys for Three {
        fn key(&self, _: u64, _: &mut Vec<u32>) -> Result<Key> {
            Ok(Key::Elements(3))
        }
    }
    let made = Made::default();
    for window in [1, 12, 40] {
        let ds = documents(&made, 0)
            .to_iter()
            .flat_map(|e| (0..3i64).map(move |k| e.clone().with("k", Array::scalar(k))).collect::<Vec<_>>())
            .window_shuffle(window, 1);
        let ds = IterDatasetExt::try_map(ds, |e| Ok(Element::new().with("k", e.array("k")?.clone()))).batch(64).boxed();
        let expected: Vec<Element> = ds.clone().loader().build().unwrap().collect::<Result<_>>().unwrap();
        for executor in EXECUTORS {
            let builder = ds.clone().loader().part(Part::whole()).keys(Three).executor(executor);
            assert!(builder.build().unwrap().map(Result::unwrap).eq(expected.iter().cloned()));
            let evaluated = evaluations(&ds, &made, executor, Three);
            // Inline, a batch is planned at a time.
            let most = if executor == Executor::Inline && window > 1 { 3 * RECORDS / 2 } else { RECORDS };
            assert!(evaluated <= most as u64, "window {window}, {executor}: {evaluated}");
        }
    }
}
