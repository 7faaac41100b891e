//! Last words of hosts: the statement of a host that fails, or closes its loader before the end, posted between two rounds.

use std::time::{Duration, Instant};

use crate::error::Result;
use crate::part::{Exchange, last_words};

/// Round in which last words are posted. No series of rounds reaches it.
pub(super) const LAST: u64 = u64::MAX;

/// Minimum time between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// Minimum pause as a multiple of the duration of a look, so that looks take at most 1 % of the time.
const LOOKS: u32 = 100;

/// Last words of other hosts that this host has read.
#[derive(Debug, Default)]
pub(super) struct LastWords {
    /// End of the last look, and the pause after it.
    looked: Option<(Instant, Duration)>,
    /// Hosts that have closed their loaders, each with the number of batches before.
    closed: Vec<(usize, u64)>,
}

impl LastWords {
    /// Reads last words if a look is due at `now`.
    ///
    /// # Errors
    /// The error of a host that has failed, and errors of the exchange.
    pub(super) fn look(&mut self, exchange: &mut dyn Exchange, now: Instant) -> Result<()> {
        if !self.is_due(now) {
            return Ok(());
        }
        let read = self.read(exchange);
        self.has_looked(now, Instant::now());
        read
    }

    /// Reads last words now.
    ///
    /// # Errors
    /// As [`look`](Self::look).
    pub(super) fn read(&mut self, exchange: &mut dyn Exchange) -> Result<()> {
        let said = exchange.read(LAST)?;
        let closed = last_words(&said)?;
        for (host, batch) in closed.iter().filter(|host| !self.closed.contains(host)) {
            tracing::warn!(
                "host {host} of {} has closed its loader after batch {batch}; the other hosts wait for it at the next comparison",
                said.len()
            );
        }
        self.closed = closed;
        Ok(())
    }

    fn is_due(&self, now: Instant) -> bool {
        self.looked.is_none_or(|(at, pause)| now.saturating_duration_since(at) >= pause)
    }

    fn has_looked(&mut self, from: Instant, to: Instant) {
        self.looked = Some((to, PAUSE.max(LOOKS * to.saturating_duration_since(from))));
    }

    /// Lists the hosts that have closed their loaders, for the error of a host that waits in vain.
    pub(super) fn in_words(&self) -> String {
        let closed: Vec<String> = self
            .closed
            .iter()
            .map(|(host, batch)| format!("host {host} has closed its loader after batch {batch}"))
            .collect();
        closed.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;

    /// An exchange without statements that counts reads of last words.
    struct Counted(u32);

    impl Exchange for Counted {
        fn begin(&mut self, _: &Part) -> Result<()> {
            Ok(())
        }
        fn post(&mut self, _: u64, _: &str) -> Result<()> {
            Ok(())
        }
        fn read(&mut self, round: u64) -> Result<Vec<Option<String>>> {
            assert_eq!(round, LAST);
            self.0 += 1;
            Ok(vec![None, None])
        }
    }

    #[test]
    fn last_words_are_read_at_once_and_again_after_the_pause() {
        let (mut words, mut exchange, start) = (LastWords::default(), Counted(0), Instant::now());
        words.look(&mut exchange, start).unwrap();
        assert_eq!(exchange.0, 1);
        words.look(&mut exchange, start).unwrap();
        assert_eq!(exchange.0, 1);
        // A look that takes long is followed by a longer pause.
        let (at, pause) = words.looked.unwrap();
        words.look(&mut exchange, at + pause).unwrap();
        assert_eq!(exchange.0, 2);
    }

    #[test]
    fn looks_take_a_hundredth_of_the_time_at_most() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        for (took, pause) in [(0, 1000), (10, 1000), (11, 1100), (200, 20_000)] {
            let mut words = LastWords::default();
            assert!(words.is_due(start));
            words.has_looked(start, start + ms(took));
            let due = |after: u64| words.is_due(start + ms(took + after));
            assert_eq!((due(pause - 1), due(pause)), (false, true), "{took} ms");
        }
    }
}
