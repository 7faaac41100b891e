//! What a file is, by its content; by its name only where the content could be anything.

use std::path::{Path, PathBuf};

use super::content::Content;
#[cfg(feature = "spec")]
use super::content::{Contents, open_each};
use super::delimited::Dialect;
use super::files::file_name;
use super::format::Format;
use super::megatron;
use super::mmap::Access;
use super::signs::{begins_with_header, compression, ends_with_limits, limits_path};
use crate::element::Buffer;
use crate::error::{Error, Result};

/// The format of the file at `path`, or of the folder, where one is a data set.
///
/// The content decides: a magic number, a checksum that fits (also behind compression, as far as the features read it),
/// text that parses. The name decides where the content could be anything, as bare token ids are, or where it is empty;
/// a name that promises what is not there is an error.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if
/// name and content disagree, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if neither says what it is.
pub fn detect(path: impl AsRef<Path>) -> Result<Format> {
    let path = path.as_ref();
    if path.is_dir() {
        return detect_folder(path).ok_or_else(|| Error::unsupported("this folder is no data set").path(path));
    }
    let content = Content::open(path, Access::Normal)?;
    let probe = Probe::new(&content, path).map_err(|e| e.path(path))?;
    probe.format().map_err(|e| e.path(path))
}

/// The format of a folder that is a data set as a whole, not some files that lie together.
pub(crate) fn detect_folder(path: &Path) -> Option<Format> {
    let has = |name: &str| path.join(name).is_file();
    // `save_to_disk` of Hugging Face's `datasets`.
    let is_hugging_face = has("dataset_dict.json") || (has("state.json") && has("dataset_info.json"));
    if is_hugging_face {
        return Some(Format::Arrow);
    }
    let index = path.join("index.json");
    let content = has("index.json").then(|| Content::open(&index, Access::Normal).ok()).flatten();
    let probe = content.and_then(|content| Probe::new(&content, &index).ok());
    probe.is_some_and(|probe| is_mds_index(&probe)).then_some(Format::Mds)
}

/// The files, opened; `None` if one of them is compressed, which its name need not say: those are streams.
#[cfg(feature = "spec")]
pub(crate) fn open_plain(files: &[PathBuf]) -> Result<Option<Contents>> {
    open_plain_by(files, 4, |head| compression(head).is_some())
}

/// The same of a format that knows by the first `bytes` of a file whether it is compressed.
#[cfg(feature = "spec")]
pub(crate) fn open_plain_by(
    files: &[PathBuf],
    bytes: u64,
    is_compressed: impl Fn(&[u8]) -> bool,
) -> Result<Option<Contents>> {
    let head = |content: &Content| 0..content.len().min(bytes);
    let contents = open_each(files, Access::Normal).into_iter().collect::<Result<Vec<_>>>()?;
    contents.iter().for_each(|content| content.fetch(&[head(content)]));
    for (path, content) in files.iter().zip(&contents) {
        let head = content.read(head(content)).map_err(|e| e.path(path))?;
        if is_compressed(head.as_bytes()) {
            return Ok(None);
        }
    }
    Ok(Some(files.iter().cloned().zip(contents).collect()))
}

/// Bytes that are looked at: enough for the first block of a compressed file to yield something.
const HEAD: u64 = 64 << 10;

/// Bytes that are looked at from the end.
const TAIL: u64 = 4 << 10;

/// What is looked at of a file.
struct Probe {
    size: u64,
    head: Buffer,
    tail: Buffer,
    path: PathBuf,
    /// In lower case.
    name: String,
}

/// Whether a file is of a format.
type Recognise = fn(&Probe) -> bool;

