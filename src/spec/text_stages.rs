//! `tokenise` in a pipeline file.

use std::path::PathBuf;

use super::arguments::{Kind, arguments, words};
use super::build::{Behind, Site};
use super::chain::Chain;
use super::entry::StageEntry;
use super::node::{Node, Tree};
use super::values::{Decode, Given};
use crate::dataset::{BoxIter, IterDataset, MapDataset};
use crate::element::Element;
use crate::error::Result;
use crate::text::{
    EngineChoice, Overflow, TextEncoder, TokenName, Tokenise, TokeniseIter, TokeniseMap, TokeniseOptions, Tokenizer,
    TokenizerOptions, where_to_get,
};

pub(super) const STAGES: &[StageEntry] = &[StageEntry::chain(
    "tokenise",
    "Turns columns of text into columns of token ids, `int32` of one dimension, by a `tokenizer.json`.\n\n\
     One `column` becomes `tokens`; several `columns` become `<column>_tokens` each. The ids take the place of their \
     text, unless `keep_text` is true. `overflow: chunk` needs a stream.\n\n\
     ConfigError: A column or a token does not exist, or the file is no tokenizer.\n\n\
     IoError: The tokenizer cannot be read.",
    &Behind(tokenise),
)
.new_columns()];

words!(Overflow { "truncate" => Overflow::Truncate, "chunk" => Overflow::Chunk, "error" => Overflow::Error });
words!(EngineChoice { "auto" => EngineChoice::Auto, "fast" => EngineChoice::Fast, "compat" => EngineChoice::Compat });

arguments! {
    struct TokeniseArgs {
        /// What becomes of texts that are longer than `max_len`: the beginning is kept, they are cut into several elements, or it is
        /// an error.
        overflow: Overflow = "truncate",
        /// The column of text, which becomes `tokens`. One of `column` and `columns` is needed.
        column: Option<Given<String>>,
        /// Several columns of text, which become `<column>_tokens` each.
        columns: Option<Given<Vec<String>>>,
        /// Other names for the columns of ids, in the order of the columns.
        into: Option<Vec<String>>,
        /// A token before each text, by its name in the vocabulary or its id.
        prepend_bos: Option<TokenName>,
        /// A token after each text, by its name or its id.
        append_eos: Option<TokenName>,
        /// Tokens per text at most, those two included; no limit by default.
        max_len: Option<usize>,
        /// Whether the text stays in the element beside its ids, which else take its place.
        keep_text: bool = false,
        /// The path of the `tokenizer.json`.
        tokenizer: Given<PathBuf>,
        /// Whether a special token that is written out in a text becomes that token. By default it is text like any other.
        special_in_text: bool = false,
        /// The fast engine, the compatible engine, or the fast engine if both agree.
        engine: EngineChoice = "auto",
    }
}

fn tokenise(chain: Chain, args: TokeniseArgs, at: &Site<'_>) -> Result<Chain> {
    let overflow = args.overflow;
    let Some(op) = operation(args, at)? else {
        return Ok(if overflow == Overflow::Chunk { in_chunks(chain) } else { chain });
    };
    if overflow == Overflow::Chunk {
        // A text becomes any number of elements, which have no place in a dataset of random access: the stream begins.
        return Ok(Chain::Iter(match chain.into_stream() {
            Chain::Map(ds) => ds.to_iter().tokenise_chunks(op).boxed(),
            Chain::Stream(ds, border) => border.open(ds).tokenise_chunks(op).boxed(),
            Chain::Lanes(parts, count) => {
                let chunks = |ds: BoxIter<Element>| {
                    TokeniseIter::tokenise_chunks(ds, op.clone()).flat_map(|pieces| pieces).boxed()
                };
                return Ok(Chain::Lanes(parts.into_iter().map(chunks).collect(), count));
            }
            Chain::Iter(ds) => TokeniseIter::tokenise_chunks(ds, op).flat_map(|pieces| pieces).boxed(),
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

/// Makes the tokenising function, or none during a check.
fn operation(args: TokeniseArgs, at: &Site<'_>) -> Result<Option<Tokenise>> {
    let columns = match (&args.column, &args.columns) {
        (Some(column), None) => vec![at.column(column)?],
        (None, Some(columns)) => at.columns_in(columns)?,
        (Some(_), Some(_)) => return Err(at.error("`column` and `columns` exclude each other")),
        (None, None) => return Err(at.error("needs `column`")),
    };
    let into = args.into.unwrap_or_default();
    if into.len() > columns.len() {
        return Err(at.error(format!("`into` names {} columns of ids for {} of text", into.len(), columns.len())));
    }
    let name = args.tokenizer.get()?;
    let path = at.existing(&args.tokenizer).map_err(|error| match where_to_get(&name) {
        Some(help) => args.tokenizer.error(format!("no file {}", name.display())).help(help),
        None => error,
    })?;
    if at.is_draft {
        return Ok(None);
    }
    let how = TokenizerOptions::default().special_in_text(args.special_in_text).engine(args.engine);
    let mut options = TokeniseOptions::default().overflow(args.overflow);
    (options.bos, options.eos, options.max_len) = (args.prepend_bos, args.append_eos, args.max_len);
    let encoder = TextEncoder::new(Tokenizer::from_file_with(path, how)?, &options)?;
    let op = match columns.as_slice() {
        [one] => Tokenise::column(encoder, one),
        many => Tokenise::columns(encoder, many),
    };
    Ok(Some(op.named(into).keep_text(args.keep_text)))
}

/// A name of the vocabulary, or an id.
impl Decode for TokenName {
    const KIND: Kind = Kind::Either(&[Kind::Text, u32::KIND]);

    fn decode(node: &Node) -> Result<Self> {
        match node.value {
            Tree::Int(_) => u32::decode(node).map(Self::Id),
            _ => String::decode(node).map(Self::Text),
        }
    }
}
