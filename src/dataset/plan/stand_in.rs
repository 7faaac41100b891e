//! Elements that stand for others: how long those are and which they are, but none of their payload.

use std::sync::LazyLock;

use crate::element::{Array, Buffer, BufferMut, DType, Element, Name, StreamHasher, Value};
use crate::error::{Error, ErrorKind, Result};

/// The fields that say which element is stood for. No field of a pipeline has such a name: those of files and functions are text without it.
const SLOT: Name = Name::new_static("\0slot");
const PIECE: Name = Name::new_static("\0piece");
/// The part of the element that is in a row, where that is not all of it.
const CUT: Name = Name::new_static("\0cut");

/// One of the elements that something is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The border that it passes.
    pub(crate) leaf: u32,
    /// Its index in front of that.
    pub(crate) slot: u64,
    /// Its number among the elements that the index yields.
    pub(crate) piece: u32,
    /// The part of it: what that is, the stage says that cuts.
    pub(crate) cut: Option<Box<[u64]>>,
}

/// Elements of which one is made, in order.
pub(crate) type Recipe = Box<[Member]>;

/// Hashes which elements each of some rows is made of.
pub(crate) fn digest_of(rows: &[Recipe]) -> u128 {
    let mut hasher = StreamHasher::new();
    for row in rows {
        hasher.number(row.len() as u64);
        for Member { leaf, slot, piece, cut } in row {
            hasher.number(*slot);
            hasher.number(u64::from(*leaf) << 32 | u64::from(*piece));
            let cut = cut.as_deref().unwrap_or_default();
            hasher.number(cut.len() as u64);
            cut.iter().for_each(|number| hasher.number(*number));
        }
    }
    hasher.finish()
}

/// The fields of a [`Member`], which rows list.
pub(crate) fn fields() -> Vec<Name> {
    vec![SLOT, PIECE, CUT]
}

/// Whether `element` stands for others.
pub(crate) fn is_stand_in(element: &Element) -> bool {
    element.get(&SLOT).is_some()
}

/// The value of the field of a member that was cut.
pub(crate) fn cut_value(cut: impl IntoIterator<Item = usize>) -> Value {
    Value::Array(Array::from_vec(cut.into_iter().map(|number| number as u64).collect()))
}

/// Bytes that are zero, as many as most sequences have cells.
static ZEROS: LazyLock<Buffer> = LazyLock::new(|| BufferMut::zeroed(MOST_SHARED).freeze());
const MOST_SHARED: usize = 1 << 20;

/// Stands for an element whose arrays of these `names` have so many cells.
pub(crate) fn stand_in(leaf: u32, slot: u64, piece: u32, names: &[Name], lens: &[u32]) -> Result<Element> {
    let mut fields = Vec::with_capacity(names.len() + 3);
    for (name, &len) in names.iter().zip(lens) {
        fields.push((name.clone(), Value::Array(cells(len as usize)?)));
    }
    fields.push((SLOT, Value::Array(Array::scalar(slot))));
    fields.push((PIECE, Value::Array(Array::scalar(u64::from(leaf) << 32 | u64::from(piece)))));
    fields.push((CUT, Value::Null));
    Ok(Element::from_unique(fields))
}

/// So many cells of nothing.
fn cells(len: usize) -> Result<Array> {
    let zeros = match ZEROS.slice(0..len) {
        Some(zeros) => zeros,
        // Memory of zeros that nobody writes to takes none.
        None => BufferMut::try_zeroed(len)?.freeze(),
    };
    Array::new(DType::U8, &[len], zeros)
}

/// The elements that `stand_in` stands for: one, or those that are listed.
pub(crate) fn recipe(stand_in: &Element) -> Result<Recipe> {
    let [slots, pieces, cuts] = [SLOT, PIECE, CUT].map(|name| stand_in.get(&name));
    let (Some(slots), Some(pieces), Some(cuts)) = (slots, pieces, cuts) else { return Err(nothing()) };
    match (slots, pieces, cuts) {
        (Value::List(slots), Value::List(pieces), Value::List(cuts))
            if slots.len() == pieces.len() && slots.len() == cuts.len() =>
        {
            slots.iter().zip(pieces).zip(cuts).map(|((slot, piece), cut)| member(slot, piece, cut)).collect()
        }
        _ => Ok(Box::new([member(slots, pieces, cuts)?])),
    }
}

fn member(slot: &Value, piece: &Value, cut: &Value) -> Result<Member> {
    let number = |value: &Value| match value {
        Value::Array(array) => array.as_slice::<u64>().ok()?.first().copied(),
        _ => None,
    };
    let cut = match cut {
        Value::Array(cut) => Some(cut.as_slice::<u64>()?.into()),
        _ => None,
    };
    let (slot, piece) = number(slot).zip(number(piece)).ok_or_else(nothing)?;
    Ok(Member { leaf: (piece >> 32) as u32, slot, piece: piece as u32, cut })
}

#[cold]
fn nothing() -> Error {
    Error::new(ErrorKind::State, "a planned row does not say which elements it is made of")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_element_says_which_it_is_and_how_long() {
        let long = MOST_SHARED as u32 + 1;
        let one = stand_in(3, 1 << 40, 7, &[Name::new("a"), Name::new("b")], &[5, long]).unwrap();
        assert!(is_stand_in(&one) && !is_stand_in(&Element::new().with("slot", "1")));
        assert_eq!(one.array("a").unwrap().shape(), [5]);
        assert_eq!(one.array("b").unwrap().shape(), [long as usize]);
        assert_eq!(*recipe(&one).unwrap(), [Member { leaf: 3, slot: 1 << 40, piece: 7, cut: None }]);
        assert!(recipe(&Element::new()).is_err());
    }
}
