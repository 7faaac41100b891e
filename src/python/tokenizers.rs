//! Conversion of Python's tokenizers, and hard texts with ids for comparisons.

use pyo3::prelude::*;

use super::error::OrRaise;
use crate::Result;
use crate::text::{Ranks, Tokenizer, TokenizerOptions};

/// Returns the `tokenizer.json` that the contents of a tokenizer's file are converted to.
#[pyfunction]
pub(crate) fn _tokenizer_json(py: Python<'_>, contents: &[u8]) -> PyResult<String> {
    let json = Tokenizer::to_json(contents).or_raise(py)?;
    Ok(String::from_utf8(json)?)
}

/// Returns the `tokenizer.json` of an encoding of tiktoken.
#[pyfunction]
pub(crate) fn _ranks_json(
    py: Python<'_>,
    ranks: Vec<(Vec<u8>, u32)>,
    split: &str,
    special: Vec<(String, u32)>,
) -> PyResult<String> {
    py.detach(|| Ranks::new(ranks)?.tokenizer_json(split, &special)).or_raise(py)
}

/// Returns hard texts, each with its ids by the tokenizer with these contents.
#[pyfunction]
pub(crate) fn _hard_texts(py: Python<'_>, contents: &[u8], special_in_text: bool) -> PyResult<Vec<(String, Vec<u32>)>> {
    let encode = || {
        let options = TokenizerOptions::default().special_in_text(special_in_text);
        let tokenizer = Tokenizer::from_bytes_with("tokenizer", contents, options)?;
        let encoded = |text: String| tokenizer.encode(&text).map(|ids| (text, ids));
        tokenizer.hard_texts().into_iter().map(encoded).collect::<Result<Vec<_>>>()
    };
    py.detach(encode).or_raise(py)
}
