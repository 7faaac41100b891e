//! Parser of the messages in `tensorflow/core/example/{example,feature}.proto`, without copies.
//!
//! The messages are lists, and maps from names to messages: `Example { Features features = 1 }`,
//! `SequenceExample { Features context = 1; FeatureLists feature_lists = 2 }`, `Features { map<string, Feature> = 1 }`,
//! `FeatureLists { map<string, FeatureList> = 1 }`, `FeatureList { repeated Feature = 1 }`, and a `Feature` that holds
//! `BytesList = 1`, `FloatList = 2` or `Int64List = 3`. They do not nest further.

use std::borrow::Cow;

use crate::varint::{Damaged, Field, Fields};

/// Message, copied only if it came in several pieces, which merge by concatenation.
pub(super) type Message<'a> = Cow<'a, [u8]>;

/// Kind of the values of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bytes,
    Float,
    Int64,
}

impl Kind {
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Bytes => 1,
            Self::Float => 2,
            Self::Int64 => 3,
        }
    }

    fn of(number: u64) -> Option<Self> {
        [Self::Bytes, Self::Float, Self::Int64].into_iter().find(|kind| kind.number() == number)
    }

    /// Returns the name of the kind for messages.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Float => "float32",
            Self::Int64 => "int64",
        }
    }
}

/// Feature: the kind of its list, and the list.
pub(super) type Feature<'a> = (Kind, Message<'a>);

/// Appends a piece to a message.
fn merge<'a>(message: &mut Option<Message<'a>>, piece: &'a [u8]) {
    match message {
        Some(before) => before.to_mut().extend_from_slice(piece),
        None => *message = Some(Cow::Borrowed(piece)),
    }
}

/// Returns field `number` of a message, which is a message too.
pub(super) fn part(message: &[u8], number: u64) -> Result<Option<Message<'_>>, Damaged> {
    let mut found = None;
    for field in Fields::of(message) {
        match field? {
            (at, Field::Bytes(piece), _) if at == number => merge(&mut found, piece),
            (at, ..) if at == number => return Err(Damaged),
            _ => {}
        }
    }
    Ok(found)
}

/// Returns every entry of a map: its name and its message. `map` holds them in field 1; the last entry of a name
/// counts.
pub(super) fn entries(map: &[u8]) -> impl Iterator<Item = Result<(&[u8], Message<'_>), Damaged>> {
    repeated(map).map(|entry| {
        let (mut name, mut value) = (&[][..], None);
        for field in Fields::of(entry?) {
            match field? {
                (1, Field::Bytes(bytes), _) => name = bytes,
                (2, Field::Bytes(piece), _) => merge(&mut value, piece),
                (1 | 2, ..) => return Err(Damaged),
                _ => {}
            }
        }
        Ok((name, value.unwrap_or_default()))
    })
}

/// Returns every message of field 1.
pub(super) fn repeated(message: &[u8]) -> impl Iterator<Item = Result<&[u8], Damaged>> {
    Fields::of(message).filter_map(|field| match field {
        Ok((1, Field::Bytes(bytes), _)) => Some(Ok(bytes)),
        Ok((1, ..)) | Err(Damaged) => Some(Err(Damaged)),
        Ok(_) => None,
    })
}

/// Returns the list of a feature, if it has a list. If it has lists of several kinds, the last list counts.
pub(super) fn list(feature: &[u8]) -> Result<Option<Feature<'_>>, Damaged> {
    let mut found: Option<Feature<'_>> = None;
    for field in Fields::of(feature) {
        let (number, field, _) = field?;
        let Some(kind) = Kind::of(number) else { continue };
        let Field::Bytes(piece) = field else { return Err(Damaged) };
        match &mut found {
            Some((before, list)) if *before == kind => list.to_mut().extend_from_slice(piece),
            found => *found = Some((kind, Cow::Borrowed(piece))),
        }
    }
    Ok(found)
}
