//! What every pipeline keeps, over random pipelines of all stages: each is run by every executor, and restored from its
//! states, also in chains. Streams run beside a twin made of plain vectors; datasets of random access beside their own
//! elements, asked for one by one. Some fail on the way, on purpose: then at one place, in one way, whoever runs them.

#[expect(dead_code, reason = "unit tests use the rest")]
#[path = "../../src/dataset/iter/laws.rs"]
mod laws;
mod lazy;
mod sources;
mod twin;

use gristmill::dataset::iter::{FilterThresholds, ZipLength, interleave, interleave_from, lanes, mix, zip_all};
use gristmill::dataset::map::{Range, Source};
use gristmill::pack::{
    BatchSize, BinPackOptions, ConcatPackOptions, LengthBucketOptions, Packing, RowSpec, WindowPackOptions,
};
use gristmill::rng::PhiloxKey;
use gristmill::{Array, BoxIter, Element, Executor, IterDatasetExt, Load, MapDatasetExt};
use proptest::prelude::*;

use sources::{Sources, checked, digest, failure, fan, kept, raise, remainder, sources};
use twin::{Twin, epochs, mixed, rounds, shuffled, side_by_side, zipped};

/// Long enough for every boundary, short enough to restore everywhere.
const LONGEST: u64 = 150;

/// A stage behind it.
#[derive(Clone, Debug)]
enum Op {
    Add(i64),
    Index,
    Number,
    Skip(u64),
    Draw(u32),
    Keep(i64),
    Fan(usize),
    Shuffle(usize, u32),
    Batch(usize, bool),
    Rebatch(usize, usize, bool),
    Limit(u64),
    Epochs(u64),
    Cache,
    Zip(Pipe),
    ZipAll(Vec<Pipe>),
    Interleave(Vec<Pipe>, usize),
    Lanes(Vec<i64>, usize),
    Side(Vec<Pipe>, usize),
    Mix(Vec<Pipe>, Vec<u32>),
    Fail(i64, bool),
    /// Makes so many of each, and keeps one of so many of those.
    Sift(i64, i64, Option<f64>),
    /// One of the ways to pack, and the size of its bins, window or batches.
    Pack(usize, usize),
}

#[derive(Clone, Debug)]
struct Pipe {
    source: Sources,
    ops: Vec<Op>,
}

impl Pipe {
    /// The pipeline, and what it must yield.
    fn build(&self) -> (BoxIter<i64>, Twin) {
        let start = short(self.source.build());
        self.ops.iter().fold(start, |(ds, twin), op| short(op.apply(ds, twin)))
    }
}

fn short((ds, mut twin): (BoxIter<i64>, Twin)) -> (BoxIter<i64>, Twin) {
    twin.limit(LONGEST as usize);
    (ds.limit(LONGEST).boxed(), twin)
}

