//! A loaded tokenizer: one engine object, shared by everyone in the process who loads the same file.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use super::engine::Engine;
use super::known::{self, Key};
use super::load::{EngineReason, EngineReport, Loaded, load};
use super::options::TokenizerOptions;
use crate::error::{Error, Result};
use crate::fork::PerProcess;
use crate::startup::making;

/// A tokenizer: text to ids and back.
///
/// Cloning it costs a reference count. Loading the same bytes with the same options again gives the same engine object
/// as long as any clone of the first is alive.
///
/// # Cost
/// Loading a file of GPT-2's size (1.8 MB) takes about a quarter of a second on two cores, 0.35 s of CPU time: both
/// engines read it and encode the probe texts, each on a thread of its own. Either engine alone takes 0.15 to 0.2 s, and so does
/// the same file from the second time on, and in worker processes, which are told what was found.
/// Encoding English runs at 200 MB/s per core on the fast engine with GPT-2's vocabulary; see
/// [`engine_report`](Self::engine_report) for which one it is.
#[derive(Clone)]
pub struct Tokenizer {
    name: Arc<str>,
    loaded: Arc<Loaded>,
}

type Cache = HashMap<Key, Weak<Loaded>>;

static CACHE: PerProcess<Mutex<Cache>> = PerProcess::new(Mutex::default);

impl Tokenizer {
    /// Loads a `tokenizer.json`, of any version, as [`from_file_with`](Self::from_file_with) does with default options.
    ///
    /// # Errors
    /// As [`from_file_with`](Self::from_file_with).
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_file_with(path, TokenizerOptions::default())
    }

    /// Loads a `tokenizer.json`, of any version.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be read; [`ErrorKind::Data`](crate::ErrorKind::Data) if it
    /// is not JSON, if no engine accepts it, or if the engine gives an added token another id than the file does;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for BPE dropout, which is random. All name the file.
    pub fn from_file_with(path: impl AsRef<Path>, options: TokenizerOptions) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|e| match where_to_get(path) {
            Some(help) => Error::io(e, path).help(help),
            None => Error::io(e, path),
        })?;
        Self::from_bytes_with(&path.to_string_lossy(), &bytes, options)
    }

    /// Loads the content of a `tokenizer.json`; `name` stands for the file in reports and errors.
    ///
    /// # Errors
    /// As [`from_file_with`](Self::from_file_with).
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_with(name, bytes, TokenizerOptions::default())
    }

    /// As [`from_bytes`](Self::from_bytes), with options.
    ///
    /// # Errors
    /// As [`from_file_with`](Self::from_file_with).
    pub fn from_bytes_with(name: &str, bytes: &[u8], options: TokenizerOptions) -> Result<Self> {
        let key = (xxhash_rust::xxh3::xxh3_128(bytes), bytes.len(), options);
        // Held while loading, so that two threads that ask for one file do not load it twice.
        let mut cache = CACHE.lock();
        cache.retain(|_, loaded| loaded.strong_count() > 0);
        if let Some(loaded) = cache.get(&key).and_then(Weak::upgrade) {
            return Ok(Self { name: name.into(), loaded });
        }
        let load = || load(bytes, &options, known::recall(&key));
        let mut loaded = making("a tokenizer loaded", load).map_err(|e| e.path(name))?;
        known::keep(key, &loaded.report);
        let special = if options.special_in_text { "+special" } else { "" };
        let alone = if loaded.report.reason == EngineReason::Alone { "+unchecked" } else { "" };
        loaded.fingerprint = format!("{:032x}{special}{alone}", key.0);
        let loaded = Arc::new(loaded);
        cache.insert(key, Arc::downgrade(&loaded));
        Ok(Self { name: name.into(), loaded })
    }

    /// Uses an engine of your own. Tokens are found by its [`token_to_id`](Engine::token_to_id).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if its vocabulary is empty or larger than 2^31, so that ids do
    /// not fit `i32`.
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

    /// Appends the ids of `text` to `out`; adds nothing around it.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where the vocabulary cannot spell the text.
    pub fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        self.loaded.engine.encode_into(text, out)
    }

    /// The ids of `text`, in a vector of their own.
    ///
    /// # Errors
    /// As [`encode_into`](Self::encode_into).
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        self.encode_into(text, &mut ids)?;
        Ok(ids)
    }

    /// The text of `ids`, special tokens included.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.loaded.engine.decode(ids)
    }

    /// One more than the largest id.
    pub fn vocab_size(&self) -> u32 {
        self.loaded.engine.vocab_size()
    }

    /// The id of a token as the vocabulary writes it: `<|endoftext|>`, `Ġthe`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) that names the nearest token there is.
    pub fn token_to_id(&self, token: &str) -> Result<u32> {
        self.loaded.engine.token_to_id(token).ok_or_else(|| {
            let error = Error::config(format!("no token {token:?} in the vocabulary")).path(&*self.name);
            match self.loaded.vocabulary.as_ref().and_then(|v| v.nearest(token)) {
                Some(nearest) => error.help(format!("the nearest token is {nearest:?}")),
                None => error,
            }
        })
    }

    /// The file, or the name given instead.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text that stands for this tokenizer in the fingerprint of a pipeline: a hash of the file, and whether special tokens
    /// are matched in text, and whether the engine was [compared with none](EngineReason::Alone); for an engine of your own its name and vocabulary size.
    pub fn fingerprint(&self) -> &str {
        &self.loaded.fingerprint
    }

    /// Tells the engine that does the work, why it does, and what that costs.
    pub fn engine_report(&self) -> &EngineReport {
        &self.loaded.report
    }

    /// The engine, shared with all clones.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.loaded.engine
    }
}

/// Help for a path that is no file and does not end with `.json`, such as the name of a model.
pub(crate) fn where_to_get(path: &Path) -> Option<&'static str> {
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    (!is_json).then_some(
        "the path of a tokenizer.json is needed: models on Hugging Face have one, such as https://huggingface.co/openai-community/gpt2/resolve/main/tokenizer.json",
    )
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("name", &self.name).field("engine", &self.loaded.engine).finish()
    }
}
