//! Stand-ins: elements that carry the identity and the lengths of other elements, without their payload.

use std::sync::LazyLock;

use crate::element::{Array, Buffer, BufferMut, DType, Element, Name, Ragged, RaggedColumn, StandsFor, Tag, Value};
use crate::error::{Error, ErrorKind, Result};

/// Reserved fields that identify the elements of a stand-in. Field names from files and functions have no NUL byte.
const SLOT: Name = Name::new_static("\0slot");
const PIECE: Name = Name::new_static("\0piece");
/// The part of the element that is in a row, unless the row has the whole element.
const CUT: Name = Name::new_static("\0cut");

/// An element of a planned row, or the element of a stand-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The border that the element passes.
    pub(crate) leaf: u32,
    /// Its index before that border.
    pub(crate) slot: u64,
    /// Its number among the elements of the index.
    pub(crate) piece: u32,
    /// The part of the element in the row. The stage that cuts the element defines its meaning.
    pub(crate) cut: Option<Box<[u64]>>,
}

/// The elements from which a planned element or row is made, in order.
pub(crate) type Recipe = Box<[Member]>;

/// Returns true if `element` is a stand-in.
pub(crate) fn is_stand_in(element: &Element) -> bool {
    element.get(&SLOT).is_some()
}

/// Shared zero bytes, enough for the cells of most sequences.
static ZEROS: LazyLock<Buffer> = LazyLock::new(|| BufferMut::zeroed(MOST_SHARED).freeze());
const MOST_SHARED: usize = 1 << 20;

/// Returns a stand-in for an element whose arrays `names` have `lens` cells.
pub(crate) fn stand_in(leaf: u32, slot: u64, piece: u32, names: &[Name], lens: &[u32]) -> Result<Element> {
    let mut fields = Vec::with_capacity(names.len() + 3);
    for (name, &len) in names.iter().zip(lens) {
        fields.push((name.clone(), Value::Array(cells(len as usize)?)));
    }
    fields.push((SLOT, Value::Array(Array::scalar(slot))));
    fields.push((PIECE, Value::Array(Array::scalar(place(leaf, piece)))));
    fields.push((CUT, Value::Null));
    Ok(Element::from_unique(fields))
}

/// Encodes a border and the number of an element within its index as a number.
pub(super) fn place(leaf: u32, piece: u32) -> u64 {
    u64::from(leaf) << 32 | u64::from(piece)
}

/// Returns an array of `len` zero cells.
fn cells(len: usize) -> Result<Array> {
    Array::new(DType::U8, &[len], zeros(len)?)
}

fn zeros(len: usize) -> Result<Buffer> {
    match ZEROS.slice(0..len) {
        Some(zeros) => Ok(zeros),
        // Zeroed memory takes no pages until it is written.
        None => BufferMut::try_zeroed(len).map(BufferMut::freeze),
    }
}

/// Returns stand-ins for elements, as rows. `lens` holds the lengths row by row, each row with a length for each of the
/// `columns`.
pub(super) fn stand_ins(elements: StandsFor, columns: usize, lens: &[u32]) -> Result<Ragged> {
    let mut rows = Ragged::new(elements.tags.len());
    let longest = lens.iter().copied().max().unwrap_or_default() as usize;
    let memory = zeros(longest.max(MOST_SHARED))?;
    for number in 0..columns {
        let mut column = RaggedColumn::new(DType::U8, &[], elements.tags.len());
        let memory = column.add_memory(memory.clone());
        for (row, lens) in lens.chunks_exact(columns).enumerate() {
            column.place(row, memory, 0, lens[number] as usize).ok_or_else(nothing)?;
        }
        rows = rows.with_column(column)?;
    }
    Ok(rows.standing_for(elements))
}

/// Returns the stand-in of row number `row`. `names` are the names of the columns.
pub(crate) fn stand_in_of(rows: &Ragged, names: &[Name], row: usize) -> Result<Element> {
    let tag = rows.stands_for().and_then(|elements| elements.tags.get(row));
    let [slot, place] = *tag.ok_or_else(nothing)?;
    let lens: Vec<u32> = rows.columns().iter().map(|column| column.cells(row).len() as u32).collect();
    stand_in((place >> 32) as u32, slot, place as u32, names, &lens)
}

/// Returns the element of a stand-in for a single element.
pub(crate) fn tag_of(stand_in: &Element) -> Result<Tag> {
    match stand_in.get(&SLOT).zip(stand_in.get(&PIECE)) {
        Some((slot, piece)) => number(slot).zip(number(piece)).map(|(slot, place)| [slot, place]).ok_or_else(nothing),
        None => Err(nothing()),
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Array(array) => array.as_slice::<u64>().ok()?.first().copied(),
        _ => None,
    }
}

/// Returns the elements of a stand-in: a single element, or a list.
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
    let cut = match cut {
        Value::Array(cut) => Some(cut.as_slice::<u64>()?.into()),
        _ => None,
    };
    let (slot, piece) = number(slot).zip(number(piece)).ok_or_else(nothing)?;
    Ok(Member { leaf: (piece >> 32) as u32, slot, piece: piece as u32, cut })
}

#[cold]
fn nothing() -> Error {
    Error::new(ErrorKind::State, "a planned row does not identify its elements")
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
