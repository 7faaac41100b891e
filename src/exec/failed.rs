//! Elements that fail after their rows were planned.

use std::sync::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Policy for an element that fails after its row was planned, by [keys](crate::keys) or by indices.
///
/// Causes are a damaged record, or a function that rejects the element. The element's key contains its length.
/// All hosts have planned their rows by this key, so no policy changes the plan.
///
/// The policy applies to errors of [`ErrorKind::Data`] only. All other errors end the run.
/// Elements that do not match their keys also end the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailedElements {
    /// A failed element ends the run.
    #[default]
    Error,
    /// A failed element becomes padding, and is counted in the report. The first few are named there and logged.
    ///
    /// In a packed row, its cells have segment id 0. If the element is a row, the mask of the row is 0.
    Pad {
        /// Maximum number of elements that become padding, counted since the loader was built; no limit if `None`.
        /// The next failure ends the run.
        limit: Option<u64>,
    },
}

impl FailedElements {
    /// Returns the policy that turns any number of failed elements into padding.
    pub const fn pad() -> Self {
        Self::Pad { limit: None }
    }

    /// Returns the policy for the options `pads` and `limit`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a limit without padding.
    pub(crate) fn chosen(pads: bool, limit: Option<u64>) -> Result<Self> {
        match (pads, limit) {
            (true, limit) => Ok(Self::Pad { limit }),
            (false, None) => Ok(Self::Error),
            (false, Some(_)) => {
                let text = "`failed_element_limit` needs `on_failed_element: pad`, but failed elements are errors";
                Err(Error::config(text).help("set both, or neither"))
            }
        }
    }
}

/// Number of failed elements that are named.
const NAMED: usize = 5;

/// Failed elements, and the policy for them.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    policy: FailedElements,
    padded: Mutex<Padded>,
}

#[derive(Debug, Default)]
struct Padded {
    count: u64,
    first: Vec<String>,
}

impl Failed {
    pub(crate) fn new(policy: FailedElements) -> Self {
        Self { policy, padded: Mutex::default() }
    }

    /// Returns true if failed elements become padding.
    pub(crate) fn pads(&self) -> bool {
        self.policy != FailedElements::Error
    }

    /// Turns an element that failed with `error` into padding, and counts it.
    ///
    /// # Errors
    /// Returns `error` if the policy does not permit padding.
    #[cold]
    pub(crate) fn pad(&self, error: Error) -> Result<()> {
        let FailedElements::Pad { limit } = self.policy else { return Err(error) };
        if error.kind() != ErrorKind::Data {
            return Err(error);
        }
        let mut padded = self.padded.locked();
        if let Some(limit) = limit.filter(|&limit| padded.count >= limit) {
            return Err(error.and(&format!("; {limit} failed elements became padding before it, which is the limit")));
        }
        padded.count += 1;
        if padded.first.len() < NAMED {
            tracing::warn!("failed element became padding: {error}");
            padded.first.push(error.to_string());
        }
        Ok(())
    }

    /// Returns a remark with the number of padded elements and the first errors, if there are any.
    pub(crate) fn remark(&self) -> Option<String> {
        let Padded { count, first } = &*self.padded.locked();
        let elements = if *count == 1 { "element" } else { "elements" };
        let more = if *count > first.len() as u64 { "; …" } else { "" };
        (*count > 0).then(|| format!("{count} {elements} failed and became padding: {}{more}", first.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_of_the_data_become_padding_up_to_a_limit() {
        let failed = Failed::new(FailedElements::Pad { limit: Some(6) });
        assert_eq!(failed.remark(), None);
        let bad = |index| Error::data("bad").index(index);
        for index in 0..6 {
            failed.pad(bad(index)).unwrap();
        }
        assert_eq!(failed.pad(Error::new(ErrorKind::Io, "gone")).unwrap_err().kind(), ErrorKind::Io);
        let error = failed.pad(bad(6)).unwrap_err();
        assert!(error.to_string().ends_with("bad; 6 failed elements became padding before it, which is the limit"));
        let told = failed.remark().unwrap();
        assert!(told.starts_with("6 elements failed and became padding: element 0: bad; element 1: bad;"), "{told}");
        assert!(told.ends_with("element 4: bad; …"), "{told}");
        assert!(Failed::default().pad(bad(0)).is_err() && !Failed::default().pads() && failed.pads());
    }
}
