//! Columns of MDS, whose types are encodings.

use serde_json::Value as Json;

use crate::element::Element;
use crate::error::{Error, Result};
use crate::sink::schema::{ColumnRules, Infer, Schema, no_type};
use crate::source::{mds_encoding_is_known, mds_encoding_of};

pub(super) static COLUMNS: ColumnRules = ColumnRules::of(check, |_| Box::<Encodings>::default());

/// Encodings of the columns in the elements added so far.
#[derive(Default)]
struct Encodings(Vec<(String, String)>);

/// Encoding of all values that JSON has a type for.
const JSON: &str = "json";

/// Returns true if JSON preserves the values of the encoding.
fn is_json(encoding: &str) -> bool {
    matches!(encoding, JSON | "str" | "int" | "float64" | "ndarray:int64" | "ndarray:float64")
}

impl Infer for Encodings {
    fn add(&mut self, element: &Element) -> Result<()> {
        for (name, value) in element.iter() {
            let is = mds_encoding_of(value);
            match self.0.iter_mut().find(|(known, _)| known == name) {
                None => self.0.push((name.to_owned(), is)),
                Some((_, was)) if *was == is => {}
                Some((_, was)) if (was == JSON || is == JSON) && is_json(was) && is_json(&is) => {
                    JSON.clone_into(was);
                }
                Some((_, was)) => {
                    return Err(Error::data(format!("column {name}: {is} after {was}"))
                        .help("convert them to one type by an earlier `map`, or declare the column by a schema"));
                }
            }
        }
        Ok(())
    }

    fn schema(&self) -> Schema {
        self.0.iter().fold(Schema::new(), |schema, (name, encoding)| schema.with(name, encoding.as_str()))
    }
}

/// Checks that the type of every column is an encoding.
fn check(schema: &Schema) -> Result<()> {
    let known = "int, float32 and the other numbers, str, bytes, json, ndarray:TYPE, jpeg, png, pil";
    let is_known = |holds: &Json| holds.as_str().is_some_and(mds_encoding_is_known);
    match schema.columns().find(|(_, holds)| !is_known(holds)) {
        Some((name, holds)) => Err(no_type(name, holds, known)),
        None => Ok(()),
    }
}
