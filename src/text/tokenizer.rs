//! A loaded tokenizer: an engine object, shared by all loads of a file in the process.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use super::convert::{self, Converted};
use super::engine::Engine;
use super::known::{self, Key};
use super::load::{EngineReason, EngineReport, Loaded, load};
use super::options::TokenizerOptions;
use super::probe;
use crate::error::{Error, ErrorKind, Result};
use crate::fork::PerProcess;
use crate::startup::making;

/// A tokenizer: text to ids and back.
///
/// Cloning increments a reference count. Loading equal bytes with equal options returns the existing engine object while
/// any clone is alive.
///
/// # Cost
/// Loading a file of GPT-2's size (1.8 MB) takes about 0.25 s on two cores, or 0.35 s of CPU time. Both engines read the
/// file and encode the probe texts, each on a separate thread. A single engine takes 0.15 to 0.2 s. Later loads of the
/// file take as long as a single engine, also in worker processes, which receive the earlier report.
///
/// Encoding English text runs at 200 MB/s per core on the fast engine with GPT-2's vocabulary. See
/// [`engine_report`](Self::engine_report) for the engine in use.
#[derive(Clone)]
pub struct Tokenizer {
    name: Arc<str>,
    loaded: Arc<Loaded>,
}

type Cache = HashMap<Key, Weak<Loaded>>;

static CACHE: PerProcess<Mutex<Cache>> = PerProcess::new(Mutex::default);

