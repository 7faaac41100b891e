//! The source of pipeline files.

use super::{Megatron, MegatronUnit, index_of};
use crate::source::entries::prelude::*;
use crate::source::formats::megatron::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(megatron))];

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

/// Returns the index of a dataset of Megatron's that is named by what its files have in common; any other path as it is.
pub(in crate::source) fn index_or_file(file: Location) -> Location {
    if file.may_exist() { file } else { file.beside(index_of) }
}
