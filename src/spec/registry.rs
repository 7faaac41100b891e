//! Every source and stage that a pipeline file can name. Adding one is one entry and one small function.

use super::chain::{Border, Chain, Context};
use super::decode::{Fields, suggest, variant};
use super::node::{Node, at};
use super::{column_stages, file_sources, iter_stages, order_stages, pack_stages, sources, text_stages};
use crate::dataset::iter::{BadRecords, FilterThresholds};
use crate::dataset::{BoxIter, BoxMap};
use crate::element::Element;
use crate::error::{Error, Result};

/// Builds a stage of random access.
pub(crate) type MapFn = fn(BoxMap<Element>, &Fields<'_>, &Context) -> Result<BoxMap<Element>>;
/// Builds a stage of a stream.
pub(crate) type IterFn = fn(BoxIter<Element>, &Fields<'_>, &Context) -> Result<BoxIter<Element>>;
/// Builds a stage that stands in either world.
pub(crate) type ChainFn = fn(Chain, &Fields<'_>, &Context) -> Result<Chain>;
/// Builds a source, or a combination of sources.
pub(crate) type SourceFn = fn(&Fields<'_>, &Context) -> Result<Chain>;

/// A stage that a file can name.
pub(crate) struct StageEntry {
    /// The name of the method.
    pub(crate) name: &'static str,
    /// The argument that a bare value stands for: `limit: 100`.
    pub(crate) main: Option<&'static str>,
    pub(crate) map: Option<MapFn>,
    /// Elementwise: behind `to_iter` it may still run in front of the border.
    pub(crate) elementwise: bool,
    pub(crate) iter: Option<IterFn>,
    pub(crate) chain: Option<ChainFn>,
    /// Of two worlds it belongs to the stream, unless a later `to_iter` says where that begins.
    pub(crate) starts_stream: bool,
    /// Whether a stream has the same columns behind it.
    pub(crate) keeps_columns: bool,
}

impl StageEntry {
    const fn new(name: &'static str, main: Option<&'static str>) -> Self {
        Self {
            name,
            main,
            map: None,
            elementwise: false,
            iter: None,
            chain: None,
            starts_stream: false,
            keeps_columns: true,
        }
    }

    /// A stage of random access only.
    pub(crate) const fn map(name: &'static str, main: Option<&'static str>, build: MapFn) -> Self {
        Self { map: Some(build), ..Self::new(name, main) }
    }

    /// A stage of streams only.
    pub(crate) const fn iter(name: &'static str, main: Option<&'static str>, build: IterFn) -> Self {
        Self { iter: Some(build), ..Self::new(name, main) }
    }

    /// A stage that either world has.
    pub(crate) const fn both(name: &'static str, main: Option<&'static str>, map: MapFn, iter: IterFn) -> Self {
        Self { map: Some(map), iter: Some(iter), ..Self::new(name, main) }
    }

    /// A stage that sees each element on its own, in either world.
    pub(crate) const fn each(name: &'static str, main: Option<&'static str>, map: MapFn, iter: IterFn) -> Self {
        Self { elementwise: true, ..Self::both(name, main, map, iter) }
    }

    /// A stage that finds its place itself.
    pub(crate) const fn chain(name: &'static str, main: Option<&'static str>, build: ChainFn) -> Self {
        Self { chain: Some(build), ..Self::new(name, main) }
    }

    /// A stage of either world that begins the stream, unless a later `to_iter` does.
    pub(crate) const fn starts_stream(self) -> Self {
        Self { starts_stream: true, ..self }
    }

    /// The columns behind it are others.
    pub(crate) const fn new_columns(self) -> Self {
        Self { keeps_columns: false, ..self }
    }
}

/// A source that a file can name.
pub(crate) struct SourceEntry {
    pub(crate) name: &'static str,
    pub(crate) main: Option<&'static str>,
    pub(crate) build: SourceFn,
}

const STAGES: &[&[StageEntry]] =
    &[column_stages::STAGES, order_stages::STAGES, text_stages::STAGES, iter_stages::STAGES, pack_stages::STAGES];
const SOURCES: &[&[SourceEntry]] = &[file_sources::SOURCES, sources::SOURCES];
/// The border between the worlds, handled here.
const BORDER: &str = "to_iter";

fn stages() -> impl Iterator<Item = &'static StageEntry> {
    STAGES.iter().flat_map(|group| group.iter())
}

fn source_entries() -> impl Iterator<Item = &'static SourceEntry> {
    SOURCES.iter().flat_map(|group| group.iter())
}

/// The source that `node` names.
pub(crate) fn source(node: &Node, context: &mut Context) -> Result<Chain> {
    let (name, line, args) = variant(node)?;
    let Some(entry) = source_entries().find(|e| e.name == name) else {
        let error = at(&node.path, line, format!("unknown source `{name}`"));
        return Err(suggest(error, &name, source_entries().map(|e| e.name)));
    };
    let fields = Fields::with_short(&args, entry.main)?;
    let chain = (entry.build)(&fields, context).map_err(|e| e.line(line as u64))?;
    fields.finish()?;
    chain.check().map_err(|e| e.line(line as u64))?;
    if let Chain::Map(ds) = &chain {
        context.peek(ds);
    }
    Ok(chain)
}

/// `chain` and the stages of a list behind it.
pub(crate) fn stages_of(mut chain: Chain, list: &[Node], context: &mut Context) -> Result<Chain> {
    for (i, node) in list.iter().enumerate() {
        let border_ahead = list[i + 1..].iter().any(|n| variant(n).is_ok_and(|(name, ..)| name == BORDER));
        chain = stage(chain, node, border_ahead, context)?;
    }
    Ok(chain)
}

fn stage(mut chain: Chain, node: &Node, border_ahead: bool, context: &mut Context) -> Result<Chain> {
    let (name, line, args) = variant(node)?;
    if name == BORDER {
        let told = border(&args)?;
        return match chain {
            Chain::Map(ds) => Ok(Chain::Stream(ds, told)),
            _ => Err(at(&node.path, line, "the elements are a stream already: `to_iter` stands once")),
        };
    }
    let Some(entry) = stages().find(|e| e.name == name) else {
        let error = at(&node.path, line, format!("unknown stage `{name}`"));
        return Err(suggest(error, &name, stages().map(|e| e.name).chain([BORDER])));
    };
    let fields = Fields::with_short(&args, entry.main)?;
    if entry.starts_stream && !border_ahead {
        chain = chain.into_stream();
    }
    let indices = chain.indices();
    let chain = apply(chain, entry, &fields, context).map_err(|e| e.line(line as u64))?;
    fields.finish()?;
    chain.check().map_err(|e| e.line(line as u64))?;
    if matches!(chain, Chain::Iter(_)) {
        context.indices = context.indices.or(indices);
    }
    match &chain {
        Chain::Map(ds) | Chain::Stream(ds, _) => context.peek(ds),
        Chain::Iter(_) if !entry.keeps_columns => context.columns = None,
        Chain::Iter(_) => {}
    }
    Ok(chain)
}

/// `to_iter: {on_bad_record: skip, bad_record_limit: 100, warn: 0.9, raise: 0.99}`.
fn border(args: &Node) -> Result<Border> {
    let fields = Fields::new(args)?;
    let skip = fields.choice("on_bad_record", &["error", "skip"])? == Some(1);
    let bad = match (skip, fields.optional("bad_record_limit")?) {
        (true, limit) => BadRecords::Skip { limit },
        (false, None) => BadRecords::Error,
        (false, Some(_)) => return Err(fields.error("`bad_record_limit` belongs to `on_bad_record: skip`")),
    };
    let mut thresholds = FilterThresholds::default();
    thresholds.warn = fields.optional("warn")?.or(thresholds.warn);
    thresholds.raise = fields.optional("raise")?;
    fields.finish()?;
    Ok(Border { bad, thresholds })
}

fn apply(chain: Chain, entry: &StageEntry, fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    if let Some(build) = entry.chain {
        return build(chain, fields, context);
    }
    match (chain, entry.map, entry.iter) {
        (Chain::Map(ds), Some(build), _) => Ok(Chain::Map(build(ds, fields, context)?)),
        (Chain::Stream(ds, border), Some(build), _) if entry.elementwise => {
            Ok(Chain::Stream(build(ds, fields, context)?, border))
        }
        (chain, _, Some(build)) => Ok(Chain::Iter(build(chain.into_iter(), fields, context)?)),
        (_, _, None) => Err(needs_random_access(entry.name, fields)),
    }
}

fn needs_random_access(name: &str, fields: &Fields<'_>) -> Error {
    fields
        .error(format!("`{name}` needs random access, and here the elements are a stream"))
        .help(format!("put `{name}` before `to_iter` and before the first stage that packs or batches"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_documented_and_given_once() {
        let docs = include_str!("mod.rs");
        let names: Vec<_> = stages().map(|e| e.name).chain(source_entries().map(|e| e.name)).chain([BORDER]).collect();
        for (i, name) in names.iter().enumerate() {
            let row = |line: &str| {
                line.starts_with("//! |")
                    && line.split(" | ").nth(1).is_some_and(|cell| cell.contains(&format!("`{name}`")))
            };
            assert!(docs.lines().any(row), "{name} is not in the tables of the module");
            assert!(!names[..i].contains(name), "{name} is registered twice");
        }
    }
}
