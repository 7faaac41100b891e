//! The exchange between the coordinator and a driver: a queue of orders, and a place for answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::carrier::{Blame, FarEnd, FarLink};
use super::choice::Arrived;
use super::links::{Compress, LinkOptions, Links};
use super::messages::{Answer, Facts, Packed};
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result, Told};
use crate::sync::Locked;
use crate::wire::parcel::Packing;
use crate::workers::control::{Event, FromWorker, What};

/// Order to a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Start worker `number` in `place` among the concurrent workers. Answered by [`Driver::started`] or
    /// [`Driver::not_started`].
    Start { number: u64, place: usize },
    /// Send a message to the worker; its answer arrives through [`Driver::answered`].
    Send { number: u64, message: Vec<u8> },
    /// End the worker immediately, or release it if other passes use it. [`Driver::gone`] reports its end.
    End { number: u64 },
    /// End the worker immediately even if other passes use it, because it hangs or sent an invalid message.
    /// [`Driver::gone`] reports its end.
    Kill { number: u64 },
}

/// Handle of a driver on its exchange.
#[derive(Clone)]
pub(crate) struct Driver(Arc<Exchange>);

/// Short name of a worker, and the name of its machine.
pub(super) type Place = (String, String);

/// State shared by the coordinator and the driver.
pub(crate) struct Exchange {
    orders: Receiver<Order>,
    /// `None` after the pass has ended.
    order: Mutex<Option<Sender<Order>>>,
    events: OnceLock<Sender<Event<FarEnd>>>,
    starting: Mutex<HashMap<u64, Sender<Result<Place>>>>,
    /// Awaited answers: worker and room number, by task.
    tasks: Mutex<HashMap<u64, (u64, u64)>>,
    /// Arrived blocks, by room number.
    blocks: Mutex<HashMap<u64, Arrival>>,
    /// Last reported facts of each worker.
    facts: Mutex<HashMap<u64, Facts>>,
    /// Machine of each worker.
    nodes: Mutex<HashMap<u64, String>>,
    pub(super) links: Links,
    /// Bytes reserved for a packed block during unpacking; the maximum size of a packed block.
    aside: OnceLock<u64>,
}

/// A block as it arrived.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) block: Buffer,
    /// Packing of the block, and the machine of its worker.
    pub(super) packing: Packing,
    pub(super) node: String,
}

impl Arrival {
    /// An empty block, for answers without a block.
    pub(super) const NOTHING: Self = Self { block: Buffer::EMPTY, packing: Packing::Plain, node: String::new() };
}

/// Creates an exchange without any settings for links, and the handle of its driver.
#[cfg(test)]
pub(crate) fn exchange() -> (Driver, Arc<Exchange>) {
    exchange_with(LinkOptions::default())
}

/// Creates an exchange, and the handle of its driver.
pub(crate) fn exchange_with(options: LinkOptions) -> (Driver, Arc<Exchange>) {
    let (order, orders) = unbounded();
    let exchange = Arc::new(Exchange {
        orders,
        order: Mutex::new(Some(order)),
        events: OnceLock::new(),
        starting: Mutex::default(),
        tasks: Mutex::default(),
        blocks: Mutex::default(),
        facts: Mutex::default(),
        nodes: Mutex::default(),
        links: Links::new(options),
        aside: OnceLock::new(),
    });
    (Driver(exchange.clone()), exchange)
}

impl Exchange {
    /// Orders the start of worker `number`, and waits until it has started.
    pub(super) fn start(
        self: &Arc<Self>,
        number: u64,
        place: usize,
        events: &Sender<Event<FarEnd>>,
    ) -> Result<FarLink> {
        let _ = self.events.set(events.clone());
        let (tell, told) = crossbeam_channel::bounded(1);
        self.starting.locked().insert(number, tell);
        self.order(Order::Start { number, place })?;
        let (who, node) = told.recv().map_err(|_| closed())??;
        Ok(FarLink { exchange: self.clone(), number, who, node })
    }

    pub(super) fn order(&self, order: Order) -> Result<()> {
        let given = self.order.locked().as_ref().is_some_and(|orders| orders.send(order).is_ok());
        if given { Ok(()) } else { Err(closed()) }
    }

    /// Assigns the answer to a task of worker `number` to the room of number `room`.
    pub(super) fn await_answer(&self, task: u64, number: u64, room: u64) {
        self.tasks.locked().insert(task, (number, room));
    }

    /// Limits packed blocks to `block` bytes, and returns the bytes to reserve for one.
    pub(super) fn set_aside(&self, block: u64) -> u64 {
        let aside = if self.links.compress() == Compress::Never { 0 } else { block };
        *self.aside.get_or_init(|| aside)
    }

    /// Returns the maximum bytes of a packed block.
    pub(super) fn most_packed(&self) -> u64 {
        self.aside.get().copied().unwrap_or(0)
    }

    pub(super) fn take_block(&self, room: u64) -> Option<Arrival> {
        self.blocks.locked().remove(&room)
    }

