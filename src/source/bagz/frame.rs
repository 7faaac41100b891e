//! Records compressed as a zstd frame each, decompressed with bounded memory.

use zstd::zstd_safe::get_frame_content_size;

use super::super::decompress::{drain, zstd, zstd_stream};
use crate::error::{Error, Result};

/// Decompressed bytes that any frame may have.
const LARGEST: u64 = 64 << 20;
/// Decompressed bytes that a frame may have beyond [`LARGEST`], per compressed byte.
const RATIO: u64 = 1000;
/// Decompresses `frame`.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if it is damaged, or is longer than 64 MiB plus 1000 times the frame.
pub(super) fn decompress(frame: &[u8]) -> Result<Vec<u8>> {
    let length = frame.len() as u64;
    let most = LARGEST.saturating_add(length.saturating_mul(RATIO));
    let stated = get_frame_content_size(frame).map_err(|_| Error::data("no frame of zstd begins here"))?;
    if let Some(size) = stated.filter(|&size| size > most) {
        return Err(Error::data(format!("a frame of {length} bytes says that it holds {size}, {most} are the most")));
    }
    let held = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    let out = match stated {
        Some(size) => zstd(frame, held(size)),
        // A byte more than the most shows that there is more.
        None => zstd_stream(frame).and_then(|stream| drain(stream, held(most), 0)),
    };
    let out = out.map_err(|e| Error::data(format!("the frame of zstd is damaged: {e}")))?;
    match (out.len() as u64, stated) {
        (got, Some(size)) if got != size => {
            Err(Error::data(format!("a frame of zstd holds {got} bytes or more, and says {size}")))
        }
        (got, None) if got > most => {
            Err(Error::data(format!("a frame of {length} bytes holds more than {most}, which are the most")))
        }
        _ => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn frames_with_and_without_their_size() {
        let text = b"oat rye oat rye".repeat(1000);
        assert_eq!(decompress(&zstd::bulk::compress(&text, 3).unwrap()).unwrap(), text);
        let mut stream = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        stream.write_all(&text).unwrap();
        let unsized_frame = stream.finish().unwrap();
        assert!(matches!(get_frame_content_size(&unsized_frame), Ok(None)));
        assert_eq!(decompress(&unsized_frame).unwrap(), text);
        assert!(decompress(&unsized_frame[..unsized_frame.len() - 4]).is_err());
        assert!(decompress(b"oat").unwrap_err().message().contains("no frame"));
    }

    #[test]
    fn a_frame_is_not_believed_beyond_its_bounds() {
        // A header alone: a single-segment frame that states a size of 2^40, in 8 bytes.
        let mut bomb = b"\x28\xb5\x2f\xfd\xe0".to_vec();
        bomb.extend_from_slice(&(1u64 << 40).to_le_bytes());
        assert!(decompress(&bomb).unwrap_err().message().contains("says that it holds 1099511627776"));
        // 90 MiB of zeros in a few kB, without a stated size.
        let mut stream = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        let zeros = vec![0; 1 << 20];
        (0..90).for_each(|_| stream.write_all(&zeros).unwrap());
        let frame = stream.finish().unwrap();
        assert!(frame.len() < 20_000, "{}", frame.len());
        assert!(decompress(&frame).unwrap_err().message().contains("which are the most"));
    }
}
