//! Measures the elements of a record: their number and their lengths.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Mutex;

use super::chain::WithOrigins;
use super::stand_in::StandIn;
use crate::element::{Element, Name};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::{FAILED, Key, OF};
use crate::sync::Locked;

/// An element of a record.
pub(in crate::dataset) enum Measured<'a> {
    /// An element made directly from the record.
    Element(&'a dyn Any),
    /// An element made from the element with this number. `None` if the stage failed.
    Piece(u32, Option<&'a dyn Any>),
}

/// A function called with each element.
type Look<'a> = dyn FnMut(Measured<'_>) -> Result<()> + 'a;

/// The way to iterate over the elements in the result of an index.
pub(in crate::dataset) struct Measure<T> {
    each: fn(&T, &mut Look<'_>) -> Result<()>,
    /// True if each element stores the number of its input element.
    has_origins: bool,
    /// True if results are single elements.
    is_single: bool,
}

impl<T> Clone for Measure<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Measure<T> {}

impl<T: 'static> Measure<T> {
    /// Creates a measure of results that are single elements.
    pub(in crate::dataset) fn element() -> Self {
        Self { each: |element, look| look(Measured::Element(element)), has_origins: false, is_single: true }
    }
}

impl<T: 'static> Measure<Vec<T>> {
    /// Creates a measure of results that are lists of elements.
    pub(in crate::dataset) fn list() -> Self {
        let each = |list: &Vec<T>, look: &mut Look<'_>| list.iter().try_for_each(|one| look(Measured::Element(one)));
        Self { each, has_origins: false, is_single: false }
    }
}

impl<T: 'static> Measure<WithOrigins<T>> {
    /// Creates a measure of lists of elements that store the number of their input element.
    pub(super) fn with_origins() -> Self {
        let each = |list: &WithOrigins<T>, look: &mut Look<'_>| {
            list.0
                .iter()
                .try_for_each(|piece| look(Measured::Piece(piece.of, piece.made.as_ref().map(|made| made as _))))
        };
        Self { each, has_origins: true, is_single: false }
    }
}

impl<T> Measure<T> {
    /// Returns true if results are single elements.
    pub(super) fn is_single(self) -> bool {
        self.is_single
    }

    /// Returns the columns of keys with the lengths of the arrays `names`.
    pub(super) fn columns(self, names: &[String]) -> Vec<String> {
        let of = self.has_origins.then(|| OF.to_owned());
        of.into_iter().chain(names.iter().cloned()).collect()
    }

    /// Makes the key of a record from its result, and sets `lens` to the lengths of the arrays `names` of each element.
    /// If the record has bad data, the key is [`Key::Bad`].
    ///
    /// # Errors
    /// Errors other than bad data. They do not describe the record.
    pub(super) fn key_of(self, yielded: Option<&T>, names: &[String], lens: &mut Vec<u32>) -> Result<Key> {
        lens.clear();
        let key = yielded.map_or(Ok(Key::Elements(0)), |yielded| self.measure(yielded, names, lens));
        key.or_else(|error| {
            lens.clear();
            bad(error)
        })
    }

    /// Counts the elements of a record and appends the lengths of the arrays `names` of each element to `lens`.
    fn measure(self, yielded: &T, names: &[String], lens: &mut Vec<u32>) -> Result<Key> {
        let mut count = 0u32;
        (self.each)(yielded, &mut |seen| {
            count = count.saturating_add(1);
            match seen {
                Measured::Element(element) => lengths(element, names, lens),
                Measured::Piece(of, made) => piece(of, made, names, lens),
            }
        })?;
        Ok(Key::Elements(count))
    }
}

/// Makes the key of a record that yielded this single element, as [`Measure::key_of`] does.
///
/// # Errors
/// As [`Measure::key_of`].
pub(super) fn key_of_one(element: &dyn Any, names: &[String], lens: &mut Vec<u32>) -> Result<Key> {
    match lengths(element, names, lens) {
        Ok(()) => Ok(Key::Elements(1)),
        Err(error) => {
            lens.clear();
            bad(error)
        }
    }
}

/// Makes the key of a record that has failed.
///
/// # Errors
/// `error`, unless it is of [`ErrorKind::Data`].
pub(super) fn bad(error: Error) -> Result<Key> {
    if error.kind() == ErrorKind::Data { Ok(Key::Bad) } else { Err(error) }
}

