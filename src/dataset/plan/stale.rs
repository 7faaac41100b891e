//! Elements that do not match their keys.

use super::visit::length;
use crate::element::{Element, Name};
use crate::error::{Error, Result};

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
