//! Options of loading a tokenizer.

use serde::{Deserialize, Serialize};

/// A choice of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EngineChoice {
    /// The fast one if it reads the file and agrees with the second on the probe texts, else the second. A build without the feature
    /// `text-compat` has no second one: it takes the demo's file, which was compared when this version was made, and refuses others.
    #[default]
    Auto,
    /// The fast one (`tokenizers` 1.0), unchecked.
    Fast,
    /// The second one (`tokenizers` 0.23), in builds with the feature `text-compat`.
    Compat,
}

/// Options of loading a `tokenizer.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TokenizerOptions {
    /// Whether a special token written out in a text, such as `<|endoftext|>`, becomes that token. By default it is
    /// text like any other: a document that quotes the token must not end there.
    pub special_in_text: bool,
    /// The engine to use.
    pub engine: EngineChoice,
}

impl TokenizerOptions {
    /// Sets [`special_in_text`](Self::special_in_text).
    #[must_use]
    pub fn special_in_text(mut self, yes: bool) -> Self {
        self.special_in_text = yes;
        self
    }

    /// Sets [`engine`](Self::engine).
    #[must_use]
    pub fn engine(mut self, choice: EngineChoice) -> Self {
        self.engine = choice;
        self
    }
}
