//! Counts of decoded units of sources, for the report.

use crate::cx::Cx;

/// Counts of the units of many records, such as row groups, that a source decoded: see
/// [`RandomAccess::take_decoded`](super::RandomAccess::take_decoded).
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Decoded units.
    pub units: u64,
    /// Records in the decoded units.
    pub records: u64,
    /// Records that were read from units, including units that were already decoded.
    pub read: u64,
}

/// Cost of random order for a source whose decoded units do not all fit in its cache: see
/// [`Records::if_shuffled`](crate::dataset::Records::if_shuffled).
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shuffled {
    /// Number of units in the source.
    pub units: u64,
    /// Mean number of records per unit.
    pub records: u64,
    /// Approximate size in bytes of all units, decoded.
    pub bytes: u64,
    /// Size of the cache in bytes.
    pub budget: u64,
    /// Approximate number of times that a unit is decoded per epoch.
    pub times: f64,
}

const UNITS: &str = " units decoded";
const RECORDS: &str = " records decoded";
const READ: &str = " records read out of them";

impl Decoded {
    /// Adds the counts to the remarks of the report, under the name of the source.
    #[cold]
    pub(super) fn note(self, source: &str, cx: &mut Cx) {
        for (what, count) in [(UNITS, self.units), (RECORDS, self.records), (READ, self.read)] {
            cx.note(&format!("{source}{what}"), count);
        }
    }

    /// Returns the counts in [noted](Self::note) remarks, with the names of their sources.
    pub(crate) fn noted(notes: &[(String, u64)]) -> impl Iterator<Item = (&str, Self)> {
        notes.iter().filter_map(|(what, units)| {
            let source = what.strip_suffix(UNITS)?;
            let find = |what: &str| {
                let is_it = |name: &str| name.strip_prefix(source) == Some(what);
                notes.iter().find(|(name, _)| is_it(name)).map_or(0, |(_, count)| *count)
            };
            Some((source, Self { units: *units, records: find(RECORDS), read: find(READ) }))
        })
    }
}
