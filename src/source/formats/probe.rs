//! Parts of a file from which its format is detected.

use std::path::{Path, PathBuf};

use crate::element::Buffer;
use crate::error::Result;
use crate::source::content::Content;
use crate::source::delimited::Dialect;
use crate::source::files::file_name;
use crate::source::signs::compression;

/// Bytes to read from the start: enough to decompress some of the first block of a compressed file.
const HEAD: u64 = 64 << 10;

/// Bytes to read from the end.
const TAIL: u64 = 4 << 10;

/// Start and end of a file, with its name and size.
pub(crate) struct Probe {
    pub(super) size: u64,
    head: Buffer,
    tail: Buffer,
    pub(super) path: PathBuf,
    /// Name of the file, in lower case.
    pub(in crate::source) name: String,
}

impl Probe {
    pub(in crate::source) fn new(content: &Content, path: &Path) -> Result<Self> {
        let (path, name, head) = (path.to_owned(), file_name(path).to_lowercase(), content.head(HEAD)?);
        let size = if (head.len() as u64) < HEAD { head.len() as u64 } else { content.len() };
        let tail = if content.is_piped() { Buffer::EMPTY } else { content.read(size.saturating_sub(TAIL)..size)? };
        Ok(Self { size, head, tail, path, name })
    }

    pub(in crate::source) fn head(&self) -> &[u8] {
        self.head.as_bytes()
    }

    pub(super) fn tail(&self) -> &[u8] {
        self.tail.as_bytes()
    }

    pub(super) fn begins(&self, magic: &[u8]) -> bool {
        self.head().starts_with(magic)
    }

    pub(in crate::source) fn is_compressed(&self) -> bool {
        compression(self.head()).is_some()
    }

    pub(super) fn is_plain(&self) -> bool {
        !self.is_compressed()
    }

    /// Returns the first bytes of the decompressed file.
    pub(super) fn inflated(&self) -> Vec<u8> {
        crate::source::inflate::beginning(self.head(), 4 << 10)
    }

    /// Returns true if the file is compressed, and its decompressed bytes satisfy `begins`.
    pub(super) fn unpacks_to(&self, begins: fn(&[u8]) -> bool) -> bool {
        self.is_compressed() && begins(&self.inflated())
    }

    /// Returns true if the file is text.
    pub(super) fn is_text(&self) -> bool {
        is_text(self.head())
    }

    /// Returns true if the file is text whose first records have equally many fields.
    pub(super) fn has_fields(&self) -> bool {
        self.is_text() && Dialect::guess(self.head(), self.size > HEAD, 2).is_some()
    }
}

/// Returns true if the bytes are text. They may end within a character.
pub(super) fn is_text(head: &[u8]) -> bool {
    let valid = match simdutf8::compat::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    valid && !head.is_empty() && !head.contains(&0)
}
