//! Encoding and decoding of trees as words and bytes. Each part is preceded by its kind.

use std::ops::Range;

use super::ALIGN;
use super::cross::Cross;
use super::input::In;
use super::output::{Out, Stop};
use crate::element::{Array, Buffer, DType, Tree};
use crate::error::Result;

/// Kinds of parts, in the lowest byte of a word.
pub(crate) const NONE: u64 = 0;
pub(crate) const FALSE: u64 = 1;
pub(crate) const TRUE: u64 = 2;
pub(crate) const INT: u64 = 3;
pub(crate) const FLOAT: u64 = 4;
pub(crate) const STR: u64 = 5;
pub(crate) const BYTES: u64 = 6;
/// Kind of arrays. The second byte is the dtype, the upper half is the rank.
const ARRAY: u64 = 7;
pub(crate) const LIST: u64 = 8;
pub(crate) const TUPLE: u64 = 9;
pub(crate) const DICT: u64 = 10;
pub(crate) const PICKLED: u64 = 11;
/// First tag that trees do not use.
pub(crate) const TAGS: u64 = 12;

impl Cross for Tree {
    const KIND: u32 = 65;

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        match self {
            Self::None => out.word(NONE),
            Self::Bool(truth) => out.word(if *truth { TRUE } else { FALSE }),
            Self::Int(number) => pair(out, INT, *number as u64),
            Self::Float(number) => pair(out, FLOAT, number.to_bits()),
            Self::Str(text) => {
                out.word(STR)?;
                out.text(text)
            }
            Self::Bytes(bytes) => {
                out.word(BYTES)?;
                write_bytes(out, bytes.as_bytes())
            }
            Self::Array(array) => write_array(out, array.dtype(), array.shape(), array.bytes()),
            Self::List(trees) => write_all(out, LIST, trees),
            Self::Tuple(trees) => write_all(out, TUPLE, trees),
            Self::Dict(fields) => {
                pair(out, DICT, fields.len() as u64)?;
                out.enter()?;
                for (name, tree) in fields {
                    out.text(name)?;
                    tree.write(out)?;
                }
                out.leave();
                Ok(())
            }
            Self::Pickled(pickle, parts) => {
                out.word(PICKLED)?;
                write_bytes(out, pickle.as_bytes())?;
                out.word(parts.len() as u64)?;
                parts.iter().try_for_each(|part| write_bytes(out, part.as_bytes()))
            }
        }
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        let tag = from.word()?;
        read(tag, from)
    }
}

pub(crate) fn pair(out: &mut Out<'_>, tag: u64, word: u64) -> Result<(), Stop> {
    out.word(tag)?;
    out.word(word)
}

fn write_all(out: &mut Out<'_>, tag: u64, trees: &[Tree]) -> Result<(), Stop> {
    pair(out, tag, trees.len() as u64)?;
    out.enter()?;
    trees.iter().try_for_each(|tree| tree.write(out))?;
    out.leave();
    Ok(())
}

pub(crate) fn write_bytes(out: &mut Out<'_>, bytes: &[u8]) -> Result<(), Stop> {
    out.word(bytes.len() as u64)?;
    out.bytes(ALIGN, bytes)
}

pub(crate) fn write_array(out: &mut Out<'_>, dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<(), Stop> {
    write_shape(out, dtype, shape.len(), shape.iter().copied())?;
    out.bytes(ALIGN, bytes)
}

/// Writes an array whose bytes are at these addresses, without copying them. Returns `false` and writes nothing if the bytes must
/// be copied, because they are outside the extent or in use elsewhere.
pub(crate) fn give_array(out: &mut Out<'_>, dtype: DType, shape: &[usize], bytes: Range<usize>) -> Result<bool, Stop> {
    let Some(place) = out.give(bytes) else { return Ok(false) };
    write_shape(out, dtype, shape.len(), shape.iter().copied())?;
    out.word(place)?;
    Ok(true)
}

/// Writes `rows`, each of this dtype and shape, as an array with an additional first dimension.
pub(crate) fn write_rows(out: &mut Out<'_>, dtype: DType, shape: &[usize], rows: &[&[u8]]) -> Result<(), Stop> {
    write_shape(out, dtype, 1 + shape.len(), std::iter::once(rows.len()).chain(shape.iter().copied()))?;
    out.rows(ALIGN, rows.iter().copied())
}

fn write_shape(
    out: &mut Out<'_>,
    dtype: DType,
    rank: usize,
    mut dims: impl Iterator<Item = usize>,
) -> Result<(), Stop> {
    out.word(ARRAY | (dtype as u64) << 8 | (rank as u64) << 32)?;
    dims.try_for_each(|dim| out.word(dim as u64))
}

/// Reads a tree whose first word, `tag`, is already consumed.
pub(crate) fn read(tag: u64, from: &mut In<'_>) -> Result<Tree> {
    Ok(match tag {
        NONE => Tree::None,
        FALSE => Tree::Bool(false),
        TRUE => Tree::Bool(true),
        INT => Tree::Int(from.word()? as i64),
        FLOAT => Tree::Float(f64::from_bits(from.word()?)),
        STR => Tree::Str(from.text(|text| Box::from(text))?),
        BYTES => Tree::Bytes(sized(from)?),
        LIST => Tree::List(many(from, Tree::read)?),
        TUPLE => Tree::Tuple(many(from, Tree::read)?),
        DICT => Tree::Dict(many(from, |from| Ok((from.text(|text| Box::from(text))?, Tree::read(from)?)))?),
        PICKLED => Tree::Pickled(sized(from)?, many(from, sized)?),
        tag if tag as u8 == ARRAY as u8 => read_array(tag, from)?,
        tag => return Err(from.damaged(format!("there is no item of kind {tag:#x}"))),
    })
}

fn sized(from: &mut In<'_>) -> Result<Buffer> {
    let len = from.length()?;
    from.buffer(len)
}

/// Reads a count and that number of values, one level deeper.
pub(crate) fn many<T>(from: &mut In<'_>, one: impl Fn(&mut In<'_>) -> Result<T>) -> Result<Vec<T>> {
    let len = from.length()?;
    from.claim(len)?;
    from.enter()?;
    let mut all = Vec::with_capacity(len);
    for _ in 0..len {
        all.push(one(from)?);
    }
    from.leave();
    Ok(all)
}

fn read_array(tag: u64, from: &mut In<'_>) -> Result<Tree> {
    let rank = (tag >> 32) as usize;
    let Some(&dtype) = DType::ALL.get((tag >> 8) as usize & 0xff_ffff) else {
        return Err(from.damaged(format!("there is no dtype in {tag:#x}")));
    };
    from.claim(rank)?;
    let dims = (0..rank).map(|_| from.length()).collect::<Result<Vec<_>>>()?;
    let len = dims.iter().try_fold(dtype.size(), |n, &dim| n.checked_mul(dim));
    let len = len.ok_or_else(|| from.damaged(format!("an array {dtype}{dims:?} has no size")))?;
    let data = from.buffer(len)?;
    Array::new(dtype, &dims, data).map(Tree::Array)
}
