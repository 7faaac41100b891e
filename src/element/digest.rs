//! Digests of values and of whole streams, used to check that two runs delivered identical bytes.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::{Array, DType, Element, Value};

/// A value that can be hashed: its bytes are fed with separators, so equal digests mean equal values.
pub trait Digest {
    /// Feeds the value to `hasher`.
    fn digest(&self, hasher: &mut StreamHasher);
}

/// A hasher over tagged, length-prefixed bytes: XXH3, 128 bit. Source: the xxHash specification, through `xxhash-rust`.
#[derive(Clone)]
pub struct StreamHasher(Xxh3);

impl StreamHasher {
    pub(crate) fn new() -> Self {
        Self(Xxh3::new())
    }

    pub(crate) fn finish(&self) -> u128 {
        self.0.digest128()
    }

    /// Feeds bytes, preceded by their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// Feeds bytes without a length prefix, for bytes of a fixed length.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Feeds a number.
    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }
}

debug_as!(StreamHasher, |self, f| f.write_str("StreamHasher"));

impl Digest for Array {
    fn digest(&self, hasher: &mut StreamHasher) {
        digest_array(self.dtype(), self.shape(), self.bytes(), hasher);
    }
}

impl Digest for Value {
    fn digest(&self, hasher: &mut StreamHasher) {
        match self {
            Self::Null => hasher.number(0),
            Self::Array(array) => {
                hasher.number(1);
                array.digest(hasher);
            }
            Self::Str(text) => {
                hasher.number(2);
                hasher.bytes(text.as_bytes());
            }
            Self::Bytes(bytes) => {
                hasher.number(3);
                hasher.bytes(bytes.as_bytes());
            }
            Self::List(list) => {
                hasher.number(4);
                list.digest(hasher);
            }
            Self::Tree(tree) => {
                hasher.number(5);
                tree.digest(hasher);
            }
        }
    }
}

impl Digest for Element {
    fn digest(&self, hasher: &mut StreamHasher) {
        hasher.number(self.len() as u64);
        for (name, value) in self.iter() {
            hasher.bytes(name.as_bytes());
            value.digest(hasher);
        }
    }
}

impl Element {
    /// Returns true if every leaf has row `row`.
    pub(crate) fn has_row(&self, row: usize) -> bool {
        self.iter().all(|(_, value)| match value {
            Value::Array(array) => array.shape().first().is_some_and(|rows| row < *rows),
            Value::List(items) => row < items.len(),
            Value::Tree(tree) => tree.has_row(row),
            _ => false,
        })
    }

    /// Feeds row `row` to the hasher, as the digest of [`row`](Self::row), without a copy of the row. Every leaf must
    /// have the row.
    pub(crate) fn digest_own_row(&self, row: usize, hasher: &mut StreamHasher) {
        hasher.number(self.len() as u64);
        for (name, value) in self.iter() {
            hasher.bytes(name.as_bytes());
            match value {
                Value::Array(array) => {
                    hasher.number(1);
                    digest_array(array.dtype(), &array.shape()[1..], array.row_bytes(row), hasher);
                }
                Value::Tree(tree) => {
                    hasher.number(5);
                    tree.digest_own_row(row, hasher);
                }
                Value::List(items) => items[row].digest(hasher),
                _ => {}
            }
        }
    }
}

fn digest_array(dtype: DType, shape: &[usize], bytes: &[u8], hasher: &mut StreamHasher) {
    hasher.bytes(dtype.name().as_bytes());
    hasher.number(shape.len() as u64);
    for &dim in shape {
        hasher.number(dim as u64);
    }
    hasher.bytes(bytes);
}

impl<T: Digest> Digest for Vec<T> {
    fn digest(&self, hasher: &mut StreamHasher) {
        hasher.number(self.len() as u64);
        self.iter().for_each(|item| item.digest(hasher));
    }
}

impl<A: Digest, B: Digest> Digest for (A, B) {
    fn digest(&self, hasher: &mut StreamHasher) {
        self.0.digest(hasher);
        self.1.digest(hasher);
    }
}

