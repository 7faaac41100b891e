use std::collections::HashMap;

use serde_json::Value;

use super::super::checked::letter;
use super::super::{Tokenizer, TokenizerOptions};
use super::*;
use crate::demo::TOKENIZER_JSON;
use crate::varint::{put_bytes, put_number, put_varint};

/// Returns the tokens of the demo's tokenizer and their ids, without the special token.
fn demo_tokens() -> Vec<(Vec<u8>, u32)> {
    let bytes: HashMap<char, u8> = (0..=255).map(|byte| (letter(byte), byte)).collect();
    let file: Value = serde_json::from_slice(TOKENIZER_JSON).unwrap();
    let vocab = file["model"]["vocab"].as_object().unwrap();
    let tokens = vocab.iter().filter(|(token, _)| *token != crate::demo::END_OF_TEXT);
    tokens.map(|(token, id)| (token.chars().map(|c| bytes[&c]).collect(), id.as_u64().unwrap() as u32)).collect()
}

#[test]
fn ranks_encode_as_the_merges_that_they_come_from() {
    let demo = crate::demo::tokenizer().unwrap();
    let split = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
    let ranks = Ranks::new(demo_tokens()).unwrap();
    let json = ranks.tokenizer_json(split, &[(crate::demo::END_OF_TEXT.to_owned(), 0)]).unwrap();
    let converted = Tokenizer::from_bytes("ranks", json.as_bytes()).unwrap();
    for text in demo.hard_texts() {
        assert_eq!(converted.encode(&text).unwrap(), demo.encode(&text).unwrap(), "{text:?}");
        assert_eq!(converted.decode(&demo.encode(&text).unwrap()).unwrap(), text);
    }
    assert_eq!(converted.token_to_id(crate::demo::END_OF_TEXT).unwrap(), 0);
    // Lines of a file are read as these ranks are.
    let lines = ranks_file(&demo_tokens());
    let read = Ranks::parse(&lines).unwrap();
    assert_eq!(read.tokenizer_json(split, &[]).unwrap(), ranks.tokenizer_json(split, &[]).unwrap());
}

fn ranks_file(tokens: &[(Vec<u8>, u32)]) -> Vec<u8> {
    use base64::Engine as _;
    let encode = |token| base64::engine::general_purpose::STANDARD.encode(token);
    tokens.iter().map(|(token, rank)| format!("{} {rank}\n", encode(token))).collect::<String>().into_bytes()
}

