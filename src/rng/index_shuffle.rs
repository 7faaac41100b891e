//! Grain's `index_shuffle`: a permutation of `0..=max_index`, computed separately for any index.

use std::sync::OnceLock;

use super::{round_keys, small_block};
use crate::error::{Error, Result};

/// Number of rounds of Grain's shuffles.
pub const DEFAULT_ROUNDS: u32 = 4;

/// A permutation of `0..=max_index`, chosen by a seed, computed index by index.
///
/// The order equals Grain's `index_shuffle`, bit for bit, unless Grain's result is not a permutation.
/// ```
/// let shuffle = gristmill::rng::IndexShuffle::new(9, 42, 4)?;
/// let order: Vec<u64> = (0..10).map(|i| shuffle.get(i)).collect();
/// assert_eq!(order, [8, 6, 7, 9, 0, 5, 1, 2, 4, 3]);
/// # Ok::<_, gristmill::Error>(())
/// ```
/// DIFFERENCE: Grain's block is too small for the largest index at some lengths. One element then appears twice and
/// another never. This happens if `max_index` is a power of four and at least 2^16 (65,537 elements, 262,145, …), and at
/// some lengths just above 2^50 and larger powers of four. Here the block is large enough: every element appears once.
/// # Cost
/// Above 2^16 elements: 56 bytes at any length, and at most four steps per index on average, each of all rounds.
/// Up to 2^16 elements: a table of 2 bytes per element, filled by the first `get` in 0.1 to 0.3 ms, then one load per
/// index.
/// # Source
/// The round of Simon, R. Beaulieu et al., *The SIMON and SPECK families of lightweight block ciphers*, 2013, with keys
/// from `std::seed_seq`. Cycle walking: J. Black and P. Rogaway, *Ciphers with arbitrary finite domains*, 2002.
#[derive(Clone, Debug)]
pub struct IndexShuffle {
    max_index: u64,
    half_bits: u32,
    keys: Keys,
    table: OnceLock<Box<[u16]>>,
}

/// Indices that [`IndexShuffle::get_many`] steps in parallel.
const LANES: usize = 16;
/// Indices per block of [`IndexShuffle::get_many`], limited by the range of a byte. Indices that have to step again are
/// collected within a block.
const AT_ONCE: usize = 256;

#[derive(Clone, Debug)]
enum Keys {
    Four([u32; 4]),
    Many(Box<[u32]>),
}

impl IndexShuffle {
    /// Maximum number of elements whose order is stored in a table.
    pub(crate) const MOST_IN_TABLE: u64 = small_block::BLOCK as u64;

    /// Makes the permutation of `0..=max_index` for `seed` with `rounds` rounds ([`DEFAULT_ROUNDS`] in Grain).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) unless `rounds` is even and in `4..=1024`.
    pub fn new(max_index: u64, seed: u32, rounds: u32) -> Result<Self> {
        let keys = match rounds {
            4 => Keys::Four(round_keys::four(seed)),
            5..=1024 if rounds.is_multiple_of(2) => {
                let mut keys = vec![0; rounds as usize];
                round_keys::fill(seed, &mut keys);
                Keys::Many(keys.into_boxed_slice())
            }
            _ => {
                return Err(Error::config(format!(
                    "index shuffle has {rounds} rounds, not an even number of 4..=1024"
                )));
            }
        };
        Ok(Self::with_keys(max_index, keys))
    }

    /// Makes the permutation of `0..=max_index` in Grain's shuffles, with [`DEFAULT_ROUNDS`] rounds.
    pub(crate) fn four_rounds(max_index: u64, seed: u32) -> Self {
        Self::with_keys(max_index, Keys::Four(round_keys::four(seed)))
    }

    fn with_keys(max_index: u64, mut keys: Keys) -> Self {
        let bits = u64::BITS - max_index.leading_zeros();
        let half_bits = bits.next_multiple_of(2).max(16) / 2;
        let half_mask = u32::MAX >> (u32::BITS - half_bits);
        keys.as_mut_slice().iter_mut().for_each(|key| *key &= half_mask);
        Self { max_index, half_bits, keys, table: OnceLock::new() }
    }

