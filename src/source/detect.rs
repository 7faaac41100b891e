//! What a file is, by its first bytes and its name.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::files::file_name;
use crate::error::{Error, Result};

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Plain text: [`Lines`](super::Lines).
    Lines,
    /// JSON Lines: [`Jsonl`](super::Jsonl).
    Jsonl,
    /// Compressed text: `LineStream`.
    LineStream,
    /// Compressed JSON Lines: `JsonlStream`.
    JsonlStream,
    /// Token ids, bare or with llm.c's header: [`Tokens`](super::Tokens).
    Tokens,
    /// A NumPy array: [`Npy`](super::Npy), or [`Tokens`](super::Tokens) if it has one dimension of ids.
    Npy,
    /// NumPy arrays: `Npz`.
    Npz,
    /// Parquet: `Parquet`.
    Parquet,
    /// ArrayRecord: `ArrayRecord`.
    ArrayRecord,
    /// TFRecord: `TfRecord`.
    TfRecord,
    /// Compressed TFRecord: `TfRecordStream`.
    TfRecordStream,
}

impl Format {
    /// The name of the format in lower case, as reports and pipeline files have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Jsonl => "jsonl",
            Self::LineStream => "line_stream",
            Self::JsonlStream => "jsonl_stream",
            Self::Tokens => "tokens",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Parquet => "parquet",
            Self::ArrayRecord => "array_record",
            Self::TfRecord => "tfrecord",
            Self::TfRecordStream => "tfrecord_stream",
        }
    }

    /// The feature of the crate without which it is not read, if there is one.
    pub const fn feature(self) -> Option<&'static str> {
        match self {
            Self::LineStream | Self::JsonlStream | Self::Npz => Some("compress"),
            Self::Parquet => Some("parquet"),
            Self::ArrayRecord => Some("array_record"),
            Self::TfRecord | Self::TfRecordStream => Some("tf_record"),
            Self::Lines | Self::Jsonl | Self::Tokens | Self::Npy => None,
        }
    }

    /// That this build lacks [`feature`](Self::feature), and how to get one that does not.
    pub(crate) fn lacking(self) -> Error {
        let feature = self.feature().unwrap_or_default();
        let what = if feature == "compress" { "compressed" } else { self.as_str() };
        Error::unsupported(format!("{what} files need the feature `{feature}`, which this build lacks"))
            .help(format!("build with `--features {feature}`"))
    }

    /// Whether records can be read by number.
    pub const fn has_random_access(self) -> bool {
        !matches!(self, Self::LineStream | Self::JsonlStream | Self::TfRecordStream)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The format of the file at `path`.
///
/// A magic number decides where a format has one, for TFRecord the checksum in front (also behind compression, as far as the
/// features read it), the name where it has none; a name that promises a magic number which
/// is not there is an error.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if
/// name and content disagree, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if neither says what it is.
pub fn detect(path: impl AsRef<Path>) -> Result<Format> {
    let path = path.as_ref();
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).map_err(|e| Error::io(e, path))?;
    by_content(&head, &file_name(path).to_lowercase()).map_err(|e| e.path(path))
}

/// Bytes that are looked at: enough for the first block of a compressed file to yield something.
const HEAD: u64 = 64 << 10;

/// Whether TFRecords begin so, where they can be read.
fn is_tf_record(head: &[u8]) -> bool {
    #[cfg(feature = "tf_record")]
    return super::tf_record::is_tf_record(head);
    #[cfg(not(feature = "tf_record"))]
    return head.is_empty() && cfg!(feature = "tf_record");
}

/// The first bytes of what is compressed.
fn inflated(head: &[u8]) -> Vec<u8> {
    #[cfg(feature = "compress")]
    return super::inflate::beginning(head, 16);
    #[cfg(not(feature = "compress"))]
    return head[..0].to_vec();
}

