//! CSV, TSV and the like.

use super::facts::Facts;
use super::probe::{Probe, is_text};
use crate::source::delimited::Dialect;

pub(in crate::source) const FACTS: Facts = Facts {
    is_indexed: true,
    guess: Some(Probe::has_fields),
    could_be: Probe::is_plain,
    ..Facts::of(
        "csv",
        "Reads the records of CSV files. Compressed files (`.gz`, `.zst`, `.lz4`) are read as a stream.\n\n\
         Elements are dicts of numbers and text, with an entry for each column.",
        &[".csv", ".tsv"],
    )
};

pub(in crate::source) const COMPRESSED: Facts = Facts {
    guess: Some(|probe| {
        let text = probe.inflated();
        is_text(&text) && Dialect::guess(&text, true, 2).is_some()
    }),
    ..Facts::compressed("csv_stream", "csv", &[".csv.gz", ".csv.zst", ".csv.lz4", ".tsv.gz", ".tsv.zst", ".tsv.lz4"])
};
