//! Models of SentencePiece: a protocol buffer with pieces, their scores, and rules of normalisation.
//!
//! Source: `sentencepiece_model.proto` and the trainers of the `sentencepiece` package. Pieces of a BPE model merge by score.
//! In a `tokenizer.json`, this rule is a list of all pairs of pieces that make a piece, the highest score first.
//!
//! Control pieces never come from text, and user-defined pieces are matched before all others.

use std::collections::HashMap;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::normaliser::{Charsmap, Normaliser, SPACE};
use super::unigram::UnigramEngine;
use super::{Converted, added_token, unsupported};
use crate::error::{Error, Result};
use crate::varint::{Field, Fields};

/// Kind of a piece: the numbers of `SentencePiece.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

#[derive(Debug)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: Kind,
}

/// A model, as far as it affects ids.
#[derive(Debug)]
struct Model {
    pieces: Vec<Piece>,
    is_bpe: bool,
    byte_fallback: bool,
    charsmap: Vec<u8>,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
}

/// Returns true if the bytes are a model: a message whose first field is a piece, a message with a text.
pub(super) fn is_model(bytes: &[u8]) -> bool {
    let first = |message| Fields::of(message).next().and_then(|field: Result<_, _>| field.ok());
    matches!(first(bytes), Some((1, Field::Bytes(piece), _)) if matches!(first(piece), Some((1, Field::Bytes(_), _))))
}

/// Converts a model.
pub(super) fn read(bytes: &[u8]) -> Result<Converted<'static>> {
    let model = Model::parse(bytes)?;
    let unknown = model.check()?;
    let own = model.of_kind(Kind::UserDefined).into_iter().map(|(_, piece)| piece.text.clone()).collect();
    let charsmap = Charsmap::parse(&model.charsmap)?;
    let normaliser = Normaliser::new(charsmap, own, model.add_dummy_prefix, model.remove_extra_whitespaces);
    if model.is_bpe {
        let bytes = model.json(unknown).to_string().into_bytes();
        return Ok(Converted::Json { bytes: bytes.into(), normaliser: Some(normaliser) });
    }
    let engine = UnigramEngine::new(model.pieces, unknown, model.byte_fallback, model.add_dummy_prefix)?;
    Ok(Converted::Unigram { engine, normaliser, hash: xxh3_128(bytes) })
}

