//! MT19937, the generator of numpy's `RandomState`, for orders drawn by older numpy code.

/// Number of words of the state, and the distance of the words that a step combines.
const LEN: usize = 624;
const MIDDLE: usize = 397;
/// Number of swaps that are drawn before they are made.
const AHEAD: usize = 128;

/// MT19937, seeded like numpy's `RandomState(seed)`.
///
/// # Source
/// M. Matsumoto and T. Nishimura, *Mersenne twister: a 623-dimensionally equidistributed uniform pseudo-random number
/// generator*, 1998, with the initialisation of 2002.
#[derive(Clone, Debug)]
pub(crate) struct Mt19937 {
    state: [u32; LEN],
    /// The words of the state, tempered, and the number of words that were taken.
    words: [u32; LEN],
    taken: usize,
}

impl Mt19937 {
    pub(crate) fn from_seed(seed: u32) -> Self {
        let mut state = [seed; LEN];
        for at in 1..LEN {
            let before: u32 = state[at - 1];
            state[at] = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(at as u32);
        }
        Self { state, words: [0; LEN], taken: LEN }
    }

    /// Shuffles `items`, at most 2^32, like numpy's `RandomState.shuffle` of an array.
    pub(crate) fn shuffle(&mut self, items: &mut [u32]) {
        debug_assert!(items.len() as u64 <= 1 << 32);
        let mut last = items.len().saturating_sub(1) as u32;
        let mut chosen = [0; AHEAD];
        while last > 0 {
            let chosen = &mut chosen[..AHEAD.min(last as usize)];
            self.draw(last, chosen);
            // These loads are independent, so the processor waits for many of them at once. The swaps then find their
            // items in the cache.
            std::hint::black_box(chosen.iter().fold(0, |all, &at| all ^ items[at as usize]));
            for &mut at in chosen {
                items.swap(last as usize, at as usize);
                last -= 1;
            }
        }
    }

    /// Draws a uniform number of `0..=last`, then of `0..=last - 1`, and so on.
    fn draw(&mut self, mut last: u32, out: &mut [u32]) {
        let mut drawn = 0;
        while drawn < out.len() {
            // A number above `last` is written, too, and overwritten by the next draw: a branch would be unpredictable.
            let number = self.word() & (u32::MAX >> last.leading_zeros());
            out[drawn] = number;
            let is_taken = number <= last;
            drawn += usize::from(is_taken);
            last -= u32::from(is_taken);
        }
    }

    #[inline]
    fn word(&mut self) -> u32 {
        if self.taken == LEN {
            self.step();
        }
        self.taken += 1;
        self.words[self.taken - 1]
    }

    fn step(&mut self) {
        let twist = |first: u32, second: u32| {
            let joined = (first & 0x8000_0000) | (second & 0x7fff_ffff);
            (joined >> 1) ^ (0x9908_b0df & (second & 1).wrapping_neg())
        };
        let state = &mut self.state;
        for at in 0..LEN - MIDDLE {
            state[at] = state[at + MIDDLE] ^ twist(state[at], state[at + 1]);
        }
        for at in LEN - MIDDLE..LEN - 1 {
            state[at] = state[at + MIDDLE - LEN] ^ twist(state[at], state[at + 1]);
        }
        state[LEN - 1] = state[MIDDLE - 1] ^ twist(state[LEN - 1], state[0]);
        for (word, &state) in self.words.iter_mut().zip(&*state) {
            let mut tempered = state ^ (state >> 11);
            tempered ^= (tempered << 7) & 0x9d2c_5680;
            tempered ^= (tempered << 15) & 0xefc6_0000;
            *word = tempered ^ (tempered >> 18);
        }
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // numpy 2.4.6: `RandomState(seed).shuffle(numbers)` of `arange(n)`; long orders folded by `31 * hash + number`.
    #[test]
    fn orders_are_those_of_numpy() {
        let shuffled = |seed, n| {
            let mut numbers: Vec<u32> = (0..n).collect();
            Mt19937::from_seed(seed).shuffle(&mut numbers);
            numbers
        };
        let short: [(u32, &[u32]); 5] = [
            (0, &[]),
            (0, &[0]),
            (7, &[0, 1]),
            (1234, &[13, 11, 0, 12, 14, 2, 10, 7, 1, 9, 8, 4, 5, 6, 3, 15]),
            (4294967295, &[11, 17, 19, 15, 1, 5, 8, 16, 13, 18, 14, 9, 10, 6, 0, 4, 7, 12, 2, 3]),
        ];
        for (seed, order) in short {
            assert_eq!(shuffled(seed, order.len() as u32), order, "seed {seed}");
        }
        let long = [
            (3, 100, 15856472109823961362u64),
            (4, 129, 111805118493188960u64),
            (5, 65537, 14979686722134553714u64),
            (1234, 200000, 12714237488801317716u64),
        ];
        for (seed, n, folded) in long {
            let hash = shuffled(seed, n).iter().fold(0u64, |hash, &i| hash.wrapping_mul(31).wrapping_add(i.into()));
            assert_eq!(hash, folded, "seed {seed}, n {n}");
        }
    }
}
