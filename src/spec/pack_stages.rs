//! Packing in a pipeline file.

use super::arguments::{Arguments, Kind, arguments, words};
use super::build::{Behind, Elementwise, Of, Site};
use super::decode::Fields;
use super::entry::StageEntry;
use super::iter_stages::RemainderOrPad;
use super::node::Node;
use super::values::{Decode, Given, Map, Positive};
use crate::dataset::map::Mapped;
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset};
use crate::element::Element;
use crate::error::Result;
use crate::pack::{
    BatchSize, BinPackOptions, BosHandling, ConcatPackOptions, Labels, LengthBucketOptions, OutputNames, OverLong,
    PackedColumns, Packing, PaddingPositions, Positions, RowSpec, WindowPackOptions,
};

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::iter(
        "first_fit_pack",
        "Packs sequences into rows, each into the first of `num_packing_bins` that has room; Grain's rows.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(first_fit),
    )
    .new_columns(),
    StageEntry::iter(
        "best_fit_pack",
        "Packs sequences into rows, each into the fullest of `num_packing_bins` that has room; Grain's rows.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(best_fit),
    )
    .new_columns(),
    StageEntry::iter(
        "window_pack",
        "Packs sequences into rows that are filled from a window of them, almost completely.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(window),
    )
    .new_columns(),
    StageEntry::iter(
        "concat_then_split_pack",
        "Puts sequences one behind the other and cuts them into rows; Grain's rows.\n\n\
         DataError: A sequence is longer than a row, or an array differs from the first element's in type or shape.",
        &Behind(concat_then_split),
    )
    .new_columns(),
    StageEntry::iter(
        "length_buckets",
        "Makes batches of sequences of nearly one length, padded to the length of their bucket.\n\n\
         DataError: An element is longer than the last boundary.",
        &Behind(length_buckets),
    )
    .new_columns(),
    StageEntry::each(
        "packed_columns",
        "Adds labels, `cu_seqlens` and positions of padding to packed rows, or to batches of them.\n\n\
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
        /// The columns to pack, and the cells of a row that each has: `{tokens: 1024}`. A row has the columns, and of each
        /// `_segment_ids` (1, 2, …; 0 is padding) and `_positions` (from 0 in each segment).
        length: Given<Map<usize>>,
        /// Numbers for the cells without a token, by column; 0 by default.
        padding: Option<Map<f64>>,
        /// Columns without segment ids and positions. Of those that are not in `length` a row has the list of its sequences'
        /// values. Columns that are named neither here nor in `length` are left out, and a warning names them once.
        meta_features: Option<Given<Vec<String>>>,
        /// The names of the output columns: Grain's, or MaxText's `inputs`, `inputs_segmentation`, `inputs_position` and `targets`.
        names: OutputNames = "grain",
    }
}

arguments! {
    /// Rows in which sequences may be aligned.
    struct AlignArgs {
        /// Sequences of a column start at multiples of this number of cells; the gaps have segment id 0.
        align: Option<Map<usize>>,
    }
}

arguments! {
    struct BinArgs with RowArgs as rows, AlignArgs as align {
        /// Rows that are filled at a time: they come out together, when an element fits into none of them.
        num_packing_bins: Positive<usize>,
        /// Whether they come out in a random order. Without it the last rows of each group hold the most padding.
        shuffle_bins: bool = true,
        /// The seed of the order in which the rows of a group come out.
        seed: u64 = 0,
        /// A column by whose mean rows stay apart when they are shuffled: with the number of the epoch, epochs do.
        shuffle_bins_group_by_feature: Option<String>,
        /// The most sequences in a row; no limit by default.
        max_sequences_per_bin: Option<Positive<usize>>,
        /// What becomes of a sequence that is longer than a row: it is an error, is split, or is left out and counted.
        over_long: OverLong = "error",
    }
}

fn first_fit(ds: BoxIter<Element>, args: BinArgs, at: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.first_fit_pack(bins(args, at)?).boxed())
}

