//! Assignment of queued jobs to workers, with memory.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::time::Instant;

use super::Coordinator;
use crate::cx::{Cause, Hold};
use crate::error::{Error, ErrorKind};
use crate::exec::remote::Border;
use crate::units::Bytes;
use crate::workers::control::{Task, ToWorker};
use crate::workers::pool::carrier::{Carrier, Link, Room};
use crate::workers::pool::crew::Member;
use crate::workers::pool::crew::Running;
use crate::workers::pool::job::{Job, Late};
use crate::workers::pool::lanes::Home;
use crate::workers::slab::PAGE;

impl<C: Carrier> Coordinator<C> {
    /// Assigns jobs until no job, no suitable free worker or no memory is left.
    pub(super) fn hand_out(&mut self) {
        (self.look_again, self.is_short) = (None, false);
        let held = self.hand_out_all();
        if self.held != held {
            self.held = held;
            self.recorder.waits().hold(held, Instant::now());
        }
    }

    /// Assigns all possible jobs; returns the cause if a job waits although a worker might be free.
    fn hand_out_all(&mut self) -> Option<Hold> {
        let (mut from, shared, now) = (0, self.is_shared(), Instant::now());
        while let Some(job) = self.queue.first(from) {
            let (seq, border, need) = (job.seq, job.border, job.need);
            let cap = if job.wide { self.plan.solo_heap_bytes } else { 0 };
            let (least, len) = (job.least(), job.left.end - job.left.start);
            if need as u64 > self.plan.max_element_bytes {
                self.refuse_largest(seq);
                continue;
            }
            let number = match self.lanes.home(job, &self.crew, self.plan.active_threads, now) {
                Home::Free(number) => number,
                Home::Busy => {
                    from = seq + 1;
                    continue;
                }
                Home::None => match free_worker(&self.crew, self.plan.active_threads, job, cap, shared) {
                    Some(number) => number,
                    // The remaining workers are busy with other tasks.
                    None => return self.is_bereft().then(|| Hold::of_all(Cause::Death)),
                },
            };
            let Some(room) = self.room_for(number, need, border, least, len) else {
                self.is_short = true;
                let idle = self.idle();
                return Some(Hold { cause: if idle < 1.0 { Cause::Memory } else { Cause::Leases }, idle });
            };
            let job = self.queue.take(seq)?;
            self.assign(number, job, room);
        }
        None
    }

    /// Returns the share of all workers' threads that have no task.
    fn idle(&self) -> f64 {
        let threads = self.plan.active_threads;
        let busy: usize = self.crew.values().map(|member| member.tasks.len().min(threads)).sum();
        1.0 - busy as f64 / (self.crew.len() * threads).max(1) as f64
    }

    /// Returns true if a worker has died and its replacement is not ready.
    fn is_bereft(&self) -> bool {
        self.replaced > 0 && (self.staff() < self.wanted || self.crew.values().any(|member| !member.ready))
    }

    fn refuse_largest(&mut self, seq: u64) {
        let Some(mut job) = self.queue.take(seq) else { return };
        let error = Error::new(
            ErrorKind::Data,
            format!(
                "an element of {} does not fit: max_element is {}, of a slab of {}",
                Bytes(job.need as u64),
                Bytes(self.plan.max_element_bytes),
                Bytes(self.plan.slab_bytes)
            ),
        );
        job.deliver
            .fail(error.index(job.left.start).help("raise `max_element` or `ram_budget`, or make elements smaller"));
    }

    /// Reserves memory for a worker's next task, of `least` to `len` indices, from the job at the head of the queue.
    /// Later jobs wait, so the head is always served first.
    fn room_for(&mut self, number: u64, need: usize, border: Border, least: u64, len: u64) -> Option<C::Room> {
        let index = self.index_bytes.get(&border).copied().unwrap_or(0.0);
        // Room for at least `least` indices; unused room is returned after the write.
        let one = (index * 1.02 * least as f64) as usize + 4096;
        let all = ((index * 1.25 * len as f64) as usize)
            .saturating_add(4096)
            .min(self.plan.part_bytes(self.plan.active_threads * self.wanted));
        let size = all.max(one.min(self.plan.max_element_bytes as usize)).max(need).max(PAGE);
        let place = self.crew.get(&number)?.place;
        let room = self.carrier.room(size, place);
        if room.is_some() || self.crew.values().any(|member| !member.tasks.is_empty()) {
            self.drought.over(&self.figures.demand);
            return room;
        }
        // No task is in progress that could free memory. Views may be dropped soon, or held forever.
        self.look_again = self.drought.goes_on(Instant::now(), &self.figures.demand);
        if self.look_again.is_some() {
            return None;
        }
        if !mem::replace(&mut self.told_of_copies, true) {
            let slab = Bytes(self.plan.slab_bytes);
            tracing::warn!(
                "views hold all of {slab} of shared memory, so elements are copied: keep fewer, or raise `ram_budget`"
            );
        }
        self.carrier.last_room(self.plan.max_element_bytes as usize, place)
    }