/// What content says, in the order in which it is asked.
const BY_CONTENT: &[(Format, Recognise)] = &[
    (Format::Megatron, |probe| megatron::is_index(probe.head()) || megatron::has_index_beside(&probe.path)),
    (Format::WebDataset, |probe| begins_tar(probe.head())),
    // Before what is compressed, as its first record may be.
    (Format::Bagz, |probe| ends_with_limits(probe.size, probe.tail.as_bytes()) || limits_path(&probe.path).exists()),
    (Format::TfRecordStream, |probe| probe.is_compressed() && begins_tf_record(&inflated(probe.head()))),
    #[cfg(all(feature = "tf_record", feature = "compress"))]
    (Format::TfRecordStream, |probe| {
        let is_zlib = super::signs::may_be_zlib(probe.head());
        is_zlib && begins_tf_record(&super::inflate::beginning_of_zlib(probe.head(), 4 << 10))
    }),
    (Format::WebDatasetStream, |probe| probe.is_compressed() && begins_tar(&inflated(probe.head()))),
    (Format::JsonlStream, |probe| probe.is_compressed() && begins_json(&inflated(probe.head()))),
    // The hash of a header that says what it says in every file of Riegeli's.
    (Format::ArrayRecord, |probe| probe.begins(b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f")),
    (Format::Parquet, |probe| probe.begins(b"PAR1")),
    // Files, and the first version of Feather; streams.
    (Format::Arrow, |probe| probe.begins(b"ARROW1") || probe.begins(b"FEA1") || probe.begins_arrow_stream()),
    (Format::Npy, |probe| probe.begins(b"\x93NUMPY")),
    (Format::Npz, |probe| probe.begins(b"PK\x03\x04") || probe.begins(b"PK\x05\x06")),
    // llm.c's 20240520 and 20240801.
    (Format::Tokens, |probe| probe.begins(b"\x88\xd8\x34\x01") || probe.begins(b"\xa1\xd9\x34\x01")),
    // By a checksum, one in 256 of which begins as a header of safetensors does.
    (Format::TfRecord, |probe| begins_tf_record(probe.head())),
    (Format::Safetensors, |probe| begins_with_header(probe.size, probe.head())),
    (Format::Mds, is_mds_index),
    (Format::Jsonl, |probe| begins_json(probe.head())),
];

impl Probe {
    fn new(content: &Content, path: &Path) -> Result<Self> {
        let (size, path, name) = (content.len(), path.to_owned(), file_name(path).to_lowercase());
        let (head, tail) = (content.read(0..size.min(HEAD))?, content.read(size.saturating_sub(TAIL)..size)?);
        Ok(Self { size, head, tail, path, name })
    }

    fn head(&self) -> &[u8] {
        self.head.as_bytes()
    }

    fn begins(&self, magic: &[u8]) -> bool {
        self.head().starts_with(magic)
    }

    /// A mark, and the length of a header that fits and is as long as they are made: a multiple of 8.
    fn begins_arrow_stream(&self) -> bool {
        match *self.head() {
            [0xff, 0xff, 0xff, 0xff, a, b, c, d, ..] => {
                let length = u64::from(u32::from_le_bytes([a, b, c, d]));
                length > 0 && length.is_multiple_of(8) && length <= self.size - 8
            }
            _ => false,
        }
    }

    fn is_compressed(&self) -> bool {
        compression(self.head()).is_some()
    }

    fn format(&self) -> Result<Format> {
        if let Some((format, _)) = BY_CONTENT.iter().find(|(_, recognise)| recognise(self)) {
            return Ok(*format);
        }
        let promised = self.promised();
        if let Some(format) = promised.filter(|format| !format.is_built()) {
            return Err(format.lacking());
        }
        match promised {
            Some(format) if self.could_be(format) => Ok(format),
            Some(format) => {
                Err(Error::data(format!("the name promises {format}, the content does not begin as such a file does"))
                    .offset(0))
            }
            None if self.is_compressed() => Ok(self.packed_text()),
            None if is_text(self.head()) && self.has_fields() => Ok(Format::Csv),
            None if is_text(self.head()) => Ok(Format::Lines),
            None => Err(unknown()),
        }
    }

    /// What the name says. Of compressed text any ending will do.
    fn promised(&self) -> Option<Format> {
        Format::by_name(&self.name).or_else(|| {
            let packed = [".gz", ".zst", ".lz4"].iter().any(|ending| self.name.ends_with(ending));
            packed.then(|| self.packed_text())
        })
    }

    /// Whether it is text of which the first records have the same number of fields.
    fn has_fields(&self) -> bool {
        Dialect::guess(self.head(), self.size > HEAD, 2).is_some()
    }

    /// What compressed text is.
    fn packed_text(&self) -> Format {
        let text = inflated(self.head());
        match Dialect::guess(&text, true, 2) {
            Some(_) if is_text(&text) => Format::CsvStream,
            _ => Format::LineStream,
        }
    }

    /// Whether a file of this content that was not recognised may yet be what its name promises.
    fn could_be(&self, format: Format) -> bool {
        match format {
            // Lines that are damaged are told of with their place, by who reads them.
            Format::Lines | Format::Jsonl | Format::Csv | Format::Tokens => !self.is_compressed(),
            Format::LineStream | Format::JsonlStream | Format::CsvStream | Format::TfRecordStream => {
                self.is_compressed()
            }
            // It holds nothing at all where there are no records; where the first is damaged, the reader says so.
            Format::TfRecord | Format::Bagz => true,
            // An archive of nothing begins with zeros; where the first header is damaged, the reader says so.
            Format::WebDataset | Format::WebDatasetStream => self.is_compressed() == (format != Format::WebDataset),
            _ => false,
        }
    }
}

fn unknown() -> Error {
    let endings: Vec<&str> = Format::ALL.iter().flat_map(|format| format.endings()).copied().collect();
    Error::unsupported("neither the first bytes nor the name say what this is")
        .help(format!("known endings are {}", endings.join(", ")))
}

/// Whether TFRecords begin so, where they can be read.
fn begins_tf_record(head: &[u8]) -> bool {
    #[cfg(feature = "tf_record")]
    return super::tf_record::is_tf_record(head);
    #[cfg(not(feature = "tf_record"))]
    return head.is_empty() && cfg!(feature = "tf_record");
}

/// Whether a tar archive begins so: with a header whose checksum is the sum of its bytes, the field itself taken for spaces.
fn begins_tar(head: &[u8]) -> bool {
    let field = 148..156;
    let Some(header) = head.get(..512) else { return false };
    let digits = std::str::from_utf8(&header[field.clone()]).unwrap_or_default();
    let stored = u32::from_str_radix(digits.trim_matches(['\0', ' ']), 8);
    let others = header.iter().enumerate().filter(|(at, _)| !field.contains(at)).map(|(_, &byte)| u32::from(byte));
    stored == Ok(others.sum::<u32>() + 8 * u32::from(b' '))
}

/// Whether it is the index of an MDS folder.
fn is_mds_index(probe: &Probe) -> bool {
    let head = probe.head();
    probe.name == "index.json"
        && head.trim_ascii_start().starts_with(b"{")
        && memchr::memmem::find(head, b"\"shards\"").is_some()
}

/// Whether the first line is an object of JSON, or as much of it as is there begins one.
fn begins_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if !text.starts_with(b"{") {
        return false;
    }
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or(text);
    match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
        Ok(_) => true,
        // A first line longer than what is looked at.
        Err(error) => error.is_eof() && line.len() == text.len(),
    }
}

