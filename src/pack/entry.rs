//! Packing in a pipeline file.

use super::{
    BatchSize, BinPackOptions, BosHandling, ConcatPackOptions, Labels, LengthBucketOptions, OutputNames, OverLong,
    PackedColumns, Packing, PaddingPositions, Positions, RowSpec, TrainerNames, WindowPackOptions,
};
use crate::dataset::entry::build::Elementwise;
use crate::dataset::entry::prelude::*;
use crate::dataset::map::Mapped;
use crate::dataset::remainder::RemainderOrPad;
use crate::declare::arguments::{Kind, read};
use crate::declare::decode::Fields;
use crate::declare::values::{Decode, Map, decode_as};

pub(crate) const STAGES: &[StageEntry] = &[
    StageEntry::iter(
        "first_fit_pack",
        "Packs each sequence into the first of `num_packing_bins` rows that has room. The result equals Grain's.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(|ds: BoxIter<Element>, args: BinArgs, at| Ok(ds.first_fit_pack(bins(args, at)?).boxed())),
    )
    .new_columns(),
    StageEntry::iter(
        "best_fit_pack",
        "Packs each sequence into the fullest of `num_packing_bins` rows that has room. The result equals Grain's.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(|ds: BoxIter<Element>, args: BinArgs, at| Ok(ds.best_fit_pack(bins(args, at)?).boxed())),
    )
    .new_columns(),
    StageEntry::iter(
        "window_pack",
        "Packs sequences into rows, choosing from a window of sequences to leave almost no padding.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(window),
    )
    .new_columns(),
    StageEntry::iter(
        "concat_then_split_pack",
        "Concatenates sequences and splits them into rows. The result equals Grain's.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(concat_then_split),
    )
    .new_columns(),
    StageEntry::iter(
        "length_buckets",
        "Batches sequences of similar length, padded to the length of their bucket.\n\n\
         DataError: An element is longer than the last boundary.",
        &Behind(length_buckets),
    )
    .new_columns(),
    StageEntry::each(
        "packed_columns",
        "Adds labels, `cu_seqlens` and positions of padding to packed rows or batches, by the names of a trainer if asked.\n\n\
         Use it before or after `batch`. Before `batch`, `cu_seqlens` needs `max_segments` and counts within each row; \
         `batch` stacks it to [B, max_segments + 1]. After `batch`, `cu_seqlens` counts over the B·T cells of the batch, \
         as `flash_attn_varlen_func` expects. With a `part`, use it before `batch`.\n\n\
         ConfigError: An argument is invalid, or no argument is given.\n\n\
         DataError: There are no segment ids, a column has the name of an added column, or a row has more segments than `max_segments`.",
        &Of(packed_columns),
    )
    .new_columns(),
];

words!(OverLong { "error" => OverLong::Error, "split" => OverLong::Split, "drop" => OverLong::Drop });
words!(OutputNames { "grain" => OutputNames::Grain, "maxtext" => OutputNames::MaxText });
words!(TrainerNames {
    "grain" => TrainerNames::Grain,
    "hf" => TrainerNames::HuggingFace,
    "torchtitan" => TrainerNames::Torchtitan,
    "thd" => TrainerNames::Thd,
});
words!(Positions { "restart" => Positions::Restart, "continue" => Positions::Continue });
words!(PaddingPositions {
    "zero" => PaddingPositions::Zero,
    "restart" => PaddingPositions::Restart,
    "continue" => PaddingPositions::Continue,
});
words!(Labels { "unshifted" => Labels::Unshifted, "shifted" => Labels::Shifted });
words!(BosHandling {
    "do_nothing" => BosHandling::DoNothing,
    "replace_first_token_with_bos" => BosHandling::ReplaceFirstTokenWithBos,
});

arguments! {
    /// The rows of every packing stage.
    struct RowArgs {
        /// Columns to pack, each with its number of cells in a row: `{tokens: 1024}`. A row contains each column, its `_segment_ids` (1, 2,
        /// …; 0 is padding) and its `_positions` (from 0 in each segment).
        length: Given<Map<usize>>,
        /// Values of padding cells, by column. By default, 0.
        padding: Option<Map<f64>>,
        /// Columns without segment ids and positions. If a column is not in `length`, a row contains a list of the values of its sequences.
        /// Columns in neither `meta_features` nor `length` are dropped, with a single warning.
        meta_features: Option<Given<Vec<String>>>,
        /// Names of the output columns: `grain`, or `maxtext` for `inputs`, `inputs_segmentation`, `inputs_position` and `targets`.
        names: OutputNames = "grain",
    }
}

arguments! {
    /// Rows in which sequences may be aligned.
    struct AlignArgs {
        /// Alignment in cells, by column. Sequences start at multiples of this number, and gaps have segment id 0.
        align: Option<Map<usize>>,
    }
}

