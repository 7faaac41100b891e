//! What the formats made of Arrow's record batches share.

pub(crate) mod cache;
pub(crate) mod columns;
pub(crate) mod types;
pub(crate) mod value;
