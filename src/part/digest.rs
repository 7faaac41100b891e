//! Digest of rows that adds up over parts, resumes and different numbers of hosts.

use serde::{Deserialize, Serialize};

use super::RowNumbers;
use crate::element::{Digest, Element, Padded, StreamHasher, hex_text};

/// Digest of rows: the sum, modulo 2^128, of a hash of every row. Each hash includes the number of the row's batch, from 0, and its
/// index in the batch.
///
/// The digests of all parts add up to the digest of a single consumer, for any assignment of rows. So do the digests of the runs before
/// and after a resume. The [`OrderHash`](crate::element::OrderHash) is a chain and cannot be added. Source of the hash: XXH3, as there.
///
/// # Cost
/// Reads every byte of the rows once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RowDigest(u128);

impl RowDigest {
    /// Adds row `row` of the global batch number `batch`.
    pub fn add_row(&mut self, batch: u64, row: u64, digest: impl FnOnce(&mut StreamHasher)) {
        let mut hasher = StreamHasher::new();
        hasher.number(batch);
        hasher.number(row);
        digest(&mut hasher);
        self.add(Self(hasher.finish()));
    }

    /// Adds the `rows` of the global batch number `batch` that a part has taken. `part` contains only these rows.
    pub fn add_batch(&mut self, batch: u64, rows: &RowNumbers, part: &impl DigestRows) {
        for (place, row) in rows.iter().enumerate() {
            self.add_row(batch, row as u64, |hasher| part.digest_row(place, hasher));
        }
    }

    /// Adds the digest of other rows.
    pub fn add(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

/// Batch whose rows can be hashed individually.
pub trait DigestRows {
    /// Feeds row `row` and its names to the hasher. Feeds nothing if the row does not exist.
    fn digest_row(&self, row: usize, hasher: &mut StreamHasher);
}

impl DigestRows for Element {
    fn digest_row(&self, row: usize, hasher: &mut StreamHasher) {
        if self.has_row(row) {
            self.digest_own_row(row, hasher);
        }
    }
}

impl<T: Digest> DigestRows for Vec<T> {
    fn digest_row(&self, row: usize, hasher: &mut StreamHasher) {
        self[row..].iter().take(1).for_each(|item| item.digest(hasher));
    }
}

impl<B: DigestRows> DigestRows for Padded<B> {
    fn digest_row(&self, row: usize, hasher: &mut StreamHasher) {
        hasher.number(u64::from(row < self.real));
        self.batch.digest_row(row, hasher);
    }
}

hex_text!(RowDigest, "a digest of rows");

#[cfg(test)]
mod tests {
    use super::super::{Part, RowBatch};
    use super::*;
    use crate::Array;

    fn digest(batches: &[Vec<i64>], parts: &[Part]) -> RowDigest {
        let mut sum = RowDigest::default();
        for (number, batch) in batches.iter().enumerate() {
            for part in parts {
                let rows = part.rows(batch.len()).unwrap();
                sum.add_batch(number as u64, &rows, &batch.clone().take_rows(&rows).unwrap());
            }
        }
        sum
    }

    #[test]
    fn parts_add_to_the_whole_and_nothing_else_does() {
        let batches = [vec![1, 2, 3, 4], vec![5, 6, 7, 8]];
        let whole = digest(&batches, &[Part::whole()]);
        assert_eq!(digest(&batches, &[Part::of(1, 2), Part::of(0, 2)]), whole);
        assert_eq!(digest(&batches, &[Part::listed([3, 1], 4).unwrap(), Part::listed([0, 2], 4).unwrap()]), whole);
        assert_ne!(digest(&batches, &[Part::of(0, 2)]), whole);
        assert_ne!(digest(&[vec![1, 2, 4, 3], batches[1].clone()], &[Part::whole()]), whole);
        assert_ne!(digest(&[batches[1].clone(), batches[0].clone()], &[Part::whole()]), whole);
        let json = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<RowDigest>(&json).unwrap(), whole);
        assert!(serde_json::from_str::<RowDigest>("\"12\"").is_err());
    }

    #[test]
    fn rows_of_elements_are_told_apart_by_names_and_shapes() {
        let sum = |element: Element| {
            let mut sum = RowDigest::default();
            sum.add_batch(0, &Part::whole().rows(2).unwrap(), &element);
            sum
        };
        let array = || Array::from_vec(vec![1i32, 2]);
        assert_ne!(sum(Element::new().with("x", array())), sum(Element::new().with("y", array())));
        assert_eq!(sum(Element::new().with("x", array())), sum(Element::new().with("x", array())));
    }
}
