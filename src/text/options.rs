//! Options for loading a tokenizer.

use serde::{Deserialize, Serialize};

/// The choice of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EngineChoice {
    /// The fast engine if it reads the file and agrees with the second engine on the probe texts, else the second engine. A
    /// build without the feature `text-compat` uses the fast engine, checked against the merges of files of known families.
    #[default]
    Auto,
    /// The fast engine (`tokenizers` 1.0), unchecked.
    Fast,
    /// The second engine (`tokenizers` 0.23), in builds with the feature `text-compat`.
    Compat,
}

/// Options for loading a `tokenizer.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenizerOptions {
    /// Whether a special token written out in a text, such as `<|endoftext|>`, is encoded as this token. By default it is
    /// encoded as plain text: a document that quotes the token must not end there.
    pub special_in_text: bool,
    /// The engine to use.
    pub engine: EngineChoice,
}

impl TokenizerOptions {
    setters! {
        /// Sets [`special_in_text`](Self::special_in_text).
        #[must_use]
        pub special_in_text: bool;

        /// Sets [`engine`](Self::engine).
        #[must_use]
        pub engine: EngineChoice;
    }
}
