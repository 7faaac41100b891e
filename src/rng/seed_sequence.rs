//! numpy's `SeedSequence`, which turns any list of integers into well-mixed seed words.

const INIT_A: u32 = 0x43b0_d7e5;
const MULT_A: u32 = 0x931e_8875;
const INIT_B: u32 = 0x8b51_f9dd;
const MULT_B: u32 = 0x58f3_8ded;
const MIX_LEFT: u32 = 0xca01_f9dd;
const MIX_RIGHT: u32 = 0x4973_f715;
const POOL: usize = 4;

/// Entropy mixed into a pool of four words, word for word like numpy's `SeedSequence(entropy)`.
///
/// Equal entropy gives equal words on every machine. A difference of one bit gives unrelated words.
/// # Source
/// M. E. O'Neill, *Developing a seed_seq Alternative*, 2015, in the variant of `numpy.random.SeedSequence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedSequence {
    pool: [u32; POOL],
}

impl SeedSequence {
    /// Makes the sequence of a list of integers, `SeedSequence([a, b, …])`.
    ///
    /// An integer is one 32-bit word if it fits, else two (low word first). So `[2^32]` equals `[0, 1]`, as in numpy.
    pub fn new(entropy: &[u64]) -> Self {
        let mut words = Vec::with_capacity(entropy.len() * 2);
        for &value in entropy {
            words.push(value as u32);
            if value > u64::from(u32::MAX) {
                words.push((value >> 32) as u32);
            }
        }
        Self::from_words(&words)
    }

    /// Makes the sequence of a list of 32-bit words.
    pub fn from_words(words: &[u32]) -> Self {
        let mut multiplier = INIT_A;
        let mut pool = [0; POOL];
        for (i, slot) in pool.iter_mut().enumerate() {
            *slot = hash(words.get(i).copied().unwrap_or(0), &mut multiplier, MULT_A);
        }
        for source in 0..POOL {
            for target in (0..POOL).filter(|&target| target != source) {
                pool[target] = mix(pool[target], hash(pool[source], &mut multiplier, MULT_A));
            }
        }
        for &word in words.iter().skip(POOL) {
            for slot in &mut pool {
                *slot = mix(*slot, hash(word, &mut multiplier, MULT_A));
            }
        }
        Self { pool }
    }

    /// Returns the first `N` words, `generate_state(N, numpy.uint32)`.
    pub fn state_u32<const N: usize>(&self) -> [u32; N] {
        let mut words = self.words();
        std::array::from_fn(|_| words())
    }

    /// Returns the first `N` double words, `generate_state(N, numpy.uint64)`.
    pub fn state_u64<const N: usize>(&self) -> [u64; N] {
        let mut words = self.words();
        std::array::from_fn(|_| u64::from(words()) | (u64::from(words()) << 32))
    }

    fn words(&self) -> impl FnMut() -> u32 {
        let mut multiplier = INIT_B;
        let mut pool = self.pool.into_iter().cycle();
        move || hash(pool.next().unwrap_or(0), &mut multiplier, MULT_B)
    }
}

fn hash(value: u32, multiplier: &mut u32, step: u32) -> u32 {
    let value = value ^ *multiplier;
    *multiplier = multiplier.wrapping_mul(step);
    let value = value.wrapping_mul(*multiplier);
    value ^ (value >> 16)
}

fn mix(x: u32, y: u32) -> u32 {
    let mixed = MIX_LEFT.wrapping_mul(x).wrapping_sub(MIX_RIGHT.wrapping_mul(y));
    mixed ^ (mixed >> 16)
}

/// Returns the default seed of a random stage: a word derived from the seeds above the stage and their depths in nodes.
///
/// `(seed, depth)` pairs are ordered nearest first, like in Grain: `SeedSequence([seed, depth, …])`.
/// ```
/// assert_eq!(gristmill::rng::default_seed(&[(42, 1)]), 3_329_053_876);
/// ```
pub fn default_seed(seeds: &[(u32, u32)]) -> u32 {
    let words: Vec<u32> = seeds.iter().flat_map(|&(seed, depth)| [seed, depth]).collect();
    let [seed] = SeedSequence::from_words(&words).state_u32();
    seed
}

#[cfg(test)]
mod tests {
    use super::*;

    // numpy 2.4.6: `SeedSequence(entropy).generate_state(6)` and `.generate_state(3, numpy.uint64)`.
    #[test]
    fn words_are_those_of_numpy() {
        let rows: [(&[u64], [u32; 6], [u64; 3]); 7] = [
            (
                &[0],
                [2968811710, 3677149159, 745650761, 2884920346, 2642120001, 549907821],
                [15793235383387715774, 12390638538380655177, 2361836109651742017],
            ),
            (
                &[42],
                [3444837047, 2669555309, 2046530742, 3581440988, 1691623607, 2099784219],
                [11465652750463011511, 15382171918060459190, 9018504550953525431],
            ),
            (
                &[42, 1],
                [3329053876, 3645748255, 2086902591, 1553161135, 2308860487, 2861903415],
                [15658369528003122356, 6670776282330143551, 12291781574044576327],
            ),
            (
                &[18446744073709551615],
                [2458692877, 2931597649, 2251873402, 295448644, 1508262567, 465245526],
                [12591116029944179981, 1268942265879420026, 1998214320288580263],
            ),
            (
                &[1, 2, 3, 4, 5, 6, 7],
                [1473699950, 2347498550, 2851142778, 785663715, 3406297423, 1173968772],
                [10082429501131120750, 3374399964430007418, 5042157485671577935],
            ),
            (
                &[1099511627776, 0, 7],
                [3525143606, 1207861207, 3377740697, 1234454845, 767840207, 2566565811],
                [5187724385697229878, 5301943191041489817, 11023316222044557263],
            ),
            (
                &[],
                [2968811710, 3677149159, 745650761, 2884920346, 2642120001, 549907821],
                [15793235383387715774, 12390638538380655177, 2361836109651742017],
            ),
        ];
        for (entropy, words, doubles) in rows {
            let sequence = SeedSequence::new(entropy);
            assert_eq!(sequence.state_u32(), words, "{entropy:?}");
            assert_eq!(sequence.state_u64(), doubles, "{entropy:?}");
        }
        assert_eq!(SeedSequence::new(&[1 << 32]), SeedSequence::from_words(&[0, 1]));
    }

    #[test]
    fn default_seeds_are_those_of_grain() {
        assert_eq!(default_seed(&[(42, 1)]), 3_329_053_876);
        assert_eq!(default_seed(&[(42, 2)]), 955_475_868);
        assert_eq!(default_seed(&[(1, 2), (3, 4), (5, 6), (7, 8)]), 2009833628);
    }
}
