//! JSON Lines.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(in crate::source) const FACTS: Facts = Facts {
    is_indexed: true,
    sign: Some((Turn::Any, |probe| begins_json(probe.head()))),
    could_be: Probe::is_plain,
    ..Facts::of(
        "jsonl",
        "Reads the records of JSON Lines files. Compressed files (`.gz`, `.zst`, `.lz4`) are read as a stream.\n\n\
         Elements are dicts of arrays, numbers, text and lists.",
        &[".jsonl", ".ndjson", ".json"],
    )
};

pub(in crate::source) const COMPRESSED: Facts = Facts {
    sign: Some((Turn::Packed, |probe| probe.unpacks_to(begins_json))),
    ..Facts::compressed(
        "jsonl_stream",
        "jsonl",
        &[
            ".jsonl.gz",
            ".jsonl.zst",
            ".jsonl.lz4",
            ".ndjson.gz",
            ".ndjson.zst",
            ".ndjson.lz4",
            ".json.gz",
            ".json.zst",
            ".json.lz4",
        ],
    )
};

/// Returns true if the first line is a JSON object, or the start of a JSON object that continues after `head`.
fn begins_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if !text.starts_with(b"{") {
        return false;
    }
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or(text);
    match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
        Ok(_) => true,
        // The first line is longer than the head.
        Err(error) => error.is_eof() && line.len() == text.len(),
    }
}
