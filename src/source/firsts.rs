//! Which part holds a record, where records are numbered over many: files, row groups, shards.
#![cfg_attr(not(feature = "formats"), allow(dead_code, reason = "what all formats share, no one format needs whole"))]

use crate::error::{Error, Result};

/// How many records are before each part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Firsts {
    firsts: Vec<u64>,
    len: u64,
}

impl Firsts {
    /// Of parts of so many records each.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if they are more than 2^64 together.
    pub(crate) fn of(counts: impl IntoIterator<Item = u64>) -> Result<Self> {
        let (mut firsts, mut len) = (Vec::new(), 0u64);
        for count in counts {
            firsts.push(len);
            len = len.checked_add(count).ok_or_else(|| Error::data("more than 2^64 records"))?;
        }
        Ok(Self { firsts, len })
    }

    /// Records of all parts together.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Records before a part, which is one of those there are.
    pub(crate) fn before(&self, part: usize) -> u64 {
        self.firsts[part]
    }

    /// The part that holds record `index`, and the number the record has there.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if there is no such record.
    #[inline]
    pub(crate) fn find(&self, index: u64) -> Result<(usize, u64)> {
        if index >= self.len {
            return Err(self.missing(index));
        }
        let part = match self.firsts.len() {
            1 => 0,
            // Of parts without records the last begins where the next one does: it is the one behind them that is found.
            _ => self.firsts.partition_point(|&first| first <= index) - 1,
        };
        Ok((part, index - self.firsts[part]))
    }

    #[cold]
    fn missing(&self, index: u64) -> Error {
        Error::data(format!("no record {index}: there are {}", self.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_without_records_hold_none() {
        let firsts = Firsts::of([0, 2, 0, 0, 3, 0]).unwrap();
        let found: Vec<_> = (0..firsts.len()).map(|index| firsts.find(index).unwrap()).collect();
        assert_eq!(found, [(1, 0), (1, 1), (4, 0), (4, 1), (4, 2)]);
        assert_eq!(firsts.find(5).unwrap_err().message(), "no record 5: there are 5");
        assert!(Firsts::of([]).unwrap().find(0).is_err());
        assert!(Firsts::of([u64::MAX, 1]).is_err());
    }
}
