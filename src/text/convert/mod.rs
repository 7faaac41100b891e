//! Other files of tokenizers, converted to the contents of a `tokenizer.json`: the ranks of tiktoken, and the models of
//! SentencePiece. The engines read one format, so every tokenizer is checked as a `tokenizer.json` is.

mod normaliser;
mod sentencepiece;
mod tiktoken;
mod unigram;

use std::borrow::Cow;

use serde_json::{Value, json};

use super::vocab::Vocabulary;
use crate::error::{Error, ErrorKind, Result};

pub(super) use normaliser::{Normalised, Normaliser};
pub use tiktoken::Ranks;
pub(super) use unigram::UnigramEngine;

/// A tokenizer as engines read it.
#[derive(Debug)]
pub(super) enum Converted<'a> {
    /// The contents of a `tokenizer.json`, and rules that change a text before the engine reads it.
    Json { bytes: Cow<'a, [u8]>, normaliser: Option<Normaliser> },
    /// A Unigram model, with the hash of its file.
    Unigram { engine: UnigramEngine, normaliser: Normaliser, hash: u128 },
}

/// Converts the contents of a tokenizer's file. A `tokenizer.json` stays as it is.
///
/// # Errors
/// [`ErrorKind::Data`] if the file is neither JSON, nor ranks, nor a model; [`ErrorKind::Unsupported`] for ranks whose split
/// expression is not known, and for models with a rule that the engines do not have.
pub(super) fn read(bytes: &[u8]) -> Result<Converted<'_>> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let bytes = match first {
        Some(b'{') => Cow::Borrowed(bytes),
        _ if sentencepiece::is_model(bytes) => return sentencepiece::read(bytes),
        _ if tiktoken::is_ranks(bytes) => Cow::Owned(Ranks::parse(bytes)?.known()?.to_string().into_bytes()),
        _ => return Err(Error::data("not a tokenizer.json, a .tiktoken file or a SentencePiece model")),
    };
    Ok(Converted::Json { bytes, normaliser: None })
}

impl UnigramEngine {
    /// Returns the vocabulary.
    pub(super) fn vocabulary(&self) -> Result<Vocabulary> {
        let pieces = self.pieces().iter().map(|piece| json!([piece.text, piece.score]));
        Vocabulary::read(&json!({"model": {"vocab": pieces.collect::<Vec<_>>()}}))
    }
}

/// Returns an entry of `added_tokens` that matches the token alone, without the spaces around it.
fn added_token(id: u32, content: &str, special: bool) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
           "special": special})
}

/// Returns an error for a rule that the engines do not have.
fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message.into())
        .help("use the tokenizer.json of a model with this tokenizer, if there is one")
}

#[cfg(test)]
mod tests;
