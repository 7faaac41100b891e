//! WebDataset shards, which are tar archives.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(in crate::source) const FACTS: Facts = Facts {
    is_indexed: true,
    sign: Some((Turn::Header, |probe| begins_tar(probe.head()))),
    // An empty archive begins with zeros. If the first header is damaged, the reader reports the damage.
    could_be: Probe::is_plain,
    ..Facts::of(
        "webdataset",
        "Reads the samples of WebDataset tar shards: `__key__` and a column for each extension. Compressed shards are read as a stream.",
        &[".tar"],
    )
};

pub(in crate::source) const COMPRESSED: Facts = Facts {
    sign: Some((Turn::Packed, |probe| probe.unpacks_to(begins_tar))),
    ..Facts::compressed("webdataset_stream", "webdataset", &[".tar.gz", ".tgz", ".tar.zst", ".tar.lz4"])
};

/// Returns true if the bytes begin with a tar header, whose checksum is its byte sum with spaces in the checksum field.
fn begins_tar(head: &[u8]) -> bool {
    let field = 148..156;
    let Some(header) = head.get(..512) else { return false };
    let digits = std::str::from_utf8(&header[field.clone()]).unwrap_or_default();
    let stored = u32::from_str_radix(digits.trim_matches(['\0', ' ']), 8);
    let others = header.iter().enumerate().filter(|(at, _)| !field.contains(at)).map(|(_, &byte)| u32::from(byte));
    stored == Ok(others.sum::<u32>() + 8 * u32::from(b' '))
}

#[cfg(test)]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

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
}
