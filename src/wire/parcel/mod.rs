//! Parcels: blocks of bytes, packed for a link that is slower than packing.
//!
//! A parcel starts with a magic word and the unpacked length, two words of 8 bytes, little-endian. Sections of 256 KiB
//! follow. The last section may be shorter. A section is narrowed first ([`narrow`]: integers with small values take 0, 1,
//! 2 or 4 bytes). The result is compressed with LZ4. Each step is applied only if it shortens the section. A section starts
//! with two words of 4 bytes: its narrowed length and its compressed length. The highest bit of each marks that the step was
//! applied.
//!
//! Packing does not depend on the meaning of the bytes, and unpacking restores any bytes exactly. A parcel comes from another
//! machine: every length is checked, and no allocation relies on a length from the parcel.
//!
//! The module uses nothing of this crate: `benches/parcel.rs` compiles it separately.

mod narrow;

use std::fmt;

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use serde::{Deserialize, Serialize};

/// Bytes of a section. A section and its narrowed form fit in the private cache of a core.
const SECTION: usize = 256 << 10;
/// The first word, which identifies the format and its version.
const MAGIC: [u8; 8] = *b"gmparc\0\x01";
const HEADER: usize = 16;
/// The bit of a length that marks a shortened section.
const DONE: u32 = 1 << 31;

/// Encoding of a block on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Packing {
    /// Not packed.
    #[default]
    Plain,
    /// Integers narrowed.
    Narrow,
    /// Integers narrowed, then compressed with LZ4.
    Lz4,
}

/// Reason why a parcel cannot be unpacked. `Display` completes "a packed block ".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// The parcel ends early.
    Cut,
    /// Bytes follow the end of the parcel.
    TooLong,
    /// The parcel does not start with the magic word.
    Magic,
    /// Unpacked length of the parcel, which differs from the requested length.
    Length(u64),
    /// The lengths of a section are invalid.
    Section(u32, u32),
    /// LZ4 cannot decompress a section.
    Lz4,
    /// The width of integers is invalid.
    Width(u8),
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("is cut short"),
            Self::TooLong => f.write_str("continues after its end"),
            Self::Magic => f.write_str("is something else"),
            Self::Length(len) => write!(f, "declares a length of {len} bytes"),
            Self::Section(inner, outer) => write!(f, "has a section of {inner:#x} bytes in {outer:#x}"),
            Self::Lz4 => f.write_str("has a section that LZ4 cannot decompress"),
            Self::Width(tag) => write!(f, "has integers of the unknown kind {tag:#04x}"),
        }
    }
}

type Result<T, E = Damaged> = std::result::Result<T, E>;

/// Packs a block. Returns `None` if the parcel exceeds `most` bytes or saves too little to be worth unpacking.
pub(crate) fn pack(block: &[u8], packing: Packing, most: usize) -> Option<Vec<u8>> {
    let most = most.min(block.len() - block.len() / 16);
    if packing == Packing::Plain || most < HEADER {
        return None;
    }
    let mut parcel = Vec::with_capacity(most / 2 + HEADER);
    parcel.extend_from_slice(&MAGIC);
    parcel.extend_from_slice(&(block.len() as u64).to_le_bytes());
    let mut lz4 = (packing == Packing::Lz4).then(Lz4::default);
    let mut narrowed = Vec::new();
    for section in block.chunks(SECTION) {
        narrowed.clear();
        narrow::write(section, &mut narrowed);
        let (inner, was_narrowed) = if narrowed.len() < section.len() { (&narrowed[..], DONE) } else { (section, 0) };
        let packed = lz4.as_mut().and_then(|lz4| lz4.pack(inner));
        let (outer, was_packed) = packed.map_or((inner, 0), |packed| (packed, DONE));
        // Neither is longer than a section.
        for word in [inner.len() as u32 | was_narrowed, outer.len() as u32 | was_packed] {
            parcel.extend_from_slice(&word.to_le_bytes());
        }
        parcel.extend_from_slice(outer);
        if parcel.len() > most {
            return None;
        }
    }
    Some(parcel)
}

/// Memory of LZ4, reused for all sections.
struct Lz4 {
    table: CompressTable,
    space: Vec<u8>,
}

impl Default for Lz4 {
    fn default() -> Self {
        Self { table: CompressTable::large(), space: vec![0; get_maximum_output_size(SECTION)] }
    }
}

impl Lz4 {
    /// Compresses the bytes. Returns `None` if that saves too little to be worth unpacking.
    fn pack(&mut self, bytes: &[u8]) -> Option<&[u8]> {
        let len = compress_into_with_table(bytes, &mut self.space, &mut self.table).ok()?;
        (len < bytes.len() - bytes.len() / 16).then(|| &self.space[..len])
    }
}

/// Unpacks a parcel into `block`, whose length must be that of the packed block.
///
/// # Errors
/// If the parcel is not a valid output of [`pack`] for a block of that length. The contents of `block` are then unspecified.
pub(crate) fn unpack(parcel: &[u8], block: &mut [u8]) -> Result<()> {
    let (magic, rest) = parcel.split_first_chunk::<8>().ok_or(Damaged::Cut)?;
    let (len, mut rest) = rest.split_first_chunk::<8>().ok_or(Damaged::Cut)?;
    if *magic != MAGIC {
        return Err(Damaged::Magic);
    }
    let len = u64::from_le_bytes(*len);
    if len != block.len() as u64 {
        return Err(Damaged::Length(len));
    }
    let mut space = vec![0; SECTION.min(block.len())];
    for section in block.chunks_mut(SECTION) {
        rest = unpack_section(rest, section, &mut space)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(Damaged::TooLong) }
}

/// Unpacks the first section of `rest`, and returns the remaining bytes. `space` has the size of a section.
fn unpack_section<'a>(rest: &'a [u8], section: &mut [u8], space: &mut [u8]) -> Result<&'a [u8]> {
    let (inner, rest) = rest.split_first_chunk::<4>().ok_or(Damaged::Cut)?;
    let (outer, rest) = rest.split_first_chunk::<4>().ok_or(Damaged::Cut)?;
    let (inner, outer) = (u32::from_le_bytes(*inner), u32::from_le_bytes(*outer));
    let (narrowed, packed) = (inner & DONE != 0, outer & DONE != 0);
    let (inner_len, outer_len) = ((inner & !DONE) as usize, (outer & !DONE) as usize);
    let inner_fits = if narrowed { inner_len < section.len() } else { inner_len == section.len() };
    let outer_fits = if packed { outer_len < inner_len } else { outer_len == inner_len };
    if !inner_fits || !outer_fits {
        return Err(Damaged::Section(inner, outer));
    }
    let (bytes, rest) = rest.split_at_checked(outer_len).ok_or(Damaged::Cut)?;
    match (packed, narrowed) {
        (false, false) => section.copy_from_slice(bytes),
        (false, true) => narrow::read(bytes, section)?,
        (true, false) => unpack_lz4(bytes, section)?,
        (true, true) => {
            let space = &mut space[..inner_len];
            unpack_lz4(bytes, space)?;
            narrow::read(space, section)?;
        }
    }
    Ok(rest)
}

fn unpack_lz4(bytes: &[u8], out: &mut [u8]) -> Result<()> {
    match decompress_into(bytes, out) {
        Ok(len) if len == out.len() => Ok(()),
        _ => Err(Damaged::Lz4),
    }
}
