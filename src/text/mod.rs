//! Text to token ids.
//!
//! [`Tokenizer`] loads a `tokenizer.json` and converts text to ids through a trait, [`Engine`]. Two engines are built
//! in: Hugging Face `tokenizers` 1.0, which is fast, and 0.23, which is slower but older and complete. At load, both
//! encode a set of hard probe texts. If they differ, or if the fast engine refuses the file, the slower engine is used, and
//! [`Tokenizer::engine_report`] gives the reason.
//!
//! The feature `text-compat` adds the second engine. A build without it checks files with the split of GPT-2, Llama 3,
//! Qwen 2, GPT-4o or StarCoder against their merges. All other files run on the fast engine, and the report notes that
//! nothing was compared ([`EngineReason::Alone`]).
//!
//! [`TextEncoder`] adds opening and closing tokens and a length limit. [`Tokenise`] applies an encoder to columns of
//! elements. The [`prelude`](crate::prelude) gives every dataset of elements a stage `tokenise`, which takes a file,
//! a tokenizer or an encoder:
//!
//! ```
//! use gristmill::dataset::map::Source;
//! use gristmill::prelude::*;
//! use gristmill::text::{TextEncoder, TokeniseOptions};
//! use gristmill::{Element, demo};
//!
//! let options = TokeniseOptions::default().append_eos(demo::END_OF_TEXT);
//! let encoder = TextEncoder::new(demo::tokenizer()?, &options)?;
//! let texts = Source::new(vec![Element::new().with("text", "The miller sleeps."), Element::new().with("text", "")]);
//! let tokens = texts.tokenise(encoder, "text")?.collect()?;
//! assert_eq!(tokens[1].array("tokens")?.as_slice::<i32>()?, [0]);
//! # Ok::<(), gristmill::Error>(())
//! ```

mod checked;
#[cfg(feature = "text-compat")]
mod compat;
#[cfg(not(feature = "text-compat"))]
#[path = "no_compat.rs"]
mod compat;
mod convert;
mod encoder;
mod engine;
#[cfg_attr(not(feature = "spec"), allow(dead_code, reason = "pipeline files read entries"))]
pub(crate) mod entry;
mod fast;
mod known;
mod load;
mod options;
mod probe;
mod stage;
mod tokenise;
mod tokenizer;
mod vocab;

pub use convert::Ranks;
pub use encoder::{IntoEncoder, LengthCounts, Overflow, TextEncoder, TokenName, TokeniseOptions};
pub use engine::Engine;
#[cfg(all(test, feature = "workers", target_os = "linux"))]
pub(crate) use known::tests as known_tests;
pub(crate) use known::{Known, known, learn};
pub use load::{EngineReason, EngineReport};
pub use options::{EngineChoice, TokenizerOptions};
pub use stage::{Chunks, Mode, TokeniseIter, TokeniseMap, Tokenised, TokenisedIter, Whole};
pub use tokenise::Tokenise;
pub use tokenizer::Tokenizer;
