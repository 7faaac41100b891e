//! Tests with real processes. The worker is this test program, started again.
//!
//! Scenarios are for what must not be disturbed by tests on other threads (descriptors, signals, the environment): a function
//! that runs in a worker of its own, and starts workers from there.

#![allow(unsafe_code, reason = "workers that crash, fork and change signals")]

mod ends;
mod handshake;
mod residue;
mod serving;

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::*;
use crate::error::Result;
use crate::exec::remote::Evaluated;
use crate::workers::control::{Done, Event, FromWorker, Ready, Session, Task, ToWorker, What};

type Events = Receiver<Event>;

/// Long enough for a busy machine; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(30);

fn launch<C, D>(factory: fn(C) -> Result<D>, cfg: C, serve: fn(D, Session) -> Result<()>) -> (Worker, Events)
where
    C: Serialize + DeserializeOwned,
{
    let (tell, events) = unbounded();
    (begin(factory, cfg, serve, &Options::default(), &tell).unwrap(), events)
}

fn begin<C: Serialize + DeserializeOwned, D>(
    factory: fn(C) -> Result<D>,
    cfg: C,
    serve: fn(D, Session) -> Result<()>,
    options: &Options<'_>,
    tell: &Sender<Event>,
) -> Result<Worker> {
    start(7, &Program::new(factory, &cfg, serve)?, options, tell)
}

fn next(events: &Events) -> What {
    let event = events.recv_timeout(PATIENCE).expect("an event");
    assert_eq!(event.worker, 7);
    event.what
}

fn next_message(events: &Events) -> FromWorker {
    match next(events) {
        What::Message(message) => message,
        What::Exited(exit) => panic!("{exit}"),
    }
}

fn next_exit(events: &Events) -> Exit {
    match next(events) {
        What::Exited(exit) => exit,
        What::Message(message) => panic!("{message:?}"),
    }
}

/// Runs `scene` in a worker, and panics here as it did there.
fn scenario(scene: fn(()) -> Result<()>) {
    let (worker, events) = launch(scene, (), |(), _| Ok(()));
    loop {
        match events.recv_timeout(2 * PATIENCE).expect("the scene ends").what {
            What::Message(FromWorker::Failed(failure)) => panic!("{}", failure.into_error()),
            What::Message(_) => {}
            What::Exited(exit) => break assert_eq!(exit.to_string(), "exit code 0 before the request to stop"),
        }
    }
    drop(worker);
}

fn adder(add: u64) -> Result<u64> {
    Ok(add)
}

/// Answers each task with its `end` plus `add`.
fn echo(add: u64, session: Session) -> Result<()> {
    session.send(FromWorker::Ready(Ready { build_ns: session.worker }))?;
    while let Some(ToWorker::Task(task)) = session.recv()? {
        session.send(FromWorker::Done(done(task.id, task.end + add)))?;
    }
    Ok(())
}

/// A worker that echoes, and is ready.
fn echoing(add: u64) -> (Worker, Events) {
    let (worker, events) = launch(adder, add, echo);
    assert_eq!(next_message(&events), FromWorker::Ready(Ready { build_ns: 7 }));
    (worker, events)
}

fn done(id: u64, indices: u64) -> Done {
    Done { id, evaluated: Evaluated { indices, ..Evaluated::default() }, took: Duration::ZERO, tally: None }
}

fn task(id: u64) -> ToWorker {
    let extent = crate::workers::slab::ExtentId { page: 1, pages: 2, generation: 3 };
    ToWorker::Task(Task {
        id,
        border: 4.into(),
        start: id,
        end: id + 1,
        listed: None,
        groups_from: None,
        lane: None,
        fed: None,
        alone: false,
        extent,
    })
}

fn assert_echoes(worker: &Worker, events: &Events, id: u64, add: u64) {
    worker.send(&task(id)).unwrap();
    assert_eq!(next_message(events), FromWorker::Done(done(id, id + 1 + add)));
}

/// Returns true if `condition` comes true in time.
fn soon(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        // Nothing reports the end of a process that is not a child.
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Whether the process is gone, or a zombie that its new parent has yet to notice.
fn is_gone(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}
