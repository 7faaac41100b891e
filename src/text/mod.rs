//! Text to token ids.
//!
//! [`Tokenizer`] loads a `tokenizer.json` and turns text into ids through one trait, [`Engine`]. Two engines are built
//! in: Hugging Face `tokenizers` 1.0, fast, and 0.23, slower but older and complete. When a file is loaded, both encode
//! a set of hard probe texts; where they differ, or where the fast one refuses the file, the slower one serves, and
//! [`Tokenizer::engine_report`] says so. [`TextEncoder`] adds what a pipeline needs around a text: tokens that open and
//! close it, and what to do when it is too long.

mod compat;
mod encoder;
mod engine;
mod fast;
mod load;
mod probe;
mod tokenizer;
mod vocab;

pub use encoder::{LengthCounts, Overflow, TextEncoder, TokenName, TokeniseOptions};
pub use engine::Engine;
pub use load::{EngineReason, EngineReport};
pub use tokenizer::{EngineChoice, Tokenizer, TokenizerOptions};

use crate::error::{Error, Result};

/// Engines pass over ids that they do not know, or panic; both hide a mistake.
fn check_ids(ids: &[u32], vocab_size: u32) -> Result<()> {
    match ids.iter().position(|&id| id >= vocab_size) {
        Some(at) => Err(Error::data(format!("id {} at {at} is outside the vocabulary of {vocab_size}", ids[at]))),
        None => Ok(()),
    }
}
