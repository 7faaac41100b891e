//! Object stores: remote files by their URLs, and output folders on this machine or in a store.
//!
//! A URL can replace a path: the URL of an object, a glob of objects, a folder (`s3://bucket/data/`) or a range of
//! shards (`train-{00000..00127}.tar`):
//!
//! | URL | store | feature | configured by |
//! |---|---|---|---|
//! | `s3://bucket/key`, `s3a://` | S3 and compatible stores | `s3` | `AWS_*`, such as `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` |
//! | `gs://bucket/key` | Google Cloud Storage | `gcs` | `GOOGLE_*`, such as `GOOGLE_SERVICE_ACCOUNT` (a file), `GOOGLE_BASE_URL` |
//! | `az://container/key`, `abfs://`, `abfss://` | Azure Blob Storage | `azure` | `AZURE_*` |
//! | `https://host/path`, `http://` | a web server that supports range requests | `http` | |
//! | `hf://datasets/org/name@revision/path` | a dataset of Hugging Face's hub; the default revision is `main` | `http` | `HF_TOKEN`, or the token that `hf auth login` has written, `HF_ENDPOINT` |
//! | `file:///path` | this machine | | |
//!
//! The [`object_store`](https://docs.rs/object_store) crate documents the variables. `AWS_SKIP_SIGNATURE=true` and its
//! counterparts read public data without credentials. A web server has no listings, unless it supports WebDAV.
//!
//! # Guarantees
//! - A store yields the same elements, orders and states as local copies of its files.
//! - Opening an object pins its version: size and ETag, or the time of its last change. Later reads return bytes of
//!   this version, or an error that the object has changed. The ETag is part of the identity in a checkpoint. A branch
//!   or tag of a hub dataset is resolved to a commit once. A process and its workers then read this commit, even if the
//!   branch moves.
//! - Temporary failures of servers and networks are retried. The pauses grow, or follow the server's request
//!   (`Retry-After`, the hub's `RateLimit`), within the bounds of [`StoreOptions`]. An interrupted body is resumed
//!   after its last byte, and an attempt that received bytes is not counted. A host that was never resolved is an error
//!   after a few seconds.
//! - Refusals are reported with the code and request ID of the store, and a remedy for the most frequent codes.
//! - Errors, logs, reports and checkpoints contain neither credentials nor the queries of signed URLs. A URL with a
//!   user and a password is rejected.
//! - An `https` server is trusted if the system trusts its certificate; `SSL_CERT_FILE` names other certificates.
//!   Connections use the process default of `rustls` for encryption. If there is no default when the first store is
//!   opened, `ring` becomes the default.
//!
//! # Servers
//! - Blocks, and indices of lines and records, are identified by the whole requested URL, including its query. Size,
//!   ETag, version and time of the last change are also included, if the server reports them. A newly signed URL
//!   therefore has separate blocks.
//! - If a server reports only the size, nothing is cached for other runs, and each opening reads anew. Replacing such
//!   an object by another of equal size during a read is not detected. If a server reports only times, a change within
//!   the same second is not detected.
//! - A redirect of S3, Google or Azure is an error, because their requests are signed. Web servers may redirect, but
//!   not from `https` to `http`; the next server receives no `Referer`. The hub redirects to signed URLs. They are
//!   requested without the hub's token, cached for each file, and renewed after they expire.
//! - Memory is allocated for received bytes, not for announced lengths. A file that is read whole, such as a manifest
//!   or a page of a listing, is limited to 256 MiB.
//!
//! # Who may read the cache
//! The folder of [`cache_dir`](StoreOptions::cache_dir) contains the folders `blocks` and `indices`. Only the user can
//! read or write them. A folder that belongs to another user, or that others may write to, is rejected.
//!
//! Each block has a hash that depends on a secret key in the `blocks` folder. Blocks that were made by other users,
//! copied from elsewhere or damaged are therefore rejected. Programs of this user and administrators can read the key;
//! the hash does not protect against them.
//!
//! # Writers
//! A [sink](crate::sink) holds a folder of a store by an object in it, `.gristmill-writer.json`. The object is created
//! by a conditional put and removed at the end. A second sink is refused. The object is rewritten every 15 s. After a
//! kill, the next sink on this machine continues at once, because the process is visibly gone. On another machine, the
//! next sink continues a minute after the last write of the object.
//!
//! The manifest is also replaced by a conditional put. A writer that was presumed dead publishes nothing more, and
//! returns an error. Google, Azure, S3 and stores that follow its conditional puts support this.
//!
//! Shards are put without a condition, because no store has conditions for the end of a multipart upload. A writer that
//! was presumed dead in the middle of a shard may still overwrite its successor's shard. If both writers run the same
//! pipeline, the shards have the same bytes. Otherwise the hash in the manifest reveals the difference (`gristmill
//! verify`).
//!
//! A store that ignores conditions refuses a later sink, but not two sinks that start at the same instant. Web servers
//! refuse no sink.
//!
//! # Cost
//! Objects are opened on up to 64 threads, within the limit of requests in flight. `n` objects take about `n / 64`
//! round trips for their sizes, and again `n / 64` for their headers. Parquet files of a listing take one request each.
//! A process caches up to 64 MiB of their footers and 16 MiB of versions. Objects that are listed again are therefore
//! opened without requests.
//!
//! Objects are read in blocks of 128 KiB. Adjacent blocks share a request, and several requests are in flight. Blocks
//! are cached in memory and, if a folder is set, on disk: see [`StoreOptions`]. A pass announces the records it will
//! read, in any order ([`Moves::will_read`](crate::dataset::Moves::will_read)). Their blocks are fetched in this order,
//! in up to half of the memory. Worker processes prefetch within their assigned ranges of records, on one thread each.
//! Each byte is copied three times: by the system, into a block, and from the block into the record. Memory of 64 KiB
//! and more is reused, both for blocks and for records. In addition to the memory in use, a process keeps an eighth of
//! it or 8 MiB, whichever is larger.

