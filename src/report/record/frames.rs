//! Frames of a recording: each holds a line and can be read if it is complete.

use std::io::{self, BufRead, BufReader, Read};

/// Maximum bytes of a line; a longer line is an error.
const MOST_BYTES: u64 = 256 << 20;
/// First bytes of a Zstandard frame.
const ZSTD: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// Encodes a line as a frame.
#[cfg(feature = "compress")]
pub(super) fn frame(line: &str) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3)?;
    encoder.include_checksum(true)?;
    io::Write::write_all(&mut encoder, line.as_bytes())?;
    io::Write::write_all(&mut encoder, b"\n")?;
    encoder.finish()
}

#[cfg(not(feature = "compress"))]
pub(super) fn frame(line: &str) -> io::Result<Vec<u8>> {
    Ok(format!("{line}\n").into_bytes())
}

/// Reader of the frames of a file.
pub(super) struct Frames<R> {
    from: BufReader<Counted<R>>,
}

/// Result of reading a frame.
#[derive(Debug)]
pub(super) enum Frame {
    /// A line.
    Line(String),
    /// The end of the file, after the last frame.
    End,
    /// The end of the file within a frame: the writer was killed.
    Cut,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from: BufReader::new(Counted { from, count: 0 }) }
    }

    /// Returns the byte offset of the next frame.
    pub(super) fn offset(&self) -> u64 {
        self.from.get_ref().count - self.from.buffer().len() as u64
    }

    /// Reads the next frame.
    ///
    /// # Errors
    /// Fails if the bytes cannot be read or are not a frame, or if a line exceeds `MOST_BYTES`.
    pub(super) fn next(&mut self) -> io::Result<Frame> {
        let some = self.from.fill_buf()?;
        if some.is_empty() {
            return Ok(Frame::End);
        }
        let is_packed = some[0] == ZSTD[0];
        let mut line = Vec::new();
        let whole = if is_packed { self.unpack(&mut line) } else { self.plain(&mut line) };
        match whole {
            Ok(()) if line.last() == Some(&b'\n') => {
                line.pop();
                let text = String::from_utf8(line);
                text.map(Frame::Line).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text"))
            }
            Ok(()) if line.len() as u64 >= MOST_BYTES => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "a line of it has no end"))
            }
            Ok(()) => Ok(Frame::Cut),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Frame::Cut),
            Err(e) => Err(e),
        }
    }

    fn plain(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        (&mut self.from).take(MOST_BYTES).read_until(b'\n', line).map(drop)
    }

    #[cfg(feature = "compress")]
    fn unpack(&mut self, line: &mut Vec<u8>) -> io::Result<()> {
        let decoder = zstd::stream::read::Decoder::with_buffer(&mut self.from)?.single_frame();
        decoder.take(MOST_BYTES).read_to_end(line).map(drop)
    }

    #[cfg(not(feature = "compress"))]
    fn unpack(&mut self, _: &mut Vec<u8>) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "it is compressed, which needs the feature `compress`"))
    }
}

/// A reader that counts the bytes read.
struct Counted<R> {
    from: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(to)?;
        self.count += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> (Vec<String>, Frame, u64) {
        let (mut frames, mut lines) = (Frames::new(bytes), Vec::new());
        loop {
            let offset = frames.offset();
            match frames.next().unwrap() {
                Frame::Line(line) => lines.push(line),
                last => return (lines, last, offset),
            }
        }
    }

    #[test]
    fn what_is_whole_is_read_wherever_it_is_cut() {
        let told = ["first", "second, which is longer", "third"];
        let frames: Vec<_> = told.iter().map(|line| frame(line).unwrap()).collect();
        let all = frames.concat();
        assert!(matches!(lines(&all), (found, Frame::End, offset) if found == told && offset == all.len() as u64));
        for cut in 0..all.len() {
            let (found, last, offset) = lines(&all[..cut]);
            let mut end = 0;
            let whole = frames.iter().take_while(|frame| {
                end += frame.len();
                end <= cut
            });
            let whole = whole.count();
            let at: usize = frames[..whole].iter().map(Vec::len).sum();
            assert_eq!(
                (found.as_slice(), offset),
                (told[..whole].iter().map(|s| (*s).to_owned()).collect::<Vec<_>>().as_slice(), at as u64)
            );
            assert_eq!(matches!(last, Frame::End), at == cut, "{cut}: {last:?}");
        }
    }

    #[test]
    fn lines_that_are_not_packed_are_read_too() {
        assert!(matches!(lines(b"{}\n[]\n"), (found, Frame::End, 6) if found == ["{}", "[]"]));
        assert!(matches!(lines(b"{}\n[]"), (found, Frame::Cut, 3) if found == ["{}"]));
    }

    #[cfg(feature = "compress")]
    #[test]
    fn a_byte_that_is_wrong_is_seen() {
        let text = "some text ".repeat(20);
        let whole = frame(&text).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            match Frames::new(&bytes[..]).next() {
                // Some bits have no meaning.
                Ok(Frame::Line(line)) => assert_eq!(line, text, "byte {at}"),
                Ok(Frame::Cut | Frame::End) | Err(_) => {}
            }
        }
    }
}
