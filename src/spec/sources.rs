//! Sources of elements: files, memory, ranges, and combinations of these.

use super::arguments::{Arguments, Kind, arguments};
use super::build::{Of, Site};
use super::chain::{Chain, Context};
use super::columns::NamedFn;
use super::decode::Fields;
use super::entry::SourceEntry;
use super::mixing::MixOptions;
use super::node::{Field, Node, Tree};
use super::registry;
use super::values::{Decode, Given, Positive, decode_as};
use crate::dataset::iter::{ZipLength, interleave, zip_all};
use crate::dataset::map::{Concatenate, RandomAccess, Range, Source, SourceFacts, ZipAll};
use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDatasetExt};
use crate::element::{Array, Element, Value};
use crate::error::{Error, Result};

pub(super) const SOURCES: &[SourceEntry] = &[
    SourceEntry::of("concatenate", "Concatenates the parts.", &Of(concatenate)),
    SourceEntry::of(
        "mix",
        "Mixes elements of the parts in proportion to their weights, in Grain's order. Weights may change during the run, and may count \
         tokens.",
        &Of(mix),
    ),
    SourceEntry::of(
        "interleave",
        "Takes an element of each of `cycle` parts in turn. When a part ends, the next part replaces it.",
        &Of(interleave_parts),
    ),
    SourceEntry::of(
        "lanes",
        "Reads part `k` in lane `k` modulo `count`, and takes an element of each lane in turn. Several threads or workers can read \
         the lanes, and subsequent elementwise stages run inside them.",
        &Of(lanes_of_parts),
    ),
    SourceEntry::of("zip", "Combines the columns of all parts, element by element.", &Of(zip)),
    SourceEntry::of("memory", "Reads records from the pipeline file itself, for tests and small tables.", &Of(memory)),
    SourceEntry::of("range", "Yields whole numbers, as Python's `range` does, in an `int64` column.", &Of(range)),
];

/// A separate source, or `source` and `stages`.
struct Part;

decode_as!(Part, Kind::Part, |_node| Ok(Self));

arguments! {
    struct PartsArgs(parts) {
        /// Parts, each a source or `{source: …, stages: […]}`.
        parts: Given<Vec<Part>>,
    }
}

fn concatenate(args: PartsArgs, at: &Site<'_>) -> Result<Chain> {
    let parts = parts(&args, at)?;
    match random_access(parts) {
        Ok(maps) => Ok(Chain::Map(Concatenate::new(maps).boxed())),
        // With a single lane, streams follow each other.
        Err(streams) => Ok(Chain::Iter(interleave(streams, 1).boxed())),
    }
}

arguments! {
    struct MixArgs(parts) with PartsArgs as parts, MixOptions as options {}
}

fn mix(args: MixArgs, at: &Site<'_>) -> Result<Chain> {
    let parts = parts(&args.parts, at)?;
    let mixing = args.options.of_parts(parts.len()).map_err(|error| in_place(at, error))?;
    Ok(match random_access(parts) {
        Ok(maps) => Chain::Map(mixing.over_maps(maps).map_err(|error| in_place(at, error))?.boxed()),
        Err(streams) => Chain::Iter(mixing.over_streams(streams).boxed()),
    })
}

/// Adds the place of the arguments to an error.
#[cold]
fn in_place(at: &Site<'_>, error: Error) -> Error {
    error.help_text().into_iter().fold(at.error(error.message()), Error::help)
}

arguments! {
    struct InterleaveArgs with PartsArgs as parts {
        /// Number of parts to read at a time.
        cycle: Positive<usize>,
    }
}

fn interleave_parts(args: InterleaveArgs, at: &Site<'_>) -> Result<Chain> {
    let streams: Vec<_> = parts(&args.parts, at)?.into_iter().map(Chain::into_iter).collect();
    Ok(Chain::Iter(interleave(streams, args.cycle.0).boxed()))
}

arguments! {
    struct LanesArgs with PartsArgs as parts {
        /// Number of lanes, which determines the order of the data.
        count: Positive<usize>,
    }
}

fn lanes_of_parts(args: LanesArgs, at: &Site<'_>) -> Result<Chain> {
    let parts: Vec<_> = parts(&args.parts, at)?.into_iter().map(Chain::into_iter).collect();
    if parts.is_empty() { Err(at.error("needs at least one part")) } else { Ok(Chain::Lanes(parts, args.count.0)) }
}

arguments! {
    struct ZipArgs(parts) with PartsArgs as parts {
        /// Whether all parts must have equal lengths. If false, the shortest part ends the dataset.
        strict: bool = true,
    }
}

