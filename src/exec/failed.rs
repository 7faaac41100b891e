//! Elements that fail after rows were planned of them.

use std::sync::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// Policy for an element that fails after rows were planned of it, by [keys](crate::keys) or by indices: a damaged record, a function that refuses
/// it.
///
/// Its key has said that it is there and how long it is, so that all hosts have planned their rows by it, and no policy changes the plan.
/// Only errors of [`ErrorKind::Data`] are about an element; all others end the run under either, as do elements that are not as their keys say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailedElements {
    /// It ends the run.
    #[default]
    Error,
    /// It becomes padding, is counted in the report, and the first few are named there and logged: its cells in a packed row have segment id 0,
    /// and a row that it is alone has a mask of 0.
    Pad {
        /// Elements that may become padding before one ends the run after all, counted since the loader was built; no limit if `None`.
        limit: Option<u64>,
    },
}

impl FailedElements {
    /// They become padding, as many as there are.
    pub const fn pad() -> Self {
        Self::Pad { limit: None }
    }

    /// The policy that is chosen by a word and a limit.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a limit where nothing becomes padding.
    #[cfg(any(feature = "python", feature = "spec"))]
    pub(crate) fn chosen(pads: bool, limit: Option<u64>) -> Result<Self> {
        match (pads, limit) {
            (true, limit) => Ok(Self::Pad { limit }),
            (false, None) => Ok(Self::Error),
            (false, Some(_)) => {
                let text = "`failed_element_limit` needs `on_failed_element: pad`, and elements that fail are errors";
                Err(Error::config(text).help("choose both, or neither"))
            }
        }
    }
}

/// Failed elements that are named.
const NAMED: usize = 5;

/// The elements that have failed, under a policy.
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

    /// Whether they become padding.
    pub(crate) fn pads(&self) -> bool {
        self.policy != FailedElements::Error
    }

    /// Has an element that failed with `error` become padding, and counts it.
    ///
    /// # Errors
    /// `error`, where it may not.
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

    /// Says how many became padding, and which the first were.
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
