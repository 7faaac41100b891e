//! Places of the record batches and dictionaries in a file.

use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{self as ipc, Block, Endianness, MessageHeader, MetadataVersion, root_as_footer};
use arrow_schema::SchemaRef;

use super::frame::{self, Frame, Header, damaged};
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::source::contained::contained;
use crate::source::content::Content;

/// Headers of a file.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<Batch>,
    /// Lists of dictionaries that batches refer to. Within a list, a later dictionary may build on an earlier
    /// dictionary.
    pub(super) dictionaries: Vec<Arc<Vec<Dictionary>>>,
}

/// Place and properties of a record batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) frame: Frame,
    pub(super) rows: u64,
    pub(super) is_compressed: bool,
    /// Index of the batch's dictionaries in [`Layout::dictionaries`].
    pub(super) dictionaries: usize,
}

/// Place of a dictionary, or of an addition to a dictionary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dictionary {
    id: i64,
    pub(super) frame: Frame,
}

/// First and last bytes of a file.
const MAGIC: &[u8] = b"ARROW1";
/// Bytes after the footer: its length, and the magic number.
const TRAILER: u64 = 10;

/// Reads the headers of a file or a stream.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data), with the offset, if the file is damaged.
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for version 1 of Feather and for big-endian numbers.
pub(super) fn read(content: &Content) -> Result<Layout> {
    let head = content.read(0..content.len().min(8))?;
    match head.as_bytes() {
        [] => Err(Error::data("0 bytes: not even a schema").offset(0)),
        head if head.starts_with(MAGIC) => file(content),
        head if head.starts_with(b"FEA1") => {
            let text = "version 1 of Feather is not supported";
            let help = "rewrite it: `feather.write_feather(feather.read_table(path), path)` of `pyarrow`";
            Err(Error::unsupported(text).help(help).offset(0))
        }
        _ => stream(content),
    }
}

/// Reads a file, whose footer lists the messages.
fn file(content: &Content) -> Result<Layout> {
    let Some(trailer) = content.len().checked_sub(TRAILER).filter(|&at| at >= 8) else {
        return Err(Error::data(format!("{} bytes: the file is cut", content.len())).offset(content.len()));
    };
    let bytes = content.read(trailer..content.len())?;
    let (length, magic) = bytes.as_bytes().split_at(4);
    if magic != MAGIC {
        return Err(Error::data("does not end with ARROW1: the file is cut or damaged").offset(trailer + 4));
    }
    let length = u64::from(u32::from_le_bytes(length.try_into().unwrap_or_default()));
    let start = trailer.checked_sub(length).filter(|&start| start >= 8 && length > 0);
    let start = start.ok_or_else(|| {
        Error::data(format!("a footer of {length} bytes, but there is only room for {}", trailer - 8)).offset(trailer)
    })?;
    // Copied, because a mapped file may change between the check and the use.
    let footer = Buffer::copy_from(content.read(start..trailer)?.as_bytes());
    let at_footer = |e: Error| e.offset(start);
    let footer = root_as_footer(footer.as_bytes()).map_err(|e| at_footer(damaged("the footer is damaged", e)))?;
    let schema = footer.schema().ok_or_else(|| at_footer(Error::data("the footer has no schema")))?;
    let schema = read_schema(schema).map_err(at_footer)?;
    let blocks = || footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    content.fetch(&blocks().filter_map(header).collect::<Vec<_>>());
    let mut walk = Walk::new(schema);
    for block in footer.dictionaries().into_iter().flatten() {
        walk.block(content, block, MessageHeader::DictionaryBatch)?;
    }
    // All dictionaries apply to all batches: a file never replaces a dictionary.
    for block in footer.recordBatches().into_iter().flatten() {
        walk.block(content, block, MessageHeader::RecordBatch)?;
    }
    Ok(walk.layout)
}

/// Returns the place of a message's header, according to the footer.
fn header(block: &Block) -> Option<Range<u64>> {
    let start = u64::try_from(block.offset()).ok()?;
    Some(start..start.checked_add(u64::try_from(block.metaDataLength()).ok()?)?)
}

