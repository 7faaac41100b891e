//! A generator per element: numpy's Philox, with the index of the element in the counter.

use std::convert::Infallible;

use rand_core::TryRng;

use super::SeedSequence;
use super::draws::{self, Halves, Words};
use crate::error::Result;

const MULTIPLIERS: [u64; 2] = [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157];
const WEYL: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B];
const ROUNDS: usize = 10;
const BLOCK: usize = 4;

/// The key of the generators of all elements of a stage, computed once per stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhiloxKey([u64; 2]);

impl PhiloxKey {
    /// Returns the key of numpy's `Philox(seed)`.
    pub fn from_seed(seed: u64) -> Self {
        Self(SeedSequence::new(&[seed]).state_u64())
    }

    /// Makes the generator of the element at `index`, equal to numpy's `Philox(key=key, counter=[0, 0, op_seed, index])`.
    ///
    /// `op_seed` distinguishes several generators for an element; Grain's datasets leave it at 0.
    /// # Cost
    /// No cost before the first draw.
    pub fn element(self, index: u64, op_seed: u64) -> ElementRng {
        ElementRng {
            key: self,
            counter: [0, 0, op_seed, index],
            block: [0; BLOCK],
            used: BLOCK as u8,
            halves: Halves::default(),
        }
    }

    /// Computes the four words of `counter` by Philox4x64-10.
    fn block(self, counter: [u64; BLOCK]) -> [u64; BLOCK] {
        let (mut key, mut c) = (self.0, counter);
        for _ in 0..ROUNDS {
            let first = u128::from(MULTIPLIERS[0]) * u128::from(c[0]);
            let second = u128::from(MULTIPLIERS[1]) * u128::from(c[2]);
            c = [
                (second >> 64) as u64 ^ c[1] ^ key[0],
                second as u64,
                (first >> 64) as u64 ^ c[3] ^ key[1],
                first as u64,
            ];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        c
    }
}

/// The random numbers of an element: a pure function of (seed, index), in any thread, process and order.
///
/// The stream and the draws equal numpy's `Generator(Philox(…))`, bit for bit. The generator also implements
/// [`rand_core::Rng`], so the distributions of the `rand` crates work; their results differ from numpy's.
/// ```
/// use gristmill::rng::{PhiloxKey, default_seed};
///
/// let key = PhiloxKey::from_seed(u64::from(default_seed(&[(41, 1)])));
/// let drawn: Vec<i64> = (0..4).map(|i| i + key.element(i as u64, 0).integers(0, 10)).collect();
/// assert_eq!(drawn, [0, 6, 9, 5]);
/// ```
/// # Cost
/// About 5 ns per 64-bit word, drawn in blocks of four.
/// # Source
/// J. K. Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, 2011: Philox4x64 with 10 rounds.
#[derive(Clone, Debug)]
pub struct ElementRng {
    key: PhiloxKey,
    counter: [u64; BLOCK],
    block: [u64; BLOCK],
    used: u8,
    halves: Halves,
}

impl ElementRng {
    /// Returns the key and the index, from which numpy can recreate the generator.
    pub(crate) fn place(&self) -> ([u64; 2], u64) {
        (self.key.0, self.counter[BLOCK - 1])
    }

    /// Returns the next 64 bits, like numpy's `bit_generator.random_raw()`.
    #[inline]
    pub fn random_raw(&mut self) -> u64 {
        if usize::from(self.used) == BLOCK {
            self.refill();
        }
        let word = self.block[usize::from(self.used)];
        self.used += 1;
        word
    }

    /// Returns the next 32 bits, like numpy's `next_uint32`: the low half of a word, then its high half on the next call.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.half_word()
    }

    /// Returns a multiple of 2^-53 in `0.0..1.0`, like numpy's `random()`.
    #[inline]
    pub fn random_f64(&mut self) -> f64 {
        draws::unit_f64(self)
    }

    /// Returns a uniform number of `low..high`, like numpy's `integers(low, high)`.
    ///
    /// # Panics
    /// Panics if `low >= high`. Use [`try_integers`](Self::try_integers) if the bounds come from data.
    #[inline]
    pub fn integers(&mut self, low: i64, high: i64) -> i64 {
        assert!(low < high, "no integer is at least {low} and below {high}");
        low.wrapping_add_unsigned(draws::bounded(self, high.abs_diff(low) - 1))
    }

