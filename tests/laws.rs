//! What every pipeline keeps, over random pipelines of all stages: each is run by every executor, and restored from its
//! states, also in chains. Streams run beside a twin made of plain vectors; datasets of random access beside their own
//! elements, asked for one by one. Some fail on the way, on purpose: then at one place, in one way, whoever runs them.

#[expect(dead_code, reason = "unit tests use the rest")]
#[path = "../src/dataset/iter/laws.rs"]
mod laws;

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::{BadRecords, FilterThresholds, ZipLength, interleave, interleave_from, mix, zip_all};
use gristmill::dataset::map::{Concatenate, Mix, Range, Source};
use gristmill::rng::{DEFAULT_ROUNDS, PhiloxKey, permutation};
use gristmill::{
    Array, BoxIter, BoxMap, Cx, Element, Error, ErrorKind, Executor, IterDataset, MapDataset, Result, Stage,
};
use proptest::prelude::*;

/// Long enough for every boundary, short enough to restore everywhere.
const LONGEST: u64 = 150;
/// Elements that a filter is judged by.
const WINDOW: usize = 1000;

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
    Fail(i64, bool),
}

/// A stage in front of the border.
#[derive(Clone, Debug)]
enum Prefix {
    Add(i64),
    Keep(i64),
    /// Keeps one of so many.
    Sift(i64),
    Fan(usize),
    Fail(i64, bool),
}

/// What `to_iter` is told.
#[derive(Clone, Debug)]
struct Border {
    skip: Option<Option<u64>>,
    warn: Option<f64>,
    raise: Option<f64>,
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
    Fail(i64, bool),
    /// Makes so many of each, and keeps one of so many of those.
    Sift(i64, i64, Option<f64>),
}

#[derive(Clone, Debug)]
struct Pipe {
    source: Sources,
    ops: Vec<Op>,
}

#[derive(Clone, Debug)]
struct Sources {
    len: i64,
    map: Vec<MapOp>,
    prefix: Vec<Prefix>,
    border: Border,
}

/// What a stream yields, and what the error says that ends it, if one does.
#[derive(Clone, Debug)]
struct Twin {
    items: Vec<i64>,
    error: Option<String>,
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

/// Fails for one number of so many.
fn checked(x: i64, modulus: i64, data: bool) -> Result<i64> {
    match x.rem_euclid(modulus) {
        0 if data => Err(Error::data(format!("bad {x}"))),
        0 => Err(Error::new(ErrorKind::User, format!("broken {x}"))),
        _ => Ok(x),
    }
}

impl Pipe {
    /// The pipeline, and what it must yield.
    fn build(&self) -> (BoxIter<i64>, Twin) {
        let start = short(self.source.build());
        self.ops.iter().fold(start, |(ds, twin), op| short(op.apply(ds, twin)))
    }
}

impl Sources {
    /// As long as nothing fans out the prefix is a `Stream`, from then on a `FanStream`.
    fn build(&self) -> (BoxIter<i64>, Twin) {
        let mut map = self.map.iter().fold(Range::new(0, self.len).boxed(), |map, op| op.apply(map));
        let mut cx = Cx::default();
        let pieces = |slot: Option<i64>| slot.into_iter().collect::<Vec<_>>();
        let slots = (0..map.len()).map(|i| map.get(i, &mut cx).map(pieces)).collect::<Vec<_>>();
        let all = |slot: Result<Vec<i64>>| self.prefix.iter().try_fold(slot?, |pieces, stage| stage.run(pieces));
        let twin = self.border.pass(slots.into_iter().map(all));
        for (at, stage) in self.prefix.iter().enumerate() {
            map = match *stage {
                Prefix::Add(k) => map.map(move |x| x.wrapping_add(k)).boxed(),
                Prefix::Keep(m) => map.filter(move |x| kept(*x, m)).boxed(),
                Prefix::Sift(m) => map.filter(move |x| !kept(*x, m)).boxed(),
                Prefix::Fail(m, data) => map.try_map(move |x| checked(x, m, data)).boxed(),
                Prefix::Fan(most) => {
                    let stream = map.to_iter().flat_map(move |x| fan(x, most));
                    let stream = stream.on_bad_record(self.border.bad()).filter_thresholds(self.border.thresholds());
                    return (fanned(stream, &self.prefix[at + 1..]), twin);
                }
            };
        }
        let stream = map.to_iter().on_bad_record(self.border.bad()).filter_thresholds(self.border.thresholds());
        (stream.boxed(), twin)
    }
}

impl Border {
    fn bad(&self) -> BadRecords {
        self.skip.map_or(BadRecords::Error, |limit| BadRecords::Skip { limit })
    }

    fn thresholds(&self) -> FilterThresholds {
        FilterThresholds { warn: self.warn, raise: self.raise }
    }

