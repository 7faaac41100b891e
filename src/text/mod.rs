//! Text to token ids.
//!
//! [`Tokenizer`] loads a `tokenizer.json` and turns text into ids through one trait, [`Engine`]. Two engines are built
//! in: Hugging Face `tokenizers` 1.0, fast, and 0.23, slower but older and complete. When a file is loaded, both encode
//! a set of hard probe texts; where they differ, or where the fast one refuses the file, the slower one serves, and
//! [`Tokenizer::engine_report`] says so. The second engine is the feature `text-compat`. A build without it checks files that split text as GPT-2,
//! Llama 3, Qwen 2, GPT-4o or StarCoder do by their merges; all other files run on the fast engine, and the report notes that nothing was compared
//! ([`EngineReason::Alone`]). [`TextEncoder`] adds what a pipeline needs around a text: tokens that open and
//! close it, and what to do when it is too long. [`Tokenise`] applies that to columns of elements; with [`TokeniseMap`]
//! or [`TokeniseIter`] in scope every dataset of elements has it as a stage:
//!
//! ```
//! use gristmill::dataset::map::Source;
//! use gristmill::text::{TextEncoder, Tokenise, TokeniseMap, TokeniseOptions};
//! use gristmill::{Element, MapDataset, demo};
//!
//! let options = TokeniseOptions::default().append_eos(demo::END_OF_TEXT);
//! let encoder = TextEncoder::new(demo::tokenizer()?, &options)?;
//! let texts = Source::new(vec![Element::new().with("text", "The miller sleeps."), Element::new().with("text", "")]);
//! let tokens = texts.tokenise(Tokenise::column(encoder, "text")).collect()?;
//! assert_eq!(tokens[1].array("tokens")?.as_slice::<i32>()?, [0]);
//! # Ok::<(), gristmill::Error>(())
//! ```

mod checked;
#[cfg(feature = "text-compat")]
mod compat;
#[cfg(not(feature = "text-compat"))]
#[path = "no_compat.rs"]
mod compat;
mod encoder;
mod engine;
mod fast;
mod known;
mod load;
mod options;
mod probe;
mod stage;
mod tokenise;
mod tokenizer;
mod vocab;

pub use encoder::{LengthCounts, Overflow, TextEncoder, TokenName, TokeniseOptions};
pub use engine::Engine;
#[cfg(all(test, feature = "workers", target_os = "linux"))]
pub(crate) use known::tests as known_tests;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use known::{Known, known, learn};
pub use load::{EngineReason, EngineReport};
pub use options::{EngineChoice, TokenizerOptions};
pub use stage::{Chunks, Mode, TokeniseIter, TokeniseMap, Tokenised, TokenisedIter, Whole};
pub use tokenise::Tokenise;
pub use tokenizer::Tokenizer;
#[cfg(feature = "spec")]
pub(crate) use tokenizer::where_to_get;
