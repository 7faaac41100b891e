//! Options for reading stores: memory, disk, requests, timeouts.

use std::ffi::OsStr;
use std::ffi::OsString;
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
/// | [`connect_timeout`](Self::connect_timeout) | `GRISTMILL_STORE_CONNECT_TIMEOUT`, seconds | 5 s |
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
    pub(super) requests: u32,
    pub(super) attempts: u32,
    pub(super) timeout: Duration,
    pub(super) stall: Duration,
    pub(super) connect_timeout: Duration,
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
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// Maximum number of requests in flight.
const MOST_REQUESTS: u32 = 1 << 16;

/// Options applied by the program.
static APPLIED: RwLock<Option<StoreOptions>> = RwLock::new(None);

/// Description of an option. Pipeline files, environment variables and Python read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) field: Field,
}

/// Field of an option, by the type of its values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    Folder(fn(&mut StoreOptions) -> &mut Option<PathBuf>),
    Bytes(fn(&mut StoreOptions) -> &mut u64),
    /// A number from 1 to this limit.
    Count(fn(&mut StoreOptions) -> &mut u32, u32),
    Seconds(fn(&mut StoreOptions) -> &mut Duration),
}

impl StoreOptions {
    /// All options.
    pub(crate) const DESCRIBED: [Described; 8] = [
        Described {
            name: "cache_dir",
            doc: "Folder on a local disk for a cache of blocks.\n\n\
                  All processes of this user share it. Only this user can read the files, and a folder that other users may write to \
                  is refused. Objects without an ETag or a modification time are not cached.",
            field: Field::Folder(|options| &mut options.cache_dir),
        },
        Described {
            name: "cache_size",
            doc: "Maximum size of the cache in that folder [default: 10GiB].",
            field: Field::Bytes(|options| &mut options.cache_bytes),
        },
        Described {
            name: "memory",
            doc: "Memory for blocks of each process [default: 256MiB].\n\n\
                  A worker process uses at most an eighth of its heap.",
            field: Field::Bytes(|options| &mut options.memory_bytes),
        },
        Described {
            name: "requests",
            doc: "Concurrent requests [default: 64].\n\n\
                  Large parts of objects are also limited to 64 MiB at a time. More requests raise that limit.",
            field: Field::Count(|options| &mut options.requests, MOST_REQUESTS),
        },
        Described {
            name: "attempts",
            doc: "Attempts per request [default: 10].",
            field: Field::Count(|options| &mut options.attempts, u32::MAX),
        },
        Described {
            name: "timeout",
            doc: "Seconds per request, including all attempts and pauses [default: 180].",
            field: Field::Seconds(|options| &mut options.timeout),
        },
        Described {
            name: "stall",
            doc: "Seconds without progress before a request is retried [default: 20].",
            field: Field::Seconds(|options| &mut options.stall),
        },
        Described {
            name: "connect_timeout",
            doc: "Seconds to connect to a server before the request is retried [default: 5].",
            field: Field::Seconds(|options| &mut options.connect_timeout),
        },
    ];

    /// Reads the options from the environment. Ignores an invalid variable with a warning.
    pub fn from_env() -> Self {
        let mut options = Self::default();
        for option in Self::DESCRIBED {
            let variable = option.variable();
            let Some(text) = std::env::var_os(&variable) else { continue };
            if option.field.parse(&mut options, &text).is_none() {
                tracing::warn!(%variable, value = %text.to_string_lossy(), "invalid value, ignored");
            }
        }
        options
    }

    setters! {
        /// Sets the folder of the disk cache, which should be on a local disk. All runs and processes of this user on
        /// this machine share the cache. Each block is stored with a hash, and the least recently used blocks are
        /// evicted. The folder also contains indices of lines and records. [Other users](super#who-may-read-the-cache)
        /// can neither read nor write there.
        pub cache_dir(folder: impl Into<PathBuf>) => cache_dir = Some(folder.into());

        /// Sets the maximum size of the blocks in the disk cache, in bytes.
        pub cache_bytes: u64;

        /// Sets the memory for blocks of each process, in bytes. A worker uses at most an eighth of its heap, so that
        /// blocks are part of the RAM budget. A process that starts workers drops the blocks it has read to open files.
        pub memory_bytes: u64;

        /// Sets the maximum number of requests in flight, from 1 to 65,536. Requests for small parts of objects are
        /// limited only by this number. Requests for large parts are also limited to 64 MiB in flight. That limit is
        /// higher for more than 64 requests.
        pub requests(count: usize) => requests = count.clamp(1, MOST_REQUESTS as usize) as u32;

        /// Sets the maximum number of attempts at a request, at least 1.
        pub attempts(count: u32) => attempts = count.max(1);

        /// Sets the maximum time for a request, including all attempts, bodies and pauses. The wait for a [free
        /// request](Self::requests) does not count.
        pub timeout: Duration;

        /// Sets the maximum time without progress before a request is retried.
        pub stall: Duration;

        /// Sets the maximum time to connect to a server before the request is retried. A value other than the default
        /// overrides the variable of the store, such as `AWS_CONNECT_TIMEOUT`.
        pub connect_timeout: Duration;
    }

