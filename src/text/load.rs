//! Loading of a `tokenizer.json` and selection of its engine.

use std::fmt;
use std::sync::Arc;
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::checked::Check;
use super::compat::{self, CompatEngine};
use super::convert::{self, Converted, Normalised, Normaliser, UnigramEngine};
use super::engine::{BuiltIn, Engine, SECOND};
use super::fast::{self, FastEngine};
use super::options::{EngineChoice, TokenizerOptions};
use super::probe;
use super::vocab::{AddedToken, Vocabulary};
use crate::error::{Error, ErrorKind, Result};

/// The reason for the choice of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum EngineReason {
    /// Both engines encode all probe texts identically.
    Checked {
        /// Number of probe texts.
        texts: usize,
    },
    /// This build has no second engine. Both engines were compared on files with an identical split, and the ids of some
    /// words match the merges of this file.
    Known {
        /// The best-known tokenizer with this split, such as `GPT-2`.
        family: String,
        /// Number of words compared with the merges.
        words: usize,
    },
    /// This build has no second engine, and the file is of no known family: nothing was compared. The fingerprint of a
    /// pipeline notes this, because a build with both engines may choose the other engine.
    Alone,
    /// The fast engine reads the file but the second engine does not, so nothing could be compared.
    Unchecked {
        /// The error of the second engine.
        refusal: String,
    },
    /// The fast engine does not read the file.
    Refused {
        /// The error of the fast engine.
        refusal: String,
    },
    /// Both engines read the file but encode a probe text differently. The second engine is the reference.
    Differs {
        /// The first text that differs, and both lists of ids.
        difference: String,
    },
    /// The caller chose this engine.
    Asked,
}

/// The engine of a tokenizer, with the reason for the choice and its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EngineReport {
    /// Name and version of the engine.
    pub engine: String,
    /// The reason for this engine.
    pub reason: EngineReason,
    /// Typical slowdown against the fast engine on English text: 1 for the fast engine itself.
    pub slowdown: f64,
}

impl EngineReport {
    /// Returns the report as text if it needs attention: the engine is slow or was not compared.
    pub(crate) fn remark(&self) -> Option<String> {
        (self.slowdown > 1.0 || self.reason == EngineReason::Alone).then(|| self.to_string())
    }
}

impl fmt::Display for EngineReport {
    /// Formats the report as a line, such as `tokenizers 1.0.0-rc.3, equal to tokenizers 0.23.2 on 487 probe texts`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, reason, slowdown } = self;
        let (fast, compat) = (fast::NAME, SECOND);
        write!(f, "{engine}")?;
        match reason {
            EngineReason::Checked { texts } => write!(f, ", equal to {compat} on {texts} probe texts")?,
            EngineReason::Known { family, words } => write!(
                f,
                ", equal to {compat} on files that split text as {family}'s do, and to the merges of this file on {words} words"
            )?,
            EngineReason::Alone => write!(f, ", compared with no other engine, as this build has one")?,
            EngineReason::Unchecked { refusal } => write!(f, ", not compared: {compat} refuses the file ({refusal})")?,
            EngineReason::Refused { refusal } => write!(f, ", because {fast} refuses the file ({refusal})")?,
            EngineReason::Differs { difference } => write!(f, ", because {fast} differs on {difference}")?,
            EngineReason::Asked => write!(f, ", as asked")?,
        }
        if *slowdown > 1.0 {
            write!(f, "; tokenising takes about {slowdown:.0} times as long")?;
        }
        Ok(())
    }
}

/// An engine that passed the checks of [`load`].
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) engine: Arc<dyn Engine>,
    /// The vocabulary; `None` for a custom engine.
    pub(super) vocabulary: Option<Arc<Vocabulary>>,
    pub(super) report: EngineReport,
    /// The fingerprint: a hash of the file, or of the file that it was converted to, and marks for the options.
    pub(super) fingerprint: String,
}

