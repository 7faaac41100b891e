//! Stores: where files lie that are not on this machine, and folders to write into, here or there.
//!
//! Wherever a path is taken, the URL of an object may stand, a glob of them, a folder (`s3://bucket/data/`) or a range
//! of shards (`train-{00000..00127}.tar`):
//!
//! | URL | store | feature | configured by |
//! |---|---|---|---|
//! | `s3://bucket/key`, `s3a://` | S3, and what speaks its language | `s3` | `AWS_*`, such as `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` |
//! | `gs://bucket/key` | Google Cloud Storage | `gcs` | `GOOGLE_*`, such as `GOOGLE_SERVICE_ACCOUNT` (a file), `GOOGLE_BASE_URL` |
//! | `az://container/key`, `abfs://`, `abfss://` | Azure Blob Storage | `azure` | `AZURE_*` |
//! | `https://host/path`, `http://` | a web server that answers for ranges | `http` | |
//! | `hf://datasets/org/name@revision/path` | a dataset of Hugging Face's hub; without a revision, of `main` | `http` | `HF_TOKEN`, or the token that `hf auth login` has written, `HF_ENDPOINT` |
//! | `file:///path` | this machine | | |
//!
//! The variables are those of the [`object_store`](https://docs.rs/object_store) crate; `AWS_SKIP_SIGNATURE=true` (and its
//! sisters) reads public data without credentials. A web server has no listings, unless it speaks WebDAV.
//!
//! # What they promise
//! - The elements are those of the same files on a disk, and so are states and orders.
//! - An object is pinned when it is opened: size and ETag, or the time of its last change. Whatever is read of it later is
//!   of that version, or an error says that it changed. The ETag is part of the identity in a checkpoint. A branch or tag of a dataset of the
//!   hub is asked for its commit once, and a process and its workers read that commit whatever is pushed meanwhile.
//! - What a server or the network does not do at once is tried again, with growing pauses or those it asks for
//!   (`Retry-After`, the hub's `RateLimit`), within the bounds of [`StoreOptions`]. A body that was cut is continued where it was cut, and an
//!   attempt that brought bytes is not counted. A host of which no address was ever found is an error after a few seconds.
//! - A refusal is reported with the code and the request id of the store, and a remedy for the most frequent codes.
//! - Neither credentials nor the queries of signed URLs are in errors, logs, reports or checkpoints. A URL with a user and a password is
//!   refused.
//! - A server of `https` is believed where the system trusts its certificate; `SSL_CERT_FILE` names others. Connections are encrypted by what the
//!   process has set as the default of `rustls`, or, where it has set nothing when the first store is opened, by `ring`, which is set as that then.
//!
//! # What servers may do
//! - Blocks, and indices of lines and records, are known by the whole URL that was asked for, the query too, and by size, ETag, version and
//!   time of the last change, as far as the server tells them. So a URL that is signed anew has blocks of its own.
//! - Where a server tells nothing but the size, nothing is kept for other runs, and each opening reads anew. That such an object is replaced
//!   by one of the same size while it is read is not detected; nor is, where only times are told, a change within the same second.
//! - A redirect of S3, Google or Azure is an error: their requests are signed. Web servers may redirect, though not from `https` to
//!   `http`; the next server is not told where the request came from. The hub redirects to addresses that are signed: they are followed
//!   without its token, kept for each file, and asked for again when they have ended.
//! - Memory is taken for the bytes that come, and not for those that are announced. What is read whole, such as a manifest or a page of
//!   a list, may have 256 MiB.
//!
//! # Who may read the cache
//! The folder of [`cache_dir`](StoreOptions::cache_dir) has the folders `blocks` and `indices`, which are the user's alone: others can neither read nor
//! write there, and one that belongs to somebody else, or that others may write to, is refused. Each block has a hash that is made with a
//! key of that folder. So what another user put there, what was copied from elsewhere, or what was damaged, is no block. Programs of
//! the same user, and administrators, can read the key: nothing is held against them.
//!
//! # Writers
//! A [sink](crate::sink) holds a folder of a store by an object in it, `.gristmill-writer.json`, which is made by a conditional put and
//! removed at the end; a second sink is refused. It is written again every 15 s. After a kill the next sink goes on at once on the same machine,
//! where it sees that the process is gone, and elsewhere a minute after the object was written last. The manifest is replaced by a conditional
//! put, too: a writer that was taken for dead publishes nothing more, and says so. S3 and what keeps to its conditional puts, Google and Azure do this.
//! Shards are put without a condition, as no store has one for the end of an upload in parts: a writer that was taken for dead in the
//! middle of a shard may still put it, over that of the one that followed. Of one pipeline both have the same bytes; of others the
//! manifest's hash tells (`gristmill verify`).
//! A store that does not heed conditions refuses a sink that comes later, but not two that come in the same instant; web servers
//! refuse none.
//!
//! # Cost
//! Objects are opened on up to 64 threads, as many as requests may be in flight: `n` objects take about `n / 64` round trips for their sizes and
//! as many for their headers. Parquet files of a listing take one request each. A process keeps up to 64 MiB of their footers and 16 MiB of
//! versions, so that objects which are listed again are opened without requests.
//!
//! Objects are read in blocks of 128 KiB. Neighbouring ones are one request, several requests are in flight, and blocks are
//! kept in memory and, where a folder is given, on disk: see [`StoreOptions`]. A pass says which records it will read
//! ([`Stage::will_read`](crate::Stage::will_read)), in whatever order that is, and what they need is fetched in that order, as far as
//! half of the memory goes; worker processes do so within the ranges of records that they are given, a thread each.
//!
//! A byte is copied three times: by the system, into a block, and out of the blocks into the record. Memory of 64 KiB and more is used
//! again, blocks' and records': beside what is in use, a process keeps an eighth of that, or 8 MiB.

