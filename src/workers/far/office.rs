//! The desk between the coordinator and a driver: orders lie there, and answers are brought there.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::carrier::{Blame, FarEnd, FarLink};
use super::choice::Arrived;
use super::letter::{Answer, Facts, Packed};
use super::links::{Compress, Hand, Links};
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result, Told};
use crate::sync::Locked;
use crate::wire::parcel::Packing;
use crate::workers::control::{Event, FromWorker, What};

/// Something that a driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Start worker `number`, which is the one in `place` of those there are at a time. [`Office::started`] says that it is there,
    /// [`Office::not_started`] that it will not be.
    Start { number: u64, place: usize },
    /// Send it a message; [`Office::answered`] brings what it answers.
    Send { number: u64, message: Vec<u8> },
    /// End it at once, or let it go where others use it, too; [`Office::gone`] says that it has ended.
    End { number: u64 },
    /// End it at once, whoever uses it: it hangs, or says what cannot be. The same is said then.
    Kill { number: u64 },
}

/// The driver's side.
#[derive(Clone)]
pub(crate) struct Office(Arc<Desk>);

/// Where a worker is, in a word or two; and its machine.
pub(super) type Place = (String, String);

/// What lies between both.
pub(crate) struct Desk {
    orders: Receiver<Order>,
    /// `None` once nothing more is to be done.
    order: Mutex<Option<Sender<Order>>>,
    events: OnceLock<Sender<Event<FarEnd>>>,
    starting: Mutex<HashMap<u64, Sender<Result<Place>>>>,
    /// Answers that are awaited: by task, the worker, and the number of its room.
    tasks: Mutex<HashMap<u64, (u64, u64)>>,
    /// Blocks that came, by the number of their room.
    blocks: Mutex<HashMap<u64, Brought>>,
    /// Facts of workers, as they told last.
    facts: Mutex<HashMap<u64, Facts>>,
    /// Machines of workers.
    nodes: Mutex<HashMap<u64, String>>,
    links: Links,
    /// Bytes for a packed block while it is unpacked: none may be larger.
    aside: OnceLock<u64>,
}

/// A block as it came.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) block: Buffer,
    /// How it is packed, and the machine that it came from.
    pub(super) packing: Packing,
    pub(super) node: String,
}

impl Brought {
    /// Nothing, as an answer without a block has it.
    pub(super) const NOTHING: Self = Self { block: Buffer::EMPTY, packing: Packing::Plain, node: String::new() };
}

/// Makes an office where nothing is known of links, and the desk of those who give orders there.
#[cfg(test)]
pub(crate) fn office() -> (Office, Arc<Desk>) {
    office_by(Hand::default())
}

/// Makes an office, and the desk of those who give orders there.
pub(crate) fn office_by(hand: Hand) -> (Office, Arc<Desk>) {
    let (order, orders) = unbounded();
    let desk = Arc::new(Desk {
        orders,
        order: Mutex::new(Some(order)),
        events: OnceLock::new(),
        starting: Mutex::default(),
        tasks: Mutex::default(),
        blocks: Mutex::default(),
        facts: Mutex::default(),
        nodes: Mutex::default(),
        links: Links::new(hand),
        aside: OnceLock::new(),
    });
    (Office(desk.clone()), desk)
}

