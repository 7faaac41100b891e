//! The identity of an element, independent of any evaluation.

use bytemuck::{Pod, Zeroable};

/// The identity of an element: the key by which plans list elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ElementId {
    /// The element's index before its border.
    pub(crate) index: u64,
    /// The element's number among the elements of the index.
    pub(crate) piece: u32,
    /// The number of the border.
    pub(crate) border: u32,
}

impl ElementId {
    /// Creates the identity of element number `piece` of an index before border number `border`.
    pub(crate) fn new(border: u32, index: u64, piece: u32) -> Self {
        Self { index, piece, border }
    }
}
