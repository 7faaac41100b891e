//! Encoding and decoding of elements as words and bytes.

use super::cross::Cross;
use super::input::In;
use super::output::{Out, Stop};
use super::rows::AsRows;
use super::structure::{Kind, Tag, write_structure};
use super::{ALIGN, INLINE};
use crate::element::{Array, Buffer, DType, Element, Name, Value};
use crate::error::{Error, Result};

impl Cross for Element {
    const KIND: u32 = 1;
    const ROWS: Option<AsRows<Self>> = Some(AsRows { element: |element| Some(element), items: |rows| Box::new(rows) });

    #[inline]
    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        out.enter()?;
        write_structure(out, self.iter().map(|(name, value)| (name, Tag::of(value))))?;
        for (_, value) in self.iter() {
            write_value(out, value)?;
        }
        out.leave();
        Ok(())
    }

    #[inline]
    fn read(from: &mut In<'_>) -> Result<Self> {
        from.enter()?;
        let fields = from.structure()?;
        let mut values = Vec::with_capacity(fields.len());
        for (name, kind) in &*fields {
            match *kind {
                Kind::Array { dtype, rank: rank @ 0..=2 } => read_flat_array(from, name, dtype, rank, &mut values)?,
                kind => values.push((name.clone(), read_value(from, kind)?)),
            }
        }
        from.leave();
        Ok(Self::from_unique(values))
    }
}

fn write_value(out: &mut Out<'_>, value: &Value) -> Result<(), Stop> {
    match value {
        // Null takes a word too, so that decoded data is proportional to the input.
        Value::Null => out.word(0),
        Value::Array(array) => {
            write_shape(out, array.shape())?;
            out.bytes(ALIGN, array.bytes())
        }
        Value::Str(text) => out.text(text),
        Value::Bytes(bytes) => {
            out.word(bytes.len() as u64)?;
            out.bytes(ALIGN, bytes.as_bytes())
        }
        Value::List(values) => write_list(out, values.iter()),
        Value::Tree(tree) => tree.write(out),
    }
}

#[inline]
pub(super) fn write_shape(out: &mut Out<'_>, shape: &[usize]) -> Result<(), Stop> {
    shape.iter().try_for_each(|&dim| out.word(dim as u64))
}

/// Writes values of mixed kinds, each with its kind.
pub(super) fn write_list<'v>(out: &mut Out<'_>, values: impl ExactSizeIterator<Item = &'v Value>) -> Result<(), Stop> {
    out.enter()?;
    out.word(values.len() as u64)?;
    for value in values {
        out.word(Tag::of(value).0)?;
        write_value(out, value)?;
    }
    out.leave();
    Ok(())
}

fn read_value(from: &mut In<'_>, kind: Kind) -> Result<Value> {
    match kind {
        Kind::Null => match from.word()? {
            0 => Ok(Value::Null),
            other => Err(from.damaged(format!("a null is {other}"))),
        },
        Kind::Array { dtype, rank } => read_array(from, dtype, rank).map(Value::Array),
        Kind::Str => from.text(|text| text.into()),
        Kind::Bytes => {
            let len = from.length()?;
            from.buffer(len).map(Value::Bytes)
        }
        Kind::List => read_list(from).map(Value::List),
        Kind::Tree => Element::read(from).map(Value::Tree),
    }
}

/// Reads an array of few dimensions and appends it to `to`. The fields come first, and both branches construct the array in
/// place: moving a complete array costs twice as much.
#[inline(always)]
fn read_flat_array(
    from: &mut In<'_>,
    name: &Name,
    dtype: DType,
    rank: usize,
    to: &mut Vec<(Name, Value)>,
) -> Result<()> {
    let mut dims = [0; 2];
    let mut len = Some(dtype.size());
    for dim in &mut dims[..rank] {
        *dim = from.length()?;
        len = len.and_then(|n| n.checked_mul(*dim));
    }
    let len = len.ok_or_else(|| no_size(from, dtype, &dims[..rank]))?;
    let word = from.place(ALIGN, len)?;
    if len <= INLINE {
        to.push((name.clone(), Value::Array(Array::flat(dtype, rank as u8, dims, Buffer::from_word(word, len)))));
    } else {
        let data = Buffer::part_of(from.owner, word as usize, len);
        to.push((name.clone(), Value::Array(Array::flat(dtype, rank as u8, dims, data))));
    }
    Ok(())
}

fn read_array(from: &mut In<'_>, dtype: DType, rank: usize) -> Result<Array> {
    from.claim(rank)?;
    let mut dims = Vec::with_capacity(rank);
    for _ in 0..rank {
        dims.push(from.length()?);
    }
    let len = dims.iter().try_fold(dtype.size(), |n, &dim| n.checked_mul(dim));
    let len = len.ok_or_else(|| no_size(from, dtype, &dims))?;
    let data = from.buffer(len)?;
    Array::new(dtype, &dims, data)
}

#[cold]
fn no_size(from: &In<'_>, dtype: DType, dims: &[usize]) -> Error {
    from.damaged(format!("an array {dtype}{dims:?} has no size"))
}

fn read_list(from: &mut In<'_>) -> Result<Vec<Value>> {
    from.enter()?;
    let len = from.length()?;
    from.claim(len)?;
    let mut values = Vec::with_capacity(len);
    for _ in 0..len {
        let kind = from.kind()?;
        values.push(read_value(from, kind)?);
    }
    from.leave();
    Ok(values)
}
