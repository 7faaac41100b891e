use std::collections::BTreeSet;

use super::*;
use crate::spec::node::{Field, Tree};
use crate::spec::yaml;

#[test]
fn every_name_is_given_once() {
    let names: Vec<_> = described_sources().chain(described_stages()).map(|entry| entry.name).collect();
    for (i, name) in names.iter().enumerate() {
        assert!(!names[..i].contains(name), "{name} is registered twice");
    }
}

/// The least that a source or a stage must be given: what is needed, and what its description cannot say that it needs.
fn least(name: &str, about: &About) -> Node {
    let more = match name {
        "filter" => "{min: 1}",
        "tokenise" => "{column: index}",
        "rename" => "{index: n}",
        "split" => "{sizes: [0.5], take: 0}",
        "packed_columns" => "{labels: shifted}",
        "npy" => "{paths: a}",
        "npz" => "{rows: true}",
        "memory" => "{records: [{index: 1}]}",
        _ => "{}",
    };
    let mut node = yaml::parse(more).unwrap();
    let Tree::Map(fields) = &mut node.value else { unreachable!() };
    for arg in about.all().into_iter().filter(|arg| arg.is_required()) {
        if fields.iter().all(|field| field.key != arg.name) {
            fields.push(Field { key: arg.name.to_owned(), line: 1, value: yaml::parse(sample(&arg.kind)).unwrap() });
        }
    }
    node
}

fn sample(kind: &Kind) -> &'static str {
    match kind {
        Kind::Integer { .. } | Kind::Section(_) => "1",
        Kind::Text => "index",
        Kind::Path | Kind::Tokenizer => "a",
        Kind::Map(_) => "{index: 4}",
        Kind::List(Kind::Part) => "[range: 2]",
        Kind::List(item) => sample(item),
        kind => panic!("no value for {kind:?}"),
    }
}

/// The elements in each of the worlds that a stage may stand in.
fn worlds() -> Vec<Chain> {
    let range = source(&yaml::parse("range: 5").unwrap(), &mut Context::draft("".into())).unwrap();
    vec![range.clone(), range.clone().into_stream(Border::default()), Chain::Iter(range.into_iter())]
}

fn names(about: &About) -> BTreeSet<&'static str> {
    about.all().into_iter().map(|arg| arg.name).collect()
}

/// A description that is not that of the builder beside it would be found here.
#[test]
fn every_stage_asks_for_what_is_described() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "").unwrap();
    let context = Context::draft(folder.path().to_owned());
    for entry in stages() {
        let node = least(entry.name, entry.about);
        let mut asked = BTreeSet::new();
        for chain in worlds() {
            let is_map = matches!(chain, Chain::Map(_));
            if is_map && entry.map.is_none() && entry.chain.is_none()
                || !is_map && entry.iter.is_none() && entry.chain.is_none()
            {
                continue;
            }
            let fields = Fields::of(&node, entry.about).unwrap();
            apply(chain, entry, &fields, &context).unwrap_or_else(|e| panic!("{}: {e}", entry.name));
            fields.finish().unwrap();
            asked.extend(fields.asked());
        }
        // It says itself that it cannot align.
        if entry.name == "concat_then_split_pack" {
            assert!(asked.remove("align"));
        }
        assert_eq!(asked, names(entry.about), "{}", entry.name);
    }
}

#[test]
fn every_source_asks_for_what_is_described() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "").unwrap();
    let context = Context::draft(folder.path().to_owned());
    for entry in source_entries().filter(|entry| entry.lacks().is_none()) {
        let node = least(entry.name, entry.about);
        let fields = Fields::of(&node, entry.about).unwrap();
        entry.build(&fields, &context).unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        entry.on_bad_shard(&fields, &context).unwrap();
        fields.finish().unwrap();
        assert_eq!(BTreeSet::from_iter(fields.asked()), names(entry.about), "{}", entry.name);
    }
}
