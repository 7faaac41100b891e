//! Integers packed into the bits that their range needs.

/// Bytes that must follow packed numbers: each number is read with an unaligned load of eight bytes.
pub(super) const SLACK: usize = 8;

/// Frame of a run of numbers: the smallest number, and the bits that each number takes above it. Equal numbers take no bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    width: u8,
    base: u32,
}

impl Frame {
    /// Length of a frame in a file: one byte for the bit width, four bytes for the smallest number.
    pub(super) const BYTES: usize = 5;

    /// Returns the frame of these numbers.
    pub(super) fn of(values: impl IntoIterator<Item = u32>) -> Self {
        let (mut least, mut most) = (u32::MAX, 0);
        for value in values {
            (least, most) = (least.min(value), most.max(value));
        }
        let base = if least > most { 0 } else { least };
        Self { width: (u32::BITS - most.saturating_sub(least).leading_zeros()) as u8, base }
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.base.to_le_bytes();
        [self.width, a, b, c, d]
    }

    /// Reads a frame. Returns `None` if the bit width is above 32.
    #[inline]
    pub(super) fn from_bytes([width, base @ ..]: [u8; Self::BYTES]) -> Option<Self> {
        (u32::from(width) <= u32::BITS).then_some(Self { width, base: u32::from_le_bytes(base) })
    }

    /// Returns the number of bytes that `count` packed numbers take.
    #[inline]
    pub(super) fn bytes_for(self, count: usize) -> usize {
        (count as u64 * u64::from(self.width)).div_ceil(8) as usize
    }

    /// Returns the common value if all numbers are equal and take no bits.
    #[inline]
    pub(super) fn only(self) -> Option<u32> {
        (self.width == 0).then_some(self.base)
    }

    /// Returns true if every number is 0 or 1 and takes one bit.
    #[inline]
    pub(super) fn is_bitmap(self) -> bool {
        self == Self { width: 1, base: 0 }
    }

    /// Appends the packed numbers to `out`. The frame must be the frame of these numbers.
    pub(super) fn pack(self, values: impl Iterator<Item = u32>, out: &mut Vec<u8>) {
        let (mut bits, mut held) = (0u64, 0);
        for value in values {
            bits |= u64::from(value.wrapping_sub(self.base)) << held;
            held += u32::from(self.width);
            if held >= u32::BITS {
                out.extend_from_slice(&(bits as u32).to_le_bytes());
                bits >>= u32::BITS;
                held -= u32::BITS;
            }
        }
        out.extend_from_slice(&bits.to_le_bytes()[..held.div_ceil(8) as usize]);
    }
}

/// Run of packed numbers, followed by at least [`SLACK`] bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    pub(super) frame: Frame,
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Returns the first `count` numbers of `bytes`, or `None` if `bytes` is too short.
    #[inline]
    pub(super) fn new(frame: Frame, count: usize, bytes: &'a [u8]) -> Option<Self> {
        let end = frame.bytes_for(count).checked_add(SLACK)?;
        Some(Self { frame, count, bytes: bytes.get(..end)? })
    }

    /// Returns number `at` of the run.
    #[inline]
    pub(super) fn get(self, at: usize) -> u32 {
        debug_assert!(at < self.count, "number {at} of {}", self.count);
        let bit = at * usize::from(self.frame.width);
        let Some(word) = self.bytes[bit / 8..].first_chunk() else { return 0 };
        let above = (u64::from_le_bytes(*word) >> (bit % 8)) & ((1 << self.frame.width) - 1);
        // A frame from a damaged file may overflow `u32`.
        self.frame.base.wrapping_add(above as u32)
    }

    /// Iterates over the numbers in order.
    #[inline]
    pub(super) fn iter(self) -> impl ExactSizeIterator<Item = u32> {
        (0..self.count).map(move |at| self.get(at))
    }

    /// Returns the number of set bits among the first `count` numbers of a bitmap.
    #[inline]
    pub(super) fn ones(self, count: usize) -> usize {
        let word = |at: usize| {
            let word = self.bytes[at / 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            // Masks the bits at and above `count` in the last word.
            word & (u64::MAX >> (64 - (count - at).min(64)))
        };
        (0..count).step_by(64).map(|at| word(at).count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(values: &[u32]) -> (Frame, Vec<u8>) {
        let (frame, mut bytes) = (Frame::of(values.iter().copied()), Vec::new());
        frame.pack(values.iter().copied(), &mut bytes);
        assert_eq!(bytes.len(), frame.bytes_for(values.len()));
        bytes.extend([0xff; SLACK]);
        (frame, bytes)
    }

    #[test]
    fn equal_numbers_take_no_bytes_and_zeros_and_ones_a_bit() {
        assert_eq!(packed(&[7; 100]).1.len(), SLACK);
        assert_eq!(packed(&[u32::MAX; 3]).0.only(), Some(u32::MAX));
        assert_eq!(packed(&[]), (Frame { width: 0, base: 0 }, vec![0xff; SLACK]));
        let bits = [0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1];
        let (frame, bytes) = packed(&bits);
        assert!(frame.is_bitmap() && !packed(&[1, 2]).0.is_bitmap());
        let bitmap = Packed::new(frame, bits.len(), &bytes).unwrap();
        for count in 0..=bits.len() {
            assert_eq!(bitmap.ones(count), bits[..count].iter().sum::<u32>() as usize, "{count}");
        }
    }

    #[test]
    fn frames_of_more_bits_than_a_number_has_are_none() {
        assert_eq!(Frame::from_bytes([33, 0, 0, 0, 0]), None);
        assert!(Frame::from_bytes([32, 0, 0, 0, 0]).is_some());
    }

    proptest! {
        #[test]
        fn what_was_packed_is_there(base in any::<u32>(), bits in 0..=32u32, raw in prop::collection::vec(any::<u32>(), 0..300)) {
            let mask = ((1u64 << bits) - 1) as u32;
            let values: Vec<u32> = raw.iter().map(|value| base.saturating_add(value & mask)).collect();
            let (frame, bytes) = packed(&values);
            prop_assert_eq!(Frame::from_bytes(frame.to_bytes()), Some(frame));
            let packed = Packed::new(frame, values.len(), &bytes).unwrap();
            prop_assert!(packed.iter().eq(values.iter().copied()));
            prop_assert!((0..values.len()).all(|at| packed.get(at) == values[at]));
            prop_assert!(Packed::new(frame, values.len(), &bytes[..bytes.len() - 1]).is_none());
        }
    }
}
