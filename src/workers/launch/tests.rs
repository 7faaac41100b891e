use std::time::Duration;

use crossbeam_channel::{Receiver, unbounded};
use serde::{Deserialize, Serialize};

use super::*;
use crate::error::Result;
use crate::workers::control::{Done, Event, Extent, FromWorker, Ready, Session, Task, ToWorker, What};

#[derive(Debug, Serialize, Deserialize)]
struct Cfg {
    add: u64,
}

fn adder(cfg: Cfg) -> Result<Box<dyn Fn(u64) -> u64>> {
    Ok(Box::new(move |x| x + cfg.add))
}

fn echo(f: Box<dyn Fn(u64) -> u64>, session: Session) -> Result<()> {
    session.send(FromWorker::Ready(Ready { build_ns: session.worker() }))?;
    while let Some(ToWorker::Task(task)) = session.recv()? {
        let done = Done { id: task.id, end: f(task.end), slots: 0, used: 0, took_ns: 0, cpu_ns: 0 };
        session.send(FromWorker::Done(done))?;
    }
    Ok(())
}

fn task(id: u64) -> ToWorker {
    let extent = Extent { page: 1, pages: 2, generation: 3 };
    ToWorker::Task(Task { id, border: 0, start: id, end: id + 1, extent })
}

fn next(events: &Receiver<Event>) -> What {
    events.recv_timeout(Duration::from_secs(20)).expect("an event").what
}

#[test]
fn a_worker_answers_and_stops() {
    let program = Program::new(adder, &Cfg { add: 1000 }, echo).unwrap();
    let (tell, events) = unbounded();
    let worker = start(7, &program, &Options::default(), &tell).unwrap();
    assert!(matches!(next(&events), What::Message(FromWorker::Ready(Ready { build_ns: 7 }))));
    for id in 0..10 {
        worker.send(&task(id)).unwrap();
    }
    for id in 0..10 {
        let What::Message(FromWorker::Done(done)) = next(&events) else { panic!("not done") };
        assert_eq!((done.id, done.end), (id, id + 1001));
    }
    let exit = worker.stop(Duration::from_secs(5)).unwrap();
    assert!(exit.is_clean(), "{exit}");
    assert!(matches!(next(&events), What::Exited(e) if e == exit));
}
