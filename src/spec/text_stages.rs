//! `tokenise` in a pipeline file.

use std::path::PathBuf;

use super::chain::{Chain, Context};
use super::decode::{Decode, Fields};
use super::entry::StageEntry;
use super::node::{Node, Tree};
use crate::dataset::{BoxIter, IterDataset, MapDataset};
use crate::element::Element;
use crate::error::Result;
use crate::text::{
    EngineChoice, Overflow, TextEncoder, TokenName, Tokenise, TokeniseIter, TokeniseMap, TokeniseOptions, Tokenizer,
    TokenizerOptions,
};

pub(super) const STAGES: &[StageEntry] = &[StageEntry::chain("tokenise", None, tokenise).new_columns()];

/// `tokenise: {tokenizer: gpt2.tokenizer.json, column: text, append_eos: "<|endoftext|>"}`.
fn tokenise(chain: Chain, fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let overflow = overflow(fields)?;
    let Some(op) = operation(fields, context, overflow)? else {
        return Ok(if overflow == Overflow::Chunk { in_chunks(chain) } else { chain });
    };
    if overflow == Overflow::Chunk {
        // A text becomes any number of elements, which have no place in a dataset of random access: the stream begins.
        return Ok(Chain::Iter(match chain.into_stream() {
            Chain::Map(ds) => ds.to_iter().tokenise_chunks(op).boxed(),
            Chain::Stream(ds, border) => border.open(ds).tokenise_chunks(op).boxed(),
            Chain::Lanes(parts, count) => {
                let chunks = |ds: BoxIter<Element>| TokeniseIter::tokenise_chunks(ds, op.clone()).flat_map(Ok).boxed();
                return Ok(Chain::Lanes(parts.into_iter().map(chunks).collect(), count));
            }
            Chain::Iter(ds) => TokeniseIter::tokenise_chunks(ds, op).flat_map(Ok).boxed(),
        }));
    }
    Ok(match chain {
        Chain::Map(ds) => Chain::Map(TokeniseMap::tokenise(ds, op).boxed()),
        Chain::Stream(ds, border) => Chain::Stream(TokeniseMap::tokenise(ds, op).boxed(), border),
        Chain::Lanes(parts, count) => {
            let tokenised = |ds: BoxIter<Element>| TokeniseIter::tokenise(ds, op.clone()).boxed();
            Chain::Lanes(parts.into_iter().map(tokenised).collect(), count)
        }
        Chain::Iter(ds) => Chain::Iter(TokeniseIter::tokenise(ds, op).boxed()),
    })
}

/// The elements where each may become several, as far as that shows before any is made.
fn in_chunks(chain: Chain) -> Chain {
    match chain {
        lanes @ Chain::Lanes(..) => lanes,
        chain => Chain::Iter(chain.into_iter()),
    }
}

/// What tokenises; nothing where a pipeline is only checked.
fn operation(fields: &Fields<'_>, context: &Context, overflow: Overflow) -> Result<Option<Tokenise>> {
    let columns = columns(fields, context)?;
    let into: Vec<String> = fields.or("into", Vec::new())?;
    if into.len() > columns.len() {
        return Err(fields.error(format!("`into` names {} columns of ids for {} of text", into.len(), columns.len())));
    }
    let (options, keep_text) = (options(fields, overflow)?, fields.or("keep_text", false)?);
    let (path, how) = tokenizer(fields, context)?;
    if context.is_draft {
        return Ok(None);
    }
    let encoder = TextEncoder::new(Tokenizer::from_file_with(path, how)?, &options)?;
    let op = match columns.as_slice() {
        [one] => Tokenise::column(encoder, one),
        many => Tokenise::columns(encoder, many),
    };
    Ok(Some(op.named(into).keep_text(keep_text)))
}

/// `column: text`, or `columns: [question, answer]`.
fn columns(fields: &Fields<'_>, context: &Context) -> Result<Vec<String>> {
    match (context.column(fields, "column")?, fields.node("columns")) {
        (Some(column), None) => Ok(vec![column]),
        (None, Some(node)) => context.columns_in(node),
        (Some(_), Some(_)) => Err(fields.error("`column` and `columns` exclude each other")),
        (None, None) => Err(fields.error("needs `column`")),
    }
}

/// The file of a tokenizer, and how it is used.
fn tokenizer(fields: &Fields<'_>, context: &Context) -> Result<(PathBuf, TokenizerOptions)> {
    let path = context.existing(fields.required_node("tokenizer")?)?;
    let mut options = TokenizerOptions::default().special_in_text(fields.or("special_in_text", false)?);
    if let Some(engine) = fields.choice("engine", &["auto", "fast", "compat"])? {
        options = options.engine([EngineChoice::Auto, EngineChoice::Fast, EngineChoice::Compat][engine]);
    }
    Ok((path, options))
}

fn options(fields: &Fields<'_>, overflow: Overflow) -> Result<TokeniseOptions> {
    let mut options = TokeniseOptions::default().overflow(overflow);
    options.bos = fields.optional("prepend_bos")?;
    options.eos = fields.optional("append_eos")?;
    options.max_len = fields.optional("max_len")?;
    Ok(options)
}

fn overflow(fields: &Fields<'_>) -> Result<Overflow> {
    let choice = fields.choice("overflow", &["truncate", "chunk", "error"])?;
    Ok(choice.map_or_else(Overflow::default, |at| [Overflow::Truncate, Overflow::Chunk, Overflow::Error][at]))
}

/// A name of the vocabulary, or an id.
impl Decode for TokenName {
    fn decode(node: &Node) -> Result<Self> {
        match node.value {
            Tree::Int(_) => u32::decode(node).map(Self::Id),
            _ => String::decode(node).map(Self::Text),
        }
    }
}
