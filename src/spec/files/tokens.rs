//! Files of token ids.

use super::whole::Whole;
use super::{layout, paths_by};
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
    let crops = open(fields, context)?.crops(fields.required("seq_len")?);
    Ok(Chain::Map(crops.with_next(fields.or("with_next", false)?).boxed()))
}

/// `random_crops: {paths: train.bin, seq_len: 1024, seed: 1}`: crops that start anywhere, without end.
pub(super) fn random_crops(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let crops = open(fields, context)?.random_crops(fields.required("seq_len")?, fields.required("seed")?);
    let crops = crops.with_next(fields.or("with_next", false)?);
    Ok(Chain::Map(match fields.optional("epoch")? {
        Some(count) => crops.epoch(count).boxed(),
        None => crops.boxed(),
    }))
}

/// `tokens: {paths: train.bin, layout: u16}`: a record for each file, all of its ids.
pub(super) fn tokens(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let tokens = open(fields, context)?;
    let element = |ids: Array| Element::with_capacity(1).with("tokens", ids);
    let elements = tokens.views()?.into_iter().map(element).collect();
    Ok(Chain::Map(Whole { name: "tokens", elements, identity: format!("{tokens:?}") }.dataset()))
}

fn open(fields: &Fields<'_>, context: &Context) -> Result<Tokens> {
    let paths = paths_by(fields.required_node("paths")?, context, |path| vec![dataset(path)])?;
    Tokens::open(&paths, layout(fields)?)
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
    Ok(Chain::Map(Source::new(Megatron::options().unit(unit).open(&paths)?).boxed()))
}
