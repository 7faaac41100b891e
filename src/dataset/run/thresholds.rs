//! Warnings and errors of filters that drop nearly all elements.

use std::time::{Duration, Instant};

use crate::cx::Cx;
use crate::dataset::iter::FilterState;
use crate::error::{Error, Result};

/// Number of elements in a window. The share of dropped elements is checked at its end. The number is Grain's.
pub(in crate::dataset) const WINDOW: u64 = 1000;
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Shares of dropped elements at which a filter warns or fails. The share is computed over consecutive windows of 1000
/// elements, which do not overlap.
///
/// Grain's rule and defaults: warn at 0.9, never fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterThresholds {
    /// From this share on, the filter logs a warning through `tracing`, at most once a minute, and the report counts
    /// the window.
    pub warn: Option<f64>,
    /// From this share on, the run fails.
    pub raise: Option<f64>,
}

default_as!(FilterThresholds, Self { warn: Some(0.9), raise: None });

impl FilterThresholds {
    /// Neither warns nor fails.
    pub const OFF: Self = Self { warn: None, raise: None };

    pub(crate) fn check(&self) -> Result<()> {
        for (name, share) in [("warn", self.warn), ("raise", self.raise)] {
            if let Some(share) = share.filter(|&share| !(share > 0.0 && share <= 1.0)) {
                return Err(Error::config(format!("the {name} threshold is {share}, and must be in (0, 1]")));
            }
        }
        Ok(())
    }

    /// Returns the part that belongs to the fingerprint. Failing changes the stream, warning does not.
    pub(crate) fn params(&self) -> String {
        self.raise.map(|share| format!("raise={share}")).unwrap_or_default()
    }
}

/// Counts the dropped elements of each window.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Watch {
    pub(in crate::dataset) thresholds: FilterThresholds,
    /// Number of elements seen in this window.
    pub(in crate::dataset) seen: u64,
    /// Number of these elements that were dropped.
    pub(in crate::dataset) dropped: u64,
    warned: Option<Instant>,
}

impl Watch {
    pub(crate) fn new(thresholds: FilterThresholds) -> Self {
        Self { thresholds, seen: 0, dropped: 0, warned: None }
    }

    /// Returns the state of a filter whose parent has the state `parent`.
    pub(crate) fn state<S>(&self, parent: S) -> FilterState<S> {
        FilterState { parent, seen: self.seen, dropped: self.dropped }
    }

    /// Restores a position in a window.
    pub(crate) fn restore(&mut self, seen: u64, dropped: u64) -> Result<()> {
        if dropped > seen || seen >= WINDOW {
            return Err(Error::state(format!("{dropped} dropped of {seen} seen, in a window of {WINDOW}")));
        }
        (self.seen, self.dropped) = (seen, dropped);
        Ok(())
    }

    /// Counts an element. Fails if the element ends a window with too many dropped elements.
    #[inline]
    pub(crate) fn count(&mut self, dropped: bool, cx: &mut Cx) -> Result<()> {
        self.seen += 1;
        self.dropped += u64::from(dropped);
        if self.seen < WINDOW { Ok(()) } else { self.end_window(cx) }
    }

    /// Counts elements that were not dropped. They must not end a window that has dropped elements, so no check is
    /// needed.
    pub(in crate::dataset) fn pass(&mut self, elements: u64) {
        self.seen = (self.seen + elements) % WINDOW;
    }

    /// Counts elements, some of them dropped, that do not end the window.
    pub(in crate::dataset) fn pass_some(&mut self, elements: u64, dropped: u64) {
        self.seen += elements;
        self.dropped += dropped;
    }

    #[cold]
    fn end_window(&mut self, cx: &mut Cx) -> Result<()> {
        let share = self.dropped as f64 / self.seen as f64;
        (self.seen, self.dropped) = (0, 0);
        let text = |limit: f64| {
            let (share, limit) = (share * 100.0, limit * 100.0);
            format!("{share:.1} % of the last {WINDOW} elements were dropped, the limit is {limit:.1} %")
        };
        if let Some(limit) = self.thresholds.raise.filter(|&limit| share >= limit) {
            return Err(Error::data(text(limit)).help("check the filter, or raise its threshold"));
        }
        if let Some(limit) = self.thresholds.warn.filter(|&limit| share >= limit) {
            cx.note("windows of 1000 elements nearly all dropped by a filter", 1);
            if self.warned.is_none_or(|last| last.elapsed() >= WARN_EVERY) {
                self.warned = Some(Instant::now());
                tracing::warn!("a filter drops nearly everything: {}", text(limit));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Recorder;

    #[test]
    fn windows_do_not_overlap_and_are_judged_at_their_end() {
        let recorder = Recorder::new(0);
        let mut cx = Cx::new(&recorder);
        let mut watch = Watch::new(FilterThresholds { warn: Some(0.5), raise: Some(0.75) });
        // 500 elements are dropped at the end of a window and 500 at the start of the next, so each window is at 50 %.
        for i in 0..2000 {
            watch.count((500..1500).contains(&i), &mut cx).unwrap();
        }
        assert_eq!(recorder.notes()[0].1, 2);
        for i in 0..999 {
            watch.count(i < 749, &mut cx).unwrap();
        }
        let error = watch.count(true, &mut cx).unwrap_err();
        assert_eq!(error.message(), "75.0 % of the last 1000 elements were dropped, the limit is 75.0 %");
        assert_eq!((watch.seen, watch.dropped), (0, 0));
    }

    #[test]
    fn impossible_values_are_refused() {
        for share in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(FilterThresholds { warn: Some(share), raise: None }.check().is_err());
        }
        assert!(Watch::new(FilterThresholds::OFF).restore(1000, 0).is_err());
        assert!(Watch::new(FilterThresholds::OFF).restore(5, 6).is_err());
    }
}
