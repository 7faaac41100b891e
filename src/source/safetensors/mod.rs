//! Safetensors files: named tensors behind a header of JSON.
//!
//! The format: <https://github.com/huggingface/safetensors>. Headers are parsed and checked by its own crate.

mod header;
mod writer;

use std::fmt;
use std::path::PathBuf;

use rayon::prelude::*;

use self::header::{Header, Tensor};
pub use self::writer::{SafetensorsWriter, SafetensorsWriterOptions};
use super::columns::instead;
use super::content::{self, Content};
use super::files::{self, FileId, Patterns};
use super::firsts::Firsts;
use super::mmap::Access;
use super::npy::aligned;
use crate::cores;
use crate::dataset::map::RandomAccess;
use crate::element::{Array, Element, Name};
use crate::error::{Error, Result};

const ENDINGS: [&str; 1] = [".safetensors"];

/// Tensors of safetensors files: a [`RandomAccess`] source of [`Element`].
///
/// A record is a file, with its tensors by name, in the order in which they lie there; or, with [`SafetensorsOptions::rows`], row `i`
/// of every tensor along the first dimension, which they then share, through all files. Tensors and rows are views of the mapped
/// files where they lie at a fitting place.
///
/// `BOOL`, integers, `F16`, `BF16`, `F32` and `F64` are read. Other types are refused by the tensor's name, but for floats of 8 bits,
/// which [`SafetensorsOptions::float8_as_u8`] takes as they are.
///
/// # Errors
/// Opening a file whose header is damaged, or does not describe exactly what follows it, is [`ErrorKind::Data`](crate::ErrorKind::Data)
/// with the byte offset; tensors of other types are [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// # Cost
/// Opening reads the headers; reading a record reads its bytes and no others.
pub struct Safetensors {
    files: Vec<File>,
    /// Rows of the files, if these are the records.
    firsts: Option<Firsts>,
    identity: String,
}

struct File {
    path: PathBuf,
    content: Content,
    tensors: Vec<Tensor>,
}

impl Safetensors {
    /// Opens files, globs or directories (of `.safetensors` files) with the default options.
    ///
    /// # Errors
    /// If nothing is found, or a header is damaged.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> SafetensorsOptions {
        SafetensorsOptions::default()
    }
}

/// How [`Safetensors`] files are opened.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct SafetensorsOptions {
    access: Access,
    rows: bool,
    float8_as_u8: bool,
    columns: Option<Vec<Name>>,
}

impl SafetensorsOptions {
    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Whether a record is a row of all tensors instead of a file; `false` at first.
    pub fn rows(mut self, rows: bool) -> Self {
        self.rows = rows;
        self
    }

    /// Whether floats of 8 bits are read as the bytes they are, `uint8`; `false` at first.
    pub fn float8_as_u8(mut self, float8_as_u8: bool) -> Self {
        self.float8_as_u8 = float8_as_u8;
        self
    }

