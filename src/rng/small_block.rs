//! The permutation of up to 2^16 numbers as a table: every cycle walk at once.
//!
//! For `n` up to 2^16 Grain permutes a block of 2^16 numbers, again and again until the number is below `n`: `2^16 / n`
//! steps for each number on average. The walks of all `n` numbers have no number in common, so together they are at
//! most 2^16 steps; what costs is that each step waits for the one before. So the walks from all of `0..m`
//! back below `m`, for an `m >= n` that cuts the cycles into enough pieces, run side by side, one a lane, which the
//! compiler turns into vector instructions. The walks through that table from below `n` back below `n` are short.
//!
//! A word of 64 bits holds eight lanes. In unoptimised test builds, a table takes a fifth of the time of a loop over bytes.

/// Numbers in the block: 8 bits on either side of the Feistel network.
pub(crate) const BLOCK: usize = 1 << 16;

const LANES: usize = 64;
/// Walks to run at least, so that all lanes are busy until near the end.
const MIN_WALKS: usize = 1024;

/// Returns where each of `0..n` goes, for `n <= 2^16`; `keys` come in pairs, and their low 8 bits count.
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
        // Later walks end below `n` and never read an entry there, so the table can hold both.
        next[start] = at;
    }
    next.truncate(n);
    next.into_boxed_slice()
}

/// Words of all lanes, with a byte for each lane.
const WORDS: usize = LANES / 8;
/// One in each lane of a word.
const ONES: u64 = u64::MAX / 255;
/// The top bit of each lane of a word.
const TOPS: u64 = ONES << 7;

/// Mixes a half in each lane.
#[inline(always)]
fn mixed(half: u64) -> u64 {
    let left1 = (half & !TOPS) << 1 | (half >> 7) & ONES;
    let left2 = (left1 & !TOPS) << 1 | (left1 >> 7) & ONES;
    (left1 & half) ^ left2
}

/// The top bit of each lane of `x` that is at most the lane of `y`.
#[inline(always)]
fn at_most(x: u64, y: u64) -> u64 {
    // The low 7 bits of a lane, subtracted from at least 128, borrow nothing from the next lane.
    let low = (y | TOPS) - (x & !TOPS);
    ((!x & y) | (!(x ^ y) & low)) & TOPS
}

/// For each of `0..m` the first number below `m` that its walk meets; `m` is a multiple of 256 and at most 2^16.
fn first_returns(m: usize, keys: &[u32]) -> Vec<u16> {
    let last_high = (m / 256 - 1) as u64 * ONES;
    let keys: Vec<u64> = keys.iter().map(|&key| u64::from(key as u8) * ONES).collect();
    // Lanes that have nothing left to do write behind the end.
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
