//! Collection of the keys that a pipeline requests.

use std::sync::{Arc, Mutex};

use super::find::{KeySource, Keyed, Keys};
use super::{Key, LaneFile, MarkedLanes, lanes};
use crate::error::{Error, Result};
use crate::sync::Locked;

/// Key source without keys, which collects the requests.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Arc<Mutex<Vec<Arc<dyn Keyed>>>>, Arc<Mutex<Vec<Arc<dyn MarkedLanes>>>>);

impl Wanted {
    /// Returns the requested keys, without duplicates.
    pub(crate) fn take(&self) -> Vec<Arc<dyn Keyed>> {
        let mut all = std::mem::take(&mut *self.0.locked());
        let mut seen = std::collections::HashSet::new();
        all.retain(|keyed| seen.insert((keyed.lines().to_vec(), keyed.names().to_vec())));
        all
    }

    /// Returns the lanes whose indices were requested, without duplicates.
    pub(crate) fn take_lanes(&self) -> Vec<Arc<dyn MarkedLanes>> {
        let mut all = std::mem::take(&mut *self.1.locked());
        let mut seen = std::collections::HashSet::new();
        all.retain(|lanes| seen.insert(lanes.head().fingerprint.clone()));
        all
    }
}

debug_as!(Wanted, |self, f| f.write_str("Wanted"));

impl KeySource for Wanted {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        self.0.locked().push(keyed.clone());
        Ok(Some(Arc::new(NoKeys)))
    }

    fn find_lanes(&self, wanted: &Arc<dyn MarkedLanes>) -> Result<Option<Arc<LaneFile>>> {
        self.1.locked().push(wanted.clone());
        Ok(Some(lanes::nothing(&**wanted)))
    }
}

/// Placeholder without any keys.
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, record: u64, _: &mut Vec<u32>) -> Result<Key> {
        Err(Error::state(format!("record {record} has no key yet")))
    }
}
