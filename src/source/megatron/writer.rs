//! Writing of Megatron's indexed datasets.

use std::io::{self, Write};

use super::index::{code_of, head};
use crate::element::{Array, DType, Element};
use crate::error::{Error, Result};

/// Writes a Megatron-Core dataset: ids to a `.bin` file, and an index to an `.idx` file with the same stem.
///
/// [`finish`](Self::finish) writes the index.
///
/// ```
/// use gristmill::source::{Megatron, MegatronWriter};
/// use gristmill::{Array, Element, dataset::map::RandomAccess};
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-megatron-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// let create = |name| std::fs::File::create(dir.join(name)).unwrap();
/// let mut writer = MegatronWriter::options().write_to(create("a.bin"), create("a.idx"))?;
/// writer.write(&Element::new().with("tokens", Array::from_vec(vec![1u16, 2, 3])))?;
/// writer.finish()?;
/// let read = Megatron::open(dir.join("a"))?.read(0)?;
/// assert_eq!(read.array("tokens")?.as_slice::<u16>()?, [1, 2, 3]);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Determinism
/// Equal sequences and options produce equal bytes.
///
/// # Cost
/// Holds 12 bytes per sequence, or 13 with modes. Each call writes its ids directly, so pass buffered files.
#[must_use = "a dataset that is not finished has no index"]
pub struct MegatronWriter<W> {
    data: W,
    index: W,
    options: MegatronWriterOptions,
    lengths: Vec<i32>,
    /// First sequence of each document and end of the last document.
    documents: Vec<u64>,
    modes: Vec<u8>,
}

/// Options for writing a dataset.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `write_to`"]
pub struct MegatronWriterOptions {
    dtype: Option<DType>,
    several: bool,
}

impl MegatronWriterOptions {
    setters! {
        /// Sets the number type of ids. Integers of other types are converted if they fit.
        ///
        /// Default: the type of the first sequence, or `int32` for an empty dataset. Vocabularies below 65,536 ids,
        /// such as GPT-2's, fit `uint16`.
        pub dtype(dtype: DType) => dtype = Some(dtype);

        /// Sets whether documents contain several sequences, each ended by
        /// [`end_document`](MegatronWriter::end_document). Default: false, so that each sequence is a document.
        pub several_sequences(several: bool) => several = several;
    }

    /// Creates a writer to both files.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the format lacks the number type.
    pub fn write_to<W: Write>(self, data: W, index: W) -> Result<MegatronWriter<W>> {
        self.dtype.map(code).transpose()?;
        Ok(MegatronWriter { data, index, options: self, lengths: Vec::new(), documents: vec![0], modes: Vec::new() })
    }
}

impl MegatronWriter<io::Sink> {
    /// Returns the default options.
    pub fn options() -> MegatronWriterOptions {
        MegatronWriterOptions::default()
    }
}

impl<W: Write> MegatronWriter<W> {
    /// Writes a sequence: the one-dimensional array `tokens`, and the `int8` scalar `mode` if the first had a mode.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a field is missing or an id does not fit the number type.
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn write(&mut self, element: &Element) -> Result<()> {
        let tokens = element.array("tokens")?;
        let mode = element.get("mode").map(|_| element.array("mode")).transpose()?;
        self.append(tokens, mode).map_err(|e| e.record(self.lengths.len() as u64))
    }

    fn append(&mut self, tokens: &Array, mode: Option<&Array>) -> Result<()> {
        let [length] = *tokens.shape() else {
            return Err(Error::data(format!("tokens are {tokens:?}, an array of one dimension is written")));
        };
        let length = i32::try_from(length).map_err(|_| Error::data(format!("{length} ids, {} at most", i32::MAX)))?;
        let mode = self.mode(mode)?;
        let dtype = *self.options.dtype.get_or_insert(tokens.dtype());
        code(dtype)?;
        match tokens.dtype() == dtype {
            true => self.data.write_all(tokens.bytes()),
            false => self.data.write_all(&turned(tokens, dtype)?),
        }
        .map_err(Error::of_io)?;
        self.lengths.push(length);
        self.modes.extend(mode);
        if !self.options.several {
            self.end_document();
        }
        Ok(())
    }

