//! Formats of contents and of names.

use super::*;
use crate::element::Buffer;

/// The format of a file that begins with `head`, if it is recognised.
pub(in crate::source) fn is(head: &[u8], name: &str) -> Option<Format> {
    let content = Content::from(Buffer::copy_from(head));
    recognise(&Probe::new(&content, Path::new(name)).unwrap()).ok()
}

#[test]
fn content_first_then_name() {
    assert_eq!(is(&20_240_520i32.to_le_bytes(), "x"), Some(Format::Tokens));
    assert_eq!(is(&20_240_801i32.to_le_bytes(), "x"), Some(Format::Tokens));
    assert_eq!(is(b"\x05\0\x01\0", "a.bin"), Some(Format::Tokens));
    assert_eq!(is(b"{\"a\": 1}\n", "a"), Some(Format::Jsonl));
    assert_eq!(is(b"{\"a\": 1}\n", "a.txt"), Some(Format::Jsonl));
    assert_eq!(is(b"{\"a\": ", "a.dat"), Some(Format::Jsonl));
    assert_eq!(is(b"{\"a\": }\n", "a.ndjson"), Some(Format::Jsonl));
    assert_eq!(is(b"", "a.txt"), Some(Format::Lines));
    assert_eq!(is(b"some text", "README"), Some(Format::Lines));
    assert_eq!(is(b"{\"a\": 1}\n", "a.jsonl.gz"), Some(Format::Jsonl));
    assert_eq!(is(b"\x01\x02", "a.jsonl.gz"), None);
    assert_eq!(is(b"\x7fELF\0", "a.exe"), None);
    assert_eq!(is(b"a,b\n1,2\n", "a"), Some(Format::Csv));
    assert_eq!(is(b"a,b\n1,2\n", "a.txt"), Some(Format::Lines));
    assert_eq!(is(b"a\n1\n", "a.csv").is_some(), cfg!(feature = "csv"));
}

#[test]
fn content_that_is_no_text_is_named() {
    for (head, name, what) in [
        (&b"\xfd7zXZ\0rest"[..], "a.jsonl.xz", "is compressed with xz"),
        (b"BZh91AY&SYrest", "a.jsonl.bz2", "is compressed with bzip2"),
        (b"\xff\xfea\0", "a", "is text in UTF-16"),
    ] {
        let probe = Probe::new(&Content::from(Buffer::copy_from(head)), Path::new(name)).unwrap();
        let error = recognise(&probe).unwrap_err();
        assert!(error.message() == what && error.help_text().is_some(), "{error}");
    }
}

#[cfg(all(feature = "compress", feature = "csv"))]
#[test]
fn what_is_compressed_is_what_is_in_it() {
    let packed = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    assert_eq!(is(&packed(b"{\"a\": 1}\n"), "a"), Some(Format::JsonlStream));
    assert_eq!(is(&packed(b"text"), "a"), Some(Format::LineStream));
    assert_eq!(is(&packed(b"a,b\n1,2\n"), "a.gz"), Some(Format::CsvStream));
    assert_eq!(is(&packed(b"a,b\n1,2\n"), "a.txt.gz"), Some(Format::LineStream));
    assert_eq!(is(b"\x1f\x8b", "a.jsonl.gz"), Some(Format::JsonlStream));
    assert_eq!(is(b"\x50\x2a\x4d\x18", "a.json.zst"), Some(Format::JsonlStream));
    assert_eq!(is(b"\x1f\x8b", "a.tfrecord.gz"), (cfg!(feature = "tf_record")).then_some(Format::TfRecordStream));
}
