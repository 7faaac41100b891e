//! The records of a simple chunk: the sizes come first, then the records one after the other.

use std::ops::Range;

use super::super::content::Content;
use super::super::decompress::Codec;
use super::chunk::Chunk;
use super::layout::{Span, end_of, unbroken};
use crate::element::{Buffer, room};
use crate::error::Result;
use crate::source::units::Unit;
use crate::varint::varint;

/// Decoded records of a chunk.
pub(super) struct Records {
    /// End of each record in the values.
    ends: Vec<u64>,
    values: Values,
}

enum Values {
    /// Uncompressed, in the file: from byte `start` of the chunk at offset `begin` on.
    InFile {
        begin: u64,
        start: u64,
    },
    Decoded(Buffer),
}

impl Records {
    /// Decodes a chunk whose hashes were checked. Uncompressed values stay in the file if it `is_here`; otherwise they
    /// are copied, which saves a second fetch.
    ///
    /// # Errors
    /// Data, at the offset of the chunk, if its contents do not match its header; unsupported if the chunk is
    /// transposed and this build cannot decode it.
    pub(super) fn decode(chunk: &Chunk<'_>, is_here: bool) -> Result<Self> {
        if chunk.is_transposed()? {
            return transposed(chunk);
        }
        let (codec, sizes, values) = parts(chunk)?;
        let Some(codec) = codec else {
            let len = values.end - values.start;
            if len != chunk.decoded {
                return Err(chunk.fault(format!("{len} bytes of records, the header says {}", chunk.decoded)));
            }
            let ends = ends(chunk, &chunk.span.read(sizes))?;
            let values = match is_here {
                true => Values::InFile { begin: chunk.begin, start: values.start },
                false => Values::Decoded(copied(&chunk.span, values)),
            };
            return Ok(Self { ends, values });
        };
        let sizes = unpack(chunk, codec, sizes, "sizes", |size| size / 10 <= chunk.records)?;
        let ends = ends(chunk, &sizes)?;
        let values = unpack(chunk, codec, values, "records", |size| size == chunk.decoded)?;
        Ok(Self { ends, values: Values::Decoded(Buffer::from_vec(values)) })
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    fn range(&self, place: usize) -> Option<Range<u64>> {
        let end = *self.ends.get(place)?;
        Some(place.checked_sub(1).map_or(0, |before| self.ends[before])..end)
    }

    /// Returns the record at `place`.
    ///
    /// The record is a view of the file if it is uncompressed and no block header interrupts it. The only record of a
    /// compressed chunk is a view of the decoded bytes. Other records are copied, so a record never keeps its chunk
    /// alive.
    pub(super) fn record(&self, place: usize, file: &Content) -> Result<Option<Buffer>> {
        let Some(range) = self.range(place) else { return Ok(None) };
        match &self.values {
            Values::Decoded(values) if range.end - range.start == values.len() as u64 => Ok(Some(values.clone())),
            Values::Decoded(values) => {
                let bytes = values.as_bytes().get(range.start as usize..range.end as usize);
                Ok(bytes.map(Buffer::copy_from))
            }
            Values::InFile { begin, start } => in_file(file, *begin, start + range.start..start + range.end),
        }
    }
}

impl Unit for Records {
    fn memory(&self) -> usize {
        let values = if let Values::Decoded(values) = &self.values { values.len() } else { 0 };
        values + 8 * self.ends.len()
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn only(&self, rows: &[u32]) -> Option<Self> {
        let Values::Decoded(values) = &self.values else { return None };
        let range = |&row: &u32| self.range(row as usize).map(|range| range.start as usize..range.end as usize);
        let ranges: Vec<_> = rows.iter().map(range).collect::<Option<_>>()?;
        let mut copy = Vec::with_capacity(ranges.iter().map(ExactSizeIterator::len).sum());
        let mut ends = Vec::with_capacity(rows.len());
        for range in ranges {
            copy.extend_from_slice(values.as_bytes().get(range)?);
            ends.push(copy.len() as u64);
        }
        Some(Self { ends, values: Values::Decoded(Buffer::from_vec(copy)) })
    }
}

/// Returns bytes `range` of the chunk at offset `begin`.
fn in_file(file: &Content, begin: u64, range: Range<u64>) -> Result<Option<Buffer>> {
    if let Some(place) = unbroken(begin, range.clone()) {
        return file.read(place).map(Some);
    }
    let Some(end) = end_of(begin, range.end) else { return Ok(None) };
    let pieces = file.pieces(begin..end)?;
    let span = Span::new(&pieces, begin, range.end, u64::MAX);
    Ok(span.map(|span| copied(&span, range)))
}

/// Copies bytes `range` of the span.
fn copied(span: &Span<'_>, range: Range<u64>) -> Buffer {
    let mut bytes = room::room((range.end - range.start) as usize);
    span.pieces(range).for_each(|piece| bytes.extend_from_slice(piece));
    room::share(bytes)
}

#[cfg(feature = "riegeli")]
fn transposed(chunk: &Chunk<'_>) -> Result<Records> {
    let (ends, values) = super::transposed::decode(chunk)?;
    Ok(Records { ends, values: Values::Decoded(Buffer::from_vec(values)) })
}

#[cfg(not(feature = "riegeli"))]
fn transposed(chunk: &Chunk<'_>) -> Result<Records> {
    Err(crate::error::Error::unsupported(
        "a transposed chunk, which needs the feature `riegeli`, which this build lacks",
    )
    .offset(chunk.begin)
    .help("build with `--features riegeli`, or write the file without the option `transpose`"))
}

/// Returns the codec, if any, and the ranges of the sizes and of the records in the span.
fn parts(chunk: &Chunk<'_>) -> Result<(Option<Codec>, Range<u64>, Range<u64>)> {
    let data = chunk.data();
    let head = chunk.span.read(data.start..data.end.min(data.start + 11));
    let Some((&byte, rest)) = head.split_first() else { return Err(chunk.fault("an empty chunk of records")) };
    let codec = match byte {
        0 => None,
        b'b' => Some(Codec::Brotli),
        b's' => Some(Codec::Snappy),
        b'z' => Some(Codec::Zstd),
        _ => {
            return Err(chunk.fault(format!("compression {byte:#04x}, known are none, brotli, zstd and snappy")));
        }
    };
    let sizes = varint(rest).and_then(|(len, used)| {
        let start = data.start + 1 + used as u64;
        let end = start.checked_add(len)?;
        (end <= data.end).then_some(start..end)
    });
    let sizes = sizes.ok_or_else(|| chunk.fault("the sizes of the records reach over the end of the chunk"))?;
    let values = sizes.end..data.end;
    Ok((codec, sizes, values))
}

/// Decompresses a part, which begins with its decompressed size. `may_be` checks that size before the allocation.
fn unpack(
    chunk: &Chunk<'_>,
    codec: Codec,
    range: Range<u64>,
    what: &str,
    may_be: impl Fn(u64) -> bool,
) -> Result<Vec<u8>> {
    let bytes = chunk.span.read(range);
    let (size, used) = varint(&bytes).ok_or_else(|| chunk.fault(format!("no size of the {what}")))?;
    if !may_be(size) {
        let (records, decoded) = (chunk.records, chunk.decoded);
        let text = format!("{size} bytes of {what}, for {records} records of {decoded} bytes together");
        return Err(chunk.fault(text));
    }
    let packed = &bytes[used..];
    if packed.is_empty() && size == 0 {
        return Ok(Vec::new());
    }
    codec.unpack(packed, size).map_err(|e| chunk.fault(format!("the {what} cannot be decompressed: {e}")))
}

/// Returns the ends of the records. Their number and total size must match the header.
fn ends(chunk: &Chunk<'_>, mut sizes: &[u8]) -> Result<Vec<u64>> {
    if chunk.records > sizes.len() as u64 {
        return Err(chunk.fault(format!("{} records, and {} bytes of their sizes", chunk.records, sizes.len())));
    }
    let mut ends = Vec::with_capacity(chunk.records as usize);
    let mut end = 0u64;
    while !sizes.is_empty() {
        let next = varint(sizes).and_then(|(size, used)| Some((end.checked_add(size)?, used)));
        let (next, used) = next.ok_or_else(|| chunk.fault("a damaged size of a record"))?;
        (end, sizes) = (next, &sizes[used..]);
        ends.push(end);
    }
    if (ends.len() as u64, end) != (chunk.records, chunk.decoded) {
        let text =
            format!("{} records of {end} bytes, the header says {} of {}", ends.len(), chunk.records, chunk.decoded);
        return Err(chunk.fault(text));
    }
    Ok(ends)
}