fn zip(args: ZipArgs, at: &Site<'_>) -> Result<Chain> {
    let length = if args.strict { ZipLength::Equal } else { ZipLength::Shortest };
    let merged = NamedFn::map("merge_columns", String::new(), merge);
    match (random_access(parts(&args.parts, at)?), length) {
        // Of files that are not opened it is not known whether they are equally long.
        (Ok(maps), ZipLength::Equal) if at.is_draft => {
            Ok(Chain::Map(merged.after(ZipAll::new(maps.into_iter().take(1).collect())).boxed()))
        }
        (Ok(maps), ZipLength::Equal) => Ok(Chain::Map(merged.after(ZipAll::new(maps)).boxed())),
        (Ok(maps), _) => {
            let streams = maps.into_iter().map(|ds| ds.to_iter().boxed());
            Ok(Chain::Iter(merged.in_order(zip_all(streams, length)).boxed()))
        }
        (Err(streams), _) => Ok(Chain::Iter(merged.in_order(zip_all(streams, length)).boxed())),
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
fn parts(args: &PartsArgs, context: &Context) -> Result<Vec<Chain>> {
    Vec::<Node>::decode(&args.parts)?.iter().map(|node| part(node, context)).collect()
}

arguments! {
    pub(super) struct PartArgs {
        /// Source of the elements, or a combination of several sources.
        source: Given<registry::Source>,
        /// Stages in order, each a name with its arguments.
        stages: Option<Given<registry::Stages>>,
    }
}

fn part(node: &Node, context: &Context) -> Result<Chain> {
    let mut context = context.of_part();
    let Tree::Map(entries) = &node.value else { return registry::source(node, &mut context) };
    if !entries.iter().any(|f| f.key == "source") {
        return registry::source(node, &mut context);
    }
    let fields = Fields::new(node)?;
    let PartArgs { source, stages } = PartArgs::read(&fields)?;
    let stages = stages.map(|given| Vec::<Node>::decode(&given)).transpose()?.unwrap_or_default();
    context.bad = registry::bad_records(&stages).unwrap_or(context.bad);
    let chain = registry::source(&source, &mut context)?;
    fields.finish()?;
    registry::stages_of(chain, &stages, &mut context)
}

/// The parts as datasets of random access; if one is none, all as streams.
fn random_access(parts: Vec<Chain>) -> Result<Vec<BoxMap<Element>>, Vec<BoxIter<Element>>> {
    if parts.iter().any(|part| !matches!(part, Chain::Map(_))) {
        return Err(parts.into_iter().map(Chain::into_iter).collect());
    }
    let map = |part| if let Chain::Map(ds) = part { Some(ds) } else { None };
    Ok(parts.into_iter().filter_map(map).collect())
}

arguments! {
    struct RangeArgs(stop) {
        /// Start of the range, inclusive.
        start: i64 = 0,
        /// End of the range, exclusive.
        stop: i64,
        /// Name of the column.
        column: String = "index",
        /// Step from one number to the next; not 0.
        step: i64 = 1,
    }
}

fn range(RangeArgs { start, stop, column, step }: RangeArgs, _: &Site<'_>) -> Result<Chain> {
    let range = Range::with_step(start, stop, step)?;
    let name = column.clone();
    let to_element =
        NamedFn::map("to_element", column, move |number: i64| Ok(Element::new().with(&name, Array::scalar(number))));
    Ok(Chain::Map(to_element.after(range).boxed()))
}

/// A record: a mapping of columns.
struct Record(Element);

decode_as!(Record, Kind::Map(&Kind::Any), |node| {
    match &node.value {
        Tree::Map(fields) => element(fields).map(Self),
        _ => Err(node.error(format!("a record is a mapping of columns, got {}", node.kind()))),
    }
});

arguments! {
    struct MemoryArgs(records) {
        /// Records, each a mapping from column names to values. Lists of numbers become arrays.
        records: Vec<Record>,
    }
}

fn memory(args: MemoryArgs, _: &Site<'_>) -> Result<Chain> {
    let elements = args.records.into_iter().map(|record| record.0).collect();
    Ok(Chain::Map(Source::new(Records(elements)).boxed()))
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

/// Records in the pipeline file, distinguished by their contents.
#[derive(Debug)]
struct Records(Vec<Element>);

impl RandomAccess for Records {
    type Record = Element;

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, index: u64) -> Result<Element> {
        Ok(self.0[index as usize].clone())
    }

    fn facts(&self) -> SourceFacts {
        let mut hash = crate::element::OrderHash::default();
        self.0.iter().for_each(|e| hash.update(e));
        let identity = format!("{} records, digest={hash}", self.0.len());
        let bytes = self.0.iter().map(Element::nbytes).sum::<usize>() as u64;
        SourceFacts { is_native: true, memory_bytes: Some(bytes), ..SourceFacts::new("memory", identity) }
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }
}
