//! Columns of a format, inferred from elements.

use super::Schema;
use crate::element::Element;
use crate::error::Result;

/// Inference of the columns of a format.
pub(in crate::sink) trait Infer: Send {
    /// Adds an element to the inference.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the column, if the column cannot hold this value and the
    /// earlier values.
    fn add(&mut self, element: &Element) -> Result<()>;

    /// Returns the columns of all elements, in the order of their first appearance.
    fn schema(&self) -> Schema;
}
