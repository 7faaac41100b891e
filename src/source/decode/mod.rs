//! Decoders of files inside of records: text, numbers, JSON, arrays, images.

#[cfg(feature = "image")]
mod image;

use super::json;
use super::npy;
use super::npz::Npz;
use super::utf8;
use crate::element::{Array, Buffer, Value};
use crate::error::{Error, Result};

/// Type of decoded images in this build, for the identity of sources with images.
pub(super) const IMAGES: &str = if cfg!(feature = "image") { "arrays" } else { "bytes" };

/// Decodes a file by the last extension of its name; returns its bytes if the extension is unknown.
pub(super) fn by_extension(name: &str, data: Buffer) -> Result<Value> {
    match name.rsplit('.').next().unwrap_or(name) {
        "txt" | "text" | "transcript" => text(&data),
        "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => integer(&data),
        "json" | "jsn" => self::json(&data),
        "npy" => self::npy(data),
        "npz" => npz(data),
        "jpg" | "jpeg" | "png" => image(data),
        _ => Ok(Value::Bytes(data)),
    }
}

/// Decodes UTF-8 text.
pub(super) fn text(data: &Buffer) -> Result<Value> {
    utf8_of(data).map(Value::from)
}

fn utf8_of(data: &Buffer) -> Result<&str> {
    utf8::text(data.as_bytes()).map_err(|(at, message)| Error::data(message).offset(at as u64))
}

/// Decodes a whole number in decimal digits, ignoring white space around it: `i64`, or `u64` above its range.
pub(super) fn integer(data: &Buffer) -> Result<Value> {
    let digits = utf8_of(data)?.trim();
    if let Ok(number) = digits.parse::<i64>() {
        return Ok(Array::scalar(number).into());
    }
    let number = digits.parse::<u64>();
    let number = number.map_err(|_| Error::data(format!("{:?} is no whole number of 64 bits", shown(digits))))?;
    Ok(Array::scalar(number).into())
}

/// Decodes a number in Python's notation: `f64`.
pub(super) fn float(data: &Buffer) -> Result<Value> {
    let text = utf8_of(data)?.trim();
    let number = text.parse::<f64>().map_err(|_| Error::data(format!("{:?} is no number", shown(text))))?;
    Ok(Array::scalar(number).into())
}

/// Returns the start of a text, short enough for a message.
fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Decodes a JSON document.
pub(super) fn json(data: &Buffer) -> Result<Value> {
    json::document(utf8_of(data)?).map_err(|fault| Error::data(fault.message).offset(fault.at as u64))
}

/// Decodes an array saved by NumPy.
fn npy(data: Buffer) -> Result<Value> {
    npy::aligned(npy::decode(data)?).map(Value::from)
}

/// Decodes an archive of arrays saved by NumPy.
fn npz(data: Buffer) -> Result<Value> {
    Npz::of("npz".into(), data)?.element().map(Value::from)
}

/// Decodes a JPEG or PNG image to an array `[height, width, channels]`; returns its bytes without the feature `image`.
pub(super) fn image(data: Buffer) -> Result<Value> {
    #[cfg(feature = "image")]
    return self::image::decode(data.as_bytes()).map(Value::from);
    #[cfg(not(feature = "image"))]
    Ok(Value::Bytes(data))
}
