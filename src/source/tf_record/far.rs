//! Remote TFRecord files: scanned once for their records, then read record by record.

use std::io::Read;
use std::ops::Range;

use super::frame::{self, FOOT, HEAD};
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::source::content::{Content, untold};
use crate::source::starts::{Facts, Starts, StartsBuilder};

/// Finds the starts of the records in a file.
pub(super) fn starts(file: &Content) -> Result<Starts> {
    let (mut starts, mut at) = (StartsBuilder::default(), 0);
    let (mut stream, size) = (file.stream(), file.len());
    while at < size {
        let mut head = Vec::with_capacity(HEAD);
        stream.seek(at);
        stream.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(untold)?;
        let range = frame::span(&head, at, size).map_err(|e| e.record(starts.len()))?;
        starts.push(at);
        at = range.end + FOOT as u64;
    }
    Ok(starts.finish(Facts { size, ..Facts::default() }))
}

/// Reads the record whose frame is at `place`.
pub(super) fn read(file: &Content, place: Range<u64>) -> Result<Buffer> {
    let at = place.start;
    let bytes = file.read(place)?;
    let head = &bytes.as_bytes()[..bytes.len().min(HEAD)];
    let range = frame::span(head, at, at + bytes.len() as u64)?;
    let data = bytes.slice(HEAD..(range.end - at) as usize).unwrap_or(Buffer::EMPTY);
    let stored = bytes.as_bytes()[HEAD + data.len()..].first_chunk::<FOOT>().copied();
    let stored = stored.ok_or_else(|| Error::data("no checksum of the data").offset(at))?;
    frame::check(data.as_bytes(), stored).map_err(|e| e.offset(at))?;
    Ok(data)
}
