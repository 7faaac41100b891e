use std::fmt;

use super::{Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::stage::{Role, Stage, StageSeed, stage_after};
use crate::element::Around;
use crate::error::Result;
use crate::rng::{ElementRng, PhiloxKey};

/// See [`MapDataset::random_map`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct RandomMap<D, F> {
    parent: D,
    f: F,
    draws: Draws,
}

/// See [`MapDataset::try_random_map`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct TryRandomMap<D, F> {
    parent: D,
    f: F,
    draws: Draws,
    around: Around,
}

impl<D, F> TryRandomMap<D, F> {
    /// The same, with the calls for a chunk of elements made inside of `around`.
    #[cfg(feature = "python")]
    pub(crate) fn around(self, around: Around) -> Self {
        Self { around, ..self }
    }
}

/// Where the random numbers of a stage come from.
#[derive(Clone, Copy)]
struct Draws {
    seed: StageSeed,
    /// None where there is no seed.
    key: Option<PhiloxKey>,
    stage: StageId,
}

impl Draws {
    fn new(given: Option<u32>, parent: &dyn Stage) -> Self {
        let seed = StageSeed::resolve(given, &[parent]);
        let key = seed.get().ok().map(|seed| PhiloxKey::from_seed(u64::from(seed)));
        Self { seed, key, stage: stage_after(&[parent]) }
    }

    #[inline]
    fn element(&self, index: u64, cx: &Cx) -> Result<ElementRng> {
        match self.key {
            Some(key) => Ok(key.element(index, 0)),
            None => Err(self.no_seed(cx)),
        }
    }

    #[cold]
    fn no_seed(&self, cx: &Cx) -> crate::Error {
        cx.blame(self.stage, "random_map", self.seed.get().expect_err("a seed makes a key"))
    }
}

macro_rules! random_map_stage {
    ($name:ident $(, $field:ident: $value:expr)?) => {
        impl<D: MapDataset, F> $name<D, F> {
            pub(super) fn new(parent: D, seed: Option<u32>, f: F) -> Self {
                Self { draws: Draws::new(seed, &parent), parent, f $(, $field: $value)? }
            }
        }

        impl<D: Stage, F> Stage for $name<D, F> {
            fn name(&self) -> &'static str {
                "random_map"
            }
            fn params(&self) -> String {
                self.draws.seed.to_string()
            }
            fn role(&self) -> Role {
                Role::Elementwise
            }
            fn parents(&self) -> Vec<&dyn Stage> {
                vec![&self.parent]
            }
            fn check(&self) -> Result<()> {
                self.draws.seed.get().map(drop)
            }
        }

        impl<D: fmt::Debug, F> fmt::Debug for $name<D, F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("parent", &self.parent).finish_non_exhaustive()
            }
        }
    };
}
random_map_stage!(RandomMap);
random_map_stage!(TryRandomMap, around: |calls| calls());

impl<D, U, F> MapDataset for RandomMap<D, F>
where
    D: MapDataset,
    F: Fn(D::Item, &mut ElementRng) -> U + Send + Sync,
{
    type Item = U;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.get(index, cx)? else { return Ok(None) };
        let mut rng = self.draws.element(index, cx)?;
        Ok(Some(cx.timed(self.draws.stage, || (self.f)(element, &mut rng))))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let Some(key) = self.draws.key else { return Many::one_by_one(indices, |index| self.get(index, cx)) };
        let many = self.parent.get_many(indices, cx);
        let apply = |place: usize, element| (self.f)(element, &mut key.element(indices[place], 0));
        cx.timed_many(self.draws.stage, many.items().len(), || many.map(apply))
    }
}

impl<D, U, F> MapDataset for TryRandomMap<D, F>
where
    D: MapDataset,
    F: Fn(D::Item, &mut ElementRng) -> Result<U> + Send + Sync,
{
    type Item = U;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.get(index, cx)? else { return Ok(None) };
        let mut rng = self.draws.element(index, cx)?;
        match cx.timed(self.draws.stage, || (self.f)(element, &mut rng)) {
            Ok(mapped) => Ok(Some(mapped)),
            Err(error) => Err(cx.blame(self.draws.stage, "random_map", error)),
        }
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let Some(key) = self.draws.key else { return Many::one_by_one(indices, |index| self.get(index, cx)) };
        let many = self.parent.get_many(indices, cx);
        let blame = cx.blamer(self.draws.stage, "random_map");
        let apply =
            |place: usize, element| (self.f)(element, &mut key.element(indices[place], 0)).map(Some).map_err(blame);
        cx.timed_many(self.draws.stage, many.items().len(), || many.filter_map_in(self.around, apply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;
    use crate::error::Error;

    #[test]
    fn the_numbers_are_grains_and_others_in_each_epoch() {
        let ds = Range::new(0, 10).seed(41).random_map(None, |x, rng| x + rng.integers(0, 10));
        assert_eq!(ds.collect().unwrap(), [0, 6, 9, 5, 10, 14, 14, 13, 15, 13]);
        // An element of epoch 1 has the numbers of its global index.
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
        assert!(unseeded.check().is_err());
        assert_eq!(unseeded.get(0, &mut Cx::default()).unwrap_err().stage_name(), Some("1 random_map"));
        assert_eq!(ds.params(), "seed=1");
    }
}
