//! What every pipeline keeps, over random pipelines of all stages: each is run by every executor, and restored from its
//! states, also in chains. Streams run beside a twin made of plain vectors; datasets of random access beside their own
//! elements, asked for one by one.

#[path = "../src/dataset/iter/laws.rs"]
mod laws;

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::{ZipLength, interleave, interleave_from, mix, zip_all};
use gristmill::dataset::map::{Concatenate, Mix, Range, Source};
use gristmill::rng::{DEFAULT_ROUNDS, PhiloxKey, permutation};
use gristmill::{Array, BoxIter, BoxMap, Element, IterDataset, MapDataset, Stage};
use proptest::prelude::*;

/// Long enough for every boundary, short enough to restore everywhere.
const LONGEST: u64 = 150;

/// A stage of random access.
#[derive(Clone, Debug)]
enum MapOp {
    Add(i64),
    Keep(i64),
    Shuffle(u32),
    Window(u64, u32),
    Slice(i64, i64),
    Shard(u64, u64),
    Repeat(u64, bool),
    Index,
    Draw(u32),
    Fan(usize),
    Concatenate(i64),
    Mix(i64, u32),
    Zip,
    Batch(usize, bool),
}

/// A stage in front of the border.
#[derive(Clone, Debug)]
enum Prefix {
    Add(i64),
    Keep(i64),
    Fan(usize),
}

/// A stage behind it.
#[derive(Clone, Debug)]
enum Op {
    Add(i64),
    Index,
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
    Mix(Vec<Pipe>, Vec<u32>),
}

#[derive(Clone, Debug)]
struct Pipe {
    len: i64,
    map: Vec<MapOp>,
    prefix: Vec<Prefix>,
    ops: Vec<Op>,
}

fn fan(x: i64, most: usize) -> Vec<i64> {
    (0..x.rem_euclid(most as i64 + 1)).map(|i| x.wrapping_mul(3).wrapping_add(i)).collect()
}

fn kept(x: i64, modulus: i64) -> bool {
    x.rem_euclid(modulus) != 0
}

fn remainder(drop: bool) -> Remainder {
    if drop { Remainder::Drop } else { Remainder::Keep }
}

impl Pipe {
    /// The pipeline, and what it must yield.
    fn build(&self) -> (BoxIter<i64>, Vec<i64>) {
        let start = short(self.source());
        self.ops.iter().fold(start, |(ds, twin), op| short(op.apply(ds, twin)))
    }

    /// As long as nothing fans out the prefix is a `Stream`, from then on a `FanStream`.
    fn source(&self) -> (BoxIter<i64>, Vec<i64>) {
        let range = Range::new(0, self.len).boxed();
        let mut map = self.map.iter().fold(range, |map, op| op.apply(map));
        let mut twin = map.collect().expect("elements one by one");
        let mut stages = self.prefix.iter();
        for stage in stages.by_ref() {
            stage.twin(&mut twin);
            map = match *stage {
                Prefix::Add(k) => map.map(move |x| x.wrapping_add(k)).boxed(),
                Prefix::Keep(m) => map.filter(move |x| kept(*x, m)).boxed(),
                Prefix::Fan(most) => {
                    return (fanned(map.to_iter().flat_map(move |x| fan(x, most)), stages, &mut twin), twin);
                }
            };
        }
        (map.to_iter().boxed(), twin)
    }
}

fn short((ds, mut twin): (BoxIter<i64>, Vec<i64>)) -> (BoxIter<i64>, Vec<i64>) {
    twin.truncate(LONGEST as usize);
    (ds.limit(LONGEST).boxed(), twin)
}

