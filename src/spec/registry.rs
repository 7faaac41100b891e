//! Every source and stage that a pipeline file can name. Adding one is one entry and one small function.

use super::chain::{Border, Chain, Context};
use super::decode::{Fields, suggest, variant};
use super::entry::{SourceEntry, StageEntry};
use super::node::{Node, at, on_line};
use super::{column_stages, examples, files, iter_stages, order_stages, pack_stages, sources, text_stages};
use crate::dataset::iter::{BadRecords, FilterThresholds};
use crate::error::{Error, Result};

const STAGES: &[&[StageEntry]] = &[
    column_stages::STAGES,
    examples::STAGES,
    order_stages::STAGES,
    text_stages::STAGES,
    iter_stages::STAGES,
    pack_stages::STAGES,
];
const SOURCES: &[&[SourceEntry]] = &[files::SOURCES, sources::SOURCES];
/// The border between the worlds, handled here.
const BORDER: &str = "to_iter";

fn stages() -> impl Iterator<Item = &'static StageEntry> {
    STAGES.iter().flat_map(|group| group.iter())
}

fn source_entries() -> impl Iterator<Item = &'static SourceEntry> {
    SOURCES.iter().flat_map(|group| group.iter())
}

/// The argument that a bare value behind the name of a stage or a source stands for.
pub(crate) fn main_argument(name: &str) -> Option<&'static str> {
    let stage = stages().find(|e| e.name == name).and_then(|e| e.main);
    stage.or_else(|| source_entries().find(|e| e.name == name).and_then(|e| e.main))
}

/// The source that `node` names.
pub(crate) fn source(node: &Node, context: &mut Context) -> Result<Chain> {
    let (name, line, args) = variant(node)?;
    let Some(entry) = source_entries().find(|e| e.name == name) else {
        let error = at(&node.path, line, format!("unknown source `{name}`"));
        return Err(suggest(error, &name, source_entries().map(|e| e.name)));
    };
    let fields = Fields::with_short(&args, entry.main)?;
    let chain = entry.build(&fields, context).map_err(|e| on_line(e, line))?;
    fields.finish()?;
    chain.check().map_err(|e| on_line(e, line))?;
    if let Chain::Map(ds) = &chain {
        context.peek(ds);
    }
    Ok(chain)
}

/// The argument by which the source `name` reads some columns only.
pub(crate) fn columns_argument(name: &str) -> Option<&'static str> {
    source_entries().find(|e| e.name == name).and_then(|e| e.columns)
}

/// `chain` and the stages of a list behind it.
pub(crate) fn stages_of(mut chain: Chain, list: &[Node], context: &mut Context) -> Result<Chain> {
    // Before any is built, which may take its time.
    list.iter().try_for_each(known)?;
    for (i, node) in list.iter().enumerate() {
        let border_ahead = list[i + 1..].iter().any(|n| variant(n).is_ok_and(|(name, ..)| name == BORDER));
        chain = stage(chain, node, border_ahead, context)?;
    }
    Ok(chain)
}

/// That there is a stage of this name.
fn known(node: &Node) -> Result<()> {
    let (name, line, _) = variant(node)?;
    let is_known = name == BORDER || stages().any(|entry| entry.name == name);
    if is_known { Ok(()) } else { Err(unknown(node, &name, line)) }
}

#[cold]
fn unknown(node: &Node, name: &str, line: usize) -> Error {
    let error = at(&node.path, line, format!("unknown stage `{name}`"));
    suggest(error, name, stages().map(|e| e.name).chain([BORDER]))
}

/// `chain` and one stage behind it; `border_ahead` says that a later one begins the stream.
pub(crate) fn stage(mut chain: Chain, node: &Node, border_ahead: bool, context: &mut Context) -> Result<Chain> {
    let (name, line, args) = variant(node)?;
    if name == BORDER {
        let told = border(&args)?;
        return match chain {
            Chain::Map(ds) => Ok(Chain::Stream(ds, told)),
            _ => Err(at(&node.path, line, "the elements are a stream already: `to_iter` stands once")),
        };
    }
    let Some(entry) = stages().find(|e| e.name == name) else { return Err(unknown(node, &name, line)) };
    let fields = Fields::with_short(&args, entry.main)?;
    if entry.starts_stream && !border_ahead {
        chain = chain.into_stream();
    }
    let indices = chain.indices();
    let chain = apply(chain, entry, &fields, context).map_err(|e| on_line(e, line))?;
    fields.finish()?;
    chain.check().map_err(|e| on_line(e, line))?;
    if matches!(chain, Chain::Iter(_)) {
        context.indices = context.indices.or(indices);
    }
    match &chain {
        Chain::Map(ds) | Chain::Stream(ds, _) => context.peek(ds),
        Chain::Lanes(..) | Chain::Iter(_) if !entry.keeps_columns => context.columns = None,
        Chain::Lanes(..) | Chain::Iter(_) => {}
    }
    Ok(chain)
}

/// `to_iter: {on_bad_record: skip, bad_record_limit: 100, consecutive_bad_record_limit: 10, warn: 0.9, raise: 0.99}`.
pub(crate) fn border(args: &Node) -> Result<Border> {
    let fields = Fields::new(args)?;
    let skip = fields.choice("on_bad_record", &["error", "skip"])? == Some(1);
    let (limit, consecutive) = (fields.optional("bad_record_limit")?, fields.optional("consecutive_bad_record_limit")?);
    let bad = match (skip, limit.or(consecutive)) {
        (true, _) => BadRecords::Skip { limit, consecutive },
        (false, None) => BadRecords::Error,
        (false, Some(_)) => {
            let name = if limit.is_some() { "bad_record_limit" } else { "consecutive_bad_record_limit" };
            return Err(fields.error(format!("`{name}` belongs to `on_bad_record: skip`")));
        }
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
    let chain = match (chain, entry.stream) {
        (Chain::Stream(ds, border), Some(build)) => {
            return Ok(Chain::Iter(build(border.open(ds), fields, context)?));
        }
        (chain, _) => chain,
    };
    match (chain, entry.map, entry.iter) {
        (Chain::Map(ds), Some(build), _) => Ok(Chain::Map(build(ds, fields, context)?)),
        (Chain::Stream(ds, border), Some(build), _) if entry.elementwise => {
            Ok(Chain::Stream(build(ds, fields, context)?, border))
        }
        (Chain::Lanes(parts, count), _, Some(build)) if entry.elementwise => {
            let parts = parts.into_iter().map(|part| build(part, fields, context)).collect::<Result<_>>()?;
            Ok(Chain::Lanes(parts, count))
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
