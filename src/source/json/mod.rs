//! Parsing of one JSON record, which is an object, into an [`Element`].

mod deep;
#[cfg(test)]
mod tests;
mod text;
pub(super) mod write;

use serde::de::IgnoredAny;

use self::deep::{Json, other};
pub(super) use self::text::Fault;
use self::text::{own_string, skip_string, string};
use crate::element::{Array, Element, Name, Value};

/// Maximum number of names in one object: more than real records have, and few enough to keep the check for repeated
/// names cheap.
const MAX_NAMES: usize = 10_000;

/// The fields to read from a record.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// All fields, in the order of the record.
    All,
    /// These fields, in this order.
    Columns(Vec<Name>),
}

/// What to do if an object in a record repeats a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepeatedNames {
    /// Uses the last value, at the position of the first, like Python's `json`, pandas and serde_json. Such records are
    /// counted in the report.
    #[default]
    Last,
    /// Rejects the record.
    Error,
}

/// The policy for repeated names, and whether the record has one.
struct Repeats {
    policy: RepeatedNames,
    found: bool,
}

impl Repeats {
    /// Applies the policy to a repeated name whose value is at `at`.
    #[cold]
    fn take(&mut self, at: usize, name: &str) -> Result<(), Fault> {
        match self.policy {
            RepeatedNames::Last => {
                self.found = true;
                Ok(())
            }
            RepeatedNames::Error => Err(repeated(at, name)),
        }
    }

    /// Applies the policy to a repeated name in a nested object of the value at `at`.
    #[cold]
    fn take_within(&mut self, line: &str, at: usize) -> Result<(), Fault> {
        self.found = true;
        match self.policy {
            RepeatedNames::Last => Ok(()),
            // Parses again, to find the position.
            RepeatedNames::Error => other::<Json<true>>(line, at).map(drop),
        }
    }
}

/// Reason why a record cannot be read.
#[derive(Debug)]
pub(crate) enum RecordFault {
    /// The record is not valid JSON.
    Damaged(Fault),
    /// The record lacks this column.
    Missing(Name),
}

from_as!(Fault => RecordFault, |fault| Self::Damaged(fault));

/// Parses one record. The returned flag is true if a name was repeated. Unwanted fields are checked for syntax only.
pub(crate) fn record(line: &str, wanted: &Wanted, policy: RepeatedNames) -> Result<(Element, bool), RecordFault> {
    let mut repeats = Repeats { policy, found: false };
    let element = match wanted {
        Wanted::All => whole(line, &mut repeats)?,
        Wanted::Columns(columns) => chosen(line, columns, &mut repeats)?,
    };
    Ok((element, repeats.found))
}

fn whole(line: &str, repeats: &mut Repeats) -> Result<Element, Fault> {
    let mut element = Element::with_capacity(8);
    let mut names = 0;
    fields(line, |name, at| {
        let (value, end) = value(line, at, repeats)?;
        if element.insert(name, value).is_some() {
            repeats.take(at, name)?;
        }
        names += 1;
        if names > MAX_NAMES { Err(Fault::new(at, too_many())) } else { Ok(end) }
    })?;
    Ok(element)
}

fn chosen(line: &str, columns: &[Name], repeats: &mut Repeats) -> Result<Element, RecordFault> {
    let mut values: Vec<Option<Value>> = vec![None; columns.len()];
    fields(line, |name, at| {
        let Some(column) = columns.iter().position(|c| c == name) else { return skip(line, at) };
        let (value, end) = value(line, at, repeats)?;
        if values[column].replace(value).is_some() {
            repeats.take(at, name)?;
        }
        Ok(end)
    })?;
    let field = |(name, value): (&Name, Option<Value>)| match value {
        Some(value) => Ok((name.clone(), value)),
        None => Err(RecordFault::Missing(name.clone())),
    };
    // The columns have distinct names.
    Ok(Element::from_unique(columns.iter().zip(values).map(field).collect::<Result<_, _>>()?))
}

/// Returns the names in a record, for messages. For a damaged record, returns the names before the damage.
pub(crate) fn names(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    let _ = fields(line, |name, at| {
        names.push(name.to_owned());
        skip(line, at)
    });
    names
}