impl MapOp {
    fn apply(&self, ds: BoxMap<i64>) -> BoxMap<i64> {
        let len = ds.len();
        match *self {
            // Nothing can be made of nothing, and enough is enough.
            _ if len == 0 || len > 4 * LONGEST => ds,
            Self::Add(k) => ds.map(move |x| x.wrapping_add(k)).boxed(),
            Self::Keep(m) => ds.filter(move |x| kept(*x, m)).boxed(),
            Self::Shuffle(seed) => ds.shuffle(seed).boxed(),
            Self::Window(size, seed) => ds.window_shuffle(size, seed).boxed(),
            Self::Slice(start, step) => ds.slice_step(start.min(len as i64 - 1).., step).boxed(),
            Self::Shard(index, count) => ds.shard(index % count, count).boxed(),
            Self::Repeat(epochs, reseed) => ds.repeat(epochs).reseed_each_epoch(reseed).boxed(),
            Self::Index => ds.map_with_index(|i, x| x ^ (i.global + i.epoch) as i64).boxed(),
            Self::Draw(seed) => ds.random_map(seed, |x, rng| x ^ rng.random_raw() as i64).boxed(),
            Self::Fan(most) => ds.flat_map(most, move |x| fan(x, most)).boxed(),
            Self::Concatenate(other) => Concatenate::new(vec![ds, Range::new(0, other).boxed()]).boxed(),
            Self::Mix(other, weight) => {
                Mix::new(vec![ds, Range::new(0, other + 1).boxed()]).weights([1.0, f64::from(weight)]).boxed()
            }
            Self::Zip => {
                let other = Range::new(0, len as i64).map(|x| x * x);
                ds.zip(other).map(|(a, b)| a.wrapping_mul(31) ^ b).boxed()
            }
            // Batches of random access have fixed places, which nothing may drop.
            Self::Batch(..) if (&ds as &dyn Stage).may_drop() => ds,
            Self::Batch(size, drop) => {
                ds.batch_with_fn(size, remainder(drop), |items: Vec<i64>| Ok(digest(&items))).boxed()
            }
        }
    }
}

/// One number that depends on the elements and on their order.
fn digest(items: &[i64]) -> i64 {
    items.iter().fold(7, |sum, x| sum.wrapping_mul(31).wrapping_add(*x))
}

/// The rest of a prefix behind its first fan-out.
fn fanned<'a, D>(
    ds: gristmill::dataset::iter::FanStream<D>,
    rest: impl Iterator<Item = &'a Prefix>,
    twin: &mut Vec<i64>,
) -> BoxIter<i64>
where
    D: MapDataset<Item = Vec<i64>> + 'static,
{
    let rest: Vec<Prefix> = rest.cloned().collect();
    rest.iter().for_each(|stage| stage.twin(twin));
    match rest.as_slice() {
        [] => ds.boxed(),
        [Prefix::Add(k)] => ds
            .map({
                let k = *k;
                move |x| x.wrapping_add(k)
            })
            .boxed(),
        [Prefix::Keep(m)] => ds
            .filter({
                let m = *m;
                move |x| kept(*x, m)
            })
            .boxed(),
        // Several at once are one flat_map each: what they are is not what is tested here.
        several => {
            let several = several.to_vec();
            ds.flat_map(move |x| {
                let mut pieces = vec![x];
                several.iter().for_each(|stage| stage.twin(&mut pieces));
                pieces
            })
            .boxed()
        }
    }
}

impl Prefix {
    fn twin(&self, items: &mut Vec<i64>) {
        *items = match *self {
            Self::Add(k) => items.iter().map(|x| x.wrapping_add(k)).collect(),
            Self::Keep(m) => items.iter().copied().filter(|x| kept(*x, m)).collect(),
            Self::Fan(most) => items.iter().flat_map(|x| fan(*x, most)).collect(),
        };
    }
}

