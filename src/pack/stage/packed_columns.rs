//! Columns of packed rows for attention kernels and losses.

use super::trainer_names::TrainerNames;
use crate::dataset::Facts;
use crate::dataset::map::Each;
use crate::element::{Array, DType, Element, Name, Value, cast};
use crate::error::{Error, Result};

/// Label that losses ignore: the default `ignore_index` of PyTorch.
const IGNORED: i64 = -100;

/// Positions of padding cells in packed rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PaddingPositions {
    /// All padding has position 0, as written by packing.
    #[default]
    Zero,
    /// Each run of padding counts from 0, like a segment.
    Restart,
    /// Padding counts on after the segment before it.
    Continue,
}

display_as!(PaddingPositions, |self, f| {
    f.write_str(match self {
        Self::Zero => "zero",
        Self::Restart => "restart",
        Self::Continue => "continue",
    })
});

/// Shift of labels relative to tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Labels {
    /// The label of a token is the token itself, for models that shift labels, such as Hugging Face's.
    Unshifted,
    /// The label of a token is the next token of its segment, for losses that compare position by position.
    Shifted,
}

display_as!(Labels, |self, f| {
    f.write_str(match self {
        Self::Unshifted => "unshifted",
        Self::Shifted => "shifted",
    })
});

/// Options of [`packed_columns`](super::Packing::packed_columns): the columns to derive from segment ids.
///
/// ```
/// use gristmill::pack::{Labels, PackedColumns, PaddingPositions};
/// use gristmill::{Array, Element, dataset::map::{Mapped, Source}, prelude::*};
///
/// # fn main() -> gristmill::Result<()> {
/// let row = Element::new()
///     .with("tokens", Array::from_vec(vec![7, 8, 9, 5, 6, 0, 0]))
///     .with("tokens_segment_ids", Array::from_vec(vec![1, 1, 1, 2, 2, 0, 0]))
///     .with("tokens_positions", Array::from_vec(vec![0, 1, 2, 0, 1, 0, 0]));
/// let columns = PackedColumns::new("tokens").padding_positions(PaddingPositions::Restart).labels(Labels::Shifted).cu_seqlens(true);
/// // A stage of a `MapDataset`; a stream has the method `packed_columns`.
/// let rows = Mapped::new(Source::new(vec![row]), |_| columns).collect()?;
/// assert_eq!(rows[0].array("tokens_positions")?.as_slice::<i32>()?, [0, 1, 2, 0, 1, 0, 1]);
/// assert_eq!(rows[0].array("labels")?.as_slice::<i64>()?, [8, 9, -100, 6, -100, -100, -100]);
/// assert_eq!(rows[0].array("cu_seqlens")?.as_slice::<i32>()?, [0, 3, 5, 7]);
/// assert_eq!(rows[0].array("max_seqlen")?.as_i64(), Some(3));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedColumns {
    feature: Name,
    padding_positions: PaddingPositions,
    labels: Option<Labels>,
    cu_seqlens: bool,
    max_segments: Option<usize>,
    names: TrainerNames,
}

impl PackedColumns {
    /// Creates options for the packed feature `feature`. At least one of `padding_positions`, `labels` and `cu_seqlens` must be set.
    pub fn new(feature: impl AsRef<str>) -> Self {
        Self {
            feature: Name::new(feature),
            padding_positions: PaddingPositions::Zero,
            labels: None,
            cu_seqlens: false,
            max_segments: None,
            names: TrainerNames::Grain,
        }
    }

    setters! {
        /// Sets the positions of padding in the column of positions.
        #[must_use]
        pub padding_positions: PaddingPositions;

        /// Adds `labels`, `i64`, in the shape of the tokens.
        ///
        /// Labels are -100 for padding, and for tokens whose label would be outside their segment:
        /// the first token of each segment if unshifted, the last if shifted.
        #[must_use]
        pub labels(labels: Labels) => labels = Some(labels);

        /// Adds `cu_seqlens` and `max_seqlen`.
        ///
        /// `cu_seqlens`, `[segments + 1]` of `i32`, contains the start of each segment in the flattened rows, then the
        /// number of cells. `max_seqlen`, `[]` of `i32`, is the length of the longest segment.
        ///
        /// Each run of padding is a segment. With [`PaddingPositions::Continue`] it belongs to the segment before it.
        /// No segment crosses rows. In a batch, starts are counted over all rows of the batch; in a row, from its
        /// beginning.
        #[must_use]
        pub cu_seqlens: bool;

        /// Sets the shape of `cu_seqlens` to `[most + 1]`, filled up with the number of cells, as segments of length 0.
        #[must_use]
        pub max_segments(most: usize) => max_segments = Some(most);
    }

