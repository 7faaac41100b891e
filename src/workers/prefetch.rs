//! A loader whose elements come from workers.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::options::MpOptions;
use super::start::Launch;
use crate::dataset::IterDataset;
use crate::error::Result;
use crate::loader::{Load, LoaderBuilder};

/// Returns a builder of a loader for the pipeline that `factory` builds from `cfg`; elements are evaluated in worker
/// processes.
///
/// `factory` is a function or a closure without captures; the compiler rejects others. It is called here and in every
/// worker, and must build an identical pipeline each time. No worker starts before [`build`](LoaderBuilder::build).
/// `build` fails if elements have a type that cannot leave a worker: see [`crosses`](super::crosses) and the
/// [module](super).
/// # Errors
/// Errors of `factory`; [`ErrorKind::Config`](crate::ErrorKind::Config) if `cfg` does not survive a round trip through
/// JSON.
pub fn mp_prefetch<C, D>(factory: fn(C) -> Result<D>, cfg: C, options: MpOptions) -> Result<LoaderBuilder<D>>
where
    C: Serialize + DeserializeOwned,
    D: IterDataset + 'static,
{
    let launch = Launch::new(factory, &cfg, options)?;
    Ok(factory(cfg)?.loader().backend(launch))
}

impl<D: IterDataset + 'static> LoaderBuilder<D> {
    /// Evaluates the elementwise part in worker processes, which build the pipeline as `factory(cfg)`. Replaces the
    /// [`executor`](Self::executor). The function [`mp_prefetch`] also calls `factory` to create the dataset.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `cfg` does not survive a round trip through JSON. A worker
    /// whose pipeline has another fingerprint ends the run with an error that names the first different stage.
    pub fn mp_prefetch<C, E>(self, factory: fn(C) -> Result<E>, cfg: &C, options: MpOptions) -> Result<Self>
    where
        C: Serialize + DeserializeOwned,
        E: IterDataset + 'static,
    {
        Ok(self.backend(Launch::new(factory, cfg, options)?))
    }
}