    /// The tensors to read, in this order; all of them at first.
    pub fn columns<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(columns.into_iter().map(|column| Name::new(column.as_ref())).collect());
        self
    }

    /// Opens files, globs or directories (of `.safetensors` files).
    ///
    /// # Errors
    /// As [`Safetensors::open`]; [`ErrorKind::Data`](crate::ErrorKind::Data) if a chosen tensor is not there, or, for rows, tensors
    /// differ in the number of them, or files in anything else.
    pub fn open(self, patterns: impl Patterns) -> Result<Safetensors> {
        self.of(content::open_all(patterns, &ENDINGS, self.access)?)
    }

    fn of(&self, contents: Vec<(PathBuf, Content)>) -> Result<Safetensors> {
        let open = |(path, content)| self.file(path, content);
        let opened = cores::on_all(|| contents.into_par_iter().map(open).collect::<Result<Vec<_>>>())?;
        let (files, ids): (Vec<File>, Vec<FileId>) = opened.into_iter().unzip();
        let chosen = self.columns.iter().map(|columns| format!(", columns=[{}]", columns.join(", ")));
        let rows = self.rows.then(|| ", rows".to_owned());
        let identity = [files::identity(&ids)].into_iter().chain(chosen).chain(rows).collect();
        let firsts = self.rows.then(|| rows_of(&files)).transpose()?;
        Ok(Safetensors { files, firsts, identity })
    }

    fn file(&self, path: PathBuf, content: Content) -> Result<(File, FileId)> {
        let id = content.id(&path)?;
        let header = Header::read(&content).map_err(|e| e.path(&path))?;
        let tensors = match &self.columns {
            None => header.tensors(self.float8_as_u8),
            Some(columns) => columns.iter().map(|name| self.chosen(&header, name)).collect(),
        };
        let tensors = tensors.map_err(|e| e.path(&path))?;
        Ok((File { path, content, tensors }, id))
    }

    fn chosen(&self, header: &Header, name: &str) -> Result<Tensor> {
        let tensor = header.tensor(name, self.float8_as_u8);
        tensor.unwrap_or_else(|| {
            let names = header.names();
            Err(Error::data(instead(name, names.iter().map(String::as_str))).offset(8))
        })
    }

    /// A file that is in memory already.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_bytes(&self, bytes: &[u8]) -> Result<Safetensors> {
        self.of(vec![("a.safetensors".into(), crate::element::Buffer::copy_from(bytes).into())])
    }
}

/// Rows of each file, whose tensors must be those of the first but for their number.
fn rows_of(files: &[File]) -> Result<Firsts> {
    let mut counts = Vec::new();
    for file in files {
        let wrong = |text: String| Err(Error::data(text).path(&file.path).offset(8));
        let mut rows: Option<(&Tensor, u64)> = None;
        for tensor in &file.tensors {
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
            && (first.tensors.len() != file.tensors.len() || !first.tensors.iter().zip(&file.tensors).all(same))
        {
            let name = files::file_name(&first.path).into_owned();
            return wrong(format!("its tensors differ from those of {name} in names, types or shapes"));
        }
        counts.push(rows.map_or(0, |(_, rows)| rows));
    }
    Firsts::of(counts)
}

impl File {
    fn element(&self, array: impl Fn(&Tensor) -> Result<Array>) -> Result<Element> {
        let mut fields = Vec::with_capacity(self.tensors.len());
        for tensor in &self.tensors {
            fields.push((tensor.name.clone(), array(tensor)?.into()));
        }
        Ok(Element::from_unique(fields))
    }

    fn whole(&self, tensor: &Tensor) -> Result<Array> {
        aligned(Array::new(tensor.dtype, &tensor.shape, self.content.read(tensor.bytes.clone())?)?)
    }

    fn row(&self, tensor: &Tensor, row: u64) -> Result<Array> {
        let (shape, bytes) = tensor.row(row);
        aligned(Array::new(tensor.dtype, shape, self.content.read(bytes)?)?)
    }
}

impl RandomAccess for Safetensors {
    type Record = Element;

    fn len(&self) -> u64 {
        self.firsts.as_ref().map_or(self.files.len() as u64, Firsts::len)
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Element> {
        let (at, row) = match &self.firsts {
            Some(firsts) => firsts.find(index).map(|(at, row)| (at, Some(row)))?,
            None => (usize::try_from(index).unwrap_or(usize::MAX), None),
        };
        let missing = || Error::data(format!("no file {index}: there are {}", self.files.len()));
        let file = self.files.get(at).ok_or_else(missing)?;
        let element = match row {
            Some(row) => file.element(|tensor| file.row(tensor, row)),
            None => file.element(|tensor| file.whole(tensor)),
        };
        element.map_err(|e| e.path(&file.path))
    }

    fn name(&self) -> &'static str {
        "safetensors"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }
}

impl fmt::Debug for Safetensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Safetensors({} records, {} files)", self.len(), self.files.len())
    }
}

#[cfg(test)]
mod tests;
