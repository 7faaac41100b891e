//! `tf.train.Example` and `tf.train.SequenceExample`: records of named lists, which most TFRecord and many ArrayRecord files hold.

mod encode;
mod feature;
mod features;
mod lists;
mod records;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;
use std::sync::Arc;

pub use self::encode::{encode_example, encode_sequence_example};
pub use self::feature::{FeatureSpec, FeatureType, FeatureValues};
use self::features::{Features, Read, feature, steps};
pub use self::records::Examples;
#[cfg(all(feature = "tf_record", feature = "compress"))]
pub use self::records::ExamplesIter;
use super::varint::Damaged;
use crate::element::{Buffer, Element, Name};
use crate::error::{Error, Result};

/// Makes elements of records that are examples, by a declaration or by what they hold. Cloning shares the declaration.
///
/// Declared features come in the order of the declaration, as their [`FeatureSpec`] says; others in the record are passed over.
///
/// Inferred, all features come, by name: whole numbers as `i64` and floats as `f32` of shape `[values]`, one string as bytes,
/// another number of strings as a list of bytes, and a feature whose list is of no kind as null. Of a sequence each feature is a
/// list of steps, each of them so.
///
/// Fields of a sequence example stand beside those of its context.
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
/// The messages are those of TensorFlow's `example.proto` and `feature.proto`, what is declared is what `tf.io.parse_single_example` and
/// `tf.io.parse_single_sequence_example` take. Packed lists and others, entries in any order and more than one of a name (the last
/// counts) are read as protocol buffers want it.
#[derive(Clone, PartialEq)]
#[must_use = "it does nothing until it parses"]
pub struct ExampleParser(Arc<Form>);

#[derive(PartialEq)]
enum Form {
    Example(Features),
    Sequence { context: Features, sequences: Features },
}

impl ExampleParser {
    /// All features of a `tf.train.Example`, as they are.
    pub fn inferred() -> Self {
        Self(Arc::new(Form::Example(Features::All)))
    }

    /// These features of a `tf.train.Example`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there are none, two have one name, or a default does not fit its shape.
    pub fn new<N: Into<Name>>(features: impl IntoIterator<Item = (N, FeatureSpec)>) -> Result<Self> {
        let features = features.into_iter().map(|(name, spec)| (name.into(), spec)).collect();
        let features = Features::declared(features, false)?;
        if features.names().next().is_none() {
            return Err(Error::config("no features").help("leave the declaration out to have all of them"));
        }
        Ok(Self(Arc::new(Form::Example(features))))
    }

    /// All of a `tf.train.SequenceExample`, as it is.
    pub fn inferred_sequences() -> Self {
        Self(Arc::new(Form::Sequence { context: Features::All, sequences: Features::All }))
    }

    /// These features of a `tf.train.SequenceExample`: those of its context, and those that have a step for each point in time, where
    /// fixed shapes give arrays of shape `[time, …]` (of strings lists), and others lists of arrays.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) as [`new`](Self::new); also if a feature of a sequence has a default.
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

    /// The element that a record is. Strings of more than 8 bytes are views of the record.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the record is no such message, or a feature is not what it is declared to be, with its
    /// name, what was wanted and what was found.
    ///
    /// # Cost
    /// One pass over the record; numbers are copied, 8 bytes for each `i64` however short it is written.
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

/// The features in field `number` of a record.
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

/// As the identity of a source has it.
impl fmt::Display for ExampleParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Form::Example(features) => write!(f, "examples{features}"),
            Form::Sequence { context, sequences } => write!(f, "sequence_examples{context}{sequences}"),
        }
    }
}

impl fmt::Debug for ExampleParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExampleParser({self})")
    }
}