impl Op {
    fn apply(&self, ds: BoxIter<i64>, twin: Twin) -> (BoxIter<i64>, Twin) {
        match self.clone() {
            Self::Add(k) => (ds.map(move |x| x.wrapping_add(k)).boxed(), twin.each(|_, x| vec![x.wrapping_add(k)])),
            Self::Index => {
                let ds = ds.map_with_index(|i, x| x.wrapping_add(i as i64)).boxed();
                (ds, twin.each(|i, x| vec![x.wrapping_add(i as i64)]))
            }
            Self::Number => {
                let ds = ds.enumerate().map(|(i, x)| x ^ (i as i64) << 8).boxed();
                (ds, twin.each(|i, x| vec![x ^ (i as i64) << 8]))
            }
            Self::Skip(n) => {
                let items = twin.items.iter().skip(n as usize).copied().collect();
                (ds.skip(n).boxed(), Twin { items, ..twin })
            }
            Self::Draw(seed) => {
                let ds = ds.random_map(seed, |x, rng| x ^ rng.random_raw() as i64).boxed();
                let key = PhiloxKey::from_seed(seed.into());
                (ds, twin.each(|i, x| vec![x ^ key.element(i as u64, 0).random_raw() as i64]))
            }
            Self::Keep(m) => {
                (ds.filter(move |x| kept(*x, m)).boxed(), twin.each(|_, x| if kept(x, m) { vec![x] } else { vec![] }))
            }
            Self::Fan(most) => (ds.flat_map(move |x| fan(x, most)).boxed(), twin.each(|_, x| fan(x, most))),
            Self::Shuffle(window, seed) => (ds.window_shuffle(window, seed).boxed(), shuffled(twin, window, seed)),
            Self::Batch(size, drop) => {
                let ds = ds.batch_with(size, remainder(drop)).map(|batch| digest(&batch)).boxed();
                let items = twin.groups(size, drop).map(digest).collect();
                (ds, Twin { items, ..twin })
            }
            Self::Rebatch(from, to, drop) => rebatched(ds, twin, from, to, drop),
            Self::Limit(n) => {
                let mut twin = twin;
                twin.limit(n as usize);
                (ds.limit(n).boxed(), twin)
            }
            Self::Epochs(n) => (ds.repeat(Some(n)).boxed(), epochs(twin, n as usize)),
            Self::Cache => (ds.cache().boxed(), twin),
            Self::Zip(other) => {
                let (other, others) = other.build();
                let ds = ds.zip_with(other, ZipLength::Shortest).map(|(a, b)| a ^ b).boxed();
                (ds, zipped(&[twin, others], |row| row[0] ^ row[1]))
            }
            Self::ZipAll(others) => {
                let (all, twins) = with_others(ds, twin, &others);
                let ds = zip_all(all, ZipLength::Shortest).map(|row| digest(&row)).boxed();
                (ds, zipped(&twins, digest))
            }
            Self::Interleave(others, cycle) => {
                let (all, twins) = with_others(ds, twin, &others);
                (interleave(all, cycle).boxed(), rounds(&twins, cycle))
            }
            Self::Side(others, count) => {
                let (all, twins) = with_others(ds, twin, &others);
                (lanes(all, count).boxed(), side_by_side(&twins, count))
            }
            // The stream so far is one of the lanes that are made on the way, by its number.
            Self::Lanes(lens, cycle) => {
                let lanes = Source::new(lens.clone()).map(|len| Range::new(len, 3 * len).to_iter().map(|x| x * x));
                let lane = |&len: &i64| Twin { items: (len..3 * len).map(|x| x * x).collect(), error: None };
                let twins: Vec<Twin> = lens.iter().map(lane).collect();
                let all = interleave_from(lanes, cycle).boxed();
                (interleave([ds, all], 2).boxed(), rounds(&[twin, rounds(&twins, cycle)], 2))
            }
            Self::Mix(others, weights) => {
                let (all, twins) = with_others(ds, twin, &others);
                let weights: Vec<u32> = (0..all.len()).map(|i| weights[i % weights.len()]).collect();
                let shares: Vec<f64> = weights.iter().map(|w| f64::from(*w)).collect();
                (mix(all).weights(shares).boxed(), mixed(&twins, &weights))
            }
            Self::Fail(m, data) => {
                (ds.try_map(move |x| checked(x, m, data)).boxed(), twin.try_each(|x| checked(x, m, data)))
            }
            Self::Sift(copies, m, raise) => {
                let many = move |x: i64| (0..copies).map(move |i| x.wrapping_mul(copies).wrapping_add(i));
                let thresholds = FilterThresholds { warn: None, raise };
                let ds = ds.flat_map(move |x| many(x).collect::<Vec<_>>());
                let ds = ds.filter_with(move |x| !kept(*x, m), thresholds).boxed();
                (ds, twin.each(|_, x| many(x).collect()).sift(|x| !kept(x, m), raise))
            }
            Self::Pack(way, size) => packed(ds, way, size),
        }
    }
}

fn with_others(ds: BoxIter<i64>, twin: Twin, others: &[Pipe]) -> (Vec<BoxIter<i64>>, Vec<Twin>) {
    std::iter::once((ds, twin)).chain(others.iter().map(Pipe::build)).unzip()
}

/// Through batches of arrays and back.
fn rebatched(ds: BoxIter<i64>, twin: Twin, from: usize, to: usize, drop: bool) -> (BoxIter<i64>, Twin) {
    let ds = ds.map(|x| Element::new().with("x", Array::scalar(x))).batch(from).rebatch(to, remainder(drop));
    let ds = ds.try_flat_map(|batch| Ok(batch.array("x")?.as_slice::<i64>()?.to_vec())).boxed();
    let batched = Twin { items: twin.groups(from, false).flatten().copied().collect(), ..twin };
    let items = batched.groups(to, drop).flatten().copied().collect();
    (ds, Twin { items, ..batched })
}