arguments! {
    struct BinArgs with RowArgs as rows, AlignArgs as align {
        /// Number of rows to fill at a time. These rows form a group, which is delivered when an element fits into none of them.
        num_packing_bins: Positive<usize>,
        /// Whether the rows of a group are delivered in random order. If false, the last rows of each group have the most padding.
        shuffle_bins: bool = true,
        /// Seed for the order of rows within a group.
        seed: u64 = 0,
        /// Column whose mean groups the rows: only rows with equal means are shuffled together. With a column of epoch numbers, epochs stay
        /// separate.
        shuffle_bins_group_by_feature: Option<String>,
        /// Maximum number of sequences in a row. By default, no limit.
        max_sequences_per_bin: Option<Positive<usize>>,
        /// Policy for sequences longer than a row: `error` rejects the sequence, `split` splits it into pieces, `drop` drops and counts it.
        over_long: OverLong = "error",
    }
}

fn bins(args: BinArgs, at: &Site<'_>) -> Result<BinPackOptions> {
    let rows = rows(args.rows, args.align, at)?;
    let mut options = BinPackOptions::new(rows, args.num_packing_bins.0)
        .shuffle_bins(args.shuffle_bins)
        .seed(args.seed)
        .over_long(args.over_long);
    if let Some(feature) = args.shuffle_bins_group_by_feature {
        options = options.shuffle_bins_group_by_feature(feature);
    }
    if let Some(Positive(most)) = args.max_sequences_per_bin {
        options = options.max_sequences_per_bin(most);
    }
    Ok(options)
}

arguments! {
    struct WindowArgs with RowArgs as rows, AlignArgs as align {
        /// Policy for sequences longer than a row: `error` rejects the sequence, `split` splits it into pieces, `drop` drops and counts it.
        over_long: OverLong = "error",
        /// Number of sequences to look ahead, which are held in memory.
        window: Positive<usize> = 1024,
        /// Maximum number of sequences in a row. By default, no limit.
        max_sequences_per_bin: Option<Positive<usize>>,
    }
}

fn window(ds: BoxIter<Element>, args: WindowArgs, at: &Site<'_>) -> Result<BoxIter<Element>> {
    let rows = rows(args.rows, args.align, at)?;
    let mut options = WindowPackOptions::new(rows).over_long(args.over_long).window(args.window.0);
    if let Some(Positive(most)) = args.max_sequences_per_bin {
        options = options.max_sequences_per_bin(most);
    }
    Ok(ds.window_pack(options).boxed())
}

arguments! {
    struct ConcatArgs with RowArgs as rows {
        /// Whether a sequence that fills a row alone is split like any other. If false, it becomes a separate row.
        split_full_length_features: bool = true,
        /// Columns in which first tokens are replaced.
        bos_features: Option<Vec<String>>,
        /// Positions of a sequence that continues in the next row: `restart` begins again at 0, `continue` follows the last position.
        positions: Positions = "restart",
        /// Policy for first tokens: `do_nothing` keeps them, `replace_first_token_with_bos` replaces them with `bos_token_id`. Pieces that
        /// continue a sequence in the next row have first tokens, too.
        bos_handling: BosHandling = "do_nothing",
        /// Token that replaces first tokens.
        bos_token_id: Option<i64>,
    }
}

fn concat_then_split(ds: BoxIter<Element>, args: ConcatArgs, at: &Site<'_>) -> Result<BoxIter<Element>> {
    let rows = rows(args.rows, at.undescribed()?, at)?;
    let mut options = ConcatPackOptions::new(rows)
        .split_full_length_features(args.split_full_length_features)
        .bos_features(args.bos_features.unwrap_or_default())
        .positions(args.positions)
        .bos_handling(args.bos_handling);
    if let Some(token) = args.bos_token_id {
        options = options.bos_token_id(token);
    }
    Ok(ds.concat_then_split_pack(options).boxed())
}

arguments! {
    struct BucketArgs {
        /// Columns to pad. The length of an element is the length of its longest column.
        features: Given<Vec<String>>,
        /// Lengths of the buckets, in ascending order.
        boundaries: Vec<usize>,
        /// Number of elements in a batch: a number, `{per_bucket: [64, 32]}` for each bucket, or `{tokens: 32768}` to limit the cells of a
        /// batch.
        batch: BatchSize,
        /// Values of padding cells, by column. By default, 0.
        padding: Option<Map<f64>>,
        /// Maximum number of elements to hold. If the window is full, the batch of the oldest element is delivered short.
        window: Positive<usize> = 8192,
        /// Policy for batches that are not full: `keep` delivers a smaller batch, `drop` drops the elements, `pad` fills the batch with
        /// rows of padding.
        remainder: RemainderOrPad = "keep",
        /// Whether elements longer than the last boundary are dropped and counted. If false, they are an error.
        drop_over_long: bool = false,
    }
}