#[cfg(feature = "store")]
mod ahead;
#[cfg(feature = "store")]
mod blocks;
#[cfg(any(feature = "store", feature = "parquet"))]
mod bounded;
#[cfg(feature = "store")]
mod bucket;
#[cfg(feature = "store")]
mod client;
#[cfg(feature = "store")]
mod counts;
#[cfg(feature = "store")]
mod disk;
#[cfg(feature = "store")]
mod fetch;
mod folder;
#[cfg(feature = "store")]
mod hosts;
#[cfg(feature = "http")]
mod hub;
#[cfg(feature = "store")]
mod known;
#[cfg(feature = "store")]
mod lease;
#[cfg(feature = "store")]
mod limit;
#[cfg(feature = "store")]
mod list;
mod listed;
mod local;
#[cfg(feature = "store")]
mod object;
mod options;
mod output;
#[cfg(feature = "store")]
mod private;
#[cfg(feature = "store")]
mod process;
#[cfg(feature = "store")]
mod refused;
#[cfg(feature = "store")]
mod replace;
#[cfg(feature = "store")]
mod retry;
#[cfg(feature = "store")]
mod runtime;
#[cfg(feature = "store")]
mod service;
#[cfg(feature = "store")]
mod shared;
#[cfg(all(test, feature = "http"))]
mod tests;
#[cfg(feature = "store")]
mod upload;

#[cfg(not(feature = "store"))]
use std::path::Path;

use crate::error::{Error, Result};
use crate::units::Bytes;

#[cfg(all(feature = "store", feature = "array_record"))]
pub(crate) use self::blocks::BLOCK;
#[cfg(feature = "parquet")]
pub(crate) use self::bounded::Bounded;
#[cfg(feature = "store")]
pub(crate) use self::counts::tell;
pub use self::folder::{Entry, Folder};
pub(crate) use self::folder::{Version, Writer};
#[cfg(feature = "store")]
pub(crate) use self::list::find;
pub(crate) use self::listed::{MANIFEST, listed};
#[cfg(feature = "cli")]
pub(crate) use self::local::{Alone, check_writable};
pub(crate) use self::local::{description, replace};
#[cfg(feature = "store")]
pub(crate) use self::object::{END, Object};
pub use self::options::StoreOptions;
pub(crate) use self::options::index_folder;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use self::options::variables;
pub use self::output::Output;
#[cfg(feature = "store")]
pub(crate) use self::shared::{abreast, memory};
#[cfg(all(feature = "store", feature = "workers", target_os = "linux"))]
pub(crate) use self::shared::{be_one_of_many, let_go};

/// Bytes of a text that describes other files, which is read whole: a manifest, an index, a list.
pub(crate) const DESCRIPTION: u64 = 256 << 20;

/// Checks the length of a text that describes other files.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if no such text is as long.
pub(crate) fn check_description(bytes: u64) -> Result<()> {
    if bytes <= DESCRIPTION {
        return Ok(());
    }
    Err(Error::data(format!("{}, where no more than {} are read whole", Bytes(bytes), Bytes(DESCRIPTION)))
        .help("it describes other files, and is none of ours if it is as long"))
}

/// Nothing happened.
#[cfg(not(feature = "store"))]
#[inline]
pub(crate) fn tell(_: &mut crate::Cx) {}

/// Nothing is held.
#[cfg(all(not(feature = "store"), feature = "workers", target_os = "linux"))]
pub(crate) fn let_go() {}

/// Nothing is read.
#[cfg(all(not(feature = "store"), feature = "workers", target_os = "linux"))]
pub(crate) fn be_one_of_many() {}

/// Nothing is held.
#[cfg(not(feature = "store"))]
pub(crate) fn memory() -> Option<(u64, u64)> {
    None
}

/// Makes the error of a build without stores.
#[cfg(not(feature = "store"))]
pub(crate) fn lacking(path: &Path) -> Error {
    options::lacking(crate::place::scheme(path).unwrap_or_default()).path(path)
}
