//! Window of sequences that were read and are still held: a range of ordinals with a bit for each.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

/// Window of consecutive ordinals, some of which are already gone.
///
/// The window begins at the oldest held ordinal. Earlier ordinals are forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    window: usize,
    /// Bit per slot, 1 if the sequence is gone. The slot is the ordinal modulo the number of bits.
    gone: Vec<u64>,
    oldest: u64,
    next: u64,
    /// Slots of `oldest` and `next`, kept because a remainder per sequence would cost more than all other work here.
    oldest_slot: usize,
    next_slot: usize,
    /// End of the ordinals that have a valid bit, whether or not a sequence was pushed again after a restore.
    known: u64,
}

/// Position of a window in its input, for a later restore. Contains no data.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldState {
    /// Ordinal of the oldest sequence that is not in the output yet.
    pub oldest: u64,
    /// Bit per sequence from `oldest` on, 1 if the sequence is already in the output.
    pub gone: Bits,
}

/// Bit string up to the last 1. Serialized as hexadecimal digits, lowest four bits first.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bits(Vec<u64>);

impl Held {
    /// Creates an empty window of up to `window` ordinals.
    pub(crate) fn new(window: usize) -> Self {
        // Whole words, so that any 64 bits of the window span at most two words.
        let gone = vec![0; window.div_ceil(64)];
        Self { window, gone, oldest: 0, next: 0, oldest_slot: 0, next_slot: 0, known: 0 }
    }

    pub(crate) fn slots(&self) -> usize {
        self.gone.len() * 64
    }

    /// Returns the slot of an ordinal in the window.
    #[inline]
    pub(crate) fn slot(&self, ordinal: u64) -> usize {
        (ordinal % self.slots() as u64) as usize
    }

    /// Returns the slot of the oldest sequence.
    #[inline]
    pub(crate) fn oldest_slot(&self) -> usize {
        self.oldest_slot
    }

    /// Returns the slot of the next sequence to push.
    #[inline]
    pub(crate) fn next_slot(&self) -> usize {
        self.next_slot
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.next - self.oldest == self.window as u64
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.oldest
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    #[inline]
    fn is_gone(&self, slot: usize) -> bool {
        self.gone[slot / 64] >> (slot % 64) & 1 == 1
    }

    /// Adds the next ordinal and returns it; `None` if it is gone in a restored state.
    ///
    /// The window must not be full.
    #[inline]
    pub(crate) fn push(&mut self) -> Option<u64> {
        let (ordinal, slot) = (self.next, self.next_slot);
        self.next += 1;
        self.next_slot = if slot + 1 == self.slots() { 0 } else { slot + 1 };
        if ordinal >= self.known {
            self.known = self.next;
            self.gone[slot / 64] &= !(1 << (slot % 64));
        }
        (!self.is_gone(slot)).then_some(ordinal)
    }

    /// Marks the sequence in `slot` as gone and returns its ordinal.
    ///
    /// The window moves only at the next call of [`advance`](Self::advance).
    #[inline]
    pub(crate) fn take(&mut self, slot: usize) -> u64 {
        self.gone[slot / 64] |= 1 << (slot % 64);
        let (slots, oldest) = (self.slots(), self.oldest_slot);
        let behind = if slot >= oldest { slot - oldest } else { slot + slots - oldest };
        self.oldest + behind as u64
    }

    /// Moves the start of the window to the oldest held sequence.
    #[inline]
    pub(crate) fn advance(&mut self) {
        while self.oldest < self.next {
            let (word, shift) = (self.oldest_slot / 64, self.oldest_slot % 64);
            let gone = u64::from((self.gone[word] >> shift).trailing_ones()).min(self.next - self.oldest);
            self.oldest += gone;
            self.oldest_slot += gone as usize;
            if !self.oldest_slot.is_multiple_of(64) || gone == 0 {
                return;
            }
            if self.oldest_slot == self.slots() {
                self.oldest_slot = 0;
            }
        }
    }

    pub(crate) fn state(&self) -> HeldState {
        let span = (self.known - self.oldest) as usize;
        let mut words = Vec::with_capacity(span.div_ceil(64));
        for at in (0..span).step_by(64) {
            let slot = self.slot(self.oldest + at as u64);
            let (word, shift) = (slot / 64, slot % 64);
            let low = self.gone[word] >> shift;
            // A shift by 64 overflows, so it is split into shifts by 1 and by 63.
            let high = self.gone[(word + 1) % self.gone.len()] << 1 << (63 - shift);
            let seen = span - at;
            words.push((low | high) & if seen < 64 { (1 << seen) - 1 } else { !0 });
        }
        HeldState { oldest: self.oldest, gone: Bits::new(words) }
    }

    /// Resets to an empty window at the oldest ordinal of `state`. The caller pushes the sequences from there on again.
    ///
    /// # Errors
    /// `State` if `state` does not fit a window of this size.
    pub(crate) fn restore(&mut self, state: &HeldState) -> Result<()> {
        let (span, window) = (state.gone.len(), self.window);
        let known = state.oldest.checked_add(span as u64);
        let Some(known) = known.filter(|_| span <= window && !state.gone.get(0)) else {
            let oldest = state.oldest;
            return Err(Error::state(format!("a window of {span} sequences from {oldest} on, restored into {window}")));
        };
        *self = Self { oldest: state.oldest, next: state.oldest, known, ..Self::new(window) };
        self.oldest_slot = self.slot(state.oldest);
        self.next_slot = self.oldest_slot;
        for at in 0..span {
            let slot = self.slot(state.oldest + at as u64);
            self.gone[slot / 64] |= u64::from(state.gone.get(at)) << (slot % 64);
        }
        Ok(())
    }
}

impl Bits {
    fn new(mut words: Vec<u64>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Self(words)
    }

