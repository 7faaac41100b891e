//! Options of reading stores: memory, disk, requests, patience.

#[cfg(all(feature = "workers", target_os = "linux"))]
use std::ffi::OsString;
#[cfg(feature = "spec")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::RwLock;
use std::time::Duration;

use crate::error::Error;
use crate::sync::Regardless;

/// Options of reading stores, for every source of this process and its workers.
///
/// Each part has a variable of the environment, which counts where the program does not say otherwise.
///
/// | method | variable | at first |
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

/// The options that the program gave.
static APPLIED: RwLock<Option<StoreOptions>> = RwLock::new(None);

impl StoreOptions {
    /// Reads the environment. A variable that is not understood counts as not set, with a warning.
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

    /// A folder on a local disk where blocks are kept, for this run and the next, and for all processes of this user and machine: each
    /// block with a hash, the least recently used removed. Indices of lines and records are kept there, too. [Nobody
    /// else](super#who-may-read-the-cache) may read or write there.
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(folder.into());
        self
    }

    /// Bytes of blocks that are kept there.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Bytes of blocks that are kept in memory by each process. A worker keeps no more than an eighth of its heap, so that
    /// they are part of the RAM budget; who starts workers lets go of what it read to open files.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Requests in flight at a time; at least 1, and at most 65,536. Requests for small parts of objects are limited by this number
    /// alone, requests for large parts also by their bytes: 64 MiB at a time, and more if more than 64 requests are allowed.
    pub fn requests(mut self, count: usize) -> Self {
        self.requests = count.clamp(1, 1 << 16);
        self
    }

    /// Sets how often a request is tried; at least once.
    pub fn attempts(mut self, count: u32) -> Self {
        self.attempts = count.max(1);
        self
    }

    /// Sets how long a request is tried, all attempts with their bodies and the pauses between them together. Waiting until others
    /// have been [served](Self::requests) is not part of it.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Sets how long a request may stand still before it is tried again.
    pub fn stall(mut self, time: Duration) -> Self {
        self.stall = time;
        self
    }

    /// Blocks of all bodies that are on their way at a time: those of 16 full requests, and a quarter of those of more than 64.
    #[cfg(feature = "store")]
    pub(super) fn body_blocks(&self) -> usize {
        let full = super::object::PIECE as usize;
        (self.requests.min(16) * full).max(self.requests / 4 * full)
    }

    /// The folder of blocks and the bytes that they may come to, if there is one.
    #[cfg(feature = "cli")]
    pub(crate) fn cache(&self) -> Option<(&Path, u64)> {
        Some((self.cache_dir.as_deref()?, self.cache_bytes))
    }

    /// Relative folders begin here.
    #[cfg(feature = "spec")]
    pub(crate) fn below(mut self, folder: &Path) -> Self {
        self.cache_dir = self.cache_dir.map(|dir| folder.join(dir));
        self
    }

    /// From now on, whatever is opened is read so; what is open already stays as it is.
    pub fn apply(self) {
        *APPLIED.write().regardless() = Some(self);
    }

    /// The options that count now.
    pub(super) fn current() -> Self {
        APPLIED.read().regardless().clone().unwrap_or_else(Self::from_env)
    }
}

/// The folder in which indices of objects are kept.
pub(crate) fn index_folder() -> Option<PathBuf> {
    StoreOptions::current().cache_dir.map(|folder| folder.join("indices"))
}

/// The options that the program gave, as variables for its workers.
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

/// Says that the feature for a scheme is off, or that there is no such scheme.
#[cold]
pub(super) fn lacking(scheme: &str) -> Error {
    let feature = match scheme {
        "s3" | "s3a" => "s3",
        "gs" => "gcs",
        "az" | "adl" | "azure" | "abfs" | "abfss" => "azure",
        "http" | "https" | "hf" => "http",
        other => {
            return Error::unsupported(format!("{other}:// is no store that is known"))
                .help("known are s3://, gs://, az://, abfss://, hf://, https:// and file://");
        }
    };
    Error::unsupported(format!("this build does not read {scheme}://"))
        .help(format!("build gristmill with the feature `{feature}`"))
}
