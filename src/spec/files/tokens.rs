//! Files of token ids.

use super::whole::Whole;
use super::{layout, paths_by, unopened_map};
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::element::{Array, Element};
use crate::error::Result;
use crate::place;
use crate::source::{Megatron, MegatronUnit, Tokens, megatron_index};
use crate::spec::chain::{Chain, Context};
use crate::spec::decode::Fields;

/// `crops: {paths: train.bin, seq_len: 1024, layout: u16}`: pre-tokenised ids, one crop after the other.
pub(super) fn crops(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let (seq_len, with_next) = (fields.required("seq_len")?, fields.or("with_next", false)?);
    Ok(Chain::Map(match open(fields, context)? {
        Some(tokens) => tokens.crops(seq_len).with_next(with_next).boxed(),
        None => unopened_map(),
    }))
}

/// `random_crops: {paths: train.bin, seq_len: 1024, seed: 1}`: crops that start anywhere, without end.
pub(super) fn random_crops(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let (seq_len, seed) = (fields.required("seq_len")?, fields.required("seed")?);
    let (with_next, epoch) = (fields.or("with_next", false)?, fields.optional("epoch")?);
    let Some(tokens) = open(fields, context)? else { return Ok(Chain::Map(unopened_map())) };
    let crops = tokens.random_crops(seq_len, seed).with_next(with_next);
    Ok(Chain::Map(match epoch {
        Some(count) => crops.epoch(count).boxed(),
        None => crops.boxed(),
    }))
}

/// `tokens: {paths: train.bin, layout: u16}`: a record for each file, all of its ids.
pub(super) fn tokens(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let Some(tokens) = open(fields, context)? else { return Ok(Chain::Map(unopened_map())) };
    let element = |ids: Array| Element::with_capacity(1).with("tokens", ids);
    let elements = tokens.views()?.into_iter().map(element).collect();
    Ok(Chain::Map(Whole { name: "tokens", elements, identity: format!("{tokens:?}") }.dataset()))
}

/// The files of ids, opened; nothing where a pipeline is only checked.
fn open(fields: &Fields<'_>, context: &Context) -> Result<Option<Tokens>> {
    let paths = paths_by(fields.required_node("paths")?, context, |path| vec![dataset(path)])?;
    let layout = layout(fields)?;
    if context.is_draft { Ok(None) } else { Tokens::open(&paths, layout).map(Some) }
}

/// The index of a dataset of Megatron's that is named by what its files have in common; any other path as it is.
fn dataset(path: std::path::PathBuf) -> std::path::PathBuf {
    if place::is_remote(&path) || path.exists() { path } else { megatron_index(&path) }
}

/// `megatron: {paths: corpus_text_document, by: document}`: sequences of token ids, or documents.
pub(super) fn megatron(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths_by(fields.required_node("paths")?, context, |path| vec![dataset(path)])?;
    let unit = match fields.choice("by", &["sequence", "document"])? {
        Some(1) => MegatronUnit::Document,
        _ => MegatronUnit::Sequence,
    };
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    Ok(Chain::Map(Source::new(Megatron::options().unit(unit).open(&paths)?).boxed()))
}
