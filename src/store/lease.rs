//! One writer for a folder of a store: an object in it says who that is.
//!
//! The object is made by a put that fails where there is one, and is written again every few seconds. A writer that was killed stops
//! doing so: another takes its place once that shows, or at once where it can be seen that the process is gone. A writer that was taken
//! for dead and is not finds another name there, and publishes nothing more.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use object_store::{GetOptions, GetRange, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::bucket::Address;
use super::options::StoreOptions;
use super::process::Process;
use super::retry::{Attempts, Failure, Fault, given_up, patiently};
use super::runtime;
use super::service::listening;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;
use crate::temporary::random;

/// The name of the object. It begins with a dot, so that no source takes it for data.
const NAME: &str = ".gristmill-writer.json";
/// The version of its format.
const FORMAT: u32 = 1;
/// A writer that has not been heard of for so long is taken for dead.
const EXPIRES: Duration = Duration::from_secs(60);
/// A writer is heard of so often.
const RENEWED: Duration = Duration::from_secs(15);
/// It is given back within this time, or not at all.
const GIVEN_BACK: Duration = Duration::from_secs(10);
/// Bytes of it that are read.
const MOST: u64 = 64 << 10;
/// Others may come and go meanwhile.
const ATTEMPTS: usize = 5;

/// The right to write to a folder, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Lease(Arc<Held>);

#[derive(Debug)]
struct Held {
    at: Address,
    owner: Owner,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    renewed: Instant,
    is_lost: bool,
}

impl State {
    /// Returns true if two renewals are missing at `now`: another writer may take over before the next one.
    fn is_stale(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.renewed) > 2 * RENEWED
    }
}

/// The writer of a folder, as the object names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    gristmill_writer: u32,
    /// A name that tells it from all others, of the same process too.
    id: String,
    process: Process,
}

/// The object as it was found.
struct Found {
    /// `None`: something else lies there.
    owner: Option<Owner>,
    version: UpdateVersion,
    /// The time since it was written, by the store's clock.
    age: Duration,
}

impl Lease {
    /// Takes the right to write to a folder; `None` where the store knows no puts that depend on what is there, as web servers do not.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if another writes there; [`ErrorKind::Io`] if the store cannot be asked.
    pub(super) fn take(folder: &Address) -> Result<Option<Self>> {
        use object_store::Error as E;
        if folder.is_web() {
            return Ok(None);
        }
        let at = folder.child(NAME);
        let id = format!("{:016x}{:016x}", random(), random());
        let owner = Owner { gristmill_writer: FORMAT, id, process: Process::this() };
        for _ in 0..ATTEMPTS {
            let mode = match found(&at)? {
                None => PutMode::Create,
                Some(found) if found.owner.as_ref() == Some(&owner) => return Ok(Some(Self::new(at, owner))),
                Some(found) if found.is_over() => PutMode::Update(found.version),
                Some(found) => return Err(found.refused().path(folder.path())),
            };
            let (to, by) = (at.clone(), owner.clone());
            match patiently(async move { put(&to, &by, mode).await })? {
                // A store that does not heed conditions may have let two in: what is read next decides.
                Ok(_) | Err(E::AlreadyExists { .. } | E::Precondition { .. }) => {}
                Err(E::NotImplemented { .. } | E::NotSupported { .. }) => return Ok(None),
                Err(error) => return Err(given_up(&error).path(at.path())),
            }
        }
        Err(Error::config("others want to write to this folder").path(folder.path()).help("name another folder"))
    }

    fn new(at: Address, owner: Owner) -> Self {
        let state = State { renewed: Instant::now(), is_lost: false };
        let held = Arc::new(Held { at, owner, state: Mutex::new(state) });
        let kept = Arc::downgrade(&held);
        let renewing = async move {
            loop {
                // The period of the renewals.
                sleep(RENEWED).await;
                let Some(held) = kept.upgrade() else { break };
                // It is tried again, and in vain only where another has come meanwhile.
                if let Err(failure) = held.renew().await {
                    tracing::warn!(folder = %held.at.path().display(), failure.message, "the folder cannot be held");
                }
            }
        };
        // Where there is no thread to do it, it is done whenever something is published.
        let _ = runtime::spawn(renewing);
        Self(held)
    }

