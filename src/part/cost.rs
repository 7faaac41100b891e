//! Cost of the rows of a batch, computed from a column with the lengths of their sequences.

use super::RowBatch;
use crate::element::{Array, DType, Scalar};
use crate::error::{Error, Result};

/// Cost of a row: `per_token` · t + `per_square` · Σ len². Its sequences have t tokens in total and the lengths len.
///
/// The cost is an integer, so that all hosts agree exactly; sums saturate at 64 bits. Only ratios matter, so the unit is arbitrary.
/// Padding costs nothing.
///
/// # Source of the lengths
/// The column named by [`segments`](Self::segments) or [`lengths`](Self::lengths). The default is the first column whose name ends in
/// `segment_ids` or `segmentation`, as [packing](crate::pack::Packing) writes it. The report names the column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    per_token: u64,
    per_square: u64,
    window: Option<u64>,
    column: Column,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Column {
    #[default]
    Found,
    Segments(String),
    Lengths(String),
}

/// Endings of the names of segment-id columns in Grain and MaxText.
const SEGMENTS: [&str; 2] = ["segment_ids", "segmentation"];

impl Cost {
    /// Creates a cost with these two factors.
    pub const fn new(per_token: u64, per_square: u64) -> Self {
        Self { per_token, per_square, window: None, column: Column::Found }
    }

    /// Returns the cost of a transformer layer of width `d_model`, in units of `d_model` floating-point operations of the forward pass.
    ///
    /// The cost is 24 · `d_model` · t + 2 · Σ len² if attention is `causal`, and 24 · `d_model` · t + 4 · Σ len² if it is not.
    ///
    /// A layer has 12 · `d_model`² parameters: 4 of the 12 for the projections of attention, 8 for a feed-forward part of width
    /// 4 · `d_model`. Each parameter takes two operations per token. For each pair of tokens that attend to each other, scores and values
    /// take 4 · `d_model` operations. Causal attention masks half of the pairs.
    ///
    /// With a `window`, a token attends to the `window` tokens up to itself. Without `causal`, it also attends to an equal number after it.
    /// For sequences longer than `window`, len² is replaced by 2 · len · `window` − `window`². The backward pass doubles the cost. For
    /// another feed-forward width, use [`new`](Self::new). Source: Chowdhery et al., PaLM, appendix B (arXiv 2204.02311).
    ///
    /// ```
    /// use gristmill::part::Cost;
    ///
    /// let cost = Cost::attention(4096, None, true);
    /// assert_eq!(cost.of_lens([3000, 1000]), 24 * 4096 * 4000 + 2 * (3000 * 3000 + 1000 * 1000));
    /// ```
    pub const fn attention(d_model: usize, window: Option<usize>, causal: bool) -> Self {
        let cost = Self::new(24u64.saturating_mul(d_model as u64), if causal { 2 } else { 4 });
        if let Some(window) = window { cost.window(window) } else { cost }
    }

    /// Reads the cost from column `name`, with one integer per row, such as image patches or audio frames.
    pub fn column(name: impl Into<String>) -> Self {
        Self::new(1, 0).lengths(name)
    }

    /// Limits attention to `window` tokens on each side, including the token.
    #[must_use]
    pub const fn window(mut self, window: usize) -> Self {
        self.window = Some(window as u64);
        self
    }

    setters! {
        /// Reads sequences from the segment ids in column `name`: integers of shape `[rows, cells]`.
        ///
        /// A sequence is a run of equal ids. Zero and negative ids are padding.
        #[must_use]
        pub segments(name: impl Into<String>) => column = Column::Segments(name.into());

        /// Reads the lengths of sequences from column `name`: integers of shape `[rows]` or `[rows, sequences]`.
        ///
        /// Zero and negative lengths are ignored.
        #[must_use]
        pub lengths(name: impl Into<String>) => column = Column::Lengths(name.into());
    }

    /// Returns the cost of a row with sequences of these lengths.
    pub fn of_lens(&self, lens: impl IntoIterator<Item = u64>) -> u64 {
        let one = |len: u64| {
            let unseen = self.window.map_or(0, |window| len.saturating_sub(window));
            let square = len.saturating_mul(len).saturating_sub(unseen.saturating_mul(unseen));
            let tokens = self.per_token.saturating_mul(len);
            tokens.saturating_add(self.per_square.saturating_mul(square))
        };
        lens.into_iter().map(one).fold(0, u64::saturating_add)
    }

    /// Returns true if costs may be read from an array of this name.
    pub(crate) fn reads(&self, name: &str) -> bool {
        self.column.is(name)
    }

    /// Returns true if the cost is read from segment ids.
    pub(crate) fn is_of_segments(&self) -> bool {
        !matches!(self.column, Column::Lengths(_))
    }

    /// Returns the cost of every row of `batch`, and the name of the column from which it was read.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the column is missing, or does not hold integers for each row.
    pub fn of_rows(&self, batch: &impl RowBatch) -> Result<(Vec<u64>, String)> {
        let rows = batch.num_rows()?;
        let mut names = Vec::new();
        let found = batch.column(&mut |name| {
            names.push(name.to_owned());
            self.column.is(name)
        })?;
        let Some((name, array)) = found else { return Err(self.column.missing(&names)) };
        let costs = match array.dtype() {
            DType::U8 => self.of_cells::<u8>(&array, rows),
            DType::I8 => self.of_cells::<i8>(&array, rows),
            DType::U16 => self.of_cells::<u16>(&array, rows),
            DType::I16 => self.of_cells::<i16>(&array, rows),
            DType::U32 => self.of_cells::<u32>(&array, rows),
            DType::I32 => self.of_cells::<i32>(&array, rows),
            DType::U64 => self.of_cells::<u64>(&array, rows),
            DType::I64 => self.of_cells::<i64>(&array, rows),
            _ => None,
        };
        let refused = || {
            let text = format!("costs of {rows} rows cannot be read from {name:?}, which is {array:?}");
            Error::config(text)
                .help("the column must contain integers, with the rows as the first of at most two dimensions")
        };
        Ok((costs.ok_or_else(refused)?, name))
    }

