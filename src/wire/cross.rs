//! The trait of items that cross from a worker to the parent.

use super::input::In;
use super::output::{Out, Stop};
use super::rows::AsRows;
use crate::element::Padded;
use crate::error::Result;

/// An item that can be written to an extent and read back.
pub(crate) trait Cross: Sized + Send + 'static {
    /// Number that distinguishes types, so that a slot of another type is detected.
    const KIND: u32;

    /// Conversion of items of this type to rows, if they support it.
    const ROWS: Option<AsRows<Self>> = None;

    /// Writes one word or more.
    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop>;

    /// Reads the output of [`write`](Self::write). The input is not trusted.
    fn read(from: &mut In<'_>) -> Result<Self>;

    /// Writes several items, each as one word or more. Their number is not written.
    fn write_all(items: &[Self], out: &mut Out<'_>) -> Result<(), Stop> {
        items.iter().try_for_each(|item| item.write(out))
    }

    /// Reads the output of [`write_all`](Self::write_all).
    fn read_all(len: usize, from: &mut In<'_>) -> Result<Vec<Self>> {
        from.claim(len)?;
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            items.push(Self::read(from)?);
        }
        Ok(items)
    }
}

macro_rules! cross_numbers {
    ($($kind:literal $type:ty as $bits:ty),* $(,)?) => {
        $(impl Cross for $type {
            const KIND: u32 = $kind;

            #[inline]
            fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
                out.word(<$bits>::from_le_bytes(self.to_le_bytes()).into())
            }

            #[inline]
            fn read(from: &mut In<'_>) -> Result<Self> {
                let word = from.word()?;
                let bits = <$bits>::try_from(word).map_err(|_| from.damaged(format!("a number of kind {} is {word:#x}", $kind)))?;
                Ok(Self::from_le_bytes(bits.to_le_bytes()))
            }

            fn write_all(items: &[Self], out: &mut Out<'_>) -> Result<(), Stop> {
                out.bytes(align_of::<Self>(), bytemuck::cast_slice(items))
            }

            fn read_all(len: usize, from: &mut In<'_>) -> Result<Vec<Self>> {
                let bytes = len.checked_mul(size_of::<Self>());
                let bytes = bytes.ok_or_else(|| from.damaged(format!("{len} numbers have no size")))?;
                from.copied(bytes, bytemuck::pod_collect_to_vec)
            }
        })*
    };
}
cross_numbers!(2 u8 as u8, 3 i8 as u8, 4 u16 as u16, 5 i16 as u16, 6 u32 as u32, 7 i32 as u32, 8 u64 as u64, 9 i64 as u64,
    10 f32 as u32, 11 f64 as u64);

impl Cross for usize {
    const KIND: u32 = 12;

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        out.word(*self as u64)
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        from.length()
    }
}

impl Cross for bool {
    const KIND: u32 = 13;

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        out.word(u64::from(*self))
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        match from.word()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(from.damaged(format!("a truth value is {other}"))),
        }
    }
}

impl Cross for String {
    const KIND: u32 = 14;

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        out.text(self)
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        from.text(str::to_owned)
    }
}

/// Returns the kind of a type with one parameter.
const fn of(outer: u32, inner: u32) -> u32 {
    // Multipliers of MurmurHash3, by Austin Appleby. A test checks that the types of the list have distinct kinds.
    (outer.wrapping_mul(0x85eb_ca6b).rotate_left(13) ^ inner).wrapping_mul(0xc2b2_ae35)
}

impl<T: Cross> Cross for Vec<T> {
    const KIND: u32 = of(32, T::KIND);

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        out.enter()?;
        out.word(self.len() as u64)?;
        T::write_all(self, out)?;
        out.leave();
        Ok(())
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        from.enter()?;
        let len = from.length()?;
        let items = T::read_all(len, from)?;
        from.leave();
        Ok(items)
    }
}

impl<B: Cross> Cross for Padded<B> {
    const KIND: u32 = of(33, B::KIND);

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        out.word(self.real as u64)?;
        out.word(self.size as u64)?;
        self.batch.write(out)
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        let (real, size) = sizes(from)?;
        Ok(Self { batch: B::read(from)?, real, size })
    }
}

/// Reads the number of real elements of a batch and its size.
fn sizes(from: &mut In<'_>) -> Result<(usize, usize)> {
    let (real, size) = (from.length()?, from.length()?);
    if real > size {
        return Err(from.damaged(format!("{real} elements of a batch of {size} are real")));
    }
    Ok((real, size))
}

impl<A: Cross, B: Cross> Cross for (A, B) {
    const KIND: u32 = of(of(34, A::KIND), B::KIND);

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        self.0.write(out)?;
        self.1.write(out)
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        Ok((A::read(from)?, B::read(from)?))
    }
}
