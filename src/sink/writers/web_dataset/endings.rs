//! Columns of WebDataset, whose types are the endings of their files.

use serde_json::Value as Json;

use crate::element::{Element, Value};
use crate::error::Result;
use crate::sink::schema::{ColumnRules, Infer, Schema, no_type};

pub(super) static COLUMNS: ColumnRules = ColumnRules::of(check, |_| Box::<Endings>::default());

/// Type of a column of text or bytes, whose files end with the column's name. `NPY` and `JSON` are the other types.
const PLAIN: &str = "plain";
const NPY: &str = "npy";
const JSON: &str = "json";

/// Endings of the columns in the elements added so far.
#[derive(Default)]
struct Endings(Vec<(String, &'static str)>);

impl Infer for Endings {
    fn add(&mut self, element: &Element) -> Result<()> {
        for (name, value) in element.iter().filter(|(name, _)| !names_itself(name)) {
            let is = ending_of(value);
            match self.0.iter_mut().find(|(known, _)| known == name) {
                None => self.0.push((name.to_owned(), is)),
                // A column with arrays in some records and lists in others, such as empty lists, is JSON in all
                // records.
                Some((_, was)) if *was != is => *was = JSON,
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn schema(&self) -> Schema {
        self.0.iter().fold(Schema::new(), |schema, (name, ending)| schema.with(name, *ending))
    }
}

/// Returns true if the name determines the content of the file, or if the field has no file.
fn names_itself(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_known = matches!(last, NPY | JSON | "jsn" | "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id");
    is_known || name.starts_with('_')
}

fn ending_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => NPY,
        Value::Null | Value::List(_) | Value::Tree(_) => JSON,
        Value::Str(_) | Value::Bytes(_) => PLAIN,
    }
}

/// Returns the name of the file of a column, if it differs from the column's name. The name is the same in all records.
pub(super) fn file_name(schema: Option<&Schema>, name: &str, value: &Value) -> Option<String> {
    if names_itself(name) {
        return None;
    }
    let known = schema.and_then(|schema| schema.get(name)).and_then(Json::as_str);
    Some(known.unwrap_or_else(|| ending_of(value)))
        .filter(|ending| *ending != PLAIN)
        .map(|ending| format!("{name}.{ending}"))
}

fn check(schema: &Schema) -> Result<()> {
    let is_known = |holds: &Json| matches!(holds.as_str(), Some(PLAIN | NPY | JSON));
    match schema.columns().find(|(_, holds)| !is_known(holds)) {
        Some((name, holds)) => Err(no_type(name, holds, "plain, npy and json")),
        None => Ok(()),
    }
}
