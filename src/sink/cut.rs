//! Rule for the ends of shards.

/// Rule that ends a shard after the record that reaches a limit. Depends only on the records and the two limits.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    most_bytes: u64,
    most_records: u64,
    bytes: u64,
    records: u64,
}

impl Cut {
    pub(super) fn new(most_bytes: u64, most_records: Option<u64>) -> Self {
        Self { most_bytes, most_records: most_records.unwrap_or(u64::MAX), bytes: 0, records: 0 }
    }

    /// Counts a record of `bytes` bytes; returns true if the shard ends after it.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        self.records += 1;
        self.bytes >= self.most_bytes || self.records >= self.most_records
    }

    /// Ends the shard and returns the number of its records and their bytes; the next shard starts empty.
    pub(super) fn end(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.records), std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(mut cut: Cut, sizes: &[u64]) -> Vec<(u64, u64)> {
        let take = |&size: &u64| if cut.take(size) { Some(cut.end()) } else { None };
        sizes.iter().filter_map(take).collect()
    }

    #[test]
    fn a_shard_ends_behind_the_record_that_fills_it() {
        assert_eq!(cuts(Cut::new(10, None), &[4, 4, 4, 10, 3, 7, 9]), [(3, 12), (1, 10), (2, 10)]);
        assert_eq!(cuts(Cut::new(10, Some(2)), &[0, 0, 30, 1, 1, 1]), [(2, 0), (1, 30), (2, 2)]);
    }
}