    /// Returns the number of bits up to the last 1.
    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| self.0.len() * 64 - last.leading_zeros() as usize)
    }

    /// Returns true if no bit is 1.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns bit `at`, which is 0 after the last 1.
    pub fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

display_as!(Bits, |self, f| {
    let digits = self.len().div_ceil(4);
    (0..digits).try_for_each(|digit| write!(f, "{:x}", self.0[digit / 16] >> (digit % 16 * 4) & 15))
});

debug_as!(Bits, |self, f| write!(f, "Bits({self})"));

impl Serialize for Bits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut words = vec![0u64; text.len().div_ceil(16)];
        for (at, digit) in text.chars().enumerate() {
            let value = digit.to_digit(16).ok_or_else(|| D::Error::custom(format!("{digit:?} is no hex digit")))?;
            words[at / 16] |= u64::from(value) << (at % 16 * 4);
        }
        Ok(Self::new(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_digits_in_json() {
        let bits = Bits::new(vec![0x12, 1, 0]);
        assert_eq!(serde_json::to_string(&bits).unwrap(), "\"21000000000000001\"");
        assert_eq!(serde_json::from_str::<Bits>("\"21000000000000001\"").unwrap(), bits);
        assert_eq!(serde_json::from_str::<Bits>("\"000\"").unwrap(), Bits::default());
        assert!(serde_json::from_str::<Bits>("\"2g\"").is_err());
        assert!(serde_json::from_str::<Bits>("\"é0\"").is_err());
        assert_eq!((bits.len(), bits.get(4), bits.get(5), bits.get(400)), (65, true, false, false));
    }

    #[test]
    fn a_window_comes_back_with_its_gaps() {
        for start in [0, 1, 60, 64, 100] {
            let mut held = Held::new(70);
            for _ in 0..start {
                let ordinal = held.push().unwrap();
                held.take(held.slot(ordinal));
                held.advance();
            }
            (0..70).for_each(|_| assert!(held.push().is_some()));
            assert!(held.is_full());
            for at in [1, 2, 63, 64, 69] {
                assert_eq!(held.take(held.slot(start + at)), start + at);
            }
            held.advance();
            let state = held.state();
            assert_eq!((state.oldest, state.gone.len()), (start, 70));
            let mut again = Held::new(70);
            again.restore(&state).unwrap();
            assert_eq!(again.state(), state);
            let gone: Vec<u64> = (0..70).filter(|_| again.push().is_none()).collect();
            assert_eq!(gone, [1, 2, 63, 64, 69]);
            assert_eq!(again.state(), state);
        }
    }

    #[test]
    fn a_foreign_state_is_refused() {
        let state = |oldest, words| HeldState { oldest, gone: Bits::new(words) };
        for state in [state(3, vec![1]), state(3, vec![1 << 20]), state(u64::MAX, vec![2])] {
            assert_eq!(Held::new(16).restore(&state).unwrap_err().kind(), crate::ErrorKind::State);
        }
        Held::new(16).restore(&state(3, vec![2])).unwrap();
    }
}
