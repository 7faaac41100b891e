//! The sources and stages of pipeline files, collected from the entries in each folder.

use super::arguments::{About, Arguments, Kind, arguments};
use super::chain::{Border, Chain, Context};
use super::decode::{Fields, variant};
use super::entry::{OnBad, SourceEntry, StageEntry};
use super::node::{Node, at, on_line};
use super::sources;
use super::suggest::suggest;
use super::values::decode_as;
use crate::dataset::iter::{self, BadRecords, FilterThresholds};
use crate::dataset::{columns, map};
use crate::error::{Error, Result};
use crate::pack;
use crate::source::{SOURCES, example_stages, skip_bad_shards};
use crate::text;

const STAGES: &[&[StageEntry]] =
    &[columns::STAGES, example_stages::STAGES, map::STAGES, text::entry::STAGES, iter::STAGES, pack::entry::STAGES];
/// The border between the worlds, handled here.
const BORDER: &str = "to_iter";

/// A source or a stage, described.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    /// Its purpose in a sentence.
    pub(crate) doc: &'static str,
    pub(crate) about: &'static About,
    /// The feature that this build lacks for it.
    pub(crate) lacks: Option<&'static str>,
}

/// Every source.
pub(crate) fn described_sources() -> impl Iterator<Item = Described> {
    source_entries().map(|e| Described { name: e.name, doc: summary(e.doc), about: e.about, lacks: e.lacks() })
}

/// Every stage.
pub(crate) fn described_stages() -> impl Iterator<Item = Described> {
    let of = |name, doc, about| Described { name, doc, about, lacks: None };
    stages().map(move |e| of(e.name, summary(e.doc), e.about)).chain([of(BORDER, BORDER_DOC, &BorderArgs::ABOUT)])
}

/// Returns the first paragraph of a description. Python's `help` shows the others, too.
fn summary(doc: &str) -> &str {
    doc.split("\n\n").next().unwrap_or(doc)
}

/// A source in a file, which [`source`] reads.
pub(crate) struct Source;

decode_as!(Source, Kind::Source, |_node| Ok(Self));

/// A list of stages in a file, which [`stages_of`] reads.
pub(crate) struct Stages;

decode_as!(Stages, Kind::Stages, |_node| Ok(Self));

/// Returns the entries of all stages but the border.
pub(crate) fn stages() -> impl Iterator<Item = &'static StageEntry> {
    STAGES.iter().flat_map(|group| group.iter())
}

/// Returns the entries of all sources.
pub(crate) fn source_entries() -> impl Iterator<Item = &'static SourceEntry> {
    SOURCES.iter().copied().flatten().chain(sources::SOURCES)
}

/// Returns the argument of a stage or a source that takes a bare value.
pub(crate) fn main_argument(name: &str) -> Option<&'static str> {
    let stage = stages().find(|e| e.name == name).and_then(|e| e.about.main);
    stage.or_else(|| source_entries().find(|e| e.name == name).and_then(|e| e.about.main))
}

