//! `tf.train.Example` and `tf.train.SequenceExample`: records of named lists, used by most TFRecord and many
//! ArrayRecord files.

mod encode;
mod feature;
mod features;
mod lists;
mod records;
#[cfg(feature = "spec")]
pub(crate) mod stages;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

pub use self::encode::{encode_example, encode_sequence_example};
pub use self::feature::{FeatureSpec, FeatureType, FeatureValues};
use self::features::{Features, Read, feature, steps};
pub use self::records::Examples;
use crate::element::{Buffer, Element, Name};
use crate::error::{Error, Result};
use crate::varint::Damaged;

/// Parser of records that are examples, with declared or inferred features. Clones share the declaration.
///
/// Declared features come in the order of the declaration, shaped by their [`FeatureSpec`]. Other features in the
/// record are skipped.
///
/// Inferred features are all features of the record, sorted by name. Whole numbers are `i64` and floats `f32`, of shape
/// `[values]`. A single string is bytes, and any other number of strings is a list of bytes. A feature without a list
/// is null. A feature of a sequence is a list with such a value for each step.
///
/// An element of a sequence example holds the context and the sequences side by side.
///
/// ```
/// use gristmill::source::{ExampleParser, FeatureSpec, FeatureType, encode_example};
/// use gristmill::{Array, Buffer, Element};
/// let element = Element::new().with("ids", Array::from_vec(vec![7i64, 8])).with("text", "hi");
/// let record = Buffer::from_vec(encode_example(&element)?);
/// let inferred = ExampleParser::inferred().parse(&record)?;
/// assert_eq!(inferred.array("ids")?.as_slice::<i64>()?, [7, 8]);
/// let declared = ExampleParser::new([
///     ("text", FeatureSpec::fixed(FeatureType::Str, &[])),
///     ("weights", FeatureSpec::variable(FeatureType::Float32)),
/// ])?;
/// let element = declared.parse(&record)?;
/// assert_eq!((element.text("text")?, element.array("weights")?.shape()), ("hi", [0].as_slice()));
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Source
/// The messages are TensorFlow's `example.proto` and `feature.proto`. Declarations follow `tf.io.parse_single_example`
/// and `tf.io.parse_single_sequence_example`. As protocol buffers require, lists may be packed or not, entries may be
/// in any order, and the last of several entries with a name counts.
#[derive(Clone, PartialEq)]
#[must_use = "it does nothing until it parses"]
pub struct ExampleParser(Arc<Form>);

#[derive(PartialEq)]
enum Form {
    Example(Features),
    Sequence { context: Features, sequences: Features },
}

impl ExampleParser {
    /// Parses all features of a `tf.train.Example`, with inferred types.
    pub fn inferred() -> Self {
        Self(Arc::new(Form::Example(Features::All)))
    }

    /// Parses these features of a `tf.train.Example`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there are none, a name occurs twice, or a default does not
    /// fit its shape.
    pub fn new<N: Into<Name>>(features: impl IntoIterator<Item = (N, FeatureSpec)>) -> Result<Self> {
        let features = features.into_iter().map(|(name, spec)| (name.into(), spec)).collect();
        let features = Features::declared(features, false)?;
        if features.names().next().is_none() {
            return Err(Error::config("no features").help("leave the declaration out to have all of them"));
        }
        Ok(Self(Arc::new(Form::Example(features))))
    }

    /// Parses all features of a `tf.train.SequenceExample`, with inferred types.
    pub fn inferred_sequences() -> Self {
        Self(Arc::new(Form::Sequence { context: Features::All, sequences: Features::All }))
    }

    /// Parses these features of a `tf.train.SequenceExample`: features of its context, and sequences with a value per
    /// step.
    ///
    /// A sequence of fixed shape gives an array of shape `[time, …]`, or lists for strings. Other sequences give lists
    /// of arrays.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) as for [`new`](Self::new); also if a sequence has a default, or
    /// a name is both in the context and a sequence.
    pub fn sequences<N: Into<Name>>(
        context: impl IntoIterator<Item = (N, FeatureSpec)>,
        sequences: impl IntoIterator<Item = (N, FeatureSpec)>,
    ) -> Result<Self> {
        let context = context.into_iter().map(|(name, spec)| (name.into(), spec)).collect();
        let sequences = sequences.into_iter().map(|(name, spec)| (name.into(), spec)).collect();
        let (context, sequences) = (Features::declared(context, false)?, Features::declared(sequences, true)?);
        if let Some(name) = sequences.names().find(|name| context.names().any(|other| other == *name)) {
            return Err(Error::config(format!("feature {name:?} is declared both in the context and as a sequence")));
        }
        if context.names().chain(sequences.names()).next().is_none() {
            return Err(Error::config("no features").help("leave the declaration out to have all of them"));
        }
        Ok(Self(Arc::new(Form::Sequence { context, sequences })))
    }

    /// Parses a record. Strings of more than 8 bytes are views of the record.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the record is not such a message, or a feature does not match its
    /// declaration. The error contains the feature's name, its declaration and the values found.
    ///
    /// # Cost
    /// One pass over the record. Numbers are copied; each `i64` takes 8 bytes, regardless of its encoded length.
    pub fn parse(&self, record: &Buffer) -> Result<Element> {
        let mut fields = Vec::new();
        match &*self.0 {
            Form::Example(features) => read(features, record, 1, feature, &mut fields)?,
            Form::Sequence { context, sequences } => {
                read(context, record, 1, feature, &mut fields)?;
                let of_context = fields.len();
                read(sequences, record, 2, steps, &mut fields)?;
                let (context, sequences) = fields.split_at(of_context);
                if let Some((name, _)) = sequences.iter().find(|(name, _)| context.iter().any(|(n, _)| n == name)) {
                    return Err(Error::data(format!("feature {name:?} is both in the context and a sequence"))
                        .help("declare the one that is meant"));
                }
            }
        }
        Ok(Element::from_unique(fields))
    }
}

/// Reads the features in field `number` of a record.
fn read(
    features: &Features,
    record: &Buffer,
    number: u64,
    value: Read,
    fields: &mut Vec<(Name, crate::Value)>,
) -> Result<()> {
    let map = wire::part(record.as_bytes(), number).map_err(|Damaged| features::no_example())?.unwrap_or_default();
    features.read(&map, record, value, fields)
}

// Formats the parser for the identity of a source.
display_as!(ExampleParser, |self, f| {
    match &*self.0 {
        Form::Example(features) => write!(f, "examples{features}"),
        Form::Sequence { context, sequences } => write!(f, "sequence_examples{context}{sequences}"),
    }
});

debug_as!(ExampleParser, |self, f| write!(f, "ExampleParser({self})"));
