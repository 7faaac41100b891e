//! The stateful part on a separate thread, ahead of the consumer.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};

use crate::cx::{Cause, Cx, Response};
use crate::dataset::DatasetIterator;
use crate::error::Result;
use crate::exec::Runtime;
use crate::report::ConsumerMeter;
use crate::sync::Locked;

/// Packet from the thread of the stateful part.
struct Packet<T, S> {
    /// Elements, each with the state after it.
    elements: Vec<Result<(T, S)>>,
    /// Times at which the first element was begun and the last element was ready.
    made: (Instant, Instant),
}

/// Time after which a packet is sent: a large batch travels alone, small elements travel together.
const PACKET_TIME: Duration = Duration::from_micros(200);
const MAX_PACKET: usize = 256;

/// Consumer's side of the thread: see the [module](self).
pub(super) struct Ahead<T, S> {
    packets: Option<Inbox<T, S>>,
    current: std::vec::IntoIter<Result<(T, S)>>,
    /// Start and end of the time in which the current packet was made.
    made: Option<(Instant, Instant)>,
    thread: Option<JoinHandle<()>>,
    /// Sender of orders to the thread; `None` after the thread has ended.
    orders: Option<Sender<Order<T, S>>>,
    buffer: usize,
    run: Runtime,
    /// Wait that the consumer interrupted, if any.
    waiting: Option<Asked>,
    /// Cause of the next wait, if it is for the first element after a start or restore.
    begins: Option<Cause>,
}

/// Consumer's ends of the buffer.
struct Inbox<T, S> {
    packets: Receiver<Packet<T, S>>,
    outbox: Arc<Mutex<Outbox<T, S>>>,
}

/// Producer's ends of the buffer.
struct Post<T, S> {
    packets: Sender<Packet<T, S>>,
    outbox: Arc<Mutex<Outbox<T, S>>>,
}

/// Creates a buffer of `packets`.
fn buffer<T, S>(packets: usize) -> (Post<T, S>, Inbox<T, S>) {
    let (sender, receiver) = bounded(packets);
    let outbox = Arc::new(Mutex::new(Outbox { elements: Vec::new(), clock: PacketClock::new() }));
    (Post { packets: sender, outbox: outbox.clone() }, Inbox { packets: receiver, outbox })
}

impl<T, S> Inbox<T, S> {
    /// Returns the next packet, if there is one. Takes the elements for which the buffer had no room if the buffer is
    /// empty now, because the producer may wait for its next element.
    fn ready(&self) -> Option<Packet<T, S>> {
        self.packets.try_recv().ok().or_else(|| {
            let mut outbox = self.outbox.locked();
            // The producer may have sent these elements before the lock was taken.
            self.packets.try_recv().ok().or_else(|| outbox.packet().inspect(|_| outbox.clock.start()))
        })
    }

    /// Receives the next packet within `patience`.
    fn receive(&self, patience: Option<Duration>) -> std::result::Result<Packet<T, S>, RecvTimeoutError> {
        match (self.ready(), patience) {
            (Some(packet), _) => Ok(packet),
            (None, Some(patience)) => self.packets.recv_timeout(patience),
            (None, None) => self.packets.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }
}

/// Request for an element by the consumer.
#[derive(Clone, Copy)]
struct Asked {
    at: Instant,
    /// Number of filled places in the buffer at that time.
    ready: Option<usize>,
}

/// Order to continue at another state.
struct Order<T, S> {
    state: S,
    post: Post<T, S>,
    answer: Sender<Result<S>>,
}

/// Maximum wait for the answer to an order: the thread may be busy with an element.
const ORDER_TIME: Duration = Duration::from_secs(1);

impl<T: Send + 'static, S: Send + 'static> Ahead<T, S> {
    /// Starts the thread. `begins` is the cause of the first wait.
    pub(super) fn start<I>(iter: I, cx: Cx, buffer: usize, run: &Runtime, begins: Cause) -> Result<Self>
    where
        I: DatasetIterator<Item = T, State = S> + 'static,
    {
        let (packets, orders, thread) = Self::spawn(iter, cx, buffer, run)?;
        Ok(Self {
            packets: Some(packets),
            current: Vec::new().into_iter(),
            made: None,
            thread: Some(thread),
            orders: Some(orders),
            buffer,
            run: run.clone(),
            waiting: None,
            begins: Some(begins),
        })
    }

