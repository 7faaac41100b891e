//! Conditional replacement of an object: fails if another writer has replaced the object.

use object_store::{GetResult, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};

use super::bucket::Address;
use super::lease::taken_over;
use super::retry::{given_up, patiently};
use crate::error::Result;

/// Reads a whole object and its version. Returns `None` if the object does not exist.
pub(in crate::store) fn read(at: &Address) -> Result<Option<(Vec<u8>, UpdateVersion)>> {
    let (client, key) = (at.bucket.patient.clone(), at.key.clone());
    let read = patiently(async move {
        match client.get(&key).await {
            Ok(answer) => whole(answer).await.map(Some),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })?;
    read.map_err(|e| given_up(&e).path(at.path()))
}

async fn whole(answer: GetResult) -> object_store::Result<(Vec<u8>, UpdateVersion)> {
    let version = UpdateVersion { e_tag: answer.meta.e_tag.clone(), version: answer.meta.version.clone() };
    Ok((answer.bytes().await?.into(), version))
}

/// Replaces an object of this `version`, or creates the object if `version` is `None`. Returns the new version.
///
/// # Errors
/// [`ErrorKind::State`](crate::ErrorKind::State) if the object now has another version and the store checks versions;
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the object cannot be written.
pub(in crate::store) fn replace(at: &Address, bytes: &[u8], version: Option<UpdateVersion>) -> Result<UpdateVersion> {
    use object_store::Error as E;
    let mode = match version {
        _ if at.is_web() => PutMode::Overwrite,
        None => PutMode::Create,
        // A store without version marks cannot check the version.
        Some(UpdateVersion { e_tag: None, version: None }) => PutMode::Overwrite,
        Some(version) => PutMode::Update(version),
    };
    match put(at, bytes, mode)? {
        Ok(version) => Ok(version),
        Err(E::NotImplemented { .. } | E::NotSupported { .. }) => {
            put(at, bytes, PutMode::Overwrite)?.map_err(|e| given_up(&e).path(at.path()))
        }
        // The put may have succeeded in an earlier attempt whose response was lost.
        Err(E::Precondition { .. } | E::AlreadyExists { .. }) => match read(at)? {
            Some((there, version)) if there == bytes => Ok(version),
            _ => Err(taken_over().path(at.path())),
        },
        Err(error) => Err(given_up(&error).path(at.path())),
    }
}

fn put(at: &Address, bytes: &[u8], mode: PutMode) -> Result<object_store::Result<UpdateVersion>> {
    let (client, key, payload) = (at.bucket.patient.clone(), at.key.clone(), PutPayload::from(bytes.to_vec()));
    let options = PutOptions { mode, ..PutOptions::default() };
    let put = patiently(async move { client.put_opts(&key, payload, options).await })?;
    Ok(put.map(UpdateVersion::from))
}
