//! Records out of one file, gzip, zlib or plain, front to back.

use super::super::content::Content;
use super::super::inflate::Decoder;
use super::frame::{self, FOOT, HEAD};
use super::{BEGINNING, compression};
use crate::element::Buffer;
use crate::error::{Error, Result};

/// Reads one file.
pub(crate) struct Reader {
    #[cfg_attr(not(feature = "python"), expect(dead_code, reason = "only who goes anywhere in it opens it again"))]
    pub(super) file: Content,
    decoder: Decoder,
    /// Bytes behind it, decompressed.
    pub(super) byte: u64,
    /// Records behind it.
    pub(super) record: u64,
    /// Nothing says where the next record begins.
    pub(super) lost: bool,
}

/// Taken at once of what a length promises.
const STEP: u64 = 1 << 20;

impl Reader {
    pub(super) fn open(file: &Content) -> Result<Self> {
        let head = file.read(0..file.len().min(BEGINNING))?;
        let decoder = match compression(head.as_bytes()) {
            Some("zlib") => Decoder::zlib(file),
            _ => Decoder::new(file, None)?,
        };
        Ok(Self { file: file.clone(), decoder, byte: 0, record: 0, lost: false })
    }

    /// Goes to a place that was reached before.
    pub(super) fn skip_to(&mut self, byte: u64, record: u64) -> Result<()> {
        if let Decoder::Plain(stream) = &mut self.decoder
            && stream.seek(byte)
        {
            (self.byte, self.record) = (byte, record);
            return Ok(());
        }
        let mut skipped = Vec::new();
        while self.byte < byte {
            let step = (byte - self.byte).min(STEP);
            skipped.resize(step as usize, 0);
            self.fill(&mut skipped, step)?;
            self.byte += step;
        }
        self.record = record;
        Ok(())
    }

    #[cfg(feature = "python")]
    pub(super) fn is_compressed(&self) -> bool {
        self.decoder.codec().is_some()
    }

    /// The next record, or `None` at the end, which is also behind what is lost.
    pub(crate) fn next(&mut self) -> Result<Option<Buffer>> {
        if self.lost {
            return Ok(None);
        }
        self.read().map_err(|e| if self.lost { self.place(e, self.record, self.byte) } else { e })
    }

    fn read(&mut self) -> Result<Option<Buffer>> {
        // Until the whole record is here.
        self.lost = true;
        let mut head = [0; HEAD];
        let got = self.decoder.fill(&mut head)?;
        if got == 0 {
            return Ok(None);
        }
        let length = frame::length(&head[..got])?;
        let mut data = Vec::new();
        while (data.len() as u64) < length {
            let (from, step) = (data.len(), (length - data.len() as u64).min(STEP));
            data.resize(from + step as usize, 0);
            self.fill(&mut data[from..], length)?;
        }
        let mut foot = [0; FOOT];
        self.fill(&mut foot, length)?;
        self.lost = false;
        self.byte += length + (HEAD + FOOT) as u64;
        self.record += 1;
        let checked = frame::check(&data, foot);
        checked.map_err(|e| self.place(e, self.record - 1, self.byte - length - (HEAD + FOOT) as u64))?;
        Ok(Some(Buffer::from_vec(data)))
    }

    /// All of `out`, which is part of a record of `length` bytes.
    fn fill(&mut self, out: &mut [u8], length: u64) -> Result<()> {
        if self.decoder.fill(out)? < out.len() {
            return Err(Error::data(format!("the file ends inside of a record of {length} bytes")));
        }
        Ok(())
    }

    /// Adds record and place to an error that has none.
    #[cold]
    fn place(&self, error: Error, record: u64, byte: u64) -> Error {
        match self.decoder.codec() {
            Some(_) => error.and(&format!(" (at byte {byte} of the decompressed data)")).record(record),
            None => error.record(record).offset(byte),
        }
    }
}
