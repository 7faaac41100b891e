//! The guard of a loader, which stops hosts that disagree. It posts this host's statements, and reads the statements of the others.

use std::task::Poll;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::here::Here;
use super::last_words::{LAST, LastWords};
use super::{Loader, LoaderBuilder};
use crate::dataset::IterDataset;
use crate::dataset::iter::{BatchPlan, Dealt};
use crate::error::{Error, Result};
use crate::fork::Origin;
use crate::part::{DigestBatch, EVERY, Exchange, Fed, Guard, Statement, compare, meeting, silent, wants_details};

/// Time after which a silent host is an error.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Minimum and maximum time between two looks at the statements of other hosts.
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(100);

/// Guard of a loader: see [`LoaderBuilder::guard`](LoaderBuilder::guard).
pub(super) struct Guarded<T> {
    exchange: Box<dyn Exchange>,
    content: fn(&T) -> Fed,
    timeout: Duration,
    guard: Guard,
    series: Series,
    /// Number of batches before the last statement.
    spoke_at: u64,
    /// Number of hosts that agreed last, and the batch up to which they agreed.
    agreed: Option<(usize, u64)>,
    /// Whether the stream has ended.
    ended: bool,
    /// Error that ended the stream, and its batch, until the error is posted.
    failed: Option<(String, u64)>,
    /// Process that posts the statements.
    origin: Origin,
    /// Last statement of this host.
    said: Option<Statement>,
    /// Error of a meeting that was held before the consumer asked for the next element.
    error: Option<Error>,
}

/// A series of rounds, in each of which every host posts a statement.
#[derive(Default)]
struct Series {
    /// Whether the series has begun.
    begun: bool,
    /// Number of rounds in which this host has posted.
    rounds: u64,
    /// Round in which this host has posted, but which it has not read.
    unread: Option<u64>,
    /// Start of the wait for the unread round.
    waits: Option<Instant>,
    /// Whether this host has posted the end of its stream.
    closed: bool,
    /// Batch after which all hosts meet, if a host was restarted alone and continues from an earlier batch.
    meets_at: Option<u64>,
    /// Disagreement in short statements, until the detailed statements arrive.
    verdict: Option<Error>,
    last_words: LastWords,
}

impl<T> Guarded<T> {
    pub(super) fn new(exchange: Box<dyn Exchange>) -> Self
    where
        T: DigestBatch,
    {
        Self {
            exchange,
            content: |batch| Fed::content(batch),
            timeout: TIMEOUT,
            guard: Guard::new(0),
            series: Series::default(),
            spoke_at: 0,
            agreed: None,
            ended: false,
            failed: None,
            origin: Origin::here(),
            said: None,
            error: None,
        }
    }

    /// Feeds batch `number` to the guard, before the rows of the part are taken from it.
    pub(super) fn feed(&mut self, number: u64, batch: &Dealt<T>) {
        let fed = match batch {
            Dealt::Own(_, _, BatchPlan { digest: Some(plan), .. })
            | Dealt::Whole(_, BatchPlan { digest: Some(plan), .. }) => Fed::Plan(*plan),
            Dealt::Own(_, rows, _) => Fed::Index(rows.batch()),
            Dealt::Whole(batch, _) => (self.content)(batch),
            Dealt::Planned(plan) => Fed::Plan(plan.digest()),
        };
        self.guard.feed(number, fed);
    }

    /// Begins another series with the next batch, after all hosts have moved to a state or have taken other parts.
    pub(super) fn restart(&mut self) {
        self.series.begun = false;
    }

    /// Forgets the end and the error of the stream, after a move of the loader.
    pub(super) fn go_on(&mut self) {
        (self.ended, self.series.closed, self.failed) = (false, false, None);
    }

    /// Posts the error that ended the pass, if any.
    pub(super) fn tell(&mut self) {
        let Some((error, batch)) = self.failed.take() else { return };
        let Some(said) = self.said.take() else { return };
        let mut said = said.behind(&self.guard);
        (said.failed, said.batches) = (Some(error), batch);
        // If a post fails, the others wait until their timeout.
        let _ = self.exchange.post(self.series.rounds, &said.to_json());
        self.post_last(&said);
    }

    /// Posts the batch after which the loader was closed, if it was closed before the end.
    fn tell_closed(&mut self) {
        if let (Some(said), false, true) = (self.said.take(), self.ended, self.origin.is_here()) {
            let mut said = said.behind(&self.guard);
            said.closed = true;
            self.post_last(&said);
        }
    }

    /// Posts last words if all hosts have met: only hosts that have met look for them.
    fn post_last(&mut self, said: &Statement) {
        if self.has_met() {
            let _ = self.exchange.post(LAST, &said.to_json());
        }
    }

