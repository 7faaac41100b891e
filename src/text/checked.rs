//! Checks of the fast engine without a second engine, for builds that contain only the fast engine.
//!
//! In byte-level BPE, ids follow from the split of a text into words and from the merges of the file. Only a few splits
//! are in use: both engines were compared on each [`Way`] when this version was made. Merges differ between files. So this
//! module computes ids of words from the merges alone and compares them with the engine's ids at load. Source: Sennrich
//! et al., *Neural Machine Translation of Rare Words with Subword Units*, 2016.

use std::collections::HashMap;

use serde_json::Value;

use super::engine::Engine;
use super::load::EngineReason;
use super::probe;
use super::vocab::Vocabulary;

/// Maximum number of vocabulary words compared at load.
const WORDS: usize = 1000;

/// A way to split text into words. The model never merges bytes of different words.
pub(super) struct Way {
    /// The best-known tokenizer with this split.
    pub(super) name: &'static str,
    /// The step before `ByteLevel`; `None` for the built-in expression of `ByteLevel`.
    pub(super) split: Option<Split>,
}

/// A step before `ByteLevel`.
pub(super) enum Split {
    /// Splits text at the matches of a regular expression.
    Regex(&'static str),
    /// Makes each digit a word, and leaves the rest to `ByteLevel`.
    Digits,
}

/// The ways on which both engines were compared; see the test `both_engines_split_alike`.
pub(super) const WAYS: [Way; 5] = [
    Way { name: "GPT-2", split: None },
    Way {
        name: "Llama 3",
        split: Some(Split::Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )),
    },
    Way {
        name: "Qwen 2",
        split: Some(Split::Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )),
    },
    Way {
        name: "GPT-4o",
        split: Some(Split::Regex(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        )),
    },
    Way { name: "StarCoder", split: Some(Split::Digits) },
];

/// The parts of a `tokenizer.json` that the check uses.
pub(super) struct Check {
    way: &'static Way,
    merges: HashMap<(String, String), usize>,
    /// Whether a word in the vocabulary becomes a token without merges.
    takes_whole_words: bool,
}

impl Check {
    /// Returns the check of a file; `None` if the file is not byte-level BPE with a known split.
    pub(super) fn of(file: &Value, vocabulary: &Vocabulary) -> Option<Self> {
        let model = file.get("model")?;
        let is_plain = is(model, "type", "BPE", true)
            && ["continuing_subword_prefix", "end_of_word_suffix"].iter().all(|key| is(model, key, "", true))
            && is(model, "byte_fallback", false, true);
        let is_normalised = !matches!(file.get("normalizer"), None | Some(Value::Null));
        let is_known = !is_normalised || is(&file["normalizer"], "type", "NFC", false);
        let has_bytes = (0..=255).all(|byte| vocabulary.id(&letter(byte).to_string()).is_some());
        // Both engines match added tokens before the split. Tokens that absorb surrounding text were not compared.
        let added = file.get("added_tokens").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_added = added.iter().all(|token| {
            let is_off = |flag| is(token, flag, false, true);
            let content = token.get("content").and_then(Value::as_str).unwrap_or_default();
            is_off("lstrip") && is_off("rstrip") && is_off("single_word") && (content.is_ascii() || !is_normalised)
        });
        if !(is_plain && is_known && has_bytes && is_added) {
            return None;
        }
        let way = way(file.get("pre_tokenizer")?)?;
        let merges = model.get("merges")?.as_array()?.iter().enumerate();
        let merges = merges.map(|(rank, merge)| Some((pair(merge)?, rank))).collect::<Option<_>>()?;
        Some(Self { way, merges, takes_whole_words: is(model, "ignore_merges", true, false) })
    }

