//! Stages that see each element on its own: filters, and changes of columns.

use super::chain::Context;
use super::columns::NamedFn;
use super::decode::{Decode, Fields};
use super::entry::{StageEntry, each_of_names};
use crate::dataset::iter::FilterThresholds;
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset};
use crate::element::{Element, Value};
use crate::error::{Error, Result};

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::each("filter", None, filter, filter_iter),
    StageEntry::each("select_columns", Some("columns"), select, select_iter).new_columns(),
    StageEntry::each("drop_columns", Some("columns"), drop_columns, drop_columns_iter).new_columns(),
    StageEntry::each("rename", None, rename, rename_iter).new_columns(),
];

each_of_names!(select_fn, select, select_iter);
each_of_names!(drop_fn, drop_columns, drop_columns_iter);
each_of_names!(rename_fn, rename, rename_iter);

fn filter(ds: BoxMap<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxMap<Element>> {
    Ok(filter_fn(fields, context)?.after(ds).boxed())
}

fn filter_iter(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
    Ok(filter_fn(fields, context)?.watched(ds, FilterThresholds::default()).boxed())
}

/// What `filter` can ask of a column.
#[derive(Clone, Debug, Default)]
struct Condition {
    min_length: Option<u64>,
    max_length: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    equals: Option<String>,
}

/// `filter: {column: text, min_length: 10}`. The length of text is in bytes, that of an array in rows.
fn filter_fn(fields: &Fields<'_>, context: &Context) -> Result<NamedFn<Element>> {
    fields.required_node("column")?;
    let column = context.column(fields, "column")?.unwrap_or_default();
    let condition = Condition {
        min_length: fields.optional("min_length")?,
        max_length: fields.optional("max_length")?,
        min: fields.optional("min")?,
        max: fields.optional("max")?,
        equals: fields.optional("equals")?,
    };
    let params = condition.params(&column);
    if params.len() == column.len() {
        return Err(fields.error("needs a condition: one of min_length, max_length, min, max, equals"));
    }
    Ok(NamedFn::filter("filter", params, move |element: &Element| condition.holds(&column, element.field(&column)?)))
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
    Error::data(format!("column `{column}` is {got:?} where {want} is needed"))
}

fn select_fn(fields: &Fields<'_>, context: &Context) -> Result<NamedFn<Element>> {
    let columns = context.columns_in(fields.required_node("columns")?)?;
    Ok(NamedFn::map("select_columns", columns.join(", "), move |element: Element| {
        let mut kept = Element::with_capacity(columns.len());
        for name in &columns {
            kept.insert(name, element.field(name)?.clone());
        }
        Ok(kept)
    }))
}

fn drop_fn(fields: &Fields<'_>, context: &Context) -> Result<NamedFn<Element>> {
    let columns = context.columns_in(fields.required_node("columns")?)?;
    Ok(NamedFn::map("drop_columns", columns.join(", "), move |mut element: Element| {
        columns.iter().for_each(|name| drop(element.remove(name)));
        Ok(element)
    }))
}

/// `rename: {text: document}`: from the old name to the new.
fn rename_fn(fields: &Fields<'_>, context: &Context) -> Result<NamedFn<Element>> {
    let mut pairs = Vec::new();
    for field in fields.free_entries() {
        let new = String::decode(&field.value)?;
        context.check_column(&field.value, &field.key)?;
        if pairs.iter().any(|(_, taken)| *taken == new) {
            return Err(field.value.error(format!("`{new}` is the new name of two columns")));
        }
        pairs.push((field.key.clone(), new));
    }
    if pairs.is_empty() {
        return Err(fields.error("needs a column and its new name"));
    }
    let params: Vec<_> = pairs.iter().map(|(old, new)| format!("{old}={new}")).collect();
    Ok(NamedFn::map("rename", params.join(", "), move |element| renamed(element, &pairs)))
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
