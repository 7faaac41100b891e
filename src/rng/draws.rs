//! Numbers from random words. Draws words in the order of numpy's `Generator`, bit for bit.

use crate::error::{Error, Result};

/// A generator of words, called a bit generator in numpy.
pub(crate) trait Words {
    /// Returns the next 64 bits.
    fn word(&mut self) -> u64;
    /// Returns the next 32 bits: the low half of a word, then its high half on the next call.
    fn half_word(&mut self) -> u32;
}

/// The two halves of a word, returned in turn like numpy's `next_uint32`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Halves {
    high: Option<u32>,
}

impl Halves {
    pub(crate) fn next(&mut self, word: impl FnOnce() -> u64) -> u32 {
        self.high.take().unwrap_or_else(|| {
            let word = word();
            self.high = Some((word >> 32) as u32);
            word as u32
        })
    }
}

/// Returns a uniform number of `0..=last`.
///
/// # Source
/// D. Lemire, *Fast random integer generation in an interval*, 2019. Uses 32-bit words if `last` fits, like numpy.
pub(crate) fn bounded(words: &mut impl Words, last: u64) -> u64 {
    match (u32::try_from(last), last) {
        (Ok(0), _) => 0,
        (Ok(u32::MAX), _) => u64::from(words.half_word()),
        (Ok(last), _) => u64::from(bounded_u32(words, last)),
        (Err(_), u64::MAX) => words.word(),
        (Err(_), last) => bounded_u64(words, last),
    }
}

fn bounded_u32(words: &mut impl Words, last: u32) -> u32 {
    let count = last + 1;
    let mut product = u64::from(words.half_word()) * u64::from(count);
    if (product as u32) < count {
        let threshold = (u32::MAX - last) % count;
        while (product as u32) < threshold {
            product = u64::from(words.half_word()) * u64::from(count);
        }
    }
    (product >> 32) as u32
}

fn bounded_u64(words: &mut impl Words, last: u64) -> u64 {
    let count = last + 1;
    let mut product = u128::from(words.word()) * u128::from(count);
    if (product as u64) < count {
        let threshold = (u64::MAX - last) % count;
        while (product as u64) < threshold {
            product = u128::from(words.word()) * u128::from(count);
        }
    }
    (product >> 64) as u64
}

/// Returns a uniform number of `low..high`, or an error if the range is empty.
pub(crate) fn integers(words: &mut impl Words, low: i64, high: i64) -> Result<i64> {
    if low >= high {
        return Err(Error::config(format!("no integer is at least {low} and below {high}")));
    }
    Ok(low.wrapping_add_unsigned(bounded(words, high.abs_diff(low) - 1)))
}

/// Returns a multiple of 2^-53 in `0.0..1.0`.
pub(crate) fn unit_f64(words: &mut impl Words) -> f64 {
    (words.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Shuffles by Fisher and Yates from the back, like numpy's `Generator.shuffle` and `permuted`.
pub(crate) fn shuffle<T>(words: &mut impl Words, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, masked(words, last as u64) as usize);
    }
}

/// Returns a number of `0..=last` for `last > 0`, like numpy's `random_interval`, which masks words to the bits of `last`.
fn masked(words: &mut impl Words, last: u64) -> u64 {
    let mask = u64::MAX >> last.leading_zeros();
    loop {
        let word = if last <= u64::from(u32::MAX) { u64::from(words.half_word()) } else { words.word() };
        if word & mask <= last {
            return word & mask;
        }
    }
}
