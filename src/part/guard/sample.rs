//! Digests of batches, with samples of large leaves.

use xxhash_rust::xxh3::xxh3_64;

use crate::element::{Array, Digest, Element, Padded, StreamHasher, Value};

/// Maximum size in bytes of a leaf that is read completely.
const WHOLE: usize = 64 << 10;

/// Size in bytes of a sampled page of a larger leaf.
const PAGE: usize = 4 << 10;

/// Sampling rate of larger leaves: one page in `OF`.
const OF: usize = 8;

/// Batch with a digest that shows whether hosts have equal batches.
///
/// The digest covers all names, shapes, dtypes and lengths, and every byte of leaves up to 64 KiB. Larger leaves are
/// sampled: every eighth page of 4 KiB, plus the first page and the middle page. These two pages determine the first sampled page.
/// The sample therefore varies between batches, but is equal on all hosts with equal batches.
pub trait DigestBatch {
    /// Feeds the batch to the hasher.
    fn digest_batch(&self, hasher: &mut StreamHasher);
}

/// Returns the digest of a batch.
pub(crate) fn digest_of<B: DigestBatch>(batch: &B) -> u128 {
    let mut hasher = StreamHasher::new();
    batch.digest_batch(&mut hasher);
    hasher.finish()
}

impl DigestBatch for Element {
    fn digest_batch(&self, hasher: &mut StreamHasher) {
        hasher.number(self.len() as u64);
        for (name, value) in self.iter() {
            hasher.bytes(name.as_bytes());
            value.digest_batch(hasher);
        }
    }
}

impl DigestBatch for Value {
    fn digest_batch(&self, hasher: &mut StreamHasher) {
        match self {
            Self::Array(array) => {
                hasher.number(1);
                array.digest_batch(hasher);
            }
            Self::Str(text) => {
                hasher.number(2);
                sample(text.as_bytes(), hasher);
            }
            Self::Bytes(bytes) => {
                hasher.number(3);
                sample(bytes.as_bytes(), hasher);
            }
            Self::List(list) => {
                hasher.number(4);
                hasher.number(list.len() as u64);
                list.iter().for_each(|value| value.digest_batch(hasher));
            }
            Self::Tree(tree) => {
                hasher.number(5);
                tree.digest_batch(hasher);
            }
            Self::Null => hasher.number(0),
        }
    }
}

impl DigestBatch for Array {
    fn digest_batch(&self, hasher: &mut StreamHasher) {
        hasher.bytes(self.dtype().name().as_bytes());
        hasher.number(self.shape().len() as u64);
        self.shape().iter().for_each(|&dim| hasher.number(dim as u64));
        sample(self.bytes(), hasher);
    }
}

impl<T: Digest> DigestBatch for Vec<T> {
    fn digest_batch(&self, hasher: &mut StreamHasher) {
        self.digest(hasher);
    }
}

impl<B: DigestBatch> DigestBatch for Padded<B> {
    fn digest_batch(&self, hasher: &mut StreamHasher) {
        hasher.number(self.real as u64);
        hasher.number(self.size as u64);
        self.batch.digest_batch(hasher);
    }
}

/// Feeds bytes, or a sample of large input, after their length.
fn sample(bytes: &[u8], hasher: &mut StreamHasher) {
    if bytes.len() <= WHOLE {
        return hasher.bytes(bytes);
    }
    hasher.number(bytes.len() as u64);
    let pages = bytes.chunks(PAGE);
    let middle = pages.len() / 2;
    let look = |at: usize| xxh3_64(&bytes[at * PAGE..(at + 1) * PAGE]);
    let (first, inner) = (look(0), look(middle));
    hasher.number(first);
    hasher.number(inner);
    let start = ((first ^ inner.rotate_left(32)) % OF as u64) as usize;
    pages.skip(start).step_by(OF).for_each(|page| hasher.update(page));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> u128 {
        digest_of(&Element::new().with("x", Array::from_vec(bytes.to_vec())))
    }

    #[test]
    fn of_small_leaves_every_byte_counts() {
        let mut bytes = vec![0; WHOLE];
        let before = digest(&bytes);
        for at in [0, 1000, WHOLE - 1] {
            bytes[at] = 1;
            assert_ne!(digest(&bytes), before);
            bytes[at] = 0;
        }
        assert_eq!(digest(&bytes), before);
        assert_ne!(digest(&bytes[1..]), before);
    }

    /// Every byte of a large leaf is sampled in some of the batches. A completely different leaf is detected at once.
    #[test]
    fn of_large_leaves_other_pages_count_in_other_batches() {
        let batch = |number: u64, change: Option<usize>| {
            let mut bytes: Vec<u8> = (0..40 * PAGE + 7).map(|at| ((at as u64 * (number + 3)) >> 3) as u8).collect();
            if let Some(at) = change {
                bytes[at] ^= 1;
            }
            digest(&bytes)
        };
        for at in [0, 5 * PAGE, 17 * PAGE + 99, 31 * PAGE, 40 * PAGE + 6] {
            let seen = (0..100).filter(|&number| batch(number, Some(at)) != batch(number, None)).count();
            assert!(seen > 2, "byte {at} was seen in {seen} of 100 batches");
        }
        assert!((0..100).all(|number| batch(number, None) != batch(number + 1, None)));
    }

    #[test]
    fn names_shapes_and_texts_are_told_apart() {
        let elements = [
            Element::new().with("x", "ab").with("y", "c"),
            Element::new().with("x", "a").with("y", "bc"),
            Element::new().with("x", "ab").with("z", "c"),
            Element::new().with("x", Value::List(vec!["ab".into(), "c".into()])),
            Element::new().with("x", Value::List(vec!["a".into(), "bc".into()])),
            Element::new().with("x", Array::from_vec(vec![1i32, 2])),
            Element::new().with("x", Array::from_vec(vec![1u32, 2])),
        ];
        for (at, one) in elements.iter().enumerate() {
            assert!(
                elements.iter().enumerate().all(|(other, two)| (digest_of(one) == digest_of(two)) == (at == other))
            );
        }
        let padded = |real| digest_of(&Padded { batch: vec![1, 2, 0], real, size: 3 });
        assert_ne!(padded(2), padded(3));
    }
}
