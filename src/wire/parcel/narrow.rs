//! Integers of 4 and 8 bytes, stored in as few bytes as their values need.
//!
//! The bytes are split into pieces of 512. Each piece is examined separately, as 128 integers of 4 bytes and as 64 integers of
//! 8 bytes. If the integers are close together, the piece stores their minimum and the difference of each from it. If each is
//! slightly greater than its predecessor, the piece stores the first integer and the steps. Steps are shorter for cumulative
//! lengths and positions. Ids below 65,536 thus take 2 bytes, and zeros take none. The boundaries of arrays need not be known.
//! A piece that spans two arrays is narrowed if both are alike, and is stored unchanged otherwise.
//!
//! The output starts with a byte per piece for its kind. The pieces follow, and then the bytes after the last whole piece.

use super::{Damaged, Result};

/// Bytes of a piece. Longer pieces span two arrays more often; shorter pieces have more overhead per integer.
const PIECE: usize = 512;
/// Bytes of the base integer at the start of a narrowed piece.
const BASE: usize = 8;

/// The kind of a piece that is stored unchanged.
const AS_IT_IS: u8 = 0;
/// Bits of other kinds: narrowed; integers of 8 bytes; steps; and two bits for the width.
const NARROWED: u8 = 0x80;
const WIDE: u8 = 0x08;
const STEPS: u8 = 0x04;
const WIDTHS: [usize; 4] = [0, 1, 2, 4];

/// An integer of a piece, as bits.
trait Integer: Copy + Default + bytemuck::Pod {
    /// The kind of pieces of this integer.
    const KIND: u8;

