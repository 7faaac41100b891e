//! How stores are read: memory, disk, requests, patience.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use crate::error::Error;

/// How stores are read, by every source of this process and its workers.
///
/// Each part has a variable of the environment, which counts where the program does not say otherwise.
///
/// | method | variable | at first |
/// |---|---|---|
/// | [`memory_bytes`](Self::memory_bytes) | `GRISTMILL_STORE_MEMORY` | 256 MiB |
/// | [`requests`](Self::requests) | `GRISTMILL_STORE_REQUESTS` | 16 |
/// | [`attempts`](Self::attempts) | `GRISTMILL_STORE_ATTEMPTS` | 10 |
/// | [`timeout`](Self::timeout) | `GRISTMILL_STORE_TIMEOUT`, seconds | 180 s |
/// | [`stall`](Self::stall) | `GRISTMILL_STORE_STALL`, seconds | 20 s |
///
/// ```
/// use gristmill::store::StoreOptions;
/// StoreOptions::from_env().memory_bytes(1 << 30).requests(32).apply();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until `apply`"]
pub struct StoreOptions {
    pub(super) memory_bytes: u64,
    pub(super) requests: usize,
    pub(super) attempts: u32,
    pub(super) timeout: Duration,
    pub(super) stall: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            requests: 16,
            attempts: 10,
            timeout: Duration::from_secs(180),
            stall: Duration::from_secs(20),
        }
    }
}

/// What the program said.
static APPLIED: RwLock<Option<StoreOptions>> = RwLock::new(None);

impl StoreOptions {
    /// What the environment says. A variable that is not understood counts as not set, with a warning.
    pub fn from_env() -> Self {
        let mut options = Self::default();
        if let Some(bytes) = variable("MEMORY", crate::units::parse_bytes) {
            options.memory_bytes = bytes;
        }
        if let Some(count) = variable("REQUESTS", |text| text.parse().ok()) {
            options = options.requests(count);
        }
        if let Some(count) = variable("ATTEMPTS", |text| text.parse().ok()) {
            options = options.attempts(count);
        }
        if let Some(time) = variable("TIMEOUT", seconds) {
            options.timeout = time;
        }
        if let Some(time) = variable("STALL", seconds) {
            options.stall = time;
        }
        options
    }

    /// Bytes of blocks that are kept in memory.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Requests in flight at a time; at least 1.
    pub fn requests(mut self, count: usize) -> Self {
        self.requests = count.max(1);
        self
    }

    /// How often a request is tried; at least once.
    pub fn attempts(mut self, count: u32) -> Self {
        self.attempts = count.max(1);
        self
    }

    /// How long a request is tried, all attempts and the pauses between them together.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// How long a request may stand still before it is tried again.
    pub fn stall(mut self, time: Duration) -> Self {
        self.stall = time;
        self
    }

    /// From now on, whatever is opened is read so; what is open already stays as it is.
    pub fn apply(self) {
        *APPLIED.write().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }

    /// What counts now.
    #[cfg(feature = "store")]
    pub(super) fn current() -> Self {
        APPLIED.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_else(Self::from_env)
    }
}

fn variable<T>(name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let name = format!("GRISTMILL_STORE_{name}");
    let text = std::env::var(&name).ok()?;
    let value = parse(&text);
    if value.is_none() {
        tracing::warn!(variable = %name, value = %text, "not understood, and left out of account");
    }
    value
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

/// That the feature for a scheme is off, or that there is no such scheme.
#[cold]
pub(super) fn lacking(scheme: &str) -> Error {
    let feature = match scheme {
        "s3" | "s3a" => "s3",
        "gs" => "gcs",
        "az" | "adl" | "azure" | "abfs" | "abfss" => "azure",
        "http" | "https" => "http",
        other => {
            return Error::unsupported(format!("{other}:// is no store that is known"))
                .help("known are s3://, gs://, az://, abfss://, https:// and file://");
        }
    };
    Error::unsupported(format!("this build does not read {scheme}://"))
        .help(format!("build gristmill with the feature `{feature}`"))
}