mod azure;
#[cfg(any(feature = "store", feature = "parquet"))]
mod bounded;
mod folder;
mod gcs;
mod http;
mod listed;
mod local;
mod options;
mod output;
#[cfg(feature = "store")]
mod remote;
#[cfg(not(feature = "store"))]
#[path = "absent.rs"]
mod remote;
mod s3;
mod stores;
#[cfg(all(test, feature = "http"))]
pub(crate) mod tests;

use crate::error::{Error, Result};
use crate::units::Bytes;

#[cfg(feature = "parquet")]
pub(crate) use self::bounded::Bounded;
pub use self::folder::{Entry, Folder};
pub(crate) use self::folder::{Version, Writer};
pub(crate) use self::listed::{MANIFEST, listed};
pub(crate) use self::local::{Alone, check_writable};
pub(crate) use self::local::{description, replace};
pub use self::options::StoreOptions;
pub(crate) use self::options::index_folder;
pub(crate) use self::options::variables;
pub(crate) use self::options::{Described, Field};
pub use self::output::Output;
pub(crate) use self::remote::{BLOCK, END, Object, abreast, find, memory, tell};
pub(crate) use self::remote::{be_one_of_many, let_go};
pub(crate) use self::stores::FEATURES;

/// Maximum size in bytes of a text that describes other files, such as a manifest, an index or a list. Such texts are
/// read whole.
pub(crate) const DESCRIPTION: u64 = 256 << 20;

/// Checks the length of a text that describes other files.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if the text is longer than [`DESCRIPTION`].
pub(crate) fn check_description(bytes: u64) -> Result<()> {
    if bytes <= DESCRIPTION {
        return Ok(());
    }
    Err(Error::data(format!("the file has {}, limit {}", Bytes(bytes), Bytes(DESCRIPTION)))
        .help("it describes other files; gristmill does not write such a file of this length"))
}
