//! Ways from host to host.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::error::{Error, Result};
use crate::part::Part;
use crate::sync::Locked;

/// A way for hosts to read what the others say: a key-value store, a folder that all of them see, messages.
///
/// Hosts speak in rounds, each once in each. Rounds are counted in series: all hosts begin one at the start, and another where all of them go to a state or take
/// other parts.
pub trait Exchange: Send {
    /// Begins a series of rounds, the first of which is 0. This host has `part`; nothing of earlier series is read any more.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if it cannot tell which host of how many this is.
    fn begin(&mut self, part: &Part) -> Result<()>;

    /// Lets the others read a statement. It does not wait for them.
    ///
    /// # Errors
    /// If it cannot be sent.
    fn post(&mut self, round: u64, statement: &str) -> Result<()>;

    /// What each host has said in a round in which this one has, the first host first; `None` where one has said nothing yet. It does not wait for that.
    ///
    /// # Errors
    /// If it cannot be asked for.
    fn read(&mut self, round: u64) -> Result<Vec<Option<String>>>;

    /// Whether a host that has said nothing in a round has begun another series: it was started again alone, and the others begin that series with
    /// it. Where an exchange cannot know, as this says if nothing else is said, they wait for such a host in vain.
    ///
    /// # Errors
    /// If it cannot be asked for.
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

/// This host of how many: as it was said, or by its part.
pub(super) fn place(said: Option<(usize, usize)>, part: &Part) -> Result<(usize, usize)> {
    match said.or_else(|| part.as_share()) {
        Some((host, count)) if host < count => Ok((host, count)),
        Some((host, count)) => Err(Error::config(format!("there is no host {host} of {count}"))),
        None => Err(Error::config("rows that are listed do not say which host of how many this is")
            .help("say it where hosts are guarded: `host(index, count)`")),
    }
}

/// An exchange for hosts that are threads of one process. A clone of it is one host's.
#[derive(Clone, Default)]
pub struct InMemory {
    shared: Arc<Mutex<Shared>>,
    said: Option<(usize, usize)>,
    /// The place of this host and the number of its series, since it has begun one.
    here: (usize, usize, usize),
}

#[derive(Default)]
struct Shared {
    /// Series that each host of so many has begun.
    begun: HashMap<(usize, usize), usize>,
    /// Statements by hosts, series and round.
    rounds: HashMap<(usize, usize, u64), Vec<Option<String>>>,
}

impl InMemory {
    /// An exchange of hosts whose parts say which they are.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for host `index` of `count`: where several have one part, and where parts are listed.
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

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemory").field("here", &self.here).finish_non_exhaustive()
    }
}
