//! Bad records: the policy for skipping them, and their count.

use crate::cx::Cx;
use crate::error::{Error, ErrorKind, Result};

/// Policy for a record that cannot be used: a damaged line, a missing field, an over-long sequence.
///
/// Only errors of [`ErrorKind::Data`] concern a record. All other errors end the run under either policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRecords {
    /// A bad record ends the run.
    #[default]
    Error,
    /// A bad record is skipped and counted in the report. The first few are logged.
    Skip {
        /// Number of bad records that may be skipped in the whole run. The next bad record ends the run. `None` means
        /// no limit.
        limit: Option<u64>,
        /// Number of consecutive bad records that may be skipped. `None` means no limit. A completely broken file then
        /// ends the run soon, while scattered bad records are tolerated.
        consecutive: Option<u64>,
    },
}

impl BadRecords {
    /// Skips bad records without a limit.
    pub fn skip() -> Self {
        Self::Skip { limit: None, consecutive: None }
    }

    /// Returns the part of the policy that shapes the data, as text.
    pub(in crate::dataset) fn params(self) -> String {
        let Self::Skip { limit, consecutive } = self else { return String::new() };
        let up_to = limit.map_or_else(String::new, |limit| format!(" up to {limit}"));
        let in_a_row = consecutive.map_or_else(String::new, |limit| format!(" up to {limit} in a row"));
        format!("bad_records=skip{up_to}{in_a_row}")
    }
}

/// The note that counts bad records.
pub(crate) const SKIPPED: &str = "bad records skipped";
/// Number of bad records that are logged individually.
const LOGGED: u64 = 5;

/// Skips bad records within the limits, and counts them.
#[derive(Clone, Copy, Debug)]
pub(in crate::dataset) struct Skipping {
    policy: BadRecords,
    skipped: u64,
    in_a_row: u64,
    logged: u64,
}

impl Skipping {
    pub(in crate::dataset) fn new(policy: BadRecords) -> Self {
        Self { policy, skipped: 0, in_a_row: 0, logged: 0 }
    }

    /// Resets the count of consecutive bad records, after a good record.
    #[inline]
    pub(in crate::dataset) fn good(&mut self) {
        self.in_a_row = 0;
    }

    /// Skips a bad record.
    ///
    /// # Errors
    /// `error`, if the policy does not allow skipping the record.
    #[cold]
    pub(in crate::dataset) fn skip(&mut self, error: Error, cx: &mut Cx) -> Result<()> {
        let BadRecords::Skip { limit, consecutive } = self.policy else { return Err(error) };
        if error.kind() != ErrorKind::Data {
            return Err(error);
        }
        if let Some(limit) = limit.filter(|&limit| self.skipped >= limit) {
            return Err(error.and(&format!("; {limit} bad records were skipped before it, which is the limit")));
        }
        if let Some(limit) = consecutive.filter(|&limit| self.in_a_row >= limit) {
            return Err(
                error.and(&format!("; {limit} bad records in a row were skipped before it, which is the limit"))
            );
        }
        self.skipped += 1;
        self.in_a_row += 1;
        cx.note(SKIPPED, 1);
        if self.logged < LOGGED {
            self.logged += 1;
            tracing::warn!("bad record skipped: {error}");
        }
        Ok(())
    }

    /// Returns the number of skipped records, and the number of consecutive records skipped last.
    pub(in crate::dataset) fn counts(&self) -> (u64, u64) {
        (self.skipped, self.in_a_row)
    }

    /// Restores the counts.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if the counts are impossible.
    pub(in crate::dataset) fn restore(&mut self, skipped: u64, in_a_row: u64) -> Result<()> {
        if in_a_row > skipped {
            return Err(Error::state(format!("{in_a_row} bad records in a row, and {skipped} in all")));
        }
        (self.skipped, self.in_a_row) = (skipped, in_a_row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_records_are_counted_on_after_a_restore() {
        let mut cx = Cx::default();
        let policy = BadRecords::Skip { limit: Some(5), consecutive: Some(3) };
        let mut bad = |skipping: &mut Skipping| skipping.skip(Error::data("no text"), &mut cx);
        let at = |skipped, in_a_row| {
            let mut skipping = Skipping::new(policy);
            skipping.restore(skipped, in_a_row).map(|()| skipping)
        };
        let mut row = at(2, 2).unwrap();
        bad(&mut row).unwrap();
        assert_eq!(row.counts(), (3, 3));
        assert!(bad(&mut row).unwrap_err().message().contains("3 bad records in a row"));
        let mut all = at(4, 0).unwrap();
        bad(&mut all).unwrap();
        assert!(bad(&mut all).unwrap_err().message().contains("5 bad records were skipped"));
        assert_eq!(at(1, 2).unwrap_err().kind(), ErrorKind::State);
    }
}