impl Model {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::data("not a SentencePiece model: the protocol buffer is damaged");
        let mut model = Self {
            pieces: Vec::new(),
            is_bpe: false,
            byte_fallback: false,
            charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
        };
        for field in Fields::of(bytes) {
            match field.map_err(|_| damaged())? {
                (1, Field::Bytes(piece), _) => model.pieces.push(Piece::parse(piece).ok_or_else(damaged)?),
                (2, Field::Bytes(trainer), _) => {
                    for field in Fields::of(trainer) {
                        match field.map_err(|_| damaged())? {
                            (3, kind, _) => {
                                model.is_bpe = match kind.number() {
                                    1 => false,
                                    2 => true,
                                    3 => return Err(unsupported("the SentencePiece model is of words")),
                                    _ => return Err(unsupported("the SentencePiece model is of characters")),
                                }
                            }
                            (24, is_suffix, _) if is_suffix.number() == 1 => {
                                return Err(unsupported("the SentencePiece model puts white space after words"));
                            }
                            (35, on, _) => model.byte_fallback = on.number() == 1,
                            _ => {}
                        }
                    }
                }
                (3, Field::Bytes(normalizer), _) => {
                    for field in Fields::of(normalizer) {
                        match field.map_err(|_| damaged())? {
                            (2, Field::Bytes(map), _) => model.charsmap = map.to_vec(),
                            (3, on, _) => model.add_dummy_prefix = on.number() == 1,
                            (4, on, _) => model.remove_extra_whitespaces = on.number() == 1,
                            (5, on, _) if on.number() == 0 => {
                                return Err(unsupported("the SentencePiece model keeps spaces as they are"));
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(model)
    }

    /// Checks that the engines can follow every rule of the model. Returns the id of unknown text.
    fn check(&self) -> Result<u32> {
        if let Some(id) = self.pieces.iter().position(|piece| piece.text.is_empty()) {
            return Err(Error::data(format!("piece {id} of the SentencePiece model is empty")));
        }
        if let Some((_, Piece { text, .. })) = self.of_kind(Kind::Unused).first() {
            return Err(unsupported(format!("the SentencePiece model has an unused piece, {text:?}")));
        }
        let unknown = self.of_kind(Kind::Unknown).first().map(|(id, _)| *id);
        unknown.ok_or_else(|| Error::data("the SentencePiece model has no piece for unknown text"))
    }

    /// Returns the pieces of a kind, with their ids.
    fn of_kind(&self, kind: Kind) -> Vec<(u32, &Piece)> {
        (0..).zip(&self.pieces).filter(|(_, piece)| piece.kind == kind).collect()
    }

    /// Returns the `tokenizer.json` of a BPE model, without its normalisation.
    fn json(&self, unknown: u32) -> Value {
        let added = |kind| {
            let entry = move |(id, piece): (u32, &Piece)| added_token(id, &piece.text, kind == Kind::Control);
            self.of_kind(kind).into_iter().map(entry)
        };
        let mut added: Vec<_> = added(Kind::Control).chain(added(Kind::UserDefined)).collect();
        added.sort_by_key(|token| token["id"].as_u64());
        let split =
            json!({"type": "Split", "pattern": {"String": SPACE}, "behavior": "MergedWithNext", "invert": false});
        let prepend = if self.add_dummy_prefix { "first" } else { "never" };
        json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
            "pre_tokenizer": if self.splits_at_spaces() { split } else { Value::Null },
            "post_processor": null,
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "ByteFallback"}, {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": prepend, "split": true},
                {"type": "Fuse"}]},
            "model": {
                "type": "BPE", "dropout": null, "unk_token": self.pieces[unknown as usize].text,
                "continuing_subword_prefix": null, "end_of_word_suffix": null, "fuse_unk": true,
                "byte_fallback": self.byte_fallback, "ignore_merges": false, "vocab": self.ids(), "merges": self.merges()},
        })
    }

    /// Returns true if no piece spans two words, so that each word may be encoded alone.
    fn splits_at_spaces(&self) -> bool {
        let spans = |piece: &Piece| piece.text.chars().skip(1).any(|letter| letter == SPACE);
        !self.pieces.iter().any(|piece| piece.kind == Kind::Normal && spans(piece))
    }

    fn ids(&self) -> serde_json::Map<String, Value> {
        (0u32..).zip(&self.pieces).map(|(id, piece)| (piece.text.clone(), json!(id))).collect()
    }

    /// Returns all pairs of pieces that make a piece, the highest score first.
    fn merges(&self) -> Vec<[&str; 2]> {
        let normal = self.of_kind(Kind::Normal);
        let ids: HashMap<&str, u32> = normal.iter().map(|(id, piece)| (&*piece.text, *id)).collect();
        let mut merges = Vec::with_capacity(normal.len());
        for (id, piece) in normal {
            for (at, _) in piece.text.char_indices().skip(1) {
                let (left, right) = piece.text.split_at(at);
                if let (Some(&a), Some(&b)) = (ids.get(left), ids.get(right)) {
                    merges.push(((-piece.score, id, a, b), [left, right]));
                }
            }
        }
        merges.sort_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then((a.1, a.2, a.3).cmp(&(b.1, b.2, b.3))));
        merges.into_iter().map(|(_, pair)| pair).collect()
    }
}

impl Piece {
    /// Returns the byte that the piece stands for: `<0x0A>`.
    pub(super) fn byte(&self) -> Option<u8> {
        let digits = self.text.strip_prefix("<0x")?.strip_suffix('>').filter(|_| self.kind == Kind::Byte)?;
        u8::from_str_radix(digits, 16).ok()
    }

    /// Parses a piece; `None` if it is damaged.
    fn parse(message: &[u8]) -> Option<Self> {
        let mut piece = Self { text: String::new(), score: 0.0, kind: Kind::Normal };
        for field in Fields::of(message) {
            match field.ok()? {
                (1, Field::Bytes(text), _) => piece.text = std::str::from_utf8(text).ok()?.to_owned(),
                (2, Field::Fixed, score) => piece.score = f32::from_le_bytes(score.try_into().ok()?),
                (3, kind, _) => {
                    piece.kind = match kind.number() {
                        1 => Kind::Normal,
                        2 => Kind::Unknown,
                        3 => Kind::Control,
                        4 => Kind::UserDefined,
                        5 => Kind::Unused,
                        6 => Kind::Byte,
                        _ => return None,
                    }
                }
                _ => {}
            }
        }
        (piece.score.is_finite()).then_some(piece)
    }
}