    /// Starts a thread. Returns the receiver of its packets, the sender of its orders, and its handle.
    #[expect(clippy::type_complexity, reason = "the three ends that the caller keeps")]
    fn spawn<I: DatasetIterator<Item = T, State = S> + 'static>(
        iter: I,
        cx: Cx,
        buffer: usize,
        run: &Runtime,
    ) -> Result<(Inbox<T, S>, Sender<Order<T, S>>, JoinHandle<()>)> {
        let (post, packets) = self::buffer(buffer);
        let (orders, ordered) = bounded(1);
        let thread = std::thread::Builder::new().name("gristmill-suffix".into());
        let work = {
            let (run, pass) = (run.clone(), crate::exec::thread::pass());
            move || crate::exec::thread::run(pass, || serve(iter, cx, &run, post, &ordered))
        };
        let thread = thread.spawn(work).map_err(|e| {
            crate::Error::new(crate::ErrorKind::Io, format!("cannot start the thread of the stateful stages: {e}"))
        })?;
        Ok((packets, orders, thread))
    }

    /// Returns true if the thread has ended, after the last element.
    pub(super) fn has_ended(&self) -> bool {
        self.thread.is_none()
    }

    /// Starts another thread to replace a thread that has ended.
    pub(super) fn start_again<I>(&mut self, iter: I, cx: Cx) -> Result<()>
    where
        I: DatasetIterator<Item = T, State = S> + 'static,
    {
        let (packets, orders, thread) = Self::spawn(iter, cx, self.buffer, &self.run)?;
        (self.packets, self.orders, self.thread) = (Some(packets), Some(orders), Some(thread));
        self.current = Vec::new().into_iter();
        self.begins = Some(Cause::Restore);
        Ok(())
    }

    /// Returns the next element; pending if it is not ready within `patience`.
    pub(super) fn next(
        &mut self,
        patience: Option<Duration>,
        meter: &mut ConsumerMeter,
    ) -> Result<Poll<Option<(T, S)>>> {
        if let Some(next) = self.current.next() {
            meter.no_wait();
            return next.map(|next| Poll::Ready(Some(next)));
        }
        // An interrupted wait counts as one wait.
        let asked = self.waiting.take().unwrap_or_else(|| self.begin(meter));
        let Poll::Ready(next) = self.receive(patience) else {
            self.waiting = Some(asked);
            return Ok(Poll::Pending);
        };
        let Asked { at, ready } = asked;
        let given = meter.end(at);
        self.run.demand.end(given);
        let count = next.iter().count() + self.current.len();
        self.run.responded(
            &Response { first: meter.delivered, count, ready, asked: at, given, made: self.made },
            self.begins.take(),
        );
        next.transpose().map(Poll::Ready)
    }

    /// Orders the thread to continue at `state`, and returns its state after the move.
    /// `None` if the thread has ended or does not answer in time.
    pub(super) fn restore(&mut self, state: S) -> Option<Result<S>> {
        let orders = self.orders.as_ref()?;
        let ((post, packets), (answer, answered)) = (buffer(self.buffer), bounded(1));
        self.packets = Some(packets);
        self.current = Vec::new().into_iter();
        self.begins = Some(Cause::Restore);
        if self.waiting.take().is_some() {
            self.run.demand.end(Instant::now());
        }
        orders.try_send(Order { state, post, answer }).ok()?;
        answered.recv_timeout(ORDER_TIME).ok()
    }

    /// Returns true if [`next`](Self::next) would not wait.
    pub(super) fn is_ready(&self) -> bool {
        self.current.len() > 0
            || self
                .packets
                .as_ref()
                .is_none_or(|inbox| !inbox.packets.is_empty() || !inbox.outbox.locked().elements.is_empty())
    }

    fn begin(&self, meter: &mut ConsumerMeter) -> Asked {
        let at = Instant::now();
        self.run.demand.begin(at);
        let ready = self.packets.as_ref().map(|inbox| inbox.packets.len());
        ready.iter().for_each(|ready| meter.look(*ready));
        Asked { at, ready }
    }

    /// Receives the next packet, and returns its first element.
    fn receive(&mut self, patience: Option<Duration>) -> Poll<Option<Result<(T, S)>>> {
        let Some(packets) = &self.packets else { return Poll::Ready(None) };
        match packets.receive(patience) {
            Ok(Packet { elements, made }) => (self.current, self.made) = (elements.into_iter(), Some(made)),
            Err(RecvTimeoutError::Timeout) => return Poll::Pending,
            Err(RecvTimeoutError::Disconnected) => {
                (self.packets, self.made) = (None, None);
                self.join();
            }
        }
        Poll::Ready(self.current.next())
    }

