//! Random pipelines up to the border: random access, then what `to_iter` is told and what runs in front of it.

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::{BadRecords, FanStream, FilterThresholds};
use gristmill::dataset::map::{Concatenate, Mix, Range, SplitSizes};
use gristmill::{BoxIter, BoxMap, Cx, Error, ErrorKind, IterDatasetExt, MapDataset, MapDatasetExt, Result, Stage};
use proptest::prelude::*;

use crate::twin::{TOO_MANY, Twin, WINDOW, too_many};

/// A dataset longer than this is left as it is.
const MOST: u64 = 600;

/// A stage of random access.
#[derive(Clone, Debug)]
enum MapOp {
    Add(i64),
    Keep(i64),
    Shuffle(u32),
    Window(u64, u32),
    Blocks(usize, u64, u32),
    Slice(i64, i64),
    Split(usize, u32, bool),
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

#[derive(Clone, Debug)]
pub(crate) struct Sources {
    len: i64,
    map: Vec<MapOp>,
    prefix: Vec<Prefix>,
    border: Border,
    /// Batches straight behind it, unless it fans out: of what size, and whether the remainder is dropped.
    batch: Option<(usize, bool)>,
}

pub(crate) fn fan(x: i64, most: usize) -> Vec<i64> {
    (0..x.rem_euclid(most as i64 + 1)).map(|i| x.wrapping_mul(3).wrapping_add(i)).collect()
}

pub(crate) fn kept(x: i64, modulus: i64) -> bool {
    x.rem_euclid(modulus) != 0
}

pub(crate) fn remainder(drop: bool) -> Remainder {
    if drop { Remainder::Drop } else { Remainder::Keep }
}

/// Fails for one number of so many.
pub(crate) fn checked(x: i64, modulus: i64, data: bool) -> Result<i64> {
    match x.rem_euclid(modulus) {
        0 if data => Err(Error::data(format!("bad {x}"))),
        0 => Err(Error::new(ErrorKind::User, format!("broken {x}"))),
        _ => Ok(x),
    }
}

impl Sources {
    /// As long as nothing fans out the prefix is a `Stream`, from then on a `FanStream`.
    pub(crate) fn build(&self) -> (BoxIter<i64>, Twin) {
        let mut map = self.map.iter().fold(Range::new(0, self.len).boxed(), |map, op| op.apply(map));
        alike(&map);
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
        match self.batch {
            None => (stream.boxed(), twin),
            Some((size, drop)) => {
                let ds = stream.batch_with_fn(size, remainder(drop), |items| Ok(digest(&items))).boxed();
                let items = twin.groups(size, drop).map(digest).collect();
                (ds, Twin { items, ..twin })
            }
        }
    }
}

/// What indices give together is what each of them gives alone: in order and in any other, of later epochs, twice.
fn alike(ds: &BoxMap<i64>) {
    let len = ds.len();
    let spread = (0..len + 9).map(|i| i * 7 % (2 * len + 5));
    for indices in [(0..len).collect::<Vec<u64>>(), spread.collect(), Vec::new()] {
        let words = |slot: Result<Option<i64>>| slot.map_err(|error| format!("{error:?}"));
        let mut cx = Cx::default();
        let alone: Vec<_> = indices.iter().map(|&index| words(ds.get(index, &mut cx))).collect();
        let together: Vec<_> = ds.get_many(&indices, &mut cx).into_iter().map(words).collect();
        assert_eq!(together, alone, "{indices:?}");
    }
}

impl Border {
    fn bad(&self) -> BadRecords {
        self.skip.map_or(BadRecords::Error, |limit| BadRecords::Skip { limit, consecutive: None })
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

impl MapOp {
    fn apply(&self, ds: BoxMap<i64>) -> BoxMap<i64> {
        let len = ds.len();
        match *self {
            // Nothing can be made of nothing.
            _ if len == 0 || len > MOST => ds,
            Self::Add(k) => ds.map(move |x| x.wrapping_add(k)).boxed(),
            Self::Keep(m) => ds.filter(move |x| kept(*x, m)).boxed(),
            Self::Shuffle(seed) => ds.shuffle(seed).boxed(),
            Self::Window(size, seed) => ds.window_shuffle(size, seed).boxed(),
            Self::Blocks(window, size, seed) => ds.block_shuffle(window, seed).block_size(size).boxed(),
            Self::Slice(start, step) => ds.slice_step(start.min(len as i64 - 1).., step).boxed(),
            // A part must have an element.
            Self::Split(..) if len < 4 => ds,
            Self::Split(take, seed, shuffle) => {
                ds.split(&SplitSizes::new([0.3, 0.6]).seed(seed).shuffle(shuffle), take).boxed()
            }
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
pub(crate) fn digest(items: &[i64]) -> i64 {
    items.iter().fold(7, |sum, x| sum.wrapping_mul(31).wrapping_add(*x))
}

/// The rest of a prefix behind its first fan-out.
fn fanned<D>(ds: FanStream<D>, rest: &[Prefix]) -> BoxIter<i64>
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

fn prefix() -> impl Strategy<Value = Prefix> {
    prop_oneof![
        (-9i64..9).prop_map(Prefix::Add),
        (2i64..5).prop_map(Prefix::Keep),
        (1usize..4).prop_map(Prefix::Fan),
        failure().prop_map(|(m, data)| Prefix::Fail(m, data)),
    ]
}

/// Where it fails, and mostly because of the data.
pub(crate) fn failure() -> impl Strategy<Value = (i64, bool)> {
    (5i64..40, prop::bool::weighted(0.8))
}

pub(crate) fn raise() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(prop::sample::select(vec![0.5, 0.9, 0.95, 1.0]))
}

fn border() -> impl Strategy<Value = Border> {
    let skip = prop_oneof![Just(None), Just(Some(None)), (0u64..9).prop_map(|limit| Some(Some(limit)))];
    let warn = prop::option::of(Just(0.9));
    (skip, warn, raise()).prop_map(|(skip, warn, raise)| Border { skip, warn, raise })
}

fn map_op() -> impl Strategy<Value = MapOp> {
    prop_oneof![
        (-9i64..9).prop_map(MapOp::Add),
        (2i64..5).prop_map(MapOp::Keep),
        any::<u32>().prop_map(MapOp::Shuffle),
        (1u64..20, any::<u32>()).prop_map(|(size, seed)| MapOp::Window(size, seed)),
        (1usize..5, 1u64..20, any::<u32>()).prop_map(|(window, size, seed)| MapOp::Blocks(window, size, seed)),
        (0i64..9, prop::sample::select(vec![-2, -1, 1, 2, 3])).prop_map(|(start, step)| MapOp::Slice(start, step)),
        (0usize..2, any::<u32>(), any::<bool>()).prop_map(|(take, seed, shuffle)| MapOp::Split(take, seed, shuffle)),
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
pub(crate) fn sources() -> impl Strategy<Value = Sources> {
    let batch = || prop::option::weighted(0.2, (1usize..6, any::<bool>()));
    let few = (0i64..50, prop::collection::vec(map_op(), 0..4), prop::collection::vec(prefix(), 0..3));
    let few = (few, border(), batch()).prop_map(|((len, map, prefix), border, batch)| Sources {
        len,
        map,
        prefix,
        border,
        batch,
    });
    let many = (900i64..2600, 9i64..30, prop::collection::vec(prefix(), 0..3));
    let many = (many, border(), batch()).prop_map(|((len, modulus, rest), border, batch)| {
        let prefix = std::iter::once(Prefix::Sift(modulus)).chain(rest).collect();
        Sources { len, map: Vec::new(), prefix, border, batch }
    });
    prop_oneof![4 => few, 1 => many]
}
