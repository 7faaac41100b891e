//! The features of a record: all of them, or the declared features.

use std::collections::BTreeMap;

use super::feature::{FeatureSpec, FeatureType, FeatureValues};
use super::lists;
use super::wire::{self, Kind, Message};
use crate::element::{Buffer, Name, Value};
use crate::error::{Error, Result};
use crate::varint::Damaged;

/// Selection of the features to read.
#[derive(PartialEq)]
pub(super) enum Features {
    All,
    Declared {
        specs: Vec<(Name, FeatureSpec)>,
        /// Indices in `specs`, sorted by name.
        by_name: Vec<usize>,
    },
}

/// Reads a value from a feature's message in a record, by its declaration. Declaration or message may be missing.
pub(super) type Read = fn(Option<&FeatureSpec>, Option<&[u8]>, &Buffer) -> Result<Value>;

#[cold]
pub(super) fn no_example() -> Error {
    Error::data("the record is no example: not a message of protocol buffers, or another one")
}

impl Features {
    pub(super) fn declared(specs: Vec<(Name, FeatureSpec)>, in_sequence: bool) -> Result<Self> {
        let checked = |(name, spec): (Name, FeatureSpec)| match spec.checked(in_sequence) {
            Ok(spec) => Ok((name, spec)),
            Err(error) => Err(in_feature(&name, error)),
        };
        let specs = specs.into_iter().map(checked).collect::<Result<Vec<_>>>()?;
        let mut by_name: Vec<usize> = (0..specs.len()).collect();
        by_name.sort_by_key(|&at| &specs[at].0);
        if let Some(two) = by_name.windows(2).find(|two| specs[two[0]].0 == specs[two[1]].0) {
            return Err(Error::config(format!("feature {:?} is declared twice", specs[two[0]].0)));
        }
        Ok(Self::Declared { specs, by_name })
    }