/// Loads the bytes of a `tokenizer.json`, or of a tokenizer [converted](convert) to one. Skips the comparison if `known`
/// contains an earlier report. Errors have no path yet.
pub(super) fn load(bytes: &[u8], options: &TokenizerOptions, known: Option<EngineReport>) -> Result<Loaded> {
    let (bytes, normaliser) = match convert::read(bytes)? {
        Converted::Json { bytes, normaliser } => (bytes, normaliser),
        Converted::Unigram { engine, normaliser, hash } => return unigram(engine, normaliser, hash, options),
    };
    let hash = match &normaliser {
        None => xxh3_128(&bytes),
        Some(normaliser) => xxh3_128(&[&*bytes, &normaliser.bytes()].concat()),
    };
    let file: Value = serde_json::from_slice(&bytes).map_err(not_json)?;
    let vocabulary = Arc::new(Vocabulary::read(&file)?);
    refuse_dropout(&file)?;
    let choice = match (options.engine, &known) {
        (EngineChoice::Auto, Some(known)) if known.engine == fast::NAME => EngineChoice::Fast,
        (EngineChoice::Auto, Some(_)) => EngineChoice::Compat,
        (choice, _) => choice,
    };
    let is_alone = choice == EngineChoice::Auto && !compat::IS_THERE;
    let choice = if is_alone { EngineChoice::Fast } else { choice };
    if choice == EngineChoice::Compat && !compat::IS_THERE {
        return Err(Error::new(ErrorKind::Unsupported, format!("the engine {SECOND} is not in this build"))
            .help("build with `--features text-compat`"));
    }
    // The check reads all merges, so it is created only if needed.
    let check = is_alone.then(|| Check::of(&file, &vocabulary)).flatten();
    let texts = match choice {
        EngineChoice::Auto => probe::texts(&vocabulary.added),
        EngineChoice::Fast | EngineChoice::Compat => Vec::new(),
    };
    // Each engine loads and encodes the probe on a separate thread. This halves the time, and turns a panic on an
    // unusual file into a refusal.
    let special = options.special_in_text;
    let (fast, compat) = thread::scope(|scope| {
        let fast = (choice != EngineChoice::Compat).then(|| {
            let vocabulary = Arc::clone(&vocabulary);
            scope.spawn(|| FastEngine::load(file, vocabulary, special).map(|e| Probed::new(e, &texts)))
        });
        let compat = (choice != EngineChoice::Fast).then(|| {
            let vocabulary = Arc::clone(&vocabulary);
            scope.spawn(|| CompatEngine::load(&bytes, vocabulary, special).map(|e| Probed::new(e, &texts)))
        });
        (fast.map(join), compat.map(join))
    });
    let (engine, reason): (Arc<dyn BuiltIn>, _) = match (fast, compat) {
        (Some(Ok(fast)), None) => {
            let reason = match check {
                Some(check) => check.run(&fast.engine, &vocabulary).map_err(differs)?,
                None if is_alone => EngineReason::Alone,
                None => EngineReason::Asked,
            };
            (Arc::new(fast.engine), reason)
        }
        (None, Some(Ok(compat))) => (Arc::new(compat.engine), EngineReason::Asked),
        (Some(Ok(fast)), Some(Ok(compat))) => match first_difference(&texts, &fast.ids, &compat.ids) {
            None => (Arc::new(fast.engine), EngineReason::Checked { texts: texts.len() }),
            Some(difference) => (Arc::new(compat.engine), EngineReason::Differs { difference }),
        },
        (Some(Ok(fast)), Some(Err(refusal))) => (Arc::new(fast.engine), EngineReason::Unchecked { refusal }),
        (Some(Err(refusal)), Some(Ok(compat))) => (Arc::new(compat.engine), EngineReason::Refused { refusal }),
        (fast, compat) => return Err(refused_by_all(fast, compat)),
    };
    check_added(&vocabulary.added, &*engine)?;
    let found = || EngineReport { engine: engine.name().to_owned(), reason, slowdown: engine.slowdown() };
    let report = known.unwrap_or_else(found);
    let special = if options.special_in_text { "+special" } else { "" };
    let alone = if report.reason == EngineReason::Alone { "+unchecked" } else { "" };
    let fingerprint = format!("{hash:032x}{special}{alone}");
    let engine: Arc<dyn Engine> = match normaliser {
        None => engine,
        Some(normaliser) => Arc::new(Normalised { inner: engine, normaliser }),
    };
    Ok(Loaded { engine, vocabulary: Some(vocabulary), report, fingerprint })
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|_| Err("the engine panicked while it loaded the file".to_owned()))
}

/// An engine and its ids of the probe texts; `None` for a refused text.
struct Probed<E> {
    engine: E,
    ids: Vec<Option<Vec<u32>>>,
}

impl<E: Engine> Probed<E> {
    fn new(engine: E, texts: &[String]) -> Self {
        let encode = |text: &String| {
            let mut ids = Vec::new();
            engine.encode_into(text, &mut ids).ok().map(|()| ids)
        };
        let ids = texts.iter().map(encode).collect();
        Self { engine, ids }
    }
}

