//! Arguments of files whose records are bytes.

use super::entries::prelude::*;
use super::example::stages::{Declared, RECORD, SequenceArgs, sequences};
use super::{ExampleParser, Examples};
use crate::dataset::columns::NamedFn;
use crate::dataset::map::RandomAccess;
use crate::declare::arguments::Arguments;
use crate::declare::decode::Fields;
use crate::declare::node::Tree;
use crate::element::{Buffer, Value};

arguments! {
    /// Arguments by which records of bytes become elements.
    pub(super) struct RecordArgs {
        /// Name of the column for the bytes of a record. By default, `record` in pipeline files; in Python, the elements are `bytes`.
        field: Option<String>,
        /// Features to parse from records of `tf.train.Example`, declared as in `parse_example`. With `true`, the features are inferred.
        examples: Option<Declared>,
        /// Features to parse from records of `tf.train.SequenceExample`: `context` and `sequences`, declared as in
        /// `parse_sequence_example`. With `true`, the features are inferred.
        sequence_examples: Option<DeclaredSequences>,
    }
}

/// Way to read records of bytes.
#[derive(Clone)]
pub(super) enum Records {
    /// The only field of an element.
    Field(String),
    Parsed(ExampleParser),
}

impl RecordArgs {
    pub(super) fn records(self, at: &Site<'_>) -> Result<Records> {
        let parsers = (self.examples.and_then(|given| given.0), self.sequence_examples.and_then(|given| given.0));
        match (parsers, self.field) {
            ((Some(_), Some(_)), _) => Err(at.error("`examples` and `sequence_examples` exclude each other")),
            ((None, None), field) => Ok(Records::Field(field.unwrap_or_else(|| RECORD.to_owned()))),
            (_, Some(_)) => {
                Err(at.error("`field` names the column of a record's bytes, and parsed examples have no such column"))
            }
            ((Some(parser), None) | (None, Some(parser)), None) => Ok(Records::Parsed(parser)),
        }
    }
}

impl Records {
    pub(super) fn elements(self, source: impl RandomAccess<Record = Buffer> + 'static) -> BoxMap<Element> {
        match self {
            Self::Field(name) => to_record(&name).after(Source::new(source)).boxed(),
            Self::Parsed(parser) => Source::new(Examples::new(source, parser)).boxed(),
        }
    }
}

/// Bytes as an element with a single field.
pub(super) fn to_record(field: &str) -> NamedFn<Buffer> {
    let name = field.to_owned();
    let element = move |record: Buffer| Ok(Element::with_capacity(1).with(&name, Value::Bytes(record)));
    NamedFn::map("to_element", field.to_owned(), element)
}

/// `context` and `sequences`, or `true` for all there is.
struct DeclaredSequences(Option<ExampleParser>);

decode_as!(DeclaredSequences, Kind::Either(&[Kind::Bool, Kind::Section(&SequenceArgs::ABOUT)]), |node| {
    if let Tree::Bool(all) = node.value {
        return Ok(Self(all.then(ExampleParser::inferred_sequences)));
    }
    let fields = Fields::new(node)?;
    let parser = sequences(SequenceArgs::read(&fields)?, |error| fields.error(error.message()))?;
    fields.finish()?;
    Ok(Self(Some(parser)))
});
