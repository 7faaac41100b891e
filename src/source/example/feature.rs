//! Declarations of features.

use super::wire::Kind;
use crate::element::{Array, Buffer, Value};
use crate::error::{Error, Result};

/// Type of the values of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureType {
    /// Whole numbers: arrays of `i64`.
    Int64,
    /// Arrays of `f32`.
    Float32,
    /// Strings of bytes.
    Bytes,
    /// Strings of bytes, as text, which must be UTF-8.
    Str,
}

impl FeatureType {
    /// All types, with their names in pipeline files.
    pub(crate) const NAMES: [(&'static str, Self); 4] =
        [("int64", Self::Int64), ("float32", Self::Float32), ("bytes", Self::Bytes), ("str", Self::Str)];

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Int64 => Kind::Int64,
            Self::Float32 => Kind::Float,
            Self::Bytes | Self::Str => Kind::Bytes,
        }
    }
}

display_as!(FeatureType, |self, f| {
    let name = Self::NAMES.iter().find(|(_, of)| of == self).map_or("", |(name, _)| name);
    f.write_str(name)
});

/// Values of a list, one after the other.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FeatureValues {
    /// For [`FeatureType::Int64`].
    Int64(Vec<i64>),
    /// For [`FeatureType::Float32`].
    Float32(Vec<f32>),
    /// For [`FeatureType::Bytes`] and [`FeatureType::Str`].
    Bytes(Vec<Buffer>),
}

impl FeatureValues {
    /// Creates an empty list of this kind.
    pub(super) fn of(kind: Kind) -> Self {
        match kind {
            Kind::Int64 => Self::Int64(Vec::new()),
            Kind::Float => Self::Float32(Vec::new()),
            Kind::Bytes => Self::Bytes(Vec::new()),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Int64(_) => Kind::Int64,
            Self::Float32(_) => Kind::Float,
            Self::Bytes(_) => Kind::Bytes,
        }
    }

    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int64(values) => values.len(),
            Self::Float32(values) => values.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    /// Repeats the only value `count` times.
    fn repeat(self, count: usize) -> Self {
        match self {
            Self::Int64(values) => Self::Int64(values.repeat(count)),
            Self::Float32(values) => Self::Float32(values.repeat(count)),
            Self::Bytes(values) => Self::Bytes(values.iter().cycle().take(count * values.len()).cloned().collect()),
        }
    }

    /// Returns the values as an array of `shape`, or as nested lists. Their number must fit the shape.
    pub(super) fn shaped(self, dtype: FeatureType, shape: &[usize]) -> Result<Value> {
        match self {
            Self::Int64(values) => numbers(Array::from_vec(values), shape),
            Self::Float32(values) => numbers(Array::from_vec(values), shape),
            Self::Bytes(values) => nested(&mut values.into_iter(), dtype, shape),
        }
    }
}

fn numbers(values: Array, shape: &[usize]) -> Result<Value> {
    Ok(Array::new(values.dtype(), shape, values.buffer().clone())?.into())
}

/// Nests strings in lists, with a level for each dimension of `shape`.
fn nested(values: &mut impl Iterator<Item = Buffer>, dtype: FeatureType, shape: &[usize]) -> Result<Value> {
    if let Some((&rows, inner)) = shape.split_first() {
        Ok(Value::List((0..rows).map(|_| nested(values, dtype, inner)).collect::<Result<_>>()?))
    } else {
        string(values.next().unwrap_or(Buffer::EMPTY), dtype)
    }
}

fn string(bytes: Buffer, dtype: FeatureType) -> Result<Value> {
    if dtype == FeatureType::Bytes {
        return Ok(Value::Bytes(bytes));
    }
    let text = simdutf8::compat::from_utf8(bytes.as_bytes());
    text.map(Value::from).map_err(|e| Error::data(format!("bytes that are no UTF-8 from byte {} on", e.valid_up_to())))
}

