//! Exchanges, which carry statements between hosts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::part::Part;
use crate::sync::Locked;

/// Transport for the statements of hosts: a key-value store, a shared folder, or messages.
///
/// Each host posts once per round. Rounds are numbered within a series. All hosts begin a series at the start. They begin another after
/// all of them have moved to a state or taken other parts.
pub trait Exchange: Send {
    /// Begins a series of rounds, numbered from 0, for a host with `part`. Statements of earlier series are no longer read.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the index of this host and the number of hosts are unknown.
    fn begin(&mut self, part: &Part) -> Result<()>;

    /// Posts a statement for the other hosts. Does not wait for them.
    ///
    /// # Errors
    /// Errors of sending the statement.
    fn post(&mut self, round: u64, statement: &str) -> Result<()>;

    /// Returns the statements of all hosts, in host order, for a round in which this host has posted.
    ///
    /// A missing statement is `None`. Does not wait for missing statements.
    ///
    /// # Errors
    /// Errors of requesting the statements.
    fn read(&mut self, round: u64) -> Result<Vec<Option<String>>>;

    /// Returns true if a host without a statement in this round has begun another series.
    ///
    /// Such a host was restarted alone, and the others join its series. The default returns false, for exchanges that cannot detect a
    /// restart; the other hosts then wait until their timeout.
    ///
    /// # Errors
    /// Errors of requesting the state of the hosts.
    fn has_begun_anew(&mut self, _round: u64) -> Result<bool> {
        Ok(false)
    }
}

impl<E: Exchange + ?Sized> Exchange for Box<E> {
    fn begin(&mut self, part: &Part) -> Result<()> {
        (**self).begin(part)
    }
    fn post(&mut self, round: u64, statement: &str) -> Result<()> {
        (**self).post(round, statement)
    }
    fn read(&mut self, round: u64) -> Result<Vec<Option<String>>> {
        (**self).read(round)
    }
    fn has_begun_anew(&mut self, round: u64) -> Result<bool> {
        (**self).has_begun_anew(round)
    }
}

/// Returns the index of this host and the number of hosts, from the explicit setting or from the part.
pub(super) fn place(said: Option<(usize, usize)>, part: &Part) -> Result<(usize, usize)> {
    match said.or_else(|| part.as_share()) {
        Some((host, count)) if host < count => Ok((host, count)),
        Some((host, count)) => Err(Error::config(format!("there is no host {host} of {count}"))),
        None => Err(Error::config("a list of rows does not determine the index of this host and the number of hosts")
            .help("give them to the guard: `host(index, count)`")),
    }
}

/// Exchange for hosts that are threads of a process. Each host uses a clone.
#[derive(Clone, Default)]
pub struct InMemory {
    shared: Arc<Mutex<Shared>>,
    said: Option<(usize, usize)>,
    /// Index of this host, number of hosts, and number of the current series; zeros before the first series.
    here: (usize, usize, usize),
}

#[derive(Default)]
struct Shared {
    /// Number of series that each host has begun, by host and number of hosts.
    begun: HashMap<(usize, usize), usize>,
    /// Statements of all hosts, by number of hosts, series and round.
    rounds: HashMap<(usize, usize, u64), Vec<Option<String>>>,
}

impl InMemory {
    /// Creates an exchange for hosts whose parts give their index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the index of this host and the number of hosts. Required if several hosts have equal parts, or if parts are listed.
    #[must_use]
    pub fn host(mut self, index: usize, count: usize) -> Self {
        self.said = Some((index, count));
        self
    }
}

impl Exchange for InMemory {
    fn begin(&mut self, part: &Part) -> Result<()> {
        let (host, count) = place(self.said, part)?;
        let mut shared = self.shared.locked();
        let begun = shared.begun.entry((host, count)).or_default();
        *begun += 1;
        self.here = (host, count, *begun);
        Ok(())
    }

    fn post(&mut self, round: u64, statement: &str) -> Result<()> {
        let (host, count, series) = self.here;
        let mut shared = self.shared.locked();
        let said = shared.rounds.entry((count, series, round)).or_insert_with(|| vec![None; count]);
        if let Some(place) = said.get_mut(host) {
            *place = Some(statement.to_owned());
        }
        Ok(())
    }

    fn read(&mut self, round: u64) -> Result<Vec<Option<String>>> {
        let (_, count, series) = self.here;
        let shared = self.shared.locked();
        Ok(shared.rounds.get(&(count, series, round)).cloned().unwrap_or_else(|| vec![None; count]))
    }

    fn has_begun_anew(&mut self, round: u64) -> Result<bool> {
        let said = self.read(round)?;
        let (_, count, series) = self.here;
        let shared = self.shared.locked();
        let begun = |host: usize| shared.begun.get(&(host, count)).copied().unwrap_or_default();
        Ok(said.iter().enumerate().any(|(host, said)| said.is_none() && begun(host) > series))
    }
}

debug_as!(InMemory, |self, f| f.debug_struct("InMemory").field("here", &self.here).finish_non_exhaustive());
