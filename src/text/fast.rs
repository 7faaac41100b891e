//! The default engine: Hugging Face `tokenizers` 1.0.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::Value;
use tokenizers::pipeline::{EncodeOptions, Override, PipelineToken, PipelineTokenizer};

use super::engine::{BuiltIn, Engine, engine_by_vocabulary};
use super::vocab::Vocabulary;
use crate::error::{Error, Result};

pub(super) const NAME: &str = "tokenizers 1.0.0-rc.3";

/// Maximum number of scratch ids that a thread keeps between calls (4 MiB).
const KEPT_IDS: usize = 1 << 20;

thread_local! {
    // The engine appends to a custom id type. A single block copy per text converts it to `u32`.
    static SCRATCH: RefCell<Vec<PipelineToken>> = const { RefCell::new(Vec::new()) };
}

pub(super) struct FastEngine {
    inner: PipelineTokenizer,
    options: EncodeOptions,
    vocabulary: Arc<Vocabulary>,
}

impl FastEngine {
    /// Builds the engine from a parsed `tokenizer.json` of any version. `Err` contains the engine's message.
    pub(super) fn load(mut file: Value, vocabulary: Arc<Vocabulary>, special_in_text: bool) -> Result<Self, String> {
        if let Some(root) = file.as_object_mut() {
            // The engine adds no tokens around a text, so templates that the converter cannot read are dropped.
            for key in ["post_processor", "truncation", "padding"] {
                root.insert(key.to_owned(), Value::Null);
            }
        }
        tokenizers::canonicalize_value(&mut file).map_err(|e| e.to_string())?;
        let canonical = file.to_string();
        drop(file);
        let inner = tokenizers::from_json(&canonical).map_err(|e| e.to_string())?;
        let options = EncodeOptions {
            add_special_tokens: false,
            encode_special_tokens: !special_in_text,
            padding: Override::Off,
            truncation: Override::Off,
        };
        Ok(Self { inner, options, vocabulary })
    }
}

impl Engine for FastEngine {
    fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        let mut ids = SCRATCH.take();
        ids.clear();
        let encoded = self.inner.encode_into(text, &self.options, &mut ids);
        out.extend_from_slice(PipelineToken::cast_slice(&ids));
        ids.truncate(KEPT_IDS);
        ids.shrink_to(KEPT_IDS);
        SCRATCH.set(ids);
        encoded.map_err(|e| Error::data(e.to_string()))
    }

    engine_by_vocabulary!(NAME);
}

impl BuiltIn for FastEngine {
    fn added_id(&self, token: &str) -> Option<u32> {
        self.inner.get_added_vocabulary().token_to_id(token)
    }

    fn slowdown(&self) -> f64 {
        1.0
    }
}

debug_as!(FastEngine, |self, f| {
    f.debug_struct("FastEngine").field("name", &NAME).field("vocabulary", &self.vocabulary).finish()
});
