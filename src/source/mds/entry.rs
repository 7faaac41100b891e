//! The source of pipeline files.

use super::{Mds, MdsOptions};
use crate::declare::values::Amount;
use crate::source::entries::prelude::*;
use crate::source::formats::mds::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(mds)).chooses("columns")];

arguments! {
    struct MdsArgs(paths) {
        /// Paths or URLs of MDS folders.
        paths: Given<Vec<PathBuf>>,
        /// Whether to decode JPEG and PNG images to arrays (`uint8`, height × width × channels). If false, images are bytes.
        images: bool = true,
        /// Whether to verify each shard against its hashes in `index.json`.
        check_hashes: bool = false,
        /// Memory for the cache of decompressed shards.
        cache_bytes: Amount = "512MiB",
        /// Columns to read. By default, all columns.
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
