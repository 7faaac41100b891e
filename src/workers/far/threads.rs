//! Workers that are threads of this process: what tests drive in place of other machines.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::{Office, Order};

/// The life of a worker, which is sent messages.
pub(super) type Life = Box<dyn FnOnce(Receiver<Vec<u8>>) + Send>;

/// Drives workers until the pass has ended. `start` gives the life of each by its number; `None` for one that is not to start.
pub(super) fn drive(office: &Office, mut start: impl FnMut(u64) -> Option<Life>) {
    let mut workers: HashMap<u64, Sender<Vec<u8>>> = HashMap::new();
    while let Ok(order) = office.next_order(Duration::from_millis(50)) {
        match order {
            Some(Order::Start { number, .. }) => {
                if let Some(life) = start(number) {
                    let (tell, told) = unbounded();
                    workers.insert(number, tell);
                    thread::spawn(move || life(told));
                }
            }
            Some(Order::Send { number, message }) => {
                // One that is gone hears nothing.
                let _ = workers.get(&number).map(|worker| worker.send(message));
            }
            Some(Order::End { number } | Order::Kill { number }) => {
                workers.remove(&number);
                office.gone(number, "it was ended".to_owned(), false);
            }
            None => {}
        }
    }
}
