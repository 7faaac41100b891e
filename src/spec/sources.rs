//! Where elements come from: files, memory, ranges, and combinations of these.

use super::chain::{Chain, Context};
use super::columns::NamedFn;
use super::decode::{Decode, Fields};
use super::entry::SourceEntry;
use super::node::{Field, Node, Tree};
use super::registry;
use crate::dataset::iter::{ZipLength, interleave, mix as mix_streams, zip_all};
use crate::dataset::map::{Concatenate, Mix, RandomAccess, Range, Source, ZipAll};
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset};
use crate::element::{Array, Element, Value};
use crate::error::{Error, Result};

pub(super) const SOURCES: &[SourceEntry] = &[
    SourceEntry::new("concatenate", Some("parts"), concatenate),
    SourceEntry::new("mix", Some("parts"), mix),
    SourceEntry::new("interleave", None, interleave_parts),
    SourceEntry::new("lanes", None, lanes_of_parts),
    SourceEntry::new("zip", Some("parts"), zip),
    SourceEntry::new("memory", Some("records"), memory),
    SourceEntry::new("range", Some("stop"), range),
];

/// `concatenate: {parts: [{jsonl: {paths: a.jsonl}}, {source: {jsonl: {paths: b.jsonl}}, stages: [{shuffle: 1}]}]}`.
fn concatenate(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let parts = parts(fields, context)?;
    match random_access(parts) {
        Ok(maps) => Ok(Chain::Map(Concatenate::new(maps).boxed())),
        // One lane at a time is one stream behind the other.
        Err(streams) => Ok(Chain::Iter(interleave(streams, 1).boxed())),
    }
}

/// `mix: {parts: [...], weights: [0.7, 0.3], exact: true}`: in these proportions, in Grain's order.
fn mix(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let parts = parts(fields, context)?;
    let exact = fields.or("exact", false)?;
    let weights = fields.or("weights", vec![1.0; parts.len()])?;
    if weights.len() != parts.len() {
        return Err(fields.error(format!("{} weights for {} parts", weights.len(), parts.len())));
    }
    Ok(match (random_access(parts), exact) {
        (Ok(maps), false) => Chain::Map(Mix::new(maps).weights(weights).boxed()),
        (Ok(maps), true) => Chain::Map(Mix::new(maps).exact_weights(weights).boxed()),
        (Err(streams), false) => Chain::Iter(mix_streams(streams).weights(weights).boxed()),
        (Err(streams), true) => Chain::Iter(mix_streams(streams).exact_weights(weights).boxed()),
    })
}

/// `interleave: {parts: [...], cycle: 4}`: one element of each of `cycle` parts in turn.
fn interleave_parts(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let cycle = fields.required("cycle")?;
    let streams: Vec<_> = parts(fields, context)?.into_iter().map(Chain::into_iter).collect();
    Ok(Chain::Iter(interleave(streams, cycle).boxed()))
}

/// `lanes: {parts: [...], count: 4}`: part `k` is read in lane `k` modulo `count`, and lanes by several at a time. Elementwise
/// stages behind it run inside the lanes.
fn lanes_of_parts(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let count = fields.required("count")?;
    let parts: Vec<_> = parts(fields, context)?.into_iter().map(Chain::into_iter).collect();
    if parts.is_empty() {
        return Err(fields.error("needs a part at least"));
    }
    Ok(Chain::Lanes(parts, count))
}

/// `zip: {parts: [...], strict: true}`: the columns of all parts side by side.
fn zip(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let length = if fields.or("strict", true)? { ZipLength::Equal } else { ZipLength::Shortest };
    let merged = NamedFn::map("merge_columns", String::new(), merge);
    match (random_access(parts(fields, context)?), length) {
        // Of files that are not opened it is not known whether they are equally long.
        (Ok(maps), ZipLength::Equal) if context.is_draft => {
            Ok(Chain::Map(merged.after(ZipAll::new(maps.into_iter().take(1).collect())).boxed()))
        }
        (Ok(maps), ZipLength::Equal) => Ok(Chain::Map(merged.after(ZipAll::new(maps)).boxed())),
        (Ok(maps), _) => {
            let streams = maps.into_iter().map(|ds| ds.to_iter().boxed());
            Ok(Chain::Iter(merged.after(zip_all(streams, length)).boxed()))
        }
        (Err(streams), _) => Ok(Chain::Iter(merged.after(zip_all(streams, length)).boxed())),
    }
}

fn merge(parts: Vec<Element>) -> Result<Element> {
    let mut merged = Element::with_capacity(parts.iter().map(Element::len).sum());
    for (name, value) in parts.into_iter().flat_map(Element::into_fields) {
        if merged.insert(&name, value).is_some() {
            return Err(Error::data(format!("two parts have a column `{name}`")).help("rename one of them"));
        }
    }
    Ok(merged)
}

