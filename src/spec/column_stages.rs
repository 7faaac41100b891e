//! Stages that see each element on its own: filters, and changes of columns.

use super::arguments::{About, Arguments, arguments};
use super::build::{Filter, Of, OfNames, Site};
use super::columns::NamedFn;
use super::decode::Fields;
use super::entry::StageEntry;
use super::node::Field;
use super::values::{Decode, Given};
use crate::element::{Element, Value};
use crate::error::{Error, Result};

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::each("filter", "Keeps the elements for which a column meets all given conditions.", &Of(filter)),
    StageEntry::each("select_columns", "Keeps only the given columns, in the given order.", &Of(select_columns))
        .new_columns(),
    StageEntry::each("drop_columns", "Drops the given columns.", &Of(drop_columns)).new_columns(),
    StageEntry::each(
        "rename",
        "Renames columns, from old names to new names: `{text: document}`.\n\n\
         In Python, names can also be keyword arguments: `rename(text=\"document\")`.",
        &Of(rename),
    )
    .new_columns(),
];

arguments! {
    struct FilterArgs {
        /// Column to test. All given conditions must hold.
        column: Given<String>,
        /// Minimum length, in bytes of text or rows of an array.
        min_length: Option<u64>,
        /// Maximum length, in bytes of text or rows of an array.
        max_length: Option<u64>,
        /// Minimum value, inclusive.
        min: Option<f64>,
        /// Maximum value, inclusive.
        max: Option<f64>,
        /// Text that the value must equal.
        equals: Option<String>,
    }
}

/// Conditions of `filter` on a column.
#[derive(Clone, Debug, Default)]
struct Condition {
    min_length: Option<u64>,
    max_length: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    equals: Option<String>,
}

fn filter(args: FilterArgs, at: &Site<'_>) -> Result<Filter> {
    let FilterArgs { column, min_length, max_length, min, max, equals } = args;
    let column = at.column(&column)?;
    let condition = Condition { min_length, max_length, min, max, equals };
    let params = condition.params(&column);
    if params.len() == column.len() {
        return Err(at.error("needs a condition: one of min_length, max_length, min, max, equals"));
    }
    let keep = move |element: &Element| condition.holds(&column, element.field(&column)?);
    Ok(Filter(NamedFn::filter("filter", params, keep)))
}

impl Condition {
    fn params(&self, column: &str) -> String {
        let mut text = column.to_owned();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!(", {name}={value}");
            }
        };
        add("min_length", self.min_length.map(|x| x.to_string()));
        add("max_length", self.max_length.map(|x| x.to_string()));
        add("min", self.min.map(|x| x.to_string()));
        add("max", self.max.map(|x| x.to_string()));
        add("equals", self.equals.as_ref().map(|x| format!("{x:?}")));
        text
    }

    fn holds(&self, column: &str, value: &Value) -> Result<bool> {
        if self.min_length.is_some() || self.max_length.is_some() {
            let length = length(column, value)?;
            if self.min_length.is_some_and(|min| length < min) || self.max_length.is_some_and(|max| length > max) {
                return Ok(false);
            }
        }
        if self.min.is_some() || self.max.is_some() {
            let number = number(column, value)?;
            if self.min.is_some_and(|min| number < min) || self.max.is_some_and(|max| number > max) {
                return Ok(false);
            }
        }
        match (&self.equals, value) {
            (None, _) => Ok(true),
            (Some(want), Value::Str(text)) => Ok(**text == **want),
            (Some(_), other) => Err(wrong(column, "text, which `equals` compares", other)),
        }
    }
}

fn length(column: &str, value: &Value) -> Result<u64> {
    match value {
        Value::Null => Ok(0),
        Value::Str(text) => Ok(text.len() as u64),
        Value::Bytes(bytes) => Ok(bytes.len() as u64),
        Value::List(items) => Ok(items.len() as u64),
        Value::Array(array) if !array.shape().is_empty() => Ok(array.shape()[0] as u64),
        other => Err(wrong(column, "something with a length", other)),
    }
}

fn number(column: &str, value: &Value) -> Result<f64> {
    let number = match value {
        Value::Array(array) => {
            array.as_i64().map(|x| x as f64).or_else(|| match (array.size(), array.as_slice::<f64>()) {
                (1, Ok(one)) => Some(one[0]),
                _ => array.as_slice::<f32>().ok().filter(|s| s.len() == 1).map(|one| one[0].into()),
            })
        }
        _ => None,
    };
    number.ok_or_else(|| wrong(column, "one number", value))
}

#[cold]
fn wrong(column: &str, want: &str, got: &Value) -> Error {
    Error::data(format!("column `{column}` is {got:?}, expected {want}"))
}

arguments! {
    struct ColumnsArgs(columns) {
        /// Name of a column, or a list of names.
        columns: Given<Vec<String>>,
    }
}

fn select_columns(args: ColumnsArgs, at: &Site<'_>) -> Result<OfNames> {
    let columns = at.columns_in(&args.columns)?;
    Ok(OfNames(NamedFn::map("select_columns", columns.join(", "), move |element: Element| {
        let mut kept = Element::with_capacity(columns.len());
        for name in &columns {
            kept.insert(name, element.field(name)?.clone());
        }
        Ok(kept)
    })))
}

fn drop_columns(args: ColumnsArgs, at: &Site<'_>) -> Result<OfNames> {
    let columns = at.columns_in(&args.columns)?;
    Ok(OfNames(NamedFn::map("drop_columns", columns.join(", "), move |mut element: Element| {
        columns.iter().for_each(|name| drop(element.remove(name)));
        Ok(element)
    })))
}

/// From the old names to the new.
struct RenameArgs(Vec<Field>);

impl Arguments for RenameArgs {
    const ABOUT: About = About { free: Some(String::KIND), ..About::NONE };

    fn read(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self(fields.free_entries().to_vec()))
    }
}

fn rename(RenameArgs(names): RenameArgs, at: &Site<'_>) -> Result<OfNames> {
    let mut pairs = Vec::new();
    for field in names {
        let new = String::decode(&field.value)?;
        at.check_column(&field.value, &field.key)?;
        if pairs.iter().any(|(_, taken)| *taken == new) {
            return Err(field.value.error(format!("`{new}` is the new name of two columns")));
        }
        pairs.push((field.key, new));
    }
    if pairs.is_empty() {
        return Err(at.error("needs a column and its new name"));
    }
    let params: Vec<_> = pairs.iter().map(|(old, new)| format!("{old}={new}")).collect();
    Ok(OfNames(NamedFn::map("rename", params.join(", "), move |element| renamed(element, &pairs))))
}

fn renamed(element: Element, pairs: &[(String, String)]) -> Result<Element> {
    let mut out = Element::with_capacity(element.len());
    for (name, value) in element.into_fields() {
        let new = pairs.iter().find(|(old, _)| *old == name).map_or(name.as_str(), |(_, new)| new);
        if out.insert(new, value).is_some() {
            return Err(Error::data(format!("two columns are named `{new}` after the renaming")));
        }
    }
    Ok(out)
}
