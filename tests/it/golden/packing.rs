//! `packing.json`: first fit, best fit and concat-then-split, row by row.

use gristmill::dataset::map::Source;
use gristmill::pack::{BinPackOptions, BosHandling, ConcatPackOptions, GroupPack, Packing, RowSpec};
use gristmill::{Array, BoxIter, Element, IterDataset, IterDatasetExt, MapDatasetExt, Value};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    algorithm: String,
    lengths: Vec<i32>,
    length_struct: Map<String, Json>,
    two_features: bool,
    options: Map<String, Json>,
    rows: Vec<Map<String, Json>>,
}

/// Elements whose tokens are numbered from 1 across the stream, and half as many targets where there are two features.
fn elements(case: &Case) -> Vec<Element> {
    let mut token = 1;
    let mut element = |&len: &i32| {
        let inputs: Vec<i32> = (token..token + len).collect();
        token += len;
        let targets: Vec<i32> = inputs[..(len as usize / 2).max(1)].iter().map(|token| token * 10).collect();
        let element = Element::new().with("inputs", Array::from_vec(inputs));
        if case.two_features { element.with("targets", Array::from_vec(targets)) } else { element }
    };
    case.lengths.iter().map(&mut element).collect()
}

fn pipeline(case: &Case) -> BoxIter<Element> {
    let lengths = case.length_struct.iter().map(|(name, length)| (name, length.as_u64().unwrap() as usize));
    let (rows, stream) = (RowSpec::new(lengths), Source::new(elements(case)).to_iter());
    let mut options = case.options.clone();
    let boxed = match case.algorithm.as_str() {
        "FirstFitPackIterDataset" => stream.first_fit_pack(bins(rows, &mut options)).boxed(),
        "BestFitPackIterDataset" => stream.best_fit_pack(bins(rows, &mut options)).boxed(),
        "ConcatThenSplitIterDataset" => concat(stream, rows, &mut options).boxed(),
        other => panic!("{}: no such algorithm: {other}", case.name),
    };
    assert!(options.is_empty(), "{}: options not understood: {options:?}", case.name);
    boxed
}

fn bins(rows: RowSpec, options: &mut Map<String, Json>) -> BinPackOptions {
    let mut number = |name| options.remove(name).map(|value| value.as_u64().unwrap());
    let mut bins = BinPackOptions::new(rows, number("num_packing_bins").unwrap() as usize);
    if let Some(seed) = number("seed") {
        bins = bins.seed(seed);
    }
    if let Some(most) = number("max_sequences_per_bin") {
        bins = bins.max_sequences_per_bin(most as usize);
    }
    match options.remove("shuffle_bins") {
        Some(shuffle) => bins.shuffle_bins(shuffle.as_bool().unwrap()),
        None => bins,
    }
}

fn concat<D: IterDataset<Item = Element>>(stream: D, rows: RowSpec, options: &mut Map<String, Json>) -> GroupPack<D> {
    let mut pack = ConcatPackOptions::new(rows);
    if let Some(split) = options.remove("split_full_length_features") {
        pack = pack.split_full_length_features(split.as_bool().unwrap());
    }
    if let Some(handling) = options.remove("bos_handling") {
        assert_eq!(handling, "REPLACE_FIRST_TOKEN_WITH_BOS");
        let features = options.remove("bos_features").unwrap();
        let features: Vec<String> = serde_json::from_value(features).unwrap();
        let token = options.remove("bos_token_id").unwrap().as_i64().unwrap();
        pack = pack.bos_handling(BosHandling::ReplaceFirstTokenWithBos).bos_features(features).bos_token_id(token);
    }
    stream.concat_then_split_pack(pack)
}

fn to_json(row: &Element) -> Map<String, Json> {
    let array = |value: &Value| match value {
        Value::Array(array) => Json::from(array.as_slice::<i32>().unwrap()),
        other => panic!("{other:?} in a packed row"),
    };
    row.iter().map(|(name, value)| (name.to_owned(), array(value))).collect()
}

#[test]
fn packed_rows_are_those_of_grain() {
    let Some(vectors) = super::vectors("packing.json") else { return };
    let vectors: Vectors = serde_json::from_value(vectors).unwrap();
    assert!(!vectors.cases.is_empty());
    for case in &vectors.cases {
        let rows: Vec<_> = pipeline(case).collect().unwrap().iter().map(to_json).collect();
        assert_eq!(rows.len(), case.rows.len(), "{}", case.name);
        for (at, (row, want)) in rows.iter().zip(&case.rows).enumerate() {
            assert_eq!(row, want, "{}: row {at}", case.name);
        }
    }
    println!("{} cases", vectors.cases.len());
}
