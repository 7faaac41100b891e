//! Records out of files.

mod columns;
mod detect;
mod files;
mod index;
mod index_cache;
mod json;
mod json_text;
mod jsonl;
mod lines;
mod mmap;
mod npy;
mod npy_header;
#[cfg(feature = "compress")]
mod npz;
mod token_crops;
mod tokens;

pub use files::{Patterns, find};
pub use index_cache::IndexCache;
pub use jsonl::{Jsonl, JsonlOptions};
pub use lines::{Lines, LinesOptions};
pub use mmap::{Access, Mapping};
pub use npy::Npy;
#[cfg(feature = "compress")]
pub use npz::Npz;
pub use token_crops::{Crops, RandomCrops};
pub use tokens::{TokenLayout, TokenType, Tokens};
