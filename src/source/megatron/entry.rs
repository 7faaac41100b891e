//! The source of pipeline files.

use super::{Megatron, MegatronSamples, MegatronSplit, MegatronUnit, index_of};
use crate::declare::values::Positive;
use crate::error::Error;
use crate::source::entries::prelude::*;
use crate::source::formats::megatron::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[
    SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(megatron)),
    SourceEntry::of(
        "megatron_samples",
        "Reads training samples of Megatron's indexed datasets in the order of Megatron-Core.\n\n\
         Element `i` is a dict of `tokens`: the ids of sample `i` of `GPTDataset`, or of `BlendedDataset` for several data sets.",
        &Of(megatron_samples),
    ),
];

words!(MegatronUnit { "sequence" => MegatronUnit::Sequence, "document" => MegatronUnit::Document });

arguments! {
    struct MegatronArgs(paths) {
        /// Paths of datasets. Each path is the `.idx` file, the `.bin` file, or their common prefix.
        paths: Given<Vec<PathBuf>>,
        /// Unit of a record: a `sequence`, or a `document`, which concatenates its sequences.
        by: MegatronUnit = "sequence",
    }
}

fn megatron(args: MegatronArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths_by(&args.paths, at, |path| vec![index_or_file(path)])?;
    by_number(at, || Ok(Source::new(Megatron::options().unit(args.by).open(&paths)?).boxed()))
}

words!(MegatronSplit { "train" => MegatronSplit::Train, "valid" => MegatronSplit::Valid, "test" => MegatronSplit::Test });

arguments! {
    struct MegatronSamplesArgs(prefixes) {
        /// Prefixes of data sets: paths without `.idx` and `.bin`, as in `data_path`.
        prefixes: Given<Vec<PathBuf>>,
        /// Number of tokens in a sample: `seq_length`.
        seq_len: Positive<usize>,
        /// Seed of the order, from 0 to 2^32 - 1.
        seed: u32 = 1234,
        /// Minimum number of samples: iterations times the global batch size. By default, every data set is read once.
        samples: Option<u64>,
        /// Weight of each data set. By default, the number of its samples.
        weights: Option<Vec<f64>>,
        /// Proportions of sequences for training, validation and tests. By default, all sequences are for training.
        split: Option<Vec<f64>>,
        /// Part of the sequences to read: `train`, `valid` or `test`.
        part: MegatronSplit = "train",
        /// Whether to add the next token to each sample, which then has `seq_len + 1` ids: `add_extra_token_to_sequence`.
        with_next: bool = true,
        /// Folder in which Megatron-Core keeps its orders, `data_cache_path`. An order of this data set is mapped, and the first sample is
        /// read at once. By default, orders are computed.
        cache: Option<PathBuf>,
    }
}

fn megatron_samples(args: MegatronSamplesArgs, at: &Site<'_>) -> Result<Chain> {
    let prefixes = paths_by(&args.prefixes, at, |path| vec![index_or_file(path)])?;
    let mut parts = [0.0; 3];
    let given = args.split.unwrap_or_else(|| vec![1.0]);
    if let Some(parts) = parts.get_mut(..given.len()) {
        parts.copy_from_slice(&given)
    } else {
        return Err(Error::config(format!("split has {} proportions, and at most 3 are possible", given.len())));
    }
    let mut options = MegatronSamples::options(args.seq_len.0).seed(args.seed).with_next(args.with_next);
    options = options.split(parts, args.part);
    if let Some(samples) = args.samples {
        options = options.samples(samples);
    }
    if let Some(weights) = args.weights {
        options = options.weights(weights);
    }
    if let Some(folder) = args.cache {
        options = options.cache(at.resolve(&folder.to_string_lossy()).into_path());
    }
    by_number(at, || Ok(options.open(&prefixes)?.boxed()))
}

/// Returns the index of a dataset of Megatron's that is named by what its files have in common; any other path as it is.
pub(in crate::source) fn index_or_file(file: Location) -> Location {
    if file.may_exist() { file } else { file.beside(index_of) }
}