    /// Gives all columns the names, dtypes and shapes of a trainer, with the labels and bounds that it expects. Removes the segment ids.
    #[must_use]
    pub fn names(self, names: TrainerNames) -> Self {
        let labels = self.labels.or(names.labels());
        Self { labels, cu_seqlens: self.cu_seqlens || names.has_bounds(), names, ..self }
    }

    /// Returns the positions with new positions for padding.
    fn positions(&self, rows: &Rows<'_>, name: &str, positions: &Array) -> Result<Array> {
        let given = rows.numbers(DType::I32, name, positions)?;
        let mut out = Array::builder(DType::I32, positions.shape())?;
        let places = out.as_mut_slice::<i32>();
        places.copy_from_slice(given.as_slice()?);
        let mut next = 0i32;
        for run in rows.runs() {
            let place = &mut places[run.start..run.start + run.len];
            if run.is_padding {
                let goes_on = self.padding_positions == PaddingPositions::Continue && !run.is_first;
                let from = if goes_on { next } else { 0 };
                place.iter_mut().enumerate().for_each(|(at, place)| *place = from.wrapping_add(at as i32));
            }
            next = place.last().map_or(0, |last| last.wrapping_add(1));
        }
        Ok(out.freeze())
    }

    /// Returns the starts of the segments, followed by the number of cells, and the length of the longest segment.
    fn bounds(&self, rows: &Rows<'_>) -> Result<(Array, Array)> {
        let cells = rows.ids.len();
        let end = i32::try_from(cells)
            .map_err(|_| Error::data(format!("{cells} cells, but `cu_seqlens` counts to {} at most", i32::MAX)))?;
        let joins = |run: &Run| run.is_padding && self.padding_positions == PaddingPositions::Continue && !run.is_first;
        let starts = rows.runs().filter(|run| !joins(run)).map(|run| run.start as i32);
        let bounds: Vec<i32> = starts.chain([end]).collect();
        let segments = bounds.len() - 1;
        let room = self.max_segments.unwrap_or(segments);
        if segments > room {
            let help = "raise `max_segments`, or put fewer sequences into a row by `max_sequences_per_bin`";
            return Err(Error::data(format!("{segments} segments, but `max_segments` is {room}")).help(help));
        }
        let longest = bounds.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let mut out = Array::builder(DType::I32, &[room.saturating_add(1)])?;
        let places = out.as_mut_slice::<i32>();
        places[..bounds.len()].copy_from_slice(&bounds);
        places[bounds.len()..].fill(end);
        Ok((out.freeze(), Array::scalar(longest)))
    }

    fn make(&self, mut element: Element) -> Result<Element> {
        let [ids_name, positions_name] = names(&self.feature, &element)?;
        let shape = element.array(&ids_name)?.shape().to_vec();
        let ids = whole(DType::I32, &ids_name, element.array(&ids_name)?)?;
        let rows = Rows { ids: ids.as_slice()?, shape: &shape };
        let mut made = Vec::new();
        if self.padding_positions != PaddingPositions::Zero {
            let positions = self.positions(&rows, &positions_name, element.array(&positions_name)?)?;
            element.insert(&positions_name, positions);
        }
        if let Some(shift) = self.labels {
            made.push(("labels", labels(&rows, shift, &self.feature, element.array(&self.feature)?)?));
        }
        if self.cu_seqlens {
            let (bounds, longest) = self.bounds(&rows)?;
            made.extend([("cu_seqlens", bounds), ("max_seqlen", longest)]);
        }
        add(&mut element, made)?;
        self.names.rename(element, &self.feature, &[ids_name, positions_name])
    }
}