    /// Checks that the folder may still be written to.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if another has taken it over.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.state().is_stale(Instant::now()) {
            let held = self.0.clone();
            let renewed = runtime::wait(async move { held.renew().await })?;
            renewed.map_err(|failure| failure.error().path(self.0.at.path()))?;
        }
        if self.0.state().is_lost { Err(taken_over().path(self.0.at.path())) } else { Ok(()) }
    }
}

/// Makes the error that a folder belongs to another writer by now.
#[cold]
pub(super) fn taken_over() -> Error {
    Error::state("another sink has taken over this folder, and what it writes stands")
        .help("this one was not heard of for a minute; go on with `resume` once the other has ended")
}

impl Held {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Says that its owner lives, unless another has come.
    async fn renew(&self) -> Result<(), Failure> {
        use object_store::Error as E;
        for _ in 0..ATTEMPTS {
            let found = read(&self.at).await?;
            let Some(found) = found.filter(|found| found.owner.as_ref() == Some(&self.owner)) else {
                self.state().is_lost = true;
                return Ok(());
            };
            match timeout(EXPIRES, put(&self.at, &self.owner, PutMode::Update(found.version))).await {
                Ok(Ok(_)) => {
                    self.state().renewed = Instant::now();
                    return Ok(());
                }
                // Written since: by this one, if its answer was lost.
                Ok(Err(E::Precondition { .. } | E::AlreadyExists { .. })) => {}
                Ok(Err(error)) => return Err(Failure::new(ErrorKind::Io, given_up(&error).message())),
                Err(_) => return Err(Failure::new(ErrorKind::Io, format!("no answer in {EXPIRES:?}"))),
            }
        }
        Ok(())
    }

    /// Lets others write to the folder.
    async fn give_back(&self) {
        let is_ours = |found: &Found| found.owner.as_ref() == Some(&self.owner);
        if read(&self.at).await.is_ok_and(|found| found.as_ref().is_some_and(is_ours)) {
            // Who cannot be told waits until it shows.
            let _ = self.at.bucket.patient.delete(&self.at.key).await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.0.state().is_lost {
            let held = self.0.clone();
            let _ = runtime::wait(async move { timeout(GIVEN_BACK, held.give_back()).await.unwrap_or_default() });
        }
    }
}

impl Found {
    /// Whether its writer is dead, as far as can be seen.
    fn is_over(&self) -> bool {
        self.age > EXPIRES || self.owner.as_ref().is_some_and(|owner| owner.process.is_gone())
    }

