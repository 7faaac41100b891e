//! WebDataset shards, which are tar archives.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(super) const FACTS: Facts = Facts {
    is_indexed: true,
    sign: Some((Turn::Header, |probe| begins_tar(probe.head()))),
    // An empty archive begins with zeros. If the first header is damaged, the reader reports the damage.
    could_be: Probe::is_plain,
    ..Facts::of("webdataset", &[".tar"])
};

pub(super) const COMPRESSED: Facts = Facts {
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