    /// Returns the two factors, the window, and the named column of segment ids or of lengths.
    pub(crate) fn parts(&self) -> (u64, u64, Option<u64>, Option<&str>, Option<&str>) {
        let (segments, lengths) = match &self.column {
            Column::Found => (None, None),
            Column::Segments(name) => (Some(name.as_str()), None),
            Column::Lengths(name) => (None, Some(name.as_str())),
        };
        (self.per_token, self.per_square, self.window, segments, lengths)
    }

    fn of_cells<T: Scalar + PartialOrd + TryInto<u64>>(&self, array: &Array, rows: usize) -> Option<Vec<u64>> {
        let cells = array.as_slice::<T>().ok()?;
        let width = match *array.shape() {
            [len] if len == rows => 1,
            [len, width] if len == rows => width,
            _ => return None,
        };
        let len = |cell: &T| (*cell).try_into().unwrap_or(0);
        let of_row = |row: &[T]| match self.column {
            Column::Lengths(_) => self.of_lens(row.iter().map(len)),
            Column::Found | Column::Segments(_) => {
                let runs = row.chunk_by(|a, b| a == b).filter(|run| run[0] > T::zeroed());
                self.of_lens(runs.map(|run| run.len() as u64))
            }
        };
        Some((0..rows).map(|row| of_row(&cells[row * width..][..width])).collect())
    }
}

impl Column {
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Found => SEGMENTS.iter().any(|end| name.ends_with(end)),
            Self::Segments(column) | Self::Lengths(column) => name == column,
        }
    }

    #[cold]
    fn missing(&self, names: &[String]) -> Error {
        let there = if names.is_empty() { "no named columns".to_owned() } else { names.join(", ") };
        let text = match self {
            Self::Found => format!("no column of a batch ends in {}", SEGMENTS.join(" or ")),
            Self::Segments(column) | Self::Lengths(column) => format!("batches have no column {column:?}"),
        };
        Error::config(format!("{text} for the costs of rows; there are {there}"))
            .help("name the column by `Cost`: `segments` for segment ids, `lengths` for lengths of sequences")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, ErrorKind};

    fn costs(cost: &Cost, batch: &Element) -> Vec<u64> {
        cost.of_rows(batch).unwrap().0
    }

    #[test]
    fn squares_are_cut_by_a_window() {
        // With a window of 2, each of 5 tokens attends to itself and its predecessor. Twice the area below the diagonal is 2·5·2 - 2·2.
        let cost = Cost::new(0, 1).window(2);
        assert_eq!([1, 2, 5].map(|len| cost.of_lens([len])), [1, 4, 16]);
        assert_eq!(Cost::attention(8, None, false).of_lens([3, 1]), 24 * 8 * 4 + 4 * 10);
        assert_eq!(Cost::attention(8, Some(2), true).of_lens([5]), 24 * 8 * 5 + 2 * 16);
        assert_eq!(Cost::new(u64::MAX, 2).of_lens([u64::MAX, 7]), u64::MAX);
    }

    #[test]
    fn sequences_are_runs_of_one_id() {
        let array = |ids: Vec<i32>| Array::new(DType::I32, &[2, 5], Array::from_vec(ids).buffer().clone()).unwrap();
        let batch = Element::new()
            .with("t", array(vec![9; 10]))
            .with("t_segment_ids", array(vec![1, 1, 2, 2, 2, 0, 1, 0, -5, -5]))
            .with("u_segmentation", array(vec![1; 10]))
            .with("n", Array::from_vec(vec![7u8, 0]))
            .with("x", Array::from_vec(vec![0.5f32, 1.0]));
        let cost = Cost::new(100, 1);
        assert_eq!(cost.of_rows(&batch).unwrap(), (vec![513, 101], "t_segment_ids".to_owned()));
        assert_eq!(costs(&cost.clone().segments("u_segmentation"), &batch), [525, 525]);
        assert_eq!(costs(&cost.lengths("n"), &batch), [749, 0]);
        assert_eq!(costs(&Cost::column("t_segment_ids"), &batch), [8, 1]);
        let error = Cost::column("x").of_rows(&batch).unwrap_err();
        assert_eq!(error.message(), "costs of 2 rows cannot be read from \"x\", which is float32[2]");
    }

    #[test]
    fn a_column_that_is_not_there_is_said_with_those_that_are() {
        let batch = Element::new().with("x", Array::from_vec(vec![1])).with("y", Array::from_vec(vec![1]));
        let error = Cost::new(1, 1).of_rows(&batch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(
            error.message().ends_with("for the costs of rows; there are x, y") && error.help_text().is_some(),
            "{error}"
        );
        assert!(Cost::column("z").of_rows(&batch).unwrap_err().message().starts_with("batches have no column \"z\""));
        assert!(Cost::column("z").of_rows(&vec![1]).unwrap_err().message().ends_with("no named columns"));
    }
}
