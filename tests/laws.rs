//! What every pipeline keeps, over random pipelines of all stages: each is run beside a twin made of plain vectors, by
//! every executor, and restored from its states, also in chains.

#[path = "../src/dataset/iter/laws.rs"]
mod laws;

use gristmill::dataset::iter::{Remainder, ZipLength, interleave, interleave_from, mix, zip_all};
use gristmill::dataset::map::{Range, Source};
use gristmill::rng::{DEFAULT_ROUNDS, PhiloxKey, permutation};
use gristmill::{Array, BoxIter, Element, IterDataset, MapDataset};
use proptest::prelude::*;

/// Long enough for every boundary, short enough to restore everywhere.
const LONGEST: u64 = 150;

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
        let start = self.source();
        self.ops.iter().fold(start, |(ds, twin), op| {
            let (ds, mut twin) = op.apply(ds, twin);
            twin.truncate(LONGEST as usize);
            (ds.limit(LONGEST).boxed(), twin)
        })
    }

    /// As long as nothing fans out the prefix is a `Stream`, from then on a `FanStream`.
    fn source(&self) -> (BoxIter<i64>, Vec<i64>) {
        let mut twin: Vec<i64> = (0..self.len).collect();
        let mut map = Range::new(0, self.len).boxed();
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
                let ds = ds.batch_with(size, remainder(drop)).map(|b| Ok(b.iter().fold(7, |a, x| a ^ x))).boxed();
                let full = |b: &&[i64]| !drop || b.len() == size;
                (ds, twin.chunks(size).filter(full).map(|b| b.iter().fold(7, |a, x| a ^ x)).collect())
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
                let row = |i| twins.iter().fold(0i64, |sum, twin| sum.wrapping_mul(3).wrapping_add(twin[i]));
                let ds = zip_all(all, ZipLength::Shortest);
                (
                    ds.map(|row| Ok(row.iter().fold(0i64, |sum, x| sum.wrapping_mul(3).wrapping_add(*x)))).boxed(),
                    (0..len).map(row).collect(),
                )
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

fn pipe() -> impl Strategy<Value = Pipe> {
    let plain = (0i64..50, prop::collection::vec(prefix(), 0..3)).prop_map(|(len, prefix)| Pipe {
        len,
        prefix,
        ops: Vec::new(),
    });
    plain.prop_recursive(2, 8, 2, |inner| {
        (0i64..50, prop::collection::vec(prefix(), 0..3), prop::collection::vec(op(inner), 1..5))
            .prop_map(|(len, prefix, ops)| Pipe { len, prefix, ops })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 2000, ..ProptestConfig::default() })]
    #[test]
    fn every_pipeline_yields_what_its_twin_does_and_keeps_the_laws(pipe in pipe()) {
        let (ds, twin) = pipe.build();
        prop_assert_eq!(laws::check(&ds), twin);
    }
}
