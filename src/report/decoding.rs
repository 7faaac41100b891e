//! Remarks on sources that decode their units repeatedly.

use super::format::count;
use crate::dataset::map::{Decoded, IN_BLOCKS};

/// Smallest number of units for a remark: the first units of a run are decoded for records that are read later.
const FEW_UNITS: u64 = 32;

/// Returns the remedies against repeated decoding.
pub(crate) fn remedy() -> String {
    format!(
        "raise its cache_bytes, take `{}` instead of `shuffle`, or write smaller units (row_group_rows, group_size, shard \
         size), as array_record with one record in each",
        IN_BLOCKS.name
    )
}

/// Returns a remark on each source that decoded at least twice as many records as it read.
pub(super) fn remarks(notes: &[(String, u64)]) -> Vec<String> {
    let again = Decoded::noted(notes).filter(|(_, decoded)| is_wasteful(decoded));
    again.map(|(source, decoded)| format!("{source}: {}", text(&decoded))).collect()
}

/// Returns the advice for a source of this name, if it decodes its units repeatedly.
pub(super) fn advice(source: &str, notes: &[(String, u64)]) -> Option<String> {
    let (_, decoded) = Decoded::noted(notes).find(|(name, decoded)| *name == source && is_wasteful(decoded))?;
    Some(format!("decode less often ({}): {}", text(&decoded), remedy()))
}

fn is_wasteful(decoded: &Decoded) -> bool {
    decoded.units >= FEW_UNITS && decoded.records >= decoded.read.saturating_mul(2)
}

fn text(decoded: &Decoded) -> String {
    let each = |records: u64| records as f64 / decoded.units.max(1) as f64;
    let times = decoded.records as f64 / decoded.read.max(1) as f64;
    format!(
        "{} units of {} records were decoded, each for {:.1} records that were read: {} times an epoch",
        count(decoded.units as f64),
        count(each(decoded.records)),
        each(decoded.read),
        count(times)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(units: u64, records: u64, read: u64) -> Vec<(String, u64)> {
        let count = [("units decoded", units), ("records decoded", records), ("records read out of them", read)];
        let of = |source: &str, by: u64| count.map(|(what, n)| (format!("{source} {what}"), n * by)).to_vec();
        [of("parquet", 1), vec![("records skipped".to_owned(), 3)], of("mds", 0)].concat()
    }

    #[test]
    fn a_source_that_decodes_the_same_again_and_again_is_named() {
        let notes = notes(100, 100_000, 200);
        assert_eq!(
            remarks(&notes),
            [
                "parquet: 100 units of 1000 records were decoded, each for 2.0 records that were read: 500 times an epoch"
            ]
        );
        assert!(advice("parquet", &notes).unwrap().contains("raise its cache_bytes"));
        assert_eq!(advice("mds", &notes), None);
    }

    #[test]
    fn what_is_decoded_once_is_not_spoken_of() {
        assert!(remarks(&notes(100, 100_000, 90_000)).is_empty());
        // A few units at the beginning of a run.
        assert!(remarks(&notes(5, 5_000, 100)).is_empty());
    }
}
