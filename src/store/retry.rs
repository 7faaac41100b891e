//! Attempts at requests: which are made again, when, and the error when nothing helped.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::options::StoreOptions;
use super::runtime;
use super::service::Told;
use crate::error::{Error, ErrorKind};

/// The reason why something failed for good: an [`Error`] that several threads may be told of.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
}

impl Failure {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    pub(super) fn help(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
    }

    pub(super) fn error(self) -> Error {
        let error = Error::new(self.kind, self.message);
        if let Some(help) = self.help { error.help(help) } else { error }
    }
}

/// The reason why one attempt failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// Another may not.
    Again { cause: String, after: Option<Duration> },
    /// All others would.
    Final(Failure),
}

impl Fault {
    pub(super) fn again(cause: impl Into<String>) -> Self {
        Self::Again { cause: cause.into(), after: None }
    }

    /// Judges the error of a client by what its server said.
    pub(super) fn of(error: &object_store::Error, told: Told) -> Self {
        #[cfg(feature = "http")]
        if let Some(text) = super::hub::refusal(error) {
            return Self::Final(Failure::new(ErrorKind::Io, text));
        }
        let is = |kind, text: &str| Failure::new(kind, text);
        match (told.status, error) {
            (Some(404), _) => Self::Final(is(ErrorKind::Io, "there is no such object")),
            (Some(401 | 403), _) => Self::Final(
                is(ErrorKind::Io, &refusal(error, told))
                    .help("check the credentials in the environment, and what they may read"),
            ),
            (Some(412), _) => Self::Final(changed("the server has another version of it")),
            (Some(416), _) => Self::Final(changed("the server says it is shorter")),
            (Some(408 | 429 | 500..), _) => Self::Again { cause: refusal(error, told), after: told.retry_after },
            (Some(300..400), _) => Self::Final(redirected(told)),
            (Some(300..), _) => Self::Final(is(ErrorKind::Io, &refusal(error, told))),
            (Some(200), object_store::Error::NotSupported { .. }) => Self::Final(
                is(ErrorKind::Unsupported, "the server does not answer for ranges")
                    .help("copy the file to this machine, or to a server that does"),
            ),
            // Nothing was asked: what is wrong is here.
            (None, _) if !told.sent => Self::Final(is(ErrorKind::Config, &root_cause(error))),
            _ => Self::again(root_cause(error)),
        }
    }
}

/// Says that an object is not the one that was opened.
pub(super) fn changed(how: &str) -> Failure {
    Failure::new(ErrorKind::Data, format!("changed since it was opened: {how}"))
        .help("objects must not be replaced while they are read: write new ones under new names")
}

/// Says that a server points elsewhere, where nothing signed may go.
fn redirected(told: Told) -> Failure {
    let status = told.status.unwrap_or_default();
    Failure::new(
        ErrorKind::Io,
        format!("the server answered {status}: it points to another place, and signed requests stay where they are"),
    )
    .help("name the right region or endpoint in the environment: `AWS_REGION`, `AWS_ENDPOINT_URL` and the like")
}

/// The status, and the word that S3 and its like add to it. Of the rest of an answer nothing is shown: it may hold a key.
fn refusal(error: &object_store::Error, told: Told) -> String {
    let status = told.status.unwrap_or_default();
    let text = error.to_string();
    let word = text.split_once("<Code>").and_then(|(_, rest)| Some(rest.split_once("</Code>")?.0));
    match word.filter(|word| word.len() < 64 && word.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        Some(word) => format!("the server answered {status} ({word})"),
        None => format!("the server answered {status}"),
    }
}

/// The innermost cause: those around it name the URL, which may be signed, or quote what was configured. One of JSON quotes what it
/// did not expect, which may be a key.
pub(super) fn root_cause(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<serde_json::Error>() {
        Some(json) => format!("credentials that are not understood, at line {}, column {}", json.line(), json.column()),
        None => cause.to_string(),
    }
}

/// The attempts at one request.
#[derive(Debug)]
pub(super) struct Attempts {
    made: u32,
    most: u32,
    /// The time of all attempts, and of the pauses between them.
    spent: Duration,
    timeout: Duration,
    stall: Duration,
}

/// An attempt that is being made.
#[derive(Debug)]
pub(super) struct Attempt {
    begun: Instant,
    /// The end of all patience.
    end: Option<Instant>,
    stall: Duration,
}

impl Attempt {
    /// Waits for a part of it, no longer than something may stand still, and than there is time for all of it.
    ///
    /// # Errors
    /// The time that was waited.
    pub(super) async fn within<F: Future>(&self, part: F) -> Result<F::Output, Duration> {
        let left = self.end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        let most = self.stall.min(left);
        timeout(most, part).await.map_err(|_| most)
    }