    fn mode(&self, mode: Option<&Array>) -> Result<Option<u8>> {
        if !self.lengths.is_empty() && mode.is_some() == self.modes.is_empty() {
            return Err(Error::data("all sequences have a mode, or none does"));
        }
        let byte = |mode: &Array| mode.as_i64().and_then(|mode| i8::try_from(mode).ok()).map(|mode| mode as u8);
        let byte = mode.map(|mode| byte(mode).ok_or_else(|| Error::data(format!("the mode is {mode:?}, not an int8"))));
        byte.transpose()
    }

    /// Ends the current document after the last written sequence.
    pub fn end_document(&mut self) {
        self.documents.push(self.lengths.len() as u64);
    }

    /// Writes the index. Returns both files, the data first. Trailing sequences without an end form a document.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn finish(mut self) -> Result<(W, W)> {
        let sequences = self.lengths.len() as u64;
        if self.documents.last() != Some(&sequences) {
            self.end_document();
        }
        let dtype = self.options.dtype.unwrap_or(DType::I32);
        let code = code(dtype)?;
        let lists = head(code, sequences, self.documents.len() as u64);
        let lengths = bytemuck::cast_slice(&self.lengths);
        let places = places(&self.lengths, dtype.size() as u64);
        let parts: [&[u8]; 5] =
            [&lists, lengths, bytemuck::cast_slice(&places), bytemuck::cast_slice(&self.documents), &self.modes];
        parts.iter().try_for_each(|part| self.index.write_all(part)).map_err(Error::of_io)?;
        self.data.flush().and_then(|()| self.index.flush()).map_err(Error::of_io)?;
        Ok((self.data, self.index))
    }
}

/// Returns the start of each sequence in bytes.
fn places(lengths: &[i32], size: u64) -> Vec<u64> {
    let place = |at: &mut u64, length: &i32| {
        let place = *at;
        *at += *length as u64 * size;
        Some(place)
    };
    lengths.iter().scan(0, place).collect()
}

fn code(dtype: DType) -> Result<u8> {
    let unknown = || Error::unsupported(format!("Megatron's index has no {dtype}"));
    code_of(dtype).ok_or_else(|| unknown().help("it has uint8, int8, uint16, int16, int32, int64, float32 and float64"))
}

/// Converts ids to another integer type, and returns their bytes.
fn turned(ids: &Array, dtype: DType) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(ids.size() * dtype.size());
    for at in 0..ids.size() {
        let id = ids.row(at).and_then(|id| id.as_i64());
        let id = id.ok_or_else(|| Error::data(format!("{} ids are not turned into {dtype}", ids.dtype())))?;
        let outside = || Error::data(format!("id {id} at {at} does not fit {dtype}"));
        match dtype {
            DType::U8 => out.push(u8::try_from(id).map_err(|_| outside())?),
            DType::I8 => out.extend(i8::try_from(id).map_err(|_| outside())?.to_le_bytes()),
            DType::U16 => out.extend(u16::try_from(id).map_err(|_| outside())?.to_le_bytes()),
            DType::I16 => out.extend(i16::try_from(id).map_err(|_| outside())?.to_le_bytes()),
            DType::I32 => out.extend(i32::try_from(id).map_err(|_| outside())?.to_le_bytes()),
            DType::I64 => out.extend(id.to_le_bytes()),
            _ => return Err(Error::data(format!("{} ids are not turned into {dtype}", ids.dtype()))),
        }
    }
    Ok(out)
}

debug_as!(<W> MegatronWriter<W>, |self, f| write!(f, "MegatronWriter({} sequences)", self.lengths.len()));
