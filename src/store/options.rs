//! Options for reading stores: memory, disk, requests, timeouts.

#[cfg(all(feature = "workers", target_os = "linux"))]
use std::ffi::OsString;
#[cfg(feature = "spec")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::RwLock;
use std::time::Duration;

use crate::sync::Regardless;

/// Options for reading stores, for all sources of this process and its workers.
///
/// Each option has an environment variable. The environment applies unless the program calls [`apply`](Self::apply).
///
/// | method | variable | default |
/// |---|---|---|
/// | [`memory_bytes`](Self::memory_bytes) | `GRISTMILL_STORE_MEMORY` | 256 MiB |
/// | [`cache_dir`](Self::cache_dir) | `GRISTMILL_STORE_CACHE_DIR` | none |
/// | [`cache_bytes`](Self::cache_bytes) | `GRISTMILL_STORE_CACHE_SIZE` | 10 GiB |
/// | [`requests`](Self::requests) | `GRISTMILL_STORE_REQUESTS` | 64 |
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
    pub(super) cache_dir: Option<PathBuf>,
    pub(super) cache_bytes: u64,
    pub(super) requests: usize,
    pub(super) attempts: u32,
    pub(super) timeout: Duration,
    pub(super) stall: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            cache_dir: None,
            cache_bytes: 10 << 30,
            requests: 64,
            attempts: 10,
            timeout: Duration::from_secs(180),
            stall: Duration::from_secs(20),
        }
    }
}

/// Options applied by the program.
static APPLIED: RwLock<Option<StoreOptions>> = RwLock::new(None);

impl StoreOptions {
    /// Reads the options from the environment. Ignores an invalid variable with a warning.
    pub fn from_env() -> Self {
        let mut options = Self::default();
        if let Some(bytes) = variable("MEMORY", crate::units::parse_bytes) {
            options.memory_bytes = bytes;
        }
        options.cache_dir =
            std::env::var_os("GRISTMILL_STORE_CACHE_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        if let Some(bytes) = variable("CACHE_SIZE", crate::units::parse_bytes) {
            options.cache_bytes = bytes;
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

    /// Sets the folder of the disk cache, which should be on a local disk. All runs and processes of this user on this
    /// machine share the cache. Each block is stored with a hash, and the least recently used blocks are evicted. The
    /// folder also contains indices of lines and records. [Other users](super#who-may-read-the-cache) can neither read
    /// nor write there.
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(folder.into());
        self
    }

    /// Sets the maximum size of the blocks in the disk cache, in bytes.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the memory for blocks of each process, in bytes. A worker uses at most an eighth of its heap, so that
    /// blocks are part of the RAM budget. A process that starts workers drops the blocks it has read to open files.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Sets the maximum number of requests in flight, from 1 to 65,536. Requests for small parts of objects are limited
    /// only by this number. Requests for large parts are also limited to 64 MiB in flight. That limit is higher for
    /// more than 64 requests.
    pub fn requests(mut self, count: usize) -> Self {
        self.requests = count.clamp(1, 1 << 16);
        self
    }

    /// Sets the maximum number of attempts at a request, at least 1.
    pub fn attempts(mut self, count: u32) -> Self {
        self.attempts = count.max(1);
        self
    }

    /// Sets the maximum time for a request, including all attempts, bodies and pauses. The wait for a [free
    /// request](Self::requests) does not count.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Sets the maximum time without progress before a request is retried.
    pub fn stall(mut self, time: Duration) -> Self {
        self.stall = time;
        self
    }

    /// Returns the maximum number of blocks in flight: 16 full requests, or a quarter of `requests` if this is more.
    #[cfg(feature = "store")]
    pub(super) fn body_blocks(&self) -> usize {
        let full = super::object::PIECE as usize;
        (self.requests.min(16) * full).max(self.requests / 4 * full)
    }

    /// Returns the folder of the disk cache and its maximum size in bytes, if there is a folder.
    #[cfg(feature = "cli")]
    pub(crate) fn cache(&self) -> Option<(&Path, u64)> {
        Some((self.cache_dir.as_deref()?, self.cache_bytes))
    }

    /// Resolves a relative cache folder against `folder`.
    #[cfg(feature = "spec")]
    pub(crate) fn below(mut self, folder: &Path) -> Self {
        self.cache_dir = self.cache_dir.map(|dir| folder.join(dir));
        self
    }

    /// Applies the options to all objects opened from now on. Open objects keep their options.
    pub fn apply(self) {
        *APPLIED.write().regardless() = Some(self);
    }

    /// Returns the current options.
    pub(super) fn current() -> Self {
        APPLIED.read().regardless().clone().unwrap_or_else(Self::from_env)
    }
}

/// Returns the folder for indices of objects.
pub(crate) fn index_folder() -> Option<PathBuf> {
    StoreOptions::current().cache_dir.map(|folder| folder.join("indices"))
}

/// Returns the options applied by the program, as variables for its workers.
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) fn variables() -> Vec<(&'static str, OsString)> {
    let variables = applied_variables().into_iter();
    #[cfg(feature = "http")]
    let variables = variables.chain(super::hub::variable());
    variables.collect()
}

#[cfg(all(feature = "workers", target_os = "linux"))]
fn applied_variables() -> Vec<(&'static str, OsString)> {
    let applied = APPLIED.read().regardless();
    let Some(options) = &*applied else { return Vec::new() };
    let seconds = |time: Duration| time.as_secs_f64().to_string().into();
    vec![
        ("GRISTMILL_STORE_MEMORY", options.memory_bytes.to_string().into()),
        ("GRISTMILL_STORE_CACHE_DIR", options.cache_dir.clone().unwrap_or_default().into()),
        ("GRISTMILL_STORE_CACHE_SIZE", options.cache_bytes.to_string().into()),
        ("GRISTMILL_STORE_REQUESTS", options.requests.to_string().into()),
        ("GRISTMILL_STORE_ATTEMPTS", options.attempts.to_string().into()),
        ("GRISTMILL_STORE_TIMEOUT", seconds(options.timeout)),
        ("GRISTMILL_STORE_STALL", seconds(options.stall)),
    ]
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
