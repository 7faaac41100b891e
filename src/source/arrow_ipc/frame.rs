//! Messages of Arrow's streaming format, which its files are made of too: where they begin and end.
//!
//! Arrow's own reader believes the lengths it reads. Here each is held against the size of the file before anything is
//! done with it.

use arrow_ipc::{Message, root_as_message};

use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::source::content::Content;

/// Place of a message in its file: its header, and behind that its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Of the first byte, that of a length.
    pub(super) start: u64,
    pub(super) body: u64,
    pub(super) end: u64,
}

/// The header of a message, as flatbuffers have it.
pub(super) struct Header(Buffer);

impl Header {
    /// Its fields, verified.
    pub(super) fn message(&self) -> Result<Message<'_>> {
        root_as_message(self.0.as_bytes()).map_err(|e| Error::data(format!("the header of a message is damaged: {e}")))
    }
}

/// The message that begins at byte `start`, or nothing where the stream ends.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if it does not lie in the file.
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
    // A stream may end without saying so.
    if rest == 0 {
        return Ok(None);
    }
    // Before 0.15, the length came first.
    let (length, header) = match word(start)? {
        u32::MAX => (word(start + 4)?, start + 8),
        length => (length, start + 4),
    };
    if length == 0 {
        return Ok(None);
    }
    let room = content.len() - header;
    if i32::try_from(length).is_err() || u64::from(length) > room {
        return Err(Error::data(format!("a header of {} bytes where {room} are left", length.cast_signed())));
    }
    let body = header + u64::from(length);
    // A copy: a field that was verified in a mapped file may be another when it is read.
    let header = Header(Buffer::copy_from(content.read(header..body)?.as_bytes()));
    let stated = header.message()?.bodyLength();
    let room = content.len() - body;
    let bytes = u64::try_from(stated).ok().filter(|&bytes| bytes <= room);
    let bytes = bytes.ok_or_else(|| Error::data(format!("a body of {stated} bytes where {room} are left")))?;
    Ok(Some((Frame { start, body, end: body + bytes }, header)))
}

/// Makes the error of bytes that Arrow's verifier refuses.
pub(super) fn damaged(what: &str, error: impl std::fmt::Display) -> Error {
    Error::data(format!("{what}: {error}"))
}