/// Whether it is text, as far as the bytes go: they may end within a character.
fn is_text(head: &[u8]) -> bool {
    let valid = match simdutf8::compat::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    valid && !head.is_empty() && !head.contains(&0)
}

/// The first bytes of what is compressed.
fn inflated(head: &[u8]) -> Vec<u8> {
    #[cfg(feature = "compress")]
    return super::inflate::beginning(head, 4 << 10);
    #[cfg(not(feature = "compress"))]
    return head[..0].to_vec();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(head: &[u8], name: &str) -> Option<Format> {
        let content = Content::from(Buffer::copy_from(head));
        Probe::new(&content, Path::new(name)).unwrap().format().ok()
    }

    #[cfg(feature = "tf_record")]
    #[test]
    fn records_of_every_length_are_tf_record() {
        for length in 0..3000 {
            let mut writer = crate::source::TfRecordWriter::new(Vec::new(), Default::default()).unwrap();
            writer.write(&vec![b' '; length]).unwrap();
            assert_eq!(is(&writer.finish().unwrap(), "x"), Some(Format::TfRecord), "{length}");
        }
    }

    #[test]
    fn content_first_then_name() {
        assert_eq!(is(b"PAR1", "a.bin"), Some(Format::Parquet));
        assert_eq!(is(&0x3f4a_880d_d170_af83u64.to_le_bytes(), "a.bin"), Some(Format::ArrayRecord));
        assert_eq!(is(b"\0\0", "a.array_record"), None);
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
        let bag = [b"oat".as_slice(), &3u64.to_le_bytes()].concat();
        assert_eq!([is(&bag, "a"), is(b"", "a.bagz")][0], Some(Format::Bagz));
        assert_eq!(is(b"MMIDIDX\0\0", "a"), Some(Format::Megatron));
        assert_eq!(is(b"\x02\0\0\0\0\0\0\0{}", "a"), Some(Format::Safetensors));
        assert_eq!(is(b"\x03\0\0\0\0\0\0\0{}", "a"), None);
        let index = br#"{"shards": [{"format": "mds"}], "version": 2}"#;
        assert_eq!((is(index, "index.json"), is(index, "other.json")), (Some(Format::Mds), Some(Format::Jsonl)));
    }

    #[test]
    fn an_archive_is_known_by_the_sum_of_its_header() {
        let mut archive = [0; 1024];
        archive[..5].copy_from_slice(b"a.txt");
        let sum: u32 = b"a.txt".iter().map(|&byte| u32::from(byte)).sum::<u32>() + 8 * 32;
        archive[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        assert_eq!(is(&archive, "x"), Some(Format::WebDataset));
        #[cfg(feature = "compress")]
        assert_eq!(is(&zstd::encode_all(archive.as_slice(), 3).unwrap(), "x"), Some(Format::WebDatasetStream));
        archive[0] = b'b';
        assert_ne!(is(&archive, "x"), Some(Format::WebDataset));
        assert_eq!(is(&archive, "x.tar"), cfg!(feature = "webdataset").then_some(Format::WebDataset));
    }

    #[test]
    fn arrow_is_known_by_its_marks() {
        let stream = |length: u32, rest: usize| [vec![0xff; 4], length.to_le_bytes().to_vec(), vec![0; rest]].concat();
        for head in [b"ARROW1\0\0".to_vec(), b"FEA1".to_vec(), stream(16, 16)] {
            assert_eq!(is(&head, "x"), Some(Format::Arrow));
        }
        for head in [stream(16, 15), stream(0, 16), stream(12, 16), vec![0xff; 4]] {
            assert_eq!(is(&head, "x"), None);
        }
    }

    #[test]
    fn folders_are_known_by_what_lies_in_them() {
        let dir = tempfile::tempdir().unwrap();
        assert!(detect(dir.path()).unwrap_err().to_string().contains("no data set"));
        std::fs::write(dir.path().join("state.json"), "{}").unwrap();
        assert_eq!(detect_folder(dir.path()), None);
        std::fs::write(dir.path().join("dataset_info.json"), "{}").unwrap();
        assert_eq!(detect(dir.path()).unwrap(), Format::Arrow);
    }

    #[cfg(feature = "compress")]
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
