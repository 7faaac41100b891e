//! Objects of stores: requests, blocks, caches and uploads.

mod ahead;
pub(super) mod blocks;
pub(super) mod bucket;
mod claimed;
pub(super) mod client;
pub(super) mod clients;
mod counts;
mod disk;
mod fetch;
mod hosts;
#[cfg(feature = "http")]
pub(super) mod hub;
mod known;
pub(super) mod lease;
mod limit;
pub(super) mod list;
pub(super) mod object;
mod private;
mod process;
mod refused;
pub(super) mod replace;
pub(super) mod retry;
mod runtime;
pub(super) mod service;
pub(super) mod shared;
pub(super) mod upload;

pub(crate) use self::blocks::BLOCK;
pub(in crate::store) use self::bucket::Address;
pub(crate) use self::counts::tell;
pub(in crate::store) use self::lease::Lease;
pub(crate) use self::list::find;
pub(in crate::store) use self::list::{delete, entries};
pub(crate) use self::object::{END, Object};
pub(in crate::store) use self::replace::{read, replace};
pub(crate) use self::shared::{abreast, memory};
pub(crate) use self::shared::{be_one_of_many, let_go};
pub(in crate::store) use self::upload::Upload;
pub(in crate::store) use object_store::UpdateVersion;
