//! Retries of requests: which failures are retried, when, and the final error.

use std::borrow::Cow;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::hosts::NoHost;
use super::refused::Refused;
use super::runtime;
use super::service::Told;
use crate::error::{Error, ErrorKind};
use crate::store::options::StoreOptions;

/// Permanent failure: an [`Error`] that several threads may receive.
#[derive(Clone, Debug)]
pub(in crate::store) struct Failure {
    pub(in crate::store) kind: ErrorKind,
    pub(in crate::store) message: String,
    pub(in crate::store) help: Option<Cow<'static, str>>,
}

impl Failure {
    pub(in crate::store) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    pub(in crate::store) fn help(self, help: impl Into<Cow<'static, str>>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub(in crate::store) fn error(self) -> Error {
        let error = Error::new(self.kind, self.message);
        if let Some(help) = self.help { error.help(help) } else { error }
    }
}

/// Failure of a single attempt.
#[derive(Debug)]
pub(in crate::store) enum Fault {
    /// Another attempt may succeed.
    Again { cause: String, after: Option<Duration> },
    /// All further attempts would fail.
    Final(Failure),
}

impl Fault {
    pub(in crate::store) fn again(cause: impl Into<String>) -> Self {
        Self::Again { cause: cause.into(), after: None }
    }

    /// Classifies the error of a client by the server's response.
    pub(in crate::store) fn of(error: &object_store::Error, told: &Told) -> Self {
        if let Some(text) = super::hub::refusal(error) {
            return Self::Final(Failure::new(ErrorKind::Io, text));
        }
        if let Some(none) = NoHost::in_error(error) {
            return Self::Final(none.failure());
        }
        let is = |kind, text: &str| Failure::new(kind, text);
        let refused = || refused(told.status.unwrap_or_default(), &told.refused);
        match (told.status, error) {
            (Some(404), _) => Self::Final(missing(&told.refused)),
            (Some(412), _) => Self::Final(changed("the server has another version of it")),
            (Some(416), _) => Self::Final(changed("the server reports a smaller size")),
            (Some(408 | 429 | 500..), _) => Self::Again { cause: refused().message, after: told.retry_after },
            (Some(300..), _) => Self::Final(refused()),
            (Some(200), object_store::Error::NotSupported { .. }) => Self::Final(
                is(ErrorKind::Unsupported, "the server does not support range requests")
                    .help("copy the file to this machine, or to a server that does"),
            ),
            // Nothing was sent, so the error is on this side.
            (None, _) if !told.sent => Self::Final(is(ErrorKind::Config, &root_cause(error))),
            _ => Self::again(root_cause(error)),
        }
    }
}

/// Returns the failure for an object that has changed since its opening.
pub(in crate::store) fn changed(how: &str) -> Failure {
    Failure::new(ErrorKind::Data, format!("changed since it was opened: {how}"))
        .help("do not replace objects while they are read: write new objects under new names")
}

/// Returns the failure for a request that a server refused, with the reason.
fn refused(status: u16, refused: &Refused) -> Failure {
    let text = refused.told(format!("the server answered {status}"));
    let failure = match status {
        300..=399 => Failure::new(
            ErrorKind::Io,
            format!("{text}: it redirects to another place, and signed requests do not follow redirects"),
        )
        .help(refused.region_help()),
        401 | 403 => {
            Failure::new(ErrorKind::Io, text).help("check the credentials in the environment, and their permissions")
        }
        _ => Failure::new(ErrorKind::Io, text),
    };
    refused.help().into_iter().fold(failure, Failure::help)
}

/// Returns the failure for an object or a bucket that does not exist.
fn missing(refused: &Refused) -> Failure {
    match refused.is_of_bucket() {
        true => refused
            .help()
            .into_iter()
            .fold(Failure::new(ErrorKind::Io, refused.told("there is no such bucket")), Failure::help),
        false => Failure::new(ErrorKind::Io, "there is no such object"),
    }
}

/// Returns the innermost cause. The outer causes contain the URL, which may be signed, or quote the configuration. A
/// JSON error is reduced to its position, because its text may quote a key.
pub(in crate::store) fn root_cause(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<serde_json::Error>() {
        Some(json) => format!("credentials that are not understood, at line {}, column {}", json.line(), json.column()),
        None => cause.to_string(),
    }
}

/// Attempts at a request.
#[derive(Debug)]
pub(in crate::store) struct Attempts {
    made: u32,
    most: u32,
    /// Time of all attempts and of the pauses between them.
    spent: Duration,
    timeout: Duration,
    stall: Duration,
}

/// Attempt in progress.
#[derive(Debug)]
pub(in crate::store) struct Attempt {
    begun: Instant,
    /// Deadline of all attempts. `None` if the clock cannot represent the deadline.
    end: Option<Instant>,
    stall: Duration,
}

