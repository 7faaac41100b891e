//! The sources of pipeline files.

use super::{TokenLayout, Tokens};
use crate::declare::values::Positive;
use crate::element::Array;
use crate::source::entries::prelude::*;
use crate::source::formats::tokens::FACTS;
use crate::source::megatron::entry::index_or_file;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[
    SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(tokens)),
    SourceEntry::of_files(
        "crops",
        "Reads files of token ids, one crop after the other.\n\n\
     Elements are dicts of `tokens`.",
        &Of(crops),
    ),
    SourceEntry::of_files(
        "random_crops",
        "Reads files of token ids, crops that start anywhere.\n\n\
     Elements are dicts of `tokens`.",
        &Of(random_crops),
    ),
];

arguments! {
    /// Files of token ids.
    struct TokensArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.bin`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Layout of the ids: as written by llm.c, or bare `u16` or `u32`, little-endian; recognised by default.
        layout: TokenLayout = "detect",
    }
}

impl Decode for TokenLayout {
    const KIND: Kind = Kind::Words(&{
        let [a, b, c, d] = Self::NAMES;
        [a.0, b.0, c.0, d.0]
    });

    fn decode(node: &Node) -> Result<Self> {
        Ok(Self::NAMES[word(node, &Self::NAMES.map(|(name, _)| name))?].1)
    }
}

impl TokensArgs {
    /// Opens the files of ids and makes a dataset of them.
    fn source(&self, at: &Site<'_>, dataset: impl FnOnce(Tokens) -> Result<BoxMap<Element>>) -> Result<Chain> {
        let paths = paths_by(&self.paths, at, |path| vec![index_or_file(path)])?;
        by_number(at, || dataset(Tokens::open(&paths, self.layout)?))
    }
}

/// Makes a record for each file.
fn tokens(args: TokensArgs, at: &Site<'_>) -> Result<Chain> {
    args.source(at, |tokens| {
        let element = |ids: Array| Element::with_capacity(1).with("tokens", ids);
        let elements = tokens.views()?.into_iter().map(element).collect();
        Ok(Whole { name: "tokens", elements, identity: format!("{tokens:?}") }.dataset())
    })
}

arguments! {
    struct CropsArgs(paths) with TokensArgs as tokens {
        /// Tokens in a crop; the rest at the end of a file is left out.
        seq_len: Positive<usize>,
        /// Add the token after each crop: `seq_len + 1` ids, of which neighbours share the last.
        with_next: bool = false,
    }
}

fn crops(args: CropsArgs, at: &Site<'_>) -> Result<Chain> {
    args.tokens.source(at, |tokens| Ok(tokens.crops(args.seq_len.0).with_next(args.with_next).boxed()))
}

arguments! {
    struct RandomCropsArgs(paths) with TokensArgs as tokens {
        /// Tokens in a crop.
        seq_len: Positive<usize>,
        /// The seed of their starts, from 0 to 2^32 - 1.
        seed: u32,
        /// Add the token after each crop: `seq_len + 1` ids.
        with_next: bool = false,
        /// How many crops an epoch has; without it there is no end.
        epoch: Option<u64>,
    }
}

fn random_crops(args: RandomCropsArgs, at: &Site<'_>) -> Result<Chain> {
    args.tokens.source(at, |tokens| {
        let crops = tokens.random_crops(args.seq_len.0, args.seed).with_next(args.with_next);
        Ok(match args.epoch {
            Some(count) => crops.epoch(count).boxed(),
            None => crops.boxed(),
        })
    })
}
