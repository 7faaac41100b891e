//! JSON files that hold an array of records.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(in crate::source) const FACTS: Facts = Facts {
    is_indexed: true,
    sign: Some((Turn::Any, |probe| begins_array(probe.head()))),
    could_be: Probe::is_plain,
    ..Facts::of(
        "json",
        "Reads the records of JSON files, each an array of objects (`[{…}, {…}]`).\n\n\
         Elements are dicts of arrays, numbers, text and lists.",
        &[".json"],
    )
};

/// Returns true if an array begins here whose first item is an object, or an empty array.
fn begins_array(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let items = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    items.is_some_and(|items| items.starts_with(b"{") || items.trim_ascii_end() == b"]")
}

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn an_array_of_records_is_recognised() {
        assert_eq!(is(b"\xef\xbb\xbf [\n {\"a\": 1}\n]", "a.json"), Some(Format::Json));
        assert_eq!(is(b"[]\n", "a.json"), Some(Format::Json));
        assert_eq!(is(b"{\"a\": 1}\n", "a.json"), Some(Format::Jsonl));
        assert_ne!(is(b"[1, 2]\n", "a"), Some(Format::Json));
    }
}
