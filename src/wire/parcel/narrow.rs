//! Integers of 4 and 8 bytes in as few bytes as their values need.
//!
//! The bytes are taken in pieces of 512, and each piece by itself is looked at as 128 integers of 4 bytes and as 64 of 8. Where they lie close together, there stands the
//! least of them and how much greater each is; where each is a little greater than the one before it, the first and the
//! steps, which is shorter for lengths that add up and positions. So ids below 65,536 take 2 bytes, and zeros none, and no one has to say where arrays
//! begin: a piece that is a part of one and a part of another is narrowed if both are alike, or stays as it is.
//!
//! First a byte for every piece says which of that it is, then come the pieces one after the other, then what is left behind the last whole one.

use super::{Damaged, Result};

/// Bytes of a piece. Longer ones would more often have two arrays in them, and shorter ones more bytes beside the integers.
const PIECE: usize = 512;
/// Bytes of the integer in front of those that are relative to it.
const BASE: usize = 8;

/// The kind of a piece that stays as it is.
const AS_IT_IS: u8 = 0;
/// The bits of other kinds: that it is narrowed; integers of 8 bytes; steps; and two bits for the width.
const NARROWED: u8 = 0x80;
const WIDE: u8 = 0x08;
const STEPS: u8 = 0x04;
const WIDTHS: [usize; 4] = [0, 1, 2, 4];

/// An integer of a piece, as bits.
trait Integer: Copy + Default {
    /// The kind of pieces of these.
    const KIND: u8;
    const BYTES: usize;

    fn of(wide: u64) -> Self;
    fn wide(self) -> u64;
    fn less(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    /// The lesser and the greater of two with a sign.
    fn least(self, other: Self) -> Self;
    fn most(self, other: Self) -> Self;
    fn all_bits(self, other: Self) -> Self;
    fn load(bytes: &[u8], into: &mut [Self]);
    fn store(from: &[Self], bytes: &mut [u8]);
}

macro_rules! integer {
    ($bits:ty, $signed:ty, $bytes:literal, $kind:expr) => {
        impl Integer for $bits {
            const KIND: u8 = $kind;
            const BYTES: usize = $bytes;

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
            fn least(self, other: Self) -> Self {
                (self as $signed).min(other as $signed) as Self
            }

            #[inline]
            fn most(self, other: Self) -> Self {
                (self as $signed).max(other as $signed) as Self
            }

            #[inline]
            fn all_bits(self, other: Self) -> Self {
                self | other
            }

            #[inline]
            fn load(bytes: &[u8], into: &mut [Self]) {
                for (integer, bytes) in into.iter_mut().zip(bytes.as_chunks::<$bytes>().0) {
                    *integer = Self::from_le_bytes(*bytes);
                }
            }

            #[inline]
            fn store(from: &[Self], bytes: &mut [u8]) {
                for (integer, bytes) in from.iter().zip(bytes.as_chunks_mut::<$bytes>().0) {
                    *bytes = integer.to_le_bytes();
                }
            }
        }
    };
}

integer!(u32, i32, 4, 0);
integer!(u64, i64, 8, WIDE);

/// A way to narrow a piece.
#[derive(Clone, Copy)]
struct Narrowest {
    kind: u8,
    base: u64,
    len: usize,
}

/// Writes `section` narrowed behind what is in `out`.
pub(super) fn write(section: &[u8], out: &mut Vec<u8>) {
    let (pieces, rest) = section.as_chunks::<PIECE>();
    let kinds = out.len();
    out.resize(kinds + pieces.len(), AS_IT_IS);
    for (number, piece) in pieces.iter().enumerate() {
        out[kinds + number] = write_piece(piece, out);
    }
    out.extend_from_slice(rest);
}

/// Writes a piece, and says of what kind it is.
fn write_piece(piece: &[u8; PIECE], out: &mut Vec<u8>) -> u8 {
    let (mut short, mut long) = ([0u32; PIECE / 4], [0u64; PIECE / 8]);
    u32::load(piece, &mut short);
    u64::load(piece, &mut long);
    let as_it_is = Narrowest { kind: AS_IT_IS, base: 0, len: PIECE };
    let found = steps(&long, steps(&short, apart(&long, apart(&short, as_it_is))));
    match found.kind {
        AS_IT_IS => out.extend_from_slice(piece),
        kind if kind & WIDE == 0 => write_integers(&mut short, found, out),
        _ => write_integers(&mut long, found, out),
    }
    found.kind
}

/// The integers as how much greater each is than the least, if that is shorter than what was `found` so far.
fn apart<I: Integer>(integers: &[I], found: Narrowest) -> Narrowest {
    let Some(&first) = integers.first() else { return found };
    let (least, most) = integers.iter().fold((first, first), |(least, most), &i| (least.least(i), most.most(i)));
    shorter::<I>(integers.len(), most.less(least), least, 0, found)
}

/// The integers as steps, if that is shorter than what was `found` so far.
fn steps<I: Integer>(integers: &[I], found: Narrowest) -> Narrowest {
    // Where a byte each is what they take already, steps cannot be shorter.
    if found.len <= BASE + integers.len() {
        return found;
    }
    let Some(&first) = integers.first() else { return found };
    let bits = integers.windows(2).fold(I::default(), |bits, pair| bits.all_bits(pair[1].less(pair[0])));
    shorter::<I>(integers.len(), bits, first, STEPS, found)
}

/// So many integers up to `most` behind a base, or what was `found` if that is no longer.
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
    let base = I::of(found.base);
    out.extend_from_slice(&found.base.to_le_bytes());
    if found.kind & STEPS == 0 {
        integers.iter_mut().for_each(|integer| *integer = integer.less(base));
    } else {
        for at in (1..integers.len()).rev() {
            integers[at] = integers[at].less(integers[at - 1]);
        }
        integers[0] = I::default();
    }
    let start = out.len();
    out.resize(start + found.len - BASE, 0);
    let bytes = &mut out[start..];
    match WIDTHS[usize::from(found.kind & 3)] {
        1 => bytes.iter_mut().zip(&*integers).for_each(|(byte, integer)| *byte = integer.wide() as u8),
        2 => store(bytes, integers, |integer| (integer.wide() as u16).to_le_bytes()),
        4 => store(bytes, integers, |integer| (integer.wide() as u32).to_le_bytes()),
        _ => {}
    }
}

