//! Places where the records of a file start, 4 bytes a record.
#![cfg_attr(not(feature = "formats"), allow(dead_code, reason = "what all formats share, no one format needs whole"))]

use xxhash_rust::xxh3::Xxh3;

use crate::element::Buffer;

/// The start of every record of a file, in rising order.
///
/// The file is seen as pages of 2^32 bytes. `lows` holds the low 32 bits of every start, `pages` the number of records
/// that start before each page, so a record costs 4 bytes in a file of any size, and finding it a search over pages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Starts {
    /// Records that start before page k.
    pages: Vec<u64>,
    /// Low half of every start, `u32`: on the heap, or mapped from a cache file.
    lows: Buffer,
    /// Facts that tell one index from another besides.
    facts: Facts,
    hash: u64,
}

/// Facts that an index was made of, besides the places it found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Bytes in the file.
    pub(crate) size: u64,
    /// Whether blank records are kept.
    pub(crate) keep_blank: bool,
    /// Records that were left out because they are blank.
    pub(crate) blanks: u64,
}

impl Starts {
    /// An index of these parts, with its hash computed.
    pub(crate) fn new(pages: Vec<u64>, lows: Buffer, facts: Facts) -> Self {
        let mut hasher = Xxh3::new();
        for number in [facts.size, u64::from(facts.keep_blank), facts.blanks, pages.len() as u64] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(bytemuck::cast_slice(&pages));
        hasher.update(lows.as_bytes());
        Self { pages, lows, facts, hash: hasher.digest() }
    }

    /// Number of records, without those left out.
    pub(crate) fn len(&self) -> u64 {
        (self.lows.len() / 4) as u64
    }

    /// Finds where a record starts, or `None` if there is none of that number.
    #[inline]
    pub(crate) fn get(&self, record: u64) -> Option<u64> {
        let low = *self.lows.as_slice::<u32>()?.get(usize::try_from(record).ok()?)?;
        let page = match self.pages.len() {
            1 => 0,
            _ => self.pages.partition_point(|&first| first <= record).checked_sub(1)?,
        };
        Some(((page as u64) << 32) + u64::from(low))
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    /// A hash of every record's place: equal where the records of two files are of equal lengths.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Bytes it holds in memory, or maps.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.lows.len() + self.pages.len() * 8) as u64
    }

    /// Takes apart what is written of it: pages, and low halves.
    pub(super) fn parts(&self) -> (&[u64], &Buffer) {
        (&self.pages, &self.lows)
    }
}

/// Starts while they are found, in rising order.
#[derive(Debug, Default)]
pub(crate) struct StartsBuilder {
    pages: Vec<u64>,
    lows: Vec<u32>,
}

impl StartsBuilder {
    /// Room for so many.
    pub(crate) fn with_capacity(records: usize) -> Self {
        Self { pages: Vec::new(), lows: Vec::with_capacity(records) }
    }

    /// A record starts here, not before the one told last.
    pub(crate) fn push(&mut self, start: u64) {
        self.turn_to(start);
        self.lows.push(start as u32);
    }

    /// Records start at these low halves, in the page of `from`.
    pub(crate) fn extend(&mut self, from: u64, lows: &[u32]) {
        self.turn_to(from);
        self.lows.extend_from_slice(lows);
    }

    fn turn_to(&mut self, start: u64) {
        while self.pages.len() as u64 <= start >> 32 {
            self.pages.push(self.lows.len() as u64);
        }
    }

    /// Counts those told so far.
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
        // Two in page 0, none in page 1, one in page 2.
        let all = [0, 9, (2 << 32) + 7];
        let mut builder = StartsBuilder::default();
        all.iter().for_each(|&start| builder.push(start));
        let starts = builder.finish(Facts { size: 3 << 32, ..Facts::default() });
        assert_eq!(starts.parts().0, [0, 2, 2]);
        assert_eq!([0, 1, 2].map(|i| starts.get(i).unwrap()), all);
        assert_eq!(starts.get(3), None);
    }
}
