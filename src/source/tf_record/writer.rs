//! Writer of TFRecord files.

use std::io::{BufWriter, Write};

use super::frame;
use crate::error::{Error, Result};

/// Writes records of bytes as a TFRecord file, each record with two checksums.
///
/// ```
/// use gristmill::source::{TfRecordWriter, TfRecordWriterOptions};
/// let mut writer = TfRecordWriter::new(Vec::new(), TfRecordWriterOptions::default())?;
/// writer.write(b"hi")?;
/// assert_eq!(writer.finish()?.len(), 8 + 4 + 2 + 4);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Determinism
/// Equal records and options produce equal bytes. With gzip, this holds within a version of the crate.
///
/// # Cost
/// Computes a checksum of every record and copies it. Holds 64 KiB.
#[must_use = "what is not finished may be cut off in a record"]
pub struct TfRecordWriter<W: Write> {
    out: Out<W>,
    records: u64,
}

enum Out<W: Write> {
    Plain(BufWriter<W>),
    Gzip(Box<flate2::write::GzEncoder<BufWriter<W>>>),
}

/// Options for writing a TFRecord file. Default: no compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing without a writer"]
pub struct TfRecordWriterOptions {
    gzip: Option<u32>,
}

impl TfRecordWriterOptions {
    /// Compresses the file with gzip at this level, 0 to 9, like TensorFlow's `GZIP`. The file then has no random
    /// access.
    pub fn gzip(mut self, level: u32) -> Self {
        self.gzip = Some(level.min(9));
        self
    }
}

impl<W: Write> TfRecordWriter<W> {
    /// Creates a writer to `out`.
    ///
    /// # Errors
    /// None at present: a file without records is empty.
    pub fn new(out: W, options: TfRecordWriterOptions) -> Result<Self> {
        let out = BufWriter::with_capacity(1 << 16, out);
        let out = match options.gzip {
            Some(level) => Out::Gzip(Box::new(flate2::write::GzEncoder::new(out, flate2::Compression::new(level)))),
            None => Out::Plain(out),
        };
        Ok(Self { out, records: 0 })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        let (head, foot) = frame::around(record);
        let out: &mut dyn Write = match &mut self.out {
            Out::Plain(out) => out,
            Out::Gzip(out) => out,
        };
        [head.as_slice(), record, &foot].into_iter().try_for_each(|part| out.write_all(part)).map_err(Error::of_io)?;
        self.records += 1;
        Ok(())
    }

    /// Returns the number of records written.
    pub fn len(&self) -> u64 {
        self.records
    }

    /// Returns true if no record was written.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Writes the remaining bytes, and returns the output.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails; the file may then be cut.
    pub fn finish(self) -> Result<W> {
        let out = match self.out {
            Out::Plain(out) => out,
            Out::Gzip(out) => out.finish().map_err(Error::of_io)?,
        };
        let mut out = out.into_inner().map_err(|e| Error::of_io(e.into_error()))?;
        out.flush().map_err(Error::of_io)?;
        Ok(out)
    }
}

debug_as!(<W: Write> TfRecordWriter<W>, |self, f| write!(f, "TfRecordWriter({} records)", self.records));

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{TfRecord, TfRecordStream};
    use super::*;
    use crate::dataset::IterDatasetExt;
    use crate::element::Buffer;

    fn written(records: &[Vec<u8>], options: TfRecordWriterOptions) -> Vec<u8> {
        let mut writer = TfRecordWriter::new(Vec::new(), options).unwrap();
        records.iter().for_each(|record| writer.write(record).unwrap());
        assert_eq!(writer.len(), records.len() as u64);
        writer.finish().unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            records in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 0..20),
            level in prop::option::of(0..10u32),
        ) {
            let options = level.into_iter().fold(TfRecordWriterOptions::default(), TfRecordWriterOptions::gzip);
            let bytes = written(&records, options);
            prop_assert_eq!(&bytes, &written(&records, options));
            if level.is_none() {
                let framed: Vec<u8> = records.iter().flat_map(|record| TfRecord::framed(record)).collect();
                prop_assert_eq!(&bytes, &framed);
            }
            let stream = TfRecordStream::of(vec![("x".into(), Buffer::copy_from(&bytes).into())]).unwrap();
            let read: Vec<Vec<u8>> = stream.collect().unwrap().iter().map(|r| r.as_bytes().to_vec()).collect();
            prop_assert_eq!(read, records);
        }
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("no space"))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        for options in [TfRecordWriterOptions::default(), TfRecordWriterOptions::default().gzip(1)] {
            let mut writer = TfRecordWriter::new(Full, options).unwrap();
            let outcome = writer.write(b"record").and_then(|()| writer.finish().map(drop));
            assert!(outcome.unwrap_err().to_string().contains("no space"));
        }
    }
}
