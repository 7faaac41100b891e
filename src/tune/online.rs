//! Measurements of a running pipeline, once a second, for the controller.
//!
//! At the start of a run, measurements are more frequent if enough elements arrive: a pipeline that waits may need far
//! more than a thread per core. The time is an argument: no code here reads a clock.

use std::time::{Duration, Instant};

use super::{Bounds, Controller, Decision, Measurement, Setting};

/// Longest measurement without an element, in seconds. Elements may take long.
const PATIENCE: u32 = 20;
/// Early measurements: number per second, seconds after the start, and minimum number of elements for each.
const EARLY: (u32, u32, u64) = (4, 15, 50);
/// Measurements that show the effect of a decision. The first measurement after the decision is not counted.
const EFFECT: u32 = 4;
/// Consecutive seconds with a pause, after which pauses count as normal for the consumer.
const PAUSES: u32 = 12;

/// Sums since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) busy: Duration,
    /// Part of `busy` for which functions waited for an interpreter's lock.
    pub(crate) locked: Duration,
    /// CPU time of the evaluating threads. `taken` also includes this process.
    pub(crate) cpu: Duration,
    pub(crate) taken: Duration,
    pub(crate) indices: u64,
    /// Time for which the stateful part had no elements to work on.
    pub(crate) blocked: Duration,
    pub(crate) waited: Duration,
    /// Elements that the consumer requested.
    pub(crate) steps: u64,
}

/// Tuner of a running pipeline. See the [module](self).
pub(crate) struct Tuner {
    controller: Controller,
    tick: Duration,
    began: Instant,
    last: Instant,
    before: Totals,
    disturbed: bool,
    /// Whether workers were free with nothing to hand out at the last look, the time of the look, and the total time so
    /// far.
    idle: (bool, Instant, Duration),
    /// Whether memory was short for work at the last look, the time of the look, and the total time so far.
    short: (bool, Instant, Duration),
    /// Consecutive seconds with a pause.
    pauses: u32,
    /// Measurements, elements and seconds since the last decision.
    effect: (u32, f64, f64),
    pub(crate) decisions: Vec<Decision>,
}

impl Tuner {
    /// Starts at `now`, with `tick` as the length of a second.
    pub(crate) fn new(start: Setting, bounds: Bounds, tick: Duration, now: Instant) -> Self {
        Self {
            controller: Controller::new(start, bounds).with_second(tick.as_secs_f64()),
            tick,
            began: now,
            last: now,
            before: Totals::default(),
            disturbed: true,
            idle: (false, now, Duration::ZERO),
            short: (false, now, Duration::ZERO),
            pauses: 0,
            effect: (0, 0.0, 0.0),
            decisions: Vec::new(),
        }
    }

    /// Records whether workers are free with nothing left to hand out.
    pub(crate) fn look(&mut self, idle: bool, now: Instant) {
        note(&mut self.idle, idle, now);
    }

    /// Returns true if a measurement is due, given `indices` elements since the run began.
    pub(crate) fn is_due(&self, indices: u64, now: Instant) -> bool {
        let (often, seconds, enough) = EARLY;
        let elapsed = now - self.last;
        let is_early = indices.saturating_sub(self.before.indices) >= enough && now - self.began < seconds * self.tick;
        elapsed >= self.tick || (is_early && elapsed >= self.tick / often)
    }

