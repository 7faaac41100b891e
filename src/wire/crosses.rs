//! Types of the program's own, which cross as `serde` has them.

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::crossing::{Crossing, also, crossing};
use super::input::In;
use super::output::{Out, Stop};
use crate::error::{Error, Result};

/// Lets elements of type `T` leave worker processes, and batches of them: in the form that `#[derive(Serialize, Deserialize)]` gives
/// it.
///
/// A pipeline's function calls it before anything else, as it runs in the workers, too. Types that cross by themselves go on doing so in
/// their own way. Where elements of a type would have to leave a worker and cannot, `build` of the loader says so.
///
/// ```
/// use gristmill::dataset::map::Range;
/// use gristmill::workers::{MpOptions, crosses, mp_prefetch};
/// use gristmill::{IterDataset, MapDataset, Result};
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
/// A type that `serde` cannot read back does not compile:
/// ```compile_fail,E0277
/// gristmill::workers::crosses::<std::time::Instant>();
/// ```
///
/// # Cost
/// An element is written and read once by `postcard`, and copied; an [`Element`](crate::Element) is viewed where it lies. What
/// `postcard` cannot have, such as `#[serde(flatten)]`, is an error of the element.
pub fn crosses<T: Serialize + DeserializeOwned + Send + 'static>() {
    if crossing::<T>().is_none() {
        also(&[&Crossing::<T>::SERIALISED]);
    }
    if crossing::<Vec<T>>().is_none() {
        also(&[&Crossing::<Vec<T>>::SERIALISED]);
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Crossing<T> {
    /// The kind is one for all such types: a pipeline has one type at a border, and what is read is checked as that.
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