    /// What becomes of the elements that come in, each of them pieces or an error.
    fn pass(&self, slots: impl Iterator<Item = Result<Vec<i64>>>) -> Twin {
        let (mut twin, mut skipped, mut dropped) = (Twin { items: Vec::new(), error: None }, 0, 0);
        for (i, slot) in slots.enumerate() {
            let mut failed = None;
            let pieces = slot.unwrap_or_else(|error| {
                match self.skip.filter(|_| error.kind() == ErrorKind::Data) {
                    Some(limit) if limit.is_none_or(|limit| skipped < limit) => skipped += 1,
                    Some(_) => failed = Some(format!("{}; {skipped} bad records were skipped", error.message())),
                    None => failed = Some(error.message().to_owned()),
                }
                Vec::new()
            });
            dropped += usize::from(pieces.is_empty());
            if (i + 1) % WINDOW == 0 && too_many(std::mem::take(&mut dropped), self.raise) {
                failed = Some(TOO_MANY.to_owned());
            }
            if failed.is_some() {
                return Twin { error: failed, ..twin };
            }
            twin.items.extend(pieces);
        }
        twin
    }
}

const TOO_MANY: &str = "elements were dropped, the limit is";

/// Whether so many of a window are too many.
fn too_many(dropped: usize, raise: Option<f64>) -> bool {
    raise.is_some_and(|limit| dropped as f64 / WINDOW as f64 >= limit)
}

fn short((ds, mut twin): (BoxIter<i64>, Twin)) -> (BoxIter<i64>, Twin) {
    twin.limit(LONGEST as usize);
    (ds.limit(LONGEST).boxed(), twin)
}

impl Twin {
    /// What lies behind is not read, even if it would fail.
    fn limit(&mut self, n: usize) {
        if self.items.len() >= n {
            self.items.truncate(n);
            self.error = None;
        }
    }

    /// Element `i`, nothing at the end, or the error.
    fn get(&self, i: usize) -> std::result::Result<Option<i64>, String> {
        match (self.items.get(i), &self.error) {
            (None, Some(error)) => Err(error.clone()),
            (item, _) => Ok(item.copied()),
        }
    }

    fn each(self, f: impl Fn(usize, i64) -> Vec<i64>) -> Self {
        let items = self.items.into_iter().enumerate().flat_map(|(i, x)| f(i, x)).collect();
        Self { items, ..self }
    }

    fn try_each(mut self, f: impl Fn(i64) -> Result<i64>) -> Self {
        if let Some((at, error)) = self.items.iter().enumerate().find_map(|(at, x)| Some((at, f(*x).err()?))) {
            self.items.truncate(at);
            self.error = Some(error.message().to_owned());
        }
        self
    }

    /// Groups of `size`; the last may be smaller, unless it is dropped or an error comes before its end.
    fn groups(&self, size: usize, drop: bool) -> impl Iterator<Item = &[i64]> {
        let whole = drop || self.error.is_some();
        self.items.chunks(size).filter(move |group| !whole || group.len() == size)
    }

    /// One of many, as long as not too many of a window are dropped.
    fn sift(self, modulus: i64, raise: Option<f64>) -> Self {
        let (mut items, mut dropped) = (Vec::new(), 0);
        for (i, &x) in self.items.iter().enumerate() {
            dropped += usize::from(kept(x, modulus));
            if (i + 1) % WINDOW == 0 && too_many(std::mem::take(&mut dropped), raise) {
                return Self { items, error: Some(TOO_MANY.to_owned()) };
            }
            items.extend(Some(x).filter(|x| !kept(*x, modulus)));
        }
        Self { items, ..self }
    }
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
            Self::Fail(m, data) => ds.try_map(move |x| checked(x, m, data)).boxed(),
        }
    }
}

/// One number that depends on the elements and on their order.
fn digest(items: &[i64]) -> i64 {
    items.iter().fold(7, |sum, x| sum.wrapping_mul(31).wrapping_add(*x))
}

/// The rest of a prefix behind its first fan-out.
fn fanned<D>(ds: gristmill::dataset::iter::FanStream<D>, rest: &[Prefix]) -> BoxIter<i64>
where
    D: MapDataset<Item = Vec<i64>> + 'static,
{
    match *rest {
        [] => ds.boxed(),
        [Prefix::Add(k)] => ds.map(move |x| x.wrapping_add(k)).boxed(),
        [Prefix::Keep(m)] => ds.filter(move |x| kept(*x, m)).boxed(),
        [Prefix::Fail(m, data)] => ds.try_map(move |x| checked(x, m, data)).boxed(),
        // Several at once are one flat_map each: what they are is not what is tested here.
        ref several => {
            let several = several.to_vec();
            ds.try_flat_map(move |x| several.iter().try_fold(vec![x], |pieces, stage| stage.run(pieces))).boxed()
        }
    }
}

