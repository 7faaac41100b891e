//! `tokenise` in a pipeline file.

use std::borrow::Cow;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::tokenizer::where_to_get;
use super::{
    EngineChoice, Overflow, TextEncoder, TokenName, Tokenise, TokeniseIter, TokeniseMap, TokeniseOptions, Tokenizer,
    TokenizerOptions,
};
use crate::dataset::entry::chain::{Border, Chain};
use crate::dataset::entry::prelude::*;
use crate::declare::arguments::Kind;
use crate::declare::node::Tree;
use crate::declare::values::{TokenizerFile, decode_as};

pub(crate) const STAGES: &[StageEntry] = &[StageEntry::chain(
    "tokenise",
    "Encodes columns of text as columns of token ids (`int32`, one-dimensional) with a tokenizer.\n\n\
     A single `column` becomes `tokens`; each of several `columns` becomes `<column>_tokens`. The ids replace their \
     text, unless `keep_text` is true. `overflow: chunk` needs a stream.\n\n\
     ConfigError: A column or a token does not exist, or the file is not a tokenizer.\n\n\
     IoError: The tokenizer cannot be read.",
    &Behind(tokenise),
)
.new_columns()];

words!(Overflow { "truncate" => Overflow::Truncate, "chunk" => Overflow::Chunk, "error" => Overflow::Error });
words!(EngineChoice { "auto" => EngineChoice::Auto, "fast" => EngineChoice::Fast, "compat" => EngineChoice::Compat });

arguments! {
    struct TokeniseArgs {
        /// Policy for texts longer than `max_len`: `truncate` keeps the beginning, `chunk` splits the text into several elements, `error`
        /// rejects the text.
        overflow: Overflow = "truncate",
        /// Text column, which becomes `tokens`. Either `column` or `columns` is required.
        column: Option<Given<String>>,
        /// Text columns, each of which becomes `<column>_tokens`.
        columns: Option<Given<Vec<String>>>,
        /// Names for the columns of ids, in the order of the text columns.
        into: Option<Vec<String>>,
        /// Token to add before each text, by name or id.
        prepend_bos: Option<TokenName>,
        /// Token to add after each text, by name or id.
        append_eos: Option<TokenName>,
        /// Maximum number of tokens per text, including added tokens. By default, no limit.
        max_len: Option<usize>,
        /// Whether to keep the text columns. If false, the ids replace the text.
        keep_text: bool = false,
        /// Path of the tokenizer: a `tokenizer.json`, a `.tiktoken` file of a known encoding, or a SentencePiece model. Also the contents of
        /// a `tokenizer.json`, or a `data:;base64,` URL.
        tokenizer: Given<TokenizerFile>,
        /// Whether a special token that is written out in a text becomes that token. If false, it is encoded as plain text.
        special_in_text: bool = false,
        /// Tokenizer engine: `fast`, `compat`, or `auto`, which uses the fast engine if both engines agree.
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
        return Ok(Chain::Iter(match chain.into_stream(Border::default()) {
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
        Chain::Map(ds) => Chain::Map(TokeniseMap::tokenise_with(ds, op).boxed()),
        Chain::Stream(ds, border) => Chain::Stream(TokeniseMap::tokenise_with(ds, op).boxed(), border),
        Chain::Lanes(parts, count) => {
            let tokenised = |ds: BoxIter<Element>| TokeniseIter::tokenise_with(ds, op.clone()).boxed();
            Chain::Lanes(parts.into_iter().map(tokenised).collect(), count)
        }
        Chain::Iter(ds) => Chain::Iter(TokeniseIter::tokenise_with(ds, op).boxed()),
    })
}

/// The stage that may turn an element into several, if the arguments show it.
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
        return Err(at.error(format!(
            "`into` names {} columns of ids, but there are {} columns of text",
            into.len(),
            columns.len()
        )));
    }
    let TokenizerFile(name) = args.tokenizer.get()?;
    let contents = contents(&name).map_err(|message| args.tokenizer.error(message))?;
    let how = TokenizerOptions::default().special_in_text(args.special_in_text).engine(args.engine);
    let tokenizer = match contents {
        Some(_) if at.is_draft => return Ok(None),
        Some(bytes) => Tokenizer::from_bytes_with("tokenizer", &bytes, how)?,
        None => {
            let path = at.existing(&args.tokenizer).map_err(|error| match where_to_get(Path::new(&name)) {
                Some(help) => args.tokenizer.error(format!("no file {name}")).help(help),
                None => error,
            })?;
            if at.is_draft {
                return Ok(None);
            }
            Tokenizer::from_file_with(path, how)?
        }
    };
    let mut options = TokeniseOptions::default().overflow(args.overflow);
    (options.bos, options.eos, options.max_len) = (args.prepend_bos, args.append_eos, args.max_len);
    let encoder = TextEncoder::new(tokenizer, &options)?;
    let op = match columns.as_slice() {
        [one] => Tokenise::column(encoder, one),
        many => Tokenise::columns(encoder, many),
    };
    Ok(Some(op.named(into).keep_text(args.keep_text)))
}

/// Returns the contents that stand in place of a path.
fn contents(text: &str) -> Result<Option<Cow<'_, [u8]>>, String> {
    match text.strip_prefix("data:;base64,") {
        Some(encoded) => match STANDARD.decode(encoded) {
            Ok(bytes) => Ok(Some(Cow::Owned(bytes))),
            Err(error) => Err(format!("the data: URL is not Base64: {error}")),
        },
        None => Ok(text.starts_with('{').then_some(Cow::Borrowed(text.as_bytes()))),
    }
}

// A name of the vocabulary, or an id.
decode_as!(TokenName, Kind::Either(&[Kind::Text, u32::KIND]), |node| {
    match node.value {
        Tree::Int(_) => u32::decode(node).map(Self::Id),
        _ => String::decode(node).map(Self::Text),
    }
});
