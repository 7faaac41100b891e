//! Writing of `.npy` files.

use std::io::{self, Seek, SeekFrom, Write};

use super::header;
use crate::element::{Array, DType, Element, Name};
use crate::error::{Error, Result};

/// Writes rows of equal type and shape to a `.npy` file.
///
/// The header contains the number of rows. Either the number is set in advance, or [`finish`](Self::finish) rewrites
/// the header.
///
/// ```
/// use gristmill::source::NpyWriter;
/// use gristmill::{Array, Element};
/// let mut writer = NpyWriter::options().rows(2).write_to(Vec::new())?;
/// for row in [[1f32, 2.0], [3.0, 4.0]] {
///     writer.write(&Element::new().with("data", Array::from_vec(row.to_vec())))?;
/// }
/// let file = writer.finish()?;
/// assert!(file.starts_with(b"\x93NUMPY") && file.len() == 128 + 16);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Determinism
/// Equal rows produce equal bytes, with or without a number of rows set in advance.
///
/// # Source
/// Version 1.0 of the format, `numpy.lib.format`. The header has space for any number of rows, like NumPy's.
#[must_use = "a file that is not finished may have no header"]
pub struct NpyWriter<W> {
    out: W,
    options: NpyWriterOptions,
    row: Option<Row>,
    written: u64,
    patch: Option<Patch<W>>,
}

/// Overwrites the header at the start of the file.
type Patch<W> = fn(&mut W, &[u8]) -> io::Result<()>;

/// Type and shape of every row.
struct Row {
    dtype: DType,
    shape: Vec<usize>,
}

/// Options for writing a `.npy` file.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `write_to`"]
pub struct NpyWriterOptions {
    rows: Option<u64>,
    field: Option<Name>,
}

impl NpyWriterOptions {
    setters! {
        /// Sets the total number of rows.
        pub rows(rows: u64) => rows = Some(rows);

        /// Sets the field to write. Default: the only field of the elements.
        pub field(name: impl AsRef<str>) => field = Some(Name::new(name.as_ref()));
    }

    /// Creates a writer to `out`. The number of rows must be set.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the number of rows is not set.
    pub fn write_to<W: Write>(self, out: W) -> Result<NpyWriter<W>> {
        if self.rows.is_none() {
            return Err(Error::config("the header of an npy file says how many rows there are, which is not known")
                .help("say it by `rows`, or write to what can go back, by `write_back_to`"));
        }
        Ok(NpyWriter { out, options: self, row: None, written: 0, patch: None })
    }

    /// Creates a writer to `out`, which seeks back to the start to rewrite the header.
    pub fn write_back_to<W: Write + Seek>(self, out: W) -> NpyWriter<W> {
        let patch: Patch<W> = |out, header| {
            let end = out.stream_position()?;
            out.seek(SeekFrom::Start(0))?;
            out.write_all(header)?;
            out.seek(SeekFrom::Start(end)).map(drop)
        };
        NpyWriter { out, options: self, row: None, written: 0, patch: Some(patch) }
    }
}

impl NpyWriter<io::Sink> {
    /// Returns the default options.
    pub fn options() -> NpyWriterOptions {
        NpyWriterOptions::default()
    }
}

