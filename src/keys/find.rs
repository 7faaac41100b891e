//! Interfaces through which a plan finds keys.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use super::{Key, KeyBlock, KeyRecorder, LaneFile, MarkedLanes};
use crate::error::Result;

/// Keys of the records of a source.
pub trait Keys: Send + Sync {
    /// Returns the key of a record, and appends its lengths to `lens`, element by element, in the order of the requested arrays.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the keys are damaged or the record does not exist.
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key>;

    /// Records the key of a record that a pass has evaluated: see [`KeySource::recorder`].
    fn note(&self, _record: u64, _key: Key, _lens: &[u32]) {}

    /// Appends the keys of `records`, in any order, to a block with one column per requested array.
    ///
    /// The result equals calls of [`key`](Self::key) for each record. Override this method if a batched lookup is faster.
    ///
    /// # Errors
    /// As [`key`](Self::key). Keys before the failed record may have been appended.
    fn gather(&self, records: &[u64], into: &mut KeyBlock) -> Result<()> {
        let mut lens = Vec::new();
        for &record in records {
            lens.clear();
            let key = self.key(record, &mut lens)?;
            into.push_of(key, &lens)?;
        }
        Ok(())
    }
}

/// Records of a source with the elementwise stages applied to them: the object that has keys, and can compute them.
pub trait Keyed: Send + Sync {
    /// Returns the fingerprint lines of the source and of the elementwise stages after it, first to last.
    fn lines(&self) -> &[String];

    /// Returns the number of records of the source.
    fn records(&self) -> u64;

    /// Returns the names of the arrays whose lengths are requested.
    fn names(&self) -> &[String];

    /// Returns true if no stage has a user function. [`lines`](Self::lines) then determine the keys completely.
    fn is_native(&self) -> bool;

    /// Loads records that are evaluated next, if their files are mapped, with as few neighbouring bytes as possible.
    fn bring(&self, _records: &[u64]) {}

    /// Evaluates `records` and passes each key to `take`, with the lengths of its elements, element by element.
    ///
    /// # Errors
    /// Errors other than bad data, such as an unreadable file, and elements that lack a requested array.
    fn make(&self, records: Range<u64>, take: &mut dyn FnMut(Key, &[u32])) -> Result<()>;

    /// Evaluates `records`, in any order, as [`make`](Self::make) does. Override this method if a batched evaluation is faster.
    ///
    /// # Errors
    /// As [`make`](Self::make). Keys before the failed record may have been passed to `take`.
    fn make_each(&self, records: &[u64], take: &mut dyn FnMut(Key, &[u32])) -> Result<()> {
        records.iter().try_for_each(|&record| self.make(record..record + 1, take))
    }
}

/// Store or generator of keys.
pub trait KeySource: Debug + Send + Sync {
    /// Returns the keys of `keyed`, or `None` if this source has none.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the stored keys are damaged.
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>>;

    /// Returns the index of these lanes, or `None` if this source has none.
    ///
    /// # Errors
    /// As [`find`](Self::find), and [`ErrorKind::State`](crate::ErrorKind::State) if the index belongs to other lanes.
    fn find_lanes(&self, _lanes: &Arc<dyn MarkedLanes>) -> Result<Option<Arc<LaneFile>>> {
        Ok(None)
    }

    /// Returns the recorder to which a pass reports missing keys, or `None` if keys are not recorded.
    fn recorder(&self) -> Option<Arc<KeyRecorder>> {
        None
    }
}