impl Op {
    fn apply(&self, ds: BoxIter<i64>, twin: Vec<i64>) -> (BoxIter<i64>, Vec<i64>) {
        match self.clone() {
            Self::Add(k) => {
                (ds.map(move |x| Ok(x.wrapping_add(k))).boxed(), each(twin, |_, x| vec![x.wrapping_add(k)]))
            }
            Self::Index => {
                let ds = ds.map_with_index(|i, x| Ok(x.wrapping_add(i as i64))).boxed();
                (ds, each(twin, |i, x| vec![x.wrapping_add(i as i64)]))
            }
            Self::Draw(seed) => {
                let ds = ds.random_map(seed, |x, rng| Ok(x ^ rng.random_raw() as i64)).boxed();
                let key = PhiloxKey::from_seed(seed.into());
                (ds, each(twin, |i, x| vec![x ^ key.element(i as u64, 0).random_raw() as i64]))
            }
            Self::Keep(m) => {
                let twin = twin.into_iter().filter(|x| kept(*x, m)).collect();
                (ds.filter(move |x| kept(*x, m)).boxed(), twin)
            }
            Self::Fan(most) => (ds.flat_map(move |x| Ok(fan(x, most))).boxed(), each(twin, |_, x| fan(x, most))),
            Self::Shuffle(window, seed) => (ds.window_shuffle(window, seed).boxed(), shuffled(&twin, window, seed)),
            Self::Batch(size, drop) => {
                let ds = ds.batch_with(size, remainder(drop)).map(|batch| Ok(digest(&batch))).boxed();
                let full = |batch: &&[i64]| !drop || batch.len() == size;
                (ds, twin.chunks(size).filter(full).map(digest).collect())
            }
            Self::Rebatch(from, to, drop) => rebatched(ds, twin, from, to, drop),
            Self::Limit(n) => (ds.limit(n).boxed(), twin.into_iter().take(n as usize).collect()),
            Self::Epochs(n) if twin.is_empty() => (ds.repeat(Some(n.min(1))).boxed(), twin),
            Self::Epochs(n) => (ds.repeat(Some(n)).boxed(), twin.repeat(n as usize)),
            Self::Cache => (ds.cache().boxed(), twin),
            Self::Zip(other) => {
                let (other, others) = other.build();
                let ds = ds.zip_with(other, ZipLength::Shortest).map(|(a, b)| Ok(a ^ b)).boxed();
                (ds, twin.iter().zip(others).map(|(a, b)| a ^ b).collect())
            }
            Self::ZipAll(others) => {
                let (all, twins) = with_others(ds, twin, &others);
                let len = twins.iter().map(Vec::len).min().unwrap_or(0);
                let row = |i| digest(&twins.iter().map(|twin| twin[i]).collect::<Vec<_>>());
                let ds = zip_all(all, ZipLength::Shortest).map(|row| Ok(digest(&row))).boxed();
                (ds, (0..len).map(row).collect())
            }
            Self::Interleave(others, cycle) => {
                let (all, twins) = with_others(ds, twin, &others);
                (interleave(all, cycle).boxed(), rounds(twins, cycle))
            }
            // The stream so far is one of the lanes that are made on the way, by its number.
            Self::Lanes(lens, cycle) => {
                let lanes = Source::new(lens.clone()).map(|len| Range::new(len, 3 * len).to_iter().map(|x| x * x));
                let twins = lens.iter().map(|&len| (len..3 * len).map(|x| x * x).collect()).collect();
                let (all, lanes_twin) = (interleave_from(lanes, cycle).boxed(), rounds(twins, cycle));
                (interleave([ds, all], 2).boxed(), rounds(vec![twin, lanes_twin], 2))
            }
            Self::Mix(others, weights) => {
                let (all, twins) = with_others(ds, twin, &others);
                let weights: Vec<u32> = (0..all.len()).map(|i| weights[i % weights.len()]).collect();
                let shares: Vec<f64> = weights.iter().map(|w| f64::from(*w)).collect();
                (mix(all).weights(shares).boxed(), mixed(&twins, &weights))
            }
        }
    }
}

fn each(twin: Vec<i64>, f: impl Fn(usize, i64) -> Vec<i64>) -> Vec<i64> {
    twin.into_iter().enumerate().flat_map(|(i, x)| f(i, x)).collect()
}

fn with_others(ds: BoxIter<i64>, twin: Vec<i64>, others: &[Pipe]) -> (Vec<BoxIter<i64>>, Vec<Vec<i64>>) {
    std::iter::once((ds, twin)).chain(others.iter().map(Pipe::build)).unzip()
}

/// Through batches of arrays and back.
fn rebatched(ds: BoxIter<i64>, twin: Vec<i64>, from: usize, to: usize, drop: bool) -> (BoxIter<i64>, Vec<i64>) {
    let ds = ds.map(|x| Ok(Element::new().with("x", Array::scalar(x)))).batch(from).rebatch(to, remainder(drop));
    let ds = ds.flat_map(|batch| Ok(batch.array("x")?.as_slice::<i64>()?.to_vec())).boxed();
    let len = if drop { twin.len() - twin.len() % to } else { twin.len() };
    (ds, twin[..len].to_vec())
}

/// Windows of the published permutation, each from its end.
fn shuffled(twin: &[i64], window: usize, seed: u32) -> Vec<i64> {
    let one = |(number, items): (usize, &[i64])| {
        let order = permutation(items.len() as u32, seed.wrapping_add(number as u32), DEFAULT_ROUNDS).unwrap();
        order.into_iter().rev().map(|i| items[i as usize]).collect::<Vec<_>>()
    };
    twin.chunks(window).enumerate().flat_map(one).collect()
}

