//! Packing in a pipeline file.

use super::chain::Context;
use super::decode::{Decode, Fields};
use super::entry::StageEntry;
use super::iter_stages::remainder_or_pad;
use super::node::Node;
use crate::dataset::{BoxIter, IterDataset};
use crate::element::Element;
use crate::error::Result;
use crate::pack::{
    BatchSize, BinPackOptions, BosHandling, ConcatPackOptions, LengthBucketOptions, OutputNames, OverLong, Packing,
    Positions, RowSpec, WindowPackOptions,
};

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::iter("first_fit_pack", None, first_fit).new_columns(),
    StageEntry::iter("best_fit_pack", None, best_fit).new_columns(),
    StageEntry::iter("window_pack", None, window).new_columns(),
    StageEntry::iter("concat_then_split_pack", None, concat_then_split).new_columns(),
    StageEntry::iter("length_buckets", None, length_buckets).new_columns(),
];

fn first_fit(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.first_fit_pack(bins(fields, context)?).boxed())
}

fn best_fit(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.best_fit_pack(bins(fields, context)?).boxed())
}

/// `best_fit_pack: {length: {tokens: 1024}, num_packing_bins: 64}`.
fn bins(fields: &Fields<'_>, context: &Context) -> Result<BinPackOptions> {
    let mut options = BinPackOptions::new(rows(fields, context)?, fields.required("num_packing_bins")?);
    options = options.shuffle_bins(fields.or("shuffle_bins", true)?).seed(fields.or("seed", 0)?);
    if let Some(feature) = fields.optional::<String>("shuffle_bins_group_by_feature")? {
        options = options.shuffle_bins_group_by_feature(feature);
    }
    if let Some(most) = fields.optional("max_sequences_per_bin")? {
        options = options.max_sequences_per_bin(most);
    }
    Ok(options.over_long(over_long(fields)?))
}

/// `window_pack: {length: {tokens: 1024}, window: 1024}`.
fn window(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
    let mut options = WindowPackOptions::new(rows(fields, context)?).over_long(over_long(fields)?);
    if let Some(window) = fields.optional("window")? {
        options = options.window(window);
    }
    if let Some(most) = fields.optional("max_sequences_per_bin")? {
        options = options.max_sequences_per_bin(most);
    }
    Ok(ds.window_pack(options).boxed())
}

/// `concat_then_split_pack: {length: {tokens: 1024}}`.
fn concat_then_split(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
    let mut options = ConcatPackOptions::new(rows(fields, context)?)
        .split_full_length_features(fields.or("split_full_length_features", true)?)
        .bos_features(fields.or("bos_features", Vec::<String>::new())?);
    if fields.choice("positions", &["restart", "continue"])? == Some(1) {
        options = options.positions(Positions::Continue);
    }
    if fields.choice("bos_handling", &["do_nothing", "replace_first_token_with_bos"])? == Some(1) {
        options = options.bos_handling(BosHandling::ReplaceFirstTokenWithBos);
    }
    if let Some(token) = fields.optional("bos_token_id")? {
        options = options.bos_token_id(token);
    }
    Ok(ds.concat_then_split_pack(options).boxed())
}

/// `length_buckets: {features: [tokens], boundaries: [256, 512, 1024], batch: {tokens: 32768}}`.
fn length_buckets(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
    let features = context.columns_in(fields.required_node("features")?)?;
    let boundaries: Vec<usize> = fields.required("boundaries")?;
    let mut options = LengthBucketOptions::new(features, boundaries, batch_size(fields.required_node("batch")?)?);
    if let Some(node) = fields.node("padding") {
        for field in Fields::new(node)?.free_entries() {
            options = options.padding(&field.key, f64::decode(&field.value)?);
        }
    }
    if let Some(window) = fields.optional("window")? {
        options = options.window(window);
    }
    options = match remainder_or_pad(fields)? {
        Some(remainder) => options.remainder(remainder),
        None => options.pad_remainder(),
    };
    Ok(ds.length_buckets(options.drop_over_long(fields.or("drop_over_long", false)?)).boxed())
}

/// `batch: 32`, `batch: {per_bucket: [64, 32]}` or `batch: {tokens: 32768}`.
fn batch_size(node: &Node) -> Result<BatchSize> {
    let fields = Fields::with_short(node, Some("fixed"))?;
    let (fixed, sizes) = (fields.optional("fixed")?, fields.optional("per_bucket")?);
    let tokens = fields.optional("tokens")?;
    fields.finish()?;
    match (fixed, sizes, tokens) {
        (Some(size), None, None) => Ok(BatchSize::Fixed(size)),
        (None, Some(sizes), None) => Ok(BatchSize::PerBucket(sizes)),
        (None, None, Some(tokens)) => Ok(BatchSize::Tokens(tokens)),
        _ => Err(fields.error("needs one of `fixed`, `per_bucket` and `tokens`")),
    }
}

/// The features of a row: `length: {tokens: 1024}`, and what else is said of them.
fn rows(fields: &Fields<'_>, context: &Context) -> Result<RowSpec> {
    let lengths = Fields::new(fields.required_node("length")?)?;
    let mut features = Vec::new();
    for field in lengths.free_entries() {
        context.check_column(&field.value, &field.key)?;
        features.push((field.key.clone(), usize::decode(&field.value)?));
    }
    if features.is_empty() {
        return Err(lengths.error("needs a column and its length in a row: `length: {tokens: 1024}`"));
    }
    let mut rows = RowSpec::new(features);
    if let Some(node) = fields.node("padding") {
        for field in Fields::new(node)?.free_entries() {
            rows = rows.padding(&field.key, f64::decode(&field.value)?);
        }
    }
    if let Some(node) = fields.node("align") {
        for field in Fields::new(node)?.free_entries() {
            rows = rows.align(&field.key, usize::decode(&field.value)?);
        }
    }
    if let Some(node) = fields.node("meta_features") {
        rows = rows.meta_features(context.columns_in(node)?);
    }
    let names = fields.choice("names", &["grain", "maxtext"])?;
    Ok(rows.names(if names == Some(1) { OutputNames::MaxText } else { OutputNames::Grain }))
}

fn over_long(fields: &Fields<'_>) -> Result<OverLong> {
    let choice = fields.choice("over_long", &["error", "split", "drop"])?;
    Ok(choice.map_or_else(OverLong::default, |at| [OverLong::Error, OverLong::Split, OverLong::Drop][at]))
}