impl Prefix {
    fn run(&self, pieces: Vec<i64>) -> Result<Vec<i64>> {
        let pieces = pieces.into_iter();
        Ok(match *self {
            Self::Add(k) => pieces.map(|x| x.wrapping_add(k)).collect(),
            Self::Keep(m) => pieces.filter(|x| kept(*x, m)).collect(),
            Self::Sift(m) => pieces.filter(|x| !kept(*x, m)).collect(),
            Self::Fan(most) => pieces.flat_map(|x| fan(x, most)).collect(),
            Self::Fail(m, data) => pieces.map(|x| checked(x, m, data)).collect::<Result<_>>()?,
        })
    }
}

impl Op {
    fn apply(&self, ds: BoxIter<i64>, twin: Twin) -> (BoxIter<i64>, Twin) {
        match self.clone() {
            Self::Add(k) => (ds.map(move |x| Ok(x.wrapping_add(k))).boxed(), twin.each(|_, x| vec![x.wrapping_add(k)])),
            Self::Index => {
                let ds = ds.map_with_index(|i, x| Ok(x.wrapping_add(i as i64))).boxed();
                (ds, twin.each(|i, x| vec![x.wrapping_add(i as i64)]))
            }
            Self::Draw(seed) => {
                let ds = ds.random_map(seed, |x, rng| Ok(x ^ rng.random_raw() as i64)).boxed();
                let key = PhiloxKey::from_seed(seed.into());
                (ds, twin.each(|i, x| vec![x ^ key.element(i as u64, 0).random_raw() as i64]))
            }
            Self::Keep(m) => {
                (ds.filter(move |x| kept(*x, m)).boxed(), twin.each(|_, x| if kept(x, m) { vec![x] } else { vec![] }))
            }
            Self::Fan(most) => (ds.flat_map(move |x| Ok(fan(x, most))).boxed(), twin.each(|_, x| fan(x, most))),
            Self::Shuffle(window, seed) => (ds.window_shuffle(window, seed).boxed(), shuffled(twin, window, seed)),
            Self::Batch(size, drop) => {
                let ds = ds.batch_with(size, remainder(drop)).map(|batch| Ok(digest(&batch))).boxed();
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
                let ds = ds.zip_with(other, ZipLength::Shortest).map(|(a, b)| Ok(a ^ b)).boxed();
                (ds, zipped(&[twin, others], |row| row[0] ^ row[1]))
            }
            Self::ZipAll(others) => {
                let (all, twins) = with_others(ds, twin, &others);
                let ds = zip_all(all, ZipLength::Shortest).map(|row| Ok(digest(&row))).boxed();
                (ds, zipped(&twins, digest))
            }
            Self::Interleave(others, cycle) => {
                let (all, twins) = with_others(ds, twin, &others);
                (interleave(all, cycle).boxed(), rounds(&twins, cycle))
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
                (ds.map(move |x| checked(x, m, data)).boxed(), twin.try_each(|x| checked(x, m, data)))
            }
            Self::Sift(copies, m, raise) => {
                let many = move |x: i64| (0..copies).map(move |i| x.wrapping_mul(copies).wrapping_add(i));
                let thresholds = FilterThresholds { warn: None, raise };
                let ds = ds.flat_map(move |x| Ok(many(x).collect::<Vec<_>>()));
                let ds = ds.filter_with(move |x| !kept(*x, m), thresholds).boxed();
                (ds, twin.each(|_, x| many(x).collect()).sift(m, raise))
            }
        }
    }
}

fn with_others(ds: BoxIter<i64>, twin: Twin, others: &[Pipe]) -> (Vec<BoxIter<i64>>, Vec<Twin>) {
    std::iter::once((ds, twin)).chain(others.iter().map(Pipe::build)).unzip()
}

/// Through batches of arrays and back.
fn rebatched(ds: BoxIter<i64>, twin: Twin, from: usize, to: usize, drop: bool) -> (BoxIter<i64>, Twin) {
    let ds = ds.map(|x| Ok(Element::new().with("x", Array::scalar(x)))).batch(from).rebatch(to, remainder(drop));
    let ds = ds.flat_map(|batch| Ok(batch.array("x")?.as_slice::<i64>()?.to_vec())).boxed();
    let batched = Twin { items: twin.groups(from, false).flatten().copied().collect(), ..twin };
    let items = batched.groups(to, drop).flatten().copied().collect();
    (ds, Twin { items, ..batched })
}

/// Nothing can be repeated once, but not more often: it would never end.
fn epochs(twin: Twin, n: usize) -> Twin {
    match twin {
        Twin { error: Some(_), .. } => twin,
        Twin { items, .. } if items.is_empty() && n > 1 => {
            Twin { items, error: Some("epoch 0 yielded no element".to_owned()) }
        }
        Twin { items, error } => Twin { items: items.repeat(n), error },
    }
}

