//! Criterion measurements in CPU time of the calling thread, which other processes do not affect.

use std::time::{Duration, Instant};

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};

/// CPU time from `/proc/thread-self/schedstat`, whose first word is nanoseconds; wall time on other systems.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime;

fn on_core() -> Option<Duration> {
    // The kernel updates the value when the thread yields, otherwise only at a scheduler tick.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    stat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

impl Measurement for CpuTime {
    type Intermediate = (Option<Duration>, Instant);
    type Value = Duration;

    fn start(&self) -> Self::Intermediate {
        (on_core(), Instant::now())
    }

    fn end(&self, (core, wall): Self::Intermediate) -> Duration {
        match (core, on_core()) {
            (Some(start), Some(end)) => end - start,
            _ => wall.elapsed(),
        }
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        // The units equal those of wall time; only the clock differs.
        &Nanoseconds
    }
}

struct Nanoseconds;

impl ValueFormatter for Nanoseconds {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        WallTime.formatter().scale_values(typical, values)
    }

    fn scale_throughputs(&self, typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        WallTime.formatter().scale_throughputs(typical, throughput, values)
    }

    fn scale_for_machines(&self, values: &mut [f64]) -> &'static str {
        WallTime.formatter().scale_for_machines(values)
    }
}