impl Attempt {
    /// Waits for a part of the attempt, at most until the stall time or the deadline.
    ///
    /// # Errors
    /// Returns the time that was waited, if the part took longer.
    pub(in crate::store) async fn within<F: Future>(&self, part: F) -> Result<F::Output, Duration> {
        let most = self.patience(Instant::now());
        timeout(most, part).await.map_err(|_| most)
    }

    /// Returns the longest wait for a part that begins at `now`.
    fn patience(&self, now: Instant) -> Duration {
        let left = self.end.map_or(Duration::MAX, |end| end.saturating_duration_since(now));
        self.stall.min(left)
    }

    /// Returns true if no time is left at `now`.
    pub(in crate::store) fn is_over(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| end <= now)
    }
}

/// First pause, and the longest pause that a server has not requested.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];

impl Attempts {
    pub(in crate::store) fn new(options: &StoreOptions) -> Self {
        let StoreOptions { attempts: most, timeout, stall, .. } = *options;
        Self { made: 0, most, spent: Duration::ZERO, timeout, stall }
    }

    /// Begins an attempt at `begun`. Earlier attempts and pauses have reduced its remaining time.
    pub(in crate::store) fn begin(&self, begun: Instant) -> Attempt {
        Attempt { begun, end: begun.checked_add(self.timeout.saturating_sub(self.spent)), stall: self.stall }
    }

    /// Ends an attempt at `now`, and adds its time to the total.
    pub(in crate::store) fn end(&mut self, attempt: &Attempt, now: Instant) {
        self.spent += now.saturating_duration_since(attempt.begun);
    }

    /// Waits for the next attempt after a failed attempt.
    ///
    /// # Errors
    /// See [`pause_after`](Self::pause_after).
    pub(in crate::store) async fn next(&mut self, fault: Fault) -> Result<(), Failure> {
        // The pause is the back-off itself.
        tokio::time::sleep(self.pause_after(fault)?).await;
        Ok(())
    }

    /// Resets the number of failed attempts, because an attempt received bytes. The time budget is not reset.
    pub(in crate::store) fn progressed(&mut self) {
        self.made = 0;
    }

    /// Returns the pause before the next attempt. The pause is part of the time budget.
    ///
    /// # Errors
    /// Returns a failure if the fault is final, or if attempts or time are used up.
    fn pause_after(&mut self, fault: Fault) -> Result<Duration, Failure> {
        let (cause, after) = match fault {
            Fault::Final(failure) => return Err(failure),
            Fault::Again { cause, after } => (cause, after),
        };
        self.made += 1;
        let pause = after.unwrap_or_else(|| self.pause());
        let left = self.timeout.saturating_sub(self.spent);
        if self.made >= self.most || pause >= left {
            return Err(self.give_up(&cause, left, pause));
        }
        tracing::debug!(cause, attempt = self.made, ?pause, "trying again");
        self.spent += pause;
        Ok(pause)
    }