    /// Returns true if all hosts have posted in the first round of this series.
    fn has_met(&self) -> bool {
        self.series.begun && (self.series.rounds > 1 || self.series.unread.is_none())
    }

    /// Posts and reads the statements that are due before the next batch, or at the end.
    /// Pending if other hosts have not posted within `patience`.
    ///
    /// # Errors
    /// As [`compare`], and if a host is silent until the timeout.
    pub(super) fn meet<S: Serialize>(&mut self, here: &Here<'_, T, S>, patience: Option<Duration>) -> Result<Poll<()>> {
        if !self.series.begun {
            self.guard = Guard::new(here.delivered);
            self.begin(here, false)?;
        }
        if self.has_met() && !self.series.closed {
            self.series.last_words.look(&mut *self.exchange, Instant::now())?;
        }
        let until = patience.map(|patience| Instant::now() + patience);
        while let Some(next) = self.due(here) {
            match next {
                Next::Read(round) => match self.read(round, here.delivered, until) {
                    Ok(Heard::All(said)) => self.compare(&said, here)?,
                    Ok(Heard::Pending) => return Ok(Poll::Pending),
                    // The meeting compares this host's batches since the last round.
                    Ok(Heard::Anew) => self.begin(here, true)?,
                    // The disagreement is known. A host that posts no details has already stopped.
                    Err(error) => return Err(self.series.verdict.take().unwrap_or(error)),
                },
                Next::Speak => self.speak_of(here)?,
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Begins a series of rounds. `waits`: this host was in a series before, and waits for a restarted host.
    fn begin<S: Serialize>(&mut self, here: &Here<'_, T, S>, waits: bool) -> Result<()> {
        self.exchange.begin(here.parted.part())?;
        self.series = Series { begun: true, ..Series::default() };
        let mut said = here.statement(&self.guard)?;
        (said.ended, said.waits) = (self.ended, waits);
        self.speak(here.delivered, said)
    }

    /// Returns the step that is due before the next batch.
    fn due<S>(&self, here: &Here<'_, T, S>) -> Option<Next> {
        let speaks = match self.series.meets_at {
            _ if self.ended => !self.series.closed,
            Some(batch) => here.delivered >= batch,
            None => here.delivered > self.spoke_at && here.delivered.is_multiple_of(EVERY),
        };
        // Before the first batch, after the last batch and at a meeting, no host continues before all have posted.
        // In other rounds, hosts have had the time of many batches to post.
        let waits = self.series.rounds == 1
            || self.series.closed
            || self.series.meets_at.is_some()
            || self.series.verdict.is_some();
        match self.series.unread {
            Some(round) if speaks || waits => Some(Next::Read(round)),
            _ => speaks.then_some(Next::Speak),
        }
    }

    /// Posts the statement that is due before the next batch.
    /// The statement has details if the hosts at a meeting have read different batches in this series.
    fn speak_of<S: Serialize>(&mut self, here: &Here<'_, T, S>) -> Result<()> {
        let mut said = here.statement(&self.guard)?;
        (said.ended, self.series.closed) = (self.ended, self.ended);
        if self.series.meets_at.is_some() {
            said = said.detailed(&self.guard, here.identity.shared_lines(), here.sources());
        }
        self.speak(here.delivered, said)
    }

    fn speak(&mut self, delivered: u64, said: Statement) -> Result<()> {
        self.spoke_at = delivered;
        self.post(&said)?;
        self.said = Some(said);
        Ok(())
    }

    fn post(&mut self, statement: &Statement) -> Result<()> {
        self.exchange.post(self.series.rounds, &statement.to_json())?;
        self.series.unread = Some(self.series.rounds);
        self.series.rounds += 1;
        Ok(())
    }

    /// Compares the statements of all hosts. If short statements differ, every host sees the difference here, and posts details.
    fn compare<S>(&mut self, said: &[String], here: &Here<'_, T, S>) -> Result<()> {
        match (compare(said), self.said.clone()) {
            (Err(error), Some(own)) if self.series.verdict.is_none() && wants_details(said) => {
                self.series.verdict = Some(error);
                self.post(&own.detailed(&self.guard, here.identity.shared_lines(), here.sources()))
            }
            (compared, _) => {
                compared?;
                // Detailed statements may have no batches in common that could differ.
                (self.series.verdict, self.agreed) = (None, Some((said.len(), self.spoke_at)));
                let met = std::mem::replace(&mut self.series.meets_at, meeting(said)).is_some();
                if met {
                    // From here on all hosts read the same batches.
                    self.guard = Guard::new(here.delivered);
                }
                Ok(())
            }
        }
    }

    /// Reads the statements of all hosts in a round.
    fn read(&mut self, round: u64, batch: u64, until: Option<Instant>) -> Result<Heard> {
        let mut nap = SHORT;
        let said = loop {
            // Measured before the exchange is read: a slow exchange does not make other hosts late.
            let now = Instant::now();
            let since = *self.series.waits.get_or_insert(now);
            let said = self.exchange.read(round)?;
            if said.iter().all(Option::is_some) {
                break said;
            }
            if self.series.verdict.is_none() && self.exchange.has_begun_anew(round)? {
                return Ok(Heard::Anew);
            }
            if self.has_met() && self.series.verdict.is_none() {
                self.series.last_words.look(&mut *self.exchange, now)?;
            }
            match wait(now, since, self.timeout, until, nap) {
                Wait::Over => {
                    let missing: Vec<usize> = (0..said.len()).filter(|&host| said[host].is_none()).collect();
                    if self.has_met() {
                        self.series.last_words.read(&mut *self.exchange)?;
                    }
                    let (hosts, closed) = (said.len(), self.series.last_words.in_words());
                    return Err(silent(&missing, hosts, batch, self.timeout, &closed));
                }
                Wait::Pending => return Ok(Heard::Pending),
                // The exchange is polled: a folder on a disk sends no notifications.
                Wait::Nap(nap) => std::thread::sleep(nap),
            }
            nap = (2 * nap).min(LONG);
        };
        (self.series.unread, self.series.waits) = (None, None);
        Ok(Heard::All(said.into_iter().flatten().collect()))
    }

    /// Returns a description of the hosts' agreement, for the report.
    pub(super) fn remark(&self) -> String {
        match self.agreed {
            None => "the hosts have not been compared yet".to_owned(),
            Some((1, _)) => "there are no other hosts".to_owned(),
            Some((hosts, batch)) => format!("{hosts} hosts agreed up to batch {batch}"),
        }
    }
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    /// Compares this host with the other hosts before the first batch, every [128](crate::part::EVERY) batches and at the end.
    ///
    /// If a host has other files, another pipeline or a function that draws unseeded random numbers, all hosts end with an error.
    /// A guard requires a [part](Self::part), and costs [an eighth](DigestBatch) of a read of each batch.
    ///
    /// See [`compare`](crate::part::compare) for the comparison, and [`Exchange`] for the exchange of statements between hosts.
    pub fn guard(mut self, exchange: impl Exchange + 'static) -> Self
    where
        D::Item: DigestBatch,
    {
        self.guarded = Some(Guarded::new(Box::new(exchange)));
        self
    }

    /// Sets the time after which a silent host is an error; 10 minutes by default.
    pub fn guard_timeout(mut self, timeout: Duration) -> Self {
        self.guard_timeout = Some(timeout);
        self
    }

    /// Returns the guard, if one was set.
    pub(super) fn guarded(&mut self, has_part: bool) -> Result<Option<Guarded<D::Item>>> {
        let Some(mut guarded) = self.guarded.take() else { return Ok(None) };
        if !has_part {
            return Err(partless());
        }
        guarded.timeout = self.guard_timeout.unwrap_or(guarded.timeout);
        Ok(Some(guarded))
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Compares this host with other hosts over another exchange, from the next batch on.
    /// Used after [`repart`](Self::repart), if hosts have joined or left. See [`LoaderBuilder::guard`](LoaderBuilder::guard).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) without a part.
    pub fn guard(&mut self, exchange: impl Exchange + 'static) -> Result<()>
    where
        D::Item: DigestBatch,
    {
        self.host.parted.as_ref().ok_or_else(partless)?;
        let mut guarded = Guarded::new(Box::new(exchange));
        guarded.timeout = self.host.guarded.as_ref().map_or(TIMEOUT, |guarded| guarded.timeout);
        self.host.guarded = Some(guarded);
        Ok(())
    }

    /// Returns the next element, after the other hosts have posted their due statements. Pending if this takes longer than `patience`.
    pub(super) fn advance_guarded(&mut self, patience: Option<Duration>) -> Result<Poll<Option<D::Item>>> {
        self.check_process()?;
        if self.meet(patience)?.is_pending() {
            return Ok(Poll::Pending);
        }
        if self.host.guarded.as_ref().is_some_and(|guarded| guarded.ended) {
            return Ok(Poll::Ready(None));
        }
        let next = self.advance(patience);
        let Some(guarded) = &mut self.host.guarded else { return next };
        match &next {
            Err(error) => guarded.failed = Some((error.to_string(), self.position.delivered)),
            Ok(Poll::Ready(None)) => {
                guarded.ended = true;
                if self.meet(patience)?.is_pending() {
                    return Ok(Poll::Pending);
                }
            }
            Ok(_) => {}
        }
        next
    }

    fn meet(&mut self, patience: Option<Duration>) -> Result<Poll<()>> {
        let (Some(guarded), Some(parted)) = (&mut self.host.guarded, &self.host.parted) else {
            return Ok(Poll::Ready(()));
        };
        if let Some(error) = guarded.error.take() {
            return Err(error);
        }
        let here = Here {
            pipeline: &*self.dataset,
            identity: &self.identity,
            parted,
            delivered: self.position.delivered,
            state: &self.position.state,
        };
        guarded.meet(&here, patience)
    }
}

impl<D: IterDataset + 'static> Loader<D> {
    /// Returns true if other hosts have not posted their due statements within `patience`.
    /// Used by callers that would otherwise hold a lock that other hosts need in order to post.
    pub(crate) fn waits_for_others(&mut self, patience: Duration) -> bool {
        let met = if self.ended { Ok(Poll::Ready(())) } else { self.meet(Some(patience)) };
        match (met, &mut self.host.guarded) {
            (Err(error), Some(guarded)) => {
                guarded.error = Some(error);
                false
            }
            (met, _) => met.is_ok_and(|met| met.is_pending()),
        }
    }

    /// Takes over the guard of `other`, a pass over the same rows.
    /// The series of rounds continues, unless all hosts begin `anew` here.
    pub(crate) fn take_guard(&mut self, other: &mut Self, anew: bool) {
        self.host.guarded = other.host.guarded.take();
        if let Some(guarded) = &mut self.host.guarded {
            guarded.go_on();
            guarded.series.begun &= !anew;
        }
    }

    /// Stops the comparison with other hosts.
    pub(crate) fn unguard(&mut self) {
        self.host.guarded = None;
    }

    /// Posts the error that ended this pass to the other hosts.
    pub(crate) fn tell_failure(&mut self) {
        if let Some(guarded) = &mut self.host.guarded {
            guarded.tell();
        }
    }
}

/// Makes the error for a guard without a part.
#[cold]
fn partless() -> Error {
    Error::config("hosts cannot be compared without a part, which gives the rows of this host").help("add `part`")
}

enum Next {
    Read(u64),
    Speak,
}

/// Outcome of reading a round.
enum Heard {
    All(Vec<String>),
    Pending,
    /// A host was restarted alone.
    Anew,
}

/// Next step of a host that waits for others.
#[derive(Debug, PartialEq, Eq)]
enum Wait {
    /// The others were silent until the timeout.
    Over,
    /// The consumer's timeout has passed.
    Pending,
    /// Time until the next look.
    Nap(Duration),
}

/// Decides at `now` about a wait that began at `since`. `until`: end of the consumer's patience, if limited.
fn wait(now: Instant, since: Instant, timeout: Duration, until: Option<Instant>, nap: Duration) -> Wait {
    if now.saturating_duration_since(since) > timeout {
        return Wait::Over;
    }
    match until.map(|until| until.saturating_duration_since(now)) {
        Some(Duration::ZERO) => Wait::Pending,
        left => Wait::Nap(nap.min(left.unwrap_or(nap))),
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        self.tell();
        self.tell_closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_given_up_just_after_the_time_out_and_not_before() {
        let (since, ms) = (Instant::now(), Duration::from_millis);
        let nap = |time| Wait::Nap(ms(time));
        // Time of the look, end of the consumer's patience, time until the next look; the decision.
        for (at, until, next, expected) in [
            (0, None, 2, nap(2)),
            (299, None, 100, nap(100)),
            (300, None, 100, nap(100)),
            (301, None, 100, Wait::Over),
            (0, Some(0), 2, Wait::Pending),
            (50, Some(51), 2, nap(1)),
            (50, Some(60), 2, nap(2)),
            (60, Some(60), 2, Wait::Pending),
            (70, Some(60), 2, Wait::Pending),
            (300, Some(300), 2, Wait::Pending),
            (301, Some(300), 2, Wait::Over),
            (301, Some(900), 2, Wait::Over),
        ] {
            let until = until.map(|until| since + ms(until));
            assert_eq!(wait(since + ms(at), since, ms(300), until, ms(next)), expected, "{at} ms, {until:?}");
        }
        assert_eq!(wait(since, since, Duration::ZERO, None, SHORT), Wait::Nap(SHORT), "each host is looked at once");
    }
}
