//! Unigram models of SentencePiece: the pieces of a text whose scores have the largest sum.
//!
//! Source: `EncodeOptimized` in `unigram_model.cc` of the `sentencepiece` package. Sums are rounded to `f32` after each piece,
//! as there. This file exists because both versions of Hugging Face `tokenizers` add scores in `f64`: of 3,000 documents, 7
//! to 22 with runs of one character got other ids, with three models of 2,000 pieces.

use std::cell::RefCell;

use super::super::engine::Engine;
use super::normaliser::SPACE;
use super::sentencepiece::{Kind, Piece};
use crate::error::{Error, Result};

/// Name in reports.
pub(in super::super) const NAME: &str = "unigram, as in SentencePiece";
/// Difference between the score of unknown text and the smallest score.
const UNKNOWN_PENALTY: f32 = 10.0;
/// Maximum number of positions that a thread keeps.
const KEPT: usize = 1 << 16;

thread_local! {
    static SCRATCH: RefCell<Vec<Best>> = const { RefCell::new(Vec::new()) };
}

/// The best way to a position.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    /// Start of the last piece; `u32::MAX` if no piece ends here.
    from: u32,
    id: u32,
}

const NOWHERE: Best = Best { score: 0.0, from: u32::MAX, id: 0 };

pub(in super::super) struct UnigramEngine {
    pieces: Vec<Piece>,
    trie: Trie,
    unknown: u32,
    unknown_score: f32,
    /// Added to the score of a user-defined piece, for each byte.
    bonus: f32,
    /// Ids of all bytes, if unknown text becomes bytes.
    bytes: Option<Box<[u32; 256]>>,
    strips_first_space: bool,
}

impl UnigramEngine {
    /// Makes the engine of a model's pieces.
    ///
    /// # Errors
    /// A data error if a model with byte fallback lacks a byte.
    pub(super) fn new(pieces: Vec<Piece>, unknown: u32, byte_fallback: bool, add_dummy_prefix: bool) -> Result<Self> {
        let of_kind = |kind| (0u32..).zip(&pieces).filter(move |(_, piece)| piece.kind == kind);
        let scores = || of_kind(Kind::Normal).map(|(_, piece)| piece.score);
        let bytes = if byte_fallback {
            let mut ids = Box::new([unknown; 256]);
            let bytes = (0u32..).zip(&pieces).filter_map(|(id, piece)| Some((piece.byte()?, id)));
            bytes.for_each(|(byte, id)| ids[usize::from(byte)] = id);
            if let Some(byte) = ids.iter().position(|id| *id == unknown) {
                return Err(Error::data(format!("the SentencePiece model has no piece <0x{byte:02X}>")));
            }
            Some(ids)
        } else {
            None
        };
        let texts = of_kind(Kind::Normal).chain(of_kind(Kind::UserDefined));
        Ok(Self {
            trie: Trie::new(texts.map(|(id, piece)| (piece.text.as_bytes(), id)).collect()),
            unknown,
            unknown_score: scores().fold(f32::MAX, f32::min) - UNKNOWN_PENALTY,
            // The package begins with the smallest positive number.
            bonus: scores().fold(f32::MIN_POSITIVE, f32::max),
            bytes,
            strips_first_space: add_dummy_prefix,
            pieces,
        })
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the score of a piece of `len` bytes.
    fn score(&self, id: u32, len: usize) -> f32 {
        let piece = &self.pieces[id as usize];
        match piece.kind {
            Kind::UserDefined => (f64::from(len as f32 * self.bonus) - 0.1) as f32,
            _ => piece.score,
        }
    }

    /// Finds the best way to every position of `text`.
    fn search(&self, text: &str, best: &mut Vec<Best>) {
        best.resize(text.len() + 1, NOWHERE);
        for (start, letter) in text.char_indices() {
            let before = best[start].score;
            let mut extend = |end: usize, id: u32, score: f32| {
                let (best, score) = (&mut best[end], score + before);
                if best.from == u32::MAX || score > best.score {
                    *best = Best { score, from: start as u32, id };
                }
            };
            let mut has_letter = false;
            self.trie.prefixes(&text.as_bytes()[start..], |len, id| {
                extend(start + len, id, self.score(id, len));
                has_letter |= len == letter.len_utf8();
            });
            if !has_letter {
                extend(start + letter.len_utf8(), self.unknown, self.unknown_score);
            }
        }
    }
}

impl Engine for UnigramEngine {
    fn encode_into(&self, text: &str, out: &mut Vec<u32>) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::data(format!("a text has {} bytes, limit {}", text.len(), u32::MAX)));
        }
        let mut best = SCRATCH.take();
        best.clear();
        self.search(text, &mut best);
        let (first, mut end) = (out.len(), text.len());
        while end > 0 {
            let Best { from, id, .. } = best[end];
            let start = from as usize;
            match &self.bytes {
                Some(ids) if id == self.unknown => {
                    out.extend(text.as_bytes()[start..end].iter().rev().map(|byte| ids[usize::from(*byte)]));
                }
                // A run of unknown text is one id.
                None if id == self.unknown && out[first..].last() == Some(&id) => {}
                _ => out.push(id),
            }
            end = start;
        }
        out[first..].reverse();
        best.truncate(KEPT);
        best.shrink_to(KEPT);
        SCRATCH.set(best);
        Ok(())
    }

    fn decode(&self, ids: &[u32]) -> Result<String> {
        let mut bytes = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            let piece = self.pieces.get(*id as usize).ok_or_else(|| {
                Error::data(format!("id {id} at {at} is outside the vocabulary of {}", self.pieces.len()))
            })?;
            match piece.byte() {
                Some(byte) => bytes.push(byte),
                None => bytes.extend_from_slice(piece.text.replace(SPACE, " ").as_bytes()),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.strip_prefix(' ').filter(|_| self.strips_first_space).unwrap_or(&text).to_owned())
    }

    fn vocab_size(&self) -> u32 {
        self.pieces.len() as u32
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        (0..).zip(&self.pieces).find(|(_, piece)| piece.text == token).map(|(id, _)| id)
    }

    fn name(&self) -> &str {
        NAME
    }
}