/// The source that `node` names.
pub(crate) fn source(node: &Node, context: &mut Context) -> Result<Chain> {
    let (name, line, args) = variant(node)?;
    let Some(entry) = source_entries().find(|e| e.name == name) else {
        let error = at(&node.path, line, format!("unknown source `{name}`"));
        return Err(suggest(error, &name, source_entries().map(|e| e.name)));
    };
    let build = |context: &Context| {
        let fields = Fields::of(&args, entry.about)?;
        let chain = entry.build(&fields, context)?;
        entry.on_bad_shard(&fields, context)?;
        fields.finish().map(|()| chain)
    };
    let bad = entry.on_bad_shard(&Fields::of(&args, entry.about)?, context)?;
    let chain = match bad {
        BadRecords::Skip { limit, .. } if !context.is_draft => {
            let opened = skip_bad_shards(&context.shards, limit, |shards| build(&context.leaving_out(shards)));
            let (chain, bad) = opened.map_err(|e| on_line(e, line))?;
            context.skip(bad);
            chain
        }
        _ => build(context).map_err(|e| on_line(e, line))?,
    };
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

/// Largest number of stages in a list. Building a chain takes time proportional to the square of its length.
const MOST_STAGES: usize = 1000;

/// Adds the stages of a list to `chain`.
pub(crate) fn stages_of(mut chain: Chain, list: &[Node], context: &mut Context) -> Result<Chain> {
    if let Some(node) = list.get(MOST_STAGES) {
        return Err(node.error(format!("{} stages in one list, limit {MOST_STAGES}", list.len())));
    }
    // Unknown names are found before a stage is built, which may take seconds.
    list.iter().try_for_each(known)?;
    let last_border = list.iter().rposition(|n| variant(n).is_ok_and(|(name, ..)| name == BORDER));
    for (i, node) in list.iter().enumerate() {
        chain = stage(chain, node, last_border > Some(i), context)?;
    }
    Ok(chain)
}

/// Checks that there is a stage of this name.
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

/// Appends a stage to `chain`. `border_ahead`: a later stage begins the stream.
pub(crate) fn stage(mut chain: Chain, node: &Node, border_ahead: bool, context: &mut Context) -> Result<Chain> {
    let (name, line, args) = variant(node)?;
    if name == BORDER {
        let told = border(&args)?;
        return match chain {
            Chain::Map(ds) => Ok(Chain::Stream(ds, told)),
            _ => Err(at(&node.path, line, "the elements are a stream already: use `to_iter` once")),
        };
    }
    let Some(entry) = stages().find(|e| e.name == name) else { return Err(unknown(node, &name, line)) };
    let fields = Fields::of(&args, entry.about)?;
    if entry.starts_stream && !border_ahead {
        chain = chain.into_stream(Border::default());
    }
    let indices = chain.indices();
    let chain = apply(chain, entry, &fields, context).map_err(|e| on_line(e, line))?;
    fields.finish()?;
    chain.check().map_err(|e| on_line(e, line))?;
    if matches!(chain, Chain::Iter(_)) {
        context.indices = context.indices.or(indices);
    }
    match chain.prefix() {
        Some(ds) => context.peek(ds),
        None if !entry.keeps_columns => context.columns = None,
        None => {}
    }
    Ok(chain)
}

const BORDER_DOC: &str = "Makes a stream of one epoch, and sets the policies for bad records and for filters that drop too much. \
                          Without `to_iter`, the stream begins before the first stage that needs a stream.";

arguments! {
    struct BorderArgs {
        /// Policy for records that sources and native stages cannot use: `error` ends the run, `skip` skips the record and counts it in the
        /// report and the state.
        on_bad_record: OnBad = "error",
        /// Maximum number of skipped records. By default, no limit.
        bad_record_limit: Option<u64>,
        /// Maximum number of consecutive skipped records. By default, no limit.
        consecutive_bad_record_limit: Option<u64>,
        /// Dropped share of 1000 consecutive elements at which filters log a warning.
        warn: f64 = 0.9,
        /// Dropped share of 1000 consecutive elements at which filters end the run. By default, no share does.
        raise: Option<f64>,
    }
}

/// The policy for bad records that the first of these stages with such a policy has.
pub(crate) fn bad_records(list: &[Node]) -> Option<BadRecords> {
    list.iter().find_map(|node| {
        let (name, _, args) = variant(node).ok()?;
        // The stage reports errors in its arguments.
        if name == BORDER {
            Some(border(&args).ok()?.bad).filter(|bad| *bad != BadRecords::Error)
        } else {
            let entry = stages().find(|entry| entry.name == name)?;
            entry.policy?(&Fields::of(&args, entry.about).ok()?).ok()
        }
    })
}

/// Reads the arguments of `to_iter`.
pub(crate) fn border(args: &Node) -> Result<Border> {
    let fields = Fields::new(args)?;
    let args = BorderArgs::read(&fields)?;
    let (limit, consecutive) = (args.bad_record_limit, args.consecutive_bad_record_limit);
    let bad = match (args.on_bad_record, limit.or(consecutive)) {
        (OnBad::Skip, _) => BadRecords::Skip { limit, consecutive },
        (OnBad::Error, None) => BadRecords::Error,
        (OnBad::Error, Some(_)) => {
            let name = if limit.is_some() { "bad_record_limit" } else { "consecutive_bad_record_limit" };
            return Err(fields.error(format!("`{name}` belongs to `on_bad_record: skip`")));
        }
    };
    fields.finish()?;
    let mut thresholds = FilterThresholds::default();
    (thresholds.warn, thresholds.raise) = (Some(args.warn), args.raise);
    Ok(Border { bad, thresholds })
}

fn apply(chain: Chain, entry: &StageEntry, fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    if let Some(build) = entry.chain {
        return build.build(chain, fields, context);
    }
    let chain = match (chain, entry.stream) {
        (Chain::Stream(ds, border), Some(build)) => {
            return Ok(Chain::Iter(build.build(border.open(ds), fields, context)?));
        }
        (chain, _) => chain,
    };
    match (chain, entry.map, entry.iter) {
        (Chain::Map(ds), Some(build), _) => Ok(Chain::Map(build.build(ds, fields, context)?)),
        (Chain::Stream(ds, border), Some(build), _) if entry.elementwise => {
            Ok(Chain::Stream(build.build(ds, fields, context)?, border))
        }
        (Chain::Lanes(parts, count), _, Some(build)) if entry.elementwise => {
            let parts = parts.into_iter().map(|part| build.build(part, fields, context)).collect::<Result<_>>()?;
            Ok(Chain::Lanes(parts, count))
        }
        (chain, _, Some(build)) => Ok(Chain::Iter(build.build(chain.into_iter(), fields, context)?)),
        (_, _, None) => Err(needs_random_access(entry.name, fields)),
    }
}

fn needs_random_access(name: &str, fields: &Fields<'_>) -> Error {
    fields
        .error(format!("`{name}` needs random access, but here the elements are a stream"))
        .help(format!("put `{name}` before `to_iter` and before the first stage that packs or batches"))
}

#[cfg(test)]
mod tests;
