//! Number types of array leaves.

use half::{bf16, f16};

/// The number type of an [`Array`](super::Array), little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8 bit.
    U8,
    /// Signed 8 bit.
    I8,
    /// Unsigned 16 bit.
    U16,
    /// Signed 16 bit.
    I16,
    /// IEEE half precision.
    F16,
    /// Brain float: the upper half of an `f32`.
    BF16,
    /// Unsigned 32 bit.
    U32,
    /// Signed 32 bit: token ids, segment ids and positions.
    I32,
    /// Single precision.
    F32,
    /// Unsigned 64 bit.
    U64,
    /// Signed 64 bit.
    I64,
    /// Double precision.
    F64,
}

impl DType {
    /// Every type, in the order of the enum.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::F16,
        Self::BF16,
        Self::U32,
        Self::I32,
        Self::F32,
        Self::U64,
        Self::I64,
        Self::F64,
    ];

    /// Returns the size of a number in bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Returns a function that reads an integer from its bytes; `None` for floats and bool.
    ///
    /// # Panics
    /// The returned function panics for bytes of a different length.
    pub(crate) fn whole_reader(self) -> Option<fn(&[u8]) -> i128> {
        macro_rules! whole {
            ($type:ty) => {
                Some(|bytes| {
                    let mut number = [0; size_of::<$type>()];
                    number.copy_from_slice(bytes);
                    i128::from(<$type>::from_le_bytes(number))
                })
            };
        }
        match self {
            Self::U8 => whole!(u8),
            Self::I8 => whole!(i8),
            Self::U16 => whole!(u16),
            Self::I16 => whole!(i16),
            Self::U32 => whole!(u32),
            Self::I32 => whole!(i32),
            Self::U64 => whole!(u64),
            Self::I64 => whole!(i64),
            Self::Bool | Self::F16 | Self::BF16 | Self::F32 | Self::F64 => None,
        }
    }

    /// Returns NumPy's name: `int32`, `float16`, `bfloat16`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
            Self::F32 => "float32",
            Self::U64 => "uint64",
            Self::I64 => "int64",
            Self::F64 => "float64",
        }
    }

    /// Returns the type with this NumPy name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == name)
    }
}

display_as!(DType, |self, f| f.write_str(self.name()));

/// A Rust number type that array bytes can be viewed as without a copy.
///
/// `bool` is excluded on purpose: a byte read from a file need not be 0 or 1. Read [`DType::Bool`] as `u8`.
pub trait Scalar: bytemuck::Pod {
    /// The dtype of the Rust type.
    const DTYPE: DType;
}

macro_rules! scalars {
    ($($type:ty => $dtype:ident),* $(,)?) => {
        $(impl Scalar for $type { const DTYPE: DType = DType::$dtype; })*
    };
}
scalars!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, f16 => F16, bf16 => BF16, u32 => U32, i32 => I32, f32 => F32,
    u64 => U64, i64 => I64, f64 => F64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(DType::from_name("object"), None);
    }
}