    /// Decides on a new setting from the sums so far; returns `None` if nothing changes.
    ///
    /// `longest` is the longest time that the consumer spent on other work.
    pub(crate) fn step(&mut self, sums: Totals, longest: Duration, now: Instant) -> Option<Setting> {
        let wall = now - self.last;
        let part = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64();
        let wait_s = part(sums.waited, self.before.waited).min(wall.as_secs_f64());
        if sums.indices == self.before.indices && 2.0 * wait_s > wall.as_secs_f64() && wall < PATIENCE * self.tick {
            return None;
        }
        self.last = now;
        let (idle, short) = (std::mem::take(&mut self.idle.2), std::mem::take(&mut self.short.2));
        let before = std::mem::replace(&mut self.before, sums);
        let pause = is_pause(longest, wall, wait_s, sums.steps.saturating_sub(before.steps));
        self.pauses = if pause { self.pauses.saturating_add(1) } else { 0 };
        let m = Measurement {
            wall_s: wall.as_secs_f64(),
            wait_s,
            elements: sums.indices.saturating_sub(before.indices) as f64,
            busy_s: part(sums.busy, before.busy),
            locked_s: part(sums.locked, before.locked),
            cpu_s: part(sums.cpu, before.cpu),
            taken_s: part(sums.taken, before.taken),
            window_full: idle > wall / 10 && part(sums.blocked, before.blocked) > 0.01 * wall.as_secs_f64(),
            short_s: short.as_secs_f64(),
            disturbed: std::mem::take(&mut self.disturbed) || (1..=PAUSES).contains(&self.pauses),
        };
        let decision = self.controller.step(&m);
        self.follow(&m);
        let decision = decision?;
        tracing::info!("tuning: {decision}");
        self.effect = (0, 0.0, 0.0);
        self.decisions.push(decision);
        Some(self.controller.setting())
    }

    /// Updates the effect of the last decision. The first second after a decision belongs to the change itself.
    fn follow(&mut self, m: &Measurement) {
        let Some(last) = self.decisions.last_mut() else { return };
        let (seconds, elements, wall_s) = &mut self.effect;
        *seconds += 1;
        if (2..2 + EFFECT).contains(seconds) && !m.disturbed {
            *elements += m.elements;
            *wall_s += m.wall_s;
            last.rate_after = Some(*elements / *wall_s).filter(|rate| *rate > 0.0);
        }
    }
}

impl Tuner {
    pub(crate) fn setting(&self) -> Setting {
        self.controller.setting()
    }

    /// Sets the maximum number of workers for which there is memory.
    pub(crate) fn allow_workers(&mut self, most: usize) {
        self.controller.allow_processes(most);
    }

    /// Marks the present measurement as unusable, because a worker is missing or starting.
    pub(crate) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// Records whether memory is short for work that could be handed out.
    pub(crate) fn look_short(&mut self, short: bool, now: Instant) {
        note(&mut self.short, short, now);
    }
}

/// Records a state from `now` on, and adds up the time for which it was true.
fn note((was, last, so_far): &mut (bool, Instant, Duration), is: bool, now: Instant) {
    if *was {
        *so_far += now - *last;
    }
    (*was, *last) = (is, now);
}