impl Digest for String {
    fn digest(&self, hasher: &mut StreamHasher) {
        hasher.bytes(self.as_bytes());
    }
}

macro_rules! number_digest {
    ($($type:ty),*) => {
        $(impl Digest for $type {
            fn digest(&self, hasher: &mut StreamHasher) {
                hasher.bytes(&self.to_le_bytes());
            }
        })*
    };
}
number_digest!(u8, i8, u16, i16, u32, i32, u64, i64, usize, f32, f64);

/// The order hash: a digest of everything delivered so far, in order.
///
/// The hash is a chain, `h' = H(h, element)`, and takes 16 bytes in a checkpoint. The chain continues after a resume: a
/// killed and resumed run ends with the hash of an uninterrupted run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderHash(u128);

impl OrderHash {
    /// Adds the next element to the chain.
    pub fn update(&mut self, element: &impl Digest) {
        let mut hasher = StreamHasher::new();
        hasher.0.update(&self.0.to_le_bytes());
        element.digest(&mut hasher);
        self.0 = hasher.finish();
    }
}

/// Implements the text of a digest: 32 hexadecimal digits.
macro_rules! hex_text {
    ($digest:ident, $what:literal) => {
        display_as!($digest, |self, f| write!(f, "{:032x}", self.0));

        impl From<$digest> for String {
            fn from(digest: $digest) -> Self {
                digest.to_string()
            }
        }

        impl TryFrom<String> for $digest {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                $crate::element::read_hex($what, &text).map(Self)
            }
        }
    };
}
pub(crate) use hex_text;

hex_text!(OrderHash, "an order hash");

/// Parses a digest of 32 hexadecimal digits; the error names `what` and the expected form.
pub(crate) fn read_hex(what: &str, text: &str) -> Result<u128, String> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    number.ok_or_else(|| format!("{what} is 32 hexadecimal digits, got {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Buffer;

    #[test]
    fn it_sees_order_names_and_borders() {
        let hash = |elements: &[Element]| {
            let mut hash = OrderHash::default();
            elements.iter().for_each(|e| hash.update(e));
            hash
        };
        let (a, b) = (Element::new().with("x", "ab").with("y", "c"), Element::new().with("x", "a").with("y", "bc"));
        assert_ne!(hash(std::slice::from_ref(&a)), hash(std::slice::from_ref(&b)));
        assert_ne!(hash(&[a.clone(), b.clone()]), hash(&[b.clone(), a.clone()]));
        assert_eq!(hash(&[a.clone(), b.clone()]), hash(&[a, b]));
    }

    #[test]
    fn a_row_in_its_batch_has_the_digest_of_the_row_alone() {
        let of = |feed: &dyn Fn(&mut StreamHasher)| {
            let mut hasher = StreamHasher::new();
            feed(&mut hasher);
            hasher.finish()
        };
        let texts = Value::List(["a", "bc"].map(Value::from).into());
        let tree = Element::new().with("ids", Array::from_vec(vec![5u16, 6])).with("texts", texts);
        let rows = Array::new(DType::I32, &[2, 3], Buffer::from_vec(vec![1i32, 2, 3, 4, 5, 6])).unwrap();
        let batch = Element::new().with("rows", rows).with("tree", tree);
        for row in 0..2 {
            let alone = batch.row(row).unwrap();
            assert_eq!(of(&|hasher| batch.digest_own_row(row, hasher)), of(&|hasher| alone.digest(hasher)));
        }
        assert!(batch.has_row(1) && !batch.has_row(2) && batch.row(2).is_err());
        assert!(!batch.with("null", Value::Null).has_row(0));
    }

    #[test]
    fn it_survives_a_checkpoint() {
        let mut hash = OrderHash::default();
        hash.update(&7u32);
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<OrderHash>(&json).unwrap(), hash);
        assert!(serde_json::from_str::<OrderHash>("\"12\"").is_err());
    }
}