fn best_fit(ds: BoxIter<Element>, args: BinArgs, at: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.best_fit_pack(bins(args, at)?).boxed())
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
        /// What becomes of a sequence that is longer than a row: it is an error, is split, or is left out and counted.
        over_long: OverLong = "error",
        /// Sequences that are looked ahead, which are held in memory.
        window: Positive<usize> = 1024,
        /// The most sequences in a row; no limit by default.
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
        /// Whether a sequence that fills a row alone is cut like any other, or becomes a separate row.
        split_full_length_features: bool = true,
        /// The columns in which the first token is replaced.
        bos_features: Option<Vec<String>>,
        /// Start of the positions of a sequence that continues in the next row: at 0, or after the last position.
        positions: Positions = "restart",
        /// Whether the first token of every sequence, and of every piece that continues one, is replaced.
        bos_handling: BosHandling = "do_nothing",
        /// The token that takes its place.
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
        /// The columns to pad; the longest column of an element gives its length.
        features: Given<Vec<String>>,
        /// The lengths of the buckets, rising.
        boundaries: Vec<usize>,
        /// Elements in a batch: a number, `{per_bucket: [64, 32]}`, or `{tokens: 32768}` for the number with at most that many cells.
        batch: BatchSize,
        /// Numbers for the cells after the end of a sequence, by column; 0 by default.
        padding: Option<Map<f64>>,
        /// The most elements that are held. When the oldest would have to wait longer, its batch comes out short.
        window: Positive<usize> = 8192,
        /// What becomes of batches that are not full: they come out as they are, are left out, or are filled up with rows of
        /// padding.
        remainder: RemainderOrPad = "keep",
        /// Whether elements longer than the last boundary are left out and counted; else they are an error.
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
        /// The packed column. Its segment ids and positions are columns, too.
        feature: String = "tokens",
        /// The positions of padding: `zero`, as packing writes them; `restart`, from 0 in each run of padding, like a segment; or
        /// `continue`, after the segment before it.
        padding_positions: PaddingPositions = "zero",
        /// Adds `labels`, int64 and of the shape of the tokens. `unshifted`: the label of a token is the token itself, for models that
        /// shift, such as Hugging Face's. `shifted`: it is the next token. Padding has -100, and so has the first token of a segment
        /// if unshifted, the last if shifted.
        labels: Option<Labels>,
        /// Adds `cu_seqlens`, int32: the place in the flattened rows at which each segment begins, and the number of cells. Adds
        /// `max_seqlen`, int32: the length of the longest segment. A run of padding is a segment; with
        /// `padding_positions: continue`, padding belongs to the segment before it.
        cu_seqlens: bool = false,
        /// The fixed number of segments of `cu_seqlens`, some of length 0. By default there are no segments of length 0, and rows with
        /// different numbers of segments cannot be stacked.
        max_segments: Option<Positive<usize>>,
    }
}

fn packed_columns(args: PackedColumnsArgs, _: &Site<'_>) -> Result<PackedColumns> {
    let PackedColumnsArgs { feature, padding_positions, labels, cu_seqlens, max_segments } = args;
    let mut columns = PackedColumns::new(feature).padding_positions(padding_positions).cu_seqlens(cu_seqlens);
    if let Some(labels) = labels {
        columns = columns.labels(labels);
    }
    if let Some(Positive(most)) = max_segments {
        columns = columns.max_segments(most);
    }
    Ok(columns)
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
        /// Elements of a batch in every bucket.
        fixed: Option<Positive<usize>>,
        /// A number for each bucket.
        per_bucket: Option<Vec<usize>>,
        /// Cells of a batch, padding included; a batch has at least 1 element.
        tokens: Option<Positive<usize>>,
    }
}

impl Decode for BatchSize {
    const KIND: Kind = Kind::Section(&BatchSizeArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let fields = Fields::of(node, &BatchSizeArgs::ABOUT)?;
        let BatchSizeArgs { fixed, per_bucket, tokens } = BatchSizeArgs::read(&fields)?;
        fields.finish()?;
        match (fixed, per_bucket, tokens) {
            (Some(Positive(size)), None, None) => Ok(Self::Fixed(size)),
            (None, Some(sizes), None) => Ok(Self::PerBucket(sizes)),
            (None, None, Some(Positive(tokens))) => Ok(Self::Tokens(tokens)),
            _ => Err(fields.error("needs one of `fixed`, `per_bucket` and `tokens`")),
        }
    }
}

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