#[test]
fn ranks_that_are_wrong_or_unknown_are_refused() {
    let bytes = || (0..=255u8).map(|byte| (vec![byte], u32::from(byte)));
    let refused = |tokens: Vec<(Vec<u8>, u32)>| Ranks::new(tokens).unwrap_err().to_string();
    assert_eq!(refused(bytes().skip(1).collect()), "byte 0x00 has no rank, so some texts have no ids");
    assert_eq!(refused(bytes().chain([(vec![1, 2], 7)]).collect()), "rank 7 belongs to two tokens");
    assert_eq!(refused(bytes().chain([(vec![9], 900)]).collect()), "the tokens of ranks 9 and 900 are equal");
    assert_eq!(refused(bytes().chain([(Vec::new(), 900)]).collect()), "the token of rank 900 is empty");
    let error = Tokenizer::from_bytes("x.tiktoken", &ranks_file(&bytes().collect::<Vec<_>>())).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the 256 ranks are those of no known encoding (r50k_base, "), "{text}");
    let mut damaged = ranks_file(&bytes().collect::<Vec<_>>());
    damaged.extend_from_slice(b"not base64\n");
    let error = Tokenizer::from_bytes("x.tiktoken", &damaged).unwrap_err().to_string();
    assert!(error.contains("not a token in Base64") && error.contains("257"), "{error}");
    let error = Tokenizer::from_bytes("x.bin", b"\xff\xfe").unwrap_err().to_string();
    assert!(error.contains("not a tokenizer.json, a .tiktoken file or a SentencePiece model"), "{error}");
    let clash = Ranks::new(bytes()).unwrap().tokenizer_json("x", &[("<|end|>".to_owned(), 7)]).unwrap_err();
    assert_eq!(clash.to_string(), "special token \"<|end|>\" has id 7, which is a rank");
}

/// Makes a model: kinds of 2 for BPE and 1 for Unigram; pieces with scores and kinds; rules as `(field, value)`.
fn model(kind: u64, pieces: &[(&str, f32, u64)], rules: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (text, score, kind) in pieces {
        let mut piece = Vec::new();
        put_bytes(&mut piece, 1, text.as_bytes());
        put_varint(&mut piece, 2 << 3 | 5);
        piece.extend_from_slice(&score.to_le_bytes());
        put_number(&mut piece, 3, *kind);
        put_bytes(&mut bytes, 1, &piece);
    }
    let (mut trainer, mut normaliser) = (Vec::new(), Vec::new());
    put_number(&mut trainer, 3, kind);
    rules.iter().for_each(|(field, value)| put_number(&mut normaliser, *field, *value));
    put_bytes(&mut bytes, 2, &trainer);
    put_bytes(&mut bytes, 3, &normaliser);
    bytes
}

const BPE: [(&str, f32, u64); 9] = [
    ("<unk>", 0.0, 2),
    ("<s>", 0.0, 3),
    ("<tab>", 0.0, 4),
    ("ab", -1.0, 1),
    ("▁ab", -2.0, 1),
    ("▁", -3.0, 1),
    ("a", -4.0, 1),
    ("b", -5.0, 1),
    ("s", -6.0, 1),
];

#[test]
fn a_bpe_model_merges_by_score_and_keeps_its_own_pieces() {
    let tokenizer = Tokenizer::from_bytes("m.model", &model(2, &BPE, &[(3, 1), (4, 0)])).unwrap();
    let ids = |text| tokenizer.encode(text).unwrap();
    assert_eq!(ids("ab b"), [4, 5, 7]);
    // The prefix comes once, also before a space and before a piece of its own.
    assert_eq!((ids(" ab"), ids("<tab>ab"), ids("a<tab>b")), (vec![5, 4], vec![5, 2, 3], vec![5, 6, 2, 7]));
    // Control pieces never come from text, and a run of unknown text is one id.
    assert_eq!((ids("<s>"), ids("a??b"), ids("")), (vec![5, 0, 8, 0], vec![5, 6, 0, 7], vec![]));
    assert_eq!((tokenizer.token_to_id("<s>").unwrap(), tokenizer.vocab_size()), (1, 9));
    assert_eq!(tokenizer.decode(&[4, 5, 7]).unwrap(), "ab b");
    let plain = Tokenizer::from_bytes("m.model", &model(2, &BPE, &[(3, 0), (4, 1)])).unwrap();
    assert_eq!(plain.encode("  ab   b ").unwrap(), [3, 5, 7], "no prefix, and no spaces at the ends or in runs");
    assert_ne!(plain.fingerprint(), tokenizer.fingerprint());
}

#[test]
fn a_unigram_model_takes_the_largest_sum_of_scores() {
    let pieces = [
        ("<unk>", 0.0, 2),
        ("<s>", 0.0, 3),
        ("▁a", -1.0, 1),
        ("aa", -1.5, 1),
        ("a", -2.0, 1),
        ("▁", -2.5, 1),
        ("##", 0.0, 4),
    ];
    let tokenizer = Tokenizer::from_bytes("m.model", &model(1, &pieces, &[(3, 1), (4, 1)])).unwrap();
    let ids = |text| tokenizer.encode(text).unwrap();
    // Of equal sums the first found counts: `▁a a aa`, whose second piece ends first.
    assert_eq!((ids("aaa"), ids("aaaa")), (vec![2, 3], vec![2, 4, 3]));
    assert_eq!((ids("a?!a"), ids("##a"), ids("<s>")), (vec![2, 0, 4], vec![5, 6, 4], vec![5, 0]));
    assert_eq!(tokenizer.decode(&ids("aa a")).unwrap(), "aa a");
    assert!(tokenizer.decode(&[99]).is_err());
    assert_eq!(tokenizer.engine_report().to_string(), "unigram, as in SentencePiece, as asked");
    let options = TokenizerOptions::default().special_in_text(true);
    let error = Tokenizer::from_bytes_with("m.model", &model(1, &pieces, &[]), options).unwrap_err().to_string();
    assert!(error.contains("special_in_text has no effect on a Unigram model"), "{error}");
}

#[test]
fn models_with_other_rules_are_refused() {
    let refused = |bytes: &[u8]| Tokenizer::from_bytes("m.model", bytes).unwrap_err().to_string();
    assert!(refused(&model(3, &BPE, &[])).contains("the SentencePiece model is of words"));
    assert!(refused(&model(2, &BPE, &[(5, 0)])).contains("keeps spaces as they are"));
    assert!(refused(&model(2, &BPE[1..], &[])).contains("no piece for unknown text"));
    assert!(refused(&model(2, &[("<unk>", 0.0, 2), ("x", 0.0, 5)], &[])).contains("an unused piece, \"x\""));
    assert!(
        refused(&model(1, &[("<unk>", 0.0, 2), ("", 0.0, 4)], &[]))
            .contains("piece 1 of the SentencePiece model is empty")
    );
    let whole = model(2, &BPE, &[]);
    for cut in 1..whole.len() {
        // No prefix of a model causes a panic, or is read as the whole model.
        if let Ok(short) = Tokenizer::from_bytes("m.model", &whole[..cut]) {
            assert!(short.vocab_size() < 9 || cut > whole.len() - 8, "{cut}");
        }
    }
}
