//! Tuning of a running pipeline: the number of threads and processes that evaluate elements, and the size of the
//! window.
//!
//! Tuning never changes an element. The [`Controller`] is a pure function of measurements. The runner of the pipeline
//! measures, calls the controller once a second, and applies its decision. Every decision appears in the report, with
//! its reason and its effect.

mod controller;
#[cfg(test)]
mod elsewhere;
mod fewer;
mod hold_off;
mod measurement;
mod online;
#[cfg(test)]
mod scenes;
mod seconds;
mod setting;
#[cfg(test)]
mod simulation;
mod trial;
#[cfg(test)]
mod waiting;
#[cfg(test)]
pub(crate) mod world;

use serde::{Deserialize, Serialize};

pub use controller::Controller;
pub use measurement::Measurement;
pub(crate) use online::{Totals, Tuner};
pub(crate) use setting::MANY_THREADS;
pub use setting::{Bounds, Setting};

/// Tunable part of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Knob {
    /// Threads that evaluate elements, in all workers together.
    Threads,
    /// Ranges of elements in progress or ready.
    Window,
    /// Worker processes.
    Processes,
}

impl Knob {
    fn of(self, setting: Setting) -> usize {
        match self {
            Self::Threads => setting.threads,
            Self::Window => setting.window,
            Self::Processes => setting.processes,
        }
    }

    /// Returns `setting` with `count` of this knob. Processes keep their number of threads each.
    fn scaled(self, setting: Setting, count: usize, bounds: Bounds) -> Setting {
        let Setting { threads, processes, .. } = setting;
        match self {
            Self::Threads => Setting { threads: bounds.spread(count, processes), ..setting },
            Self::Window => Setting { window: count, ..setting },
            Self::Processes => {
                Setting { threads: bounds.spread(threads * count / processes, count), processes: count, ..setting }
            }
        }
    }
}

display_as!(Knob, |self, f| {
    f.write_str(match self {
        Self::Threads => "threads",
        Self::Window => "window",
        Self::Processes => "processes",
    })
});

/// A change made by the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Seconds since the run began, as measured.
    pub at_s: f64,
    /// Knob that changes.
    pub knob: Knob,
    /// Value of the knob before the change.
    pub from: usize,
    /// Value of the knob after the change.
    pub to: usize,
    /// Reason for the change, as text.
    pub reason: String,
    /// Elements per second before the change. The effect shows in the rate of the next decision, or of the end.
    pub rate_before: f64,
    /// Elements per second after the change has had time to work; `None` until then.
    pub rate_after: Option<f64>,
}

display_as!(Decision, |self, f| {
    write!(f, "{:.0} s: {} {} → {}: {}", self.at_s, self.knob, self.from, self.to, self.reason)?;
    match self.rate_after {
        Some(after) if self.rate_before > 0.0 => {
            write!(f, " ({:+.0} % elements/s)", (after / self.rate_before - 1.0) * 100.0)
        }
        _ => Ok(()),
    }
});
