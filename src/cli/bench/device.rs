//! Consumers of the batches: none, an emulated accelerator, or a device.

use std::path::PathBuf;
use std::time::Duration;

use crate::consumer::{Consumer, Emulated, EmulatedStep, Handle, Ran};
#[cfg(feature = "pjrt")]
use crate::consumer::{Pjrt, PjrtStep};
use crate::{Element, Error, Result};
use serde::Serialize;

/// Value of `--consumer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Emulated,
    /// First device of the PJRT plugin in this file.
    Pjrt(PathBuf),
}

impl Kind {
    /// Parses `emulated` or `pjrt:PATH`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            None if text == "emulated" => Ok(Self::Emulated),
            Some(("pjrt", path)) if !path.is_empty() => Ok(Self::Pjrt(path.into())),
            _ => Err("it is emulated, or pjrt: and the path of a plugin".to_owned()),
        }
    }
}

/// Recipe from which every run makes its consumer.
#[derive(Clone, Debug)]
pub(super) enum Device {
    /// Takes batches as fast as they arrive.
    None,
    Emulated(Duration),
    /// PJRT device, and the duration of its emulated step if it has one.
    #[cfg(feature = "pjrt")]
    Pjrt(crate::device::Device, Option<Duration>),
}

impl Device {
    /// Makes the device for `--consumer` and `--step-time`.
    ///
    /// # Errors
    /// For a consumer that this build lacks, an emulated accelerator without a step time, and errors of the plugin.
    pub(super) fn new(kind: Option<&Kind>, step_time: Option<Duration>) -> Result<Self> {
        match (kind, step_time) {
            (None, None) => Ok(Self::None),
            (None | Some(Kind::Emulated), Some(step_time)) => Ok(Self::Emulated(step_time)),
            (Some(Kind::Emulated), None) => {
                Err(Error::config("an emulated accelerator needs the time of a step")
                    .help("for example --step-time 5ms"))
            }
            #[cfg(feature = "pjrt")]
            (Some(Kind::Pjrt(path)), step_time) => {
                let device = crate::device::Plugin::load(path)?.client()?.device(0)?;
                Ok(Self::Pjrt(device, step_time))
            }
            #[cfg(not(feature = "pjrt"))]
            (Some(Kind::Pjrt(path)), _) => Err(Error::unsupported("this build runs no PJRT devices")
                .path(path)
                .help("build with `--features pjrt`; `--consumer emulated --step-time 5ms` works everywhere")),
        }
    }

    /// Checks the arguments of [`new`](Self::new) without opening a device.
    ///
    /// # Errors
    /// As [`new`](Self::new), except for the errors of a plugin whose file exists.
    pub(super) fn check(kind: Option<&Kind>, step_time: Option<Duration>) -> Result<()> {
        match kind {
            #[cfg(feature = "pjrt")]
            Some(Kind::Pjrt(path)) => std::fs::metadata(path).map(drop).map_err(|e| Error::io(e, path)),
            _ => Self::new(kind, step_time).map(drop),
        }
    }

    /// Returns true if batches go to a device, emulated or real.
    pub(super) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Makes a consumer for a run.
    pub(super) fn start(&self) -> Running {
        match self {
            Self::None => Running::Emulated(Emulated::new(Duration::ZERO)),
            Self::Emulated(step_time) => Running::Emulated(Emulated::new(*step_time)),
            #[cfg(feature = "pjrt")]
            Self::Pjrt(device, step_time) => {
                let device = Pjrt::new(device.clone());
                Running::Pjrt(if let Some(step_time) = step_time { device.emulate(*step_time) } else { device })
            }
        }
    }

    /// Returns the number of steps in flight while the next batch is requested.
    ///
    /// 0 as in MLPerf Storage's benchmark, 2 for a device that works asynchronously.
    pub(super) fn in_flight(&self) -> usize {
        match self {
            Self::None | Self::Emulated(_) => 0,
            #[cfg(feature = "pjrt")]
            Self::Pjrt(..) => 2,
        }
    }
}

/// Consumer during a run.
pub(super) enum Running {
    Emulated(Emulated),
    #[cfg(feature = "pjrt")]
    Pjrt(Pjrt),
}

/// Step that was submitted to a consumer.
pub(super) enum Step {
    Emulated(EmulatedStep),
    #[cfg(feature = "pjrt")]
    Pjrt(PjrtStep),
}

impl Consumer<Element> for Running {
    type Handle = Step;

    fn submit(&mut self, batch: Element) -> Result<Step> {
        match self {
            Self::Emulated(device) => device.submit(batch).map(Step::Emulated),
            #[cfg(feature = "pjrt")]
            Self::Pjrt(device) => device.submit(batch).map(Step::Pjrt),
        }
    }
}

impl Handle for Step {
    fn wait(self) -> Result<Ran> {
        match self {
            Self::Emulated(step) => step.wait(),
            #[cfg(feature = "pjrt")]
            Self::Pjrt(step) => step.wait(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_is_named() {
        assert_eq!(Kind::parse("emulated"), Ok(Kind::Emulated));
        assert_eq!(Kind::parse("pjrt:/a/b:c.so"), Ok(Kind::Pjrt("/a/b:c.so".into())));
        for bad in ["", "pjrt", "pjrt:", "emulated:", "tpu"] {
            assert!(Kind::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_emulated_one_needs_its_time() {
        let five = Some(Duration::from_millis(5));
        assert!(!Device::new(None, None).unwrap().is_some());
        for kind in [None, Some(&Kind::Emulated)] {
            assert!(matches!(Device::new(kind, five).unwrap(), Device::Emulated(time) if Some(time) == five));
        }
        let error = Device::new(Some(&Kind::Emulated), None).unwrap_err();
        assert!(error.help_text().unwrap().contains("--step-time 5ms"));
    }
}
