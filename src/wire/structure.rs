//! The structure that elements share: names, kinds, dtypes, ranks.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::output::{Out, Stop};
use crate::element::{DType, Name, Value};

/// The kind of a value in one word. For arrays, the word includes the dtype and the rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Tag(pub(super) u64);

/// The meaning of a [`Tag`].
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Null,
    Array { dtype: DType, rank: usize },
    Str,
    Bytes,
    List,
    Tree,
}

impl Tag {
    const NULL: Self = Self(0);
    const ARRAY: u8 = 1;
    const STR: Self = Self(2);
    const BYTES: Self = Self(3);
    pub(super) const LIST: Self = Self(4);
    pub(super) const TREE: Self = Self(5);

    /// Returns the tag of an array of `rank` dimensions.
    #[inline]
    pub(super) fn array(dtype: DType, rank: usize) -> Self {
        // A shape of 2^32 dimensions would fill 32 GiB.
        Self(u64::from(Self::ARRAY) | (dtype as u64) << 8 | (rank as u64) << 32)
    }

    #[inline]
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Array(array) => Self::array(array.dtype(), array.shape().len()),
            Value::Str(_) => Self::STR,
            Value::Bytes(_) => Self::BYTES,
            Value::List(_) => Self::LIST,
            Value::Tree(_) => Self::TREE,
        }
    }

    /// Returns the tag that a value has after stacking into a batch.
    pub(super) fn stacked(value: &Value) -> Self {
        match value {
            Value::Array(array) => Self::array(array.dtype(), array.shape().len() + 1),
            Value::Tree(_) => Self::TREE,
            _ => Self::LIST,
        }
    }

    /// Returns the kind of this tag, or `None` if no value has this tag.
    #[inline]
    pub(super) fn kind(self) -> Option<Kind> {
        match self {
            Self::NULL => Some(Kind::Null),
            Self::STR => Some(Kind::Str),
            Self::BYTES => Some(Kind::Bytes),
            Self::LIST => Some(Kind::List),
            Self::TREE => Some(Kind::Tree),
            Self(word) => {
                let dtype = DType::ALL.get((word >> 8) as usize & 0xff_ffff)?;
                let rank = usize::try_from(word >> 32).ok()?;
                (word as u8 == Self::ARRAY).then_some(Kind::Array { dtype: *dtype, rank })
            }
        }
    }
}

/// The structures that a chunk has defined so far.
#[derive(Default)]
pub(super) struct Structures {
    all: Vec<Structure>,
    /// Indices by a hash of all fields. After a hash collision, the second structure is not found and is written again.
    by_hash: HashMap<u64, usize>,
    last: usize,
}

struct Structure {
    fields: Box<[(Name, Tag)]>,
    /// Index of the structure that followed last time. It is the first guess for the next structure.
    then: usize,
}

impl Structure {
    #[inline]
    fn is<'f>(&self, fields: impl ExactSizeIterator<Item = (&'f str, Tag)>) -> bool {
        self.fields.len() == fields.len()
            && self.fields.iter().zip(fields).all(|((n, t), (name, tag))| *t == tag && n == name)
    }
}

impl Structures {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if self.all.len() > len {
            self.all.truncate(len);
            self.by_hash.retain(|_, at| *at < len);
        }
    }

    #[inline]
    fn find<'f>(&mut self, fields: impl ExactSizeIterator<Item = (&'f str, Tag)> + Clone) -> Option<usize> {
        let guess = self.all.get(self.last)?.then;
        if self.all.get(guess).is_some_and(|structure| structure.is(fields.clone())) {
            self.last = guess;
            return Some(guess);
        }
        let found = *self.by_hash.get(&hash(fields.clone()))?;
        self.all.get(found)?.is(fields).then(|| self.follow(found))
    }

    fn add<'f>(&mut self, fields: impl ExactSizeIterator<Item = (&'f str, Tag)> + Clone) -> usize {
        let id = self.all.len();
        self.by_hash.entry(hash(fields.clone())).or_insert(id);
        self.all.push(Structure { fields: fields.map(|(name, tag)| (Name::new(name), tag)).collect(), then: id });
        self.follow(id)
    }

    fn follow(&mut self, id: usize) -> usize {
        if let Some(last) = self.all.get_mut(self.last) {
            last.then = id;
        }
        self.last = id;
        id
    }
}

fn hash<'f>(fields: impl Iterator<Item = (&'f str, Tag)>) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.for_each(|field| field.hash(&mut hasher));
    hasher.finish()
}

/// Writes the number of the structure with these fields, and its definition at the first use.
#[inline]
pub(super) fn write_structure<'f>(
    out: &mut Out<'_>,
    fields: impl ExactSizeIterator<Item = (&'f str, Tag)> + Clone,
) -> Result<(), Stop> {
    if let Some(id) = out.structures.find(fields.clone()) { out.word(id as u64) } else { define(out, fields) }
}

#[cold]
fn define<'f>(out: &mut Out<'_>, fields: impl ExactSizeIterator<Item = (&'f str, Tag)> + Clone) -> Result<(), Stop> {
    let id = out.structures.add(fields.clone());
    out.word(id as u64)?;
    out.word(fields.len() as u64)?;
    for (name, tag) in fields {
        out.word(tag.0)?;
        out.text(name)?;
    }
    Ok(())
}
