//! Decoding of record batches and dictionaries. Uncompressed values are views of the file; offsets are copied.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_buffer::Buffer as ArrowBuffer;
use arrow_data::ArrayData;
use arrow_ipc::{self as ipc, CompressionType, reader};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use bytes::Bytes;

use super::frame::{self, Frame, Header};
use super::layout::{Batch, Dictionary};
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::source::arrow::own;
use crate::source::contained::{check_claim, contained};
use crate::source::content::Content;

/// Values of dictionaries, by dictionary id.
pub(super) type Dictionaries = HashMap<i64, ArrayRef>;

/// Decodes a batch, and returns it with the memory it occupies outside of the file, in bytes.
pub(super) fn decode(
    content: &Content,
    schema: &SchemaRef,
    batch: &Batch,
    dictionaries: &Dictionaries,
    columns: &[usize],
) -> Result<(RecordBatch, usize)> {
    let (header, body) = open(content, batch.frame)?;
    let message = header.message()?;
    let records = message.header_as_record_batch().ok_or_else(changed)?;
    check(records, &body)?;
    let body = arrow_buffer(body);
    let (all, some) = (schema.clone(), Some(columns));
    let decoded = contained(|| {
        reader::read_record_batch(&body, records, all, dictionaries, some, &message.version())
            .and_then(|records| if content.here().is_some() { own::batch_of_file(&records) } else { Ok(records) })
            .map_err(|e| Error::data(e.to_string()))
    })?;
    let body = if content.here().is_some() { body.as_slice().as_ptr_range() } else { [].as_ptr_range() };
    let memory = decoded.columns().iter().map(|column| own_bytes(&column.to_data(), &body)).sum();
    Ok((decoded, memory))
}

/// Decodes the dictionaries of this list, each of which may extend an earlier dictionary.
pub(super) fn dictionaries(content: &Content, schema: &Schema, list: &[Dictionary]) -> Result<Dictionaries> {
    let mut known = Dictionaries::new();
    for dictionary in list {
        add(content, schema, dictionary.frame, &mut known)
            .map_err(|e| Error::new(e.kind(), format!("dictionary: {}", e.message())).offset(dictionary.frame.start))?;
    }
    Ok(known)
}

fn add(content: &Content, schema: &Schema, frame: Frame, known: &mut Dictionaries) -> Result<()> {
    let (header, body) = open(content, frame)?;
    let message = header.message()?;
    let dictionary = message.header_as_dictionary_batch().ok_or_else(changed)?;
    check(dictionary.data().ok_or_else(|| Error::data("a dictionary without values"))?, &body)?;
    let body = arrow_buffer(body);
    let mut read = || {
        reader::read_dictionary(&body, dictionary, schema, known, &message.version())?;
        if content.here().is_some()
            && let Some(values) = known.get_mut(&dictionary.id())
        {
            *values = own::array(values)?;
        }
        Ok(())
    };
    contained(|| read().map_err(|e: ArrowError| Error::data(e.to_string())))
}

fn open(content: &Content, frame: Frame) -> Result<(Header, Buffer)> {
    content.fetch(std::slice::from_ref(&(frame.start..frame.end)));
    let (again, header) = frame::read(content, frame.start)?.ok_or_else(changed)?;
    Ok((header, content.read(again.body..again.end)?))
}

fn changed() -> Error {
    Error::data("the file changed since it was opened")
}

/// Checks a batch's buffers against its body, because Arrow's decoder trusts them.
fn check(batch: ipc::RecordBatch<'_>, body: &Buffer) -> Result<()> {
    let compression = batch.compression().map(|compression| compression.codec());
    if let Some(codec) =
        compression.filter(|codec| ![CompressionType::LZ4_FRAME, CompressionType::ZSTD].contains(codec))
    {
        return Err(Error::unsupported(format!("compressed by codec {}, which is not known", codec.0)));
    }
    let (mut packed, mut unpacked) = (0, 0u64);
    for buffer in batch.buffers().into_iter().flatten() {
        let range = || {
            let start = usize::try_from(buffer.offset()).ok()?;
            body.as_bytes().get(start..start.checked_add(usize::try_from(buffer.length()).ok()?)?)
        };
        let bytes = range().ok_or_else(|| {
            let (offset, length, room) = (buffer.offset(), buffer.length(), body.len());
            Error::data(format!("a buffer of {length} bytes from byte {offset} on, in a body of {room}"))
        })?;
        if compression.is_some() && !bytes.is_empty() {
            let length = bytes.first_chunk().ok_or_else(|| Error::data("a compressed buffer without its length"))?;
            // A negative length marks a buffer that is not compressed.
            let length = u64::try_from(i64::from_le_bytes(*length)).unwrap_or(0);
            (packed, unpacked) = (packed + bytes.len() as u64, unpacked.saturating_add(length));
        }
    }
    check_claim(packed, unpacked).map_err(|error| error.help("if it is true, write smaller record batches"))
}

/// Wraps the bytes as an Arrow buffer, without a copy.
fn arrow_buffer(bytes: Buffer) -> ArrowBuffer {
    struct View(Buffer);

    impl AsRef<[u8]> for View {
        fn as_ref(&self) -> &[u8] {
            self.0.as_bytes()
        }
    }
    ArrowBuffer::from(Bytes::from_owner(View(bytes)))
}

/// Estimated overhead of an array in bytes, without its buffers.
const NODE: usize = 256;

/// Returns the memory of an array outside of the body of its batch, in bytes.
fn own_bytes(array: &ArrayData, body: &Range<*const u8>) -> usize {
    let buffers = array.buffers().iter().chain(array.nulls().map(|nulls| nulls.buffer()));
    let own = buffers.filter(|buffer| !body.contains(&buffer.as_ptr())).map(ArrowBuffer::len).sum::<usize>();
    let children = match array.data_type() {
        // All batches share the values of a dictionary.
        DataType::Dictionary(..) => 0,
        _ => array.child_data().iter().map(|child| own_bytes(child, body)).sum(),
    };
    NODE + own + children
}