    /// Returns the names of the declared features.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let specs = if let Self::Declared { specs, .. } = self { specs.as_slice() } else { &[] };
        specs.iter().map(|(name, _)| name.as_str())
    }

    /// Appends the features of a map in a record to `fields`.
    pub(super) fn read(&self, map: &[u8], record: &Buffer, value: Read, fields: &mut Vec<(Name, Value)>) -> Result<()> {
        match self {
            Self::All => {
                // Sorted by name, because protocol buffers write maps in any order.
                let mut all = BTreeMap::new();
                for entry in wire::entries(map) {
                    let (name, message) = entry.map_err(|Damaged| no_example())?;
                    all.insert(name, message);
                }
                for (name, message) in all {
                    let name = simdutf8::basic::from_utf8(name).map_err(|_| no_example())?;
                    let value = value(None, Some(&message), record).map_err(|e| in_feature(name, e))?;
                    fields.push((Name::new(name), value));
                }
            }
            Self::Declared { specs, by_name } => {
                let mut found: Vec<Option<Message<'_>>> = vec![None; specs.len()];
                for entry in wire::entries(map) {
                    let (name, message) = entry.map_err(|Damaged| no_example())?;
                    let place = by_name.binary_search_by(|&at| specs[at].0.as_bytes().cmp(name));
                    if let Ok(place) = place {
                        found[by_name[place]] = Some(message);
                    }
                }
                for ((name, spec), message) in specs.iter().zip(found) {
                    let value = value(Some(spec), message.as_deref(), record).map_err(|e| in_feature(name, e))?;
                    fields.push((name.clone(), value));
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn in_feature(name: &str, error: Error) -> Error {
    error.of(&format!("feature {name:?}"))
}

#[cold]
fn damaged(_: Damaged) -> Error {
    Error::data("its list is damaged")
}

/// Reads a feature of an example, or of the context of a sequence example.
pub(super) fn feature(spec: Option<&FeatureSpec>, message: Option<&[u8]>, record: &Buffer) -> Result<Value> {
    let list = message.map_or(Ok(None), wire::list).map_err(damaged)?;
    match (spec, list) {
        (None, None) => Ok(Value::Null),
        (None, Some((kind, list))) => inferred(values(kind, &list, record)?),
        (Some(spec), Some((kind, list))) => declared(spec, of_kind(spec, kind, &list, record)?),
        (Some(FeatureSpec { dtype, shape: Some(shape), default: Some(default), .. }), None) => {
            default.clone().shaped(*dtype, shape)
        }
        (Some(spec), None) if spec.shape.is_none() => FeatureValues::of(spec.dtype.kind()).shaped(spec.dtype, &[0]),
        (Some(spec), None) => Err(missing(spec)),
    }
}

#[cold]
fn missing(spec: &FeatureSpec) -> Error {
    Error::data(format!("is missing, and {spec} is required")).help("give it a default, or declare it without a shape")
}

fn values(kind: Kind, list: &[u8], record: &Buffer) -> Result<FeatureValues> {
    let mut values = FeatureValues::of(kind);
    add(&mut values, list, record)?;
    Ok(values)
}

/// Appends the values of a list of this kind.
fn add(values: &mut FeatureValues, list: &[u8], record: &Buffer) -> Result<()> {
    match values {
        FeatureValues::Int64(out) => lists::int64s(list, out),
        FeatureValues::Float32(out) => lists::floats(list, out),
        FeatureValues::Bytes(out) => lists::strings(list, record, out),
    }
    .map_err(damaged)
}

/// Returns the values of a list, which must be of the declared kind.
fn of_kind(spec: &FeatureSpec, kind: Kind, list: &[u8], record: &Buffer) -> Result<FeatureValues> {
    if kind != spec.dtype.kind() {
        return Err(Error::data(format!("a list of {}, but {spec} is required", kind.as_str())));
    }
    values(kind, list, record)
}

fn declared(spec: &FeatureSpec, values: FeatureValues) -> Result<Value> {
    let Some(shape) = &spec.shape else {
        let len = values.len();
        return values.shaped(spec.dtype, &[len]);
    };
    check_size(spec, values.len())?;
    values.shaped(spec.dtype, shape)
}

fn check_size(spec: &FeatureSpec, len: usize) -> Result<()> {
    match spec.size() {
        Some(size) if size != len => Err(Error::data(format!("{len} values, where {spec} needs {size}"))
            .help("declare it without a shape if their number varies")),
        _ => Ok(()),
    }
}

/// Returns a single string as bytes, and other values as an array or a list.
fn inferred(values: FeatureValues) -> Result<Value> {
    match values {
        FeatureValues::Bytes(mut one) if one.len() == 1 => Ok(Value::Bytes(one.remove(0))),
        values => {
            let len = values.len();
            values.shaped(FeatureType::Bytes, &[len])
        }
    }
}

/// Reads a sequence, with a list for each step.
pub(super) fn steps(spec: Option<&FeatureSpec>, message: Option<&[u8]>, record: &Buffer) -> Result<Value> {
    if let (None, Some(spec)) = (message, spec)
        && !spec.may_be_missing
    {
        return Err(missing(spec).help("let it be missing (`allow_missing`)"));
    }
    let all = wire::repeated(message.unwrap_or_default()).enumerate();
    let in_step = |step: usize| move |e: Error| e.and(&format!(" (in step {step})"));
    let Some(spec) = spec.filter(|spec| spec.shape.is_some()) else {
        let one = |(step, message): (usize, Result<&[u8], Damaged>)| {
            let message = message.map_err(damaged)?;
            feature(spec, Some(message), record).map_err(in_step(step))
        };
        return Ok(Value::List(all.map(one).collect::<Result<_>>()?));
    };
    let (mut values, mut count) = (FeatureValues::of(spec.dtype.kind()), 0);
    for (step, message) in all {
        let before = values.len();
        let list = wire::list(message.map_err(damaged)?).map_err(damaged)?;
        if let Some((kind, list)) = list {
            match kind == values.kind() {
                true => add(&mut values, &list, record),
                false => Err(Error::data(format!("a list of {}, but {spec} is required", kind.as_str()))),
            }
            .map_err(in_step(step))?;
        }
        check_size(spec, values.len() - before).map_err(in_step(step))?;
        count = step + 1;
    }
    let shape: Vec<usize> = [count].into_iter().chain(spec.shape.iter().flatten().copied()).collect();
    values.shaped(spec.dtype, &shape)
}

// Formats declared features for the identity of a source; writes nothing for all features.
display_as!(Features, |self, f| {
    let Self::Declared { specs, .. } = self else { return Ok(()) };
    let specs: Vec<_> = specs.iter().map(|(name, spec)| format!("{name}: {spec}")).collect();
    write!(f, "({})", specs.join(", "))
});