    /// Whether there is no time left.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end <= Instant::now())
    }
}

/// The first pause, and the longest that nobody asked for.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];

impl Attempts {
    pub(super) fn new(options: &StoreOptions) -> Self {
        let StoreOptions { attempts: most, timeout, stall, .. } = *options;
        Self { made: 0, most, spent: Duration::ZERO, timeout, stall }
    }

    /// Begins one, for which there is as much time as those before it and the pauses have left.
    pub(super) fn begin(&self) -> Attempt {
        let begun = Instant::now();
        Attempt { begun, end: begun.checked_add(self.timeout.saturating_sub(self.spent)), stall: self.stall }
    }

    /// An attempt has ended.
    pub(super) fn end(&mut self, attempt: &Attempt) {
        self.spent += attempt.begun.elapsed();
    }

    /// After an attempt that failed: waits for the next, or says why there is none.
    pub(super) async fn next(&mut self, fault: Fault) -> Result<(), Failure> {
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
        tokio::time::sleep(pause).await;
        self.spent += pause;
        Ok(())
    }

    /// Twice as long as the one before, and somewhere between half and all of that: those who failed together do not
    /// come back together.
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
            () if left.is_zero() => format!(
                "gave up after {made} attempts in {seconds:.1} s, and {allowed:.1} s are allowed for all of them together"
            ),
            () => format!(
                "gave up after {made} attempts in {seconds:.1} s, of {allowed:.1} s that are allowed, before a pause of {:.1} s",
                pause.as_secs_f64()
            ),
        };
        Failure::new(ErrorKind::Io, format!("{why}: {cause}"))
            .help("`StoreOptions` (`GRISTMILL_STORE_ATTEMPTS`, `GRISTMILL_STORE_TIMEOUT`) says how long to try")
    }
}

/// Waits for something that its client tries again by itself, in the time that all attempts together may take.
///
/// # Errors
/// [`ErrorKind::Io`] if it is not done by then.
pub(super) fn patiently<T: Send + 'static>(task: impl Future<Output = T> + Send + 'static) -> Result<T, Error> {
    let most = StoreOptions::current().timeout;
    runtime::wait(timeout_of(most, task))?
}

async fn timeout_of<T>(most: Duration, task: impl Future<Output = T>) -> Result<T, Error> {
    timeout(most, task).await.map_err(|_| {
        Error::new(ErrorKind::Io, format!("gave up after {:.1} s, which is all that is allowed", most.as_secs_f64()))
            .help("`StoreOptions` (`GRISTMILL_STORE_TIMEOUT`) says how long to try")
    })
}

/// Makes an error of what a client reports that has tried again by itself.
#[cold]
pub(super) fn given_up(error: &object_store::Error) -> Error {
    use object_store::Error as E;
    #[cfg(feature = "http")]
    if let Some(text) = super::hub::refusal(error) {
        return Error::new(ErrorKind::Io, text);
    }
    let text = match error {
        E::NotFound { .. } => "there is no such object".to_owned(),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => return refused(),
        E::NotSupported { .. } | E::NotImplemented { .. } => {
            return Error::unsupported("the store does not offer this");
        }
        _ => {
            // The body of an answer may hold what must not be shown.
            let cause = root_cause(error);
            match cause.split_once("status code: ") {
                // Of whoever was to give out credentials, as where there are none in the environment.
                Some((_, status)) if status.starts_with("401") || status.starts_with("403") => return refused(),
                Some((_, status)) => format!("the server answered {}", status.split(':').next().unwrap_or_default()),
                None => cause,
            }
        }
    };
    Error::new(ErrorKind::Io, text)
}

fn refused() -> Error {
    Error::new(ErrorKind::Io, "the server refuses access")
        .help("check the credentials in the environment, and what they allow")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client says of a token that it did not get, and of an answer that tells more than may be shown.
    #[test]
    fn credentials_that_are_not_given_out_are_looked_for_in_the_environment() {
        let error = |text: &str| given_up(&object_store::Error::Generic { store: "GCS", source: text.into() });
        for status in ["401 Unauthorized", "403 Forbidden"] {
            let refused = error(&format!("Server returned non-2xx status code: {status}: hidden"));
            assert_eq!(refused.message(), "the server refuses access");
            assert!(refused.help_text().is_some_and(|help| help.contains("credentials in the environment")));
        }
        let other = error("Server returned non-2xx status code: 400 Bad Request: hidden");
        assert_eq!(other.message(), "the server answered 400 Bad Request");
    }
}
