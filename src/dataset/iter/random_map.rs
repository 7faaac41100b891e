use super::each::{Counter, IterMapped};
use crate::dataset::map::{DrawFn, TryDrawFn};

/// See [`IterDatasetExt::random_map`](super::IterDatasetExt::random_map).
pub type IterRandomMap<D, F> = IterMapped<D, DrawFn<F>, Counter>;

/// See [`IterDatasetExt::try_random_map`](super::IterDatasetExt::try_random_map).
pub type IterTryRandomMap<D, F> = IterMapped<D, TryDrawFn<F>, Counter>;

#[cfg(test)]
mod tests {
    use crate::dataset::Stage;
    use crate::dataset::iter::{IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::rng::PhiloxKey;
    use crate::{ErrorKind, MapDatasetExt};

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
