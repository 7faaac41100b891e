//! The source of pipeline files.

use super::{Npz, NpzRows};
use crate::declare::arguments::{About, Arguments};
use crate::declare::decode::Fields;
use crate::declare::values::Amount;
use crate::source::entries::prelude::*;
use crate::source::formats::npz::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] = &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(npz))];

arguments! {
    struct ArchiveArgs {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.npz`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Maximum size of the arrays of an archive after decompression. By default, 64 times the file size, but at least 256 MiB.
        max_bytes: Option<Amount>,
        /// Whether each row is a record, along the first dimension that all arrays of an archive share. If false, each archive is a record.
        rows: bool = false,
    }
}

arguments! {
    struct RowArgs(paths) with ArchiveArgs {
        /// Memory for the cache of decompressed archives; only with `rows: true`.
        cache_bytes: Amount = "256MiB",
    }
}

/// Arguments of archives, and of their rows if rows are read. Other arrays refuse them.
struct NpzArgs {
    archives: ArchiveArgs,
    rows: Option<RowArgs>,
}

impl Arguments for NpzArgs {
    const ABOUT: About = RowArgs::ABOUT;

    fn read(fields: &Fields<'_>) -> Result<Self> {
        let archives = ArchiveArgs::read(fields)?;
        let rows = archives.rows.then(|| RowArgs::read(fields)).transpose()?;
        Ok(Self { archives, rows })
    }
}

fn npz(args: NpzArgs, at: &Site<'_>) -> Result<Chain> {
    let files = files_of("npz", &args.archives.paths, at)?;
    let max_bytes = args.archives.max_bytes.map(u64::from);
    by_number(at, || match args.rows {
        Some(RowArgs { cache_bytes }) => rows(&files, max_bytes, cache_bytes.into()),
        None => archives(&files, max_bytes),
    })
}

/// Makes a record for each row.
fn rows(files: &[Location], max_bytes: Option<u64>, cache_bytes: usize) -> Result<BoxMap<Element>> {
    let source = NpzRows::open(files)?.cache_bytes(cache_bytes);
    Ok(Source::new(max_bytes.into_iter().fold(source, NpzRows::max_bytes)).boxed())
}

/// Makes a record for each archive.
fn archives(files: &[Location], max_bytes: Option<u64>) -> Result<BoxMap<Element>> {
    let open = |path| Ok(max_bytes.into_iter().fold(Npz::open(path)?, Npz::max_bytes));
    let archives = files.iter().map(open).collect::<Result<Vec<_>>>()?;
    let elements = archives.iter().map(Npz::element).collect::<Result<_>>()?;
    let identity = archives.iter().map(|npz| npz.identity()).collect();
    Ok(Whole { name: "npz", elements, identity }.dataset())
}
