//! Casts of numbers to another type: the type declared in a schema, or the common type of a column in several files.

use half::{bf16, f16};

use super::{Array, DType};

/// A number of any type.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

/// Casts an array to another type. Integers must stay exact; floats round to the nearest value. `None` if an integer
/// does not fit or would change, or if a finite float would become infinite.
pub(crate) fn cast(array: &Array, to: DType) -> Option<Array> {
    let mut cast = Array::builder(to, array.shape()).ok()?;
    let (from, width) = (array.dtype(), to.size());
    let numbers = array.bytes().chunks_exact(from.size());
    for (number, out) in numbers.zip(cast.bytes_mut().chunks_exact_mut(width)) {
        cast_number(number, from, to, out)?;
    }
    Some(cast.freeze())
}

/// Writes the number in `bytes` to `out` as type `to`, by the rules of [`cast`].
pub(crate) fn cast_number(bytes: &[u8], from: DType, to: DType, out: &mut [u8]) -> Option<()> {
    put(read(bytes, from)?, to, out)
}

fn read(bytes: &[u8], dtype: DType) -> Option<Number> {
    Some(match dtype {
        DType::Bool => Number::Whole(i128::from(*bytes.first()?)),
        DType::F16 => Number::Float(f16::from_le_bytes(bytes.try_into().ok()?).to_f64()),
        DType::BF16 => Number::Float(bf16::from_le_bytes(bytes.try_into().ok()?).to_f64()),
        DType::F32 => Number::Float(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        DType::F64 => Number::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        whole => Number::Whole(whole.whole_reader()?(bytes)),
    })
}

fn put(number: Number, to: DType, out: &mut [u8]) -> Option<()> {
    macro_rules! whole {
        ($type:ty) => {
            out.copy_from_slice(&<$type>::try_from(as_whole(number)?).ok()?.to_le_bytes())
        };
    }
    macro_rules! float {
        ($round:expr, $back:expr) => {{
            let rounded = $round(as_float(number));
            if !is_kept(number, $back(rounded)) {
                return None;
            }
            out.copy_from_slice(&rounded.to_le_bytes());
        }};
    }
    match to {
        DType::Bool => out[0] = u8::try_from(as_whole(number)?).ok().filter(|&bit| bit < 2)?,
        DType::U8 => whole!(u8),
        DType::I8 => whole!(i8),
        DType::U16 => whole!(u16),
        DType::I16 => whole!(i16),
        DType::U32 => whole!(u32),
        DType::I32 => whole!(i32),
        DType::U64 => whole!(u64),
        DType::I64 => whole!(i64),
        DType::F16 => float!(f16::from_f64, f16::to_f64),
        DType::BF16 => float!(bf16::from_f64, bf16::to_f64),
        DType::F32 => float!(|number: f64| number as f32, f64::from),
        DType::F64 => float!(|number: f64| number, |number: f64| number),
    }
    Some(())
}

/// Returns the number as an integer, if it has no fraction.
fn as_whole(number: Number) -> Option<i128> {
    match number {
        Number::Whole(number) => Some(number),
        Number::Float(number) => {
            let whole = number as i128;
            (whole as f64 == number && number.abs() < 1e20).then_some(whole)
        }
    }
}

fn as_float(number: Number) -> f64 {
    match number {
        Number::Whole(number) => number as f64,
        Number::Float(number) => number,
    }
}

/// Returns true if `rounded` is an acceptable cast of `number`.
fn is_kept(number: Number, rounded: f64) -> bool {
    match number {
        Number::Whole(number) => rounded as i128 == number,
        Number::Float(number) => rounded.is_finite() || !number.is_finite(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(array: Array, to: DType) -> Option<Array> {
        cast(&array, to)
    }

    #[test]
    fn whole_numbers_are_kept_or_refused() {
        assert_eq!(one(Array::scalar(7i64), DType::F64), Some(Array::scalar(7f64)));
        assert_eq!(one(Array::scalar(1i64 << 53), DType::F64), Some(Array::scalar((1i64 << 53) as f64)));
        assert_eq!(one(Array::scalar((1i64 << 53) + 1), DType::F64), None);
        assert_eq!(one(Array::scalar(-1i64), DType::U8), None);
        assert_eq!(one(Array::scalar(u64::MAX), DType::I64), None);
        assert_eq!(one(Array::scalar(255i64), DType::U8), Some(Array::scalar(255u8)));
        assert_eq!(one(Array::scalar(70_000i32), DType::F16), None);
        assert_eq!(one(Array::scalar(1i64), DType::Bool), Some(Array::bool(true)));
        assert_eq!(one(Array::scalar(2i64), DType::Bool), None);
    }

    #[test]
    fn floats_are_rounded_and_stay_finite() {
        assert_eq!(one(Array::scalar(0.1f64), DType::F32), Some(Array::scalar(0.1f32)));
        assert_eq!(one(Array::scalar(1e300f64), DType::F32), None);
        assert_eq!(one(Array::scalar(f64::INFINITY), DType::F32), Some(Array::scalar(f32::INFINITY)));
        assert_eq!(one(Array::scalar(3.0f64), DType::I32), Some(Array::scalar(3i32)));
        assert_eq!([3.5, f64::NAN, 1e30].map(|number| one(Array::scalar(number), DType::I64)), [None, None, None]);
        let rows = Array::from_vec(vec![1i64, 2]);
        assert_eq!(one(rows, DType::BF16).unwrap().bytes(), [0x80, 0x3f, 0, 0x40]);
    }
}