fn length_buckets(ds: BoxIter<Element>, args: BucketArgs, at: &Site<'_>) -> Result<BoxIter<Element>> {
    let features = at.columns_in(&args.features)?;
    let mut options = LengthBucketOptions::new(features, args.boundaries, args.batch)
        .window(args.window.0)
        .drop_over_long(args.drop_over_long);
    for (feature, value) in args.padding.into_iter().flat_map(|map| map.0) {
        options = options.padding(feature, value);
    }
    options = match args.remainder {
        RemainderOrPad::Left(remainder) => options.remainder(remainder),
        RemainderOrPad::Padded => options.pad_remainder(),
    };
    Ok(ds.length_buckets(options).boxed())
}

arguments! {
    struct PackedColumnsArgs(feature) {
        /// Packed column. Its segment ids and positions must be columns, too.
        feature: String = "tokens",
        /// Positions of padding: `zero`, `restart` or `continue`. `zero` sets all of them to 0, as packing does. `restart` counts from 0 in
        /// each run of padding. `continue` counts on after the preceding segment.
        padding_positions: PaddingPositions = "zero",
        /// Labels to add as the column `labels` (int64, in the shape of the tokens). With `unshifted`, the label of a token is the token
        /// itself, for models that shift labels, such as Hugging Face's. With `shifted`, the label is the next token. The label is -100 in
        /// padding, and at the first (`unshifted`) or last (`shifted`) token of a segment. By default, no labels are added.
        labels: Option<Labels>,
        /// Whether to add the columns `cu_seqlens` and `max_seqlen` (int32). `cu_seqlens` contains the start of each segment in the
        /// flattened rows, then the number of cells. `max_seqlen` is the length of the longest segment. A run of padding is a segment; with
        /// `padding_positions: continue`, padding belongs to the preceding segment.
        cu_seqlens: bool = false,
        /// Fixed number of segments in `cu_seqlens`, filled up with segments of length 0. By default, no segments are added, and rows with
        /// different numbers of segments cannot be stacked.
        max_segments: Option<Positive<usize>>,
        /// Names, dtypes and shapes of a trainer, after `batch`: `hf` (Hugging Face's Trainer, TRL), `torchtitan` or `thd` (Megatron Core,
        /// Transformer Engine). The rows become a single sequence, with the labels and segment bounds that the trainer expects.
        names: TrainerNames = "grain",
    }
}

fn packed_columns(args: PackedColumnsArgs, _: &Site<'_>) -> Result<PackedColumns> {
    let PackedColumnsArgs { feature, padding_positions, labels, cu_seqlens, max_segments, names } = args;
    let mut columns = PackedColumns::new(feature).padding_positions(padding_positions).cu_seqlens(cu_seqlens);
    if let Some(labels) = labels {
        columns = columns.labels(labels);
    }
    if let Some(Positive(most)) = max_segments {
        columns = columns.max_segments(most);
    }
    Ok(columns.names(names))
}

impl Elementwise for PackedColumns {
    fn map(self, ds: BoxMap<Element>) -> BoxMap<Element> {
        Mapped::new(ds, |_| self).boxed()
    }

    fn iter(self, ds: BoxIter<Element>) -> BoxIter<Element> {
        ds.packed_columns(self).boxed()
    }
}

arguments! {
    struct BatchSizeArgs(fixed) {
        /// Number of elements in a batch, for all buckets.
        fixed: Option<Positive<usize>>,
        /// Number of elements in a batch, for each bucket.
        per_bucket: Option<Vec<usize>>,
        /// Maximum number of cells in a batch, including padding. A batch has at least 1 element.
        tokens: Option<Positive<usize>>,
    }
}

decode_as!(BatchSize, Kind::Section(&BatchSizeArgs::ABOUT), |node| {
    let BatchSizeArgs { fixed, per_bucket, tokens } = read(node)?;
    match (fixed, per_bucket, tokens) {
        (Some(Positive(size)), None, None) => Ok(Self::Fixed(size)),
        (None, Some(sizes), None) => Ok(Self::PerBucket(sizes)),
        (None, None, Some(Positive(tokens))) => Ok(Self::Tokens(tokens)),
        _ => Err(node.error("needs one of `fixed`, `per_bucket` and `tokens`")),
    }
});

/// The features of a row, and their options. Stages that cannot align refuse `align`.
fn rows(args: RowArgs, AlignArgs { align }: AlignArgs, at: &Site<'_>) -> Result<RowSpec> {
    let RowArgs { length, padding, meta_features, names } = args;
    let lengths = Fields::new(&length)?;
    let mut features = Vec::new();
    for field in lengths.free_entries() {
        at.check_column(&field.value, &field.key)?;
        features.push((field.key.clone(), usize::decode(&field.value)?));
    }
    if features.is_empty() {
        return Err(lengths.error("needs a column and its length in a row: `length: {tokens: 1024}`"));
    }
    let mut rows = RowSpec::new(features).names(names);
    for (feature, value) in padding.into_iter().flat_map(|map| map.0) {
        rows = rows.padding(feature, value);
    }
    for (feature, cells) in align.into_iter().flat_map(|map| map.0) {
        rows = rows.align(feature, cells);
    }
    match meta_features {
        Some(features) => Ok(rows.meta_features(at.columns_in(&features)?)),
        None => Ok(rows),
    }
}
