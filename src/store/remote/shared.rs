//! State shared by all objects with equal options.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Semaphore;

use super::ahead::Ahead;
use super::blocks::Blocks;
use super::disk::Disk;
use super::limit;
use crate::cores::STACK;
use crate::error::Result;
use crate::fork::{Origin, PerProcess};
use crate::store::options::StoreOptions;

/// Memory and limits shared by all objects.
#[derive(Debug)]
pub(in crate::store) struct Shared {
    pub(in crate::store) options: StoreOptions,
    pub(in crate::store) blocks: Blocks,
    pub(in crate::store) ahead: Ahead,
    pub(in crate::store) disk: Option<Arc<Disk>>,
    pub(in crate::store) requests: Semaphore,
    /// Permits for blocks in flight.
    pub(in crate::store) bodies: Semaphore,
    /// Process that owns the tasks and connections of the fetches.
    pub(in crate::store) origin: Origin,
}

/// Whether other processes read the blocks between the reads of this process.
static ONE_OF_MANY: AtomicBool = AtomicBool::new(false);

/// Disables the detection of sequential reads from now on, because other processes may read the next blocks.
pub(crate) fn be_one_of_many() {
    ONE_OF_MANY.store(true, Relaxed);
}

pub(in crate::store) fn is_one_of_many() -> bool {
    ONE_OF_MANY.load(Relaxed)
}

static CURRENT: PerProcess<Mutex<Option<Arc<Shared>>>> = PerProcess::new(Mutex::default);

fn lock() -> MutexGuard<'static, Option<Arc<Shared>>> {
    CURRENT.lock()
}

/// Returns the size and the limit of the cached blocks in bytes. Returns `None` if this process has not read from a
/// store.
pub(crate) fn memory() -> Option<(u64, u64)> {
    lock().as_ref().map(|shared| (shared.blocks.held(), shared.blocks.budget()))
}

/// Drops the blocks of this process, because workers will do its reads from now on.
pub(crate) fn let_go() {
    let current = lock().clone();
    current.iter().for_each(|shared| shared.blocks.clear());
}

/// Maximum number of threads that wait for stores while files are opened. The number of requests may lower it.
const ABREAST: usize = 64;

/// Returns the number of threads that may open files, if each thread holds `bytes` of objects. The number is lower if
/// the memory of the process is limited.
pub(crate) fn abreast(bytes: u64) -> usize {
    let options = StoreOptions::current();
    abreast_of(
        options.requests as usize,
        limit::within((ABREAST * STACK) as u64),
        limit::within(options.memory_bytes),
        bytes,
    )
}

fn abreast_of(requests: usize, stacks: u64, memory: u64, bytes: u64) -> usize {
    let most = (stacks / STACK as u64).min((memory / 2).checked_div(bytes).unwrap_or(u64::MAX));
    requests.min(most as usize)
}

impl Shared {
    /// Returns the state for the current options.
    ///
    /// # Errors
    /// See [`Disk::open`].
    pub(in crate::store) fn current() -> Result<Arc<Self>> {
        let options = StoreOptions::current();
        let mut current = lock();
        match &*current {
            Some(shared) if shared.options == options => Ok(shared.clone()),
            _ => Ok(current.insert(Arc::new(Self::new(options)?)).clone()),
        }
    }

    pub(in crate::store) fn new(options: StoreOptions) -> Result<Self> {
        let (blocks, requests) = (Blocks::new(options.memory_bytes), Semaphore::new(options.requests as usize));
        let bodies = Semaphore::new(options.body_blocks());
        let disk = match &options.cache_dir {
            Some(folder) => Disk::open(folder, options.cache_bytes)?.map(Arc::new),
            None => None,
        };
        Ok(Self { options, blocks, ahead: Ahead::default(), disk, requests, bodies, origin: Origin::here() })
    }
}