fn store<I: Integer, const N: usize>(bytes: &mut [u8], integers: &[I], as_bytes: impl Fn(&I) -> [u8; N]) {
    bytes.as_chunks_mut().0.iter_mut().zip(integers).for_each(|(bytes, integer)| *bytes = as_bytes(integer));
}

/// Reads what [`write()`] wrote of a section of that length.
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

/// Reads a piece of `N` integers, and returns what is behind it.
fn read_piece<'a, I: Integer, const N: usize>(kind: u8, bytes: &'a [u8], piece: &mut [u8; PIECE]) -> Result<&'a [u8]> {
    let (base, bytes) = bytes.split_first_chunk::<BASE>().ok_or(Damaged::Cut)?;
    let base = I::of(u64::from_le_bytes(*base));
    let width = WIDTHS[usize::from(kind & 3)];
    if width >= I::BYTES {
        return Err(Damaged::Width(kind));
    }
    let (bytes, rest) = bytes.split_at_checked(N * width).ok_or(Damaged::Cut)?;
    let mut integers = [I::default(); N];
    match width {
        1 => integers.iter_mut().zip(bytes).for_each(|(integer, byte)| *integer = I::of(u64::from(*byte))),
        2 => load(bytes, &mut integers, |bytes| u64::from(u16::from_le_bytes(bytes))),
        4 => load(bytes, &mut integers, |bytes| u64::from(u32::from_le_bytes(bytes))),
        _ => {}
    }
    if kind & STEPS == 0 {
        integers.iter_mut().for_each(|integer| *integer = integer.plus(base));
    } else {
        let mut before = base;
        for integer in &mut integers {
            before = before.plus(*integer);
            *integer = before;
        }
    }
    I::store(&integers, piece);
    Ok(rest)
}

fn load<I: Integer, const N: usize>(bytes: &[u8], integers: &mut [I], wide: impl Fn([u8; N]) -> u64) {
    integers.iter_mut().zip(bytes.as_chunks().0).for_each(|(integer, bytes)| *integer = I::of(wide(*bytes)));
}
