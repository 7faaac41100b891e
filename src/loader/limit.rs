//! Time limit of a wait for an element.

use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};

/// Limit of the time that the consumer waits for an element.
#[derive(Debug)]
pub(super) struct Limit {
    limit: Duration,
    /// Start of the current wait.
    since: Option<Instant>,
}

impl Limit {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, since: None }
    }

    /// Returns the time for which the consumer may wait at `now`, at most `patience`. Starts a wait if none is under way.
    pub(super) fn patience(&mut self, patience: Option<Duration>, now: Instant) -> Duration {
        let since = *self.since.get_or_insert(now);
        let left = self.limit.saturating_sub(now.saturating_duration_since(since));
        patience.map_or(left, |patience| patience.min(left))
    }

    /// Ends the current wait for element number `element` if the element `is_ready`.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the wait exceeds the limit at `now`.
    pub(super) fn check(&mut self, is_ready: bool, now: Instant, element: u64) -> Result<()> {
        let waited = self.since.map(|since| now.saturating_duration_since(since));
        match waited {
            _ if is_ready => self.since = None,
            Some(waited) if waited >= self.limit => return Err(self.error(element)),
            _ => {}
        }
        Ok(())
    }

    /// Ends the current wait, because the pass continues elsewhere.
    pub(super) fn end(&mut self) {
        self.since = None;
    }

    #[cold]
    fn error(&self, element: u64) -> Error {
        let text =
            format!("element {element} was not ready after {} s, the limit of `timeout`", self.limit.as_secs_f64());
        Error::new(ErrorKind::Worker, text)
            .help("the report names the stage that takes long; raise `timeout` if elements may take longer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_of_several_calls_has_one_limit_and_the_next_wait_another() {
        let (start, mut limit) = (Instant::now(), Limit::new(Duration::from_secs(10)));
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let second = Some(Duration::from_secs(1));
        assert_eq!(limit.patience(second, at(0)), Duration::from_secs(1));
        assert_eq!(limit.patience(second, at(9)), Duration::from_secs(1));
        assert_eq!(limit.patience(None, at(9)), Duration::from_secs(1));
        assert!(limit.check(false, at(9), 3).is_ok());
        let error = limit.check(false, at(10), 3).unwrap_err();
        assert_eq!(error.to_string(), "element 3 was not ready after 10 s, the limit of `timeout`");
        assert_eq!(limit.patience(second, at(11)), Duration::ZERO);
        assert!(limit.check(true, at(11), 3).is_ok());
        assert_eq!(limit.patience(None, at(11)), Duration::from_secs(10));
    }
}
