//! Examples in records: declarations of their features in a file, and the stages that parse them.

use super::{ExampleParser, FeatureSpec, FeatureType, FeatureValues};
use crate::dataset::columns::NamedFn;
use crate::dataset::entry::StageEntry;
use crate::dataset::entry::build::{Of, Site};
use crate::declare::arguments::{Arguments, Kind, arguments};
use crate::declare::decode::Fields;
use crate::declare::node::{Node, Tree};
use crate::declare::values::{Decode, Given, Map, decode_as, word};
use crate::element::{Buffer, Element, Name, Value};
use crate::error::{Error, Result};

pub(crate) const STAGES: &[StageEntry] = &[
    StageEntry::each(
        "parse_example",
        "Parses each record of bytes as a `tf.train.Example`, and returns its features.\n\n\
         Elements are `bytes`, or dicts with the bytes in `column`, which the features replace. A dtype is `int64`, \
         `float32`, `bytes` or `str`. A feature without a shape has any number of values.\n\n\
         DataError: A record is not an `Example`, or lacks a feature.",
        &Of(parse_example),
    )
    .new_columns(),
    StageEntry::each(
        "parse_sequence_example",
        "Parses each record of bytes as a `tf.train.SequenceExample`, and returns its features. Without `context` and `sequences`, \
         all features are inferred.\n\n\
         DataError: A record is not a `SequenceExample`, or lacks a feature.",
        &Of(parse_sequence_example),
    )
    .new_columns(),
];

/// The field that holds a record of bytes, unless it is given another name.
pub(crate) const RECORD: &str = "record";

/// Features by their names, or `true` for all there are.
pub(in crate::source) struct Declared(pub(in crate::source) Option<ExampleParser>);

decode_as!(Declared, Kind::Either(&[Kind::Bool, Map::<FeatureSpec>::KIND]), |node| {
    if let Tree::Bool(all) = node.value {
        return Ok(Self(all.then(ExampleParser::inferred)));
    }
    ExampleParser::new(features(node)?).map(|parser| Self(Some(parser))).map_err(|e| at(node, e))
});

arguments! {
    pub(in crate::source) struct SequenceArgs {
        /// Features of the context, declared as in `parse_example`.
        context: Option<Given<Map<FeatureSpec>>>,
        /// Features of each step. A feature with a shape becomes an array of shape `[time, …]`, any other feature a list with an array for
        /// each step. With `{allow_missing: true}`, records may lack the feature.
        sequences: Option<Given<Map<FeatureSpec>>>,
    }
}

pub(in crate::source) fn sequences(args: SequenceArgs, placed: impl FnOnce(Error) -> Error) -> Result<ExampleParser> {
    let SequenceArgs { context, sequences } = args;
    let given = |declared: Option<Given<_>>| declared.map(|node| features(&node)).transpose();
    match (given(context)?, given(sequences)?) {
        (None, None) => Ok(ExampleParser::inferred_sequences()),
        (context, sequences) => {
            ExampleParser::sequences(context.unwrap_or_default(), sequences.unwrap_or_default()).map_err(placed)
        }
    }
}

/// Names and declarations of features.
fn features(node: &Node) -> Result<Vec<(Name, FeatureSpec)>> {
    let Map(features) = Map::decode(node)?;
    Ok(features.into_iter().map(|(name, spec)| (Name::new(name), spec)).collect())
}

arguments! {
    struct FeatureArgs(dtype) {
        /// Type of the values.
        dtype: FeatureType,
        /// Shape of the feature. By default, the number of values varies.
        shape: Option<Vec<usize>>,
        /// Values for records that lack the feature.
        default: Option<Node>,
        /// Whether a record may lack the feature, which then has no steps. Applies to features of `sequences` only.
        allow_missing: bool = false,
    }
}

impl Decode for FeatureType {
    const KIND: Kind = Kind::Words(&{
        let [a, b, c, d] = Self::NAMES;
        [a.0, b.0, c.0, d.0]
    });

    fn decode(node: &Node) -> Result<Self> {
        Ok(Self::NAMES[word(node, &Self::NAMES.map(|(name, _)| name))?].1)
    }
}

impl Decode for FeatureSpec {
    const KIND: Kind = Kind::Section(&FeatureArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::of(node, &FeatureArgs::ABOUT)?;
        let FeatureArgs { dtype, shape, default: values, allow_missing } = FeatureArgs::read(&fields)?;
        fields.finish()?;
        let mut spec = if let Some(shape) = shape { Self::fixed(dtype, &shape) } else { Self::variable(dtype) };
        if let Some(node) = values {
            spec = spec.default(default(dtype, &node)?);
        }
        Ok(if allow_missing { spec.allow_missing() } else { spec })
    }
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
    error.help_text().into_iter().fold(node.error(error.message()), Error::help)
}

arguments! {
    struct ParseArgs(features) {
        /// Features to parse, such as `{label: {dtype: int64, shape: [], default: 0}, ids: int64}`. By default, or with `true`, the
        /// features are inferred: numbers become one-dimensional arrays, a single string becomes bytes, and several strings become a list.
        features: Option<Declared>,
        /// Column that contains the bytes. By default, `record`.
        column: Option<Given<String>>,
    }
}

fn parse_example(ParseArgs { features, column }: ParseArgs, at: &Site<'_>) -> Result<NamedFn<Element>> {
    let parser = features.and_then(|declared| declared.0);
    stage("parse_example", parser.unwrap_or_else(ExampleParser::inferred), column, at)
}

arguments! {
    struct ParseSequenceArgs with SequenceArgs as declared {
        /// Column that contains the bytes. By default, `record`.
        column: Option<Given<String>>,
    }
}

fn parse_sequence_example(args: ParseSequenceArgs, at: &Site<'_>) -> Result<NamedFn<Element>> {
    let parser = sequences(args.declared, |error| at.error(error.message()))?;
    stage("parse_sequence_example", parser, args.column, at)
}

fn stage(
    name: &'static str,
    parser: ExampleParser,
    column: Option<Given<String>>,
    at: &Site<'_>,
) -> Result<NamedFn<Element>> {
    let column = column.map_or_else(|| Ok(RECORD.to_owned()), |given| at.column(&given))?;
    Ok(NamedFn::map(name, format!("{column}, {parser}"), move |element| parsed(element, &column, &parser)))
}

/// The element with the features in place of the column.
fn parsed(mut element: Element, column: &str, parser: &ExampleParser) -> Result<Element> {
    let record = match element.field(column)? {
        Value::Bytes(record) => record.clone(),
        other => return Err(Error::data(format!("column `{column}` is {}, expected bytes", other.kind()))),
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