/// Reads a stream: a sequence of messages, beginning with the schema.
fn stream(content: &Content) -> Result<Layout> {
    let none = || Error::data("no message of Arrow begins here").offset(0);
    let (mut frame, header) = frame::read(content, 0)?.ok_or_else(none)?;
    let message = header.message().map_err(|e| e.offset(0))?;
    let schema = message.header_as_schema().ok_or_else(|| Error::data("the first message is no schema").offset(0))?;
    let mut walk = Walk::new(read_schema(schema).map_err(|e| e.offset(0))?);
    while let Some((next, header)) = frame::read(content, frame.end)? {
        walk.message(next, &header).map_err(|e| e.offset(next.start))?;
        frame = next;
    }
    Ok(walk.layout)
}

/// Returns the columns of a schema.
fn read_schema(schema: ipc::Schema<'_>) -> Result<SchemaRef> {
    if schema.endianness() != Endianness::Little {
        return Err(Error::unsupported("numbers lie in big-endian order"));
    }
    contained(|| try_fb_to_schema(schema).map(Arc::new).map_err(|e| damaged("the schema is damaged", e)))
}

/// State of the scan over the messages.
struct Walk {
    layout: Layout,
    /// True if a batch refers to the latest dictionaries, so that a replacement needs a new list.
    in_use: bool,
}

impl Walk {
    fn new(schema: SchemaRef) -> Self {
        let dictionaries = vec![Arc::default()];
        Self { layout: Layout { schema, batches: Vec::new(), dictionaries }, in_use: false }
    }

    /// Adds a message whose place and kind are in the footer.
    fn block(&mut self, content: &Content, block: &Block, kind: MessageHeader) -> Result<()> {
        let stated = block.offset();
        let damaged = || Error::data(format!("the footer names an Arrow message at byte {stated}"));
        let start = u64::try_from(stated).ok().filter(|&start| start < content.len()).ok_or_else(damaged)?;
        let (frame, header) = frame::read(content, start)?.ok_or_else(|| damaged().offset(start))?;
        let message = header.message().map_err(|e| e.offset(start))?;
        let metadata = u64::try_from(block.metaDataLength()).ok();
        if message.header_type() != kind || metadata != Some(frame.body - frame.start) {
            return Err(Error::data("the footer names another message than the file has").offset(start));
        }
        self.message(frame, &header).map_err(|e| e.offset(start))
    }

    fn message(&mut self, frame: Frame, header: &Header) -> Result<()> {
        let message = header.message()?;
        if message.version() < MetadataVersion::V4 {
            return Err(Error::unsupported("written before version 0.8 of Arrow, in a form that is no longer read"));
        }
        if let Some(batch) = message.header_as_record_batch() {
            let rows = u64::try_from(batch.length());
            let rows = rows.map_err(|_| Error::data(format!("a record batch of {} rows", batch.length())))?;
            let dictionaries = self.layout.dictionaries.len() - 1;
            let is_compressed = batch.compression().is_some();
            self.layout.batches.push(Batch { frame, rows, is_compressed, dictionaries });
            self.in_use = true;
        } else if let Some(batch) = message.header_as_dictionary_batch() {
            self.dictionary(Dictionary { id: batch.id(), frame }, batch.isDelta());
        } else {
            let kind = message.header_type().variant_name().unwrap_or("of an unknown kind");
            return Err(Error::data(format!("a message {kind} where record batches are")));
        }
        Ok(())
    }

    /// Adds a dictionary. A delta does not affect the batches before it. A replacement does, so it starts a new list if
    /// a batch uses the current list.
    fn dictionary(&mut self, dictionary: Dictionary, is_delta: bool) {
        let known = &mut self.layout.dictionaries;
        let latest = known.len() - 1;
        let replaces = !is_delta && known[latest].iter().any(|other| other.id == dictionary.id);
        if replaces && self.in_use {
            let others = known[latest].iter().filter(|other| other.id != dictionary.id);
            let next = others.copied().chain([dictionary]).collect();
            known.push(Arc::new(next));
            self.in_use = false;
        } else {
            let latest = Arc::make_mut(&mut known[latest]);
            if replaces {
                latest.retain(|other| other.id != dictionary.id);
            }
            latest.push(dictionary);
        }
    }
}
