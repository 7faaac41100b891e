//! PCG64, the generator of numpy's `default_rng`, for orders drawn by numpy code.

use super::SeedSequence;
use super::draws::{self, Halves, Words};

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

/// PCG64 (XSL-RR 128/64), seeded like numpy's `default_rng(seed)`.
///
/// # Source
/// M. E. O'Neill, *PCG: a family of simple fast space-efficient statistically good algorithms for random number
/// generation*, 2014.
#[derive(Clone, Debug)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
    halves: Halves,
}

impl Pcg64 {
    /// Makes the generator of numpy's `default_rng(seed)`.
    pub fn from_seed(seed: u64) -> Self {
        let [s1, s0, i1, i0]: [u64; 4] = SeedSequence::new(&[seed]).state_u64();
        let join = |high: u64, low: u64| (u128::from(high) << 64) | u128::from(low);
        let mut rng = Self { state: 0, increment: (join(i1, i0) << 1) | 1, halves: Halves::default() };
        rng.step();
        rng.state = rng.state.wrapping_add(join(s1, s0));
        rng.step();
        rng
    }

    /// Returns the next 64 bits, like numpy's `bit_generator.random_raw()`.
    pub fn random_raw(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// Shuffles `items`, like numpy's `shuffle`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        draws::shuffle(self, items);
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }
}

impl Words for Pcg64 {
    fn word(&mut self) -> u64 {
        self.random_raw()
    }

    fn half_word(&mut self) -> u32 {
        let mut halves = std::mem::take(&mut self.halves);
        let half = halves.next(|| self.random_raw());
        self.halves = halves;
        half
    }
}

/// Returns the numbers `0..n` in the order of numpy's `default_rng(seed).permuted(range(n))`.
///
/// # Cost
/// Takes `8 * n` bytes and one draw per number.
pub fn permuted(seed: u64, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    Pcg64::from_seed(seed).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    // numpy 2.4.6: `PCG64(seed).random_raw(5)`.
    #[test]
    fn words_are_those_of_numpy() {
        let rows: [(u64, [u64; 5]); 3] = [
            (
                0,
                [
                    11749869230777074271,
                    4976686463289251617,
                    755828109848996024,
                    304881062738325533,
                    15002187965291974971,
                ],
            ),
            (
                42,
                [
                    14276969152011380360,
                    8095878257575067585,
                    15838336090824644132,
                    12864169557245331597,
                    1737265434024182251,
                ],
            ),
            (
                1099511627779,
                [
                    14271435802380633900,
                    18370326226487632705,
                    8728610338774297736,
                    1196284118644200768,
                    3609140337366838735,
                ],
            ),
        ];
        for (seed, words) in rows {
            let mut rng = Pcg64::from_seed(seed);
            assert_eq!(words.map(|_| rng.random_raw()), words, "seed {seed}");
        }
    }

    // numpy 2.4.6: `default_rng(seed).permuted(range(n))`; long orders folded by `31 * hash + number`.
    #[test]
    fn orders_are_those_of_numpy() {
        let short: [(u64, &[usize]); 8] = [
            (0, &[]),
            (0, &[0]),
            (0, &[0, 1]),
            (1, &[4, 0, 1, 2, 3]),
            (71, &[2, 1, 0, 3]),
            (95, &[0, 3, 5, 2, 1, 6, 4]),
            (42, &[6, 15, 11, 10, 9, 3, 0, 7, 12, 5, 2, 4, 14, 1, 13, 8]),
            (8589934592, &[15, 8, 10, 18, 0, 19, 1, 2, 13, 17, 5, 14, 16, 7, 12, 6, 4, 3, 9, 11]),
        ];
        for (seed, order) in short {
            assert_eq!(permuted(seed, order.len()), order, "seed {seed}");
        }
        let long = [
            (3, 100, 10193107528728744818),
            (4, 1000, 8920335691994991336),
            (5, 65537, 8640164194319177602),
            (6, 200000, 7037004561209298886),
        ];
        for (seed, n, folded) in long {
            let order = permuted(seed, n);
            let hash = order.iter().fold(0u64, |hash, &i| hash.wrapping_mul(31).wrapping_add(i as u64));
            assert_eq!(hash, folded, "seed {seed}, n {n}");
        }
    }
}
