//! Clocks of a thread and of this process: time on a core and time off it.

#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "the clocks of threads are not in std"))]

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::evaluation::waited_for_lock;
use super::sample::SHARE;
use super::turn;

/// Times of a piece of work, in nanoseconds: on a core, blocked, and waiting for a lock. The remainder is time spent waiting for
/// a core, or for the [turn](super::turn) of another thread that did shared work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// Total time.
    pub(super) wall: u64,
    /// Time on a core.
    pub(super) cpu: u64,
    /// Time blocked on a disk, a network, a private lock or a timer. Excludes waits for a [turn](super::turn).
    pub(super) blocked: u64,
    /// Time until the interpreter's lock was acquired.
    pub(super) lock: u64,
    /// True if the work took the interpreter's lock.
    pub(super) interpreted: bool,
}

/// Use of the interpreter's lock by the piece of work that is being observed.
#[derive(Clone, Copy, Default)]
struct Lock {
    looking: bool,
    taken: bool,
    waited_ns: u64,
}

thread_local! {
    static LOCK: Cell<Lock> = const { Cell::new(Lock { looking: false, taken: false, waited_ns: 0 }) };
    /// No piece of work is observed before this time.
    static NEXT_LOOK: Cell<Option<Instant>> = const { Cell::new(None) };
    static DITHER: Cell<u32> = const { Cell::new(0x9e37_79b9) };
}

/// Returns true if the next measured piece of work should be observed. Observation costs one part in [`SHARE`] of the time.
pub(super) fn is_due() -> bool {
    is_known() && NEXT_LOOK.get().is_none_or(|next| Instant::now() >= next)
}

/// An observation of a piece of work, from its start to its end.
pub(super) struct Look {
    before: Lock,
    from: Thread,
    start: Instant,
}

impl Look {
    /// Starts the observation.
    pub(super) fn begin() -> Self {
        let before = LOCK.replace(Lock { looking: true, ..Lock::default() });
        // The system may take the core away during the clock call. That time is not part of the work.
        let (from, start) = (Thread::now(), Instant::now());
        Self { before, from, start }
    }

    /// Ends the observation and returns the times.
    pub(super) fn end(self) -> Spent {
        let end = Instant::now();
        let (to, lock) = (Thread::now(), LOCK.replace(self.before));
        let rest = cost_ns() * SHARE;
        // Between 0.5 and 1.5 intervals, so that periodic data cannot escape the sample.
        let dither = DITHER.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        DITHER.set(dither);
        let rest = Duration::from_nanos(rest / 2 + rest * u64::from(dither >> 16) / (1 << 16));
        NEXT_LOOK.set(Some(NEXT_LOOK.get().map_or(end, |next| next.max(end)) + rest));
        let wall = ((end - self.start).as_nanos() as u64).saturating_sub(super::sample::clock_ns());
        Spent::of(wall, self.from, to, lock)
    }
}

/// The start of a measured piece of work.
pub(super) enum Begun {
    /// Measured and observed in detail.
    Look(Look),
    Clock(Instant),
}

impl Begun {
    /// Starts the measurement.
    pub(super) fn now(looks: bool) -> Self {
        if looks { Self::Look(Look::begin()) } else { Self::Clock(Instant::now()) }
    }
}

impl Spent {
    fn of(wall: u64, from: Thread, to: Thread, lock: Lock) -> Self {
        let cpu = to.cpu_ns.saturating_sub(from.cpu_ns).saturating_sub(cost_ns() / 2).min(wall);
        let off = wall - cpu;
        let waited = lock.waited_ns.min(off);
        // A thread that never yields its core, and is off it, waits for a core.
        let turns = to.turns_ns - from.turns_ns;
        let blocked = if to.yields > from.yields { (off - waited).saturating_sub(turns) } else { 0 };
        Self { wall, cpu, blocked, lock: waited, interpreted: lock.taken }
    }
}

/// Calls `take`, which acquires the interpreter's lock and does its work. `take` must call its argument as soon as it has the
/// lock, so that the wait for the lock is counted separately.
pub(crate) fn taking_lock<R>(take: impl FnOnce(&dyn Fn()) -> R) -> R {
    let start = Instant::now();
    take(&|| {
        let time = start.elapsed();
        waited_for_lock(time);
        let lock = LOCK.get();
        if lock.looking {
            LOCK.set(Lock { taken: true, waited_ns: lock.waited_ns + time.as_nanos() as u64, ..lock });
        }
    })
}

/// Resource use of a thread so far.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    cpu_ns: u64,
    /// Number of times that the thread yielded its core to wait.
    yields: u64,
    /// Time spent waiting for turns.
    turns_ns: u64,
}

/// Returns the cost of observing a piece of work, in nanoseconds.
fn cost_ns() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let empty = || {
            let start = Instant::now();
            std::hint::black_box((Thread::now(), Thread::now()));
            start.elapsed().as_nanos() as u64
        };
        (0..64).map(|_| empty()).min().unwrap_or(0).max(1)
    })
}

#[cfg(target_os = "linux")]
mod os {
    use std::mem::MaybeUninit;
    use std::time::Duration;

    /// Returns the time of the calling thread on a core.
    pub(super) fn thread_cpu() -> Option<Duration> {
        clock(libc::CLOCK_THREAD_CPUTIME_ID)
    }