    #[cold]
    fn refused(&self) -> Error {
        let who =
            self.owner.as_ref().map_or_else(|| "of another version".to_owned(), |owner| owner.process.to_string());
        let (age, left) = (self.age.as_secs(), EXPIRES.saturating_sub(self.age).as_secs() + 1);
        let text = format!("another sink writes to this folder: {who}, heard of {age} s ago");
        Error::config(text).help(format!("wait for it, or name another folder; if it was killed, go on in {left} s"))
    }
}

async fn put(at: &Address, owner: &Owner, mode: PutMode) -> object_store::Result<PutResult> {
    // Strings and numbers.
    let text = serde_json::to_vec(owner).expect("an owner serialises");
    let options = PutOptions { mode, ..PutOptions::default() };
    at.bucket.patient.put_opts(&at.key, PutPayload::from(text), options).await
}

/// Time from `written` to `now`, both by the store's clock; zero if `written` is later.
fn age(written: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(written).unwrap_or_default()
}

fn found(at: &Address) -> Result<Option<Found>> {
    let asked = at.clone();
    let found = runtime::wait(async move { read(&asked).await })?;
    found.map_err(|failure| failure.error().path(at.path()))
}

async fn read(at: &Address) -> Result<Option<Found>, Failure> {
    let mut attempts = Attempts::new(&StoreOptions::current());
    loop {
        let attempt = attempts.begin(Instant::now());
        let request = async {
            let options = GetOptions { range: Some(GetRange::Bounded(0..MOST)), ..GetOptions::default() };
            let answer = at.bucket.reader.get_opts(&at.key, options).await?;
            let meta = answer.meta.clone();
            object_store::Result::Ok((meta, answer.bytes().await?))
        };
        let (answer, told) = listening(None, attempt.within(request)).await;
        attempts.end(&attempt, Instant::now());
        let fault = match answer {
            Ok(Ok((meta, bytes))) => {
                let age = age(SystemTime::from(meta.last_modified), told.date.unwrap_or_else(SystemTime::now));
                let owner =
                    serde_json::from_slice(&bytes).ok().filter(|owner: &Owner| owner.gristmill_writer == FORMAT);
                let version = UpdateVersion { e_tag: meta.e_tag, version: meta.version };
                return Ok(Some(Found { owner, version, age }));
            }
            Ok(Err(object_store::Error::NotFound { .. })) => return Ok(None),
            Ok(Err(error)) => Fault::of(&error, &told),
            Err(stopped) => Fault::again(format!("no answer in {stopped:?}")),
        };
        attempts.next(fault).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const NS: Duration = Duration::from_nanos(1);

    fn by(owner: Option<Process>, age: Duration) -> Found {
        let owner = owner.map(|process| Owner { gristmill_writer: FORMAT, id: "one".to_owned(), process });
        Found { owner, version: UpdateVersion { e_tag: None, version: None }, age }
    }

    /// A process of another machine: only the age of its lease shows whether it lives.
    fn elsewhere() -> Process {
        let text = r#"{"host": "far", "pid": 7, "boot": "other", "namespace": "other", "began": 1}"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_lease_expires_after_a_minute_and_not_before() {
        for (age, is_over) in [
            (Duration::ZERO, false),
            (59 * SECOND, false),
            (60 * SECOND, false),
            (60 * SECOND + NS, true),
            (3600 * SECOND, true),
        ] {
            assert_eq!(by(Some(elsewhere()), age).is_over(), is_over, "{age:?}");
            assert_eq!(by(Some(Process::this()), age).is_over(), is_over, "{age:?}, of a process that runs here");
            assert_eq!(by(None, age).is_over(), is_over, "{age:?}, of another version");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_lease_of_a_process_that_is_gone_is_over_at_once() {
        let mut gone = serde_json::to_value(Process::this()).unwrap();
        // No process began then.
        gone["began"] = 1.into();
        let gone = serde_json::from_value(gone).unwrap();
        assert!(by(Some(gone), Duration::ZERO).is_over());
    }

    #[test]
    fn the_error_names_the_time_until_the_lease_expires() {
        for (age, left) in [(0, 61), (15, 46), (59, 2), (60, 1)] {
            let error = by(Some(elsewhere()), age * SECOND).refused();
            let text = format!("another sink writes to this folder: process 7 on far, heard of {age} s ago");
            assert_eq!((error.kind(), error.message()), (ErrorKind::Config, text.as_str()));
            assert!(error.help_text().is_some_and(|help| help.ends_with(&format!("go on in {left} s"))), "{error:?}");
        }
    }

    #[test]
    fn the_age_of_a_lease_is_by_the_clock_of_the_store() {
        let written = SystemTime::UNIX_EPOCH + 1000 * SECOND;
        assert_eq!(age(written, written + 61 * SECOND), 61 * SECOND);
        assert_eq!(age(written, written - SECOND), Duration::ZERO, "a clock that was set back");
    }

    #[test]
    fn a_lease_is_renewed_before_a_write_if_two_renewals_are_missing() {
        let renewed = Instant::now();
        let state = State { renewed, is_lost: false };
        assert!(!state.is_stale(renewed) && !state.is_stale(renewed + 30 * SECOND));
        assert!(state.is_stale(renewed + 30 * SECOND + NS));
        // A writer that renews just in time cannot have expired.
        assert!(2 * RENEWED + GIVEN_BACK < EXPIRES);
    }
}
