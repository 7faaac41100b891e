//! Times in JSON, as numbers of nanoseconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    (time.as_nanos() as u64).serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_nanos)
}

/// Serialization of an optional pair of times.
pub(super) mod two {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        times: &Option<(Duration, Duration)>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        times.map(|(from, done)| (from.as_nanos() as u64, done.as_nanos() as u64)).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<(Duration, Duration)>, D::Error> {
        let times = Option::<(u64, u64)>::deserialize(from)?;
        Ok(times.map(|(from, done)| (Duration::from_nanos(from), Duration::from_nanos(done))))
    }
}

/// Serialization of waits by the names of their causes. Zero waits are left out.
pub(super) mod by_cause {
    use std::collections::BTreeMap;

    use super::{Deserialize, Deserializer, Duration, Serializer};
    use crate::cx::Cause;
    use crate::cx::waits::Shares;

    pub(in super::super) fn serialize<S: Serializer>(shares: &Shares, to: S) -> Result<S::Ok, S::Error> {
        let some = shares.iter().filter(|(_, time)| !time.is_zero());
        to.collect_map(some.map(|(cause, time)| (cause, time.as_nanos() as u64)))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Shares, D::Error> {
        let mut shares = Shares::default();
        let causes = BTreeMap::<String, u64>::deserialize(from)?;
        for (name, ns) in causes {
            let known = Cause::ALL.into_iter().find(|cause| cause.name() == name);
            let cause = known.ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no cause of a wait")))?;
            shares.add(Shares::of(cause, Duration::from_nanos(ns)));
        }
        Ok(shares)
    }
}
