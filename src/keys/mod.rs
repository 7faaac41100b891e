//! Keys of elements: whether each is kept and how long it is. By them hosts plan what all of them make, see [`plan`](crate::dataset::plan).

mod find;
mod recompute;

pub use find::{Key, KeySource, Keyed, Keys};
pub use recompute::Recompute;