    fn of(wide: u64) -> Self;
    fn wide(self) -> u64;
    fn less(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    /// Converts from the little-endian bytes in memory, and back.
    fn little(self) -> Self;
    /// Returns the signed minimum, the difference between maximum and minimum, and the bitwise or of the steps between integers.
    fn look(integers: &[Self]) -> (Self, Self, Self);
}

macro_rules! integer {
    ($bits:ty, $signed:ty, $kind:expr) => {
        impl Integer for $bits {
            const KIND: u8 = $kind;

            #[inline]
            fn of(wide: u64) -> Self {
                wide as Self
            }

            #[inline]
            fn wide(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn less(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn little(self) -> Self {
                self.to_le()
            }

            // Loops without iterators, here and below, are many times faster in unoptimised builds, such as tests. They are no
            // slower in optimised builds.
            #[inline]
            fn look(integers: &[Self]) -> (Self, Self, Self) {
                let mut before = integers.first().copied().unwrap_or_default();
                let (mut least, mut most, mut steps) = (before as $signed, before as $signed, 0);
                let mut at = 0;
                while at < integers.len() {
                    let integer = integers[at];
                    let signed = integer as $signed;
                    least = if signed < least { signed } else { least };
                    most = if signed > most { signed } else { most };
                    steps |= integer.wrapping_sub(before);
                    before = integer;
                    at += 1;
                }
                (least as Self, most.wrapping_sub(least) as Self, steps)
            }
        }
    };
}

integer!(u32, i32, 0);
integer!(u64, i64, WIDE);

/// A way to narrow a piece.
#[derive(Clone, Copy)]
struct Narrowest {
    kind: u8,
    base: u64,
    len: usize,
}

/// Appends `section` to `out`, narrowed.
pub(super) fn write(section: &[u8], out: &mut Vec<u8>) {
    let (pieces, rest) = section.as_chunks::<PIECE>();
    let kinds = out.len();
    out.resize(kinds + pieces.len(), AS_IT_IS);
    for (number, piece) in pieces.iter().enumerate() {
        out[kinds + number] = write_piece(piece, out);
    }
    out.extend_from_slice(rest);
}

/// Appends a piece to `out`, and returns its kind.
fn write_piece(piece: &[u8; PIECE], out: &mut Vec<u8>) -> u8 {
    let mut short: [u32; PIECE / 4] = bytemuck::pod_read_unaligned(piece);
    let mut long: [u64; PIECE / 8] = bytemuck::pod_read_unaligned(piece);
    if cfg!(target_endian = "big") {
        short.iter_mut().for_each(|integer| *integer = integer.little());
        long.iter_mut().for_each(|integer| *integer = integer.little());
    }
    let as_it_is = Narrowest { kind: AS_IT_IS, base: 0, len: PIECE };
    let found = narrowest(&long, narrowest(&short, as_it_is));
    match found.kind {
        AS_IT_IS => out.extend_from_slice(piece),
        kind if kind & WIDE == 0 => write_integers(&mut short, found, out),
        _ => write_integers(&mut long, found, out),
    }
    found.kind
}

/// Chooses between minimum and differences, steps, and the best form `found` so far: the shortest.
fn narrowest<I: Integer>(integers: &[I], found: Narrowest) -> Narrowest {
    let (least, most, steps) = I::look(integers);
    let found = shorter::<I>(integers.len(), most, least, 0, found);
    shorter::<I>(integers.len(), steps, integers[0], STEPS, found)
}

/// Returns the form of `count` integers up to `most` relative to a base, or `found` if that is not longer.
fn shorter<I: Integer>(count: usize, most: I, base: I, kind: u8, found: Narrowest) -> Narrowest {
    let width = match most.wide() {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 3,
        _ => return found,
    };
    let len = BASE + count * WIDTHS[width];
    if len >= found.len {
        return found;
    }
    Narrowest { kind: NARROWED | I::KIND | kind | width as u8, base: base.wide(), len }
}

fn write_integers<I: Integer>(integers: &mut [I], found: Narrowest, out: &mut Vec<u8>) {
    out.extend_from_slice(&found.base.to_le_bytes());
    let (base, steps) = (I::of(found.base), found.kind & STEPS != 0);
    let (mut before, mut at) = (base, 0);
    while at < integers.len() {
        let integer = integers[at];
        integers[at] = integer.less(before);
        before = if steps { integer } else { base };
        at += 1;
    }
    match WIDTHS[usize::from(found.kind & 3)] {
        1 => store::<I, u8>(integers, out, |integer| integer.wide() as u8),
        2 => store::<I, u16>(integers, out, |integer| (integer.wide() as u16).to_le()),
        4 => store::<I, u32>(integers, out, |integer| (integer.wide() as u32).to_le()),
        _ => {}
    }
}

fn store<I: Integer, N: bytemuck::Pod + Default>(integers: &[I], out: &mut Vec<u8>, narrow: impl Fn(I) -> N) {
    let mut space = [N::default(); PIECE / 4];
    let (narrowed, mut at) = (&mut space[..integers.len()], 0);
    while at < integers.len() {
        narrowed[at] = narrow(integers[at]);
        at += 1;
    }
    out.extend_from_slice(bytemuck::cast_slice(narrowed));
}

/// Reads the output of [`write()`] for a section of that length.
pub(super) fn read(bytes: &[u8], section: &mut [u8]) -> Result<()> {
    let (pieces, last) = section.as_chunks_mut::<PIECE>();
    let (kinds, mut bytes) = bytes.split_at_checked(pieces.len()).ok_or(Damaged::Cut)?;
    for (&kind, piece) in kinds.iter().zip(pieces) {
        bytes = match kind {
            AS_IT_IS => {
                let (whole, rest) = bytes.split_first_chunk::<PIECE>().ok_or(Damaged::Cut)?;
                *piece = *whole;
                rest
            }
            kind if kind & !(WIDE | STEPS | 3) != NARROWED => return Err(Damaged::Width(kind)),
            kind if kind & WIDE == 0 => read_piece::<u32, { PIECE / 4 }>(kind, bytes, piece)?,
            kind => read_piece::<u64, { PIECE / 8 }>(kind, bytes, piece)?,
        };
    }
    match bytes.len() {
        len if len < last.len() => Err(Damaged::Cut),
        len if len > last.len() => Err(Damaged::TooLong),
        _ => {
            last.copy_from_slice(bytes);
            Ok(())
        }
    }
}

/// Reads a piece of `N` integers, and returns the remaining bytes.
fn read_piece<'a, I: Integer, const N: usize>(kind: u8, bytes: &'a [u8], piece: &mut [u8; PIECE]) -> Result<&'a [u8]> {
    let (base, bytes) = bytes.split_first_chunk::<BASE>().ok_or(Damaged::Cut)?;
    let base = I::of(u64::from_le_bytes(*base));
    let width = WIDTHS[usize::from(kind & 3)];
    if width >= size_of::<I>() {
        return Err(Damaged::Width(kind));
    }
    let (bytes, rest) = bytes.split_at_checked(N * width).ok_or(Damaged::Cut)?;
    let mut integers = [I::default(); N];
    match width {
        1 => load::<I, u8, N>(bytes, &mut integers, u64::from),
        2 => load::<I, u16, N>(bytes, &mut integers, |narrow| u64::from(u16::from_le(narrow))),
        4 => load::<I, u32, N>(bytes, &mut integers, |narrow| u64::from(u32::from_le(narrow))),
        _ => {}
    }
    let (steps, mut before, mut at) = (kind & STEPS != 0, base, 0);
    while at < N {
        let integer = integers[at].plus(before);
        before = if steps { integer } else { base };
        integers[at] = integer.little();
        at += 1;
    }
    piece.copy_from_slice(bytemuck::cast_slice(&integers));
    Ok(rest)
}

/// Widens `N` narrow integers.
fn load<I: Integer, W: bytemuck::Pod + Default, const N: usize>(
    bytes: &[u8],
    integers: &mut [I; N],
    wide: impl Fn(W) -> u64,
) {
    let mut narrow = [W::default(); N];
    bytemuck::cast_slice_mut::<W, u8>(&mut narrow).copy_from_slice(bytes);
    let mut at = 0;
    while at < N {
        integers[at] = I::of(wide(narrow[at]));
        at += 1;
    }
}