/// Iterates over the fields of an object. `field(name, at)` parses the value at `at` and returns its end.
#[inline]
fn fields(line: &str, mut field: impl FnMut(&str, usize) -> Result<usize, Fault>) -> Result<(), Fault> {
    let bytes = line.as_bytes();
    let mut at = space(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        let Fault { at, message } = unexpected(line, at, "a record, which is an object: {");
        let is_array = bytes.get(at) == Some(&b'[');
        // The file is an array of records, or pretty-printed.
        let help = if is_array { ": the source `json` reads files that hold an array of records" } else { "" };
        return Err(Fault::new(at, message + help));
    }
    at = space(bytes, at + 1);
    if bytes.get(at) == Some(&b'}') {
        return end(line, at + 1);
    }
    loop {
        if bytes.get(at) != Some(&b'"') {
            return Err(unexpected(line, at, "a name: \""));
        }
        let (name, next) = string(line, at + 1)?;
        at = space(bytes, next);
        if bytes.get(at) != Some(&b':') {
            return Err(unexpected(line, at, ":"));
        }
        at = field(&name, space(bytes, at + 1))?;
        at = space(bytes, at);
        match bytes.get(at) {
            Some(b',') => at = space(bytes, at + 1),
            Some(b'}') => return end(line, at + 1),
            _ => return Err(unexpected(line, at, ", or }")),
        }
    }
}

/// Parses a whole document of any kind, with the rules for nested values. Uses the last value of a repeated name.
pub(crate) fn document(text: &str) -> Result<Value, Fault> {
    let mut repeats = Repeats { policy: RepeatedNames::Last, found: false };
    let (value, at) = value(text, space(text.as_bytes(), 0), &mut repeats)?;
    end(text, at).map(|()| value)
}

fn end(line: &str, at: usize) -> Result<(), Fault> {
    match space(line.as_bytes(), at) {
        at if at == line.len() => Ok(()),
        at => Err(unexpected(line, at, "the end of the line")),
    }
}

/// Returns the position of the next byte that is not white space.
#[inline]
fn space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

#[cold]
fn unexpected(line: &str, at: usize, want: &str) -> Fault {
    match line[at..].chars().next() {
        Some(c) => Fault::new(at, format!("expected {want}, found {c:?}")),
        // The record continues on the next line, as pretty printers write it.
        None if line.trim() == "{" => {
            let text =
                format!("expected {want}, found the end of the line: `jq -c . FILE` writes each record as a line");
            Fault::new(at, text)
        }
        None => Fault::new(at, format!("expected {want}, found the end of the line")),
    }
}

#[cold]
fn repeated(at: usize, name: &str) -> Fault {
    Fault::new(at, format!("the name {name:?} occurs twice in one record"))
}

fn too_many() -> String {
    format!("more than {MAX_NAMES} names in one object")
}

#[inline]
fn value(line: &str, at: usize, repeats: &mut Repeats) -> Result<(Value, usize), Fault> {
    if line.as_bytes().get(at) == Some(&b'"') {
        let (text, end) = own_string(line, at + 1)?;
        return Ok((Value::Str(text), end));
    }
    if let Some((number, end)) = small_integer(line.as_bytes(), at) {
        return Ok((Array::scalar(number).into(), end));
    }
    let (Json::<false> { item, repeats: within }, end) = other(line, at)?;
    if within {
        repeats.take_within(line, at)?;
    }
    Ok((item.into_value(), end))
}

#[inline]
fn skip(line: &str, at: usize) -> Result<usize, Fault> {
    if line.as_bytes().get(at) == Some(&b'"') {
        return skip_string(line, at + 1);
    }
    if let Some((_, end)) = small_integer(line.as_bytes(), at) {
        return Ok(end);
    }
    other::<IgnoredAny>(line, at).map(|(_, end)| end)
}

/// Parses an integer of up to 18 digits. Returns `None` if the value at `at` is anything else.
#[inline]
fn small_integer(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = bytes.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    let (mut end, mut number) = (start, 0);
    while let Some(digit) = bytes.get(end).filter(|b| b.is_ascii_digit()) {
        if end - start == 18 {
            return None;
        }
        number = number * 10 + i64::from(digit - b'0');
        end += 1;
    }
    // JSON forbids leading zeros as in 007, and serde_json parses -0 as a float.
    let plain = end > start && (bytes[start] != b'0' || (end - start == 1 && !negative));
    let closed = matches!(bytes.get(end), Some(b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n'));
    (plain && closed).then_some((if negative { -number } else { number }, end))
}
