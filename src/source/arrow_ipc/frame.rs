//! Boundaries of the messages of Arrow's streaming format, which also make up its files.
//!
//! Arrow's reader trusts the lengths in a file. Here, each length is checked against the size of the file before use.

use arrow_ipc::{Message, root_as_message};

use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::source::content::Content;

/// Place of a message in its file: its header, followed by its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Offset of the first byte of the message, which begins with a length.
    pub(super) start: u64,
    pub(super) body: u64,
    pub(super) end: u64,
}

/// Header of a message, as a flatbuffer.
pub(super) struct Header(Buffer);

impl Header {
    /// Returns the verified fields.
    pub(super) fn message(&self) -> Result<Message<'_>> {
        root_as_message(self.0.as_bytes()).map_err(|e| Error::data(format!("the header of a message is damaged: {e}")))
    }
}

/// Reads the message at byte `start`, or returns `None` at the end of the stream.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data), with the offset, if the message exceeds the file.
pub(super) fn read(content: &Content, start: u64) -> Result<Option<(Frame, Header)>> {
    let found = at(content, start);
    found.map_err(|e| e.offset(start))
}

fn at(content: &Content, start: u64) -> Result<Option<(Frame, Header)>> {
    let rest = content.len().saturating_sub(start);
    let word = |at: u64| -> Result<u32> {
        let bytes = content.read(at..at.saturating_add(4))?;
        Ok(u32::from_le_bytes(bytes.as_bytes().try_into().unwrap_or_default()))
    };
    // The marker at the end of a stream is optional.
    if rest == 0 {
        return Ok(None);
    }
    // Before version 0.15, a message began with its length, without a marker.
    let (length, header) = match word(start)? {
        u32::MAX => (word(start + 4)?, start + 8),
        length => (length, start + 4),
    };
    if length == 0 {
        return Ok(None);
    }
    let room = content.len() - header;
    if i32::try_from(length).is_err() || u64::from(length) > room {
        return Err(Error::data(format!("a header of {} bytes, but only {room} are left", length.cast_signed())));
    }
    let body = header + u64::from(length);
    // Copied, because a mapped file may change between the check and the use.
    let header = Header(Buffer::copy_from(content.read(header..body)?.as_bytes()));
    let stated = header.message()?.bodyLength();
    let room = content.len() - body;
    let bytes = u64::try_from(stated).ok().filter(|&bytes| bytes <= room);
    let bytes = bytes.ok_or_else(|| Error::data(format!("a body of {stated} bytes, but only {room} are left")))?;
    Ok(Some((Frame { start, body, end: body + bytes }, header)))
}

/// Returns the error for bytes that Arrow's verifier rejects.
pub(super) fn damaged(what: &str, error: impl std::fmt::Display) -> Error {
    Error::data(format!("{what}: {error}"))
}
