//! The permutation of up to 2^16 numbers as a table, with all cycle walks computed in parallel.
//!
//! For `n` up to 2^16, Grain permutes a block of 2^16 numbers repeatedly until the number is below `n`. That takes
//! `2^16 / n` steps per number on average. The walks of all `n` numbers are disjoint, so they have at most 2^16 steps in
//! total. The cost is latency: each step waits for the previous step.
//!
//! So the walks from all of `0..m` back below `m` run in parallel, for an `m >= n` that cuts the cycles into enough pieces.
//! Each walk takes a lane, and the compiler emits vector instructions. The walks through the resulting table from below
//! `n` back below `n` are short.
//!
//! A word of 64 bits contains eight lanes. In unoptimised test builds, this takes a fifth of the time of a loop over bytes.

/// Numbers in the block: 8 bits in each half of the Feistel network.
pub(crate) const BLOCK: usize = 1 << 16;

const LANES: usize = 64;
/// Minimum number of walks, so that all lanes are busy until near the end.
const MIN_WALKS: usize = 1024;

/// Returns the image of each of `0..n`, for `n <= 2^16`. Uses `keys` in pairs, and only their low 8 bits.
pub(crate) fn table(n: usize, keys: &[u32]) -> Box<[u16]> {
    debug_assert!(n <= BLOCK);
    if n < 2 {
        return vec![0; n].into_boxed_slice();
    }
    let mut next = first_returns(n.next_multiple_of(256).max(MIN_WALKS), keys);
    for start in 0..n {
        let mut at = next[start];
        while usize::from(at) >= n {
            at = next[usize::from(at)];
        }
        // Later walks stop at a number below `n` without reading its entry, so the table can hold old and new entries.
        next[start] = at;
    }
    next.truncate(n);
    next.into_boxed_slice()
}

/// Number of words for all lanes, at a byte per lane.
const WORDS: usize = LANES / 8;
/// A word with the value 1 in each lane.
const ONES: u64 = u64::MAX / 255;
/// A word with the top bit of each lane set.
const TOPS: u64 = ONES << 7;

/// Applies the round function to the half in each lane.
#[inline(always)]
fn mixed(half: u64) -> u64 {
    let left1 = (half & !TOPS) << 1 | (half >> 7) & ONES;
    let left2 = (left1 & !TOPS) << 1 | (left1 >> 7) & ONES;
    (left1 & half) ^ left2
}

/// Returns the top bits of the lanes in which `x` is at most `y`.
#[inline(always)]
fn at_most(x: u64, y: u64) -> u64 {
    // The low 7 bits of a lane, subtracted from at least 128, borrow nothing from the next lane.
    let low = (y | TOPS) - (x & !TOPS);
    ((!x & y) | (!(x ^ y) & low)) & TOPS
}

/// Returns the first number below `m` on the walk of each of `0..m`. `m` must be a multiple of 256 and at most 2^16.
fn first_returns(m: usize, keys: &[u32]) -> Vec<u16> {
    let last_high = (m / 256 - 1) as u64 * ONES;
    let keys: Vec<u64> = keys.iter().map(|&key| u64::from(key as u8) * ONES).collect();
    // Lanes without a remaining walk write to the extra entry at the end.
    let mut first = vec![0; m + 1];
    let mut start: [usize; LANES] = std::array::from_fn(|lane| lane);
    let mut high = [0u8; LANES];
    let mut low: [u8; LANES] = std::array::from_fn(|lane| lane as u8);
    let (mut waiting, mut walking) = (LANES, LANES);
    while walking > 0 {
        let (mut highs, mut lows) = ([0; WORDS], [0; WORDS]);
        read(&mut highs, &high);
        read(&mut lows, &low);
        for pair in keys.chunks_exact(2) {
            for (high, low) in highs.iter_mut().zip(&mut lows) {
                *high ^= mixed(*low) ^ pair[0];
                *low ^= mixed(*high) ^ pair[1];
            }
        }
        write(&mut high, &highs);
        write(&mut low, &lows);
        for (word, &highs) in highs.iter().enumerate() {
            let mut done = at_most(highs, last_high);
            while done != 0 {
                let lane = 8 * word + done.trailing_zeros() as usize / 8;
                done &= done - 1;
                first[start[lane]] = u16::from_be_bytes([high[lane], low[lane]]);
                walking -= usize::from(waiting == m && start[lane] < m);
                start[lane] = waiting;
                waiting = m.min(waiting + 1);
                [high[lane], low[lane]] = (start[lane] as u16).to_be_bytes();
            }
        }
    }
    first
}

#[inline(always)]
fn read(words: &mut [u64; WORDS], lanes: &[u8; LANES]) {
    for (word, lanes) in words.iter_mut().zip(lanes.as_chunks().0) {
        *word = u64::from_le_bytes(*lanes);
    }
}

#[inline(always)]
fn write(lanes: &mut [u8; LANES], words: &[u64; WORDS]) {
    for (lanes, word) in lanes.as_chunks_mut().0.iter_mut().zip(words) {
        *lanes = word.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(start: usize, n: usize, keys: &[u32]) -> u16 {
        let mixed = |half: u8| (half.rotate_left(1) & half) ^ half.rotate_left(2);
        let [mut high, mut low] = (start as u16).to_be_bytes();
        loop {
            for pair in keys.chunks_exact(2) {
                high ^= mixed(low) ^ pair[0] as u8;
                low ^= mixed(high) ^ pair[1] as u8;
            }
            let at = u16::from_be_bytes([high, low]);
            if usize::from(at) < n {
                return at;
            }
        }
    }

    #[test]
    fn lanes_walk_where_single_walks_go() {
        for n in [0, 1, 2, 3, 10, 255, 256, 257, 1000, 1023, 1024, 1025, 5000, 30_000, BLOCK - 257, BLOCK - 1, BLOCK] {
            for keys in [&[1, 2, 3, 4][..], &[77, 1 << 31, 8_000_000, 9], &[5, 200, 3, 7, 123, 90]] {
                let single: Vec<u16> = (0..n).map(|start| walk(start, n, keys)).collect();
                assert_eq!(*table(n, keys), *single, "n {n}");
            }
        }
    }
}
