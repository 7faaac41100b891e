//! A header of a tar archive: a block of 512 bytes.

use tar::EntryType;

use crate::error::{Error, Result};
use crate::source::checksums;

/// Size of a block in bytes. A header is a block; data is padded with zeros to whole blocks.
pub(super) const BLOCK: u64 = 512;

/// Type of the content after a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The data of a file.
    File,
    /// A long name for the next member, in GNU's format.
    LongName,
    /// Extended records for the next member, in POSIX's format.
    Pax,
    /// Other content, with the size in the header.
    Other,
    /// No content: a folder, a link, a device.
    Bare,
}

/// Content of a header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) path: Vec<u8>,
}

impl Header {
    /// Parses a block. Returns `None` for the block of zeros that ends an archive.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for a wrong checksum or an invalid size;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a sparse file.
    pub(super) fn parse(block: &[u8]) -> Result<Option<Self>> {
        if block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let header = tar::Header::from_byte_slice(block);
        let stored = header.cksum().map_err(|_| Error::data("the checksum of the header is no number"))?;
        let computed = plain_checksum(block);
        if stored != computed && stored != signed_checksum(block) && checksums::are_checked() {
            return Err(Error::data(format!("the checksum of the header is {stored}, computed {computed}")));
        }
        let size = header.entry_size().map_err(|_| Error::data("the size of the member is not a number"))?;
        let path = header.path_bytes().into_owned();
        let kind = match header.entry_type() {
            // A folder, in old archives.
            EntryType::Regular if path.ends_with(b"/") => Kind::Bare,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::GNULongName => Kind::LongName,
            EntryType::XHeader => Kind::Pax,
            EntryType::GNUSparse => return Err(sparse()),
            EntryType::Link
            | EntryType::Symlink
            | EntryType::Char
            | EntryType::Block
            | EntryType::Directory
            | EntryType::Fifo => Kind::Bare,
            _ => Kind::Other,
        };
        Ok(Some(Self { kind, size, path }))
    }
}

/// Returns the sum of `value` over all bytes, with spaces in place of the checksum field.
fn checksum(block: &[u8], value: fn(u8) -> i32) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| value(byte)).sum::<i32>();
    (sum(block) - sum(&block[148..156]) + 8 * i32::from(b' ')) as u32
}

/// Returns the checksum of POSIX, over unsigned bytes.
fn plain_checksum(block: &[u8]) -> u32 {
    checksum(block, i32::from)
}

/// Returns the checksum of old writers, over signed bytes.
fn signed_checksum(block: &[u8]) -> u32 {
    checksum(block, |byte| i32::from(byte as i8))
}

/// Extended records for the next member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extended {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

impl Extended {
    /// Parses records of the form `LENGTH NAME=VALUE\n`. The length counts the whole record.
    pub(super) fn parse(mut records: &[u8]) -> Result<Self> {
        let mut extended = Self::default();
        while !records.is_empty() {
            let (name, value, rest) = record(records).ok_or_else(|| Error::data("an extended header is damaged"))?;
            match name {
                b"path" => extended.path = Some(value.to_vec()),
                b"size" => {
                    let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                    extended.size = Some(size.ok_or_else(|| Error::data("the extended size is no number"))?);
                }
                _ if name.starts_with(b"GNU.sparse.") => return Err(sparse()),
                _ => {}
            }
            records = rest;
        }
        Ok(extended)
    }
}

/// Returns the name and value of the first record, and the records after it.
fn record(records: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = records.iter().take(20).position(|&byte| byte == b' ')?;
    let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
    let body = records.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|&byte| byte == b'=')?;
    Some((&body[..equals], &body[equals + 1..], &records[length..]))
}

fn sparse() -> Error {
    Error::unsupported("the member is a sparse file").help("write the archive again without `--sparse`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_records_hold_name_and_size() {
        let parse = |text: &[u8]| Extended::parse(text);
        let both = parse(b"12 path=a/b\n14 size=123456\n11 mtime=1\n".as_slice());
        assert!(both.is_err(), "the second length is wrong");
        let both = parse(b"12 path=a/b\n15 size=123456\n11 mtime=1\n").unwrap();
        assert_eq!(both, Extended { path: Some(b"a/b".to_vec()), size: Some(123_456) });
        for bad in
            [b"99 path=a\n".as_slice(), b"path=a\n", b"8 path=a\n", b"5 ab\n", b"0 a=\n", b"18446744073709551615 a=b\n"]
        {
            assert!(parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        assert!(parse(b"22 GNU.sparse.major=1\n").unwrap_err().message().contains("sparse"));
    }

    #[test]
    fn either_sum_is_a_checksum() {
        let mut header = tar::Header::new_ustar();
        header.set_path("a").unwrap();
        header.set_size(3);
        header.set_username("\u{fc}").unwrap();
        header.set_cksum();
        let mut block = *header.as_bytes();
        let (plain, signed) = (plain_checksum(&block), signed_checksum(&block));
        assert_ne!(plain, signed);
        assert_eq!(header.cksum().unwrap(), plain);
        assert!(Header::parse(&block).unwrap().is_some());
        block[148..156].copy_from_slice(format!("{signed:06o}\0 ").as_bytes());
        assert!(Header::parse(&block).unwrap().is_some());
        block[148..156].copy_from_slice(format!("{:06o}\0 ", signed + 1).as_bytes());
        assert!(Header::parse(&block).unwrap_err().message().starts_with("the checksum of the header is"));
    }
}
