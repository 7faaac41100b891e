//! Columns of a format, inferred from elements.

use super::Schema;
use crate::element::Element;
use crate::error::Result;

/// Finds out what the columns of a format hold.
pub(in crate::sink) trait Infer: Send {
    /// Takes an element in.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the column, where it cannot hold this value and those before.
    fn add(&mut self, element: &Element) -> Result<()>;

    /// The columns of all elements, in the order of their first appearance.
    fn schema(&self) -> Schema;
}
