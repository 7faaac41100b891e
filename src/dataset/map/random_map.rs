use super::Many;
use super::each::{Each, Mapped};
use crate::dataset::facts::Facts;
use crate::dataset::iter::{Counter, IterMapped};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::seeds::StageSeed;
use crate::dataset::stage::Stage;
use crate::element::Around;
use crate::error::{Error, Result};
use crate::rng::{ElementRng, PhiloxKey};

/// See [`MapDatasetExt::random_map`](super::MapDatasetExt::random_map).
pub type RandomMap<D, F> = Mapped<D, DrawFn<F>>;

/// See [`MapDatasetExt::try_random_map`](super::MapDatasetExt::try_random_map).
pub type TryRandomMap<D, F> = Mapped<D, TryDrawFn<F>>;

/// See [`IterDatasetExt::random_map`](crate::IterDatasetExt::random_map).
pub type IterRandomMap<D, F> = IterMapped<D, DrawFn<F>, Counter>;

/// See [`IterDatasetExt::try_random_map`](crate::IterDatasetExt::try_random_map).
pub type IterTryRandomMap<D, F> = IterMapped<D, TryDrawFn<F>, Counter>;

/// The function of [`RandomMap`].
#[doc(hidden)]
#[derive(Clone)]
pub struct DrawFn<F> {
    f: F,
    draws: Draws,
}

/// The function of [`TryRandomMap`].
#[doc(hidden)]
#[derive(Clone)]
pub struct TryDrawFn<F> {
    f: F,
    draws: Draws,
    around: Around,
}

impl<F> DrawFn<F> {
    pub(in crate::dataset) fn new(parent: &dyn Stage, seed: Option<u32>, f: F) -> Self {
        Self { f, draws: Draws::new(parent, seed) }
    }
}

impl<F> TryDrawFn<F> {
    pub(in crate::dataset) fn new(parent: &dyn Stage, seed: Option<u32>, f: F) -> Self {
        Self { f, draws: Draws::new(parent, seed), around: |calls| calls() }
    }
}

#[cfg(feature = "python")]
impl<D, F> TryRandomMap<D, F> {
    /// Sets `around`, which wraps the calls for each chunk of elements.
    pub(crate) fn around(mut self, around: Around) -> Self {
        self.each.around = around;
        self
    }
}

/// Origin of the random numbers of a stage.
#[derive(Clone, Copy)]
struct Draws {
    seed: StageSeed,
    /// `None` if there is no seed.
    key: Option<PhiloxKey>,
}

impl Draws {
    fn new(parent: &dyn Stage, given: Option<u32>) -> Self {
        let seed = StageSeed::resolve(given, &[parent]);
        Self { seed, key: seed.get().ok().map(|seed| PhiloxKey::from_seed(seed.into())) }
    }

    #[inline]
    fn element(&self, index: u64) -> Result<ElementRng> {
        if let Some(key) = self.key { Ok(key.element(index, 0)) } else { Err(self.no_seed()) }
    }

    #[cold]
    fn no_seed(&self) -> Error {
        self.seed.get().expect_err("a seed makes a key")
    }
}

macro_rules! facts_of_draws {
    ($name:ident) => {
        impl<F: Send + Sync> Facts for $name<F> {
            fn name(&self) -> &'static str {
                "random_map"
            }
            fn params(&self) -> String {
                self.draws.seed.to_string()
            }
            fn sees_index(&self) -> bool {
                true
            }
            fn check(&self) -> Result<()> {
                self.draws.seed.get().map(drop)
            }
        }
        debug_name!($name<F>);
    };
}
facts_of_draws!(DrawFn);
facts_of_draws!(TryDrawFn);

impl<T, U, F: Fn(T, &mut ElementRng) -> U + Send + Sync> Each<T> for DrawFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    #[inline]
    fn apply(&self, index: u64, element: T) -> Result<Option<U>> {
        let mut rng = self.draws.element(index)?;
        Ok(Some((self.f)(element, &mut rng)))
    }

    #[inline]
    fn apply_many(&self, indices: &[u64], many: Many<T>, blame: impl Fn(Error) -> Error + Copy) -> Many<U> {
        // Work that depends only on the key is done once.
        let Some(key) = self.draws.key else { return many.filter_map(|_, _| Err(blame(self.draws.no_seed()))) };
        many.map(|place, element| (self.f)(element, &mut key.element(indices[place], 0)))
    }
}

