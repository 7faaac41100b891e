//! Carrier to workers on other machines, through a driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::credits::{Credit, Credits};
use super::exchange::{Arrival, Exchange, Order};
use super::messages::Request;
use crate::element::{Buffer, BufferMut, Owner};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{LinkReport, WorkerReport};
use crate::units::Bytes;
use crate::wire::parcel::{Packing, unpack};
use crate::workers::control::{Event, ToWorker};
use crate::workers::pool::{Carrier, End, Link, MemoryFigures, Recruit, Room, Wake};
use crate::workers::slab::{ExtentId, PAGE};

/// Carrier to workers on other machines.
pub(super) struct Far {
    exchange: Arc<Exchange>,
    credits: Arc<Credits>,
    next_room: AtomicU64,
}

impl Far {
    /// Creates a carrier over `exchange`, with `bytes` for answers in transfer or in use.
    pub(super) fn new(exchange: Arc<Exchange>, bytes: u64, wake: Wake) -> Self {
        Self { exchange, credits: Credits::new(bytes, wake), next_room: AtomicU64::new(0) }
    }

    fn make_room(&self, bytes: usize, credit: Option<Credit>) -> FarRoom {
        let generation = self.next_room.fetch_add(1, Ordering::Relaxed);
        let pages = u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX);
        FarRoom {
            extent: ExtentId { page: 0, pages, generation },
            credit,
            exchange: self.exchange.clone(),
            credits: self.credits.clone(),
        }
    }
}

impl Carrier for Far {
    type Link = FarLink;
    type Room = FarRoom;
    type End = FarEnd;

    const SPREADS: bool = true;

    fn start(&self, Recruit { number, place, .. }: Recruit, events: &Sender<Event<FarEnd>>) -> Result<FarLink> {
        self.exchange.start(number, place, events)
    }

    /// Returns true: machines come and go, so any failed start may be temporary.
    fn is_from_outside(_: &Error) -> bool {
        true
    }

    fn room(&self, bytes: usize, _: usize) -> Option<FarRoom> {
        let whole = bytes.div_ceil(PAGE).saturating_mul(PAGE);
        self.credits.take(whole as u64).map(|credit| self.make_room(bytes, Some(credit)))
    }

    fn last_room(&self, bytes: usize, _: usize) -> Option<FarRoom> {
        Some(self.make_room(bytes, None))
    }

    fn links(&self) -> Vec<LinkReport> {
        self.exchange.links.reports()
    }

    fn memory(&self) -> MemoryFigures {
        self.credits.figures()
    }

    fn close(&self) {
        self.exchange.close();
    }
}

/// Link to one remote worker.
pub(crate) struct FarLink {
    pub(super) exchange: Arc<Exchange>,
    pub(super) number: u64,
    pub(super) who: String,
    pub(super) node: String,
}

impl Link for FarLink {
    fn who(&self) -> String {
        self.who.clone()
    }

    fn node(&self) -> String {
        self.node.clone()
    }

    fn send(&self, message: &ToWorker) -> Result<()> {
        let mut packing = Packing::Plain;
        match message {
            ToWorker::Stop => return self.exchange.order(Order::End { number: self.number }),
            ToWorker::Task(task) => {
                self.exchange.await_answer(task.id, self.number, task.extent.generation);
                packing = self.exchange.links.next(&self.node);
            }
            _ => {}
        }
        let message = Request { message, packing, most: self.exchange.most_packed() }.write()?;
        self.exchange.order(Order::Send { number: self.number, message })
    }

    fn kill(&self) {
        // If the pass has ended, the driver ends all workers.
        let _ = self.exchange.order(Order::Kill { number: self.number });
    }

    fn let_go(&self) {
        let _ = self.exchange.order(Order::End { number: self.number });
    }

    /// Returns `None`: the process's CPU time includes other passes. Tuning of remote workers uses the consumer's wait
    /// instead.
    fn cpu_time(&self) -> Option<Duration> {
        None
    }

    /// Returns `None`: only the engine may limit a remote worker's memory.
    fn capped_bytes(&self) -> Option<u64> {
        None
    }

    fn bytes_here(&self) -> Option<u64> {
        None
    }

    fn lower_cap(&self, _: u64) -> bool {
        true
    }

