//! Types of the user's program that cross with `serde`.

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::crossing::{Crossing, also, crossing};
use super::input::In;
use super::output::{Out, Stop};
use crate::error::{Error, Result};

/// Lets elements of type `T`, and batches of them, leave worker processes. Uses the encoding that
/// `#[derive(Serialize, Deserialize)]` defines.
///
/// Call it first in the function that builds the pipeline, because workers run that function too. Types with built-in support
/// keep their own encoding. The loader's `build` fails if elements must leave a worker and their type has no encoding.
///
/// ```
/// use gristmill::dataset::map::Range;
/// use gristmill::workers::{MpOptions, crosses, mp_prefetch};
/// use gristmill::{Result, prelude::*};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Square {
///     of: i64,
///     area: i64,
/// }
///
/// fn pipeline(len: i64) -> Result<impl IterDataset<Item = Square>> {
///     crosses::<Square>();
///     Ok(Range::new(0, len).map(|of| Square { of, area: of * of }).to_iter())
/// }
///
/// let workers = MpOptions::auto().workers(1).ram_budget(256 << 20);
/// let squares = mp_prefetch(pipeline, 9, workers)?.build()?.collect::<Result<Vec<_>>>()?;
/// assert_eq!((squares[7].of, squares[7].area), (7, 49));
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// A type that `serde` cannot deserialize does not compile:
/// ```compile_fail,E0277
/// gristmill::workers::crosses::<std::time::Instant>();
/// ```
///
/// # Cost
/// An element is written and read once by `postcard`, and copied. An [`Element`](crate::Element), in contrast, is viewed in place.
/// The element becomes an error if `postcard` does not support its type, such as a type with `#[serde(flatten)]`.
pub fn crosses<T: Serialize + DeserializeOwned + Send + 'static>() {
    if crossing::<T>().is_none() {
        also(&[&Crossing::<T>::SERIALISED]);
    }
    if crossing::<Vec<T>>().is_none() {
        also(&[&Crossing::<Vec<T>>::SERIALISED]);
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Crossing<T> {
    /// All such types share a kind: a border has a single type, and its items are decoded as that type.
    const SERIALISED: Self = Self { kind: 65, write, read, rows: None };
}

fn write<T: Serialize>(item: &T, out: &mut Out<'_>) -> Result<(), Stop> {
    let written = postcard::to_stdvec(item).map_err(|e| {
        Stop::Error(Error::data(format!("an element of type {} cannot be written: {e}", type_name::<T>())))
    });
    let bytes = written?;
    out.word(bytes.len() as u64)?;
    out.bytes(1, &bytes)
}

fn read<T: DeserializeOwned>(from: &mut In<'_>) -> Result<T> {
    let len = from.length()?;
    let read = from.copied(len, |bytes| postcard::from_bytes(bytes))?;
    read.map_err(|e| from.damaged(format!("an element of type {} cannot be read: {e}", type_name::<T>())))
}
