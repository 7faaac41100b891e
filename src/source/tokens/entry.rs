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
        "Reads consecutive crops from files of token ids.\n\n\
     Elements are dicts of `tokens`.",
        &Of(crops),
    ),
    SourceEntry::of_files(
        "random_crops",
        "Reads crops at random positions from files of token ids.\n\n\
     Elements are dicts of `tokens`.",
        &Of(random_crops),
    ),
];

arguments! {
    /// Files of token ids.
    struct TokensArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.bin`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Layout of the token ids: `detect`, `llm_c`, `u16` or `u32`. `detect` reads files that state the type of their ids, such as files
        /// with llm.c's header. `llm_c` requires that header. `u16` and `u32` also read bare little-endian ids of that type.
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
        /// Number of tokens in a crop. The remaining tokens at the end of a file are dropped.
        seq_len: Positive<usize>,
        /// Whether to add the token after each crop, which then has `seq_len + 1` ids. Adjacent crops share this token.
        with_next: bool = false,
    }
}

fn crops(args: CropsArgs, at: &Site<'_>) -> Result<Chain> {
    args.tokens.source(at, |tokens| Ok(tokens.crops(args.seq_len.0).with_next(args.with_next).boxed()))
}

arguments! {
    struct RandomCropsArgs(paths) with TokensArgs as tokens {
        /// Number of tokens in a crop.
        seq_len: Positive<usize>,
        /// Seed for the positions of crops, from 0 to 2^32 - 1.
        seed: u32,
        /// Whether to add the token after each crop, which then has `seq_len + 1` ids.
        with_next: bool = false,
        /// Number of crops in an epoch. By default, the dataset is infinite.
        epoch: Option<u64>,
    }
}

fn random_crops(args: RandomCropsArgs, at: &Site<'_>) -> Result<Chain> {
    args.tokens.source(at, |tokens| {
        let crops = tokens.random_crops(args.seq_len.0, args.seed).with_next(args.with_next);
        Ok(if let Some(count) = args.epoch { crops.epoch(count).boxed() } else { crops.boxed() })
    })
}
