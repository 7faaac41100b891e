//! The whole: JSON Lines, tokenised, a mix of three, filtered, packed, in batches of 512 rows, as 4 hosts, then 2, 3 and 1.
#![cfg(all(feature = "text", feature = "spec"))]

use std::path::Path;

use gristmill::dataset::map::{Mix, Source};
use gristmill::keys::KeyFolder;
use gristmill::pack::OverLong;
use gristmill::source::Jsonl;
use gristmill::text::{TextEncoder, Tokenise, TokeniseMap, TokeniseOptions, Tokenizer};
use gristmill::{BoxIter, demo};

use super::*;

const ROWS: usize = 512;

fn pipeline(corpus: &Path) -> BoxIter<Element> {
    let tokens = || {
        let tokenizer = Tokenizer::from_file(corpus.join("tokenizer.json")).unwrap();
        Tokenise::column(TextEncoder::new(tokenizer, &TokeniseOptions::default()).unwrap(), "text")
    };
    let part = |name| {
        let file = Jsonl::options().columns(["text"]).open(corpus.join(name)).unwrap();
        Source::new(file).shuffle(1).tokenise(tokens()).boxed()
    };
    let mixed = Mix::new(["a.jsonl", "b.jsonl", "c.jsonl"].map(part).into()).weights([3.0, 2.0, 1.0]);
    let long = |element: &Element| element.array("tokens").is_ok_and(|tokens| tokens.shape()[0] > 8);
    let packed = WindowPackOptions::new(RowSpec::new([("tokens", 32)])).window(64).over_long(OverLong::Split);
    mixed.to_iter().filter(long).window_pack(packed).batch_with(ROWS, Remainder::Drop).boxed()
}

/// Three does not divide 512: its hosts list their rows.
fn parts(count: usize) -> Vec<Part> {
    let share = |index| Part::listed(index * ROWS / count..(index + 1) * ROWS / count, ROWS).unwrap();
    match ROWS % count {
        0 => (0..count).map(|index| Part::of(index, count)).collect(),
        _ => (0..count).map(share).collect(),
    }
}

#[test]
fn four_hosts_then_two_then_three_then_one_are_one_that_was_not_interrupted() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("tokenizer.json"), demo::TOKENIZER_JSON).unwrap();
    let mut documents = demo::corpus::Documents::new(3);
    for name in ["a.jsonl", "b.jsonl", "c.jsonl"] {
        let line =
            |text: &str| serde_json::json!({ "text": &text[..text.floor_char_boundary(500)] }).to_string() + "\n";
        let texts: String = documents.by_ref().take(700).map(|document| line(&document.text)).collect();
        std::fs::write(temp.path().join(name), texts).unwrap();
    }
    let ds = pipeline(temp.path());
    let (expected, batches) = alone(&ds);
    assert!(batches > 5, "{batches}");
    let keys = keyed::Recorder(KeyFolder::new(temp.path().join("keys")));
    let (mut digest, mut at): (RowDigest, Option<Checkpoint>) = (RowDigest::default(), None);
    for (count, steps, planned) in [(4, 2, true), (2, 1, false), (3, 2, true), (1, u64::MAX, false)] {
        let mut states = Vec::new();
        for part in parts(count) {
            let builder = ds.clone().loader().threads(1).part(part);
            let builder = if planned { builder.keys(keys.clone()) } else { builder };
            let builder = match &at {
                Some(state) => builder.resume(state.clone()),
                None => builder,
            };
            let mut host = Host { loader: builder.build().unwrap(), digest: RowDigest::default() };
            assert!((0..steps).all(|_| host.step()) || host.loader.next().is_none());
            assert_eq!(host.loader.report().to_string().contains("plans all rows"), planned);
            digest.add(host.digest);
            states.push(host.loader.state().unwrap());
        }
        assert!(states.iter().all(|state| state.to_json() == states[0].to_json()));
        at = states.pop();
    }
    assert_eq!((digest, at.map(|at| at.delivered)), (expected, Some(batches)));
}
