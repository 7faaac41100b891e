//! Start offsets of the records of a file, at 4 bytes per record.

use xxhash_rust::xxh3::Xxh3;

use crate::element::Buffer;

/// The start of every record of a file, in ascending order.
///
/// The file is divided into pages of 2^32 bytes. `lows` holds the low 32 bits of every start, `pages` the number of
/// records that start before each page. A record therefore needs 4 bytes in a file of any size, and a lookup searches
/// the pages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Starts {
    /// Number of records that start before page k.
    pages: Vec<u64>,
    /// Low 32 bits of every start, as `u32`: on the heap, or mapped from a cache file.
    lows: Buffer,
    /// Other facts that distinguish indices.
    pub(crate) facts: Facts,
    pub(crate) hash: u64,
}

/// Facts about the file and its index, besides the starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Size of the file in bytes.
    pub(crate) size: u64,
    /// True if blank records are kept.
    pub(crate) keep_blank: bool,
    /// Number of records that were skipped because they are blank.
    pub(crate) blanks: u64,
}

impl Starts {
    /// Creates an index, and computes its hash.
    pub(crate) fn new(pages: Vec<u64>, lows: Buffer, facts: Facts) -> Self {
        let mut hasher = Xxh3::new();
        for number in [facts.size, u64::from(facts.keep_blank), facts.blanks, pages.len() as u64] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(bytemuck::cast_slice(&pages));
        hasher.update(lows.as_bytes());
        Self { pages, lows, facts, hash: hasher.digest() }
    }

    /// Returns the number of records, without skipped records.
    pub(crate) fn len(&self) -> u64 {
        (self.lows.len() / 4) as u64
    }

    /// Returns the start of a record, or `None` if there is no such record.
    #[inline]
    pub(crate) fn get(&self, record: u64) -> Option<u64> {
        let low = *self.lows.as_slice::<u32>()?.get(usize::try_from(record).ok()?)?;
        let page = match self.pages.len() {
            1 => 0,
            _ => self.pages.partition_point(|&first| first <= record).checked_sub(1)?,
        };
        Some(((page as u64) << 32) + u64::from(low))
    }

    /// Returns the number of bytes in memory or mapped.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.lows.len() + self.pages.len() * 8) as u64
    }

    /// Returns the parts that a cache file contains: pages and low halves.
    pub(super) fn parts(&self) -> (&[u64], &Buffer) {
        (&self.pages, &self.lows)
    }
}

/// Builder of [`Starts`], in ascending order.
#[derive(Debug, Default)]
pub(crate) struct StartsBuilder {
    pages: Vec<u64>,
    lows: Vec<u32>,
}

impl StartsBuilder {
    /// Creates a builder with capacity for `records`.
    pub(crate) fn with_capacity(records: usize) -> Self {
        Self { pages: Vec::new(), lows: Vec::with_capacity(records) }
    }

    /// Adds the start of a record, which must not be before the previous start.
    pub(crate) fn push(&mut self, start: u64) {
        self.turn_to(start);
        self.lows.push(start as u32);
    }

    /// Adds the starts of records with these low halves, in the page of `from`.
    pub(crate) fn extend(&mut self, from: u64, lows: &[u32]) {
        self.turn_to(from);
        self.lows.extend_from_slice(lows);
    }

    fn turn_to(&mut self, start: u64) {
        while self.pages.len() as u64 <= start >> 32 {
            self.pages.push(self.lows.len() as u64);
        }
    }

    /// Returns the number of records added.
    pub(crate) fn len(&self) -> u64 {
        self.lows.len() as u64
    }

    pub(crate) fn finish(self, facts: Facts) -> Starts {
        Starts::new(self.pages, Buffer::from_vec(self.lows), facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_hold_the_upper_half_of_a_start() {
        // Two records in page 0, none in page 1, and a third in page 2.
        let all = [0, 9, (2 << 32) + 7];
        let mut builder = StartsBuilder::default();
        all.iter().for_each(|&start| builder.push(start));
        let starts = builder.finish(Facts { size: 3 << 32, ..Facts::default() });
        assert_eq!(starts.parts().0, [0, 2, 2]);
        assert_eq!([0, 1, 2].map(|i| starts.get(i).unwrap()), all);
        assert_eq!(starts.get(3), None);
    }
}
