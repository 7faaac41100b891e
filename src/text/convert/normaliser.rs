//! Normalisation of text by a model of SentencePiece.
//!
//! Source: `normalizer.cc` of the `sentencepiece` package, and the double-array tries of `darts-clone`. Engines have these
//! rules for parts of a text between added tokens, and SentencePiece has them for the whole text.

use std::cell::RefCell;
use std::sync::Arc;

use super::super::engine::Engine;
use crate::error::{Error, Result};

/// Stands for a space in pieces.
pub(super) const SPACE: char = '▁';
/// Maximum number of bytes that a thread keeps for normalised text.
const KEPT: usize = 1 << 20;

thread_local! {
    static SCRATCH: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Rules that change a text before it becomes pieces.
#[derive(Debug)]
pub(in super::super) struct Normaliser {
    charsmap: Option<Charsmap>,
    /// Pieces that stay as they are, the longest first.
    own: Vec<String>,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
}

impl Normaliser {
    pub(super) fn new(
        charsmap: Option<Charsmap>,
        mut own: Vec<String>,
        add_dummy_prefix: bool,
        remove_extra_whitespaces: bool,
    ) -> Self {
        own.sort_unstable_by_key(|piece| std::cmp::Reverse(piece.len()));
        Self { charsmap, own, add_dummy_prefix, remove_extra_whitespaces }
    }

    /// Returns the rules as bytes, for fingerprints.
    pub(in super::super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.add_dummy_prefix), u8::from(self.remove_extra_whitespaces)];
        if let Some(Charsmap { trie, texts }) = &self.charsmap {
            bytes.extend(trie.iter().flat_map(|unit| unit.to_le_bytes()));
            bytes.extend_from_slice(texts.as_bytes());
        }
        bytes
    }

    /// Writes the normalised text to `out`, which is empty.
    fn normalise(&self, text: &str, out: &mut String) {
        if self.charsmap.is_none() && !self.remove_extra_whitespaces {
            if self.add_dummy_prefix && !text.is_empty() {
                out.push(SPACE);
            }
            // Most text has a space every few bytes.
            for (i, word) in text.split(' ').enumerate() {
                if i > 0 {
                    out.push(SPACE);
                }
                out.push_str(word);
            }
            return;
        }
        let mut rest = text;
        while self.remove_extra_whitespaces && !rest.is_empty() {
            let (made, used) = self.first(rest);
            if made != " " {
                break;
            }
            rest = &rest[used..];
        }
        if rest.is_empty() {
            return;
        }
        if self.add_dummy_prefix {
            out.push(SPACE);
        }
        let mut is_after_space = self.remove_extra_whitespaces;
        while !rest.is_empty() {
            let (mut made, used) = self.first(rest);
            if is_after_space {
                made = made.trim_start_matches(' ');
            }
            out.extend(made.chars().map(|letter| if letter == ' ' { SPACE } else { letter }));
            if !made.is_empty() {
                is_after_space = self.remove_extra_whitespaces && made.ends_with(' ');
            }
            rest = &rest[used..];
        }
        if self.remove_extra_whitespaces {
            out.truncate(out.trim_end_matches(SPACE).len());
        }
    }

    /// Returns what the start of a text becomes, and the number of bytes that it replaces.
    fn first<'a>(&'a self, text: &'a str) -> (&'a str, usize) {
        if let Some(piece) = self.own.iter().find(|piece| text.starts_with(piece.as_str())) {
            return (piece, piece.len());
        }
        if let Some(found) = self.charsmap.as_ref().and_then(|map| map.longest(text)) {
            return found;
        }
        let used = text.chars().next().map_or(0, char::len_utf8);
        (&text[..used], used)
    }
}

/// Texts that others replace: a trie of the keys, and the replacements.
#[derive(Debug)]
pub(super) struct Charsmap {
    trie: Vec<u32>,
    /// Replacements, each followed by a zero byte.
    texts: String,
}

impl Charsmap {
    /// Parses a `precompiled_charsmap`: the size of the trie in bytes, the trie, and the replacements.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let parts = bytes.split_first_chunk::<4>().and_then(|(size, rest)| {
            let (trie, texts) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
            let units = trie.chunks_exact(4).map(|unit| u32::from_le_bytes([unit[0], unit[1], unit[2], unit[3]]));
            Some(Self { trie: units.collect(), texts: std::str::from_utf8(texts).ok()?.to_owned() })
        });
        parts.map(Some).ok_or_else(|| Error::data("the charsmap of the SentencePiece model is damaged"))
    }

    /// Returns the replacement of the longest key that `text` begins with, and the length of the key.
    fn longest(&self, text: &str) -> Option<(&str, usize)> {
        let unit = |at: usize| self.trie.get(at).copied();
        let offset = |unit: u32| ((unit >> 10) << ((unit & (1 << 9)) >> 6)) as usize;
        let mut at = offset(unit(0)?);
        let mut found = None;
        for (i, byte) in text.bytes().enumerate() {
            at ^= usize::from(byte);
            let Some(node) = unit(at).filter(|node| node & (1 << 31 | 0xff) == u32::from(byte)) else { break };
            at ^= offset(node);
            if node >> 8 & 1 == 1 {
                found = unit(at).map(|leaf| ((leaf & ((1 << 31) - 1)) as usize, i + 1));
            }
        }
        let (start, used) = found?;
        let made = self.texts.get(start..)?.split('\0').next()?;
        Some((made, used))
    }
}

/// An engine that reads normalised text.
#[derive(Debug)]
pub(in super::super) struct Normalised {
    pub(in super::super) inner: Arc<dyn Engine>,
    pub(in super::super) normaliser: Normaliser,
}

impl Engine for Normalised {
    fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        let mut normalised = SCRATCH.take();
        normalised.clear();
        self.normaliser.normalise(text, &mut normalised);
        let encoded = self.inner.encode_into(&normalised, out);
        normalised.clear();
        normalised.shrink_to(KEPT);
        SCRATCH.set(normalised);
        encoded
    }

    fn decode(&self, ids: &[u32]) -> Result<String> {
        self.inner.decode(ids)
    }

    fn vocab_size(&self) -> u32 {
        self.inner.vocab_size()
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
