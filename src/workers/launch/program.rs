//! Program of a worker: the pipeline's factory, its configuration, and the function that serves it.
//!
//! A function cannot be sent, but a worker of the same build contains it too. The place of a function is its module and
//! the offset from the module's base. Only plain functions are accepted: `fn` items, and closures that capture nothing,
//! which become function pointers. So no captured value can be missing in the worker. The compiler refuses others:
//! "closures can only be coerced to `fn` types if they do not capture any variables".

#![allow(unsafe_code, reason = "function pointers are made from an address that another process sent")]

use std::mem;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::starter::Starter;
use crate::error::{Error, ErrorKind, Result};
use crate::workers::control::Session;
use crate::workers::sys::modules;

/// Program of a worker: functions, by their place in the running code, and their argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Program {
    enter: CodePlace,
    factory: CodePlace,
    serve: CodePlace,
    #[serde(skip)]
    pub(crate) cfg: Arc<Vec<u8>>,
    /// Custom starter, if workers are not this program started again.
    #[serde(skip)]
    starter: Option<Arc<Starter>>,
}

/// Factory of a pipeline from bytes. The factory may free the bytes early, because they can be large.
pub(crate) type FromBytes<D> = fn(Vec<u8>, &Session) -> Result<D>;

/// Function that restores the types of `factory` and `serve`, which are given as addresses.
type Enter = unsafe fn(factory: *const (), serve: *const (), cfg: Vec<u8>, session: Session) -> Result<()>;

impl Program {
    /// Creates the program that runs `serve(factory(cfg)?, session)` in a worker.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if `cfg` cannot be written as JSON and read back.
    pub(crate) fn new<C, D>(factory: fn(C) -> Result<D>, cfg: &C, serve: fn(D, Session) -> Result<()>) -> Result<Self>
    where
        C: Serialize + DeserializeOwned,
    {
        let cfg = encode(cfg)?;
        Ok(Self {
            enter: CodePlace::of(enter::<C, D> as Enter as *const ())?,
            factory: CodePlace::of(factory as *const ())?,
            serve: CodePlace::of(serve as *const ())?,
            cfg: Arc::new(cfg),
            starter: None,
        })
    }

    /// Creates the program that runs `serve(factory(cfg)?, session)` in a worker started by `starter`.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the functions are not in a module of this process.
    pub(crate) fn of_bytes<D>(
        factory: FromBytes<D>,
        cfg: Arc<Vec<u8>>,
        starter: Arc<Starter>,
        serve: fn(D, Session) -> Result<()>,
    ) -> Result<Self> {
        Ok(Self {
            enter: CodePlace::of(enter_bytes::<D> as Enter as *const ())?,
            factory: CodePlace::of(factory as *const ())?,
            serve: CodePlace::of(serve as *const ())?,
            cfg,
            starter: Some(starter),
        })
    }

    /// Returns the custom starter, if workers are not this program started again.
    pub(super) fn starter(&self) -> Option<&Starter> {
        self.starter.as_deref()
    }

    pub(crate) fn set_cfg(&mut self, mut cfg: Vec<u8>) {
        // The pieces left spare capacity, which would count against the worker's heap.
        cfg.shrink_to_fit();
        self.cfg = Arc::new(cfg);
    }

    /// Runs the program to its end, in the worker.
    ///
    /// # Errors
    /// Errors of the factory or the serving function; [`ErrorKind::Worker`] if this process does not contain their
    /// code.
    pub(crate) fn run(self, session: Session) -> Result<()> {
        let (factory, serve) = (self.factory.resolve()?, self.serve.resolve()?);
        let enter = self.enter.resolve()?;
        // SAFETY: `new` took the address from a function of this type, and `resolve` found the same build of the same
        // module, in which that function lies at the same offset.
        let enter = unsafe { mem::transmute::<*const (), Enter>(enter) };
        // SAFETY: `new` took all three addresses of one choice of types.
        unsafe { enter(factory, serve, Arc::unwrap_or_clone(self.cfg), session) }
    }
}

/// # Safety
/// The addresses are those of a `fn(C) -> Result<D>` and a `fn(D, Session) -> Result<()>` of this process.
unsafe fn enter<C: DeserializeOwned, D>(
    factory: *const (),
    serve: *const (),
    cfg: Vec<u8>,
    mut session: Session,
) -> Result<()> {
    // SAFETY: the caller's.
    let factory = unsafe { mem::transmute::<*const (), fn(C) -> Result<D>>(factory) };
    // SAFETY: the caller's.
    let serve = unsafe { mem::transmute::<*const (), fn(D, Session) -> Result<()>>(serve) };
    let begin = Instant::now();
    let decoded = decode(&cfg)?;
    drop(cfg);
    let dataset = factory(decoded)?;
    session.set_built_in(begin.elapsed());
    serve(dataset, session)
}

/// # Safety
/// The addresses are those of a [`FromBytes<D>`] and a `fn(D, Session) -> Result<()>` of this process.
unsafe fn enter_bytes<D>(factory: *const (), serve: *const (), cfg: Vec<u8>, mut session: Session) -> Result<()> {
    // SAFETY: the caller's.
    let factory = unsafe { mem::transmute::<*const (), FromBytes<D>>(factory) };
    // SAFETY: the caller's.
    let serve = unsafe { mem::transmute::<*const (), fn(D, Session) -> Result<()>>(serve) };
    let begin = Instant::now();
    let dataset = factory(cfg, &session)?;
    session.set_built_in(begin.elapsed());
    serve(dataset, session)
}

/// Place of a function: a module, and the offset from the module's base.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CodePlace {
    module: Identity,
    offset: u64,
}

impl CodePlace {
    fn of(function: *const ()) -> Result<Self> {
        let address = function.expose_provenance();
        let module = modules::holding(address).filter(|m| m.is_code(address)).ok_or_else(|| {
            Error::new(ErrorKind::Worker, format!("function at {address:#x} is in no module of this process"))
                .help("code generated at run time cannot run in a worker")
        })?;
        Ok(Self { module: Identity::of(&module), offset: address.wrapping_sub(module.bias) as u64 })
    }

    fn resolve(&self) -> Result<*const ()> {
        let missing = |what: &str| {
            Error::new(ErrorKind::Worker, format!("{}: {what}", self.module.name().display()))
                .help("the worker must run the same build of the program, with the same libraries loaded")
        };
        let module = self.module.find_loaded().ok_or_else(|| missing("this build is not loaded in the worker"))?;
        let address = module.bias.wrapping_add(self.offset as usize);
        if !module.is_code(address) {
            return Err(missing(&format!("no code at offset {:#x}", self.offset)));
        }
        Ok(ptr::with_exposed_provenance(address))
    }
}

/// Encodes `cfg` as JSON and checks that it can be read back, so that an error appears here, not in every worker.
fn encode<C: Serialize + DeserializeOwned>(cfg: &C) -> Result<Vec<u8>> {
    let advice =
        "it travels to the workers as JSON: no maps with keys other than strings or numbers, no infinite numbers";
    let bytes = serde_json::to_vec(cfg)
        .map_err(|e| Error::config(format!("the pipeline's configuration cannot be written: {e}")).help(advice))?;
    serde_json::from_slice::<C>(&bytes)
        .map_err(|e| Error::config(format!("the pipeline's configuration cannot be read back: {e}")).help(advice))?;
    Ok(bytes)
}

fn decode<C: DeserializeOwned>(bytes: &[u8]) -> Result<C> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::new(ErrorKind::Worker, format!("the pipeline's configuration cannot be read: {e}")))
}