/// Makes the tokenizer of a Unigram model, which has an engine of its own.
fn unigram(engine: UnigramEngine, normaliser: Normaliser, hash: u128, options: &TokenizerOptions) -> Result<Loaded> {
    if options.special_in_text || options.engine != EngineChoice::Auto {
        let name = if options.special_in_text { "special_in_text" } else { "engine" };
        return Err(Error::config(format!("{name} has no effect on a Unigram model of SentencePiece"))
            .help(format!("leave {name} out: control pieces never come from text, and one engine reads the model")));
    }
    let vocabulary = Some(Arc::new(engine.vocabulary()?));
    let report = EngineReport { engine: engine.name().to_owned(), reason: EngineReason::Asked, slowdown: 1.0 };
    let engine = Arc::new(Normalised { inner: Arc::new(engine), normaliser });
    Ok(Loaded { engine, vocabulary, report, fingerprint: format!("{hash:032x}") })
}

/// Checks that the engine uses the ids of the file for added tokens. Engines ignore the `id` in the file unless the
/// model's vocabulary contains the token. A model trained with the ids of the file would then read wrong ids.
fn check_added(added: &[AddedToken], engine: &dyn BuiltIn) -> Result<()> {
    for AddedToken { id, content } in added {
        match engine.added_id(content) {
            Some(actual) if actual != *id => {
                return Err(Error::data(format!(
                    "added token {content:?} has id {id} in the file, but the engine gives it {actual}"
                ))
                .help(format!("put {content:?} with id {id} into model.vocab as well")));
            }
            // A normalised token is stored in its normalised form and not found under its original name.
            _ => {}
        }
    }
    Ok(())
}

fn refuse_dropout(file: &Value) -> Result<()> {
    match file.get("model").and_then(|m| m.get("dropout")).and_then(Value::as_f64) {
        Some(p) if p > 0.0 => {
            let message = format!("model.dropout is {p}, so one text would get different ids each time");
            Err(Error::new(ErrorKind::Unsupported, message).help("set model.dropout to null"))
        }
        _ => Ok(()),
    }
}

fn first_difference(texts: &[String], fast: &[Option<Vec<u32>>], compat: &[Option<Vec<u32>>]) -> Option<String> {
    let at = fast.iter().zip(compat).position(|(a, b)| a != b)?;
    let show = |ids: &Option<Vec<u32>>| match ids {
        Some(ids) => shorten(format!("{ids:?}")),
        None => "an error".to_owned(),
    };
    Some(format!("{}: {} against {}", shorten(format!("{:?}", texts[at])), show(&fast[at]), show(&compat[at])))
}

/// Shortens a text for the report, which is a single line: a probe text may have 300 characters.
fn shorten(text: String) -> String {
    match text.char_indices().nth(100) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cold]
fn refused_by_all<F, C>(fast: Option<Result<F, String>>, compat: Option<Result<C, String>>) -> Error {
    let say = |name: &str, refusal: Option<String>| refusal.map(|r| format!("{name} refuses the file ({r})"));
    let refusals = [say(fast::NAME, fast.and_then(Result::err)), say(SECOND, compat.and_then(Result::err))];
    let error = Error::data(refusals.into_iter().flatten().collect::<Vec<_>>().join("; "));
    if compat::IS_THERE {
        error
    } else {
        error.help("build with `--features text-compat`, whose engine reads more files")
    }
}

/// Makes the error for a build with one engine if the engine's ids are wrong.
#[cold]
fn differs(difference: String) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{} differs from the file: {difference}", fast::NAME))
        .help("build with `--features text-compat`, which has a second engine")
}

#[cold]
fn not_json(e: serde_json::Error) -> Error {
    let line = e.line() as u64;
    Error::data(format!("not a tokenizer.json: {e}")).line(line).caused_by(e)
}

