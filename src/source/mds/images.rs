//! Images and lists of images.

use super::super::decode;
use super::encoding::Image;
use crate::element::{Array, Buffer, DType, Value};
use crate::error::{Error, Result};

/// Decodes an image. JPEG and PNG images stay bytes unless `with_images` is set.
pub(super) fn decode(kind: Image, data: Buffer, with_images: bool) -> Result<Value> {
    match kind {
        Image::Jpeg | Image::Png if !with_images => Ok(Value::Bytes(data)),
        Image::Jpeg | Image::Png => decode::image(data),
        Image::Pil => pil(&data).map(Value::from),
    }
}

/// Decodes a list of images: `skip` ignored bytes, the number of images, their sizes, and the images.
pub(super) fn list(data: &Buffer, skip: usize, image: impl Fn(Buffer) -> Result<Value>) -> Result<Value> {
    let cut = || Error::data(format!("a list of images of {} bytes that ends too early", data.len()));
    let count = word(data, skip).ok_or_else(cut)? as usize;
    let sizes = skip + 4;
    // Every image has a size, so the length of the data bounds the number of images.
    let mut at = count
        .checked_mul(4)
        .and_then(|bytes| bytes.checked_add(sizes))
        .filter(|&at| at <= data.len())
        .ok_or_else(cut)?;
    let mut images = Vec::with_capacity(count);
    for i in 0..count {
        let end = at.saturating_add(word(data, sizes + 4 * i).ok_or_else(cut)? as usize);
        images.push(image(data.slice(at..end).ok_or_else(cut)?)?);
        at = end;
    }
    if at != data.len() {
        return Err(Error::data(format!("a list of images of {at} bytes in {}", data.len())));
    }
    Ok(Value::List(images))
}

/// Encodes a list of images, after `skip` zero bytes.
pub(super) fn put_list(images: &[Vec<u8>], skip: usize, out: &mut Vec<u8>) -> Result<()> {
    let word = |number: usize| u32::try_from(number).map_err(|_| Error::data("a list of images of 4 GiB or more"));
    out.resize(out.len() + skip, 0);
    out.extend_from_slice(&word(images.len())?.to_le_bytes());
    for image in images {
        out.extend_from_slice(&word(image.len())?.to_le_bytes());
    }
    images.iter().for_each(|image| out.extend_from_slice(image));
    Ok(())
}

fn word(data: &Buffer, at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*data.as_bytes().get(at..)?.first_chunk()?))
}

/// Decodes a Pillow image: width, height, length of the mode, mode and pixels, laid out as in Pillow's memory.
fn pil(data: &Buffer) -> Result<Array> {
    let cut = || Error::data(format!("an image of {} bytes, which is too short for its header", data.len()));
    let [width, height, length] = [0, 4, 8].map(|at| word(data, at).map(|number| number as usize));
    let (width, height, length) = (width.ok_or_else(cut)?, height.ok_or_else(cut)?, length.ok_or_else(cut)?);
    let pixels = 12usize.saturating_add(length);
    let mode = data.as_bytes().get(12..pixels).ok_or_else(cut)?;
    let (dtype, channels) = layout(mode).ok_or_else(|| {
        Error::unsupported(format!(
            "an image of Pillow's mode {:?}",
            String::from_utf8_lossy(&mode[..mode.len().min(16)])
        ))
    })?;
    let pixels = data.slice(pixels..data.len()).ok_or_else(cut)?;
    super::super::npy::aligned(Array::new(dtype, &[height, width, channels], pixels)?)
}

/// Returns the number type and the number of channels of a Pillow mode.
fn layout(mode: &[u8]) -> Option<(DType, usize)> {
    Some(match mode {
        b"L" | b"P" => (DType::U8, 1),
        b"LA" | b"PA" => (DType::U8, 2),
        b"RGB" | b"YCbCr" | b"LAB" | b"HSV" => (DType::U8, 3),
        b"RGBA" | b"RGBX" | b"CMYK" => (DType::U8, 4),
        b"I;16" => (DType::U16, 1),
        b"I" => (DType::I32, 1),
        b"F" => (DType::F32, 1),
        _ => return None,
    })
}

/// Encodes an array `[height, width, channels]` as a Pillow image.
pub(super) fn put_pil(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    let mode: Option<&[u8]> = match (array.dtype(), array.shape()) {
        (DType::U8, [_, _, 1]) => Some(b"L"),
        (DType::U8, [_, _, 2]) => Some(b"LA"),
        (DType::U8, [_, _, 3]) => Some(b"RGB"),
        (DType::U8, [_, _, 4]) => Some(b"RGBA"),
        (DType::U16, [_, _, 1]) => Some(b"I;16"),
        (DType::I32, [_, _, 1]) => Some(b"I"),
        (DType::F32, [_, _, 1]) => Some(b"F"),
        _ => None,
    };
    let (Some(mode), [height, width, _]) = (mode, array.shape()) else {
        return Err(Error::data(format!(
            "an array {}{:?} is no image [height, width, channels]",
            array.dtype(),
            array.shape()
        )));
    };
    for number in [*width, *height, mode.len()] {
        let number = u32::try_from(number).map_err(|_| Error::data("an image of 2^32 pixels or more in a row"))?;
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(mode);
    out.extend_from_slice(array.bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_pillow_and_lists_of_them() {
        let image = Array::new(DType::U8, &[2, 1, 3], Buffer::copy_from(&[1, 2, 3, 4, 5, 6])).unwrap();
        let mut bytes = Vec::new();
        put_pil(&image, &mut bytes).unwrap();
        assert_eq!(bytes, [&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0][..], b"RGB", &[1, 2, 3, 4, 5, 6]].concat());
        assert_eq!(pil(&Buffer::copy_from(&bytes)).unwrap(), image);
        for skip in [0, 4] {
            let mut all = Vec::new();
            put_list(&[bytes.clone(), Vec::new()], skip, &mut all).unwrap();
            let read = |all: &[u8]| list(&Buffer::copy_from(all), skip, |data| Ok(Value::Bytes(data)));
            let parts = [bytes.as_slice(), b""].map(|b| Value::Bytes(Buffer::copy_from(b)));
            assert_eq!(read(&all).unwrap(), Value::List(parts.to_vec()));
            for cut in 0..all.len() {
                assert!(read(&all[..cut]).is_err(), "{cut}");
            }
        }
        for cut in 0..bytes.len() {
            assert!(pil(&Buffer::copy_from(&bytes[..cut])).is_err(), "{cut}");
        }
        assert!(put_pil(&Array::scalar(1u8), &mut Vec::new()).is_err());
    }
}
