//! Iteration over the files of a tar archive.

use super::header::{BLOCK, Extended, Header, Kind};
use super::input::Input;
use crate::element::Buffer;
use crate::error::{Error, Result};

/// Iteration over an archive, or over a part of an archive that begins at a header.
pub(super) struct Walk<I> {
    pub(super) input: I,
    /// True if the input ends without the end mark of an archive.
    part: bool,
    /// True if the end was reached.
    pub(super) ended: bool,
}

/// A file in an archive. Its data follows in the input.
#[derive(Debug)]
pub(super) struct Member {
    /// Offset of the first of its headers.
    pub(super) start: u64,
    pub(super) path: String,
    pub(super) size: u64,
}

/// Maximum size of an extended header in bytes, far more than a name needs.
const MAX_EXTENDED: u64 = 1 << 20;

impl<I: Input> Walk<I> {
    /// Iterates over a whole archive.
    pub(super) fn whole(input: I) -> Self {
        Self { input, part: false, ended: false }
    }

    /// Iterates over some members of an archive.
    pub(super) fn part(input: I) -> Self {
        Self { input, part: true, ended: false }
    }

    /// Returns the next file, or `None` at the end. The caller must call [`data`](Self::data) or [`pass`](Self::pass)
    /// with each file.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset of the header for damage, or if the archive has
    /// no end mark.
    pub(super) fn next(&mut self) -> Result<Option<Member>> {
        let (mut start, mut extended) = (self.input.position(), Extended::default());
        while !self.ended {
            let at = self.input.position();
            let Some(header) = self.header().map_err(|e| e.offset(at))? else {
                self.ended = true;
                break;
            };
            match header.kind {
                Kind::LongName => extended.path = Some(self.long_name(header.size).map_err(|e| e.offset(at))?),
                Kind::Pax => {
                    let records = self.extended(header.size).map_err(|e| e.offset(at))?;
                    extended = Extended::parse(records.as_bytes()).map_err(|e| e.offset(at))?;
                }
                Kind::File => {
                    let path = extended.path.unwrap_or(header.path);
                    let path = String::from_utf8(path).map_err(|e| not_text(e.as_bytes()).offset(at))?;
                    return Ok(Some(Member { start, path, size: extended.size.unwrap_or(header.size) }));
                }
                Kind::Other => self.skip(header.size, at)?,
                Kind::Bare => {}
            }
            if matches!(header.kind, Kind::Other | Kind::Bare) {
                (start, extended) = (self.input.position(), Extended::default());
            }
        }
        Ok(None)
    }

    /// Returns the data of a file.
    pub(super) fn data(&mut self, member: &Member) -> Result<Buffer> {
        let data = self.input.take(member.size)?;
        if data.len() as u64 != member.size {
            return Err(cut(member.size, data.len() as u64).offset(member.start));
        }
        self.input.skip(padding(member.size))?;
        Ok(data)
    }

    /// Skips the data of a file.
    pub(super) fn pass(&mut self, member: &Member) -> Result<()> {
        self.skip(member.size, member.start)
    }

    fn skip(&mut self, size: u64, header: u64) -> Result<()> {
        let skipped = self.input.skip(size)?;
        if skipped != size {
            return Err(cut(size, skipped).offset(header));
        }
        self.input.skip(padding(size))?;
        Ok(())
    }

    fn header(&mut self) -> Result<Option<Header>> {
        let block = self.input.take(BLOCK)?;
        match block.len() as u64 {
            0 if self.part => Ok(None),
            0 => Err(endless()),
            BLOCK => match Header::parse(block.as_bytes())? {
                None if !self.part => self.tail().map(|()| None),
                header => Ok(header),
            },
            got => Err(Error::data(format!("the file ends inside of a header, after {got} bytes of {BLOCK}"))),
        }
    }

    /// Checks that only zeros follow the end of the archive. Other bytes may be a second archive.
    fn tail(&mut self) -> Result<()> {
        loop {
            let (at, zeros) = (self.input.position(), self.input.take(64 << 10)?);
            if zeros.is_empty() {
                return Ok(());
            }
            if let Some(place) = zeros.as_bytes().iter().position(|&byte| byte != 0) {
                return Err(Error::data("there are bytes after the end of the archive")
                    .offset(at + place as u64)
                    .help("read each of the joined archives as a separate file"));
            }
        }
    }

    /// Returns the data of a header that describes the next member.
    fn extended(&mut self, size: u64) -> Result<Buffer> {
        if size > MAX_EXTENDED {
            return Err(Error::data(format!("an extended header of {size} bytes, {MAX_EXTENDED} are read")));
        }
        let data = self.input.take(size)?;
        if data.len() as u64 != size {
            return Err(cut(size, data.len() as u64));
        }
        self.input.skip(padding(size))?;
        Ok(data)
    }

    fn long_name(&mut self, size: u64) -> Result<Vec<u8>> {
        let mut name = self.extended(size)?.as_bytes().to_vec();
        name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
        Ok(name)
    }
}

/// Returns the number of zeros after `size` bytes of data.
fn padding(size: u64) -> u64 {
    (BLOCK - size % BLOCK) % BLOCK
}

fn cut(size: u64, there: u64) -> Error {
    Error::data(format!("a member of {size} bytes, where there are {there}")).help("the file is cut or damaged")
}

fn endless() -> Error {
    Error::data("the archive has no end: it was cut, or never finished")
        .help("if nothing is missing, `truncate -s +1024` adds the blocks of zeros that end it")
}

fn not_text(path: &[u8]) -> Error {
    Error::data(format!("the name of the member is not UTF-8: {:?}", String::from_utf8_lossy(path)))
}
