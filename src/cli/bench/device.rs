//! What takes the batches: nothing that needs time, an emulated accelerator, or a device.

use std::path::PathBuf;
use std::time::Duration;

use crate::consumer::Emulated;
use crate::{Error, Result};
use serde::Serialize;

/// The value of `--consumer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Emulated,
    /// A device of the plugin in this file.
    Pjrt(PathBuf),
}

impl Kind {
    /// `emulated` or `pjrt:PATH`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        match text.split_once(':') {
            None if text == "emulated" => Ok(Self::Emulated),
            Some(("pjrt", path)) if !path.is_empty() => Ok(Self::Pjrt(path.into())),
            _ => Err("it is emulated, or pjrt: and the path of a plugin".to_owned()),
        }
    }
}

/// The step time of the accelerator that was asked for, if one was.
///
/// # Errors
/// For a consumer that this build does not have, and an emulated one without its time.
pub(super) fn step_time(consumer: Option<&Kind>, step_time: Option<Duration>) -> Result<Option<Duration>> {
    match consumer {
        None => Ok(step_time),
        Some(Kind::Emulated) => {
            let missing = || Error::config("an emulated accelerator needs to know how long a step takes");
            step_time.map(Some).ok_or_else(|| missing().help("for example --step-time 5ms"))
        }
        Some(Kind::Pjrt(path)) => Err(Error::unsupported("this build runs no PJRT devices")
            .path(path)
            .help("build with `--features pjrt`; `--consumer emulated --step-time 5ms` works everywhere")),
    }
}

/// A new accelerator for a run; without a step time it takes batches as fast as they come.
pub(super) fn start(step_time: Option<Duration>) -> Emulated {
    Emulated::new(step_time.unwrap_or_default())
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
        assert_eq!(step_time(None, None).unwrap(), None);
        assert_eq!(step_time(None, five).unwrap(), five);
        assert_eq!(step_time(Some(&Kind::Emulated), five).unwrap(), five);
        let error = step_time(Some(&Kind::Emulated), None).unwrap_err();
        assert!(error.help_text().unwrap().contains("--step-time 5ms"));
    }
}
