//! Search for the part that contains a record. Records are numbered across parts: files, row groups, shards, chunks.

use crate::error::{Error, Result};

/// Number of records before each part.
#[derive(Clone, Debug)]
pub(crate) struct Firsts {
    before: Before,
    pub(crate) len: u64,
}

#[derive(Clone, Debug)]
enum Before {
    /// Number of records in every part except the last, which may have fewer. Needs neither an array nor a search.
    Even(u64),
    Uneven(Vec<u64>),
}

impl Firsts {
    /// Creates the table for parts with these record counts.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the total overflows `u64`.
    pub(crate) fn of(counts: impl IntoIterator<Item = u64>) -> Result<Self> {
        let (mut firsts, mut len) = (Vec::new(), 0u64);
        for count in counts {
            firsts.push(len);
            len = len.checked_add(count).ok_or_else(|| Error::data("more than 2^64 records"))?;
        }
        Ok(Self { before: Before::of(firsts, len), len })
    }

    /// Returns the number of records before `part`, which must exist.
    #[inline]
    pub(crate) fn before(&self, part: usize) -> u64 {
        match &self.before {
            Before::Even(count) => count * part as u64,
            Before::Uneven(firsts) => firsts[part],
        }
    }

    /// Returns the number of records in `part`, which must exist.
    #[inline]
    pub(crate) fn count(&self, part: usize) -> u64 {
        let (first, rest) = (self.before(part), |first: u64| self.len - first);
        match &self.before {
            Before::Even(count) => rest(first).min(*count),
            Before::Uneven(firsts) => firsts.get(part + 1).map_or_else(|| rest(first), |next| next - first),
        }
    }

    /// Returns true if a part may contain more than one record.
    pub(crate) fn is_grouped(&self) -> bool {
        !matches!(self.before, Before::Even(0 | 1))
    }

    /// Returns the allocated memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        if let Before::Uneven(firsts) = &self.before { size_of_val(firsts.as_slice()) } else { 0 }
    }

    /// Returns the part that contains record `index`, and the number of the record within that part.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if there is no such record.
    #[inline]
    pub(crate) fn find(&self, index: u64) -> Result<(usize, u64)> {
        if index >= self.len {
            return Err(Error::data(format!("no record {index}: there are {}", self.len)));
        }
        let part = match &self.before {
            // Many datasets have a single part, and a division would take longer than the rest of this function.
            Before::Even(count) if index < *count => 0,
            Before::Even(count) => (index / count) as usize,
            // Empty parts begin at the same record as the next non-empty part, which the search returns.
            Before::Uneven(firsts) => firsts.partition_point(|&first| first <= index) - 1,
        };
        Ok((part, index - self.before(part)))
    }
}

/// Creates a table without parts.
impl Default for Firsts {
    fn default() -> Self {
        Self { before: Before::Even(0), len: 0 }
    }
}

impl Before {
    /// Creates the table from the first record of each part. The last part ends at `len`.
    fn of(firsts: Vec<u64>, len: u64) -> Self {
        let Some(&last) = firsts.last() else { return Self::Even(0) };
        let count = firsts.get(1).copied().unwrap_or(len);
        let is_even = last < len && len - last <= count && firsts.windows(2).all(|pair| pair[1] - pair[0] == count);
        if is_even { Self::Even(count) } else { Self::Uneven(firsts) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_and_uneven_parts_are_found() {
        for (counts, even) in [
            (vec![3, 3, 2], true),
            (vec![3, 2, 3], false),
            (vec![2, 3], false),
            (vec![5], true),
            (vec![0, 2], false),
            (vec![2, 0], false),
            (vec![1, 1], true),
            (vec![0], false),
        ] {
            let firsts = Firsts::of(counts.iter().copied()).unwrap();
            assert_eq!(matches!(firsts.before, Before::Even(_)), even, "{counts:?}");
            let owners = counts.iter().enumerate().flat_map(|(part, &count)| (0..count).map(move |at| (part, at)));
            let found: Vec<_> = (0..firsts.len).map(|index| firsts.find(index).unwrap()).collect();
            assert_eq!(found, owners.collect::<Vec<_>>(), "{counts:?}");
            for (part, &count) in counts.iter().enumerate() {
                assert_eq!(
                    (firsts.before(part), firsts.count(part)),
                    (counts[..part].iter().sum(), count),
                    "{counts:?}"
                );
            }
        }
    }

    #[test]
    fn parts_without_records_hold_none() {
        let firsts = Firsts::of([0, 2, 0, 0, 3, 0]).unwrap();
        let found: Vec<_> = (0..firsts.len).map(|index| firsts.find(index).unwrap()).collect();
        assert_eq!(found, [(1, 0), (1, 1), (4, 0), (4, 1), (4, 2)]);
        assert_eq!(firsts.find(5).unwrap_err().message(), "no record 5: there are 5");
        assert!(Firsts::of([]).unwrap().find(0).is_err());
        assert!(Firsts::of([u64::MAX, 1]).is_err());
    }
}
