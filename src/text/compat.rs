//! The second engine, Hugging Face `tokenizers` 0.23: for files that the fast engine refuses or encodes differently.

use std::sync::Arc;

use tokenizers_compat::Tokenizer as Inner;

use super::engine::{BuiltIn, Engine, SECOND, engine_by_vocabulary};
use super::vocab::Vocabulary;
use crate::error::{Error, Result};

pub(super) const IS_THERE: bool = true;

/// Slowdown against the fast engine on English text, measured with GPT-2's vocabulary: 4.2 to 4.9 MB/s against 195 to
/// 228 MB/s on one core.
const SLOWDOWN: f64 = 40.0;

pub(super) struct CompatEngine {
    inner: Inner,
    vocabulary: Arc<Vocabulary>,
}

impl CompatEngine {
    /// Builds the engine from the bytes of a `tokenizer.json`. `Err` contains the engine's message.
    pub(super) fn load(bytes: &[u8], vocabulary: Arc<Vocabulary>, special_in_text: bool) -> Result<Self, String> {
        let mut inner = Inner::from_bytes(bytes).map_err(|e| e.to_string())?;
        inner.with_truncation(None).map_err(|e| e.to_string())?;
        inner.with_padding(None);
        inner.set_encode_special_tokens(!special_in_text);
        Ok(Self { inner, vocabulary })
    }
}

impl Engine for CompatEngine {
    fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        let encoding = self.inner.encode_fast(text, false).map_err(|e| Error::data(e.to_string()))?;
        out.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    engine_by_vocabulary!(SECOND);
}

impl BuiltIn for CompatEngine {
    fn added_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    fn slowdown(&self) -> f64 {
        SLOWDOWN
    }
}

debug_as!(CompatEngine, |self, f| {
    f.debug_struct("CompatEngine").field("name", &SECOND).field("vocabulary", &self.vocabulary).finish()
});
