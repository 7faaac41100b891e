//! Counts of real tokens and padding in batches.

use crate::{Array, DType, Element, Value};
use serde::{Deserialize, Serialize};

/// Number of real tokens, and number of cells for tokens or padding.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenCount {
    pub(crate) real: u64,
    pub(crate) cells: u64,
}

impl TokenCount {
    /// Returns the real tokens per cell; `None` without cells.
    pub(crate) fn share(self) -> Option<f64> {
        (self.cells > 0).then(|| self.real as f64 / self.cells as f64)
    }

    /// Counts the tokens and cells of `batch`.
    pub(crate) fn of(batch: &Element) -> Self {
        let mut count = Self::default();
        count.add(batch);
        count
    }

    /// Returns the sum of both counts.
    pub(crate) fn with(self, other: Self) -> Self {
        Self { real: self.real + other.real, cells: self.cells + other.cells }
    }

    /// Adds the tokens and cells of `batch`.
    ///
    /// Segment ids of packed features are counted first: id 0 is padding. Without segment ids, lengths are counted, then a mask. Whole
    /// numbers without any of these are all real.
    pub(crate) fn add(&mut self, batch: &Element) {
        let segments: Vec<&Array> = arrays(batch).filter(|(name, _)| is_segment_ids(name)).map(|(_, a)| a).collect();
        if !segments.is_empty() {
            for ids in segments {
                self.real += nonzero(ids);
                self.cells += ids.size() as u64;
            }
            return;
        }
        if self.add_by_lengths(batch) {
            return;
        }
        let mask = arrays(batch).find(|(name, a)| a.dtype() == DType::Bool && name.ends_with("mask"));
        let data = arrays(batch).find(|(_, a)| is_integer(a.dtype()) && !a.shape().is_empty());
        match (mask, data) {
            (Some((_, mask)), Some((_, data)))
                if !mask.shape().is_empty() && data.shape().starts_with(mask.shape()) =>
            {
                let inner = (data.size() / mask.size().max(1)) as u64;
                self.real += nonzero(mask) * inner;
                self.cells += data.size() as u64;
            }
            (_, Some((_, data))) => {
                self.real += data.size() as u64;
                self.cells += data.size() as u64;
            }
            _ => {}
        }
    }

    /// Adds length buckets: `tokens` of shape `[rows, boundary]` with `tokens_lengths`. Returns false if there are none.
    fn add_by_lengths(&mut self, batch: &Element) -> bool {
        let mut found = false;
        for (name, lengths) in arrays(batch) {
            let feature = name.strip_suffix("_lengths").and_then(|feature| batch.array(feature).ok());
            if let (Some(feature), Ok(lengths)) = (feature, lengths.as_slice::<i32>()) {
                self.real += lengths.iter().map(|&length| u64::from(length.max(0) as u32)).sum::<u64>();
                self.cells += feature.size() as u64;
                found = true;
            }
        }
        found
    }
}

pub(super) fn arrays(batch: &Element) -> impl Iterator<Item = (&str, &Array)> {
    batch.iter().filter_map(|(name, value)| if let Value::Array(array) = value { Some((name, array)) } else { None })
}

/// Returns true for an array of segment ids whose segments [`TokenCount`] counts.
pub(crate) fn counts_as_tokens(name: &str) -> bool {
    is_segment_ids(name)
}

/// Returns true for gristmill's segment ids and for MaxText's ids of inputs. MaxText's ids of targets cover these tokens again.
pub(super) fn is_segment_ids(name: &str) -> bool {
    name.ends_with("segment_ids") || (name.ends_with("_segmentation") && !name.starts_with("targets"))
}

fn is_integer(dtype: DType) -> bool {
    use DType::{I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(dtype, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}

fn nonzero(array: &Array) -> u64 {
    if let Ok(ids) = array.as_slice::<i32>() {
        // Counted in lanes of 32 bits, which the compiler turns into vector instructions.
        return ids.chunks(1 << 20).map(|c| u64::from(c.iter().map(|&x| u32::from(x != 0)).sum::<u32>())).sum();
    }
    let size = array.dtype().size();
    array.bytes().chunks(size).filter(|number| number.iter().any(|&b| b != 0)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    fn count(batch: &Element) -> (u64, u64) {
        let count = TokenCount::of(batch);
        (count.real, count.cells)
    }

    fn ids(numbers: Vec<i32>, shape: &[usize]) -> Array {
        Array::new(DType::I32, shape, Buffer::from_vec(numbers)).unwrap()
    }

    #[test]
    fn padding_is_told_by_segment_ids_then_by_masks() {
        let tokens = ids(vec![5, 6, 0, 0], &[2, 2]);
        let packed =
            Element::new().with("tokens", tokens.clone()).with("tokens_segment_ids", ids(vec![1, 1, 2, 0], &[2, 2]));
        assert_eq!(count(&packed), (3, 4));
        let mask = Array::new(DType::Bool, &[2], Buffer::from_vec(vec![1u8, 0])).unwrap();
        assert_eq!(count(&Element::new().with("tokens", tokens.clone()).with("mask", mask)), (2, 4));
        let bucket = Element::new().with("tokens", tokens.clone()).with("tokens_lengths", ids(vec![2, 1], &[2]));
        assert_eq!(count(&bucket), (3, 4));
        assert_eq!(count(&Element::new().with("tokens", tokens)), (4, 4));
        assert_eq!(count(&Element::new().with("text", "a")), (0, 0));
    }
}
