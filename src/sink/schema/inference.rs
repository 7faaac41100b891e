//! Inference of columns from the first records.

use super::{ColumnRules, Infer, Schema};
use crate::element::Element;
use crate::error::Result;
use crate::sink::options::SinkOptions;

/// Number of records that settle the columns; `BYTES` is the limit in bytes. These records wait regardless of the
/// memory budget.
const RECORDS: u64 = 1024;
const BYTES: u64 = 8 << 20;

/// Inference over the first records, while they wait to be written.
pub(in crate::sink) struct Inference {
    infer: Box<dyn Infer>,
    declared: Schema,
    /// Names of all columns, including the declared columns.
    names: Vec<String>,
    records: u64,
    bytes: u64,
}

impl Inference {
    /// Starts the inference of the columns that the options do not declare.
    pub(in crate::sink) fn new(rules: &ColumnRules, options: &SinkOptions) -> Self {
        let (infer, declared) = ((rules.infer)(options), options.schema.clone());
        Self { infer, declared, names: Vec::new(), records: 0, bytes: 0 }
    }

    /// Adds a record; returns true if there are enough records.
    pub(in crate::sink) fn add(&mut self, element: &Element, bytes: u64) -> Result<bool> {
        for (name, _) in element.iter() {
            if !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_owned());
            }
        }
        if self.declared.is_empty() {
            self.infer.add(element)?;
        } else {
            // Skips the declared columns.
            let mut rest = Element::with_capacity(element.len());
            element.iter().filter(|(name, _)| self.declared.get(name).is_none()).for_each(|(name, value)| {
                rest.insert(name, value.clone());
            });
            self.infer.add(&rest)?;
        }
        (self.records, self.bytes) = (self.records + 1, self.bytes.saturating_add(bytes));
        Ok(self.records >= RECORDS || self.bytes >= BYTES)
    }

    /// Returns the columns: columns of the records first, then declared columns that no record has.
    pub(in crate::sink) fn end(self) -> Schema {
        let inferred = self.infer.schema();
        let holds = |name: &String| self.declared.get(name).or_else(|| inferred.get(name));
        let named = self.names.iter().filter_map(|name| Some((name, holds(name)?)));
        let schema = named.fold(Schema::new(), |schema, (name, holds)| schema.with(name, holds.clone()));
        self.declared.columns().fold(schema, |schema, (name, holds)| schema.with(name, holds.clone()))
    }
}
