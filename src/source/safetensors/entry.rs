//! The source of pipeline files.

use super::{Safetensors, SafetensorsOptions};
use crate::source::entries::prelude::*;
use crate::source::formats::safetensors::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(safetensors)).chooses("columns")];

arguments! {
    struct SafetensorsArgs(paths) {
        /// Files, folders, globs, ranges of shards (`train-{000..127}.safetensors`) or URLs of any of these; one or a list.
        paths: Given<Vec<PathBuf>>,
        /// A record for each row, along the first dimension that all tensors of a file share.
        rows: bool = false,
        /// The tensors to read, all of them by default.
        columns: Option<Vec<String>>,
        /// Read tensors of 8-bit floats as their bytes (`uint8`).
        float8_as_u8: bool = false,
    }
}

fn safetensors(args: SafetensorsArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = Safetensors::options().rows(args.rows).float8_as_u8(args.float8_as_u8);
    let options = args.columns.into_iter().fold(options, SafetensorsOptions::columns);
    by_number(at, || Ok(Source::new(options.open(&paths)?).boxed()))
}
