//! Counts of how often sources decode units of many records, for the report.

use crate::cx::Cx;

/// Count of how often a source has decoded units of many records: see [`RandomAccess::take_decoded`](super::RandomAccess::take_decoded).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Units that were decoded.
    pub units: u64,
    /// Records in them.
    pub records: u64,
    /// Records that were read out of units, those that were kept among them.
    pub read: u64,
}

/// Cost of random order for a source whose decoded units do not have room all together: see
/// [`Stage::if_shuffled`](crate::Stage::if_shuffled).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shuffled {
    /// Units of the source.
    pub units: u64,
    /// Records of each, on average.
    pub records: u64,
    /// About the bytes of all of them, decoded.
    pub bytes: u64,
    /// Bytes that are kept.
    pub budget: u64,
    /// About how often a unit is decoded in an epoch.
    pub times: f64,
}

const UNITS: &str = " units decoded";
const RECORDS: &str = " records decoded";
const READ: &str = " records read out of them";

impl Decoded {
    /// Adds it to the counted remarks of the report, as of sources of this name.
    #[cold]
    pub(super) fn note(self, source: &str, cx: &mut Cx) {
        for (what, count) in [(UNITS, self.units), (RECORDS, self.records), (READ, self.read)] {
            cx.note(&format!("{source}{what}"), count);
        }
    }

    /// Finds what was [noted](Self::note), by the names of sources.
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