/// Appends the number of a piece's input element, and the lengths of the piece, to `lens`. Marks a failed piece by
/// [`FAILED`].
fn piece(of: u32, made: Option<&dyn Any>, names: &[String], lens: &mut Vec<u32>) -> Result<()> {
    if of >= FAILED {
        return Err(Error::data(format!("it becomes more than {FAILED} elements, the limit of a key")));
    }
    let begun = lens.len();
    lens.push(of);
    let measured = match made {
        Some(made) => lengths(made, names, lens).map(|()| true),
        None => Ok(false),
    };
    match measured {
        Ok(true) => return Ok(()),
        Err(error) if error.kind() != ErrorKind::Data => return Err(error),
        Ok(false) | Err(_) => {}
    }
    lens.truncate(begun);
    lens.push(of | FAILED);
    lens.resize(begun + 1 + names.len(), 0);
    Ok(())
}

/// Appends the lengths of the arrays `names` of an element to `lens`.
///
/// # Errors
/// [`ErrorKind::Data`] if the element lacks an array.
pub(super) fn lengths(element: &dyn Any, names: &[String], lens: &mut Vec<u32>) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let element =
        as_element(element).ok_or_else(|| Error::config("lengths are requested of elements that have no arrays"))??;
    for name in names {
        let len = length(&element, name)?;
        lens.push(u32::try_from(len).map_err(|_| Error::data(format!("{name:?} has {len} cells")))?);
    }
    Ok(())
}

/// Counts the cells of the array `name` of an element.
///
/// # Errors
/// [`ErrorKind::Data`] if the element lacks the array, [`ErrorKind::Config`] if it has no arrays at all.
pub(in crate::dataset) fn cells_of(element: &dyn Any, name: &str) -> Result<u64> {
    if let Some(stand_in) = element.downcast_ref::<StandIn>() {
        return Ok(stand_in.len_of(name)? as u64);
    }
    let element = as_element(element);
    let element = element.ok_or_else(|| Error::config("lengths are requested of elements that have no arrays"))??;
    Ok(length(&element, name)? as u64)
}

/// Counts the cells of an array.
pub(super) fn length(element: &Element, name: &str) -> Result<usize> {
    Ok(element.array(name)?.shape().first().copied().unwrap_or(1))
}

/// Returns the names of arrays as texts.
pub(super) fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(Name::to_string).collect()
}

/// A function that converts an item of a certain type to an element. Returns `None` for items of other types.
pub(crate) type AsElement = fn(&dyn Any) -> Option<Result<Element>>;

/// Converters for items other than [`Element`].
static MORE: Mutex<Vec<AsElement>> = Mutex::new(Vec::new());

/// Adds a converter for items of another type.
#[cfg(feature = "python")]
pub(crate) fn read_also(item: AsElement) {
    MORE.locked().push(item);
}

/// Converts an item to an element. Returns `None` if no converter accepts its type.
pub(super) fn as_element(item: &dyn Any) -> Option<Result<Cow<'_, Element>>> {
    if let Some(element) = item.downcast_ref::<Element>() {
        return Some(Ok(Cow::Borrowed(element)));
    }
    let more = MORE.locked().clone();
    more.into_iter().find_map(|read| read(item)).map(|element| element.map(Cow::Owned))
}

/// Returns the error of an element that failed when its key was made.
#[cold]
pub(super) fn failed() -> Error {
    Error::data("it is marked as bad in its key: it failed when keys were made")
}

/// Checks that the arrays `names` of an element have the lengths recorded in its key.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if a length differs.
pub(super) fn check_lens(element: &Element, names: &[Name], lens: &[u32]) -> Result<()> {
    for (name, expected) in names.iter().zip(lens) {
        let len = length(element, name)?;
        if len != *expected as usize {
            return Err(stale(&format!("{name:?} has {len} cells, but {expected} in its key")));
        }
    }
    Ok(())
}

/// Returns the error of an element that does not match its key.
#[cold]
pub(super) fn stale(why: &str) -> Error {
    Error::data(format!("the keys are stale: {why}")).help(
        "make them again with `gristmill index --keys`; functions must return equal results for equal records on every call",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Array, Value};

    #[test]
    fn an_element_must_be_as_long_as_its_key_says() {
        let names: [Name; 2] = ["a".into(), "b".into()];
        let array = |cells: usize| Value::Array(Array::from_vec(vec![0i32; cells]));
        let element = |a, b| Element::from_unique(vec![(names[0].clone(), array(a)), (names[1].clone(), array(b))]);
        let check = |a, b| check_lens(&element(a, b), &names, &[3, 5]).map_err(|error| error.message().to_owned());
        assert_eq!(check(3, 5), Ok(()));
        for (a, b, told) in [
            (2, 5, "\"a\" has 2 cells, but 3 in its key"),
            (4, 5, "\"a\" has 4 cells, but 3 in its key"),
            (3, 0, "\"b\" has 0 cells, but 5 in its key"),
            (3, 6, "\"b\" has 6 cells, but 5 in its key"),
        ] {
            assert_eq!(check(a, b), Err(format!("the keys are stale: {told}")));
        }
    }
}
