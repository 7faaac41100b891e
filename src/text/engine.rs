//! The trait of tokenizer engines.

use std::fmt::Debug;

use crate::error::Result;

/// Name and version of the second engine, also where it is not in the build.
pub(super) const SECOND: &str = "tokenizers 0.23.2";

/// Turns text into token ids and back. One object serves the whole process, from any number of threads.
///
/// An engine adds nothing around a text: tokens that open or close it are put there by
/// [`TextEncoder`](super::TextEncoder), which sees every engine alike.
pub trait Engine: Send + Sync + Debug {
    /// Appends the ids of `text` to `out`, and leaves what `out` already holds alone.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where the vocabulary cannot spell the text.
    fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()>;

    /// The text of `ids`, special tokens included. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for an id outside the vocabulary.
    fn decode(&self, ids: &[u32]) -> Result<String>;

    /// One more than the largest id, which is the number of rows an embedding table needs. At most 2^31.
    fn vocab_size(&self) -> u32;

    /// The id of a token as the vocabulary writes it.
    fn token_to_id(&self, token: &str) -> Option<u32>;

    /// Name and version, as reports print it.
    fn name(&self) -> &str;
}

/// The trait of engines that are built in, for loading.
pub(super) trait BuiltIn: Engine {
    /// The id that it emits for an added token, whatever the file says.
    fn added_id(&self, token: &str) -> Option<u32>;

    /// See [`EngineReport::slowdown`](super::EngineReport::slowdown).
    fn slowdown(&self) -> f64;
}

/// Answers of an engine, of either version of one library, that its `vocabulary` gives.
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
