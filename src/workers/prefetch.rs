//! A loader whose elements come from workers.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::options::MpOptions;
use super::start::Launch;
use crate::dataset::IterDataset;
use crate::error::Result;
use crate::loader::{Load, LoaderBuilder};

/// A loader of the pipeline that `factory` makes of `cfg`, whose elements are evaluated in worker processes.
///
/// `factory` is a function or a closure that captures nothing: the compiler refuses others. It is called here and in every
/// worker, and must make the same pipeline each time. Nothing is started before
/// [`build`](LoaderBuilder::build), which fails where elements are of a type that cannot leave a worker: see
/// [`crosses`](super::crosses) and the [module](super).
///
/// # Errors
/// Errors of `factory`; [`ErrorKind::Config`](crate::ErrorKind::Config) for a `cfg` that does not survive the way through JSON.
pub fn mp_prefetch<C, D>(factory: fn(C) -> Result<D>, cfg: C, options: MpOptions) -> Result<LoaderBuilder<D>>
where
    C: Serialize + DeserializeOwned,
    D: IterDataset + 'static,
{
    let launch = Launch::new(factory, &cfg, options)?;
    Ok(factory(cfg)?.loader().backend(launch))
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    /// The elementwise part in worker processes, which make the same pipeline as `factory` of `cfg`: see [`mp_prefetch`], which
    /// calls it for the dataset too. It takes the place of an [`executor`](Self::executor).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a `cfg` that does not survive the way through JSON.
    /// A worker whose pipeline has another fingerprint ends the run with the first stage that differs.
    pub fn mp_prefetch<C, E>(self, factory: fn(C) -> Result<E>, cfg: &C, options: MpOptions) -> Result<Self>
    where
        C: Serialize + DeserializeOwned,
        E: IterDataset + 'static,
    {
        Ok(self.backend(Launch::new(factory, cfg, options)?))
    }
}