debug_as!(UnigramEngine, |self, f| f.debug_struct("UnigramEngine").field("pieces", &self.pieces.len()).finish());

/// A trie of texts. The children of a node are neighbours, in the order of their bytes.
struct Trie {
    nodes: Vec<Node>,
    /// Byte that leads to each node.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// First child.
    child: u32,
    children: u16,
    /// Id of the text that ends here.
    id: Option<u32>,
}

impl Trie {
    fn new(mut texts: Vec<(&[u8], u32)>) -> Self {
        // The first of equal texts counts, as in the package.
        texts.sort();
        texts.dedup_by_key(|(text, _)| *text);
        let (mut nodes, mut bytes) = (vec![Node::default()], vec![0]);
        // Ranges of texts with a common prefix, each with the node and the length of the prefix.
        let mut open = std::collections::VecDeque::from([(0usize, 0usize, 0..texts.len())]);
        while let Some((node, depth, mut range)) = open.pop_front() {
            if let Some((text, id)) = texts.get(range.start)
                && text.len() == depth
                && !range.is_empty()
            {
                nodes[node].id = Some(*id);
                range.start += 1;
            }
            nodes[node].child = nodes.len() as u32;
            while !range.is_empty() {
                let byte = texts[range.start].0[depth];
                let end = range.start + texts[range.clone()].partition_point(|(text, _)| text[depth] == byte);
                open.push_back((nodes.len(), depth + 1, range.start..end));
                nodes.push(Node::default());
                bytes.push(byte);
                nodes[node].children += 1;
                range.start = end;
            }
        }
        Self { nodes, bytes }
    }

    /// Calls `found` with the length and the id of every text that `bytes` begins with, the shortest first.
    fn prefixes(&self, bytes: &[u8], mut found: impl FnMut(usize, u32)) {
        let mut node = self.nodes[0];
        for (at, byte) in bytes.iter().enumerate() {
            let first = node.child as usize;
            let children = &self.bytes[first..first + usize::from(node.children)];
            let Ok(child) = children.binary_search(byte) else { return };
            node = self.nodes[first + child];
            if let Some(id) = node.id {
                found(at + 1, id);
            }
        }
    }
}