/// Returns the labels of the tokens, shifted only within their segments.
fn labels(rows: &Rows<'_>, shift: Labels, name: &str, tokens: &Array) -> Result<Array> {
    let tokens = rows.numbers(DType::I64, name, tokens)?;
    let tokens = tokens.as_slice::<i64>()?;
    let mut out = Array::builder(DType::I64, rows.shape)?;
    let labels = out.as_mut_slice::<i64>();
    labels.fill(IGNORED);
    for run in rows.runs().filter(|run| !run.is_padding && run.len > 1) {
        let (first, rest) = (run.start, run.start + 1..run.start + run.len);
        match shift {
            Labels::Unshifted => labels[rest.clone()].copy_from_slice(&tokens[rest]),
            Labels::Shifted => labels[first..first + run.len - 1].copy_from_slice(&tokens[rest]),
        }
    }
    Ok(out.freeze())
}

/// Returns the names of the segment ids and the positions of a feature.
fn names(feature: &str, element: &Element) -> Result<[String; 2]> {
    let of = |names: super::OutputNames| {
        let [_, ids, positions] = names.suffixes();
        [format!("{feature}{ids}"), format!("{feature}{positions}")]
    };
    let known = [of(super::OutputNames::Grain), of(super::OutputNames::MaxText)];
    let lacking = || {
        Error::data(format!("there is no column `{}`, which packing makes", known[0][0]))
            .help("put `packed_columns` after a packing stage, and name a packed column as its `feature`")
    };
    known.iter().find(|[ids, _]| element.get(ids).is_some()).cloned().ok_or_else(lacking)
}

/// Adds columns.
///
/// # Errors
/// `Data` if there is a column of such a name.
pub(super) fn add(element: &mut Element, columns: Vec<(&str, Array)>) -> Result<()> {
    for (name, array) in columns {
        if element.insert(name, Value::Array(array)).is_some() {
            return Err(Error::data(format!("there is a column `{name}` already")).help("rename it before this stage"));
        }
    }
    Ok(())
}

/// Converts the whole numbers of an array to `dtype`.
///
/// # Errors
/// `Data` if the array has other numbers, or numbers that do not fit.
pub(super) fn whole(dtype: DType, name: &str, array: &Array) -> Result<Array> {
    let whole = array.dtype().whole_reader().and_then(|_| cast(array, dtype));
    whole.ok_or_else(|| Error::data(format!("column `{name}` is {array:?}, which does not fit {dtype}")))
}

/// Segment ids of a single row or several rows.
struct Rows<'a> {
    ids: &'a [i32],
    shape: &'a [usize],
}

/// Adjacent cells of a row with equal segment ids.
struct Run {
    start: usize,
    len: usize,
    is_padding: bool,
    /// Whether this run is at the start of its row.
    is_first: bool,
}

impl Rows<'_> {
    fn runs(&self) -> impl Iterator<Item = Run> {
        let length = self.shape.last().copied().unwrap_or(1).max(1);
        let rows = self.ids.chunks(length).enumerate();
        rows.flat_map(move |(row, ids)| {
            ids.chunk_by(|a, b| a == b).scan(0, move |at, ids| {
                let start = *at;
                *at += ids.len();
                let (is_padding, is_first) = (ids[0] == 0, start == 0);
                Some(Run { start: row * length + start, len: ids.len(), is_padding, is_first })
            })
        })
    }

    /// Returns the numbers of a column that has the shape of the segment ids.
    ///
    /// # Errors
    /// `Data` if the shape differs, or the numbers do not fit `dtype`.
    fn numbers(&self, dtype: DType, name: &str, array: &Array) -> Result<Array> {
        if array.shape() != self.shape {
            let shape = self.shape;
            return Err(Error::data(format!(
                "column `{name}` is {array:?}, and its segment ids have the shape {shape:?}"
            )));
        }
        whole(dtype, name, array)
    }
}

impl Facts for PackedColumns {
    fn name(&self) -> &'static str {
        "packed_columns"
    }
    fn params(&self) -> String {
        let mut text = self.feature.to_string();
        if self.padding_positions != PaddingPositions::Zero {
            text += &format!(", padding_positions={}", self.padding_positions);
        }
        if let Some(labels) = self.labels {
            text += &format!(", labels={labels}");
        }
        if self.cu_seqlens {
            text += ", cu_seqlens=true";
        }
        if let Some(most) = self.max_segments {
            text += &format!(", max_segments={most}");
        }
        if self.names != TrainerNames::Grain {
            text += &format!(", names={}", self.names);
        }
        text
    }
    fn is_native(&self) -> bool {
        true
    }
    fn check(&self) -> Result<()> {
        if self.padding_positions == PaddingPositions::Zero && self.labels.is_none() && !self.cu_seqlens {
            return Err(
                Error::config("it changes no column").help("give `padding_positions`, `labels` or `cu_seqlens`")
            );
        }
        match self.max_segments {
            Some(_) if !self.cu_seqlens => {
                Err(Error::config("`max_segments` is the length of `cu_seqlens`, which is not enabled"))
            }
            Some(most) if most == 0 || most >= i32::MAX as usize => {
                Err(Error::config(format!("`max_segments` is {most}, and must be in 1..{}", i32::MAX)))
            }
            _ => Ok(()),
        }
    }
}

