//! Bad records that may be left out, and how many were.

use crate::cx::Cx;
use crate::error::{Error, ErrorKind, Result};

/// Policy for a record that cannot be used: a damaged line, a missing field, an over-long sequence.
///
/// Only errors of [`ErrorKind::Data`] are about a record; all others end the run under either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRecords {
    /// It ends the run.
    #[default]
    Error,
    /// It is left out, counted in the report, and the first few are logged.
    Skip {
        /// Records that may be left out before one ends the run after all; no limit if `None`.
        limit: Option<u64>,
        /// Records in a row that may be left out, with no good one between them; no limit if `None`. A file of which nothing is right
        /// ends the run soon that way, wherever a few bad records are no harm.
        consecutive: Option<u64>,
    },
}

impl BadRecords {
    /// They are left out, as many as there are.
    pub fn skip() -> Self {
        Self::Skip { limit: None, consecutive: None }
    }

    /// The part of it that shapes the data, as text.
    pub(in crate::dataset) fn params(self) -> String {
        let Self::Skip { limit, consecutive } = self else { return String::new() };
        let up_to = limit.map_or_else(String::new, |limit| format!(" up to {limit}"));
        let in_a_row = consecutive.map_or_else(String::new, |limit| format!(" up to {limit} in a row"));
        format!("bad_records=skip{up_to}{in_a_row}")
    }
}

/// The remark that counts bad records.
pub(crate) const SKIPPED: &str = "bad records skipped";
/// Bad records that are logged one by one.
const LOGGED: u64 = 5;

/// Leaves out what may be left out, and counts.
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

    /// A good record has come.
    #[inline]
    pub(in crate::dataset) fn good(&mut self) {
        self.in_a_row = 0;
    }

    /// Leaves out a bad record.
    ///
    /// # Errors
    /// The record's own, if it may not be left out.
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

    /// Counts those that were left out, and those of them that came last.
    pub(in crate::dataset) fn counts(&self) -> (u64, u64) {
        (self.skipped, self.in_a_row)
    }

    /// Goes on where `counts` were these.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if they cannot be.
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
