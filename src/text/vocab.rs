//! Tokens and ids of a `tokenizer.json`, read independently of the engines.

use std::collections::HashMap;

use serde_json::Value;

use crate::error::{Error, Result};

/// Ids below this limit are always accepted. Ids may have gaps, but engines allocate by the largest id, so a few damaged
/// bytes could otherwise allocate gigabytes.
const FREE_IDS: u64 = 1 << 20;
/// Factor for the limit of ids beyond [`FREE_IDS`]: ids must be below this factor times the number of tokens.
const IDS_PER_TOKEN: u64 = 8;

/// A token that is matched in the text before the model runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddedToken {
    pub(super) id: u32,
    pub(super) content: String,
}

/// Tokens and ids, as declared in the file.
pub(super) struct Vocabulary {
    ids: HashMap<Box<str>, u32>,
    pub(super) added: Vec<AddedToken>,
    size: u32,
}

impl Vocabulary {
    /// Reads `model.vocab` (an object, or Unigram's list of pairs) and `added_tokens`.
    pub(super) fn read(file: &Value) -> Result<Self> {
        let vocab = file.get("model").and_then(|m| m.get("vocab"));
        let added = match file.get("added_tokens") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) => list.iter().map(added_token).collect::<Result<Vec<_>>>()?,
            Some(_) => return Err(Error::data("added_tokens is not a list")),
        };
        let mut ids: HashMap<Box<str>, u32> = match vocab {
            Some(Value::Object(map)) => map
                .iter()
                .map(|(token, id)| Ok((token.as_str().into(), small_id(token, id)?)))
                .collect::<Result<_>>()?,
            Some(Value::Array(list)) => list.iter().zip(0u32..).map(unigram_entry).collect::<Result<_>>()?,
            _ => return Err(Error::data("model.vocab is neither an object nor a list")),
        };
        ids.extend(added.iter().map(|t| (t.content.as_str().into(), t.id)));
        let limit = FREE_IDS.max(IDS_PER_TOKEN * ids.len() as u64);
        let Some((token, &largest)) = ids.iter().max_by_key(|&(token, id)| (id, token)) else {
            return Err(Error::data("the vocabulary is empty"));
        };
        if u64::from(largest) >= limit {
            let n = ids.len();
            return Err(Error::data(format!("token {token:?} has id {largest}, limit {limit} for {n} tokens")));
        }
        Ok(Self { size: largest + 1, ids, added })
    }

    pub(super) fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// Iterates over all tokens, in arbitrary order.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &str> {
        self.ids.keys().map(|token| &**token)
    }

    /// Returns the largest id plus 1.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Returns an error for an id outside the vocabulary. Engines skip such ids or panic, and both hide a mistake.
    pub(super) fn check(&self, ids: &[u32]) -> Result<()> {
        match ids.iter().position(|&id| id >= self.size) {
            Some(at) => Err(Error::data(format!("id {} at {at} is outside the vocabulary of {}", ids[at], self.size))),
            None => Ok(()),
        }
    }

    /// Returns the token most similar to `name`. Prefers added tokens, which users usually look up by name.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        const LIKENESS: f64 = 0.6;
        let best = |names: &mut dyn Iterator<Item = &str>| -> Option<(f64, String)> {
            names
                .map(|n| (strsim::jaro_winkler(n, name), n.to_owned()))
                .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        };
        let added = best(&mut self.added.iter().map(|t| t.content.as_str())).filter(|(score, _)| *score >= LIKENESS);
        let found = added.or_else(|| best(&mut self.ids.keys().map(|k| &**k)))?;
        self.ids.get_key_value(found.1.as_str()).map(|(k, _)| &**k)
    }
}

debug_as!(Vocabulary, |self, f| {
    f.debug_struct("Vocabulary").field("tokens", &self.ids.len()).field("size", &self.size).finish()
});

fn added_token(entry: &Value) -> Result<AddedToken> {
    let content = entry.get("content").and_then(Value::as_str);
    let content = content.ok_or_else(|| Error::data("an entry of added_tokens has no content"))?;
    let id = entry.get("id").ok_or_else(|| Error::data(format!("added token {content:?} has no id")))?;
    Ok(AddedToken { id: small_id(content, id)?, content: content.to_owned() })
}

fn unigram_entry((entry, id): (&Value, u32)) -> Result<(Box<str>, u32)> {
    match entry.get(0).and_then(Value::as_str) {
        Some(token) => Ok((token.into(), id)),
        None => Err(Error::data(format!("model.vocab entry {id} is not a pair of token and score"))),
    }
}

/// Parses an id, which must fit in `i32` because batches store ids as `i32`.
fn small_id(token: &str, id: &Value) -> Result<u32> {
    let small = id.as_u64().filter(|&id| id < i32::MAX as u64);
    small.map(|id| id as u32).ok_or_else(|| Error::data(format!("token {token:?} has id {id}, limit {}", i32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vocabulary> {
        Vocabulary::read(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn objects_and_lists_of_pairs_are_vocabularies() {
        let v = read(r#"{"model": {"vocab": {"a": 0, "b": 3}}, "added_tokens": [{"id": 4, "content": "<|end|>"}]}"#)
            .unwrap();
        assert_eq!((v.id("b"), v.id("<|end|>"), v.id("c"), v.size()), (Some(3), Some(4), None, 5));
        let v = read(r#"{"model": {"vocab": [["x", -1.5], ["y", -2]]}}"#).unwrap();
        assert_eq!((v.id("y"), v.size()), (Some(1), 2));
    }

    #[test]
    fn an_absurd_id_is_refused_before_anything_is_allocated() {
        let e = read(r#"{"model": {"vocab": {"a": 0, "b": 2000000000}}}"#).unwrap_err();
        assert_eq!(e.message(), r#"token "b" has id 2000000000, limit 1048576 for 2 tokens"#);
        assert!(read(r#"{"model": {"vocab": {"a": -1}}}"#).is_err());
        assert!(read(r#"{"model": {"vocab": 7}}"#).is_err());
        assert!(read(r#"{"model": {"vocab": {}}}"#).is_err());
    }

    #[test]
    fn the_nearest_name_prefers_added_tokens() {
        let v = read(
            r#"{"model": {"vocab": {"endoftext": 0, "zebra": 1}}, "added_tokens": [{"id": 2, "content": "<|endoftext|>"}]}"#,
        );
        let v = v.unwrap();
        assert_eq!(v.nearest("<|end_of_text|>"), Some("<|endoftext|>"));
        assert_eq!(v.nearest("zebru"), Some("zebra"));
    }
}
