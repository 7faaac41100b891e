//! The stateful part on a separate thread, ahead of the consumer.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};

use crate::cx::{Cause, Cx, Given};
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
    packets: Option<Receiver<Packet<T, S>>>,
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
    packets: Sender<Packet<T, S>>,
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
    fn spawn<I>(
        iter: I,
        cx: Cx,
        buffer: usize,
        run: &Runtime,
    ) -> Result<(Receiver<Packet<T, S>>, Sender<Order<T, S>>, JoinHandle<()>)>
    where
        I: DatasetIterator<Item = T, State = S> + 'static,
    {
        let (sender, packets) = bounded(buffer);
        let (orders, ordered) = bounded(1);
        let thread = std::thread::Builder::new().name("gristmill-suffix".into());
        let work = {
            let (run, pass) = (run.clone(), crate::exec::thread::pass());
            move || crate::exec::thread::run(pass, || serve(iter, cx, &run, sender, &ordered))
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
        self.run.demand().end(given);
        let count = next.iter().count() + self.current.len();
        self.run.given(
            &Given { first: meter.delivered, count, ready, asked: at, given, made: self.made },
            self.begins.take(),
        );
        next.transpose().map(Poll::Ready)
    }

    /// Orders the thread to continue at `state`, and returns its state after the move.
    /// `None` if the thread has ended or does not answer in time.
    pub(super) fn restore(&mut self, state: S) -> Option<Result<S>> {
        let orders = self.orders.as_ref()?;
        let ((sender, packets), (answer, answered)) = (bounded(self.buffer), bounded(1));
        self.packets = Some(packets);
        self.current = Vec::new().into_iter();
        self.begins = Some(Cause::Restore);
        if self.waiting.take().is_some() {
            self.run.demand().end(Instant::now());
        }
        orders.try_send(Order { state, packets: sender, answer }).ok()?;
        answered.recv_timeout(ORDER_TIME).ok()
    }

    /// Returns true if [`next`](Self::next) would not wait.
    #[cfg(feature = "pjrt")]
    pub(super) fn is_ready(&self) -> bool {
        self.current.len() > 0 || self.packets.as_ref().is_none_or(|packets| !packets.is_empty())
    }

    fn begin(&self, meter: &mut ConsumerMeter) -> Asked {
        let at = Instant::now();
        self.run.demand().begin(at);
        let ready = self.packets.as_ref().map(Receiver::len);
        ready.iter().for_each(|ready| meter.look(*ready));
        Asked { at, ready }
    }

    /// Receives the next packet, and returns its first element.
    fn receive(&mut self, patience: Option<Duration>) -> Poll<Option<Result<(T, S)>>> {
        let Some(packets) = &self.packets else { return Poll::Ready(None) };
        let received = match patience {
            Some(patience) => packets.recv_timeout(patience),
            None => packets.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
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
    sender: Sender<Packet<I::Item, I::State>>,
    orders: &Receiver<Order<I::Item, I::State>>,
) {
    produce(&mut iter, &mut cx, run, sender);
    while let Ok(Order { state, packets, answer }) = orders.recv() {
        let restored = iter.restore(state, &mut cx).map(|()| iter.state());
        let failed = restored.is_err();
        let _ = answer.send(restored);
        if failed {
            return;
        }
        produce(&mut iter, &mut cx, run, packets);
    }
}

/// Sends the elements of `iter` in packets, until its end or until the receiver is gone.
fn produce<I: DatasetIterator<Item: Send + 'static> + 'static>(
    iter: &mut I,
    cx: &mut Cx,
    run: &Runtime,
    sender: Sender<Packet<I::Item, I::State>>,
) {
    let outbox = Arc::new(Mutex::new(Outbox { elements: Vec::new(), clock: PacketClock::new(), sender }));
    let post = || outbox.locked();
    let waiting = outbox.clone();
    cx.before_waiting(move || waiting.locked().offer());
    loop {
        let next = iter.next(cx);
        let sent = match next {
            Ok(Some(element)) => {
                let state = iter.state();
                let mut outbox = post();
                outbox.elements.push(Ok((element, state)));
                !outbox.is_due() || {
                    cx.flush_if_due();
                    // If the buffer is full, `send` waits for the consumer.
                    cx.works(false);
                    let sent = outbox.send();
                    cx.works(true);
                    sent
                }
            }
            last => {
                // The totals are complete before the consumer can see the end.
                cx.flush();
                cx.works(false);
                run.sync();
                let mut outbox = post();
                outbox.elements.extend(last.err().map(Err));
                outbox.send();
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
    sender: Sender<Packet<T, S>>,
}

impl<T, S> Outbox<T, S> {
    fn is_due(&mut self) -> bool {
        self.elements.len() >= MAX_PACKET || self.clock.is_over(self.elements.len())
    }

    /// Sends the elements. Returns false if the receiver is gone.
    fn send(&mut self) -> bool {
        let sent = self.elements.is_empty() || {
            let packet = self.packet();
            self.sender.send(packet).is_ok()
        };
        self.clock.start();
        sent
    }

    /// Sends the ready elements if the buffer has room, because the next element is not ready yet.
    fn offer(&mut self) {
        if self.elements.is_empty() {
            return;
        }
        let packet = self.packet();
        match self.sender.try_send(packet) {
            Err(TrySendError::Full(packet)) => self.elements = packet.elements,
            _ => self.clock.start(),
        }
    }

    fn packet(&mut self) -> Packet<T, S> {
        Packet { elements: std::mem::take(&mut self.elements), made: (self.clock.start, Instant::now()) }
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
        let (sender, packets) = bounded(1);
        let mut outbox = Outbox { elements: vec![Ok((1, ()))], clock: PacketClock::new(), sender };
        outbox.offer();
        for element in [2, 3] {
            outbox.elements.push(Ok((element, ())));
            outbox.offer();
        }
        let received = || -> Vec<i32> {
            let packet = packets.try_recv().map_or_else(|_| Vec::new(), |packet| packet.elements);
            packet.into_iter().map(|element| element.unwrap().0).collect()
        };
        assert_eq!(received(), [1]);
        assert_eq!(received(), [0; 0]);
        outbox.offer();
        assert_eq!(received(), [2, 3]);
    }
}
