//! Addresses of objects, and clients for their stores.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use object_store::path::Path as Key;
use object_store::{ObjectStore, RetryConfig};
use url::Url;
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::fork::PerProcess;
use crate::place;
use crate::store::options::StoreOptions;
use crate::store::stores::{self, STORES};

/// A bucket, a container or a web server.
#[derive(Clone, Debug)]
pub(in crate::store) struct Bucket {
    /// Client for reads, without retries. The crate retries reads itself, with the server's pause and from the first
    /// missing byte.
    pub(in crate::store) reader: Arc<dyn ObjectStore>,
    /// Client with built-in retries, for everything except reads.
    pub(in crate::store) patient: Arc<dyn ObjectStore>,
}

/// Address of an object or a folder: a name in a bucket.
#[derive(Clone, Debug)]
pub(in crate::store) struct Address {
    pub(in crate::store) bucket: Bucket,
    /// URL of the bucket, such as `s3://bucket`.
    root: Arc<str>,
    /// Name in the bucket.
    pub(in crate::store) key: Key,
    /// URL as given, for web servers only.
    pub(in crate::store) exact: Option<Arc<str>>,
}

/// Maximum length of a requested URL, in bytes. Escaping can triple the length, and every client still sends such a
/// URL.
pub(in crate::store) const LONGEST: usize = 16 << 10;

impl Address {
    /// Parses the URL of an object or a folder.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the feature of the store is off, or if the URL contains a user.
    /// [`ErrorKind::Config`] if the URL is invalid or longer than 16 KiB, or if the store is not configured.
    pub(in crate::store) fn parse(path: &Path) -> Result<Self> {
        let len = path.as_os_str().len();
        if len > LONGEST {
            let begin: String = place::shown(path).to_string_lossy().chars().take(60).collect();
            let text = format!("{begin}…: the URL has {len} bytes, limit {LONGEST}");
            return Err(Error::config(text));
        }
        let location = Self::parse_text(path.to_str().unwrap_or_default());
        location.map_err(|e| e.path(path))
    }

    fn parse_text(text: &str) -> Result<Self> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let scheme = &*scheme.to_ascii_lowercase();
        if place::has_user(text) {
            return Err(Error::unsupported("the URL contains a user and password")
                .help("use a signed URL, or keys in the environment with s3://, gs://, az://"));
        }
        if place::is_web(scheme) {
            return Self::parse_web(text, scheme);
        }
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        let key = key.trim_end_matches('/');
        let key = Key::parse(key)
            .map_err(|_| Error::config("not a name of an object: stores allow no empty parts, nor `.` or `..`"))?;
        let root = format!("{scheme}://{host}");
        Ok(Self { bucket: bucket(scheme, &root)?, root: root.into(), key, exact: None })
    }

    fn parse_web(text: &str, scheme: &str) -> Result<Self> {
        let url = Url::parse(text).map_err(|e| Error::config(format!("no URL: {e}")))?;
        let root = &url[..url::Position::BeforePath];
        let key = Key::from_url_path(url.path()).map_err(|e| Error::config(format!("no URL: {e}")))?;
        let exact = Some(url[..url::Position::AfterQuery].into());
        Ok(Self { bucket: bucket(scheme, root)?, root: root.into(), key, exact })
    }

    /// Returns true if the object is on a web server.
    pub(in crate::store) fn is_web(&self) -> bool {
        self.root.split_once("://").is_some_and(|(scheme, _)| place::is_web(scheme))
    }

    /// Returns the address of the object `name` in this folder.
    pub(in crate::store) fn child(&self, name: &str) -> Self {
        self.at(self.key.clone().join(name))
    }

    /// Returns the address of another object in the bucket.
    pub(in crate::store) fn at(&self, key: Key) -> Self {
        Self { key, exact: None, ..self.clone() }
    }

    /// Returns the URL without its secret parts.
    pub(in crate::store) fn path(&self) -> PathBuf {
        match &self.exact {
            Some(url) => place::shown(Path::new(&**url)).into_owned(),
            None => PathBuf::from(format!("{}/{}", self.root, self.key)),
        }
    }
}

/// Configuration of a client: root, hash of the environment, attempts and timeout.
type Known = (String, u64, u32, Duration);

/// Returns the client for a bucket. All objects of a bucket share a client, so that connections are reused.
fn bucket(scheme: &str, root: &str) -> Result<Bucket> {
    // A forked process must not use connections of its parent.
    static BUCKETS: PerProcess<Mutex<HashMap<Known, Bucket>>> = PerProcess::new(Mutex::default);
    let StoreOptions { attempts, timeout, .. } = StoreOptions::current();
    let known = (root.to_owned(), environment(), attempts, timeout);
    let mut buckets = BUCKETS.lock();
    if let Some(bucket) = buckets.get(&known) {
        return Ok(bucket.clone());
    }
    let once = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    let patient = RetryConfig { max_retries: attempts as usize - 1, retry_timeout: timeout, ..RetryConfig::default() };
    let bucket = Bucket { reader: client(scheme, root, once)?, patient: client(scheme, root, patient)? };
    Ok(buckets.entry(known).or_insert(bucket).clone())
}

/// Returns a hash of the variables that configure clients. Changed variables create another client.
fn environment() -> u64 {
    let prefixes = || STORES.iter().map(|store| store.facts.variables).filter(|prefix| !prefix.is_empty());
    let mut variables: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| {
            let name = name.as_encoded_bytes();
            prefixes().any(|prefix| name.starts_with(prefix.as_bytes()))
        })
        .collect();
    variables.sort_unstable();
    let mut hasher = Xxh3::new();
    for word in variables.iter().flat_map(|(name, value)| [name, value]) {
        hasher.update(word.as_encoded_bytes());
        hasher.update(&[0]);
    }
    hasher.digest()
}

fn client(scheme: &str, root: &str, retry: RetryConfig) -> Result<Arc<dyn ObjectStore>> {
    let client = stores::of(scheme).and_then(|store| store.client).ok_or_else(|| stores::lacking(scheme))?;
    client(root, retry)
}
