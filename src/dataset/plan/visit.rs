//! Looking at what records have become: how many elements, and how long each is.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Mutex;

use super::pieces::Traced;
use crate::element::{Element, Name};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::{FAILED, Key, OF};
use crate::sync::Locked;

/// An element that a record has yielded.
pub(in crate::dataset) enum Seen<'a> {
    /// One of those that the record itself was made into.
    Element(&'a dyn Any),
    /// One that was made of an element of the record, which has that number; `None` if that has failed.
    Piece(u32, Option<&'a dyn Any>),
}

/// What is done with each element.
type Look<'a> = dyn FnMut(Seen<'_>) -> Result<()> + 'a;

/// The way in which elements are found in what an index has yielded.
pub(in crate::dataset) struct Visit<T> {
    each: fn(&T, &mut Look<'_>) -> Result<()>,
    /// Whether each says which element it was made of.
    is_traced: bool,
}

impl<T> Clone for Visit<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Visit<T> {}

impl<T: 'static> Visit<T> {
    /// It is the element.
    pub(in crate::dataset) fn element() -> Self {
        Self { each: |element, look| look(Seen::Element(element)), is_traced: false }
    }
}

impl<T: 'static> Visit<Vec<T>> {
    /// It is a list of them.
    pub(in crate::dataset) fn list() -> Self {
        let each = |list: &Vec<T>, look: &mut Look<'_>| list.iter().try_for_each(|one| look(Seen::Element(one)));
        Self { each, is_traced: false }
    }
}

impl<T: 'static> Visit<Traced<T>> {
    /// It is a list of what was made of the elements of a list.
    pub(super) fn traced() -> Self {
        let each = |list: &Traced<T>, look: &mut Look<'_>| {
            list.0.iter().try_for_each(|piece| look(Seen::Piece(piece.of, piece.made.as_ref().map(|made| made as _))))
        };
        Self { each, is_traced: true }
    }
}

impl<T> Visit<T> {
    /// The columns of keys that have the lengths of the arrays `names`.
    pub(super) fn columns(self, names: &[String]) -> Vec<String> {
        let of = self.is_traced.then(|| OF.to_owned());
        of.into_iter().chain(names.iter().cloned()).collect()
    }

    /// Makes the key of what has come of a record, with the lengths of the arrays `names` of each element as `lens`. Where its data are wrong, it is bad.
    ///
    /// # Errors
    /// Errors that are not of the data: they say nothing of the record.
    pub(super) fn key_of(self, yielded: Option<&T>, names: &[String], lens: &mut Vec<u32>) -> Result<Key> {
        lens.clear();
        let key = yielded.map_or(Ok(Key::Elements(0)), |yielded| self.measure(yielded, names, lens));
        key.or_else(|error| {
            lens.clear();
            bad(error)
        })
    }

    /// The number of elements that a record has yielded, and the lengths of the arrays `names` of each, behind `lens`.
    fn measure(self, yielded: &T, names: &[String], lens: &mut Vec<u32>) -> Result<Key> {
        let mut count = 0u32;
        (self.each)(yielded, &mut |seen| {
            count = count.saturating_add(1);
            match seen {
                Seen::Element(element) => lengths(element, names, lens),
                Seen::Piece(of, made) => piece(of, made, names, lens),
            }
        })?;
        Ok(Key::Elements(count))
    }
}

/// Makes the key of a record that has become this one element, as [`Visit::key_of`] does.
///
/// # Errors
/// As there.
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
/// `error`, where it is not of the data.
pub(super) fn bad(error: Error) -> Result<Key> {
    if error.kind() == ErrorKind::Data { Ok(Key::Bad) } else { Err(error) }
}

/// Puts the number of the element that a piece was made of, and its lengths, behind `lens`; of one that has failed, that it has.
fn piece(of: u32, made: Option<&dyn Any>, names: &[String], lens: &mut Vec<u32>) -> Result<()> {
    if of >= FAILED {
        return Err(Error::data(format!("it becomes more than {FAILED} elements, and keys are of fewer")));
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

/// Puts the lengths of the arrays `names` of an element behind `lens`.
///
/// # Errors
/// [`ErrorKind::Data`] where it has not all of them.
pub(super) fn lengths(element: &dyn Any, names: &[String], lens: &mut Vec<u32>) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let element =
        as_element(element).ok_or_else(|| Error::config("lengths are asked of elements that have no arrays"))??;
    for name in names {
        let len = length(&element, name)?;
        lens.push(u32::try_from(len).map_err(|_| Error::data(format!("{name:?} has {len} cells")))?);
    }
    Ok(())
}

/// Counts the cells of an array.
pub(super) fn length(element: &Element, name: &str) -> Result<usize> {
    Ok(element.array(name)?.shape().first().copied().unwrap_or(1))
}

/// The names of arrays as texts.
pub(super) fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(Name::to_string).collect()
}

/// Reads an item of one type as an element; `None` for an item of another.
pub(crate) type AsElement = fn(&dyn Any) -> Option<Result<Element>>;

/// Types of items that stand for elements.
static MORE: Mutex<Vec<AsElement>> = Mutex::new(Vec::new());

/// Has items of one more type read as elements.
#[cfg(feature = "python")]
pub(crate) fn read_also(item: AsElement) {
    MORE.locked().push(item);
}

/// Reads an item as an element, if it is of a type that can be.
pub(super) fn as_element(item: &dyn Any) -> Option<Result<Cow<'_, Element>>> {
    if let Some(element) = item.downcast_ref::<Element>() {
        return Some(Ok(Cow::Borrowed(element)));
    }
    let more = MORE.locked().clone();
    more.into_iter().find_map(|read| read(item)).map(|element| element.map(Cow::Owned))
}