/// Rows of eight, made of sequences of up to seven. What packing makes of them is tested beside it: here a first pass is
/// the twin of all others.
fn packed(ds: BoxIter<i64>, way: usize, size: usize) -> (BoxIter<i64>, Twin) {
    let sequence = |x: i64| Element::new().with("t", Array::from_vec(vec![x as i32; x.rem_euclid(8) as usize]));
    let (ds, rows) = (ds.map(sequence), || RowSpec::new([("t", 8)]));
    let rows = match way {
        0 => ds.first_fit_pack(BinPackOptions::new(rows(), size)).boxed(),
        1 => ds.best_fit_pack(BinPackOptions::new(rows(), size)).boxed(),
        2 => ds.concat_then_split_pack(ConcatPackOptions::new(rows())).boxed(),
        3 => ds.window_pack(WindowPackOptions::new(rows()).window(4 * size)).boxed(),
        _ => ds.length_buckets(LengthBucketOptions::new(["t"], [2, 4, 8], BatchSize::Fixed(size))).boxed(),
    };
    let sum =
        |row: Element| Ok(digest(&row.array("t")?.as_slice::<i32>()?.iter().map(|&x| x.into()).collect::<Vec<_>>()));
    let ds = rows.try_map(sum).boxed();
    let mut twin = Twin { items: Vec::new(), error: None };
    for next in ds.clone().loader().build().unwrap() {
        match next {
            Ok(item) => twin.items.push(item),
            // Stages have other numbers in the whole pipeline.
            Err(error) => twin.error = error.message().rsplit(": ").next().map(str::to_owned),
        }
    }
    (ds, twin)
}

fn op(inner: impl Strategy<Value = Pipe> + Clone + 'static) -> impl Strategy<Value = Op> {
    let others = prop::collection::vec(inner.clone(), 1..3);
    prop_oneof![
        (-9i64..9).prop_map(Op::Add),
        Just(Op::Index),
        Just(Op::Number),
        (0u64..40).prop_map(Op::Skip),
        any::<u32>().prop_map(Op::Draw),
        (2i64..5).prop_map(Op::Keep),
        (1usize..4).prop_map(Op::Fan),
        (1usize..20, any::<u32>()).prop_map(|(window, seed)| Op::Shuffle(window, seed)),
        (1usize..6, any::<bool>()).prop_map(|(size, drop)| Op::Batch(size, drop)),
        (1usize..7, 1usize..7, any::<bool>()).prop_map(|(from, to, drop)| Op::Rebatch(from, to, drop)),
        (1u64..60).prop_map(Op::Limit),
        (1u64..4).prop_map(Op::Epochs),
        Just(Op::Cache),
        inner.prop_map(Op::Zip),
        others.clone().prop_map(Op::ZipAll),
        (others.clone(), 1usize..4).prop_map(|(others, cycle)| Op::Interleave(others, cycle)),
        (others.clone(), 1usize..4).prop_map(|(others, count)| Op::Side(others, count)),
        (prop::collection::vec(0i64..6, 0..5), 1usize..4).prop_map(|(lens, cycle)| Op::Lanes(lens, cycle)),
        (others, prop::collection::vec(1u32..9, 1..3)).prop_map(|(others, weights)| Op::Mix(others, weights)),
        failure().prop_map(|(m, data)| Op::Fail(m, data)),
        (10i64..30, 5i64..30, raise()).prop_map(|(copies, m, raise)| Op::Sift(copies, m, raise)),
        (0usize..5, 1usize..9).prop_map(|(way, size)| Op::Pack(way, size)),
    ]
}

fn pipe() -> impl Strategy<Value = Pipe> {
    let plain = sources().prop_map(|source| Pipe { source, ops: Vec::new() });
    plain.prop_recursive(2, 8, 2, |inner| {
        (sources(), prop::collection::vec(op(inner), 1..5)).prop_map(|(source, ops)| Pipe { source, ops })
    })
}

/// What a loader delivers, how it ends, and its state then.
fn loaded(ds: &BoxIter<i64>, executor: Executor) -> (Vec<i64>, Option<String>, String) {
    let mut loader = ds.clone().loader().executor(executor).build().unwrap();
    let (mut items, mut error) = (Vec::new(), None);
    for next in loader.by_ref() {
        match next {
            Ok(item) => items.push(item),
            Err(e) => error = Some(format!("{e:?}")),
        }
    }
    assert!(loader.next().is_none(), "the end is the end");
    let state = serde_json::to_string(&loader.state().unwrap()).unwrap();
    (items, error, state)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 2000, ..ProptestConfig::default() })]
    #[test]
    fn every_pipeline_yields_what_its_twin_does_and_keeps_the_laws(pipe in pipe()) {
        let (ds, twin) = pipe.build();
        let (items, error) = laws::check_to_error(&ds);
        prop_assert_eq!(&items, &twin.items);
        let text = twin.error.as_deref();
        prop_assert!(error.is_some() == text.is_some(), "{:?}, expected {:?}", error, text);
        prop_assert!(error.iter().all(|e| e.contains(text.unwrap())), "{:?}, expected {:?}", error, text);
        let inline = loaded(&ds, Executor::Inline);
        prop_assert_eq!((&inline.0, &inline.1), (&items, &error));
        prop_assert_eq!(loaded(&ds, Executor::Threads(2)), inline);
    }
}
