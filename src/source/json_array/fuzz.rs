//! Fuzz target.

use super::JsonArray;
use crate::dataset::map::RandomAccess;
use crate::source::fuzzing::{Target, some};

pub(in crate::source) const TARGETS: &[Target] = &[("json", json)];

/// Reads an array of records. If all records can be read, serde_json must find as many items in the file.
fn json(data: &[u8]) {
    let Ok(source) = JsonArray::options().open_bytes(data) else { return };
    some(&source);
    if (0..source.len()).all(|record| source.read(record).is_ok()) {
        let text = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
        match serde_json::from_slice::<Vec<serde::de::IgnoredAny>>(text) {
            Ok(items) => assert_eq!(items.len() as u64, source.len()),
            // The array is one more level around a record.
            Err(error) => assert!(error.to_string().contains("recursion limit"), "{error}"),
        }
    }
}
