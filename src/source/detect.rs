//! Detection of file formats by content, and by name only if the content is ambiguous.

use std::path::Path;

#[cfg(feature = "spec")]
use super::abreast::try_each;
use super::content::Content;
#[cfg(feature = "spec")]
use super::content::{Contents, open_each};
use super::formats::{Format, Probe};
#[cfg(feature = "spec")]
use super::signs::compression;
use super::signs::no_text;
#[cfg(feature = "spec")]
use super::stdin::is_piped;
use crate::error::{Error, Result};
#[cfg(feature = "spec")]
use crate::mmap::Access;
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

/// Opens the files. Returns `None` if a file is compressed or is standard input, because such files are streams. The
/// name of a compressed file may lack the ending.
#[cfg(feature = "spec")]
pub(crate) fn open_plain(files: &[Location]) -> Result<Option<Contents>> {
    open_plain_by(files, 4, |head| compression(head).is_some())
}

/// Opens files like [`open_plain`], for a format that detects compression by the first `bytes` bytes of a file.
#[cfg(feature = "spec")]
pub(crate) fn open_plain_by(
    files: &[Location],
    bytes: u64,
    is_compressed: impl Fn(&[u8]) -> bool + Sync,
) -> Result<Option<Contents>> {
    if files.iter().any(|file| is_piped(file.as_ref())) {
        return Ok(None);
    }
    let head = |content: &Content| 0..content.len().min(bytes);
    let contents = open_each(files.to_vec(), Access::Normal)?;
    let is_plain = |(path, content): (Location, Content)| {
        let head = content.read(head(&content)).map_err(|e| e.path(&path))?;
        Ok((!is_compressed(head.as_bytes())).then_some((path, content)))
    };
    Ok(try_each(contents, is_plain)?.into_iter().collect())
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
mod tests {
    use super::*;
    use crate::element::Buffer;

    fn is(head: &[u8], name: &str) -> Option<Format> {
        let content = Content::from(Buffer::copy_from(head));
        recognise(&Probe::new(&content, Path::new(name)).unwrap()).ok()
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
        let url = format!("file://{}", dir.path().display());
        assert_eq!(detect(&url).unwrap(), Format::Arrow);
        assert_eq!(detect(url + "/state.json").unwrap(), Format::Jsonl);
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
