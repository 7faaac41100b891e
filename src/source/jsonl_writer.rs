//! Writer of JSON Lines.

use std::io::Write;

use super::json::write::object;
use crate::element::Element;
use crate::error::{Error, Result};

/// Writes elements as JSON Lines, an object per line.
///
/// | value | JSON |
/// |---|---|
/// | text | string |
/// | scalar | number; `bool` as `true` or `false` |
/// | array | list; nested lists if the array has several dimensions |
/// | list, tree, null | list, object, `null` |
///
/// Numbers have enough digits to read back unchanged in their own precision.
///
/// ```
/// use gristmill::source::JsonlWriter;
/// use gristmill::{Array, Element};
/// let mut writer = JsonlWriter::new(Vec::new());
/// writer.write(&Element::new().with("id", Array::scalar(7u8)).with("x", Array::from_vec(vec![0.1f32, -2.0])))?;
/// assert_eq!(writer.finish()?, b"{\"id\":7,\"x\":[0.1,-2.0]}\n");
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the field, for values that JSON cannot represent: bytes and numbers
/// that are not finite.
#[must_use = "what is not finished may not be written"]
pub struct JsonlWriter<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> JsonlWriter<W> {
    /// Writes to `out`, a line at a time.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for a value that JSON cannot represent;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails.
    pub fn write(&mut self, element: &Element) -> Result<()> {
        self.line.clear();
        object(&mut self.line, element)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line).map_err(Error::of_io)
    }

    /// Flushes the output and returns it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if flushing fails.
    pub fn finish(mut self) -> Result<W> {
        self.out.flush().map_err(Error::of_io)?;
        Ok(self.out)
    }
}

debug_as!(<W> JsonlWriter<W>, |self, f| f.write_str("JsonlWriter"));
