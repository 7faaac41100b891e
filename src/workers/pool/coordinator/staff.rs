//! Starting and dismissing workers.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Command, Coordinator};
use crate::error::{Error, ErrorKind, Result, Told};
use crate::workers::control::{Begin, ToWorker};
use crate::workers::pool::carrier::{Carrier, Link, Recruit};
use crate::workers::pool::crew::Member;

impl<C: Carrier> Coordinator<C> {
    /// Starts the missing workers, each on a separate thread: a start takes milliseconds, or the time-out.
    pub(super) fn start_missing(&mut self) {
        let (wanted, heap) = self.staffing();
        while self.over.is_none()
            && self.staff() < wanted
            && self.has_heap(heap)
            && self.respawn.due(Instant::now()) <= Instant::now()
        {
            let taken = |place: &usize| self.crew.values().any(|member| member.place == *place);
            let Some(place) = (0..self.plan.workers).find(|place| !taken(place)) else { return };
            let number = self.next_worker;
            self.next_worker += 1;
            self.crew.insert(number, Member { place, ..Member::new(heap) });
            self.starting.retain(|thread| !thread.is_finished());
            let (carrier, events, commands) = (self.carrier.clone(), self.events.clone(), self.commands.clone());
            let start = move || {
                let result = carrier.start(Recruit { number, place, cap: heap }, &events);
                // If the coordinator has ended, the worker is dropped here, which ends it.
                let _ = commands.send(Command::Started { number, result });
            };
            match std::thread::Builder::new().name("gristmill-start".into()).spawn(start) {
                Ok(thread) => self.starting.push(thread),
                Err(e) => {
                    let error = Error::new(ErrorKind::Io, format!("cannot start the thread that starts a worker: {e}"));
                    self.give_up(Told::in_words(&error));
                }
            }
        }
    }

    /// Returns the number of workers that are not leaving.
    pub(super) fn staff(&self) -> usize {
        self.crew.values().filter(|member| !member.leaving).count()
    }

    /// Returns true if a worker is missing and can be started. Leaving workers hold their memory until they are gone.
    pub(super) fn is_short(&mut self) -> bool {
        let (wanted, heap) = self.staffing();
        self.staff() < wanted && self.has_heap(heap)
    }

    pub(super) fn resize(&mut self, workers: usize) {
        self.wanted = workers.clamp(1, self.plan.workers);
        let too_many = self.staff().saturating_sub(self.wanted);
        for member in self.crew.values_mut().rev().filter(|member| !member.leaving).take(too_many) {
            member.leaving = true;
        }
    }

    /// Stops leaving workers that have no tasks.
    pub(super) fn dismiss(&mut self) {
        for member in self.crew.values_mut().filter(|member| member.leaving && !member.told_to_stop) {
            if let Some(link) = member.link.as_ref().filter(|_| member.tasks.is_empty()) {
                // If sending fails, the end of the worker is reported later.
                let _ = link.send(&ToWorker::Stop);
                member.told_to_stop = true;
            }
        }
    }

    pub(super) fn started(&mut self, number: u64, result: Result<C::Link>) {
        match result {
            Ok(link) => {
                let keep = self.keep();
                // A worker that has already ended is no longer in the crew.
                let Some(member) = self.crew.get_mut(&number) else { return };
                let (threads, active) = (self.plan.threads_per_worker as u32, self.plan.active_threads as u32);
                let (counted, one_of_many) = (self.options.counted, self.plan.workers > 1);
                let begin = Begin { threads, active, keep, counted, one_of_many, pipeline: self.pipeline.clone() };
                // If sending fails, the end of the worker is reported later.
                let _ = link.send(&ToWorker::Begin(begin));
                member.link = Some(link);
            }
            Err(error) => {
                self.crew.remove(&number);
                tracing::warn!(%error, "a worker did not start");
                if self.respawn.died(Instant::now(), C::is_from_outside(&error), self.wanted) {
                    self.give_up(Told::in_words(&error));
                }
            }
        }
    }

    /// Sets the number of active threads of every worker.
    pub(super) fn activate(&mut self, threads: usize) {
        self.plan.active_threads = threads.clamp(1, self.plan.threads_per_worker);
        for link in self.crew.values().filter_map(|member| member.link.as_ref()) {
            let _ = link.send(&ToWorker::Active(self.plan.active_threads as u32));
        }
        self.figures.active_each.store(self.plan.active_threads, Ordering::Relaxed);
        self.figures.active.store(self.plan.active_threads * self.wanted, Ordering::Relaxed);
    }
}
