//! JPEG and PNG images, decoded by the `image` crate.

use std::io::Cursor;

use image::{DynamicImage, ImageReader, Limits};

use super::super::contained::contained;
use crate::element::{Array, Buffer, DType};
use crate::error::{Error, Result};

/// Limits the decoder's memory to 1,100 bytes per compressed byte plus 16 MiB, and to 512 MiB in total. No compressed
/// image expands by a larger factor.
fn limits(bytes: usize) -> Limits {
    const MOST: u64 = 512 << 20;
    let mut limits = Limits::default();
    limits.max_alloc = Some((bytes as u64).saturating_mul(1100).saturating_add(16 << 20).min(MOST));
    limits
}

/// Decodes the pixels row by row: `u8`, or `u16` for 16-bit PNGs. An image has 1 channel (grey), 2 (grey, alpha),
/// 3 (colour) or 4 (colour, alpha).
pub(super) fn decode(bytes: &[u8]) -> Result<Array> {
    let image = contained(|| {
        let fault = |text: String| Error::data(format!("the image is damaged: {text}"));
        let mut reader =
            ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|e| fault(e.to_string()))?;
        if reader.format().is_none() {
            return Err(Error::data("neither JPEG nor PNG begins so"));
        }
        reader.limits(limits(bytes.len()));
        reader.decode().map_err(|e| fault(e.to_string()))
    })?;
    let shape = |channels: u8| [image.height() as usize, image.width() as usize, usize::from(channels)];
    let shape = shape(image.color().channel_count());
    let (dtype, pixels) = match image {
        DynamicImage::ImageLuma8(image) => (DType::U8, Buffer::from_vec(image.into_raw())),
        DynamicImage::ImageLumaA8(image) => (DType::U8, Buffer::from_vec(image.into_raw())),
        DynamicImage::ImageRgb8(image) => (DType::U8, Buffer::from_vec(image.into_raw())),
        DynamicImage::ImageRgba8(image) => (DType::U8, Buffer::from_vec(image.into_raw())),
        DynamicImage::ImageLuma16(image) => (DType::U16, Buffer::from_vec(image.into_raw())),
        DynamicImage::ImageLumaA16(image) => (DType::U16, Buffer::from_vec(image.into_raw())),
        DynamicImage::ImageRgb16(image) => (DType::U16, Buffer::from_vec(image.into_raw())),
        DynamicImage::ImageRgba16(image) => (DType::U16, Buffer::from_vec(image.into_raw())),
        other => return Err(Error::unsupported(format!("an image of {:?}", other.color()))),
    };
    Array::new(dtype, &shape, pixels)
}

#[cfg(test)]
mod tests {
    use image::{ImageBuffer, ImageFormat, Luma, Rgb, Rgba};

    use super::*;

    fn packed(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        image.write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    #[test]
    fn shapes_and_pixels() {
        let rgb: DynamicImage = ImageBuffer::from_fn(3, 2, |x, y| Rgb([x as u8, y as u8, 7])).into();
        let array = decode(&packed(&rgb, ImageFormat::Png)).unwrap();
        assert_eq!((array.dtype(), array.shape()), (DType::U8, [2, 3, 3].as_slice()));
        assert_eq!(array.bytes(), rgb.as_bytes());
        let rgba: DynamicImage = ImageBuffer::from_pixel(1, 2, Rgba([1u8, 2, 3, 4])).into();
        assert_eq!(decode(&packed(&rgba, ImageFormat::Png)).unwrap().shape(), [2, 1, 4]);
        let deep: DynamicImage = ImageBuffer::from_pixel(2, 1, Luma([40_000u16])).into();
        let array = decode(&packed(&deep, ImageFormat::Png)).unwrap();
        assert_eq!((array.as_slice::<u16>().unwrap(), array.shape()), ([40_000; 2].as_slice(), [1, 2, 1].as_slice()));
        let grey: DynamicImage = ImageBuffer::from_pixel(9, 8, Luma([200u8])).into();
        let array = decode(&packed(&grey, ImageFormat::Jpeg)).unwrap();
        assert_eq!(array.shape(), [8, 9, 1]);
        assert!(array.bytes().iter().all(|&pixel| pixel.abs_diff(200) < 3));
    }

    #[test]
    fn damage_is_an_error() {
        let grey: DynamicImage = ImageBuffer::from_pixel(9, 8, Luma([200u8])).into();
        let whole = packed(&grey, ImageFormat::Png);
        assert!(decode(&whole[..whole.len() / 2]).unwrap_err().message().contains("damaged"));
        assert!(decode(b"GIF89a").is_err() && decode(b"").is_err());
    }

    /// Decodes a PNG that claims 100,000 × 100,000 pixels.
    #[test]
    fn a_size_that_is_not_there_takes_no_memory() {
        let grey: DynamicImage = ImageBuffer::from_pixel(9, 8, Luma([200u8])).into();
        let mut liar = packed(&grey, ImageFormat::Png);
        for place in [16, 20] {
            liar[place..place + 4].copy_from_slice(&100_000u32.to_be_bytes());
        }
        let mut crc = flate2::Crc::new();
        crc.update(&liar[12..29]);
        liar[29..33].copy_from_slice(&crc.sum().to_be_bytes());
        let text = decode(&liar).unwrap_err().to_string();
        assert!(text.to_lowercase().contains("limit") || text.contains("memory"), "{text}");
    }
}