impl<T, U, F: Fn(T, &mut ElementRng) -> Result<U> + Send + Sync> Each<T> for TryDrawFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    #[inline]
    fn apply(&self, index: u64, element: T) -> Result<Option<U>> {
        let mut rng = self.draws.element(index)?;
        (self.f)(element, &mut rng).map(Some)
    }

    #[inline]
    fn apply_many(&self, indices: &[u64], many: Many<T>, blame: impl Fn(Error) -> Error + Copy) -> Many<U> {
        let Some(key) = self.draws.key else { return many.filter_map(|_, _| Err(blame(self.draws.no_seed()))) };
        let call = |place: usize, element| (self.f)(element, &mut key.element(indices[place], 0));
        many.filter_map_in(self.around, |place, element| call(place, element).map(Some).map_err(blame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::cx::Cx;
    use crate::dataset::iter::{IterDatasetExt, laws};
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};

    #[test]
    fn the_numbers_are_grains_and_others_in_each_epoch() {
        let ds = Range::new(0, 10).seed(41).random_map(None, |x, rng| x + rng.integers(0, 10));
        assert_eq!(ds.collect().unwrap(), [0, 6, 9, 5, 10, 14, 14, 13, 15, 13]);
        // An element of epoch 1 draws the numbers of its global index.
        let words = |len| Range::new(0, len).random_map(3, |_, rng| rng.random_raw());
        let (short, long) = (words(4), words(12));
        let mut cx = Cx::default();
        for i in 0..12 {
            assert_eq!(short.get(i, &mut cx).unwrap(), long.get(i, &mut cx).unwrap());
        }
        assert_ne!(short.get(0, &mut cx).unwrap(), short.get(4, &mut cx).unwrap());
    }

    #[test]
    fn the_numbers_belong_to_the_place_and_not_to_what_was_read_before() {
        let ds = Range::new(0, 6).shuffle(1).random_map(2, |x, rng| (x, rng.random_raw(), rng.random_raw()));
        let forward = ds.collect().unwrap();
        let mut cx = Cx::default();
        for i in (0..6).rev() {
            assert_eq!(ds.get(i, &mut cx).unwrap().unwrap(), forward[i as usize]);
        }
    }

    #[test]
    fn a_function_may_fail_and_a_seed_may_be_missing() {
        let ds = Range::new(0, 2).try_random_map(1, |x, _| if x == 1 { Err(Error::data("no")) } else { Ok(x) });
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap(), Some(0));
        assert_eq!(ds.get(1, &mut Cx::default()).unwrap_err().to_string(), "stage 1 random_map: no");
        let unseeded = Range::new(0, 2).random_map(None, |x, _| x);
        assert!(unseeded.node().describe.check().is_err());
        assert_eq!(unseeded.get(0, &mut Cx::default()).unwrap_err().stage_name(), Some("1 random_map"));
        assert_eq!(ds.node().describe.params(), "seed=1");
    }

    #[test]
    fn draws_depend_on_seed_and_place_only() {
        let draw = |seed: u32| Range::new(0, 40).to_iter().random_map(seed, |x, rng| (x, rng.random_raw()));
        let all = laws::check(&draw(5));
        assert_eq!(all, laws::check(&draw(5)));
        assert!(all.iter().zip(draw(6).collect().unwrap()).all(|(a, b)| a.1 != b.1));
        let same_draws = Range::new(100, 140).to_iter().random_map(5, |_, rng| rng.random_raw()).collect().unwrap();
        assert!(all.iter().map(|(_, draw)| *draw).eq(same_draws));
    }

    #[test]
    fn the_place_is_counted_after_what_was_dropped() {
        let ds = Range::new(0, 40).seed(3).to_iter().filter(|x| x % 2 == 0).random_map(None, |_, rng| rng.random_raw());
        let all = laws::check(&ds);
        let seed = ds.node().describe.params();
        let key = PhiloxKey::from_seed(seed.strip_prefix("seed=").unwrap().parse().unwrap());
        assert_eq!(all, (0..20).map(|i| key.element(i, 0).random_raw()).collect::<Vec<_>>());
    }

    #[test]
    fn needs_a_seed() {
        let ds = Range::new(0, 9).to_iter().random_map(None, |x, _| x);
        assert_eq!(ds.collect().unwrap_err().kind(), ErrorKind::Config);
    }
}