impl Each<Element> for PackedColumns {
    type Out = Element;

    fn apply(&self, _: u64, element: Element) -> Result<Option<Element>> {
        self.make(element).map(Some)
    }

    fn again(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Source;
    use crate::pack::{ConcatPackOptions, OutputNames, Packing, RowSpec, WindowPackOptions};
    use crate::{IterDataset, IterDatasetExt, MapDatasetExt};

    /// Returns two rows of 8 cells.
    ///
    /// The first has segments of 3 and 2, then padding of 3. The second has padding of 2, then segments of 1, 2 and 3.
    fn batch() -> Element {
        let of = |rows: [[i32; 8]; 2]| {
            let mut array = Array::builder(DType::I32, &[2, 8]).unwrap();
            array.as_mut_slice().copy_from_slice(rows.as_flattened());
            array.freeze()
        };
        Element::new()
            .with("tokens", of([[11, 12, 13, 21, 22, 0, 0, 0], [0, 0, 31, 41, 42, 51, 52, 53]]))
            .with("tokens_segment_ids", of([[1, 1, 1, 2, 2, 0, 0, 0], [0, 0, 1, 2, 2, 3, 3, 3]]))
            .with("tokens_positions", of([[0, 1, 2, 0, 1, 0, 0, 0], [0, 0, 5, 0, 1, 0, 1, 2]]))
    }

    fn made(columns: &PackedColumns, element: Element) -> Element {
        columns.check().unwrap();
        columns.apply(0, element).unwrap().unwrap()
    }

    fn i32s(element: &Element, name: &str) -> Vec<i32> {
        element.array(name).unwrap().as_slice().unwrap().to_vec()
    }

    #[test]
    fn padding_counts_from_0_or_on() {
        let positions =
            |kind| i32s(&made(&PackedColumns::new("tokens").padding_positions(kind), batch()), "tokens_positions");
        assert_eq!(positions(PaddingPositions::Restart), [0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 5, 0, 1, 0, 1, 2]);
        assert_eq!(positions(PaddingPositions::Continue), [0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 5, 0, 1, 0, 1, 2]);
    }

    #[test]
    fn labels_stay_in_their_segment() {
        let labels = |shift| {
            let element = made(&PackedColumns::new("tokens").labels(shift), batch());
            assert_eq!(element.array("labels").unwrap().shape(), [2, 8]);
            element.array("labels").unwrap().as_slice::<i64>().unwrap().to_vec()
        };
        let (no, rest) = (-100, [-100; 3]);
        let unshifted = [&[no, 12, 13, no, 22], &rest[..], &[no, no, no, no, 42, no, 52, 53]].concat();
        assert_eq!(labels(Labels::Unshifted), unshifted);
        let shifted = [&[12, 13, no, 22, no], &rest[..], &[no, no, no, 42, no, 52, 53, no]].concat();
        assert_eq!(labels(Labels::Shifted), shifted);
    }

    #[test]
    fn cu_seqlens_of_a_batch_count_over_its_rows() {
        let columns = PackedColumns::new("tokens").cu_seqlens(true);
        let exact = made(&columns, batch());
        assert_eq!(i32s(&exact, "cu_seqlens"), [0, 3, 5, 8, 10, 11, 13, 16]);
        assert_eq!(exact.array("max_seqlen").unwrap().as_i64(), Some(3));
        let joined = made(&columns.clone().padding_positions(PaddingPositions::Continue), batch());
        assert_eq!(i32s(&joined, "cu_seqlens"), [0, 3, 8, 10, 11, 13, 16]);
        assert_eq!(joined.array("max_seqlen").unwrap().as_i64(), Some(5));
        let filled = made(&columns.clone().max_segments(9), batch());
        assert_eq!(i32s(&filled, "cu_seqlens"), [0, 3, 5, 8, 10, 11, 13, 16, 16, 16]);
        let error = columns.max_segments(6).apply(0, batch()).unwrap_err();
        assert_eq!(error.message(), "7 segments, but `max_segments` is 6");
    }

    #[test]
    fn tokens_of_any_whole_type_have_labels_and_names_may_be_those_of_maxtext() {
        let row = Element::new()
            .with("inputs", Array::from_vec(vec![60_000u16, 2, 0]))
            .with("inputs_segmentation", Array::from_vec(vec![1, 1, 0]))
            .with("inputs_position", Array::from_vec(vec![0, 1, 0]));
        let columns =
            PackedColumns::new("inputs").labels(Labels::Unshifted).padding_positions(PaddingPositions::Continue);
        let row = made(&columns, row);
        assert_eq!(row.array("labels").unwrap().as_slice::<i64>().unwrap(), [-100, 2, -100]);
        assert_eq!(i32s(&row, "inputs_position"), [0, 1, 2]);
        assert_eq!(OutputNames::MaxText.suffixes()[1], "_segmentation");
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let columns = PackedColumns::new("tokens").labels(Labels::Shifted);
        let error = columns.apply(0, Element::new().with("tokens", Array::from_vec(vec![1]))).unwrap_err();
        assert_eq!(error.message(), "there is no column `tokens_segment_ids`, which packing makes");
        let error = columns.apply(0, batch().with("labels", Array::from_vec(vec![1]))).unwrap_err();
        assert_eq!(error.message(), "there is a column `labels` already");
        let error = columns.apply(0, batch().with("tokens", Array::from_vec(vec![1.5f32; 16]))).unwrap_err();
        assert!(error.message().contains("its segment ids have the shape [2, 8]"), "{error}");
        let floats = Array::new(DType::F32, &[2, 8], Array::from_vec(vec![1.5f32; 16]).buffer().clone()).unwrap();
        let error = columns.apply(0, batch().with("tokens", floats)).unwrap_err();
        assert_eq!(error.message(), "column `tokens` is float32[2, 8], which does not fit int64");
        let nothing = PackedColumns::new("tokens");
        for bad in [nothing.clone(), nothing.clone().labels(Labels::Shifted).max_segments(3)] {
            assert_eq!(bad.check().unwrap_err().kind(), crate::ErrorKind::Config);
        }
        assert!(nothing.clone().cu_seqlens(true).max_segments(0).check().is_err());
        let empty = Element::new()
            .with("tokens", Array::from_vec(Vec::<i32>::new()))
            .with("tokens_segment_ids", Array::from_vec(Vec::<i32>::new()));
        let empty = made(&nothing.cu_seqlens(true).labels(Labels::Shifted), empty);
        assert_eq!((i32s(&empty, "cu_seqlens"), empty.array("max_seqlen").unwrap().as_i64()), (vec![0], Some(0)));
    }

    fn sequences() -> impl IterDataset<Item = Element> {
        let of = |n: i32| Element::new().with("tokens", Array::from_vec((0..n % 7 + 1).map(|k| 10 * n + k).collect()));
        Source::new((1..40).map(of).collect::<Vec<_>>()).to_iter()
    }

    /// The columns are equal if made before `batch` or after it.
    #[test]
    fn it_stands_before_batch_or_after_it() {
        let rows = || RowSpec::new([("tokens", 16)]);
        let columns =
            PackedColumns::new("tokens").labels(Labels::Unshifted).padding_positions(PaddingPositions::Restart);
        let before = sequences().window_pack(WindowPackOptions::new(rows())).packed_columns(columns.clone()).batch(3);
        let after = sequences().window_pack(WindowPackOptions::new(rows())).batch(3).packed_columns(columns.clone());
        assert_eq!(before.collect().unwrap(), after.collect().unwrap());
        let counted = columns.cu_seqlens(true).max_segments(8);
        laws::check(
            &sequences().concat_then_split_pack(ConcatPackOptions::new(rows())).packed_columns(counted.clone()),
        );
        let batches = sequences().window_pack(WindowPackOptions::new(rows())).packed_columns(counted).batch(3);
        let first = &laws::check(&batches)[0];
        assert_eq!(first.array("cu_seqlens").unwrap().shape(), [3, 9]);
        assert_eq!(first.array("max_seqlen").unwrap().shape(), [3]);
    }
}
