//! Encoding of values, the inverse of [`Encoding::decode`].

use super::super::encode::whole;
use super::super::json;
use super::encoding::{Encoding, Image, has};
use super::images;
use crate::element::{Array, DType, Value};
use crate::error::{Error, Result};

/// Infers the encoding of a column from its first value.
pub(super) fn infer(value: &Value) -> String {
    match value {
        Value::Str(_) => "str".to_owned(),
        Value::Bytes(_) => "bytes".to_owned(),
        // MDS cannot represent empty arrays. JSON can, and reads them back as `i64`.
        Value::Array(array) if array.shape() == [0] && matches!(array.dtype(), DType::I64 | DType::F64) => {
            "json".to_owned()
        }
        Value::Array(array) if has(array.dtype()) => match array.shape() {
            [] if array.dtype() == DType::I64 => "int".to_owned(),
            [] => array.dtype().name().to_owned(),
            _ => format!("ndarray:{}", array.dtype()),
        },
        _ => "json".to_owned(),
    }
}

impl Encoding {
    /// Appends the bytes of a value.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for a value that the encoding cannot represent.
    pub(super) fn encode(&self, value: &Value, out: &mut Vec<u8>) -> Result<()> {
        match (self, value) {
            (Self::Bytes, Value::Bytes(bytes)) => out.extend_from_slice(bytes.as_bytes()),
            (Self::Str | Self::StrDecimal, Value::Str(text)) => out.extend_from_slice(text.as_bytes()),
            (Self::Scalar(dtype), Value::Array(array)) => out.extend_from_slice(&scalar(*dtype, array)?),
            (Self::NdArray(encoding), Value::Array(array)) => encoding.encode(array, out)?,
            (Self::StrInt, Value::Array(array)) => {
                let digits = whole(array).ok_or_else(|| Error::data(format!("{array:?} is no whole number")))?;
                out.extend_from_slice(digits.as_bytes());
            }
            (Self::StrFloat, Value::Array(array)) => out.extend_from_slice(float(array)?.as_bytes()),
            (Self::Json, value) => json::write::value(out, value)?,
            (Self::Image(kind), value) => put_image(*kind, value, out)?,
            (Self::ImageList(kind), Value::List(list)) => put_list(*kind, list, 4, out)?,
            (Self::JpegArray, Value::List(list)) => put_list(Image::Jpeg, list, 0, out)?,
            (_, value) => return Err(Error::data(format!("{} is not of the encoding", value.kind()))),
        }
        Ok(())
    }
}

/// Returns the bytes of a number. `int` accepts an integer of any width.
fn scalar(dtype: DType, array: &Array) -> Result<Vec<u8>> {
    let wrong = || Error::data(format!("an array {}{:?}, not a number of {dtype}", array.dtype(), array.shape()));
    match array.shape() {
        [] if array.dtype() == dtype => Ok(array.bytes().to_vec()),
        [] if dtype == DType::I64 => Ok(array.as_i64().ok_or_else(wrong)?.to_le_bytes().to_vec()),
        _ => Err(wrong()),
    }
}

/// Formats a float with enough digits to parse back to an equal `f64`.
fn float(array: &Array) -> Result<String> {
    let digits = match (array.shape(), array.as_slice::<f64>(), array.as_slice::<f32>()) {
        ([], Ok([number]), _) => Some(format!("{number:?}")),
        ([], _, Ok([number])) => Some(format!("{:?}", f64::from(*number))),
        _ => None,
    };
    digits.ok_or_else(|| Error::data(format!("an array {}{:?}, not a float", array.dtype(), array.shape())))
}

fn put_image(kind: Image, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match (kind, value) {
        (Image::Jpeg | Image::Png, Value::Bytes(file)) => {
            out.extend_from_slice(file.as_bytes());
            Ok(())
        }
        (Image::Pil, Value::Array(array)) => images::put_pil(array, out),
        (Image::Jpeg | Image::Png, _) => {
            Err(Error::data(format!("{} is no file of an image", value.kind())).help("give the bytes of the file"))
        }
        (Image::Pil, _) => Err(Error::data(format!("{} is no array [height, width, channels]", value.kind()))),
    }
}

fn put_list(kind: Image, list: &[Value], skip: usize, out: &mut Vec<u8>) -> Result<()> {
    let image = |value: &Value| {
        let mut image = Vec::new();
        put_image(kind, value, &mut image).map(|()| image)
    };
    images::put_list(&list.iter().map(image).collect::<Result<Vec<_>>>()?, skip, out)
}