    /// Returns a uniform number of `low..high`, like [`integers`](Self::integers).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `low >= high`.
    #[inline]
    pub fn try_integers(&mut self, low: i64, high: i64) -> Result<i64> {
        draws::integers(self, low, high)
    }

    /// Returns a uniform number of `0..=last`, like numpy's `integers(0, last, dtype=uint64, endpoint=True)`.
    #[inline]
    pub fn bounded_u64(&mut self, last: u64) -> u64 {
        draws::bounded(self, last)
    }

    /// Shuffles `items`, like numpy's `shuffle`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        draws::shuffle(self, items);
    }

    #[inline(never)]
    fn refill(&mut self) {
        for word in &mut self.counter {
            *word = word.wrapping_add(1);
            if *word != 0 {
                break;
            }
        }
        self.block = self.key.block(self.counter);
        self.used = 0;
    }
}

impl Words for ElementRng {
    #[inline]
    fn word(&mut self) -> u64 {
        self.random_raw()
    }

    #[inline]
    fn half_word(&mut self) -> u32 {
        let mut halves = std::mem::take(&mut self.halves);
        let half = halves.next(|| self.random_raw());
        self.halves = halves;
        half
    }
}

impl TryRng for ElementRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.half_word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.random_raw())
    }

    /// Fills `bytes` like numpy's `Generator.bytes`.
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        rand_core::utils::fill_bytes_via_next_word(bytes, || Ok(self.half_word()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand_core::Rng;

    use super::*;

    fn element(seed: u64, index: u64) -> ElementRng {
        PhiloxKey::from_seed(seed).element(index, 0)
    }

    // numpy 2.4.6: `Philox(key=SeedSequence(seed).generate_state(2, uint64), counter=[0, 0, op_seed, index])`.
    #[test]
    fn words_are_those_of_numpy() {
        let rows: [((u64, u64, u64), [u64; 9]); 5] = [
            (
                (0, 0, 0),
                [
                    259491006799949737,
                    4754966410622352325,
                    8698845897610382596,
                    1686395276220330909,
                    18061843536446043542,
                    4723914225006068263,
                    17258640445484096837,
                    3505852312317462091,
                    665762810082660547,
                ],
            ),
            (
                (42, 1, 0),
                [
                    9887468385282070157,
                    11019493937992016870,
                    2097812467308164079,
                    6259191125698086747,
                    12833465726847749557,
                    18207740353814476886,
                    2083505677059798904,
                    14840416593114264981,
                    13203807438315557567,
                ],
            ),
            (
                (2684764584, 7, 0),
                [
                    16002052815127412899,
                    18233678201841612282,
                    4226069302001475972,
                    2099429896648931187,
                    17441669235215910078,
                    3136513559466303999,
                    3878967558043701157,
                    14614969633689884431,
                    8550442800251029683,
                ],
            ),
            (
                (18446744073709551615, 9223372036854775808, 5),
                [
                    10877971795713403743,
                    2841333900867515076,
                    15614394663447631692,
                    13516218197077471439,
                    10901019818196755311,
                    6832381507313797362,
                    14240643215855856908,
                    14626291303520502173,
                    10808283719920610575,
                ],
            ),
            (
                (3329053876, 12345678901, 1099511627776),
                [
                    13562634862402763760,
                    16784659845042968841,
                    14580310682356081803,
                    188161483659896252,
                    15433586337266484021,
                    17393158128374434805,
                    3167199020602948775,
                    15072027985625852974,
                    7650413308530043795,
                ],
            ),
        ];
        for ((seed, index, op_seed), words) in rows {
            let mut rng = PhiloxKey::from_seed(seed).element(index, op_seed);
            assert_eq!(words.map(|_| rng.random_raw()), words, "seed {seed}, index {index}");
        }
    }

    // numpy 2.4.6: `Generator.integers`, `.random`, `.bytes`, `.shuffle` on that bit generator.
    #[test]
    fn draws_of_both_word_sizes_interleave_as_in_numpy() {
        let mut rng = element(42, 3);
        assert_eq!([rng.integers(0, 10), rng.integers(-5, 6)], [8, 5]);
        assert_eq!(rng.random_f64(), 0.10859907400401125);
        let bounds = [(0, 1 << 40), (0, 1 << 32), (0, (1 << 32) + 1), (i64::MIN, i64::MAX), (5, 6)];
        assert_eq!(
            bounds.map(|(low, high)| rng.integers(low, high)),
            [659604704200, 2861091100, 4143300680, 8193631094662346828, 5]
        );
        assert_eq!(rng.random_raw(), 764094155995006334);
        assert_eq!(rng.integers(0, 3 << 30), 359056261);
        assert_eq!(rng.bounded_u64(u64::MAX), 6692289038625529946);
        assert_eq!(rng.bounded_u64(3 << 62), 6644677515937850720);
    }

    #[test]
    fn the_traits_of_rand_core_draw_the_same_words() {
        let words = [3500976168, 1063927695, 233900780, 2935292038, 3630371106, 661090794, 2814941791];
        let mut rng = element(9, 9);
        assert_eq!(words.map(|_| Rng::next_u32(&mut rng)), words);
        let mut rng = element(9, 9);
        assert_eq!(words.map(|_| rng.next_u32()), words);
        assert_eq!(Rng::next_u64(&mut element(9, 9)), element(9, 9).random_raw());
    }

    #[test]
    fn rejected_words_are_skipped_as_in_numpy() {
        let rows: [(i64, i64, [i64; 12]); 3] = [
            (
                0,
                3 << 30,
                [
                    2228734461, 2345476915, 1715626159, 1364855888, 3156999349, 1683772353, 2644652252, 2346207502,
                    1366413913, 1103836039, 2996154986, 2890824161,
                ],
            ),
            (
                0,
                3 << 61,
                [
                    5036873323912094974,
                    2931005702751203415,
                    3483269073349246554,
                    3615873597193298398,
                    8633065336793388,
                    632438362999200195,
                    4143971843418045680,
                    5288563018290514895,
                    1312315906008533062,
                    911608093295503594,
                    5428818309822367098,
                    801234761860398142,
                ],
            ),
            (
                -7,
                1 << 33,
                [
                    6254605107, 3639615699, 4325396158, 4490059607, 6256553339, 10720217, 785338826, 3303644349,
                    5145832698, 6567144166, 1629585898, 1132001589,
                ],
            ),
        ];
        for (low, high, drawn) in rows {
            let mut rng = element(7, 1);
            assert_eq!(drawn.map(|_| rng.integers(low, high)), drawn, "{low}..{high}");
        }
    }

    #[test]
    fn floats_bytes_and_orders_are_those_of_numpy() {
        let mut rng = element(42, 0);
        assert_eq!(
            std::array::from_fn(|_| rng.random_f64()),
            [0.08607763073528474, 0.14155732377913233, 0.27009303504774695, 0.8740378646728407]
        );
        let mut rng = element(42, 5);
        rng.integers(0, 10);
        let mut bytes = [0; 11];
        rng.fill_bytes(&mut bytes);
        assert_eq!(bytes, [193, 254, 232, 225, 246, 146, 91, 240, 60, 137, 53]);
        let mut order: [usize; 12] = std::array::from_fn(|i| i);
        element(3, 4).shuffle(&mut order);
        assert_eq!(order, [10, 1, 3, 2, 11, 5, 9, 4, 8, 6, 0, 7]);
    }

    #[test]
    fn random_map_of_grain_adds_these() {
        let key = PhiloxKey::from_seed(u64::from(crate::rng::default_seed(&[(41, 1)])));
        let drawn: Vec<i64> = (0..10).map(|i| i + key.element(i as u64, 0).integers(0, 10)).collect();
        assert_eq!(drawn, [0, 6, 9, 5, 10, 14, 14, 13, 15, 13]);
    }

    #[test]
    fn an_empty_range_is_an_error() {
        let error = element(0, 0).try_integers(3, 3).unwrap_err();
        assert_eq!(error.message(), "no integer is at least 3 and below 3");
        assert_eq!(element(7, 1).try_integers(0, 3 << 30).unwrap(), 2228734461);
    }

    proptest! {
        #[test]
        fn integers_stay_in_their_range(seed: u64, index: u64, a: i64, b: i64) {
            let (low, high) = (a.min(b), a.max(b).max(a.min(b).saturating_add(1)));
            prop_assume!(low < high);
            let mut rng = element(seed, index);
            for _ in 0..20 {
                prop_assert!((low..high).contains(&rng.integers(low, high)));
                prop_assert!((0.0..1.0).contains(&rng.random_f64()));
            }
        }
    }
}
