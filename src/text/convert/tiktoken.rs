//! Encodings of tiktoken: a rank for each token, an expression that splits text into words, and special tokens.
//!
//! Source: the `tiktoken` package. A word that is a token becomes that token. Otherwise its bytes are merged: of all
//! neighbours whose concatenation is a token, the pair with the lowest rank first. In a `tokenizer.json`, this rule is a list
//! of all pairs of tokens that make a token, in the order of its rank, with `ignore_merges`.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::checked::{Split, WAYS, letter};
use super::added_token;
use crate::error::{Error, ErrorKind, Result};

/// Split expressions of tiktoken that split as one of the [`WAYS`] does, by its name. The spellings differ: possessive
/// quantifiers, and the order of alternatives for white space.
const SPELLINGS: [(&str, &str); 5] = [
    (r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", "GPT-2"),
    (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", "GPT-2"),
    (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", "GPT-2"),
    (r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s", "GPT-2"),
    (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        "Llama 3",
    ),
];

/// An encoding whose `.tiktoken` file is recognised, as the file has neither the split expression nor special tokens.
struct Known {
    name: &'static str,
    /// The [hash](Ranks::hash) of the ranks.
    hash: u128,
    /// Name of the way to split.
    way: &'static str,
    special: fn() -> Vec<(String, u32)>,
}

const KNOWN: [Known; 6] = [
    Known {
        name: "r50k_base",
        hash: 0x9c98_341d_e1a2_cf60_4bb5_429e_b5f3_e644,
        way: "GPT-2",
        special: || listed(50_256, ["<|endoftext|>"]),
    },
    Known {
        name: "p50k_base",
        hash: 0xae28_7dea_a37b_b053_ce73_096d_0fdb_587d,
        way: "GPT-2",
        special: || listed(50_256, ["<|endoftext|>"]),
    },
    Known {
        name: "cl100k_base",
        hash: 0x7028_2d9b_cb20_4f8d_0c53_d081_88c4_570a,
        way: "Llama 3",
        special: || {
            let mut special = listed(100_257, ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"]);
            special.extend(listed(100_276, ["<|endofprompt|>"]));
            special
        },
    },
    Known {
        name: "o200k_base",
        hash: 0x7513_3d7c_f274_87b2_761f_ebf5_14bd_de52,
        way: "GPT-4o",
        special: || [listed(199_999, ["<|endoftext|>"]), listed(200_018, ["<|endofprompt|>"])].concat(),
    },
    Known {
        name: "Llama 3",
        hash: 0x0692_0082_dec4_11cb_41c0_eea5_baeb_282e,
        way: "Llama 3",
        special: || {
            let named = [
                "<|begin_of_text|>",
                "<|end_of_text|>",
                "<|reserved_special_token_0|>",
                "<|reserved_special_token_1|>",
                "<|finetune_right_pad_id|>",
                "<|step_id|>",
                "<|start_header_id|>",
                "<|end_header_id|>",
                "<|eom_id|>",
                "<|eot_id|>",
                "<|python_tag|>",
                "<|image|>",
            ];
            let others = (2..246).map(|number| format!("<|reserved_special_token_{number}|>"));
            listed(128_000, named.map(str::to_owned).into_iter().chain(others))
        },
    },
    Known {
        name: "Qwen",
        hash: 0x9789_3b50_66ad_faa2_7ff8_680a_90ea_e131,
        way: "Qwen 2",
        special: || {
            let named = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned);
            listed(151_643, named.into_iter().chain((0..205).map(|number| format!("<|extra_{number}|>"))))
        },
    },
];

/// Numbers tokens from `first` on.
fn listed(first: u32, tokens: impl IntoIterator<Item = impl Into<String>>) -> Vec<(String, u32)> {
    tokens.into_iter().map(Into::into).zip(first..).collect()
}

/// Returns the expression of a way to split; `None` for GPT-2's, which `ByteLevel` has.
fn expression(way: &str) -> Option<&'static str> {
    match WAYS.iter().find(|known| known.name == way)?.split {
        Some(Split::Regex(split)) => Some(split),
        _ => None,
    }
}

/// The tokens of a tiktoken encoding, each with its rank, which is its id.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// Sorted by rank.
    tokens: Vec<(Vec<u8>, u32)>,
}

/// Returns true if the first line is a token in Base64 and its rank.
pub(super) fn is_ranks(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').next().is_some_and(|line| parse_line(line).is_some())
}

fn parse_line(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let (token, rank) = std::str::from_utf8(line).ok()?.trim_end_matches('\r').split_once(' ')?;
    Some((STANDARD.decode(token).ok()?, rank.parse().ok()?))
}

impl Ranks {
    /// Makes ranks from tokens in any order.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if there is no token, if a token is empty, if a token or a rank occurs twice,
    /// or if a byte is no token.
    pub fn new(tokens: impl IntoIterator<Item = (Vec<u8>, u32)>) -> Result<Self> {
        let mut tokens: Vec<_> = tokens.into_iter().collect();
        tokens.sort_unstable_by_key(|(_, rank)| *rank);
        if let Some([(_, rank), _]) = tokens.windows(2).find(|pair| pair[0].1 == pair[1].1) {
            return Err(Error::data(format!("rank {rank} belongs to two tokens")));
        }
        let mut ranks = HashMap::with_capacity(tokens.len());
        for (token, rank) in &tokens {
            if token.is_empty() {
                return Err(Error::data(format!("the token of rank {rank} is empty")));
            }
            if let Some(other) = ranks.insert(token.as_slice(), rank) {
                return Err(Error::data(format!("the tokens of ranks {other} and {rank} are equal")));
            }
        }
        if let Some(byte) = (0..=255u8).find(|byte| !ranks.contains_key([*byte].as_slice())) {
            return Err(Error::data(format!("byte 0x{byte:02x} has no rank, so some texts have no ids")));
        }
        Ok(Self { tokens })
    }

    /// Parses a `.tiktoken` file: on each line a token in Base64, a space, and the rank.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for the first line that differs, and as [`new`](Self::new) does.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let lines = bytes.split(|byte| *byte == b'\n').zip(1u64..).filter(|(line, _)| !line.trim_ascii().is_empty());
        let parse = |(line, number)| {
            parse_line(line).ok_or_else(|| Error::data("not a token in Base64, a space and a rank").line(number))
        };
        Self::new(lines.map(parse).collect::<Result<Vec<_>>>()?)
    }

    /// Returns the contents of a `tokenizer.json` with these ranks, an expression that splits text into words, and special
    /// tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a special token has the id of another token.
    pub fn tokenizer_json(&self, split: &str, special: &[(String, u32)]) -> Result<String> {
        let way = SPELLINGS.iter().find(|(spelling, _)| *spelling == split).map(|(_, way)| *way);
        let split = match way {
            Some(way) => expression(way),
            None => Some(split),
        };
        self.json(split, special).map(|json| json.to_string())
    }

    /// Converts the ranks of a [known](KNOWN) encoding.
    pub(super) fn known(&self) -> Result<Value> {
        let hash = self.hash();
        let Some(known) = KNOWN.iter().find(|known| known.hash == hash) else {
            let names = KNOWN.map(|known| known.name).join(", ");
            let count = self.tokens.len();
            let message = format!(
                "the {count} ranks are those of no known encoding ({names}), and a .tiktoken file has no split expression"
            );
            let help =
                "pass the `tiktoken.Encoding` in Python, or use the tokenizer.json of a model with this encoding";
            return Err(Error::new(ErrorKind::Unsupported, message).help(help));
        };
        self.json(expression(known.way), &(known.special)())
    }

    /// Returns a hash of all tokens and ranks.
    fn hash(&self) -> u128 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        for (token, rank) in &self.tokens {
            hasher.update(&rank.to_le_bytes());
            hasher.update(&(token.len() as u64).to_le_bytes());
            hasher.update(token);
        }
        hasher.digest128()
    }

    /// Makes the contents of a `tokenizer.json`. Without an expression, text is split as by GPT-2.
    fn json(&self, split: Option<&str>, special: &[(String, u32)]) -> Result<Value> {
        let used: HashMap<u32, &str> = special.iter().map(|(token, id)| (*id, token.as_str())).collect();
        if let Some((_, rank)) = self.tokens.iter().find(|(_, rank)| used.contains_key(rank)) {
            return Err(Error::data(format!("special token {:?} has id {rank}, which is a rank", used[rank])));
        }
        let written = |token: &[u8]| token.iter().map(|byte| letter(*byte)).collect::<String>();
        let mut vocab: serde_json::Map<String, Value> =
            self.tokens.iter().map(|(token, rank)| (written(token), json!(rank))).collect();
        let mut special: Vec<_> = special.iter().map(|(token, id)| (token, *id)).collect();
        special.sort_unstable_by_key(|(_, id)| *id);
        // Engines number added tokens after the vocabulary, unless the vocabulary has them.
        let follows = special.iter().zip(self.tokens.len() as u64..).all(|((_, id), next)| u64::from(*id) == next);
        if !follows {
            vocab.extend(special.iter().map(|(token, id)| ((*token).clone(), json!(id))));
        }
        let added: Vec<_> = special.iter().map(|(token, id)| added_token(*id, token, true)).collect();
        let bytes = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
        let before = match split {
            None => bytes(true),
            Some(split) => json!({"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": false}, bytes(false)]}),
        };
        Ok(json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
            "pre_tokenizer": before, "post_processor": null, "decoder": bytes(true),
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
                      "vocab": vocab, "merges": self.merges(written)},
        }))
    }

    /// Returns all pairs of tokens that make a token: by its rank, and by the ranks of the pair.
    fn merges(&self, written: impl Fn(&[u8]) -> String) -> Vec<[String; 2]> {
        let ranks: HashMap<&[u8], u32> = self.tokens.iter().map(|(token, rank)| (token.as_slice(), *rank)).collect();
        let mut merges = Vec::with_capacity(self.tokens.len());
        for (token, _) in &self.tokens {
            let pairs = (1..token.len()).map(|at| token.split_at(at));
            let known = pairs.filter_map(|(left, right)| Some((*ranks.get(left)?, *ranks.get(right)?, left, right)));
            let mut pairs: Vec<_> = known.collect();
            pairs.sort_unstable();
            merges.extend(pairs.into_iter().map(|(_, _, left, right)| [written(left), written(right)]));
        }
        merges
    }
}
