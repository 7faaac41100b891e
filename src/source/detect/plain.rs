//! Opens files that are not compressed.

use crate::error::Result;
use crate::mmap::Access;
use crate::place::Location;
use crate::source::abreast::try_each;
use crate::source::content::{Content, Contents, open_each};
use crate::source::signs::compression;
use crate::source::stdin::is_piped;

/// Opens the files. Returns `None` if a file is compressed or is standard input, because such files are streams. The
/// name of a compressed file may lack the ending.
pub(crate) fn open_plain(files: &[Location]) -> Result<Option<Contents>> {
    open_plain_by(files, 4, |head| compression(head).is_some())
}

/// Opens files like [`open_plain`], for a format that detects compression by the first `bytes` bytes of a file.
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