/// Declaration of a feature: `tf.io.FixedLenFeature`, `tf.io.VarLenFeature`, `tf.io.FixedLenSequenceFeature`.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "it describes a feature for an `ExampleParser`"]
pub struct FeatureSpec {
    pub(super) dtype: FeatureType,
    /// `None` if the number of values varies.
    pub(super) shape: Option<Vec<usize>>,
    pub(super) default: Option<FeatureValues>,
    pub(super) may_be_missing: bool,
}

impl FeatureSpec {
    /// Declares exactly the values that `shape` needs, row-major, as an array of this shape. Strings give a single
    /// string or nested lists. In a sequence, every step has this shape.
    pub fn fixed(dtype: FeatureType, shape: &[usize]) -> Self {
        Self { dtype, shape: Some(shape.to_owned()), default: None, may_be_missing: false }
    }

    /// Declares any number of values: an array of one dimension, or a list of strings; empty if the feature is missing.
    pub fn variable(dtype: FeatureType) -> Self {
        Self { dtype, shape: None, default: None, may_be_missing: true }
    }

    /// Sets the default for a missing feature: values for its whole shape, or a single value to repeat.
    pub fn default(mut self, values: FeatureValues) -> Self {
        self.default = Some(values);
        self
    }

    /// Allows a sequence to be missing; it then has no steps.
    pub fn allow_missing(mut self) -> Self {
        self.may_be_missing = true;
        self
    }

    /// Returns the number of values that the shape needs.
    pub(super) fn size(&self) -> Option<usize> {
        self.shape.as_ref().map(|shape| shape.iter().product())
    }

    /// Validates the declaration, and repeats a single default to fill the shape.
    pub(super) fn checked(mut self, in_sequence: bool) -> Result<Self> {
        let shape = self.shape.as_deref().unwrap_or_default();
        let Some(size) = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= MOST_VALUES) else {
            return Err(Error::config(format!("shape {shape:?} has more than {MOST_VALUES} values")));
        };
        match (&self.shape, &self.default) {
            (Some(_), None) if self.may_be_missing && !in_sequence => {
                Err(Error::config("`allow_missing` is for sequences").help("give it a default instead"))
            }
            (_, None) => Ok(self),
            (_, Some(_)) if in_sequence => {
                Err(Error::config("a sequence has no default")
                    .help("`allow_missing` makes a missing one have no steps"))
            }
            (None, Some(_)) => Err(Error::config("a default needs a shape").help("`shape: []` is one value")),
            (_, Some(values)) if values.kind() != self.dtype.kind() => {
                Err(Error::config(format!("a default of {}, for a feature of {}", values.kind().as_str(), self.dtype)))
            }
            (_, Some(values)) if values.len() != 1 && values.len() != size => Err(Error::config(format!(
                "{} values of a default, where shape {shape:?} needs {size}, or 1 for all",
                values.len()
            ))),
            (_, Some(values)) if values.len() == 1 => {
                self.default = Some(values.clone().repeat(size));
                Ok(self)
            }
            _ => Ok(self),
        }
    }
}

/// Most values of a declared shape, so that a default fits in memory.
const MOST_VALUES: usize = 1 << 28;

// The declaration is part of the identity of a source.
display_as!(FeatureSpec, |self, f| {
    write!(f, "{}", self.dtype)?;
    match &self.shape {
        Some(shape) => write!(f, "{shape:?}")?,
        None => f.write_str("[*]")?,
    }
    match &self.default {
        Some(FeatureValues::Int64(values)) => write!(f, " or {values:?}"),
        Some(FeatureValues::Float32(values)) => write!(f, " or {values:?}"),
        Some(FeatureValues::Bytes(values)) => {
            let texts: Vec<_> = values.iter().map(|value| value.as_bytes().escape_ascii().to_string()).collect();
            write!(f, " or {texts:?}")
        }
        None if self.shape.is_some() && self.may_be_missing => f.write_str(" or none"),
        None => Ok(()),
    }
});