    /// Waits for the thread to end, and resumes its panic here. A panic comes from a user's closure or is a bug.
    fn join(&mut self) {
        self.orders = None;
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl<T, S> Drop for Ahead<T, S> {
    fn drop(&mut self) {
        (self.packets, self.orders) = (None, None);
        self.run.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.run.join();
    }
}

/// Sends the elements of `iter`, then continues at each ordered state.
fn serve<I: DatasetIterator<Item: Send + 'static> + 'static>(
    mut iter: I,
    mut cx: Cx,
    run: &Runtime,
    post: Post<I::Item, I::State>,
    orders: &Receiver<Order<I::Item, I::State>>,
) {
    produce(&mut iter, &mut cx, run, post);
    while let Ok(Order { state, post, answer }) = orders.recv() {
        let restored = iter.restore(state, &mut cx).map(|()| iter.state());
        let failed = restored.is_err();
        let _ = answer.send(restored);
        if failed {
            return;
        }
        produce(&mut iter, &mut cx, run, post);
    }
}

/// Sends the elements of `iter` in packets, until its end or until the receiver is gone.
fn produce<I: DatasetIterator<Item: Send + 'static> + 'static>(
    iter: &mut I,
    cx: &mut Cx,
    run: &Runtime,
    post: Post<I::Item, I::State>,
) {
    let Post { packets, outbox } = post;
    let (waiting, offered) = (outbox.clone(), packets.clone());
    cx.before_waiting(move || waiting.locked().offer(&offered));
    // If the buffer is full, `send` waits for the consumer, who may lock the outbox meanwhile.
    let send = || {
        let packet = outbox.locked().packet();
        let sent = packet.is_none_or(|packet| packets.send(packet).is_ok());
        outbox.locked().clock.start();
        sent
    };
    loop {
        let next = iter.next(cx);
        let sent = match next {
            Ok(Some(element)) => {
                let state = iter.state();
                let is_due = outbox.locked().push(Ok((element, state)));
                !is_due || {
                    cx.flush_if_due();
                    cx.works(false);
                    let sent = send();
                    cx.works(true);
                    sent
                }
            }
            last => {
                // The totals are complete before the consumer can see the end.
                cx.flush();
                cx.works(false);
                run.sync();
                outbox.locked().elements.extend(last.err().map(Err));
                send();
                false
            }
        };
        if !sent {
            // The callback holds a sender, too.
            cx.before_waiting(|| ());
            return;
        }
    }
}

/// Elements that are ready to be sent.
struct Outbox<T, S> {
    elements: Vec<Result<(T, S)>>,
    clock: PacketClock,
}

impl<T, S> Outbox<T, S> {
    /// Adds an element. Returns true if the elements are to be sent now.
    fn push(&mut self, element: Result<(T, S)>) -> bool {
        self.elements.push(element);
        self.elements.len() >= MAX_PACKET || self.clock.is_over(self.elements.len())
    }

    /// Sends the ready elements if the buffer has room, because the next element is not ready yet. Otherwise, the
    /// consumer takes them after it has emptied the buffer.
    fn offer(&mut self, packets: &Sender<Packet<T, S>>) {
        let Some(packet) = self.packet() else { return };
        match packets.try_send(packet) {
            Err(TrySendError::Full(packet)) => self.elements = packet.elements,
            _ => self.clock.start(),
        }
    }

    /// Takes the elements, if there are any.
    fn packet(&mut self) -> Option<Packet<T, S>> {
        if self.elements.is_empty() {
            return None;
        }
        let made = (self.clock.start, Instant::now());
        Some(Packet { elements: std::mem::take(&mut self.elements), made })
    }
}

/// Clock that decides when a packet is sent.
///
/// The clock is read after every element if elements are slow, and rarely if they are fast. The previous packet determines the stride.
struct PacketClock {
    start: Instant,
    look_at: usize,
    stride: usize,
}

impl PacketClock {
    fn new() -> Self {
        Self { start: Instant::now(), look_at: 1, stride: 1 }
    }

    fn start(&mut self) {
        self.start = Instant::now();
        self.look_at = self.stride;
    }

    fn is_over(&mut self, len: usize) -> bool {
        if len < self.look_at {
            return false;
        }
        let elapsed = self.start.elapsed();
        // Aims at a quarter of the packet's time between two looks. The stride at most doubles.
        let per_element = elapsed.as_nanos() as usize / len.max(1);
        let quarter = PACKET_TIME.as_nanos() as usize / 4 / per_element.max(1);
        self.stride = quarter.clamp(1, (2 * self.stride).min(MAX_PACKET / 4));
        self.look_at = len + self.stride;
        elapsed >= PACKET_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_find_no_room_in_the_buffer_wait_in_order() {
        let (Post { packets, outbox }, inbox) = buffer(1);
        for element in [1, 2, 3] {
            let mut outbox = outbox.locked();
            outbox.elements.push(Ok((element, ())));
            outbox.offer(&packets);
        }
        let received = |packet: Option<Packet<i32, ()>>| -> Vec<i32> {
            packet.into_iter().flat_map(|packet| packet.elements).map(|element| element.unwrap().0).collect()
        };
        assert_eq!(received(inbox.ready()), [1]);
        // The producer waits for its next element, and offers nothing more until then.
        assert_eq!(received(inbox.ready()), [2, 3]);
        assert_eq!(received(inbox.ready()), [0; 0]);
    }
}
