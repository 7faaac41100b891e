//! The clocks of a thread and of this process: time on a core, and time off it.

#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "the clocks of threads are not in std"))]

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

#[cfg(feature = "python")]
use super::made::waited_for_lock;
use super::sample::SHARE;
#[cfg(target_os = "linux")]
use super::turn;

/// Times of a piece of work, in nanoseconds: on a core, blocked, and for a lock. The rest was spent waiting for a core, or for one
/// who had a core and did what this one wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// All of it.
    pub(super) wall: u64,
    /// On a core.
    pub(super) cpu: u64,
    /// Blocked: for a disk, a network, a lock of its own, a time to pass; but not for its [turn](super::turn).
    pub(super) blocked: u64,
    /// Until the interpreter's lock was had.
    pub(super) lock: u64,
    /// Whether that was taken at all.
    pub(super) interpreted: bool,
}

/// The lock of an interpreter, as a piece of work that is looked at takes it.
#[derive(Clone, Copy, Default)]
struct Lock {
    #[cfg_attr(not(feature = "python"), expect(dead_code, reason = "read where a lock is taken"))]
    looking: bool,
    taken: bool,
    waited_ns: u64,
}

thread_local! {
    static LOCK: Cell<Lock> = const { Cell::new(Lock { looking: false, taken: false, waited_ns: 0 }) };
    /// No piece of work is looked at before.
    static NEXT_LOOK: Cell<Option<Instant>> = const { Cell::new(None) };
    static DITHER: Cell<u32> = const { Cell::new(0x9e37_79b9) };
}

/// Whether to look at the next measured piece of work: so seldom that it costs one part in [`SHARE`] of the time.
pub(super) fn is_due() -> bool {
    is_known() && NEXT_LOOK.get().is_none_or(|next| Instant::now() >= next)
}

/// A look at the piece of work between its beginning and its end.
pub(super) struct Look {
    before: Lock,
    from: Thread,
    start: Instant,
}

impl Look {
    /// Begins to look.
    pub(super) fn begin() -> Self {
        let before = LOCK.replace(Lock { looking: true, ..Lock::default() });
        // The system may take the core away where it is asked for the time, which is no part of the work.
        let (from, start) = (Thread::now(), Instant::now());
        Self { before, from, start }
    }

    /// Ends it, and says where the time went.
    pub(super) fn end(self) -> Spent {
        let end = Instant::now();
        let (to, lock) = (Thread::now(), LOCK.replace(self.before));
        let rest = cost_ns() * SHARE;
        // Between half of it and one and a half: a period in the data cannot hide from it.
        let dither = DITHER.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        DITHER.set(dither);
        let rest = Duration::from_nanos(rest / 2 + rest * u64::from(dither >> 16) / (1 << 16));
        NEXT_LOOK.set(Some(NEXT_LOOK.get().map_or(end, |next| next.max(end)) + rest));
        let wall = ((end - self.start).as_nanos() as u64).saturating_sub(super::sample::clock_ns());
        Spent::of(wall, self.from, to, lock)
    }
}

/// The beginning of a piece of work that is measured.
pub(super) enum Begun {
    /// It is looked at, too.
    Look(Look),
    Clock(Instant),
}

impl Begun {
    /// Begins to measure.
    pub(super) fn now(looks: bool) -> Self {
        if looks { Self::Look(Look::begin()) } else { Self::Clock(Instant::now()) }
    }
}

impl Spent {
    fn of(wall: u64, from: Thread, to: Thread, lock: Lock) -> Self {
        let cpu = to.cpu_ns.saturating_sub(from.cpu_ns).saturating_sub(cost_ns() / 2).min(wall);
        let off = wall - cpu;
        let waited = lock.waited_ns.min(off);
        // Who never gives its core up, and has none, waits for one.
        let turns = to.turns_ns - from.turns_ns;
        let blocked = if to.yields > from.yields { (off - waited).saturating_sub(turns) } else { 0 };
        Self { wall, cpu, blocked, lock: waited, interpreted: lock.taken }
    }
}

/// Takes the interpreter's lock by `take`, which does its work once it has it and calls what it is given first: the wait for the
/// lock is counted apart.
#[cfg(feature = "python")]
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

/// Use of a thread so far.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    cpu_ns: u64,
    /// Times that it gave its core up to wait for something.
    yields: u64,
    /// Waits for its turn.
    turns_ns: u64,
}

/// Nanoseconds that looking at one piece of work costs.
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

    /// Reads a clock; `None` where there is none.
    pub(super) fn clock(which: libc::clockid_t) -> Option<Duration> {
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

    /// Counts how often this thread has given its core up by itself; `None` where the system does not say.
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

#[cfg(target_os = "linux")]
impl Thread {
    fn now() -> Self {
        let cpu = os::clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
        Self { cpu_ns: cpu.as_nanos() as u64, yields: os::yields().unwrap_or(0), turns_ns: turn::waited_ns() }
    }
}

#[cfg(not(target_os = "linux"))]
impl Thread {
    fn now() -> Self {
        Self::default()
    }
}

/// Whether this system says what a thread has used.
fn is_known() -> bool {
    #[cfg(target_os = "linux")]
    {
        static KNOWN: OnceLock<bool> = OnceLock::new();
        *KNOWN.get_or_init(|| os::clock(libc::CLOCK_THREAD_CPUTIME_ID).is_some() && os::yields().is_some())
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// Time on a core of the calling thread; none where the system does not say.
pub(crate) fn thread_cpu() -> Duration {
    #[cfg(target_os = "linux")]
    return os::clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

/// Time on cores of all threads of this process; none where the system does not say.
pub(crate) fn process_cpu() -> Duration {
    #[cfg(target_os = "linux")]
    return os::clock(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default();
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Does `work` and says where its time went.
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

    /// A sleep gives the core up, and work takes it, however busy the machine is.
    #[test]
    fn the_system_tells_sleep_from_work() {
        // A sleep has no upper limit here.
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
        // Whether it has come by now is for the machine to say.
        let rest = NEXT_LOOK.get().map(|next| next - start);
        assert!(rest >= Some(Duration::from_nanos(cost_ns() * SHARE / 2)), "{rest:?}");
        NEXT_LOOK.set(None);
    }
}