/// Interleaving, played with queues.
fn rounds(twins: Vec<Vec<i64>>, cycle: usize) -> Vec<i64> {
    let places = cycle.min(twins.len()).max(1);
    let mut waiting = twins.into_iter().map(Vec::into_iter);
    let mut open: Vec<Option<std::vec::IntoIter<i64>>> = (0..places).map(|_| None).collect();
    let mut out = Vec::new();
    for turn in 0.. {
        let place = &mut open[turn % places];
        if place.is_none() {
            *place = waiting.next();
        }
        match place.as_mut().map(Iterator::next) {
            Some(Some(x)) => out.push(x),
            Some(None) => *place = None,
            None if open.iter().all(Option::is_none) => break,
            None => {}
        }
    }
    out
}

/// Grain's proportions: of the first `k` elements, `ceil(k * w / (w + rest))` are of the first dataset, and so on with the rest.
fn mixed(twins: &[Vec<i64>], weights: &[u32]) -> Vec<i64> {
    let least = f64::from(*weights.iter().min().unwrap());
    let parts: Vec<u64> = weights.iter().map(|w| (f64::from(*w) * (100.0 / least)) as u64).collect();
    let counts = |mut k: u64| {
        let mut rest: u64 = parts.iter().sum();
        let mut counts = Vec::new();
        for part in &parts {
            let others = k * (rest - part) / rest;
            counts.push(k - others);
            (k, rest) = (others, rest - part);
        }
        counts
    };
    let mut out = Vec::new();
    for k in 0.. {
        let (before, after) = (counts(k), counts(k + 1));
        let from = (0..twins.len()).find(|&i| before[i] != after[i]).unwrap();
        match twins[from].get(before[from] as usize) {
            Some(x) => out.push(*x),
            None => break,
        }
    }
    out
}

fn prefix() -> impl Strategy<Value = Prefix> {
    prop_oneof![(-9i64..9).prop_map(Prefix::Add), (2i64..5).prop_map(Prefix::Keep), (1usize..4).prop_map(Prefix::Fan)]
}

fn op(inner: impl Strategy<Value = Pipe> + Clone + 'static) -> impl Strategy<Value = Op> {
    let others = prop::collection::vec(inner.clone(), 1..3);
    prop_oneof![
        (-9i64..9).prop_map(Op::Add),
        Just(Op::Index),
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
        (prop::collection::vec(0i64..6, 0..5), 1usize..4).prop_map(|(lens, cycle)| Op::Lanes(lens, cycle)),
        (others, prop::collection::vec(1u32..9, 1..3)).prop_map(|(others, weights)| Op::Mix(others, weights)),
    ]
}

fn map_op() -> impl Strategy<Value = MapOp> {
    prop_oneof![
        (-9i64..9).prop_map(MapOp::Add),
        (2i64..5).prop_map(MapOp::Keep),
        any::<u32>().prop_map(MapOp::Shuffle),
        (1u64..20, any::<u32>()).prop_map(|(size, seed)| MapOp::Window(size, seed)),
        (0i64..9, prop::sample::select(vec![-2, -1, 1, 2, 3])).prop_map(|(start, step)| MapOp::Slice(start, step)),
        (0u64..4, 1u64..4).prop_map(|(index, count)| MapOp::Shard(index, count)),
        (1u64..4, any::<bool>()).prop_map(|(epochs, reseed)| MapOp::Repeat(epochs, reseed)),
        Just(MapOp::Index),
        any::<u32>().prop_map(MapOp::Draw),
        (1usize..4).prop_map(MapOp::Fan),
        (0i64..30).prop_map(MapOp::Concatenate),
        (0i64..30, 1u32..9).prop_map(|(len, weight)| MapOp::Mix(len, weight)),
        Just(MapOp::Zip),
        (1usize..6, any::<bool>()).prop_map(|(size, drop)| MapOp::Batch(size, drop)),
    ]
}

fn source() -> impl Strategy<Value = (i64, Vec<MapOp>, Vec<Prefix>)> {
    (0i64..50, prop::collection::vec(map_op(), 0..4), prop::collection::vec(prefix(), 0..3))
}

fn pipe() -> impl Strategy<Value = Pipe> {
    let plain = source().prop_map(|(len, map, prefix)| Pipe { len, map, prefix, ops: Vec::new() });
    plain.prop_recursive(2, 8, 2, |inner| {
        (source(), prop::collection::vec(op(inner), 1..5)).prop_map(|((len, map, prefix), ops)| Pipe {
            len,
            map,
            prefix,
            ops,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 2000, ..ProptestConfig::default() })]
    #[test]
    fn every_pipeline_yields_what_its_twin_does_and_keeps_the_laws(pipe in pipe()) {
        let (ds, twin) = pipe.build();
        prop_assert_eq!(laws::check(&ds), twin);
    }
}
