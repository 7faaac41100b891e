//! The data of a release: small, and the same whenever it is written.

use std::path::Path;

use gristmill::dataset::map::Range;
use gristmill::sink::{Compression, Sink, SinkFormat, WriteTo};
use gristmill::{Array, Element, MapDataset, Value};

/// Records of the corpus, and of each of the other files.
const RECORDS: i64 = 120;
const FEW: i64 = 40;

pub(crate) fn write(folder: &Path) {
    let jsonl = || Sink::options(SinkFormat::Jsonl);
    let gzip = jsonl().compression(Compression::Gzip(6)).shard_records(10);
    for (name, sink, records, only) in [
        ("corpus", jsonl().shard_records(70), RECORDS, None),
        ("gzip", gzip, FEW, None),
        ("tokens", Sink::options(SinkFormat::Tokens), FEW, Some("tokens")),
    ] {
        let stream = Range::new(0, records).map(move |i| record(i, only)).to_iter();
        stream.write_to(sink.threads(1), folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    std::fs::write(folder.join("tokenizer.json"), gristmill::demo::TOKENIZER_JSON).unwrap();
}

/// Words of a record: some are short, some longer than the rows that they are packed into.
fn words(i: i64) -> String {
    let count = 1 + (i * 37 + 11) % 23;
    (0..count)
        .map(|w| ["mill", "grain", "stone", "water", "wheel"][((i * 7 + w * 3) % 5) as usize])
        .collect::<Vec<_>>()
        .join(" ")
}

fn record(i: i64, only: Option<&str>) -> Element {
    let tokens: Vec<i32> = (0..1 + (i * 31 + 5) % 19).map(|t| ((i * 101 + t * 13) % 500) as i32).collect();
    let all = [
        ("text", Value::from(&*words(i))),
        ("tokens", Value::from(Array::from_vec(tokens))),
        ("label", Value::from(Array::scalar(i % 7))),
    ];
    let wanted = all.into_iter().filter(|(name, _)| only.is_none_or(|only| *name == only));
    wanted.fold(Element::new(), |element, (name, value)| element.with(name, value))
}
