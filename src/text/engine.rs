//! The trait for tokenizer engines.

use std::fmt::Debug;

use crate::error::Result;

/// Name and version of the second engine, even if the build does not contain it.
pub(super) const SECOND: &str = "tokenizers 0.23.2";

/// A converter between text and token ids. A single object serves the whole process, from any number of threads.
///
/// Engines add no opening or closing tokens. [`TextEncoder`](super::TextEncoder) adds them for every engine.
pub trait Engine: Send + Sync + Debug {
    /// Appends the ids of `text` to `out`. Existing contents of `out` stay unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the vocabulary cannot encode the text.
    fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()>;

    /// Returns the text of `ids`, including special tokens. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for an id outside the vocabulary.
    fn decode(&self, ids: &[u32]) -> Result<String>;

    /// Returns the largest id plus 1, the number of rows of an embedding table. At most 2^31.
    fn vocab_size(&self) -> u32;

    /// Returns the id of a token, written as in the vocabulary.
    fn token_to_id(&self, token: &str) -> Option<u32>;

    /// Returns the name and version for reports.
    fn name(&self) -> &str;
}

/// A built-in engine, with extra methods for checks at load.
pub(super) trait BuiltIn: Engine {
    /// Returns the id that the engine emits for an added token, regardless of the id in the file.
    fn added_id(&self, token: &str) -> Option<u32>;

    /// Returns the typical slowdown; see [`EngineReport::slowdown`](super::EngineReport::slowdown).
    fn slowdown(&self) -> f64;
}

/// Implements the methods that both versions of the library share, based on the field `vocabulary`.
macro_rules! engine_by_vocabulary {
    ($name:ident) => {
        fn decode(&self, ids: &[u32]) -> $crate::error::Result<String> {
            self.vocabulary.check(ids)?;
            self.inner.decode(ids, false).map_err(|e| $crate::error::Error::data(e.to_string()))
        }

        fn vocab_size(&self) -> u32 {
            self.vocabulary.size()
        }

        fn token_to_id(&self, token: &str) -> Option<u32> {
            self.vocabulary.id(token)
        }

        fn name(&self) -> &str {
            $name
        }
    };
}
pub(super) use engine_by_vocabulary;