/// The pipelines in a list: each a source, or `source` and `stages`.
fn parts(fields: &Fields<'_>, context: &Context) -> Result<Vec<Chain>> {
    Vec::<Node>::decode(fields.required_node("parts")?)?.iter().map(|node| part(node, context)).collect()
}

fn part(node: &Node, context: &Context) -> Result<Chain> {
    let mut context = context.of_part();
    let Tree::Map(entries) = &node.value else { return registry::source(node, &mut context) };
    if !entries.iter().any(|f| f.key == "source") {
        return registry::source(node, &mut context);
    }
    let fields = Fields::new(node)?;
    let chain = registry::source(fields.required_node("source")?, &mut context)?;
    let stages = fields.or("stages", Vec::<Node>::new())?;
    fields.finish()?;
    registry::stages_of(chain, &stages, &mut context)
}

/// The parts as datasets of random access; if one is none, all as streams.
fn random_access(parts: Vec<Chain>) -> Result<Vec<BoxMap<Element>>, Vec<BoxIter<Element>>> {
    if parts.iter().any(|part| !matches!(part, Chain::Map(_))) {
        return Err(parts.into_iter().map(Chain::into_iter).collect());
    }
    let map = |part| match part {
        Chain::Map(ds) => Some(ds),
        _ => None,
    };
    Ok(parts.into_iter().filter_map(map).collect())
}

/// `range: {start: 0, stop: 10, step: 1, column: index}`: one scalar `int64` column.
fn range(fields: &Fields<'_>, _: &Context) -> Result<Chain> {
    let (start, stop) = (fields.or("start", 0)?, fields.required("stop")?);
    let column = fields.or("column", "index".to_owned())?;
    let range = Range::with_step(start, stop, fields.or("step", 1)?)?;
    let name = column.clone();
    let to_element =
        NamedFn::map("to_element", column, move |number: i64| Ok(Element::new().with(&name, Array::scalar(number))));
    Ok(Chain::Map(to_element.after(range).boxed()))
}

/// `memory: {records: [{text: a}, {text: b}]}`: for tests and small tables.
fn memory(fields: &Fields<'_>, _: &Context) -> Result<Chain> {
    let node = fields.required_node("records")?;
    let records = Vec::<Node>::decode(node)?;
    let elements = records.iter().map(record).collect::<Result<Vec<_>>>()?;
    Ok(Chain::Map(Source::new(Records(elements)).boxed()))
}

fn record(node: &Node) -> Result<Element> {
    match &node.value {
        Tree::Map(fields) => element(fields),
        _ => Err(node.error(format!("a record is a mapping of columns, got {}", node.kind()))),
    }
}

fn element(fields: &[Field]) -> Result<Element> {
    let mut element = Element::with_capacity(fields.len());
    for field in fields {
        element.insert(&field.key, value(&field.value)?);
    }
    Ok(element)
}

fn value(node: &Node) -> Result<Value> {
    Ok(match &node.value {
        Tree::Null => Value::Null,
        Tree::Bool(truth) => Array::bool(*truth).into(),
        Tree::Int(number) => Array::scalar(*number).into(),
        Tree::Float(number) => Array::scalar(*number).into(),
        Tree::Str(text) => text.as_str().into(),
        Tree::Map(fields) => element(fields)?.into(),
        Tree::List(items) => list(items)?,
    })
}

/// Whole numbers make an `int64` array, numbers a `float64` array, anything else a list.
fn list(items: &[Node]) -> Result<Value> {
    if items.iter().all(|n| matches!(n.value, Tree::Int(_))) {
        return Ok(Array::from_vec(items.iter().map(i64::decode).collect::<Result<Vec<_>>>()?).into());
    }
    if items.iter().all(|n| matches!(n.value, Tree::Int(_) | Tree::Float(_))) {
        return Ok(Array::from_vec(items.iter().map(f64::decode).collect::<Result<Vec<_>>>()?).into());
    }
    Ok(Value::List(items.iter().map(value).collect::<Result<_>>()?))
}

/// Records written in the pipeline file itself; told apart by what they hold.
#[derive(Debug)]
struct Records(Vec<Element>);

impl RandomAccess for Records {
    type Record = Element;

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Element> {
        Ok(self.0[index as usize].clone())
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    fn identity(&self) -> String {
        let mut hash = crate::element::OrderHash::default();
        self.0.iter().for_each(|e| hash.update(e));
        format!("{} records, digest={hash}", self.0.len())
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.0.iter().map(Element::nbytes).sum::<usize>() as u64)
    }
}