    /// Returns the image of `index`.
    ///
    /// Returns `index` unchanged if it is above `max_index`.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        if self.max_index < Self::MOST_IN_TABLE {
            return self.table().get(index as usize).map_or(index, |&at| u64::from(at));
        }
        if index > self.max_index {
            return index;
        }
        match &self.keys {
            Keys::Four(keys) => self.walk(index, keys),
            Keys::Many(keys) => self.walk(index, keys),
        }
    }

    /// Replaces each of `indices` with the result of [`get`](Self::get).
    ///
    /// # Cost
    /// Takes a fraction of the time of separate `get` calls. Several indices go through the rounds in parallel, and indices
    /// that have to step again are found without unpredictable branches.
    pub fn get_many(&self, indices: &mut [u64]) {
        match &self.keys {
            Keys::Four(keys) if self.max_index >= Self::MOST_IN_TABLE => {
                indices.chunks_mut(AT_ONCE).for_each(|block| self.walk_block(block, keys));
            }
            _ => indices.iter_mut().for_each(|index| *index = self.get(*index)),
        }
    }

    /// Walks up to [`AT_ONCE`] indices until all are back in range. Indices out of range at the start stay unchanged.
    fn walk_block(&self, block: &mut [u64], keys: &[u32; 4]) {
        let mut walking = [0u8; AT_ONCE];
        let mut count = 0;
        for (place, &index) in block.iter().enumerate() {
            walking[count] = place as u8;
            count += usize::from(index <= self.max_index);
        }
        while count > 0 {
            for places in walking[..count].chunks(LANES) {
                let mut lanes = [0; LANES];
                lanes.iter_mut().zip(places).for_each(|(lane, &place)| *lane = block[usize::from(place)]);
                self.step_lanes(&mut lanes, keys);
                lanes.iter().zip(places).for_each(|(&lane, &place)| block[usize::from(place)] = lane);
            }
            let mut left = 0;
            for at in 0..count {
                let place = walking[at];
                walking[left] = place;
                left += usize::from(block[usize::from(place)] > self.max_index);
            }
            count = left;
        }
    }

    /// Applies [`step`](Self::step) to each lane, half by half, so that the compiler packs several lanes into a register.
    #[inline]
    fn step_lanes(&self, lanes: &mut [u64; LANES], keys: &[u32; 4]) {
        let bits = self.half_bits;
        let mask = u32::MAX >> (u32::BITS - bits);
        let rotate = |half: u32, by: u32| (half << by) | (half >> (bits - by));
        let mixed = |half: u32| ((rotate(half, 1) & rotate(half, 8)) ^ rotate(half, 2)) & mask;
        let mut high = lanes.map(|lane| (lane >> bits) as u32);
        let mut low = lanes.map(|lane| lane as u32 & mask);
        for pair in keys.chunks_exact(2) {
            high.iter_mut().zip(&low).for_each(|(high, &low)| *high ^= mixed(low) ^ pair[0]);
            low.iter_mut().zip(&high).for_each(|(low, &high)| *low ^= mixed(high) ^ pair[1]);
        }
        for ((lane, high), low) in lanes.iter_mut().zip(high).zip(low) {
            *lane = (u64::from(high) << bits) | u64::from(low);
        }
    }

    /// Returns the index that [`get`](Self::get) maps to `at`: the inverse permutation.
    ///
    /// Returns `at` unchanged if it is above `max_index`.
    ///
    /// # Cost
    /// Above 2^16 elements: the cost of one `get`. Below: 2^16 divided by the number of elements, in steps on average.
    pub fn index_of(&self, at: u64) -> u64 {
        if at > self.max_index {
            return at;
        }
        let mut index = at;
        loop {
            index = self.step_back(index);
            if index <= self.max_index {
                return index;
            }
        }
    }

    /// Returns the largest index.
    pub fn max_index(&self) -> u64 {
        self.max_index
    }

    /// Returns the image of each index. Only for shuffles of at most 2^16 elements.
    #[inline]
    fn table(&self) -> &[u16] {
        self.table.get_or_init(|| small_block::table(self.max_index as usize + 1, self.keys.as_slice()))
    }

    /// Applies the permutation of the block until the index is in range.
    #[inline(always)]
    fn walk(&self, mut index: u64, keys: &[u32]) -> u64 {
        loop {
            index = self.step(index, keys);
            if index <= self.max_index {
                return index;
            }
        }
    }

    /// Applies the permutation of the block.
    #[inline(always)]
    fn step(&self, index: u64, keys: &[u32]) -> u64 {
        let bits = self.half_bits;
        let mask = u32::MAX >> (u32::BITS - bits);
        let rotate = |half: u32, by: u32| (half << by) | (half >> (bits - by));
        let mixed = |half: u32| (rotate(half, 1) & rotate(half, 8)) ^ rotate(half, 2);
        let (mut high, mut low) = ((index >> bits) as u32, index as u32 & mask);
        for pair in keys.chunks_exact(2) {
            high ^= (mixed(low) & mask) ^ pair[0];
            low ^= (mixed(high) & mask) ^ pair[1];
        }
        (u64::from(high) << bits) | u64::from(low)
    }

    /// Undoes a [`step`](Self::step).
    fn step_back(&self, index: u64) -> u64 {
        let bits = self.half_bits;
        let mask = u32::MAX >> (u32::BITS - bits);
        let rotate = |half: u32, by: u32| (half << by) | (half >> (bits - by));
        let mixed = |half: u32| ((rotate(half, 1) & rotate(half, 8)) ^ rotate(half, 2)) & mask;
        let (mut high, mut low) = ((index >> bits) as u32, index as u32 & mask);
        for pair in self.keys.as_slice().chunks_exact(2).rev() {
            low ^= mixed(high) ^ pair[1];
            high ^= mixed(low) ^ pair[0];
        }
        (u64::from(high) << bits) | u64::from(low)
    }
}

