//! Exclusive writers: an object in a store folder names the current writer.
//!
//! A writer creates the object by a conditional put and rewrites it every 15 s. A killed writer stops rewriting the
//! object. Another writer takes over after 60 s, or at once if the process has visibly ended. A writer that was
//! presumed dead by mistake finds another name in the object, and publishes nothing more.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use object_store::{GetOptions, GetRange, ObjectStoreExt, PutMode, PutOptions, PutPayload, PutResult, UpdateVersion};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::bucket::Address;
use super::process::Process;
use super::retry::{Attempts, Failure, Fault, given_up, patiently};
use super::runtime;
use super::service::listening;
use crate::error::{Error, ErrorKind, Result};
use crate::store::options::StoreOptions;
use crate::sync::Locked;
use crate::temporary::random;

/// Name of the object. Begins with a dot, so that no source reads the object as data.
const NAME: &str = ".gristmill-writer.json";
/// Version of the object's format.
const FORMAT: u32 = 1;
/// Age of a lease after which its writer is presumed dead.
const EXPIRES: Duration = Duration::from_secs(60);
/// Interval between renewals.
const RENEWED: Duration = Duration::from_secs(15);
/// Maximum time for releasing a lease. A lease that is not released expires.
const GIVEN_BACK: Duration = Duration::from_secs(10);
/// Maximum number of bytes read from the object.
const MOST: u64 = 64 << 10;
/// Maximum number of attempts, because other writers may change the object meanwhile.
const ATTEMPTS: usize = 5;

/// Exclusive right to write to a folder, released on drop.
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
    /// Returns true if two renewals are overdue at `now`. Another writer may then take over before the next renewal.
    fn is_stale(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.renewed) > 2 * RENEWED
    }
}

/// Writer of a folder, as recorded in the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    gristmill_writer: u32,
    /// Random name of the writer, unique even within a process.
    id: String,
    process: Process,
}

/// Object as read from the store.
struct Found {
    /// `None` if the object is not a lease of this format.
    owner: Option<Owner>,
    version: UpdateVersion,
    /// Time since the object was written, by the store's clock.
    age: Duration,
}

impl Lease {
    /// Acquires the right to write to a folder. Returns `None` if the store has no conditional puts, such as a web
    /// server.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if another writer holds the folder; [`ErrorKind::Io`] if a request to the store fails.
    pub(in crate::store) fn take(folder: &Address) -> Result<Option<Self>> {
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
                // A store that ignores conditions may admit two writers. The next read decides between them.
                Ok(_) | Err(E::AlreadyExists { .. } | E::Precondition { .. }) => {}
                Err(E::NotImplemented { .. } | E::NotSupported { .. }) => return Ok(None),
                Err(error) => return Err(given_up(&error).path(at.path())),
            }
        }
        Err(Error::config("other sinks are waiting to write to this folder")
            .path(folder.path())
            .help("name another folder"))
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
                // The next iteration retries. The delay only matters if another writer takes over meanwhile.
                if let Err(failure) = held.renew().await {
                    tracing::warn!(folder = %held.at.path().display(), failure.message, "the folder cannot be held");
                }
            }
        };
        // Without a background thread, `check` renews the lease before something is published.
        let _ = runtime::spawn(renewing);
        Self(held)
    }

    /// Checks that the folder still belongs to this writer.
    ///
    /// # Errors
    /// [`ErrorKind::State`] if another writer has taken over the folder.
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.state().is_stale(Instant::now()) {
            let held = self.0.clone();
            let renewed = runtime::wait(async move { held.renew().await })?;
            renewed.map_err(|failure| failure.error().path(self.0.at.path()))?;
        }
        if self.0.state().is_lost { Err(taken_over().path(self.0.at.path())) } else { Ok(()) }
    }
}

/// Returns the error for a folder that another writer has taken over.
#[cold]
pub(in crate::store) fn taken_over() -> Error {
    Error::state("another sink has taken over this folder, and its files remain")
        .help("this sink did not renew its lease for a minute; continue with `resume` after the other sink has ended")
}

impl Held {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.locked()
    }

    /// Rewrites the object. Marks the lease as lost if another writer has taken over.
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
                // The object has changed since the read, perhaps by an earlier put whose response was lost.
                Ok(Err(E::Precondition { .. } | E::AlreadyExists { .. })) => {}
                Ok(Err(error)) => return Err(Failure::new(ErrorKind::Io, given_up(&error).message())),
                Err(_) => return Err(Failure::new(ErrorKind::Io, format!("no answer in {EXPIRES:?}"))),
            }
        }
        Ok(())
    }

    /// Releases the folder for other writers.
    async fn give_back(&self) {
        let is_ours = |found: &Found| found.owner.as_ref() == Some(&self.owner);
        if read(&self.at).await.is_ok_and(|found| found.as_ref().is_some_and(is_ours)) {
            // If the delete fails, other writers wait until the lease expires.
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
    /// Returns true if the lease has expired, or if the process of its writer is gone.
    fn is_over(&self) -> bool {
        self.age > EXPIRES || self.owner.as_ref().is_some_and(|owner| owner.process.is_gone())
    }

    #[cold]
    fn refused(&self) -> Error {
        let who =
            self.owner.as_ref().map_or_else(|| "of another version".to_owned(), |owner| owner.process.to_string());
        let (age, left) = (self.age.as_secs(), EXPIRES.saturating_sub(self.age).as_secs() + 1);
        let text = format!("another sink writes to this folder: {who}, last seen {age} s ago");
        Error::config(text).help(format!("wait for it, or name another folder; if it was killed, retry in {left} s"))
    }
}

async fn put(at: &Address, owner: &Owner, mode: PutMode) -> object_store::Result<PutResult> {
    // Strings and numbers always serialise.
    let text = serde_json::to_vec(owner).expect("an owner serialises");
    let options = PutOptions { mode, ..PutOptions::default() };
    at.bucket.patient.put_opts(&at.key, PutPayload::from(text), options).await
}

/// Returns the time from `written` to `now`, both by the store's clock. Returns zero if `written` is later.
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

    /// Returns a process on another machine. Only the age of its lease shows whether the process is alive.
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
        // No process started at this time.
        gone["began"] = 1.into();
        let gone = serde_json::from_value(gone).unwrap();
        assert!(by(Some(gone), Duration::ZERO).is_over());
    }

    #[test]
    fn the_error_names_the_time_until_the_lease_expires() {
        for (age, left) in [(0, 61), (15, 46), (59, 2), (60, 1)] {
            let error = by(Some(elsewhere()), age * SECOND).refused();
            let text = format!("another sink writes to this folder: process 7 on far, last seen {age} s ago");
            assert_eq!((error.kind(), error.message()), (ErrorKind::Config, text.as_str()));
            assert!(error.help_text().is_some_and(|help| help.ends_with(&format!("retry in {left} s"))), "{error:?}");
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
        // A writer that renews at the last moment has not expired.
        assert!(2 * RENEWED + GIVEN_BACK < EXPIRES);
    }
}
