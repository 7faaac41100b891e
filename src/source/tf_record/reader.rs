//! Sequential reader of a single TFRecord file, in gzip, zlib or plain.

use super::super::content::Content;
use super::super::inflate::Decoder;
use super::frame::{self, FOOT, HEAD};
use super::{BEGINNING, compression};
use crate::element::Buffer;
use crate::error::{Error, Result};

/// Reader of a single file.
pub(crate) struct Reader {
    pub(super) file: Content,
    decoder: Decoder,
    /// Number of bytes read, decompressed.
    pub(crate) byte: u64,
    /// Number of records read.
    pub(super) record: u64,
    /// True if the start of the next record is unknown.
    pub(super) lost: bool,
}

/// Maximum number of bytes allocated at once for a claimed length.
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

    /// Moves to a position that was reached before.
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

    pub(super) fn is_compressed(&self) -> bool {
        self.decoder.codec().is_some()
    }

    /// Returns the next record. Returns `None` at the end, and after damage that prevents further reads.
    pub(crate) fn next(&mut self) -> Result<Option<Buffer>> {
        if self.lost {
            return Ok(None);
        }
        self.read().map_err(|e| if self.lost { self.place(e, self.record, self.byte) } else { e })
    }

    fn read(&mut self) -> Result<Option<Buffer>> {
        // Until the whole record has been read.
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

    /// Fills `out`, which is a part of a record of `length` bytes.
    fn fill(&mut self, out: &mut [u8], length: u64) -> Result<()> {
        if self.decoder.fill(out)? < out.len() {
            return Err(Error::data(format!("the file ends inside of a record of {length} bytes")));
        }
        Ok(())
    }

    /// Adds the record and its offset to an error that has no place.
    #[cold]
    fn place(&self, error: Error, record: u64, byte: u64) -> Error {
        match self.decoder.codec() {
            Some(_) => error.and(&format!(" (at byte {byte} of the decompressed data)")).record(record),
            None => error.record(record).offset(byte),
        }
    }
}
