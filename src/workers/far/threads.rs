//! Workers that are threads of this process, used by tests in place of other machines.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::{Driver, Order};

/// Body of a worker, which receives messages.
pub(super) type Life = Box<dyn FnOnce(Receiver<Vec<u8>>) + Send>;

/// Drives workers until the pass has ended. `start` returns the body of each worker by number, or `None` for a worker
/// that must not start.
pub(super) fn drive(driver: &Driver, mut start: impl FnMut(u64) -> Option<Life>) {
    let mut workers: HashMap<u64, Sender<Vec<u8>>> = HashMap::new();
    while let Ok(order) = driver.next_order(Duration::from_millis(50)) {
        match order {
            Some(Order::Start { number, .. }) => {
                if let Some(life) = start(number) {
                    let (tell, told) = unbounded();
                    workers.insert(number, tell);
                    thread::spawn(move || life(told));
                }
            }
            Some(Order::Send { number, message }) => {
                // A worker that is gone receives nothing.
                let _ = workers.get(&number).map(|worker| worker.send(message));
            }
            Some(Order::End { number } | Order::Kill { number }) => {
                workers.remove(&number);
                driver.gone(number, "it was ended".to_owned(), false);
            }
            None => {}
        }
    }
}
