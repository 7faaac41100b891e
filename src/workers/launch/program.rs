//! Program of a worker: the pipeline's factory, its configuration, and the function that serves it.
//!
//! A function cannot be sent, but a worker that runs the same build has it too: its place is the module that holds it and
//! the offset from the module's base. Only plain functions are taken (`fn` items and closures that capture nothing, which
//! become function pointers), so that nothing a closure would capture can be missing in the worker. The compiler refuses
//! others: "closures can only be coerced to `fn` types if they do not capture any variables".

#![allow(unsafe_code, reason = "function pointers are made of an address that another process sent")]

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

/// Program of a worker: functions, by their place in the code that runs here, and their argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Program {
    enter: CodePlace,
    factory: CodePlace,
    serve: CodePlace,
    #[serde(skip)]
    cfg: Arc<Vec<u8>>,
    /// Starter of the program, where that is not this one.
    #[serde(skip)]
    starter: Option<Arc<Starter>>,
}

/// Makes a pipeline of bytes, which it may let go of: they can be large.
#[cfg(feature = "python")]
pub(crate) type FromBytes<D> = fn(Vec<u8>, &Session) -> Result<D>;

/// Knows the types of `factory` and `serve`, which are given as addresses.
type Enter = unsafe fn(factory: *const (), serve: *const (), cfg: Vec<u8>, session: Session) -> Result<()>;

impl Program {
    /// Runs `serve(factory(cfg)?, session)` in a worker.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if `cfg` does not survive the way through JSON.
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

    /// Runs `serve(factory(cfg)?, session)` in a worker that `starter` starts.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] if the functions lie in no module of this process.
    #[cfg(feature = "python")]
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

    /// Starter of the program, where that is not this one.
    pub(super) fn starter(&self) -> Option<&Starter> {
        self.starter.as_deref()
    }

    /// The configuration, which travels by itself: it may be large.
    pub(crate) fn cfg(&self) -> &[u8] {
        &self.cfg
    }

    pub(crate) fn set_cfg(&mut self, mut cfg: Vec<u8>) {
        // It came in pieces. What is too much of it would be taken from the worker's heap.
        cfg.shrink_to_fit();
        self.cfg = Arc::new(cfg);
    }

    /// Runs it, in the worker, to its end.
    ///
    /// # Errors
    /// Errors of the factory or the serving function; [`ErrorKind::Worker`] if this process does not hold their code.
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
#[cfg(feature = "python")]
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

/// The place of a function: a module, and the offset from its base.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CodePlace {
    module: Identity,
    offset: u64,
}

impl CodePlace {
    fn of(function: *const ()) -> Result<Self> {
        let address = function.expose_provenance();
        let module = modules::holding(address).filter(|m| m.is_code(address)).ok_or_else(|| {
            Error::new(ErrorKind::Worker, format!("function at {address:#x} lies in no module of this process"))
                .help("code that is made at run time cannot run in a worker")
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

/// JSON, and certain to be read back: better an error here than in every worker.
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