    /// Returns the time of all threads of this process on cores.
    pub(super) fn process_cpu() -> Option<Duration> {
        clock(libc::CLOCK_PROCESS_CPUTIME_ID)
    }

    /// Reads a clock. Returns `None` if the clock is not available.
    fn clock(which: libc::clockid_t) -> Option<Duration> {
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the time is written when the call succeeds, and read only then.
        let time = unsafe {
            match libc::clock_gettime(which, time.as_mut_ptr()) {
                0 => time.assume_init(),
                _ => return None,
            }
        };
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }

    /// Returns the number of voluntary context switches of this thread, or `None` if the system does not report it.
    pub(super) fn yields() -> Option<u64> {
        let mut usage = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the figures are written when the call succeeds, and read only then.
        let usage = unsafe {
            match libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) {
                0 => usage.assume_init(),
                _ => return None,
            }
        };
        u64::try_from(usage.ru_nvcsw).ok()
    }
}

/// A system that does not report the resource use of a thread.
#[cfg(not(target_os = "linux"))]
mod os {
    use std::time::Duration;

    pub(super) fn thread_cpu() -> Option<Duration> {
        None
    }

    pub(super) fn process_cpu() -> Option<Duration> {
        None
    }

    pub(super) fn yields() -> Option<u64> {
        None
    }
}

impl Thread {
    fn now() -> Self {
        let cpu = os::thread_cpu().unwrap_or_default();
        Self { cpu_ns: cpu.as_nanos() as u64, yields: os::yields().unwrap_or(0), turns_ns: turn::waited_ns() }
    }
}

/// Returns true if this system reports the resource use of a thread.
fn is_known() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| os::thread_cpu().is_some() && os::yields().is_some())
}

/// Returns the time of the calling thread on a core, or zero if the system does not report it.
pub(crate) fn thread_cpu() -> Duration {
    os::thread_cpu().unwrap_or_default()
}

/// Returns the time of all threads of this process on cores, or zero if the system does not report it.
pub(crate) fn process_cpu() -> Duration {
    os::process_cpu().unwrap_or_default()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Runs `work` and returns its times.
    fn look<R>(work: impl FnOnce() -> R) -> (R, Spent) {
        let look = Look::begin();
        let result = work();
        (result, look.end())
    }

    #[test]
    fn sleep_is_blocked_and_work_is_on_a_core() {
        let thread = |cpu_ns, yields| Thread { cpu_ns, yields, turns_ns: 0 };
        let spent = |cpu_ns, yields| Spent::of(20_000_000, thread(0, 0), thread(cpu_ns, yields), Lock::default());
        let slept = spent(100_000, 1);
        assert!(slept.cpu <= 100_000 && slept.cpu + slept.blocked == 20_000_000, "{slept:?}");
        assert!(!slept.interpreted && slept.lock == 0, "{slept:?}");
        let worked = spent(19_000_000, 0);
        assert!(worked.cpu > 18_000_000 && worked.blocked == 0, "the rest waited for a core: {worked:?}");
    }

    /// Checks that a sleep yields the core and work uses it, however busy the machine is.
    #[test]
    fn the_system_tells_sleep_from_work() {
        // The length of a sleep has no upper limit here.
        let (before, (_, slept)) = (Thread::now(), look(|| std::thread::sleep(Duration::from_millis(2))));
        assert!(Thread::now().yields > before.yields && slept.blocked > 0 && slept.wall >= 1_900_000, "{slept:?}");
        let (_, worked) = look(|| {
            let from = thread_cpu();
            while thread_cpu() - from < Duration::from_millis(5) {}
        });
        assert!((4_900_000..=worked.wall).contains(&worked.cpu), "{worked:?}");
    }

    #[test]
    fn who_never_gives_its_core_up_is_not_blocked() {
        let thread = |cpu_ns, yields| Thread { cpu_ns, yields, turns_ns: 0 };
        let lock = Lock { looking: true, taken: true, waited_ns: 300_000 };
        let preempted = Spent::of(1_000_000, thread(0, 4), thread(600_000, 4), Lock::default());
        assert_eq!(preempted.blocked, 0, "it waited for a core");
        let waited = Spent::of(1_000_000, thread(0, 4), thread(600_000, 5), lock);
        assert_eq!((waited.lock, waited.interpreted), (300_000, true));
        assert_eq!(waited.cpu + waited.blocked + waited.lock, waited.wall);
        let turn = Thread { turns_ns: 250_000, ..thread(600_000, 5) };
        let other = |to| Spent::of(1_000_000, thread(0, 4), to, Lock::default()).blocked;
        assert_eq!(other(thread(600_000, 5)) - other(turn), 250_000, "another worked for it");
    }

    #[test]
    fn cheap_work_is_looked_at_seldom() {
        NEXT_LOOK.set(None);
        assert!(is_due());
        let start = Instant::now();
        look(|| ());
        // The time may have passed already on a slow machine.
        let rest = NEXT_LOOK.get().map(|next| next - start);
        assert!(rest >= Some(Duration::from_nanos(cost_ns() * SHARE / 2)), "{rest:?}");
        NEXT_LOOK.set(None);
    }
}