impl Tokenizer {
    /// Loads the file of a tokenizer with default options.
    ///
    /// # Errors
    /// Fails like [`from_file_with`](Self::from_file_with).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_file_with(path, TokenizerOptions::default())
    }

    /// Loads a `tokenizer.json` of any version, a `.tiktoken` file of a known encoding, or a SentencePiece model of BPE or
    /// Unigram, with options. The contents of the file decide on its format.
    ///
    /// The known encodings are r50k_base (GPT-2), p50k_base, cl100k_base, o200k_base, and those of Llama 3 and Qwen. A file of
    /// ranks lacks the split expression and the special tokens; for other encodings, see [`Ranks::tokenizer_json`](super::Ranks::tokenizer_json).
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read; [`ErrorKind::Data`](crate::ErrorKind::Data) if the
    /// file has none of these formats, if no engine accepts it, or if the id of an added token differs between engine and
    /// file; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for BPE dropout, which is random, for ranks of an unknown
    /// encoding, and for rules of SentencePiece that the engines lack. All errors name the file.
    pub fn from_file_with(path: impl AsRef<Path>, options: TokenizerOptions) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| match where_to_get(path) {
            Some(help) => Error::io(e, path).help(help),
            None => Error::io(e, path),
        })?;
        Self::from_bytes_with(&path.to_string_lossy(), &bytes, options)
    }

    /// Loads the contents of a tokenizer's file. Reports and errors use `name` in place of a path.
    ///
    /// # Errors
    /// Fails like [`from_file_with`](Self::from_file_with).
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_with(name, bytes, TokenizerOptions::default())
    }

    /// Works like [`from_bytes`](Self::from_bytes), with options.
    ///
    /// # Errors
    /// Fails like [`from_file_with`](Self::from_file_with).
    pub fn from_bytes_with(name: &str, bytes: &[u8], options: TokenizerOptions) -> Result<Self> {
        let key = (xxhash_rust::xxh3::xxh3_128(bytes), bytes.len(), options);
        // Locked during the load, so that concurrent requests for a file load it only once.
        let mut cache = CACHE.lock();
        cache.retain(|_, loaded| loaded.strong_count() > 0);
        if let Some(loaded) = cache.get(&key).and_then(Weak::upgrade) {
            return Ok(Self { name: name.into(), loaded });
        }
        let load = || load(bytes, &options, known::recall(&key));
        let loaded = Arc::new(making("a tokenizer loaded", load).map_err(|e| e.path(name))?);
        known::keep(key, &loaded.report);
        cache.insert(key, Arc::downgrade(&loaded));
        Ok(Self { name: name.into(), loaded })
    }

    /// Returns the `tokenizer.json` that the contents of a tokenizer's file are converted to.
    ///
    /// # Errors
    /// Fails like [`from_file_with`](Self::from_file_with), except that no engine reads the result.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a SentencePiece model, whose rules no `tokenizer.json` has.
    pub fn to_json(contents: &[u8]) -> Result<Vec<u8>> {
        match convert::read(contents)? {
            Converted::Json { bytes, normaliser: None } => Ok(bytes.into_owned()),
            _ => {
                let message = "no tokenizer.json has the rules of a SentencePiece model";
                Err(Error::new(ErrorKind::Unsupported, message).help("use the file of the model in its place"))
            }
        }
    }

    /// Returns hard texts on which implementations of a tokenizer are known to differ, for comparisons with another one. They
    /// include added tokens of this tokenizer.
    pub fn hard_texts(&self) -> Vec<String> {
        probe::texts(self.loaded.vocabulary.as_ref().map_or(&[], |vocabulary| &vocabulary.added))
    }

    /// Makes a tokenizer from a custom engine. Tokens are looked up with [`token_to_id`](Engine::token_to_id).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the vocabulary is empty, or larger than 2^31 so that ids do not fit
    /// in `i32`.
    pub fn from_engine(engine: Arc<dyn Engine>) -> Result<Self> {
        let (size, name) = (engine.vocab_size(), engine.name().to_owned());
        if size == 0 || size > 1 << 31 {
            return Err(Error::config(format!(
                "engine {name} has a vocabulary of {size}, allowed are 1 to 2147483648"
            )));
        }
        let report = EngineReport { engine: name.clone(), reason: EngineReason::Asked, slowdown: 1.0 };
        let fingerprint = format!("{name} of {size}");
        Ok(Self { name: name.into(), loaded: Arc::new(Loaded { engine, vocabulary: None, report, fingerprint }) })
    }

    /// Appends the ids of `text` to `out`, without opening or closing tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the vocabulary cannot encode the text.
    pub fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        self.loaded.engine.encode_into(text, out)
    }

    /// Returns the ids of `text` in a new vector.
    ///
    /// # Errors
    /// Fails like [`encode_into`](Self::encode_into).
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encode_into(text, &mut ids)?;
        Ok(ids)
    }

    /// Returns the text of `ids`, including special tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.loaded.engine.decode(ids)
    }

    /// Returns the largest id plus 1.
    pub fn vocab_size(&self) -> u32 {
        self.loaded.engine.vocab_size()
    }

    /// Returns the id of a token, written as in the vocabulary: `<|endoftext|>`, `Ġthe`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) that names the nearest existing token.
    pub fn token_to_id(&self, token: &str) -> Result<u32> {
        self.loaded.engine.token_to_id(token).ok_or_else(|| {
            let error = Error::config(format!("no token {token:?} in the vocabulary")).path(&*self.name);
            match self.loaded.vocabulary.as_ref().and_then(|v| v.nearest(token)) {
                Some(nearest) => error.help(format!("the nearest token is {nearest:?}")),
                None => error,
            }
        })
    }

    /// Returns the path of the file, or the name given in its place.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text for this tokenizer in the fingerprint of a pipeline. It contains a hash of the file, and marks for
    /// special tokens matched in text and for an engine that was [not compared](EngineReason::Alone). For a custom engine, it
    /// contains the name and the vocabulary size.
    pub fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    /// Returns the engine in use, the reason for the choice, and its cost.
    pub fn engine_report(&self) -> &EngineReport {
        &self.loaded.report
    }

    /// Returns the engine, shared with all clones.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.loaded.engine
    }
}

/// Returns help for a path that cannot be read and has no ending of a tokenizer's file, such as the name of a model.
pub(super) fn where_to_get(path: &Path) -> Option<&'static str> {
    let is_file = ["json", "model", "tiktoken"]
        .map(|known| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(known)));
    (!is_file.contains(&true)).then_some(
        "the path of a tokenizer.json, a .tiktoken file or a SentencePiece model is needed: models on Hugging Face have one, such as https://huggingface.co/openai-community/gpt2/resolve/main/tokenizer.json",
    )
}

debug_as!(Tokenizer, |self, f| {
    f.debug_struct("Tokenizer").field("name", &self.name).field("engine", &self.loaded.engine).finish()
});