/// Rows of one element of each. The first that fails says how it ends, unless one before it has come to its end.
fn zipped(twins: &[Twin], combined: impl Fn(&[i64]) -> i64) -> Twin {
    let mut items = Vec::new();
    loop {
        let (mut row, mut failed) = (Vec::new(), None);
        for twin in twins {
            match twin.get(items.len()) {
                Ok(Some(x)) => row.push(x),
                Ok(None) => break,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if row.len() < twins.len() {
            return Twin { items, error: failed };
        }
        items.push(combined(&row));
    }
}

/// Windows of the published permutation, each from its end.
fn shuffled(twin: Twin, window: usize, seed: u32) -> Twin {
    let one = |(number, items): (usize, &[i64])| {
        let order = permutation(items.len() as u32, seed.wrapping_add(number as u32), DEFAULT_ROUNDS).unwrap();
        order.into_iter().rev().map(|i| items[i as usize]).collect::<Vec<_>>()
    };
    let items = twin.groups(window, false).enumerate().flat_map(one).collect();
    Twin { items, ..twin }
}

/// Interleaving, played with queues.
fn rounds(twins: &[Twin], cycle: usize) -> Twin {
    let places = cycle.min(twins.len()).max(1);
    let mut waiting = twins.iter();
    let mut open: Vec<Option<(&Twin, usize)>> = vec![None; places];
    let mut items = Vec::new();
    for turn in 0.. {
        let place = &mut open[turn % places];
        *place = place.or_else(|| waiting.next().map(|twin| (twin, 0)));
        match place.map(|(twin, at)| twin.get(at)) {
            Some(Ok(Some(x))) => {
                items.push(x);
                *place = place.map(|(twin, at)| (twin, at + 1));
            }
            Some(Ok(None)) => *place = None,
            Some(Err(error)) => return Twin { items, error: Some(error) },
            None if open.iter().all(Option::is_none) => break,
            None => {}
        }
    }
    Twin { items, error: None }
}

/// Grain's proportions: of the first `k` elements, `ceil(k * w / (w + rest))` are of the first dataset, and so on with the rest.
fn mixed(twins: &[Twin], weights: &[u32]) -> Twin {
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
    let mut items = Vec::new();
    for k in 0.. {
        let (before, after) = (counts(k), counts(k + 1));
        let from = (0..twins.len()).find(|&i| before[i] != after[i]).unwrap();
        match twins[from].get(before[from] as usize) {
            Ok(Some(x)) => items.push(x),
            Ok(None) => break,
            Err(error) => return Twin { items, error: Some(error) },
        }
    }
    Twin { items, error: None }
}

fn prefix() -> impl Strategy<Value = Prefix> {
    prop_oneof![
        (-9i64..9).prop_map(Prefix::Add),
        (2i64..5).prop_map(Prefix::Keep),
        (1usize..4).prop_map(Prefix::Fan),
        failure().prop_map(|(m, data)| Prefix::Fail(m, data)),
    ]
}

/// Where it fails, and mostly because of the data.
fn failure() -> impl Strategy<Value = (i64, bool)> {
    (5i64..40, prop::bool::weighted(0.8))
}

fn raise() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(prop::sample::select(vec![0.5, 0.9, 0.95, 1.0]))
}

fn border() -> impl Strategy<Value = Border> {
    let skip = prop_oneof![Just(None), Just(Some(None)), (0u64..9).prop_map(|limit| Some(Some(limit)))];
    let warn = prop::option::of(Just(0.9));
    (skip, warn, raise()).prop_map(|(skip, warn, raise)| Border { skip, warn, raise })
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
        failure().prop_map(|(m, data)| Op::Fail(m, data)),
        (10i64..30, 5i64..30, raise()).prop_map(|(copies, m, raise)| Op::Sift(copies, m, raise)),
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
        failure().prop_map(|(m, data)| MapOp::Fail(m, data)),
    ]
}

/// Few elements and any stages; or many, of which most are dropped.
fn sources() -> impl Strategy<Value = Sources> {
    let few = (0i64..50, prop::collection::vec(map_op(), 0..4), prop::collection::vec(prefix(), 0..3), border());
    let few = few.prop_map(|(len, map, prefix, border)| Sources { len, map, prefix, border });
    let many = (900i64..2600, 9i64..30, prop::collection::vec(prefix(), 0..3), border());
    let many = many.prop_map(|(len, modulus, rest, border)| {
        let prefix = std::iter::once(Prefix::Sift(modulus)).chain(rest).collect();
        Sources { len, map: Vec::new(), prefix, border }
    });
    prop_oneof![4 => few, 1 => many]
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
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, ..ProptestConfig::default() })]
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