    fn report(&self) -> Option<WorkerReport> {
        let facts = self.exchange.facts(self.number)?;
        let (cpu_s, heap_bytes) = (facts.cpu.as_secs_f64(), facts.heap_bytes);
        Some(WorkerReport { pid: facts.pid, host: Some(facts.host), cpu_s, heap_bytes, ..WorkerReport::default() })
    }
}

impl Drop for FarLink {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Credit for an answer, or permission for an answer that is copied.
pub(crate) struct FarRoom {
    extent: ExtentId,
    /// `None` if the answer must be copied.
    credit: Option<Credit>,
    exchange: Arc<Exchange>,
    credits: Arc<Credits>,
}

impl Room for FarRoom {
    fn extent(&self) -> ExtentId {
        self.extent
    }

    fn into_bytes(mut self, used: usize) -> std::result::Result<Arc<dyn Owner>, (Self, Error)> {
        let arrival = self.exchange.take_block(self.extent.generation).unwrap_or(Arrival::NOTHING);
        let block = match arrival.packing {
            Packing::Plain => self.as_it_lies(arrival.block, used),
            _ => self.unpacked(arrival, used),
        };
        let block = match block {
            Ok(block) => block,
            Err(error) => return Err((self, error)),
        };
        match &mut self.credit {
            Some(credit) => credit.keep(used as u64),
            None => self.credits.count_copy(),
        }
        Ok(Arc::new(Held { block, _credit: self.credit.take() }))
    }
}

impl FarRoom {
    fn as_it_lies(&self, block: Buffer, used: usize) -> Result<Buffer> {
        let len = block.len();
        if len != used {
            return Err(Error::new(ErrorKind::Worker, format!("it sent {len} bytes, but reported {used}")));
        }
        Ok(if self.credit.is_some() { block } else { Buffer::copy_from(block.as_bytes()) })
    }

    /// Returns the unpacked block. The credit covers the unpacked bytes; the packed bytes have a separate reserve,
    /// because one thread unpacks one block at a time.
    fn unpacked(&self, arrival: Arrival, used: usize) -> Result<Buffer> {
        let (len, most) = (arrival.block.len() as u64, self.exchange.most_packed());
        if len > most || used > self.extent.len() {
            let [packed, most, raw, room] = [len, most, used as u64, self.extent.len() as u64].map(Bytes);
            let why = format!("it packed {raw} into {packed}, but the limit is {room}, packed into {most}");
            return Err(Error::new(ErrorKind::Worker, why));
        }
        self.credits.count_beside(len);
        let begun = Instant::now();
        let mut block = BufferMut::try_zeroed(used)?;
        unpack(arrival.block.as_bytes(), block.as_mut_bytes())
            .map_err(|damage| Error::new(ErrorKind::Worker, format!("the block that it packed {damage}")))?;
        self.exchange.links.unpacked(&arrival.node, arrival.packing, used as u64, begun.elapsed());
        Ok(block.freeze())
    }
}

impl Drop for FarRoom {
    fn drop(&mut self) {
        drop(self.exchange.take_block(self.extent.generation));
    }
}

/// A block and its credit.
struct Held {
    block: Buffer,
    /// `None` for a copy.
    _credit: Option<Credit>,
}

impl Owner for Held {
    fn bytes(&self) -> &[u8] {
        self.block.as_bytes()
    }
}

/// The pass whose element ended a worker. Passes may share workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// An element of this pass.
    Own,
    /// An element of another pass.
    Others,
    /// An element of any pass that shares the worker.
    Unknown,
}

/// Exit report of a remote worker.
#[derive(Clone, Debug)]
pub(crate) struct FarEnd {
    pub(super) who: String,
    pub(super) why: String,
    pub(super) outside: bool,
    pub(super) blame: Blame,
}

display_as!(FarEnd, |self, f| f.write_str(&self.why));

impl End for FarEnd {
    fn who(&self) -> String {
        self.who.clone()
    }

    fn is_from_outside(&self) -> bool {
        self.outside
    }

    fn is_of_others(&self) -> bool {
        self.blame == Blame::Others
    }

    fn is_of_anybody(&self) -> bool {
        self.blame == Blame::Unknown
    }

    fn is_asked_for(&self) -> bool {
        false
    }

    fn error(&self, what: String) -> Error {
        Error::new(ErrorKind::Worker, format!("{what} ({}): {self}", self.who))
    }
}