impl<W: Write> NpyWriter<W> {
    /// Writes an array as the next row.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the element lacks the array, or its type or shape differ from the first row's.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn write(&mut self, element: &Element) -> Result<()> {
        self.append(element).map_err(|e| e.record(self.written))
    }

    fn append(&mut self, element: &Element) -> Result<()> {
        let array = match (&self.options.field, element.len()) {
            (Some(field), _) => element.array(field)?,
            (None, 1) => element.array(element.iter().next().map_or("", |(name, _)| name))?,
            (None, fields) => {
                let error = Error::data(format!("{fields} fields; a row of an npy file has one"));
                return Err(error.help("say which one by `field`, or by the `column` of a sink"));
            }
        };
        self.check(array)?;
        if self.row.is_none() {
            self.row = Some(Row { dtype: array.dtype(), shape: array.shape().to_vec() });
            self.begin()?;
        }
        self.out.write_all(array.bytes()).map_err(Error::of_io)?;
        self.written += 1;
        Ok(())
    }

    fn check(&self, array: &Array) -> Result<()> {
        if self.options.rows.is_some_and(|rows| self.written >= rows) {
            return Err(Error::data(format!("more rows than the declared {}", self.written)));
        }
        match &self.row {
            Some(row) if row.dtype != array.dtype() || row.shape != array.shape() => {
                let text = format!("the row is {array:?}, but the first row is {}{:?}", row.dtype, row.shape);
                Err(Error::data(text))
            }
            _ => Ok(()),
        }
    }

    /// Writes the header, with 0 rows if their number is not known yet.
    fn begin(&mut self) -> Result<()> {
        let header = self.header(self.options.rows.unwrap_or(0))?;
        self.out.write_all(&header).map_err(Error::of_io)
    }

    fn header(&self, rows: u64) -> Result<Vec<u8>> {
        // Without rows, the array equals NumPy's for an empty list.
        let (dtype, row) = self.row.as_ref().map_or((DType::F64, [].as_slice()), |row| (row.dtype, &row.shape));
        let shape: Vec<u64> = [rows].into_iter().chain(row.iter().map(|&length| length as u64)).collect();
        header::encode(dtype, &shape, true)
    }

    /// Writes or rewrites the header if necessary, and returns the output.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the number of rows differs from the number set.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn finish(mut self) -> Result<W> {
        if let Some(rows) = self.options.rows.filter(|&rows| rows != self.written) {
            return Err(Error::data(format!("{} rows, but {rows} were declared", self.written)));
        }
        if self.row.is_none() {
            self.begin()?;
        }
        if let Some(patch) = self.patch {
            let header = self.header(self.written)?;
            patch(&mut self.out, &header).map_err(Error::of_io)?;
        }
        self.out.flush().map_err(Error::of_io)?;
        Ok(self.out)
    }
}

debug_as!(<W> NpyWriter<W>, |self, f| write!(f, "NpyWriter({} rows)", self.written));

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::super::decode;
    use super::*;
    use crate::element::Buffer;

    fn element(array: Array) -> Element {
        Element::new().with("x", array)
    }

    fn read(file: &[u8]) -> Array {
        decode(Buffer::copy_from(file)).unwrap()
    }

    #[test]
    fn nothing_and_scalars_are_arrays_too() {
        let file = NpyWriter::options().write_back_to(Cursor::new(Vec::new())).finish().unwrap().into_inner();
        assert_eq!((read(&file).dtype(), read(&file).shape()), (DType::F64, [0].as_slice()));
        let mut writer = NpyWriter::options().rows(1).write_to(Vec::new()).unwrap();
        writer.write(&element(Array::bool(true))).unwrap();
        assert_eq!(read(&writer.finish().unwrap()).shape(), [1]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let options = || NpyWriter::options().rows(2);
        let mut writer = options().write_to(Vec::new()).unwrap();
        writer.write(&element(Array::from_vec(vec![1i32, 2]))).unwrap();
        let error = |writer: &mut NpyWriter<Vec<u8>>, element: Element| writer.write(&element).unwrap_err().to_string();
        let wrong = error(&mut writer, element(Array::from_vec(vec![1i64, 2])));
        assert_eq!(wrong, "record 1: the row is int64[2], but the first row is int32[2]");
        let wrong = error(&mut writer, element(Array::scalar(1i32)).with("y", "z"));
        assert_eq!(wrong, "record 1: 2 fields; a row of an npy file has one");
        assert!(options().write_to(Vec::new()).unwrap().finish().unwrap_err().message().contains("0 rows, but 2"));
        writer.write(&element(Array::from_vec(vec![3i32, 4]))).unwrap();
        assert!(error(&mut writer, element(Array::from_vec(vec![3i32, 4]))).contains("than the declared 2"));
        let mut writer = options().write_to(Vec::new()).unwrap();
        let half = Array::scalar(half::bf16::ONE);
        assert_eq!(writer.write(&element(half)).unwrap_err().kind(), crate::ErrorKind::Unsupported);
        assert!(NpyWriter::options().write_to(Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in prop::collection::vec(prop::array::uniform3(any::<f32>()), 0..20)) {
            let write = |writer: &mut NpyWriter<Cursor<Vec<u8>>>| {
                rows.iter().try_for_each(|row| writer.write(&element(Array::from_vec(row.to_vec()))))
            };
            let mut known = NpyWriter::options().rows(rows.len() as u64).write_to(Cursor::new(Vec::new())).unwrap();
            let mut patched = NpyWriter::options().field("x").write_back_to(Cursor::new(Vec::new()));
            write(&mut known).unwrap();
            write(&mut patched).unwrap();
            let file = known.finish().unwrap().into_inner();
            prop_assert_eq!(&file, &patched.finish().unwrap().into_inner());
            prop_assert_eq!(read(&file).shape()[0], rows.len());
            let bytes: Vec<u8> = rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
            prop_assert!(read(&file).bytes() == bytes);
        }
    }
}