/// Returns true if the consumer did occasional work that does not belong to every element.
///
/// Evaluation stops for a while during such a pause. A burst then uses up the ready elements.
fn is_pause(longest: Duration, wall: Duration, wait_s: f64, steps: u64) -> bool {
    let usual = (wall.as_secs_f64() - wait_s).max(0.0) / steps.max(1) as f64;
    longest > wall / 10 && longest.as_secs_f64() > 4.0 * usual
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A tuner of a process with 1 to 64 threads on 8 cores, and its clock.
    struct Run {
        tuner: Tuner,
        now: Instant,
        sums: Totals,
    }

    impl Run {
        fn new() -> Self {
            let now = Instant::now();
            let bounds = Bounds { cores: 8, ..Bounds::of_threads(64, 1 << 10) };
            let tuner = Tuner::new(Setting { threads: 2, processes: 1, window: 8 }, bounds, SECOND, now);
            Self { tuner, now, sums: Totals::default() }
        }

        /// Passes `time` with `elements` elements, for the share `waits` of which the consumer waits. Threads are
        /// always busy.
        fn pass(&mut self, time: Duration, elements: u64, waits: f64) {
            let threads = self.tuner.controller.setting().threads;
            self.now += time;
            self.sums.waited += time.mul_f64(waits);
            self.sums.busy += time.mul_f64(threads as f64);
            self.sums.cpu += time / 100;
            self.sums.indices += elements;
            self.sums.steps += elements;
        }

        fn is_due(&self) -> bool {
            self.tuner.is_due(self.sums.indices, self.now)
        }

        /// Returns the threads after a step, if the setting changes. `longest` is the consumer's longest step.
        fn step(&mut self, longest: Duration) -> Option<usize> {
            Some(self.tuner.step(self.sums, longest, self.now)?.threads)
        }
    }

    #[test]
    fn it_measures_four_times_a_second_at_first_and_then_once() {
        let quarter = SECOND / 4;
        let mut run = Run::new();
        run.pass(quarter, 49, 0.0);
        assert!(!run.is_due(), "49 elements are too few");
        run.pass(Duration::ZERO, 1, 0.0);
        assert!(run.is_due());
        run.step(Duration::ZERO);
        assert!(!run.is_due(), "it has just measured");
        run.pass(quarter - Duration::from_millis(1), 500, 0.0);
        assert!(!run.is_due());
        run.pass(Duration::from_millis(1), 500, 0.0);
        assert!(run.is_due());
        // Early measurements end after 15 seconds.
        let mut run = Run::new();
        run.pass(15 * SECOND, 1000, 0.0);
        run.step(Duration::ZERO);
        run.pass(quarter, 1000, 0.0);
        assert!(!run.is_due());
        run.pass(3 * quarter, 1000, 0.0);
        assert!(run.is_due());
    }

    #[test]
    fn a_consumer_that_waits_gets_more_threads_and_the_decision_says_what_came_of_it() {
        let mut run = Run::new();
        let mut changes = Vec::new();
        for second in 1..=12 {
            let threads = run.tuner.controller.setting().threads as u64;
            run.pass(SECOND, 100 * threads, 0.9);
            changes.extend(run.step(Duration::ZERO).map(|threads| (second, threads)));
        }
        // The first second is disturbed, the second rests, and then two in a row agree.
        assert_eq!(changes[0], (4, 8), "{:?}", run.tuner.decisions);
        let first = &run.tuner.decisions[0];
        assert_eq!((first.at_s, first.rate_before, first.rate_after), (4.0, 200.0, Some(800.0)), "{first:?}");
        assert!(changes[1..].iter().all(|(_, threads)| *threads > 8), "{changes:?}");
    }

    #[test]
    fn elements_that_take_long_are_waited_for_for_20_seconds() {
        let mut run = Run::new();
        run.pass(19 * SECOND, 0, 1.0);
        assert_eq!((run.step(Duration::ZERO), run.now - run.tuner.last), (None, 19 * SECOND), "nothing is measured");
        run.pass(SECOND, 0, 1.0);
        run.step(Duration::ZERO);
        assert_eq!(run.now, run.tuner.last);
        // Other work of the consumer is no reason to extend a measurement.
        run.pass(SECOND, 0, 0.4);
        run.step(Duration::ZERO);
        assert_eq!(run.now, run.tuner.last);
    }

    #[test]
    fn pauses_decide_nothing_until_they_are_usual() {
        let mut run = Run::new();
        let mut changed = None;
        for second in 1..=20 {
            run.pass(SECOND, 200, 0.5);
            if run.step(SECOND / 2).is_some() {
                changed = changed.or(Some(second));
            }
        }
        // Twelve seconds with a pause each decide nothing; then one second rests, and two agree.
        assert_eq!(changed, Some(15), "{:?}", run.tuner.decisions);
    }

    #[test]
    fn what_is_so_for_a_while_is_added_up() {
        let mut run = Run::new();
        let ms = Duration::from_millis;
        for (is, at) in [(true, 10), (true, 30), (false, 60), (false, 90), (true, 100)] {
            run.tuner.look(is, run.now + ms(at));
        }
        assert_eq!(run.tuner.idle.2, ms(50));
        // The state remains true until the next look.
        run.tuner.look(false, run.now + ms(400));
        assert_eq!(run.tuner.idle.2, ms(350));
    }

    #[test]
    fn a_pause_is_what_is_not_usual() {
        let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
        assert!(!is_pause(ms(300), second, 0.1, 3), "a slow consumer");
        assert!(!is_pause(ms(20), second, 0.9, 100), "a fast one, which is made to wait");
        assert!(is_pause(ms(400), second, 0.1, 100));
        assert!(is_pause(ms(900), second, 0.0, 50));
        assert!(!is_pause(ms(1000), second, 0.0, 0), "nothing came, which is told otherwise");
    }
}
