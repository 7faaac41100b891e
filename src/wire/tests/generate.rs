//! Random elements and slots.

use proptest::collection::vec;
use proptest::prelude::*;

use super::Slot;
use crate::element::{Array, Buffer, DType, Element, Value};
use crate::error::Error;

/// Anything that an element may have in it.
pub(super) fn value() -> impl Strategy<Value = Value> {
    let array =
        (prop::sample::select(&DType::ALL[..]), vec(0usize..4, 0..6), any::<u8>()).prop_map(|(dtype, shape, seed)| {
            let mut array = Array::builder(dtype, &shape).unwrap();
            array.bytes_mut().iter_mut().enumerate().for_each(|(i, byte)| *byte = seed.wrapping_add(i as u8));
            Value::Array(array.freeze())
        });
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        6 => array,
        2 => "\\PC{0,20}".prop_map(|text| Value::from(&*text)),
        1 => vec(any::<u8>(), 0..100).prop_map(|bytes| Value::Bytes(Buffer::copy_from(&bytes))),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![vec(inner.clone(), 0..5).prop_map(Value::List), element_of(inner).prop_map(Value::Tree)]
    })
}

pub(super) fn element_of(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Element> {
    vec(("[a-c]|\\PC{0,30}", value), 0..5)
        .prop_map(|fields| fields.into_iter().fold(Element::new(), |e, (name, value)| e.with(name, value)))
}

fn error() -> impl Strategy<Value = Error> {
    ("\\PC{0,40}", any::<Option<u64>>(), any::<Option<u64>>(), any::<bool>()).prop_map(
        |(message, index, line, more)| {
            let mut error = Error::data(message);
            for (number, add) in [(index, Error::index as fn(Error, u64) -> Error), (line, Error::line)] {
                if let Some(number) = number {
                    error = add(error, number);
                }
            }
            if more { error.path("p").stage("1 map").help("h").record(1).offset(2) } else { error }
        },
    )
}

/// Slots as a generator, since errors cannot be cloned: some elements come up again and again.
pub(super) fn any_slots() -> impl Strategy<Value = Vec<Slot>> {
    (vec(element_of(value()), 1..4), vec((any::<prop::sample::Index>(), 0u8..6, error()), 0..20)).prop_map(
        |(kinds, picks)| {
            let pick = |(index, sort, error): (prop::sample::Index, u8, Error)| match sort {
                0 => Ok(None),
                1 => Err(error),
                _ => Ok(Some(kinds[index.index(kinds.len())].clone())),
            };
            picks.into_iter().map(pick).collect()
        },
    )
}
