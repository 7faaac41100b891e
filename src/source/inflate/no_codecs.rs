//! A build without decoders.

use super::Decoder;
use crate::error::Result;
use crate::source::content::Content;
use crate::source::formats::Format;

/// Returns the error of a build without decoders.
pub(super) fn packed(_: &'static str, _: &Content, _: Option<u32>) -> Result<Decoder> {
    Err(Format::LineStream.lacking())
}
