//! Records out of files.

mod columns;
mod detect;
mod files;
mod index;
mod index_cache;
#[cfg(feature = "compress")]
mod inflate;
mod json;
mod json_text;
mod jsonl;
mod lines;
mod mmap;
mod npy;
mod npy_header;
#[cfg(feature = "compress")]
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "compress")]
mod text_stream;
mod token_crops;
mod tokens;

#[cfg(feature = "parquet")]
pub use self::parquet::{Parquet, ParquetOptions};
pub use detect::{Format, detect};
pub use files::{Patterns, find};
pub use index_cache::IndexCache;
pub use jsonl::{Jsonl, JsonlOptions};
pub use lines::{Lines, LinesOptions};
pub use mmap::{Access, Mapping};
pub use npy::Npy;
#[cfg(feature = "compress")]
pub use npz::Npz;
#[cfg(feature = "compress")]
pub use text_stream::{
    JsonLines, JsonlStream, LineParser, LineStream, PlainLines, StreamOptions, TextStream, TextStreamIter,
    TextStreamState,
};
pub use token_crops::{Crops, RandomCrops};
pub use tokens::{TokenLayout, TokenType, Tokens};
