//! Data of `gristmill demo`: a seeded corpus of any size and a small tokenizer trained on it.

pub mod corpus;
mod grammar;

use crate::error::Result;
use crate::text::Tokenizer;

/// A byte-level BPE `tokenizer.json` with 4096 tokens, trained on [`corpus`] as the test beside it repeats.
pub const TOKENIZER_JSON: &[u8] = include_bytes!("tokenizer.json");

/// The token that ends a document in [`TOKENIZER_JSON`].
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// Loads [`TOKENIZER_JSON`].
///
/// # Errors
/// As [`Tokenizer::from_bytes`]; the file is tested, so none in practice.
pub fn tokenizer() -> Result<Tokenizer> {
    Tokenizer::from_bytes("demo.tokenizer.json", TOKENIZER_JSON)
}

#[cfg(all(test, feature = "text-compat"))]
mod tests {
    use tokenizers_compat::models::bpe::{BPE, BpeTrainerBuilder};
    use tokenizers_compat::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers_compat::{AddedToken, DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, TokenizerBuilder};

    use super::*;

    const TRAINED_ON_BYTES: u64 = 4_000_000;
    const TRAINED_ON_SEED: u64 = 1784;
    const VOCABULARY: usize = 4096;

    /// The training recipe. Merges are written as `"a b"`, which is smaller and which both engines read.
    fn train() -> String {
        let texts = corpus::Documents::new(TRAINED_ON_SEED).scan(0, |bytes, document| {
            *bytes += document.text.len() as u64;
            (*bytes <= TRAINED_ON_BYTES).then_some(document.text)
        });
        let split = ByteLevel::default().add_prefix_space(false);
        let mut tokenizer =
            TokenizerBuilder::<_, NormalizerWrapper, _, PostProcessorWrapper, DecoderWrapper>::default()
                .with_model(BPE::default())
                .with_pre_tokenizer(Some(split))
                .with_decoder(Some(DecoderWrapper::ByteLevel(split)))
                .build()
                .unwrap();
        let mut trainer = BpeTrainerBuilder::new()
            .show_progress(false)
            .vocab_size(VOCABULARY)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
            .build();
        tokenizer.train(&mut trainer, texts).unwrap();
        let mut file: serde_json::Value = serde_json::from_str(&tokenizer.to_string(false).unwrap()).unwrap();
        for merge in file["model"]["merges"].as_array_mut().unwrap() {
            *merge = format!("{} {}", merge[0].as_str().unwrap(), merge[1].as_str().unwrap()).into();
        }
        file.to_string() + "\n"
    }

    #[test]
    fn the_embedded_tokenizer_is_what_training_gives() {
        let trained = train();
        if std::env::var_os("GRISTMILL_WRITE_DEMO_TOKENIZER").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/demo/tokenizer.json");
            std::fs::write(path, &trained).unwrap();
        }
        assert!(
            trained.as_bytes() == TOKENIZER_JSON,
            "src/demo/tokenizer.json is stale: run this test with GRISTMILL_WRITE_DEMO_TOKENIZER=1 and build again"
        );
        assert!(TOKENIZER_JSON.len() < 150_000);
    }

    #[test]
    fn the_embedded_tokenizer_runs_on_the_fast_engine() {
        let tokenizer = tokenizer().unwrap();
        assert_eq!(tokenizer.engine_report().slowdown, 1.0, "{}", tokenizer.engine_report());
        assert_eq!(tokenizer.vocab_size() as usize, VOCABULARY);
        assert_eq!(tokenizer.token_to_id(END_OF_TEXT).unwrap(), 0);
        let document = corpus::Documents::new(7).next().unwrap();
        let ids = tokenizer.encode(&document.text).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), document.text);
    }
}