    /// Compares the engine's ids of words with ids computed from the merges; `Err` contains the first difference.
    pub(super) fn run(&self, engine: &impl Engine, vocabulary: &Vocabulary) -> Result<EngineReason, String> {
        let tokens = vocabulary.tokens().filter(|token| is_word(token.strip_prefix('Ġ').unwrap_or(token)));
        let mut words: Vec<String> = tokens.map(|token| token.replace('Ġ', " ")).collect();
        // The vocabulary is a hash map without a fixed order.
        words.sort_unstable();
        let step = words.len().div_ceil(WORDS).max(1);
        let prose = probe::prose().flat_map(str::split_whitespace).filter(|word| is_word(word));
        let words: Vec<String> = words
            .into_iter()
            .step_by(step)
            .chain(prose.flat_map(|word| [word.to_owned(), format!(" {word}")]))
            .collect();
        for word in &words {
            let (expected, mut ids) = (self.ids(word, vocabulary), Vec::new());
            let encoded = engine.encode_into(word, &mut ids);
            if encoded.is_err() || expected.as_ref() != Some(&ids) {
                return Err(format!(
                    "{word:?} has the ids {expected:?} by the merges of the file, and {ids:?} by the engine"
                ));
            }
        }
        Ok(EngineReason::Known { family: self.way.name.to_owned(), words: words.len() })
    }

    /// Computes the ids of a word by definition: merges the neighbouring pair with the lowest rank until no pair is left.
    fn ids(&self, word: &str, vocabulary: &Vocabulary) -> Option<Vec<u32>> {
        let mut parts: Vec<String> = word.bytes().map(|byte| letter(byte).to_string()).collect();
        if self.takes_whole_words
            && let Some(id) = vocabulary.id(&parts.concat())
        {
            return Some(vec![id]);
        }
        loop {
            let rank = |at: usize| self.merges.get(&(parts[at - 1].clone(), parts[at].clone()));
            let Some((_, at)) = (1..parts.len()).filter_map(|at| Some((rank(at)?, at))).min() else { break };
            let right = parts.remove(at);
            parts[at - 1] += &right;
        }
        parts.iter().map(|part| vocabulary.id(part)).collect()
    }
}

/// Returns true if the field has this value; returns `or` if the field is absent or null.
fn is(of: &Value, key: &str, value: impl Into<Value>, or: bool) -> bool {
    of.get(key).filter(|value| !value.is_null()).map_or(or, |found| *found == value.into())
}

/// Parses a merge, written as "a b" or as a list of two.
fn pair(merge: &Value) -> Option<(String, String)> {
    let (left, right) = match merge {
        Value::String(text) => text.split_once(' ')?,
        _ => (merge.get(0)?.as_str()?, merge.get(1)?.as_str()?),
    };
    Some((left.to_owned(), right.to_owned()))
}

/// Returns the known split of a pre-tokenizer.
fn way(pre: &Value) -> Option<&'static Way> {
    let is_byte_level = |step: &Value, splits| {
        is(step, "type", "ByteLevel", false)
            && is(step, "add_prefix_space", false, false)
            && is(step, "use_regex", splits, splits)
    };
    let steps = match pre.get("pretokenizers") {
        Some(steps) if is(pre, "type", "Sequence", false) => steps.as_array()?.as_slice(),
        _ => std::slice::from_ref(pre),
    };
    WAYS.iter().find(|way| match (&way.split, steps) {
        (None, [last]) => is_byte_level(last, true),
        (Some(Split::Regex(expression)), [first, last]) => {
            let pattern = first.get("pattern").and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str);
            is(first, "type", "Split", false)
                && pattern == Some(expression)
                && is(first, "behavior", "Isolated", false)
                && is(first, "invert", false, true)
                && is_byte_level(last, false)
        }
        (Some(Split::Digits), [first, last]) => {
            is(first, "type", "Digits", false)
                && is(first, "individual_digits", true, false)
                && is_byte_level(last, true)
        }
        _ => false,
    })
}