#[cfg(all(test, feature = "text-compat"))]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::demo::TOKENIZER_JSON;

    fn demo() -> Value {
        serde_json::from_slice(TOKENIZER_JSON).unwrap()
    }

    fn load_value(file: &Value) -> Result<Loaded> {
        load(file.to_string().as_bytes(), &TokenizerOptions::default(), None)
    }

    fn added(id: u32, content: &str) -> Value {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    }

    #[test]
    fn a_file_that_the_fast_engine_refuses_runs_on_the_second() {
        let file = json!({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": null, "decoder": null, "truncation": null, "padding": null,
            "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "mill": 1, "stone": 2}}});
        let loaded = load_value(&file).unwrap();
        assert!(matches!(&loaded.report.reason, EngineReason::Refused { refusal } if refusal.contains("WordLevel")));
        let line = loaded.report.to_string();
        assert!(line.starts_with("tokenizers 0.23.2, because tokenizers 1.0.0-rc.3 refuses the file ("), "{line}");
        assert!(line.ends_with("; tokenising takes about 40 times as long"), "{line}");
        let mut ids = vec![7];
        loaded.engine.encode_into("stone mill wheel", &mut ids).unwrap();
        assert_eq!(ids, [7, 2, 1, 0]);
    }

    #[test]
    fn a_file_of_the_new_format_alone_is_not_compared() {
        let mut file = demo();
        tokenizers::canonicalize_value(&mut file).unwrap();
        let loaded = load_value(&file).unwrap();
        assert!(matches!(loaded.report.reason, EngineReason::Unchecked { .. }), "{}", loaded.report);
        assert_eq!(loaded.report.engine, fast::NAME);
    }

    #[test]
    fn an_added_token_must_have_the_id_that_the_file_says() {
        let mut file = demo();
        file["added_tokens"].as_array_mut().unwrap().push(added(4097, "<|pad|>"));
        let hole = load_value(&file).unwrap_err();
        assert_eq!(hole.kind(), ErrorKind::Data);
        assert_eq!(hole.message(), r#"added token "<|pad|>" has id 4097 in the file, but the engine gives it 4096"#);
        file["added_tokens"][1] = added(4096, "<|pad|>");
        assert_eq!(load_value(&file).unwrap().engine.vocab_size(), 4097);
    }

    #[test]
    fn the_first_text_that_differs_is_shown() {
        let texts = ["a".to_owned(), "b".to_owned()];
        let (one, two) = ([Some(vec![1]), Some(vec![2])], [Some(vec![1]), None]);
        assert_eq!(first_difference(&texts, &one, &one), None);
        assert_eq!(first_difference(&texts, &one, &two).unwrap(), r#""b": [2] against an error"#);
        let long = first_difference(&["é".repeat(300)], &one[..1], &two[1..]).unwrap();
        assert_eq!(long, format!("\"{}…: [1] against an error", "é".repeat(99)));
    }

    #[test]
    fn what_cannot_be_a_tokenizer_is_refused() {
        let mut dropout = demo();
        dropout["model"]["dropout"] = json!(0.1);
        assert_eq!(load_value(&dropout).unwrap_err().kind(), ErrorKind::Unsupported);
        let neither = load_value(&json!({"model": {"type": "BPE", "vocab": {"a": 0}}})).unwrap_err();
        assert!(neither.message().contains(fast::NAME) && neither.message().contains(SECOND), "{neither}");
        let broken = load(b"{\n\"model\": {,\n", &TokenizerOptions::default(), None).unwrap_err();
        assert!(broken.to_string().starts_with("line 2: not a tokenizer.json: "), "{broken}");
    }
}

#[cfg(all(test, not(feature = "text-compat")))]
mod tests_of_one_engine {
    use super::*;
    use crate::demo::TOKENIZER_JSON;

    #[test]
    fn files_of_known_families_are_checked_and_all_others_are_announced() {
        let load = |file: &str, choice| load(file.as_bytes(), &TokenizerOptions::default().engine(choice), None);
        let demo = str::from_utf8(TOKENIZER_JSON).unwrap();
        let report = load(demo, EngineChoice::Auto).unwrap().report;
        assert!(
            matches!(&report.reason, EngineReason::Known { family, words: 500.. } if family == "GPT-2"),
            "{report}"
        );
        let other = demo.replace("\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}");
        assert_ne!(other, demo);
        let report = load(&other, EngineChoice::Auto).unwrap().report;
        assert_eq!(report.to_string(), "tokenizers 1.0.0-rc.3, compared with no other engine, as this build has one");
        assert_eq!(load(&other, EngineChoice::Fast).unwrap().report.reason, EngineReason::Asked);
        let refused = demo.replace("\"add_prefix_space\":false", "\"add_prefix_space\":true");
        let error = load(&refused, EngineChoice::Auto).unwrap_err();
        assert_eq!(error.help_text(), Some("build with `--features text-compat`, whose engine reads more files"));
        let error = load(demo, EngineChoice::Compat).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.help_text(), Some("build with `--features text-compat`"));
    }
}
