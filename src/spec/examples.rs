//! Examples in records: what a file declares of their features, and the stages that parse them.

use super::chain::Context;
use super::columns::NamedFn;
use super::decode::{Decode, Fields};
use super::entry::{StageEntry, each};
use super::node::{Node, Tree};
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset};
use crate::element::{Buffer, Element, Name, Value};
use crate::error::{Error, Result};
use crate::source::{ExampleParser, FeatureSpec, FeatureType, FeatureValues};

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::each("parse_example", Some("features"), parse_map, parse_iter).new_columns(),
    StageEntry::each("parse_sequence_example", None, parse_sequence_map, parse_sequence_iter).new_columns(),
];

/// The field that holds a record of bytes, unless it is given another name.
pub(crate) const RECORD: &str = "record";

/// `examples: true`, `examples: {label: {dtype: int64, shape: []}, tokens: int64}`, and `sequence_examples` with `context` and
/// `sequences`: what a source makes of its records.
#[cfg(any(feature = "array_record", feature = "bagz", feature = "tf_record"))]
pub(super) fn parser(fields: &Fields<'_>) -> Result<Option<ExampleParser>> {
    let examples = fields.node("examples").map(example).transpose()?.flatten();
    let sequences = fields.node("sequence_examples").map(sequence_example).transpose()?.flatten();
    match (examples, sequences) {
        (Some(_), Some(_)) => Err(fields.error("`examples` and `sequence_examples` exclude each other")),
        (examples, sequences) => Ok(examples.or(sequences)),
    }
}

fn example(node: &Node) -> Result<Option<ExampleParser>> {
    match node.value {
        Tree::Bool(all) => Ok(all.then(ExampleParser::inferred)),
        _ => ExampleParser::new(features(node)?).map_err(|e| at(node, e)).map(Some),
    }
}

#[cfg(any(feature = "array_record", feature = "bagz", feature = "tf_record"))]
fn sequence_example(node: &Node) -> Result<Option<ExampleParser>> {
    if let Tree::Bool(all) = node.value {
        return Ok(all.then(ExampleParser::inferred_sequences));
    }
    let fields = Fields::new(node)?;
    let parser = sequences(&fields)?;
    fields.finish()?;
    Ok(Some(parser))
}

/// `context: {…}, sequences: {…}`; all there is without both.
fn sequences(fields: &Fields<'_>) -> Result<ExampleParser> {
    let given = |name| fields.node(name).map(features).transpose();
    match (given("context")?, given("sequences")?) {
        (None, None) => Ok(ExampleParser::inferred_sequences()),
        (context, sequences) => ExampleParser::sequences(context.unwrap_or_default(), sequences.unwrap_or_default())
            .map_err(|e| fields.error(e.message())),
    }
}

/// Names of features and what they are.
fn features(node: &Node) -> Result<Vec<(Name, FeatureSpec)>> {
    let fields = Fields::new(node)?;
    fields.free_entries().iter().map(|field| Ok((Name::new(&field.key), feature(&field.value)?))).collect()
}

/// `int64`, or `{dtype: int64, shape: [2], default: [0, 0]}`.
fn feature(node: &Node) -> Result<FeatureSpec> {
    let fields = Fields::with_short(node, Some("dtype"))?;
    fields.required_node("dtype")?;
    let dtype = fields.choice("dtype", &FeatureType::NAMES.map(|(name, _)| name))?;
    let dtype = FeatureType::NAMES[dtype.unwrap_or_default()].1;
    let mut spec = match fields.optional::<Vec<usize>>("shape")? {
        Some(shape) => FeatureSpec::fixed(dtype, &shape),
        None => FeatureSpec::variable(dtype),
    };
    if let Some(node) = fields.node("default") {
        spec = spec.default(default(dtype, node)?);
    }
    if fields.or("allow_missing", false)? {
        spec = spec.allow_missing();
    }
    fields.finish()?;
    Ok(spec)
}

fn default(dtype: FeatureType, node: &Node) -> Result<FeatureValues> {
    Ok(match dtype {
        FeatureType::Int64 => FeatureValues::Int64(Decode::decode(node)?),
        FeatureType::Float32 => {
            FeatureValues::Float32(Vec::<f64>::decode(node)?.into_iter().map(|value| value as f32).collect())
        }
        FeatureType::Bytes | FeatureType::Str => {
            let texts = Vec::<String>::decode(node)?;
            FeatureValues::Bytes(texts.iter().map(|text| Buffer::copy_from(text.as_bytes())).collect())
        }
    })
}

#[cold]
fn at(node: &Node, error: Error) -> Error {
    let placed = node.error(error.message());
    match error.help_text() {
        Some(help) => placed.help(help),
        None => placed,
    }
}

/// `parse_example: {column: record, features: {…}}`.
fn parse_fn(fields: &Fields<'_>, context: &Context) -> Result<NamedFn<Element>> {
    let parser = fields.node("features").map(example).transpose()?.flatten();
    stage("parse_example", parser.unwrap_or_else(ExampleParser::inferred), fields, context)
}

/// `parse_sequence_example: {column: record, context: {…}, sequences: {…}}`.
fn parse_sequence_fn(fields: &Fields<'_>, context: &Context) -> Result<NamedFn<Element>> {
    stage("parse_sequence_example", sequences(fields)?, fields, context)
}

fn stage(
    name: &'static str,
    parser: ExampleParser,
    fields: &Fields<'_>,
    context: &Context,
) -> Result<NamedFn<Element>> {
    let column = context.column(fields, "column")?.unwrap_or_else(|| RECORD.to_owned());
    Ok(NamedFn::map(name, format!("{column}, {parser}"), move |element| parsed(element, &column, &parser)))
}

/// The element with the features in place of the column.
fn parsed(mut element: Element, column: &str, parser: &ExampleParser) -> Result<Element> {
    let record = match element.field(column)? {
        Value::Bytes(record) => record.clone(),
        other => return Err(Error::data(format!("column `{column}` is {} where bytes are needed", other.kind()))),
    };
    element.remove(column);
    let features = parser.parse(&record)?;
    if element.is_empty() {
        return Ok(features);
    }
    for (name, value) in features.into_fields() {
        if element.insert(&name, value).is_some() {
            return Err(Error::data(format!("feature {name:?} has the name of a column")));
        }
    }
    Ok(element)
}

each!(parse_fn, parse_map, parse_iter);
each!(parse_sequence_fn, parse_sequence_map, parse_sequence_iter);