fn by_content(head: &[u8], name: &str) -> Result<Format> {
    let ends = |extensions: &[&str]| extensions.iter().any(|ext| name.ends_with(ext));
    let json = |name: &str| [".jsonl", ".ndjson", ".json"].iter().any(|ext| name.ends_with(ext));
    if compression(head).is_some() {
        let inner = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
        if is_tf_record(&inflated(head)) || TF_RECORD.iter().any(|ext| inner.ends_with(ext)) {
            return Ok(Format::TfRecordStream);
        }
        return Ok(if json(inner) { Format::JsonlStream } else { Format::LineStream });
    }
    for (magic, format) in MAGIC {
        if head.starts_with(magic) {
            return Ok(format);
        }
    }
    if is_tf_record(head) || ends(&TF_RECORD) {
        return Ok(Format::TfRecord);
    }
    if let Some(promised) = PROMISES.iter().find(|ext| name.ends_with(*ext)) {
        let text = format!("the name ends with {promised}, the content does not begin as such a file does");
        return Err(Error::data(text).offset(0));
    }
    if json(name) {
        return Ok(Format::Jsonl);
    }
    if ends(&[".bin"]) {
        return Ok(Format::Tokens);
    }
    if ends(&[".txt", ".text", ".md", ".csv", ".tsv"]) {
        return Ok(Format::Lines);
    }
    Err(Error::unsupported("neither the name nor the first bytes say what this is")
        .help("read are .jsonl, .txt, .gz, .zst, .bin, .npy, .npz, .parquet, .array_record and .tfrecord files"))
}

/// Endings of files that have a magic number.
const PROMISES: [&str; 7] = [".gz", ".zst", ".npy", ".npz", ".parquet", ".array_record", ".arrayrecord"];

/// Endings of TFRecord files, which hold nothing at all where there are no records.
const TF_RECORD: [&str; 2] = [".tfrecord", ".tfrecords"];

const MAGIC: [(&[u8], Format); 7] = [
    // The hash of a header that says what it says in every file of Riegeli's.
    (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", Format::ArrayRecord),
    (b"PAR1", Format::Parquet),
    (b"\x93NUMPY", Format::Npy),
    (b"PK\x03\x04", Format::Npz),
    (b"PK\x05\x06", Format::Npz),
    // llm.c's 20240520 and 20240801.
    (b"\x88\xd8\x34\x01", Format::Tokens),
    (b"\xa1\xd9\x34\x01", Format::Tokens),
];

/// The codec of compressed content, by its magic number. A zstd file may begin with a frame to skip.
pub(crate) fn compression(bytes: &[u8]) -> Option<&'static str> {
    match *bytes {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some("zstd"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_feature_names_it() {
        let error = Format::Parquet.lacking();
        assert_eq!(error.to_string(), "parquet files need the feature `parquet`, which this build lacks");
        assert_eq!(error.help_text(), Some("build with `--features parquet`"));
        let error = Format::JsonlStream.lacking();
        assert_eq!(error.to_string(), "compressed files need the feature `compress`, which this build lacks");
        assert_eq!(error.help_text(), Some("build with `--features compress`"));
    }

    #[test]
    fn content_first_then_name() {
        let is = |head: &[u8], name: &str| by_content(head, name).ok();
        assert_eq!(is(b"\x1f\x8b", "a.jsonl.gz"), Some(Format::JsonlStream));
        assert_eq!(is(b"\x28\xb5\x2f\xfd", "a"), Some(Format::LineStream));
        assert_eq!(is(b"\x50\x2a\x4d\x18", "a.json"), Some(Format::JsonlStream));
        assert_eq!(is(b"PAR1", "a.bin"), Some(Format::Parquet));
        assert_eq!(is(&0x3f4a_880d_d170_af83u64.to_le_bytes(), "a.bin"), Some(Format::ArrayRecord));
        assert_eq!(is(b"{", "a.array_record"), None);
        assert_eq!(is(&20_240_520i32.to_le_bytes(), "x"), Some(Format::Tokens));
        assert_eq!(is(&20_240_801i32.to_le_bytes(), "x"), Some(Format::Tokens));
        assert_eq!(is(b"{", "a.ndjson"), Some(Format::Jsonl));
        assert_eq!(is(b"", "a.txt"), Some(Format::Lines));
        assert_eq!(is(b"{", "a.jsonl.gz"), None);
        assert_eq!(is(b"{", "a.exe"), None);
    }
}