impl Keys {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::Four(keys) => keys,
            Self::Many(keys) => keys,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [u32] {
        match self {
            Self::Four(keys) => keys,
            Self::Many(keys) => keys,
        }
    }
}

/// Returns the image of each of `0..n` in [`IndexShuffle::new`]`(n - 1, seed, rounds)`: the order of a window.
///
/// # Errors
/// Fails like [`IndexShuffle::new`].
/// # Cost
/// Less than 0.1 ms up to 1,000 elements and 0.3 ms for 2^16, because all cycles of the block are walked in parallel.
/// Above 2^16, at most four steps per element on average. Takes `4 * n` bytes.
pub fn permutation(n: u32, seed: u32, rounds: u32) -> Result<Vec<u32>> {
    let shuffle = IndexShuffle::new(u64::from(n).saturating_sub(1), seed, rounds)?;
    if n as usize <= small_block::BLOCK {
        return Ok(shuffle.table().iter().take(n as usize).map(|&at| u32::from(at)).collect());
    }
    Ok((0..n).map(|index| shuffle.get(u64::from(index)) as u32).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    /// Computes the permutation step by step, without a table, with a block sized by the bits of the largest index.
    fn naive(mut index: u64, max_index: u64, seed: u32, rounds: usize) -> u64 {
        let mut width = 16;
        while width < 64 && max_index >> width > 0 {
            width += 2;
        }
        let half = width / 2;
        let mask = (1u64 << half) - 1;
        let mut keys = vec![0; rounds];
        round_keys::fill(seed, &mut keys);
        let rotated = |x: u64, by: u32| ((x << by) | (x >> (half - by))) & mask;
        let f = |x: u64| (rotated(x, 1) & rotated(x, 8)) ^ rotated(x, 2);
        loop {
            let (mut l, mut r) = (index >> half, index & mask);
            for i in (0..rounds).step_by(2) {
                l ^= f(r) ^ (u64::from(keys[i]) & mask);
                r ^= f(l) ^ (u64::from(keys[i + 1]) & mask);
            }
            index = l << half | r;
            if index <= max_index {
                return index;
            }
        }
    }

    fn is_permutation(mut order: Vec<u64>) -> bool {
        order.sort_unstable();
        order.iter().copied().eq(0..order.len() as u64)
    }

    #[test]
    fn first_numbers_are_those_of_grain() {
        let order = |max, seed| (0..4).map(|i| IndexShuffle::new(max, seed, 4).unwrap().get(i)).collect::<Vec<_>>();
        assert_eq!(order(9, 0), [0, 4, 6, 7]);
        assert_eq!(order(9, u32::MAX), [2, 9, 5, 3]);
        assert_eq!(order(999_999, 42), [42_268, 341_132, 759_687, 923_295]);
        assert_eq!(order(0, 7)[0], 0);
    }

    #[test]
    fn an_index_is_found_again() {
        for len in [1, 2, 10, 1000, 65_536, 65_537, 1 << 40] {
            for rounds in [4, 6] {
                let shuffle = IndexShuffle::new(len - 1, 7, rounds).unwrap();
                for index in (0..len).step_by((len / 20).max(1) as usize) {
                    assert_eq!(shuffle.index_of(shuffle.get(index)), index, "{len}");
                }
                assert_eq!(shuffle.index_of(len), len);
            }
        }
    }

    // DIFFERENCE: in Grain, the largest of 4^n + 1 indices is outside the block, so one element appears twice.
    #[test]
    fn every_element_comes_once_at_lengths_one_above_a_power_of_four() {
        for len in [65_537, 262_145] {
            for seed in [0, 42, u32::MAX] {
                let shuffle = IndexShuffle::new(len - 1, seed, 4).unwrap();
                let mut seen = vec![false; len as usize];
                (0..len).for_each(|index| assert!(!std::mem::replace(&mut seen[shuffle.get(index) as usize], true)));
            }
        }
    }

    #[test]
    fn blocks_reach_to_the_largest_index() {
        for (max_index, half_bits) in [(0, 8), (65_535, 8), (65_536, 9), (1 << 62, 32), (1 << 50, 26), (u64::MAX, 32)] {
            assert_eq!(IndexShuffle::new(max_index, 1, 4).unwrap().half_bits, half_bits, "{max_index}");
        }
        for max_index in [(1 << 50) + 1, (1 << 62) + 1, i64::MAX as u64, u64::MAX] {
            let shuffle = IndexShuffle::new(max_index, 5, 6).unwrap();
            for index in [0, 1, max_index / 3, max_index - 1, max_index] {
                assert_eq!(shuffle.get(index), naive(index, max_index, 5, 6));
            }
        }
    }

    #[test]
    fn rounds_are_even_and_in_range() {
        for rounds in [0, 2, 3, 5, 1025, 1026, u32::MAX] {
            assert_eq!(IndexShuffle::new(9, 0, rounds).unwrap_err().kind(), ErrorKind::Config);
            assert!(permutation(10, 0, rounds).is_err());
        }
        assert_eq!(IndexShuffle::new(99_999, 3, 1024).unwrap().get(5), naive(5, 99_999, 3, 1024));
    }

    #[test]
    fn an_index_out_of_range_stays() {
        for max_index in [9, 99_999] {
            assert_eq!(IndexShuffle::new(max_index, 0, 4).unwrap().get(max_index + 1), max_index + 1);
        }
        assert!(permutation(0, 0, 4).unwrap().is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_index_goes_where_the_naive_one_goes(
            bits in 0u32..64, max in any::<u64>(), seed: u32, rounds in 2u32..6, index: u64,
        ) {
            let (max, rounds) = (max >> bits, rounds * 2);
            let index = index % max.saturating_add(1).max(1);
            let shuffle = IndexShuffle::new(max, seed, rounds).unwrap();
            prop_assert_eq!(shuffle.get(index), naive(index, max, seed, rounds as usize));
        }

        #[test]
        fn many_indices_go_where_each_goes_alone(
            bits in 0u32..64, max in any::<u64>(), seed: u32, rounds in 2u32..4, indices in prop::collection::vec(any::<u64>(), 0..600),
        ) {
            // A third of the indices may be out of range; the others are in range.
            let max = max >> bits;
            let shuffle = IndexShuffle::new(max, seed, rounds * 2).unwrap();
            let indices: Vec<u64> =
                indices.iter().map(|&i| if i % 3 == 0 { i } else { i % max.saturating_add(1).max(1) }).collect();
            let mut many = indices.clone();
            shuffle.get_many(&mut many);
            prop_assert_eq!(many, indices.iter().map(|&i| shuffle.get(i)).collect::<Vec<_>>());
        }

        #[test]
        fn every_index_comes_once(len in 1u64..200_000, seed: u32, rounds in 2u32..4) {
            let shuffle = IndexShuffle::new(len - 1, seed, rounds * 2).unwrap();
            let order: Vec<u64> = (0..len).map(|index| shuffle.get(index)).collect();
            let listed = permutation(len as u32, seed, rounds * 2).unwrap();
            prop_assert!(listed.into_iter().map(u64::from).eq(order.iter().copied()));
            prop_assert!(is_permutation(order));
        }
    }
}