    #[cfg(test)]
    pub(super) fn put_block(&self, room: u64, block: Buffer, packing: Packing) {
        self.blocks.locked().insert(room, Arrival { block, packing, node: String::new() });
    }

    pub(super) fn facts(&self, number: u64) -> Option<Facts> {
        self.facts.locked().get(&number).cloned()
    }

    /// Ends the orders; callers that wait for a start get an error.
    pub(super) fn close(&self) {
        *self.order.locked() = None;
        self.starting.locked().clear();
    }

    /// Records the arrival of a block that unpacks to `raw` bytes.
    fn arrived(&self, worker: u64, raw: u64, block: Buffer, packed: Option<Packed>, took: Option<Duration>) -> Arrival {
        let node = self.nodes.locked().get(&worker).cloned().unwrap_or_default();
        let packed = packed.unwrap_or_default();
        let Packed { packing, took: packed_in, .. } = packed;
        let wire = block.len() as u64;
        self.links.arrived(&node, &Arrived { raw, wire, packing, packed_in, took });
        let packing = if packed.smaller { packing } else { Packing::Plain };
        Arrival { block, packing, node }
    }

    fn tell(&self, worker: u64, what: What<FarEnd>) {
        if let Some(events) = self.events.get() {
            let _ = events.send(Event { worker, what });
        }
    }
}

impl Driver {
    /// Waits for the next order; returns `Ok(None)` if none comes within the given time.
    ///
    /// # Errors
    /// If the pass has ended, so that no more orders will come.
    pub(crate) fn next_order(&self, within: Duration) -> Result<Option<Order>> {
        match self.0.orders.recv_timeout(within) {
            Ok(order) => Ok(Some(order)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(closed()),
        }
    }

    /// Reports that worker `number` has started on the machine `node`; `who` is its short name.
    pub(crate) fn started(&self, number: u64, who: String, node: String) {
        self.0.nodes.locked().insert(number, node.clone());
        if let Some(tell) = self.0.starting.locked().remove(&number) {
            let _ = tell.send(Ok((who, node)));
        }
    }

    /// Reports that worker `number` failed to start.
    pub(crate) fn not_started(&self, number: u64, why: String) {
        if let Some(tell) = self.0.starting.locked().remove(&number) {
            let _ = tell.send(Err(Error::new(ErrorKind::Worker, why)));
        }
    }

    /// Reports that worker `number` refuses this pass, as any other would; the pass ends.
    pub(crate) fn refused(&self, number: u64, why: String) {
        self.0.tell(number, What::Message(FromWorker::Failed(Told::in_words(&Error::config(why.clone())))));
        self.not_started(number, why);
    }

    /// Reports that worker `number` failed to start and no other can start; the pass ends.
    pub(crate) fn cannot_start(&self, number: u64, why: String) {
        let error = Error::new(ErrorKind::Worker, why);
        self.0.tell(number, What::Message(FromWorker::Failed(Told::in_words(&error))));
    }

    /// Handles the answer of worker `number`, with its block, if any. `took` is the time that the link was busy with
    /// the block, if measured. An invalid answer ends the worker.
    pub(crate) fn answered(&self, number: u64, answer: &[u8], block: Option<Buffer>, took: Option<Duration>) {
        let Answer { message, facts, packed } = match postcard::from_bytes(answer) {
            Ok(answer) => answer,
            Err(error) => return self.gone(number, format!("it sent an invalid message: {error}"), false),
        };
        self.0.facts.locked().insert(number, facts);
        let task = match &message {
            Some(FromWorker::Done(done)) => Some(done.id),
            Some(FromWorker::Need(need)) => Some(need.id),
            _ => None,
        };
        let room = task.and_then(|task| self.0.tasks.locked().remove(&task)).map(|(_, room)| room);
        if let (Some(FromWorker::Done(done)), Some(block)) = (&message, block) {
            let arrival = self.0.arrived(number, done.evaluated.used as u64, block, packed, took);
            if let Some(room) = room {
                self.0.blocks.locked().insert(room, arrival);
            }
        }
        if let Some(message) = message {
            self.0.tell(number, What::Message(message));
        }
    }

    /// Reports the end of worker `number` over an element of this pass; `outside` if no element was involved.
    pub(crate) fn gone(&self, number: u64, why: String, outside: bool) {
        self.ended(number, why, outside, Blame::Own);
    }

    /// Reports the end of worker `number` with the reason; `blame` is the pass whose element ended it.
    pub(crate) fn ended(&self, number: u64, why: String, outside: bool, blame: Blame) {
        self.not_started(number, why.clone());
        self.0.nodes.locked().remove(&number);
        self.0.tasks.locked().retain(|_, (worker, _)| *worker != number);
        let who = self.0.facts.locked().remove(&number).map_or_else(|| "not ready yet".to_owned(), |facts| facts.who());
        self.0.tell(number, What::Exited(FarEnd { who, why, outside, blame }));
    }
}

#[cold]
fn closed() -> Error {
    Error::new(ErrorKind::Worker, "the pass has ended")
}

debug_as!(Driver, |self, f| f.debug_struct("Driver").finish_non_exhaustive());
