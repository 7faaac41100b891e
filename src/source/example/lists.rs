//! The values of a list: packed, unpacked, or both.

use super::wire::repeated;
use crate::element::Buffer;
use crate::varint::{Damaged, Field, Fields, varint};

/// Appends whole numbers to `out`.
pub(super) fn int64s(list: &[u8], out: &mut Vec<i64>) -> Result<(), Damaged> {
    for field in Fields::of(list) {
        match field? {
            (1, Field::Bytes(packed), _) => unpack(packed, out)?,
            (1, Field::Number(value), _) => out.push(value as i64),
            (1, ..) => return Err(Damaged),
            _ => {}
        }
    }
    Ok(())
}

fn unpack(mut packed: &[u8], out: &mut Vec<i64>) -> Result<(), Damaged> {
    // The last byte of every number is below 0x80.
    out.reserve(packed.iter().filter(|&&byte| byte < 0x80).count());
    while let Some((&first, rest)) = packed.split_first() {
        if first < 0x80 {
            out.push(first.into());
            packed = rest;
            continue;
        }
        let (value, used) = varint(packed).ok_or(Damaged)?;
        out.push(value as i64);
        packed = &packed[used..];
    }
    Ok(())
}

/// Appends floats to `out`.
pub(super) fn floats(list: &[u8], out: &mut Vec<f32>) -> Result<(), Damaged> {
    for field in Fields::of(list) {
        let values = match field? {
            (1, Field::Bytes(packed), _) => packed,
            (1, Field::Fixed, value) => value,
            (1, ..) => return Err(Damaged),
            _ => continue,
        };
        let (values, rest) = values.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(Damaged);
        }
        out.extend(values.iter().map(|value| f32::from_le_bytes(*value)));
    }
    Ok(())
}

/// Appends strings of bytes to `out`, as views of `record` if the list is inside of it.
pub(super) fn strings(list: &[u8], record: &Buffer, out: &mut Vec<Buffer>) -> Result<(), Damaged> {
    for value in repeated(list) {
        out.push(view(record, value?));
    }
    Ok(())
}

/// Returns `bytes` as a view of `record` if they are inside of it, else as a copy.
fn view(record: &Buffer, bytes: &[u8]) -> Buffer {
    let start = (bytes.as_ptr() as usize).wrapping_sub(record.as_bytes().as_ptr() as usize);
    let inside = start.checked_add(bytes.len()).and_then(|end| record.slice(start..end));
    inside.unwrap_or_else(|| Buffer::copy_from(bytes))
}
