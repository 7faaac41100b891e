//! Safetensors files: a JSON header followed by named tensors.
//!
//! Format: <https://github.com/huggingface/safetensors>. The `safetensors` crate parses and checks headers.

#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod header;
mod writer;

use std::ops::Range;

use self::header::{Header, Tensor};
pub use self::writer::{SafetensorsWriter, SafetensorsWriterOptions};
use super::columns::{instead, to_names};
use super::content::{self, Content, Contents};
use super::files::{self, Patterns};
use super::formats::Format;
use super::npy::aligned;
use super::numbered::{File, Files, Numbered, named_source, reader, source_options};
use crate::element::{Array, Element, Name};
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Tensors of safetensors files: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`].
///
/// By default, a record is a file: its tensors by name, in the order of their data. With [`SafetensorsOptions::rows`],
/// a record is row `i` of every tensor along the first dimension, counted through all files. All tensors of a file must
/// then have an equal first dimension. Tensors and rows are views of the mapped files if their positions are aligned.
///
/// `BOOL`, integers, `F16`, `BF16`, `F32` and `F64` are supported. Other types are rejected with the tensor's name.
/// 8-bit floats can be read as bytes with [`SafetensorsOptions::float8_as_u8`].
///
/// # Errors
/// Opening fails with [`ErrorKind::Data`](crate::ErrorKind::Data) and the byte offset if a header is damaged or does
/// not exactly describe the rest of the file. Tensors of other types are
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// # Cost
/// Opening reads the headers. Reading a record reads only its bytes.
pub struct Safetensors(Files<Tensors>);

/// Options for opening [`Safetensors`] files.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct SafetensorsOptions {
    access: Access,
    rows: bool,
    float8_as_u8: bool,
    columns: Option<Vec<Name>>,
}

source_options!(SafetensorsOptions of Safetensors, access at access);

impl SafetensorsOptions {
    setters! {
        /// Sets whether each record is a row of all tensors instead of a file. Default: false.
        pub rows: bool;

        /// Sets whether 8-bit floats are read as `uint8`. Default: false.
        pub float8_as_u8: bool;

        /// Sets the tensors to read, in this order. Default: all tensors.
        pub columns<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) => columns = Some(to_names(columns));
    }

    /// Opens files, globs or directories of `.safetensors` files.
    ///
    /// # Errors
    /// If nothing is found, or a header is damaged. [`ErrorKind::Data`](crate::ErrorKind::Data) if a chosen tensor is
    /// missing. For rows, also if the tensors of a file have different numbers of rows, or files differ in anything
    /// else.
    pub fn open(self, patterns: impl Patterns) -> Result<Safetensors> {
        let contents = content::open_all(patterns, Format::Safetensors.endings(), self.access)?;
        self.of(contents)
    }

    fn of(self, contents: Contents) -> Result<Safetensors> {
        let files = Files::open(Tensors(self), contents, |Tensors(options), file| options.tensors(&file.content))?;
        if files.format.0.rows {
            check_rows(&files.files)?;
        }
        Ok(Safetensors(files))
    }

    fn tensors(&self, file: &Content) -> Result<Vec<Tensor>> {
        let header = Header::read(file)?;
        match &self.columns {
            None => header.tensors(self.float8_as_u8),
            Some(columns) => columns.iter().map(|name| self.chosen(&header, name)).collect(),
        }
    }

    fn chosen(&self, header: &Header, name: &str) -> Result<Tensor> {
        let tensor = header.tensor(name, self.float8_as_u8);
        tensor.unwrap_or_else(|| {
            let names = header.names();
            Err(Error::data(instead(name, names.iter().map(String::as_str))).offset(8))
        })
    }

    /// Opens a file in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(self, bytes: &[u8]) -> Result<Safetensors> {
        self.of(vec![("a.safetensors".into(), crate::element::Buffer::copy_from(bytes).into())])
    }
}

/// Checks that every file has rows, and that tensors differ between files only in the number of rows.
fn check_rows(files: &[File<Vec<Tensor>>]) -> Result<()> {
    for file in files {
        let wrong = |text: String| Err(Error::data(text).path(&file.path).offset(8));
        let mut rows: Option<(&Tensor, u64)> = None;
        for tensor in &file.index {
            match (rows, tensor.rows()) {
                (_, None) => return wrong(format!("tensor {:?} has no dimension, and so no rows", tensor.name)),
                (Some((first, rows)), Some(others)) if rows != others => {
                    return wrong(format!(
                        "tensor {:?} has {rows} rows and {:?} has {others}",
                        first.name, tensor.name
                    ));
                }
                (_, Some(count)) => rows = Some((tensor, count)),
            }
        }
        let same = |(a, b): (&Tensor, &Tensor)| a.has_rows_like(b);
        if let Some(first) = files.first()
            && (first.index.len() != file.index.len() || !first.index.iter().zip(&file.index).all(same))
        {
            let name = files::file_name(first.path.as_ref()).into_owned();
            return wrong(format!("its tensors differ from those of {name} in names, types or shapes"));
        }
    }
    Ok(())
}

/// Format that reads tensors as records.
struct Tensors(SafetensorsOptions);

impl Tensors {
    /// Returns the shape and byte range of a tensor's part in a record.
    fn part<'a>(&self, tensor: &'a Tensor, record: u64) -> (&'a [usize], Range<u64>) {
        if self.0.rows { tensor.row(record) } else { (&tensor.shape, tensor.bytes.clone()) }
    }
}

impl Numbered for Tensors {
    type Record = Element;
    type Index = Vec<Tensor>;

    const NAME: &'static str = "safetensors";
    const IS_VIEW: bool = true;

    fn len(&self, file: &File<Vec<Tensor>>) -> u64 {
        if self.0.rows { file.index.first().and_then(Tensor::rows).unwrap_or(0) } else { 1 }
    }

    fn read(&self, file: &File<Vec<Tensor>>, record: u64) -> Result<Element> {
        let mut fields = Vec::with_capacity(file.index.len());
        for tensor in &file.index {
            let (shape, bytes) = self.part(tensor, record);
            let array = aligned(Array::new(tensor.dtype, shape, file.content.read(bytes)?)?)?;
            fields.push((tensor.name.clone(), array.into()));
        }
        Ok(Element::from_unique(fields))
    }

    /// Whole files are not fetched ahead, because several rarely fit in memory.
    fn ranges(&self, file: &File<Vec<Tensor>>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        let tensors = file.index.iter().filter(|_| self.0.rows);
        tensors.map(move |tensor| self.part(tensor, record).1)
    }

    fn locate(&self, file: &File<Vec<Tensor>>, _: u64, error: Error) -> Error {
        error.path(&file.path)
    }

    fn params(&self) -> String {
        let chosen = self.0.columns.as_ref().map(|columns| format!(", columns=[{}]", columns.join(", ")));
        chosen.unwrap_or_default() + if self.0.rows { ", rows" } else { "" }
    }
}

named_source!(Safetensors of Element);

reader! {
    /// Opens safetensors files, to read these tensors of each file: see [`Safetensors`](crate::source::Safetensors).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-safetensors-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::Safetensors).open(&dir)?;
    /// # sink.write(Element::new().with("weight", Array::from_vec(vec![1_f32, 2.0])))?;
    /// # sink.finish()?;
    /// assert_eq!(gristmill::safetensors(&dir, ["weight"])?.collect()?[0].array("weight")?.shape(), [1, 2]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    safetensors: Safetensors by columns
}

#[cfg(test)]
mod tests;
