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
        Source::new(file).shuffle(1).tokenise_with(tokens()).boxed()
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

/// Records of 100 bytes.
struct Fixed;

impl gristmill::dataset::map::RandomAccess for Fixed {
    type Record = Element;

    fn len(&self) -> u64 {
        40_000
    }

    fn read(&self, index: u64) -> Result<Element> {
        Ok(Element::new().with("tokens", Array::from_vec(vec![index; 20])))
    }

    fn record_bytes(&self, _: &Element) -> u64 {
        100
    }

    fn facts(&self) -> gristmill::dataset::map::SourceFacts {
        gristmill::dataset::map::SourceFacts::new("fixed", "of 20")
    }
}

/// Bytes are estimated from the sample that times are estimated from, and here they are known: as many as there are elements.
#[test]
fn elements_that_stand_for_others_in_a_plan_are_no_work() {
    let temp = tempfile::tempdir().unwrap();
    let packed = WindowPackOptions::new(RowSpec::new([("tokens", 64)])).window(64);
    let ds = Source::new(Fixed).to_iter().window_pack(packed).batch_with(64, Remainder::Drop).boxed();
    let keys = keyed::Recorder(KeyFolder::new(temp.path()));
    for count in [1, 4, 64] {
        let mut loader = ds.clone().loader().part(Part::of(count / 2, count)).keys(keys.clone()).build().unwrap();
        assert!(loader.by_ref().all(|batch| batch.is_ok()));
        let report = loader.report();
        let source = &report.stages[0];
        assert!(report.to_string().contains("plans all rows from keys"));
        assert!(source.elements < 45_000 / count as u64, "{} of {count}", source.elements);
        let each = source.bytes_per_s * report.wall_s / source.elements as f64;
        assert!((95.0..105.0).contains(&each), "{each} bytes each, of {count}");
    }
}
