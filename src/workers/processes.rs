//! Workers that are processes of this machine, and the shared memory that holds their answers.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;

use super::budget::Plan;
use super::control::{Event, ToWorker};
use super::launch::{self, Exit, LaunchFailure, Program, Worker};
use super::pool::{Carrier, End, Link, MemoryFigures, Recruit, Room, Wake};
use super::slab::{ExtentId, Grant, Slab, Spoilt};
use super::sys::process::Status;
use crate::element::{Buffer, Owner};
use crate::error::{Error, Result};
use crate::exec::WorkerReport;
use crate::units::Bytes;

/// Carrier to processes that run one program.
pub(crate) struct Processes {
    program: Program,
    slab: Arc<Slab>,
}

impl Processes {
    /// Returns a constructor for processes of `program`, with memory divided as in `plan`.
    pub(crate) fn of(program: Program, plan: &Plan) -> impl FnOnce(Wake) -> Result<Self> {
        let (bytes, reserve, places) = (plan.slab_bytes as usize, plan.max_element_bytes as usize, plan.workers);
        move |wake| Ok(Self { program, slab: Slab::create(bytes, reserve, places, wake)? })
    }
}

impl Carrier for Processes {
    type Link = Worker;
    type Room = Grant;
    type End = Exit;

    fn start(&self, Recruit { number, place, cap }: Recruit, events: &Sender<Event>) -> Result<Worker> {
        let (slab, heap_limit) = (Some(self.slab.file(place)?), Some(cap));
        let options = launch::Options { slab, heap_limit, place: place as u64, ..launch::Options::default() };
        launch::start(number, &self.program, &options, events)
    }

    fn is_from_outside(error: &Error) -> bool {
        LaunchFailure::is_from_outside(error)
    }

    fn room(&self, bytes: usize, place: usize) -> Option<Grant> {
        self.slab.grant(bytes, place)
    }

    fn last_room(&self, bytes: usize, place: usize) -> Option<Grant> {
        self.slab.grant_reserve(bytes, place)
    }

    fn spoilt(&self) -> Option<(usize, String)> {
        self.slab.take_spoilt().map(|Spoilt { place, extent }| (place, extent.to_string()))
    }

    fn look_at_leases(&self) {
        self.slab.look_at_leases();
    }

    fn memory(&self) -> MemoryFigures {
        let stats = self.slab.stats();
        MemoryFigures {
            used_bytes: (stats.granted_bytes + stats.leased_bytes) as u64,
            high_water_bytes: stats.high_water_bytes as u64,
            copies: stats.copies,
        }
    }
}

impl Link for Worker {
    fn who(&self) -> String {
        format!("pid {}", self.pid())
    }

    fn send(&self, message: &ToWorker) -> Result<()> {
        Worker::send(self, message)
    }

    fn kill(&self) {
        Worker::kill(self);
    }

    fn cpu_time(&self) -> Option<Duration> {
        Worker::cpu_time(self)
    }

    fn capped_bytes(&self) -> Option<u64> {
        self.memory().map(|memory| memory.data)
    }

    fn bytes_here(&self) -> Option<u64> {
        self.tree_share()
    }

    fn lower_cap(&self, bytes: u64) -> bool {
        Worker::lower_cap(self, bytes)
    }

    fn report(&self) -> Option<WorkerReport> {
        let (cpu_s, heap_bytes) = (Worker::cpu_time(self)?.as_secs_f64(), self.memory()?.anonymous);
        Some(WorkerReport { pid: self.pid(), cpu_s, heap_bytes, ..WorkerReport::default() })
    }
}

impl End for Exit {
    fn who(&self) -> String {
        format!("pid {}", self.pid)
    }

    fn cause(&self, cap: u64) -> String {
        match self.status {
            // A failed allocation ends in SIGABRT, among other causes.
            Status::Signal { number: libc::SIGABRT, .. } => format!("{self}, with a heap limit of {}", Bytes(cap)),
            _ => self.to_string(),
        }
    }

    fn is_from_outside(&self) -> bool {
        Exit::is_from_outside(self)
    }

    fn is_asked_for(&self) -> bool {
        Exit::is_asked_for(self)
    }

    fn error(&self, what: String) -> Error {
        Exit::error(self, what)
    }
}

impl Room for Grant {
    fn extent(&self) -> ExtentId {
        Grant::extent(self)
    }

    fn into_bytes(self, used: usize) -> std::result::Result<Arc<dyn Owner>, (Self, Error)> {
        if self.is_reserve() {
            return match self.copy_out(used) {
                Ok(copy) => Ok(Arc::new(Copied(copy))),
                Err(refused) => Err((refused.grant, refused.error.into_error())),
            };
        }
        match self.into_lease(used) {
            Ok(lease) => Ok(Arc::new(lease)),
            Err(refused) => Err((refused.grant, refused.error.into_error())),
        }
    }
}

/// A copy in this process's memory, used instead of a lease.
struct Copied(Buffer);

impl Owner for Copied {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
