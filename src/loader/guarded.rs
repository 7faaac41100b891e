//! What a loader does so that hosts which disagree are stopped: it says what it has, and waits for what the others say.

use std::task::Poll;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::dataset::IterDataset;
use crate::dataset::iter::{BatchPlan, Dealt};
use crate::error::{Error, Result};
use crate::fork::Origin;
use crate::part::{DigestBatch, EVERY, Exchange, Fed, Guard, Statement, compare, meeting, silent, wants_details};

use super::here::Here;
use super::last_words::{LAST, LastWords};
use super::{Loader, LoaderBuilder};

/// Time after which a host that has said nothing is an error.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Time between two looks at what others have said, at first and later.
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(100);

/// Guard of a loader: see [`LoaderBuilder::guard`](LoaderBuilder::guard).
pub(super) struct Guarded<T> {
    exchange: Box<dyn Exchange>,
    content: fn(&T) -> Fed,
    timeout: Duration,
    guard: Guard,
    /// Whether the present series of rounds has begun.
    begun: bool,
    /// Rounds of it that this host has spoken in.
    rounds: u64,
    /// Batches behind which it has spoken last.
    spoke_at: u64,
    /// A round that this host has spoken in, and not read.
    unread: Option<u64>,
    /// Since when what is unread is waited for.
    waits: Option<Instant>,
    /// Whether it has said that the stream has ended.
    closed: bool,
    /// The batch behind which all meet before anybody goes on, where a host was started again alone, and goes on from an earlier one.
    meets_at: Option<u64>,
    /// Hosts that agreed last, and up to which batch.
    agreed: Option<(usize, u64)>,
    /// Whether the stream has ended.
    ended: bool,
    /// The error that the stream has ended by and the batch that it came at, while others do not know of it.
    failed: Option<(String, u64)>,
    last_words: LastWords,
    /// The process that posts.
    origin: Origin,
    /// The statement that was made last.
    said: Option<Statement>,
    /// What differs in short, while details are waited for.
    verdict: Option<Error>,
    /// The error of a meeting that was held before the next element was asked for.
    #[cfg(feature = "python")]
    error: Option<Error>,
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
            begun: false,
            rounds: 0,
            spoke_at: 0,
            unread: None,
            waits: None,
            closed: false,
            meets_at: None,
            agreed: None,
            ended: false,
            failed: None,
            last_words: LastWords::default(),
            origin: Origin::here(),
            said: None,
            verdict: None,
            #[cfg(feature = "python")]
            error: None,
        }
    }

    /// Takes in batch `number`, before the rows of the part are taken out of it.
    pub(super) fn feed(&mut self, number: u64, batch: &Dealt<T>) {
        let fed = match batch {
            Dealt::Own(_, _, BatchPlan { digest: Some(plan), .. })
            | Dealt::Whole(_, BatchPlan { digest: Some(plan), .. }) => Fed::Plan(*plan),
            Dealt::Own(_, rows, _) => Fed::Index(rows.batch()),
            Dealt::Whole(batch, _) => (self.content)(batch),
        };
        self.guard.feed(number, fed);
    }

    /// Begins anew with the next batch: all hosts have gone to a state, or have other parts.
    pub(super) fn restart(&mut self) {
        self.begun = false;
    }

    /// Goes on elsewhere in the stream, which has not ended there.
    pub(super) fn go_on(&mut self) {
        (self.ended, self.closed, self.failed) = (false, false, None);
    }

    /// Posts the error that has ended the pass, if that was an error.
    pub(super) fn tell(&mut self) {
        let Some((error, batch)) = self.failed.take() else { return };
        let Some(said) = self.said.take() else { return };
        let mut said = said.behind(&self.guard);
        (said.failed, said.batches) = (Some(error), batch);
        // If a post fails, the others wait until their time is over.
        let _ = self.exchange.post(self.rounds, &said.to_json());
        self.post_last(&said);
    }

    /// Posts the batch after which the loader is closed before its end.
    fn tell_closed(&mut self) {
        if let (Some(said), false, true) = (self.said.take(), self.ended, self.origin.is_here()) {
            let mut said = said.behind(&self.guard);
            said.closed = true;
            self.post_last(&said);
        }
    }

    /// Posts last words, which hosts that have met look for.
    fn post_last(&mut self, said: &Statement) {
        if self.has_met() {
            let _ = self.exchange.post(LAST, &said.to_json());
        }
    }

    /// Whether all hosts have spoken in the first round of this series.
    fn has_met(&self) -> bool {
        self.begun && (self.rounds > 1 || self.unread.is_none())
    }

    /// Speaks and listens where that is due before the next batch, or at the end: pending where others have not spoken within `patience`.
    ///
    /// # Errors
    /// As [`compare`], and for hosts that are silent for too long.
    pub(super) fn meet<S: Serialize>(&mut self, here: &Here<'_, T, S>, patience: Option<Duration>) -> Result<Poll<()>> {
        if !self.begun {
            self.guard = Guard::new(here.delivered);
            self.begin(here, false)?;
        }
        if self.has_met() && !self.closed {
            self.last_words.look(&mut *self.exchange, Instant::now())?;
        }
        let until = patience.map(|patience| Instant::now() + patience);
        while let Some(next) = self.due(here) {
            match next {
                Next::Read(round) => match self.read(round, here.delivered, until) {
                    Ok(Heard::All(said)) => self.compare(&said, here)?,
                    Ok(Heard::Pending) => return Ok(Poll::Pending),
                    // What this host has had since the last round, it tells where all meet.
                    Ok(Heard::Anew) => self.begin(here, true)?,
                    // What differs is known; who has not said more has stopped already.
                    Err(error) => return Err(self.verdict.take().unwrap_or(error)),
                },
                Next::Speak => self.speak_of(here)?,
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Begins a series of rounds; `waits` for a host that was started again, if it was in one before.
    fn begin<S: Serialize>(&mut self, here: &Here<'_, T, S>, waits: bool) -> Result<()> {
        self.exchange.begin(here.parted.part())?;
        (self.begun, self.rounds, self.unread, self.waits, self.closed) = (true, 0, None, None, false);
        (self.verdict, self.meets_at, self.last_words) = (None, None, LastWords::default());
        let mut said = here.statement(&self.guard)?;
        (said.ended, said.waits) = (self.ended, waits);
        self.speak(here.delivered, said)
    }

    /// What is to be done before the next batch.
    fn due<S>(&self, here: &Here<'_, T, S>) -> Option<Next> {
        let speaks = match self.meets_at {
            _ if self.ended => !self.closed,
            Some(batch) => here.delivered >= batch,
            None => here.delivered > self.spoke_at && here.delivered.is_multiple_of(EVERY),
        };
        // Before the first batch, behind the last and where they meet, nobody goes on before all are there; else they have had the time of many batches.
        let waits = self.rounds == 1 || self.closed || self.meets_at.is_some() || self.verdict.is_some();
        match self.unread {
            Some(round) if speaks || waits => Some(Next::Read(round)),
            _ => speaks.then_some(Next::Speak),
        }
    }

    /// Says what is due before the next batch; in detail where hosts meet that have not had the same batches in this series.
    fn speak_of<S: Serialize>(&mut self, here: &Here<'_, T, S>) -> Result<()> {
        let mut said = here.statement(&self.guard)?;
        (said.ended, self.closed) = (self.ended, self.ended);
        if self.meets_at.is_some() {
            said = said.detailed(&self.guard, here.identity.lines().to_vec(), here.sources());
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
        self.exchange.post(self.rounds, &statement.to_json())?;
        self.unread = Some(self.rounds);
        self.rounds += 1;
        Ok(())
    }

    /// Compares what all have said. Where it differs in short, all of them see that here, and go into details.
    fn compare<S>(&mut self, said: &[String], here: &Here<'_, T, S>) -> Result<()> {
        match (compare(said), self.said.clone()) {
            (Err(error), Some(own)) if self.verdict.is_none() && wants_details(said) => {
                self.verdict = Some(error);
                self.post(&own.detailed(&self.guard, here.identity.lines().to_vec(), here.sources()))
            }
            (compared, _) => {
                compared?;
                // In detail it may be that hosts have nothing in common that could differ.
                (self.verdict, self.agreed) = (None, Some((said.len(), self.spoke_at)));
                let met = std::mem::replace(&mut self.meets_at, meeting(said)).is_some();
                if met {
                    // From here on all have had the same.
                    self.guard = Guard::new(here.delivered);
                }
                Ok(())
            }
        }
    }

    /// Reads what all hosts have said in a round.
    fn read(&mut self, round: u64, batch: u64, until: Option<Instant>) -> Result<Heard> {
        let mut nap = SHORT;
        let said = loop {
            // Before the exchange is read: other hosts are not late if this one is slow.
            let now = Instant::now();
            let since = *self.waits.get_or_insert(now);
            let said = self.exchange.read(round)?;
            if said.iter().all(Option::is_some) {
                break said;
            }
            if self.verdict.is_none() && self.exchange.has_begun_anew(round)? {
                return Ok(Heard::Anew);
            }
            if self.has_met() && self.verdict.is_none() {
                self.last_words.look(&mut *self.exchange, now)?;
            }
            match wait(now, since, self.timeout, until, nap) {
                Wait::Over => {
                    let missing = said.iter().enumerate().filter(|(_, said)| said.is_none());
                    let missing: Vec<usize> = missing.map(|(host, _)| host).collect();
                    if self.has_met() {
                        self.last_words.read(&mut *self.exchange)?;
                    }
                    let closed = self.last_words.in_words();
                    return Err(silent(&missing, said.len(), batch, self.timeout, &closed));
                }
                Wait::Pending => return Ok(Heard::Pending),
                // An exchange is looked at: a folder on a disk reports nothing.
                Wait::Nap(nap) => std::thread::sleep(nap),
            }
            nap = (2 * nap).min(LONG);
        };
        (self.unread, self.waits) = (None, None);
        Ok(Heard::All(said.into_iter().flatten().collect()))
    }

    /// Says how far hosts agree, for the report.
    pub(super) fn remark(&self) -> String {
        match self.agreed {
            None => "the hosts have not been compared yet".to_owned(),
            Some((1, _)) => "there are no other hosts".to_owned(),
            Some((hosts, batch)) => format!("{hosts} hosts agreed up to batch {batch}"),
        }
    }
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    /// Compares this host with the others before the first batch, every [128](crate::part::EVERY) batches and at the end: one with other files, another pipeline or a
    /// function with randomness of its own is an error on all of them. See [`compare`](crate::part::compare), and
    /// [`Exchange`] for how hosts speak. It needs a [part](Self::part), and costs [an eighth](DigestBatch) of a reading of each batch.
    pub fn guard(mut self, exchange: impl Exchange + 'static) -> Self
    where
        D::Item: DigestBatch,
    {
        self.guarded = Some(Guarded::new(Box::new(exchange)));
        self
    }

    /// Time after which a host that has said nothing to the others is an error; 10 minutes at first.
    pub fn guard_timeout(mut self, timeout: Duration) -> Self {
        self.guard_timeout = Some(timeout);
        self
    }

    /// The guard that was asked for.
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
    /// Compares this host with others over another exchange from the next batch on: behind [`repart`](Self::repart), where hosts have come or gone.
    /// See [`LoaderBuilder::guard`](LoaderBuilder::guard).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) without a part.
    pub fn guard(&mut self, exchange: impl Exchange + 'static) -> Result<()>
    where
        D::Item: DigestBatch,
    {
        self.parted.as_ref().ok_or_else(partless)?;
        let mut guarded = Guarded::new(Box::new(exchange));
        guarded.timeout = self.guarded.as_ref().map_or(TIMEOUT, |guarded| guarded.timeout);
        self.guarded = Some(guarded);
        Ok(())
    }

    /// The next element, once the others have said what is due; pending where nothing was there within `patience`.
    pub(super) fn advance_guarded(&mut self, patience: Option<Duration>) -> Result<Poll<Option<D::Item>>> {
        self.check_process()?;
        if self.meet(patience)?.is_pending() {
            return Ok(Poll::Pending);
        }
        if self.guarded.as_ref().is_some_and(|guarded| guarded.ended) {
            return Ok(Poll::Ready(None));
        }
        let next = self.advance(patience);
        let Some(guarded) = &mut self.guarded else { return next };
        match &next {
            Err(error) => guarded.failed = Some((error.to_string(), self.delivered)),
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
        let (Some(guarded), Some(parted)) = (&mut self.guarded, &self.parted) else { return Ok(Poll::Ready(())) };
        #[cfg(feature = "python")]
        if let Some(error) = guarded.error.take() {
            return Err(error);
        }
        let here = Here {
            pipeline: &*self.dataset,
            identity: &self.identity,
            parted,
            delivered: self.delivered,
            state: &self.state,
        };
        guarded.meet(&here, patience)
    }

    /// Whether others have not said within `patience` what is due before the next element: for those who then hold what others need to say it.
    #[cfg(feature = "python")]
    pub(crate) fn waits_for_others(&mut self, patience: Duration) -> bool {
        let met = if self.ended { Ok(Poll::Ready(())) } else { self.meet(Some(patience)) };
        match (met, &mut self.guarded) {
            (Err(error), Some(guarded)) => {
                guarded.error = Some(error);
                false
            }
            (met, _) => met.is_ok_and(|met| met.is_pending()),
        }
    }

    /// Goes on with the guard that `other`, a pass over the same rows, has: where it is, or with all hosts `anew` from where this is.
    #[cfg(feature = "python")]
    pub(crate) fn take_guard(&mut self, other: &mut Self, anew: bool) {
        self.guarded = other.guarded.take();
        if let Some(guarded) = &mut self.guarded {
            guarded.go_on();
            guarded.begun &= !anew;
        }
    }

    /// Compares no more.
    #[cfg(feature = "python")]
    pub(crate) fn unguard(&mut self) {
        self.guarded = None;
    }

    /// Tells the other hosts of the error that has ended this pass.
    #[cfg(feature = "python")]
    pub(crate) fn tell_failure(&mut self) {
        if let Some(guarded) = &mut self.guarded {
            guarded.tell();
        }
    }
}

/// The error where hosts are to be compared, and this is none of several.
#[cold]
fn partless() -> Error {
    Error::config("hosts are to be compared, and no part says which rows of a batch this one takes").help("add `part`")
}

enum Next {
    Read(u64),
    Speak,
}

/// What comes of listening to the others.
enum Heard {
    All(Vec<String>),
    Pending,
    /// One of them was started again alone.
    Anew,
}

/// The next step of a host that waits for others.
#[derive(Debug, PartialEq, Eq)]
enum Wait {
    /// The others were silent for too long.
    Over,
    /// The consumer's patience is over.
    Pending,
    /// Time until the next look.
    Nap(Duration),
}

/// Decides at `now` about a wait that began at `since`. The consumer waits `until` then, if its patience is limited.
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
        // Time of the look, end of the consumer's patience, nap until the next look; the decision.
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
