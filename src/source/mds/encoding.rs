//! Encodings of values as bytes.
//!
//! Source: [streaming](https://github.com/mosaicml/streaming), `streaming/base/format/mds/encodings.py`.

use super::super::decode;
use super::images;
use super::ndarray::NdArray;
use crate::element::{Array, Buffer, DType, Value};
use crate::error::{Error, Result};

/// Encoding of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Bytes,
    Str,
    /// Scalars of this type. `int` is `i64`.
    Scalar(DType),
    NdArray(NdArray),
    /// An integer as decimal digits.
    StrInt,
    StrFloat,
    StrDecimal,
    Json,
    Image(Image),
    /// A word of zeros, the number of images, their sizes, and the images.
    ImageList(Image),
    /// The number of JPEG images, their sizes, and the images.
    JpegArray,
    /// Pickled values, which are rejected on reading.
    Pickle,
}

/// Encoding of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// A JPEG file.
    Jpeg,
    /// A PNG file.
    Png,
    /// Size, mode and pixels of a Pillow image.
    Pil,
}

const SCALARS: [DType; 11] = [
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::F16,
    DType::U32,
    DType::I32,
    DType::F32,
    DType::U64,
    DType::I64,
    DType::F64,
];

/// Returns true if the format supports numbers of this type.
pub(super) fn has(dtype: DType) -> bool {
    SCALARS.contains(&dtype)
}

impl Encoding {
    /// Parses the name of an encoding.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for an unknown name.
    pub(super) fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "bytes" => Self::Bytes,
            "str" => Self::Str,
            "int" => Self::Scalar(DType::I64),
            "str_int" => Self::StrInt,
            "str_float" => Self::StrFloat,
            "str_decimal" => Self::StrDecimal,
            "json" => Self::Json,
            "jpeg" => Self::Image(Image::Jpeg),
            "png" => Self::Image(Image::Png),
            "pil" => Self::Image(Image::Pil),
            "list[jpeg]" => Self::ImageList(Image::Jpeg),
            "list[png]" => Self::ImageList(Image::Png),
            "list[pil]" => Self::ImageList(Image::Pil),
            "jpeg_array" | "jpegarray" => Self::JpegArray,
            "pkl" => Self::Pickle,
            _ => return Self::numbers(name).ok_or_else(|| Error::unsupported(format!("the encoding {name:?}"))),
        })
    }

    fn numbers(name: &str) -> Option<Self> {
        if name == "ndarray" || name.starts_with("ndarray:") {
            return NdArray::parse(name.strip_prefix("ndarray:").unwrap_or_default()).map(Self::NdArray);
        }
        DType::from_name(name).filter(|&dtype| has(dtype)).map(Self::Scalar)
    }

    /// Returns the size of a value in bytes, or `None` if sizes vary.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::Scalar(dtype) => Some(dtype.size() as u64),
            Self::NdArray(array) => array.size(),
            _ => None,
        }
    }

    /// Decodes a value. JPEG and PNG images stay bytes unless `with_images` is set.
    pub(super) fn decode(&self, data: Buffer, with_images: bool) -> Result<Value> {
        let image = |kind: Image, data| images::decode(kind, data, with_images);
        match self {
            Self::Bytes => Ok(Value::Bytes(data)),
            Self::Str => decode::text(&data),
            Self::Scalar(dtype) => Array::new(*dtype, &[], Buffer::copy_from(data.as_bytes())).map(Value::from),
            Self::NdArray(array) => array.decode(&data).map(Value::from),
            Self::StrInt => decode::integer(&data),
            Self::StrFloat => decode::float(&data),
            Self::StrDecimal => decode::text(&data),
            Self::Json => decode::json(&data),
            Self::Image(kind) => image(*kind, data),
            Self::ImageList(kind) => images::list(&data, 4, |data| image(*kind, data)),
            Self::JpegArray => images::list(&data, 0, |data| image(Image::Jpeg, data)),
            Self::Pickle => Err(pickled()),
        }
    }
}

/// Returns the error for reading a column of pickles.
pub(super) fn pickled() -> Error {
    Error::unsupported("values are pickles, which can run code: refused").help("choose the other columns")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, bytes: &[u8]) -> Result<Value> {
        Encoding::parse(name).unwrap().decode(Buffer::copy_from(bytes), false)
    }

    #[test]
    fn values_of_each_encoding() {
        assert_eq!(value("bytes", b"\xff").unwrap(), Value::Bytes(Buffer::copy_from(b"\xff")));
        assert_eq!(value("str", "é".as_bytes()).unwrap(), "é".into());
        assert_eq!(value("int", &(-3i64).to_le_bytes()).unwrap(), Array::scalar(-3i64).into());
        assert_eq!(value("uint16", &[1, 2]).unwrap(), Array::scalar(513u16).into());
        assert_eq!(value("float32", &0.5f32.to_le_bytes()).unwrap(), Array::scalar(0.5f32).into());
        assert_eq!(value("str_int", b"-12").unwrap(), Array::scalar(-12i64).into());
        assert_eq!(value("str_int", b"18446744073709551615").unwrap(), Array::scalar(u64::MAX).into());
        assert_eq!(value("str_float", b"1e-05").unwrap(), Array::scalar(1e-5f64).into());
        assert_eq!(value("str_decimal", b"1.50").unwrap(), "1.50".into());
        assert_eq!(value("json", b"[1, 2]").unwrap(), Array::from_vec(vec![1i64, 2]).into());
        assert_eq!(value("jpeg", b"?").unwrap(), Value::Bytes(Buffer::copy_from(b"?")));
    }

    #[test]
    fn what_is_not_of_the_encoding_is_an_error() {
        for (name, bytes) in [
            ("str", b"\xff".as_slice()),
            ("int", b"1234"),
            ("uint8", b""),
            ("str_int", b"1.5"),
            ("str_int", b"99999999999999999999"),
            ("str_float", b"one"),
            ("json", b"{"),
            ("json", b"1 2"),
            ("pkl", b"N."),
        ] {
            assert!(value(name, bytes).is_err(), "{name}");
        }
        for name in ["bool", "bfloat16", "ndarray:bool", "ndarray:float32:0", "ndarray:int8:1:2", "list[str]", ""] {
            assert!(Encoding::parse(name).is_err(), "{name}");
        }
    }
}
