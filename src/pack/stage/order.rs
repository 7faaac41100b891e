//! Output order of the rows of a group.

use std::cmp::Ordering;

use super::options::BinPackOptions;
use crate::element::DType;
use crate::pack::arena::Part;
use crate::pack::writer::Group;

/// Returns the rows of `group` in output order. `before` is the number of rows in earlier groups.
pub(super) fn row_order(
    options: &BinPackOptions,
    group: &Group,
    before: u64,
    dtype: impl Fn(usize) -> DType,
) -> Vec<usize> {
    if !options.shuffle_bins {
        return group.rows.clone().collect();
    }
    let shuffled = crate::rng::permuted(options.seed.wrapping_add(before), group.rows.len());
    let Some(feature) = options.group_by.as_ref().and_then(|name| options.rows.position(name)) else {
        return shuffled;
    };
    let mean = |row: usize| mean_of_distinct(group.arena.row(feature, Part::Values, row), dtype(feature));
    let means: Vec<f64> = group.rows.clone().map(mean).collect();
    by_group(&means, &shuffled)
}

/// Returns the rows ordered by mean. Ties are ordered by `shuffled[row]`, as in Grain.
///
/// Ties are not ordered by the index of the row in `shuffled`.
fn by_group(means: &[f64], shuffled: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..means.len()).collect();
    order.sort_by(|&a, &b| {
        let means = means[a].partial_cmp(&means[b]).unwrap_or(Ordering::Equal);
        means.then(shuffled[a].cmp(&shuffled[b]))
    });
    order
}

/// Returns the mean of the distinct nonzero numbers in `bytes`; 0 if there are none.
fn mean_of_distinct(bytes: &[u8], dtype: DType) -> f64 {
    let mut numbers: Vec<f64> = bytes.chunks_exact(dtype.size()).map(|number| to_f64(number, dtype)).collect();
    numbers.retain(|&number| number != 0.0);
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    if numbers.is_empty() { 0.0 } else { numbers.iter().sum::<f64>() / numbers.len() as f64 }
}

/// Converts `bytes` to a number. `bytes` must have the size of `dtype`.
fn to_f64(bytes: &[u8], dtype: DType) -> f64 {
    macro_rules! read {
        ($type:ty) => {
            bytemuck::pod_read_unaligned::<$type>(bytes)
        };
    }
    match dtype {
        DType::Bool | DType::U8 => read!(u8).into(),
        DType::I8 => read!(i8).into(),
        DType::U16 => read!(u16).into(),
        DType::I16 => read!(i16).into(),
        DType::F16 => read!(half::f16).into(),
        DType::BF16 => read!(half::bf16).into(),
        DType::U32 => read!(u32).into(),
        DType::I32 => read!(i32).into(),
        DType::F32 => read!(f32).into(),
        DType::U64 => read!(u64) as f64,
        DType::I64 => read!(i64) as f64,
        DType::F64 => read!(f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_by_group_and_are_shuffled_within() {
        assert_eq!(by_group(&[2.0, 1.0, 1.0, 2.0], &[1, 3, 0, 2]), [2, 1, 0, 3]);
        let epochs: Vec<u8> = [1i32, 1, 2, 0].iter().flat_map(|e| e.to_le_bytes()).collect();
        assert_eq!(mean_of_distinct(&epochs, DType::I32), 1.5);
        assert_eq!(mean_of_distinct(&[0; 8], DType::I32), 0.0);
        assert_eq!(mean_of_distinct(&[0, 0x3c, 0, 0x40], DType::F16), 1.5);
    }
}
