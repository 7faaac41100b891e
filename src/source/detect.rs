//! Detection of file formats by content, and by name only if the content is ambiguous.

#[cfg(feature = "spec")]
pub(super) mod plain;

use std::path::Path;

use super::content::Content;
use super::formats::{Format, Probe};
use super::signs::no_text;
use crate::error::{Error, Result};
use crate::place::Location;

/// Detects the format of the file at `path`, or of the folder if it is a dataset.
///
/// The content decides: a magic number, a matching checksum (also inside compressed data that this build can read), or
/// text that parses. The name decides if the content is ambiguous, such as bare token ids, or empty. A name that
/// contradicts the content is an error.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; [`ErrorKind::Data`](crate::ErrorKind::Data) if
/// name and content disagree; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if neither identifies the
/// format.
pub fn detect(path: impl AsRef<Path>) -> Result<Format> {
    let file = Location::from(path.as_ref());
    let path = file.as_ref();
    if path.is_dir() {
        return detect_folder(path).ok_or_else(|| Error::unsupported("this folder is no data set").path(path));
    }
    let content = Content::open_stream(&file)?;
    let probe = Probe::new(&content, path).map_err(|e| e.path(path))?;
    recognise(&probe).map_err(|e| e.path(path))
}

/// Returns the format of a folder that is a dataset as a whole. Returns `None` for a folder of independent files.
pub(crate) fn detect_folder(path: &Path) -> Option<Format> {
    Format::by_folder(path)
}

/// Returns the format of the probed file.
fn recognise(probe: &Probe) -> Result<Format> {
    if let Some(format) = Format::by_sign(probe) {
        return Ok(format);
    }
    match promised(probe) {
        Some(format) if !format.is_built() => Err(format.lacking()),
        Some(format) if format.could_be(probe) => Ok(format),
        Some(format) => {
            Err(Error::data(format!("the name promises {format}, the content does not begin as such a file does"))
                .offset(0))
        }
        None => match no_text(probe.head()) {
            Some((what, help)) => Err(Error::unsupported(format!("is {what}")).help(help)),
            None => Format::by_guess(probe, probe.is_compressed()).ok_or_else(unknown),
        },
    }
}

/// Returns the format that the name promises. If a compressed file has an unknown ending, guesses a text format from
/// the content.
fn promised(probe: &Probe) -> Option<Format> {
    let is_packed = || [".gz", ".zst", ".lz4"].iter().any(|ending| probe.name.ends_with(ending));
    Format::by_name(&probe.name).or_else(|| is_packed().then(|| Format::by_guess(probe, true)).flatten())
}

fn unknown() -> Error {
    let endings: Vec<&str> = Format::ALL.iter().flat_map(|format| format.endings()).copied().collect();
    Error::unsupported("neither the first bytes nor the name say what this is")
        .help(format!("known endings are {}", endings.join(", ")))
}

#[cfg(test)]
pub(super) mod tests {
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
}
