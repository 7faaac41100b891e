//! Writing of safetensors files.

use std::io::{self, Write};

use super::header::{name_of, written};
use crate::element::{Array, DType, Element};
use crate::error::{Error, Result};

/// Writes a safetensors file from a single element, with a tensor for each of its arrays. With
/// [`rows`](SafetensorsWriterOptions::rows), stacks the arrays of many elements as rows of tensors.
///
/// ```
/// use gristmill::source::SafetensorsWriter;
/// use gristmill::{Array, Element};
/// let mut writer = SafetensorsWriter::options().rows(true).write_to(Vec::new());
/// for row in [[1f32, 2.0], [3.0, 4.0]] {
///     writer.write(&Element::new().with("x", Array::from_vec(row.to_vec())))?;
/// }
/// let file = writer.finish()?;
/// assert!(file[8..].starts_with(br#"{"x":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}"#));
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Determinism
/// Equal elements produce equal bytes. Tensors are sorted by type, the largest first, and then by name, as in the
/// format's reference writer.
///
/// # Cost
/// Holds all elements until [`finish`](Self::finish), because each tensor is contiguous in the file. Arrays are shared,
/// not copied.
#[must_use = "nothing is written until `finish`"]
pub struct SafetensorsWriter<W> {
    out: W,
    options: SafetensorsWriterOptions,
    elements: Vec<Element>,
}

/// Options for writing a safetensors file.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "options do nothing until `write_to`"]
pub struct SafetensorsWriterOptions {
    rows: bool,
}

impl SafetensorsWriterOptions {
    /// Sets whether elements become rows of the tensors. Default: false, so that a file has one element.
    pub fn rows(mut self, rows: bool) -> Self {
        self.rows = rows;
        self
    }

    /// Creates a writer to `out`.
    pub fn write_to<W: Write>(self, out: W) -> SafetensorsWriter<W> {
        SafetensorsWriter { out, options: self, elements: Vec::new() }
    }
}

impl SafetensorsWriter<io::Sink> {
    /// Returns the default options.
    pub fn options() -> SafetensorsWriterOptions {
        SafetensorsWriterOptions::default()
    }
}

impl<W: Write> SafetensorsWriter<W> {
    /// Adds an element.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a field is not an array, or if a row differs from the first row in names, types or
    /// shapes. Without `rows`, also for a second element.
    pub fn write(&mut self, element: &Element) -> Result<()> {
        self.check(element).map_err(|e| e.record(self.elements.len() as u64))?;
        self.elements.push(element.clone());
        Ok(())
    }

    fn check(&self, element: &Element) -> Result<()> {
        for (name, _) in element.iter() {
            let array = element.array(name)?;
            if name == "__metadata__" {
                return Err(Error::data("the format keeps the name \"__metadata__\" for itself"));
            }
            let Some(first) = self.elements.first() else { continue };
            let known = first.array(name)?;
            if (known.dtype(), known.shape()) != (array.dtype(), array.shape()) {
                return Err(Error::data(format!("{name:?} is {array:?}, in the first row {known:?}")));
            }
        }
        match self.elements.first() {
            Some(_) if !self.options.rows => {
                Err(Error::data("a second element, where a file has one").help("stack them as rows by `rows`"))
            }
            Some(first) if first.len() != element.len() => {
                Err(Error::data(format!("{} fields, the first row has {}", element.len(), first.len())))
            }
            _ => Ok(()),
        }
    }

    /// Writes the file and returns the output.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn finish(mut self) -> Result<W> {
        let empty = Element::new();
        let first = self.elements.first().unwrap_or(&empty);
        let mut arrays = first.iter().map(|(name, _)| Ok((name, first.array(name)?))).collect::<Result<Vec<_>>>()?;
        arrays.sort_by(|(a, left), (b, right)| name_of(right.dtype()).cmp(&name_of(left.dtype())).then(a.cmp(b)));
        let shape = |array: &Array| -> Vec<usize> {
            let rows = self.options.rows.then_some(self.elements.len());
            rows.into_iter().chain(array.shape().iter().copied()).collect()
        };
        let tensors: Vec<(&str, DType, Vec<usize>)> =
            arrays.iter().map(|(name, array)| (*name, array.dtype(), shape(array))).collect();
        self.out.write_all(&written(&tensors)?).map_err(Error::of_io)?;
        for (name, ..) in &tensors {
            for element in &self.elements {
                self.out.write_all(element.array(name)?.bytes()).map_err(Error::of_io)?;
            }
        }
        self.out.flush().map_err(Error::of_io)?;
        Ok(self.out)
    }
}

debug_as!(<W> SafetensorsWriter<W>, |self, f| write!(f, "SafetensorsWriter({} elements)", self.elements.len()));