impl Desk {
    /// Has worker `number` started, and waits until it is there.
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
        let who = told.recv().map_err(|_| closed())??;
        Ok(FarLink::new(self.clone(), number, who))
    }

    pub(super) fn order(&self, order: Order) -> Result<()> {
        let given = self.order.locked().as_ref().is_some_and(|orders| orders.send(order).is_ok());
        if given { Ok(()) } else { Err(closed()) }
    }

    /// Has the answer to a task of worker `number` brought to the room of that number.
    pub(super) fn await_answer(&self, task: u64, number: u64, room: u64) {
        self.tasks.locked().insert(task, (number, room));
    }

    /// Has no packed block be larger than `block` bytes, and returns what is to be set aside for one.
    pub(super) fn set_aside(&self, block: u64) -> u64 {
        let aside = if self.links.compress() == Compress::Never { 0 } else { block };
        *self.aside.get_or_init(|| aside)
    }

    /// The most bytes of a packed block.
    pub(super) fn most_packed(&self) -> u64 {
        self.aside.get().copied().unwrap_or(0)
    }

    pub(super) fn links(&self) -> &Links {
        &self.links
    }

    pub(super) fn take_block(&self, room: u64) -> Option<Brought> {
        self.blocks.locked().remove(&room)
    }

    #[cfg(test)]
    pub(super) fn put_block(&self, room: u64, block: Buffer, packing: Packing) {
        self.blocks.locked().insert(room, Brought { block, packing, node: String::new() });
    }

    pub(super) fn facts(&self, number: u64) -> Option<Facts> {
        self.facts.locked().get(&number).cloned()
    }

    /// Nothing more is to be done; whoever waits for a start is told.
    pub(super) fn close(&self) {
        *self.order.locked() = None;
        self.starting.locked().clear();
    }

    /// A block that unpacks to `raw` bytes has come from a worker.
    fn arrived(&self, worker: u64, raw: u64, block: Buffer, packed: Option<Packed>, took: Option<Duration>) -> Brought {
        let node = self.nodes.locked().get(&worker).cloned().unwrap_or_default();
        let packed = packed.unwrap_or_default();
        let Packed { packing, took: packed_in, .. } = packed;
        let wire = block.len() as u64;
        self.links.arrived(&node, &Arrived { raw, wire, packing, packed_in, took });
        let packing = if packed.smaller { packing } else { Packing::Plain };
        Brought { block, packing, node }
    }

    fn tell(&self, worker: u64, what: What<FarEnd>) {
        if let Some(events) = self.events.get() {
            let _ = events.send(Event { worker, what });
        }
    }
}

impl Office {
    /// Waits for the next order; `Ok(None)` where there is none within that time.
    ///
    /// # Errors
    /// Once there will be none.
    pub(crate) fn next_order(&self, within: Duration) -> Result<Option<Order>> {
        match self.0.orders.recv_timeout(within) {
            Ok(order) => Ok(Some(order)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(closed()),
        }
    }

    /// Worker `number` is there, on the machine `node`: `who` tells it in a word or two.
    pub(crate) fn started(&self, number: u64, who: String, node: String) {
        self.0.nodes.locked().insert(number, node.clone());
        if let Some(tell) = self.0.starting.locked().remove(&number) {
            let _ = tell.send(Ok((who, node)));
        }
    }

    /// Worker `number` could not be started.
    pub(crate) fn not_started(&self, number: u64, why: String) {
        if let Some(tell) = self.0.starting.locked().remove(&number) {
            let _ = tell.send(Err(Error::new(ErrorKind::Worker, why)));
        }
    }

    /// Worker `number` is there, but not for this pass, and no other will be: the pass ends.
    pub(crate) fn refused(&self, number: u64, why: String) {
        self.0.tell(number, What::Message(FromWorker::Failed(Told::in_words(&Error::config(why.clone())))));
        self.not_started(number, why);
    }

    /// Worker `number` could not be started, and no other can be: the pass ends.
    pub(crate) fn cannot_start(&self, number: u64, why: String) {
        let error = Error::new(ErrorKind::Worker, why);
        self.0.tell(number, What::Message(FromWorker::Failed(Told::in_words(&error))));
    }

    /// Worker `number` has answered a message, with the block that it made, if any, with which the link was busy for that time, if
    /// that could be seen. What is no answer ends it.
    pub(crate) fn answered(&self, number: u64, answer: &[u8], block: Option<Buffer>, took: Option<Duration>) {
        let Answer { message, facts, packed } = match postcard::from_bytes(answer) {
            Ok(answer) => answer,
            Err(error) => return self.gone(number, format!("it sent something that is no message: {error}"), false),
        };
        self.0.facts.locked().insert(number, facts);
        let task = match &message {
            Some(FromWorker::Done(done)) => Some(done.id),
            Some(FromWorker::Need(need)) => Some(need.id),
            _ => None,
        };
        let room = task.and_then(|task| self.0.tasks.locked().remove(&task)).map(|(_, room)| room);
        if let (Some(FromWorker::Done(done)), Some(block)) = (&message, block) {
            let brought = self.0.arrived(number, done.evaluated.used as u64, block, packed, took);
            if let Some(room) = room {
                self.0.blocks.locked().insert(room, brought);
            }
        }
        if let Some(message) = message {
            self.0.tell(number, What::Message(message));
        }
    }

    /// Worker `number` has ended, for that reason, over an element of this pass; `outside` is whether no element had a part in that.
    pub(crate) fn gone(&self, number: u64, why: String, outside: bool) {
        self.ended(number, why, outside, Blame::Own);
    }

    /// Worker `number` has ended, for that reason; `blame` is whose element ended it.
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

impl fmt::Debug for Office {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Office").finish_non_exhaustive()
    }
}