    /// Returns a random pause of 50 to 100 % of the full pause, which doubles with each attempt. Clients that failed
    /// together thus do not retry together.
    fn pause(&self) -> Duration {
        let [first, longest] = PAUSES;
        let full = first.saturating_mul(1 << (self.made - 1).min(20)).min(longest);
        let random = RandomState::new().hash_one(self.made) as u32;
        full / 2 + (full / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
    }

    fn give_up(&self, cause: &str, left: Duration, pause: Duration) -> Failure {
        let (made, most) = (self.made, self.most);
        let (seconds, allowed) = (self.spent.as_secs_f64(), self.timeout.as_secs_f64());
        let why = match () {
            () if made >= most => format!("gave up after {made} attempts in {seconds:.1} s"),
            () if left.is_zero() => {
                format!("gave up after {made} attempts in {seconds:.1} s, limit {allowed:.1} s for all attempts")
            }
            () => format!(
                "gave up after {made} attempts in {seconds:.1} s, limit {allowed:.1} s, before a pause of {:.1} s",
                pause.as_secs_f64()
            ),
        };
        Failure::new(ErrorKind::Io, format!("{why}: {cause}"))
            .help("`StoreOptions` (`GRISTMILL_STORE_ATTEMPTS`, `GRISTMILL_STORE_TIMEOUT`) sets these limits")
    }
}

/// Waits for a task of a client with built-in retries, at most the time allowed for all attempts.
///
/// # Errors
/// [`ErrorKind::Io`] if the task takes longer.
pub(in crate::store) fn patiently<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> Result<T, Error> {
    let most = StoreOptions::current().timeout;
    runtime::wait(timeout_of(most, task))?
}

async fn timeout_of<T>(most: Duration, task: impl Future<Output = T>) -> Result<T, Error> {
    timeout(most, task).await.map_err(|_| {
        Error::new(ErrorKind::Io, format!("gave up after {:.1} s, the time limit", most.as_secs_f64()))
            .help("`StoreOptions` (`GRISTMILL_STORE_TIMEOUT`) sets this limit")
    })
}

/// Converts the error of a client that has used up its retries.
#[cold]
pub(in crate::store) fn given_up(error: &object_store::Error) -> Error {
    use object_store::Error as E;
    if let Some(text) = super::hub::refusal(error) {
        return Error::new(ErrorKind::Io, text);
    }
    if let Some(none) = NoHost::in_error(error) {
        return none.failure().error();
    }
    let reason = Refused::in_text(&error.to_string());
    match error {
        E::NotFound { .. } => return missing(&reason).error(),
        E::NotSupported { .. } | E::NotImplemented { .. } => {
            return Error::unsupported("the store does not support this");
        }
        _ => {}
    }
    let cause = root_cause(error);
    if cause.contains("redirect without LOCATION") {
        return refused(301, &reason).error();
    }
    // The status may also come from a provider of credentials, for example if the environment has none.
    match status_in(&error.to_string()) {
        Some(status) => refused(status, &reason).error(),
        // Report only the innermost cause, because the body of a response may contain secrets.
        None => Error::new(ErrorKind::Io, cause),
    }
}

/// Returns the status in the error of a client: `Server returned non-2xx status code: 403 Forbidden`.
fn status_in(text: &str) -> Option<u16> {
    text.split_once("status code: ")?.1.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors of a client that received no token, and of a response with secrets.
    #[test]
    fn credentials_that_are_not_given_out_are_looked_for_in_the_environment() {
        let error = |text: &str| given_up(&object_store::Error::Generic { store: "GCS", source: text.into() });
        for status in ["401 Unauthorized", "403 Forbidden"] {
            let refused = error(&format!("Server returned non-2xx status code: {status}: hidden"));
            assert_eq!(refused.message(), format!("the server answered {}", &status[..3]));
            assert!(refused.help_text().is_some_and(|help| help.contains("credentials in the environment")));
        }
        let other = error("Server returned non-2xx status code: 400 Bad Request: hidden");
        assert_eq!(other.message(), "the server answered 400");
    }

    /// Errors of clients with built-in retries, which contain the reason that the service left in the body.
    #[test]
    fn the_reason_of_a_refusal_is_in_the_error_with_its_remedy() {
        let error = |text: &str| given_up(&object_store::Error::Generic { store: "S3", source: text.into() });
        let expired = error(
            "Server returned non-2xx status code: 400 Bad Request: <Code>ExpiredToken</Code><RequestId>4F2A</RequestId>",
        );
        assert_eq!(expired.message(), "the server answered 400 (ExpiredToken, request 4F2A)");
        assert!(expired.help_text().is_some_and(|help| help.contains("AWS_SESSION_TOKEN")));
        let source = "Server returned non-2xx status code: 404 Not Found: <Code>NoSuchBucket</Code>".into();
        let none = given_up(&object_store::Error::NotFound { path: String::new(), source });
        assert_eq!(none.message(), "there is no such bucket (NoSuchBucket)");
        let moved =
            error("Received redirect without LOCATION, this normally indicates an incorrectly configured region");
        assert!(
            moved.message().starts_with("the server answered 301") && moved.help_text().unwrap().contains("AWS_REGION")
        );
    }

    #[test]
    fn attempts_that_bring_bytes_are_not_counted_and_their_time_is() {
        let (mut attempts, mut now) = (attempts(2, 10 * SECOND), Instant::now());
        for _ in 0..6 {
            attempts.progressed();
            let attempt = attempts.begin(now);
            now += SECOND;
            attempts.end(&attempt, now);
            let cut = Fault::Again { cause: "cut".to_owned(), after: Some(SECOND / 2) };
            assert_eq!(attempts.pause_after(cut).unwrap(), SECOND / 2);
        }
        let attempt = attempts.begin(now);
        attempts.progressed();
        attempts.end(&attempt, now + SECOND);
        let failure = attempts.pause_after(Fault::again("cut")).unwrap_err();
        assert!(failure.message.ends_with("limit 10.0 s for all attempts: cut"), "{}", failure.message);
    }

    const SECOND: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    fn attempts(most: u32, timeout: Duration) -> Attempts {
        Attempts::new(&StoreOptions::default().attempts(most).timeout(timeout).stall(20 * SECOND))
    }

    /// Makes attempts that take `each`, after which the server requests pauses of `after`. Returns the failure and the
    /// time of its decision.
    fn give_up_after(attempts: &mut Attempts, each: Duration, after: Option<Duration>) -> (Failure, Duration) {
        let start = Instant::now();
        let mut now = start;
        loop {
            let attempt = attempts.begin(now);
            now += each;
            attempts.end(&attempt, now);
            match attempts.pause_after(Fault::Again { cause: "busy".to_owned(), after }) {
                Ok(pause) => now += pause,
                Err(failure) => return (failure, now - start),
            }
        }
    }

    #[test]
    fn attempts_and_pauses_share_one_budget() {
        // Attempts, budget, time of an attempt, requested pause; time at the end, and the message.
        for ([most, budget, each, pause, ends], message) in [
            ([3, 100, 1, 2, 7], "gave up after 3 attempts in 7.0 s: busy"),
            ([1, 100, 1, 2, 1], "gave up after 1 attempts in 1.0 s: busy"),
            // The second pause of 2 s fits into the remaining 3 s. The third attempt uses up the rest.
            ([9, 7, 1, 2, 7], "gave up after 3 attempts in 7.0 s, limit 7.0 s for all attempts: busy"),
            ([9, 10, 3, 0, 12], "gave up after 4 attempts in 12.0 s, limit 10.0 s for all attempts: busy"),
            // The pause equals the remaining time, so the next attempt would have none.
            ([9, 6, 1, 2, 4], "gave up after 2 attempts in 4.0 s, limit 6.0 s, before a pause of 2.0 s: busy"),
            ([9, 10, 1, 60, 1], "gave up after 1 attempts in 1.0 s, limit 10.0 s, before a pause of 60.0 s: busy"),
        ] {
            let mut attempts = attempts(most, budget * SECOND);
            let (failure, after) = give_up_after(&mut attempts, each * SECOND, Some(pause * SECOND));
            assert_eq!(
                (failure.message.as_str(), after),
                (message, ends * SECOND),
                "{most}, {budget}, {each}, {pause}"
            );
            assert_eq!(failure.kind, ErrorKind::Io);
            assert!(failure.help.is_some_and(|help| help.contains("GRISTMILL_STORE_TIMEOUT")));
        }
    }

    #[test]
    fn a_pause_just_below_the_time_that_is_left_is_made_and_a_longer_pause_is_not() {
        for (pause, goes_on) in [(2 * SECOND - MS, true), (2 * SECOND, false), (2 * SECOND + MS, false)] {
            let (mut attempts, now) = (attempts(9, 3 * SECOND), Instant::now());
            attempts.end(&attempts.begin(now), now + SECOND);
            let next = attempts.pause_after(Fault::Again { cause: "busy".to_owned(), after: Some(pause) });
            assert_eq!(next.is_ok(), goes_on, "{pause:?}");
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_are_random_in_their_upper_half() {
        let mut attempts = attempts(100, 10_000 * SECOND);
        for full in [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000] {
            let pause = attempts.pause_after(Fault::again("busy")).unwrap();
            assert!(pause >= full * MS / 2 && pause <= full * MS, "{pause:?} of {full} ms");
        }
        let apart = (0..20).map(|_| attempts.pause()).collect::<std::collections::BTreeSet<_>>();
        assert!(apart.len() > 1, "clients that failed together come back together: {apart:?}");
    }

    #[test]
    fn a_final_fault_ends_the_attempts_at_once() {
        let mut attempts = attempts(9, 100 * SECOND);
        let failure = attempts.pause_after(Fault::Final(changed("the server has another version of it"))).unwrap_err();
        assert!(failure.message.starts_with("changed since it was opened"), "{}", failure.message);
        assert_eq!((attempts.made, attempts.spent), (0, Duration::ZERO));
    }

    #[test]
    fn an_attempt_waits_for_the_stall_time_and_no_longer_than_the_budget() {
        let (mut attempts, start) = (attempts(9, 50 * SECOND), Instant::now());
        let first = attempts.begin(start);
        // Time since the start of the attempt, and the longest wait from then on.
        for (at, wait) in [(0, 20_000), (30_000, 20_000), (30_001, 19_999), (49_999, 1), (50_000, 0), (60_000, 0)] {
            assert_eq!(first.patience(start + at * MS), wait * MS, "{at} ms");
            assert_eq!(first.is_over(start + at * MS), wait == 0, "{at} ms");
        }
        attempts.end(&first, start + 20 * SECOND);
        attempts.pause_after(Fault::Again { cause: "busy".to_owned(), after: Some(25 * SECOND) }).unwrap();
        let second = attempts.begin(start + 45 * SECOND);
        assert_eq!(second.patience(start + 45 * SECOND), 5 * SECOND, "the first attempt and the pause count");
        assert!(!second.is_over(start + 50 * SECOND - MS) && second.is_over(start + 50 * SECOND));
    }
}
