//! The source of pipeline files.

use super::{Safetensors, SafetensorsOptions};
use crate::source::entries::prelude::*;
use crate::source::formats::safetensors::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(safetensors)).chooses("columns")];

arguments! {
    struct SafetensorsArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.safetensors`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Whether each row is a record, along the first dimension that all tensors of a file share. If false, each file is a record.
        rows: bool = false,
        /// Tensors to read. By default, all tensors.
        columns: Option<Vec<String>>,
        /// Whether to read tensors of 8-bit floats as bytes (`uint8`).
        float8_as_u8: bool = false,
    }
}

fn safetensors(args: SafetensorsArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = Safetensors::options().rows(args.rows).float8_as_u8(args.float8_as_u8);
    let options = args.columns.into_iter().fold(options, SafetensorsOptions::columns);
    by_number(at, || Ok(Source::new(options.open(&paths)?).boxed()))
}
