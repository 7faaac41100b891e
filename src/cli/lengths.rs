//! Lengths of documents, in tokens.

use std::cell::RefCell;
use std::path::PathBuf;

use crate::source::TokenLayout;
use crate::spec::Data;
use crate::text::Tokenizer;
use crate::{BoxIter, Element, Error, Executor, Load, Result, Value};

use crate::cli::progress::Counter;

/// Bytes of text per token if no tokenizer is given: about the average of GPT-2's vocabulary on English text.
const BYTES_PER_TOKEN: usize = 4;

/// Measured lengths of documents.
pub(crate) struct Lengths {
    pub(crate) column: String,
    pub(crate) unit: &'static str,
    /// Column of ids in a pipeline: `column`, or the column that `tokenise` makes.
    pub(crate) ids: String,
    /// Whether each document is a whole token file. Token files contain no ends of documents.
    pub(crate) are_files: bool,
    /// Lengths in the order of the documents.
    pub(crate) lengths: Vec<u32>,
}

/// Measures `column`, or the first column that has a length. Covers all documents, or the first `docs`.
pub(crate) fn measure(
    data: &[PathBuf],
    layout: TokenLayout,
    column: Option<&str>,
    tokenizer: Option<Tokenizer>,
    docs: Option<u64>,
) -> Result<Lengths> {
    let opened = Data::open_with(data, column, layout)?;
    let are_files = opened.format() == "tokens";
    let first = opened.stream().loader();
    // A single thread reads only the beginning, so that standard input can be read again from its first record.
    let first = first.executor(Executor::Inline).build()?.next().transpose()?;
    let Some(first) = first else { return Err(Error::data("there are no documents to analyse")) };
    let column = if let Some(name) = column { name.to_owned() } else { measurable(&first)? };
    let (unit, ids) = match (first.field(&column)?, &tokenizer) {
        (Value::Str(_), None) => ("tokens (estimated at 4 bytes each)", "tokens".to_owned()),
        (Value::Str(_), Some(_)) => ("tokens", "tokens".to_owned()),
        _ => ("tokens", column.clone()),
    };
    let name = column.clone();
    // Only this column is read.
    let lengths = Data::open_with(data, Some(&column), layout)?
        .try_map(move |element| length(&element, &name, tokenizer.as_ref()));
    Ok(Lengths { column, unit, ids, are_files, lengths: collect(lengths, docs)? })
}

/// Returns the first column that has a length in tokens.
fn measurable(element: &Element) -> Result<String> {
    let has_length = |value: &Value| match value {
        Value::Str(_) => true,
        Value::Array(array) => !array.shape().is_empty(),
        _ => false,
    };
    if let Some((name, _)) = element.iter().find(|(_, value)| has_length(value)) {
        Ok(name.to_owned())
    } else {
        let names: Vec<_> = element.iter().map(|(name, _)| name).collect();
        Err(Error::data(format!("no column of text or ids; there are {}", names.join(", "))))
    }
}

fn length(element: &Element, column: &str, tokenizer: Option<&Tokenizer>) -> Result<u32> {
    thread_local! {
        static IDS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }
    let length = match (element.field(column)?, tokenizer) {
        (Value::Str(text), Some(tokenizer)) => IDS.with_borrow_mut(|ids| {
            ids.clear();
            tokenizer.encode_into(text, ids).map(|()| ids.len())
        })?,
        (Value::Str(text), None) => text.len().div_ceil(BYTES_PER_TOKEN),
        (Value::Array(array), _) if !array.shape().is_empty() => array.shape()[0],
        (Value::Null, _) => 0,
        (other, _) => return Err(Error::data(format!("column `{column}` is {other:?}, expected text or ids"))),
    };
    u32::try_from(length).map_err(|_| Error::data(format!("a document of {length} tokens")))
}

fn collect(lengths: BoxIter<u32>, docs: Option<u64>) -> Result<Vec<u32>> {
    let mut loader = lengths.loader().executor(Executor::all_cores()).build()?;
    let mut progress = Counter::new("documents");
    let mut all = Vec::new();
    while docs.is_none_or(|most| (all.len() as u64) < most) {
        let Some(length) = loader.next() else { break };
        all.push(length?);
        progress.show(all.len() as u64);
    }
    progress.finish();
    Ok(all)
}