    /// Returns the maximum number of blocks in flight: 16 full requests, or a quarter of `requests` if this is more.
    #[cfg(feature = "store")]
    pub(super) fn body_blocks(&self) -> usize {
        let full = super::remote::object::PIECE as usize;
        let requests = self.requests as usize;
        (requests.min(16) * full).max(requests / 4 * full)
    }

    /// Returns the folder of the disk cache and its maximum size in bytes, if there is a folder.
    pub(crate) fn cache(&self) -> Option<(&Path, u64)> {
        Some((self.cache_dir.as_deref()?, self.cache_bytes))
    }

    /// Resolves a relative cache folder against `folder`.
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
pub(crate) fn variables() -> Vec<(String, OsString)> {
    let variables = applied_variables().into_iter();
    #[cfg(feature = "http")]
    let variables = variables.chain(super::remote::hub::variable().map(|(name, value)| (name.to_owned(), value)));
    variables.collect()
}

fn applied_variables() -> Vec<(String, OsString)> {
    let applied = APPLIED.read().regardless().clone();
    applied.map_or_else(Vec::new, |mut options| {
        StoreOptions::DESCRIBED.iter().map(|option| (option.variable(), option.field.text(&mut options))).collect()
    })
}

impl Described {
    /// Returns the name of the environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("GRISTMILL_STORE_{}", self.name.to_ascii_uppercase())
    }
}

impl Field {
    /// Reads the field of `options` from the text of a variable; `None` for an invalid text.
    fn parse(self, options: &mut StoreOptions, text: &OsStr) -> Option<()> {
        let plain = || text.to_str().map(str::trim);
        match self {
            Self::Folder(field) => *field(options) = Some(PathBuf::from(text)).filter(|_| !text.is_empty()),
            Self::Bytes(field) => *field(options) = crate::units::parse_bytes(plain()?)?,
            Self::Count(field, most) => {
                *field(options) = plain()?.parse::<u64>().ok()?.clamp(1, most.into()) as u32;
            }
            Self::Seconds(field) => *field(options) = Duration::try_from_secs_f64(plain()?.parse().ok()?).ok()?,
        }
        Some(())
    }

    /// Returns the value of the field as the text of a variable.
    pub(crate) fn text(self, options: &mut StoreOptions) -> OsString {
        match self {
            Self::Folder(field) => field(options).clone().unwrap_or_default().into(),
            Self::Bytes(field) => field(options).to_string().into(),
            Self::Count(field, _) => field(options).to_string().into(),
            Self::Seconds(field) => field(options).as_secs_f64().to_string().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_states_the_default() {
        for Described { name, doc, field } in StoreOptions::DESCRIBED {
            let stated = doc.split_once("[default: ").map(|(_, rest)| rest.split_once(']').unwrap().0);
            // Zero is no default.
            let mut read =
                StoreOptions { memory_bytes: 0, cache_bytes: 0, requests: 0, attempts: 0, ..Default::default() };
            (read.timeout, read.stall, read.connect_timeout) = Default::default();
            match (field, stated) {
                (Field::Folder(_), None) => {}
                (_, stated) => assert!(field.parse(&mut read, OsStr::new(stated.expect(name))).is_some(), "{name}"),
            }
            let mut default = StoreOptions::default();
            match field {
                Field::Folder(of) => assert_eq!(of(&mut read), of(&mut default), "{name}"),
                Field::Bytes(of) => assert_eq!(of(&mut read), of(&mut default), "{name}"),
                Field::Count(of, _) => assert_eq!(of(&mut read), of(&mut default), "{name}"),
                Field::Seconds(of) => assert_eq!(of(&mut read), of(&mut default), "{name}"),
            }
        }
    }

    #[test]
    #[cfg(any(feature = "python", all(feature = "workers", target_os = "linux")))]
    fn a_variable_gives_the_value_whose_text_it_is() {
        let mut given = StoreOptions::default().cache_dir("/c").cache_bytes(1).memory_bytes(2).requests(3).attempts(4);
        given = given.timeout(Duration::from_millis(1500)).stall(Duration::from_secs(6));
        given = given.connect_timeout(Duration::from_secs(7));
        let mut read = StoreOptions::default();
        for option in StoreOptions::DESCRIBED {
            assert!(option.field.parse(&mut read, &option.field.text(&mut given)).is_some(), "{}", option.name);
            assert!(
                matches!(option.field, Field::Folder(_)) || option.field.parse(&mut read, OsStr::new("x")).is_none()
            );
        }
        assert_eq!(read, given);
        assert!(read.clone().requests(0).requests == 1 && read.requests(1 << 20).requests == 1 << 16);
    }
}
