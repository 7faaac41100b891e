//! The source of pipeline files.

use super::{Mds, MdsOptions};
use crate::declare::values::Amount;
use crate::source::entries::prelude::*;
use crate::source::formats::mds::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(mds)).chooses("columns")];

arguments! {
    struct MdsArgs(paths) {
        /// Folders or their URLs; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// Decode JPEG and PNG to arrays (`uint8`, height × width × channels); else they are bytes.
        images: bool = true,
        /// Hold each shard against the hash that its index has of it.
        check_hashes: bool = false,
        /// Memory for decompressed shards that are kept.
        cache_bytes: Amount = "512MiB",
        /// The columns to read, all of them by default.
        columns: Option<Vec<String>>,
    }
}

fn mds(args: MdsArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options =
        Mds::options().images(args.images).check_hashes(args.check_hashes).cache_bytes(args.cache_bytes.into());
    let options = args.columns.into_iter().fold(options, MdsOptions::columns);
    by_number(at, || Ok(Source::new(options.open(&paths)?).boxed()))
}
