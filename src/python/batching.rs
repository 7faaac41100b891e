//! Options of `batch`: the function for a batch, and the policy for the last elements.

use pyo3::prelude::*;

use super::arguments::named;
use super::callable::Callable;
use super::error::OrRaise;
use crate::dataset::Remainder;
use crate::error::{Error, Result};
use crate::spec::node::Tree;

/// A way in which elements become a batch.
pub(super) enum Batching {
    Stacked(Remainder),
    /// By a Python function.
    Made(Remainder, Callable),
    /// With a mask, by the native stage, whose arguments these are.
    Padded(Tree),
}

/// Policy for elements that do not fill a batch, in Python's terms.
pub(super) struct Rest {
    pub(super) drop: bool,
    pub(super) remainder: Option<String>,
    pub(super) pad_value: Option<f64>,
    pub(super) mask: Option<String>,
}

impl Batching {
    pub(super) fn new(py: Python<'_>, size: usize, rest: Rest, function: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let function = function.map(|function| Callable::new(function, "batch")).transpose()?;
        let remainder = rest.remainder().or_raise(py)?;
        match (remainder, function) {
            (Some(remainder), None) => Ok(Self::Stacked(remainder)),
            (Some(remainder), Some(function)) => Ok(Self::Made(remainder, function)),
            (None, None) => Ok(Self::Padded(rest.padded(size))),
            (None, Some(_)) => {
                Err(Error::config("`batch_fn` fills up no batch: `remainder: pad` stacks elements itself")).or_raise(py)
            }
        }
    }
}

impl Rest {
    /// Returns `None` for padding.
    fn remainder(&self) -> Result<Option<Remainder>> {
        let remainder = match self.remainder.as_deref() {
            Some("pad") => None,
            Some("drop") => Some(Remainder::Drop),
            Some("keep") => Some(Remainder::Keep),
            None if self.drop => Some(Remainder::Drop),
            None => Some(Remainder::Keep),
            Some(other) => {
                let text = format!("`remainder` is `{other}`, and must be `keep`, `drop` or `pad`");
                return Err(Error::config(text));
            }
        };
        if self.drop && remainder != Some(Remainder::Drop) {
            let word = self.remainder.as_deref().unwrap_or_default();
            return Err(Error::config(format!("`drop_remainder` and `remainder: {word}` contradict each other")));
        }
        if remainder.is_some() && (self.pad_value.is_some() || self.mask.is_some()) {
            return Err(Error::config("`pad_value` and `mask` belong to `remainder: pad`"));
        }
        Ok(remainder)
    }

    fn padded(self, size: usize) -> Tree {
        let size = Tree::Int(size.try_into().unwrap_or(i64::MAX));
        let mut arguments = vec![("batch_size", size), ("remainder", Tree::Str("pad".to_owned()))];
        arguments.extend(self.pad_value.map(|value| ("pad_value", Tree::Float(value))));
        arguments.extend(self.mask.map(|mask| ("mask", Tree::Str(mask))));
        named(arguments)
    }
}