    fn assign(&mut self, number: u64, mut job: Job, room: C::Room) {
        if job.groups.is_some() && self.apart.contains(&job.border) {
            job.ungroup();
        }
        let id = self.next_task;
        self.next_task += 1;
        let Some(member) = self.crew.get_mut(&number) else { return self.queue.put(job) };
        let range = job.next_task();
        let (border, listed, lane, fed) = (job.border, job.listed(&range), job.lane.clone(), job.fed.clone());
        let (groups_from, alone) = (job.groups.map(|groups| groups.first), job.is_suspect());
        let Range { start, end } = range;
        let task = Task { id, border, start, end, listed, groups_from, lane, fed, alone, extent: room.extent() };
        if let Some(link) = &member.link {
            // If sending fails, the end of the worker is reported later and the task returns to the queue.
            let _ = link.send(&ToWorker::Task(task));
        }
        member.tasks.insert(id, Running { job, asked: end - start, room, since: Instant::now() });
    }
}

/// Returns the free worker with the fewest tasks for `job`, among workers with a heap of at least `cap`. A job that was
/// late prefers another machine. If workers are `shared`, prefers the common worker of all passes, if that worker is
/// free.
fn free_worker<C: Carrier>(
    crew: &BTreeMap<u64, Member<C>>,
    threads: usize,
    job: &Job,
    cap: u64,
    shared: bool,
) -> Option<u64> {
    let is_other = job.avoid.as_ref().map(|late| others(crew, late));
    let free = crew.iter().filter(|(_, member)| member.has_place(threads, job.is_suspect(), cap));
    let free = free.filter(|(number, member)| is_other.as_ref().is_none_or(|is_other| is_other(**number, member)));
    if shared && !job.is_suspect() && job.avoid.is_none() {
        // Elements that other passes have evaluated or are evaluating need no work, so a few more tasks may queue
        // there.
        let common = common_worker(crew, job).filter(|(_, member)| member.has_place(2 * threads + 1, false, cap));
        if let Some((&number, _)) = common {
            return Some(number);
        }
    }
    // Remote machines each have a separate link, so the load is spread over all. Locally, the first worker has warm
    // caches.
    let done = |member: &Member<C>| if C::SPREADS { member.done } else { 0 };
    free.min_by_key(|(_, member)| (member.tasks.len(), done(member))).map(|(&number, _)| number)
}

/// Returns a predicate for workers that may take a `late` task: workers on other machines if there are any, otherwise
/// all other workers. A lone worker may take its own task again.
pub(super) fn others<'a, C: Carrier>(
    crew: &BTreeMap<u64, Member<C>>,
    late: &'a Late,
) -> impl Fn(u64, &Member<C>) -> bool + use<'a, C> {
    let elsewhere = |member: &Member<C>| member.link.as_ref().is_some_and(|link| link.node() != late.machine);
    let (any_elsewhere, alone) = (crew.values().any(elsewhere), crew.len() == 1);
    move |number, member| if any_elsewhere { elsewhere(member) } else { alone || number != late.worker }
}

/// Returns the worker to which every pass sends this `job`: the worker with the highest hash of its place and the job's
/// first index.
fn common_worker<'a, C: Carrier>(crew: &'a BTreeMap<u64, Member<C>>, job: &Job) -> Option<(&'a u64, &'a Member<C>)> {
    let range = job.next_task();
    let first = job.listed(&(range.start..range.start + 1)).and_then(|listed| listed.first().copied());
    let first = first.unwrap_or(range.start);
    let stays = |member: &Member<C>| member.ready && !member.leaving && member.killed.is_none();
    let staying = crew.iter().filter(|(_, member)| stays(member));
    staying.max_by_key(|(_, member)| mixed(first, member.place as u64))
}

/// Returns a hash that is identical on every machine: the last steps of SplitMix64.
fn mixed(first: u64, place: u64) -> u64 {
    let z = first.wrapping_add((place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
