//! Sequences read so far that are still held: a range of ordinals and a bit for each.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

/// A window of consecutive ordinals, of which some are gone already.
///
/// It begins at the oldest that is held, so what is gone in front of that is forgotten.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    window: usize,
    /// A bit per slot, 1 where the sequence is gone; a slot is an ordinal modulo the number of bits.
    gone: Vec<u64>,
    oldest: u64,
    next: u64,
    /// The slots of these two: a remainder for each sequence would take longer than all else that is done here.
    oldest_slot: usize,
    next_slot: usize,
    /// Ordinals below this have a meaningful bit, whether they were pushed again or not.
    known: u64,
}

/// Position of a window, to read it again: positions only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldState {
    /// The oldest sequence that was not put out yet.
    pub oldest: u64,
    /// The sequences from it on that were put out already.
    pub gone: Bits,
}

/// A row of bits up to the last 1, written as hexadecimal digits, the lowest four bits first.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bits(Vec<u64>);

impl Held {
    /// An empty window of up to `window` ordinals.
    pub(crate) fn new(window: usize) -> Self {
        // Whole words, so that any 64 bits of it lie in two.
        let gone = vec![0; window.div_ceil(64)];
        Self { window, gone, oldest: 0, next: 0, oldest_slot: 0, next_slot: 0, known: 0 }
    }

    pub(crate) fn slots(&self) -> usize {
        self.gone.len() * 64
    }

    /// The slot of an ordinal of the window.
    #[inline]
    pub(crate) fn slot(&self, ordinal: u64) -> usize {
        (ordinal % self.slots() as u64) as usize
    }

    /// The slot of the oldest sequence.
    #[inline]
    pub(crate) fn oldest_slot(&self) -> usize {
        self.oldest_slot
    }

    /// The slot of the sequence that is pushed next.
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

    /// Takes the next ordinal in; `None` if a restored state says that it is gone. The window is not full.
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

    /// Lets the sequence in `slot` go, and says its ordinal. The window moves on at [`advance`](Self::advance).
    #[inline]
    pub(crate) fn take(&mut self, slot: usize) -> u64 {
        self.gone[slot / 64] |= 1 << (slot % 64);
        let (slots, oldest) = (self.slots(), self.oldest_slot);
        let behind = if slot >= oldest { slot - oldest } else { slot + slots - oldest };
        self.oldest + behind as u64
    }

    /// Moves the window on to the oldest sequence that is held.
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
            // Shifting by 64 is shifting by 1 and 63.
            let high = self.gone[(word + 1) % self.gone.len()] << 1 << (63 - shift);
            let seen = span - at;
            words.push((low | high) & if seen < 64 { (1 << seen) - 1 } else { !0 });
        }
        HeldState { oldest: self.oldest, gone: Bits::new(words) }
    }

    /// The empty window before the oldest ordinal of `state`; those from it on are to be pushed again.
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

    /// Bits up to the last 1.
    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| self.0.len() * 64 - last.leading_zeros() as usize)
    }

    /// Whether no bit is 1.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bit `at`; 0 behind the last 1.
    pub fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.len().div_ceil(4);
        (0..digits).try_for_each(|digit| write!(f, "{:x}", self.0[digit / 16] >> (digit % 16 * 4) & 15))
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits({self})")
    }
}

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