/// Returns true if `text` consists of lowercase ASCII letters, which form a single word in every known split, with or
/// without a leading space.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Returns the letter for a byte in a byte-level vocabulary, as in GPT-2's `encoder.py`. Printable bytes map to
/// themselves, all others to letters from U+0100 on.
pub(super) fn letter(byte: u8) -> char {
    let is_itself = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..);
    if is_itself(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !is_itself(*byte)).count() as u32;
    char::from_u32(0x100 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::load::load;
    use super::super::options::TokenizerOptions;
    use super::*;
    use crate::demo::TOKENIZER_JSON;

    fn demo() -> Value {
        serde_json::from_slice(TOKENIZER_JSON).unwrap()
    }

    fn check(file: &Value) -> Option<Check> {
        Check::of(file, &Vocabulary::read(file).unwrap())
    }

    /// The demo file with a different split.
    #[cfg(feature = "text-compat")]
    fn split(way: &Way, normalizer: &Value) -> Value {
        let mut file = demo();
        let byte_level = |use_regex| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
        let sequence =
            |first: Value, use_regex| json!({"type": "Sequence", "pretokenizers": [first, byte_level(use_regex)]});
        file["pre_tokenizer"] = match &way.split {
            None => byte_level(true),
            Some(Split::Regex(expression)) => sequence(
                json!({"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": false}),
                false,
            ),
            Some(Split::Digits) => sequence(json!({"type": "Digits", "individual_digits": true}), true),
        };
        file["normalizer"] = normalizer.clone();
        let token = |id, content, special, normalized| json!({"id": id, "content": content, "special": special, "normalized": normalized, "lstrip": false, "rstrip": false, "single_word": false});
        let next = file["model"]["vocab"].as_object().unwrap().len() as u32;
        for (id, (content, special, normalized)) in
            (next..).zip([("<think>", false, false), ("<|im_start|>", true, false), ("<tool call>", false, true)])
        {
            file["model"]["vocab"][content] = json!(id);
            file["added_tokens"].as_array_mut().unwrap().push(token(id, content, special, normalized));
        }
        file
    }

    /// Both engines agree on every known split, which builds with one engine assume.
    #[cfg(feature = "text-compat")]
    #[test]
    fn both_engines_split_alike() {
        for way in &WAYS {
            for (normalizer, takes_whole) in [(Value::Null, false), (json!({"type": "NFC"}), true)] {
                let mut file = split(way, &normalizer);
                file["model"]["ignore_merges"] = json!(takes_whole);
                let vocabulary = Vocabulary::read(&file).unwrap();
                let check = Check::of(&file, &vocabulary).unwrap();
                assert_eq!(check.way.name, way.name);
                let loaded = load(file.to_string().as_bytes(), &TokenizerOptions::default(), None).unwrap();
                let report = loaded.report;
                assert!(matches!(report.reason, EngineReason::Checked { texts: 400.. }), "{}: {report}", way.name);
            }
        }
    }

    #[test]
    fn files_that_split_otherwise_are_of_no_known_family() {
        assert_eq!(check(&demo()).unwrap().way.name, "GPT-2");
        type Change = fn(&mut Value);
        let changes: [Change; 8] = [
            |file| file["pre_tokenizer"]["add_prefix_space"] = json!(true),
            |file| file["pre_tokenizer"]["use_regex"] = json!(false),
            |file| file["pre_tokenizer"] = json!({"type": "Whitespace"}),
            |file| file["normalizer"] = json!({"type": "Lowercase"}),
            |file| file["model"]["continuing_subword_prefix"] = json!("##"),
            |file| file["model"]["byte_fallback"] = json!(true),
            |file| file["added_tokens"][0]["lstrip"] = json!(true),
            |file| drop(file["model"]["vocab"].as_object_mut().unwrap().remove("Ġ")),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut file = demo();
            change(&mut file);
            assert!(check(&file).is_none(), "change {number}");
        }
    }

    #[test]
    fn an_engine_that_merges_otherwise_is_found_out() {
        /// An engine whose ids are the ids of the bytes.
        #[derive(Debug)]
        struct Bytes(Vocabulary);

        impl Engine for Bytes {
            fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> crate::Result<()> {
                out.extend(text.bytes().map(|byte| self.0.id(&letter(byte).to_string()).unwrap()));
                Ok(())
            }
            fn decode(&self, _: &[u32]) -> crate::Result<String> {
                Ok(String::new())
            }
            fn vocab_size(&self) -> u32 {
                self.0.size()
            }
            fn token_to_id(&self, token: &str) -> Option<u32> {
                self.0.id(token)
            }
            fn name(&self) -> &str {
                "bytes"
            }
        }

        let file = demo();
        let vocabulary = Vocabulary::read(&file).unwrap();
        let difference = check(&file).unwrap().run(&Bytes(Vocabulary::read(&file).unwrap()), &vocabulary).unwrap_err();
        assert!(
            difference.ends_with("by the engine") && difference.contains("by the merges of the file"),
            "{difference}"
        );
    }

    #[test]
    fn letters_stand_for_bytes_as_in_gpt_2() {
        let letters: String = [b' ', b'\n', b'a', b'~', 0x7f, 0xa0, 0xa1, 0xad, 0xff, 0].map(letter).iter().collect();
        assert_eq!(letters, "ĠĊa~ġł¡ŃÿĀ");
    }
}
