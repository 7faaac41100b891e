//! Keys as a plan asks for them, wherever they come from.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use super::{Key, KeyBlock, KeyRecorder, LaneFile, MarkedLanes};
use crate::error::Result;

/// Keys of the records of one source.
pub trait Keys: Send + Sync {
    /// The key of record `record`; the lengths of each element of it are put behind `lens`, in the order of the arrays that were asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where they are damaged, or there is no such record.
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key>;

    /// Takes in the key of a record that a pass has evaluated: see [`KeySource::recorder`].
    fn note(&self, record: u64, key: Key, lens: &[u32]) {
        let _ = (record, key, lens);
    }

    /// Appends the keys of `records`, in any order, to a block with a column for each array that was asked for: what [`key`](Self::key) gives for each
    /// of them. For keys that are found many at once in less time than one after the other.
    ///
    /// # Errors
    /// As [`key`](Self::key). Keys in front of the one that failed may have been appended.
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

/// Records of a source and what is done to each of them by itself: what has keys, and can make them.
pub trait Keyed: Send + Sync {
    /// The source and the stages behind it that see each element alone, first to last, as a fingerprint names them.
    fn lines(&self) -> &[String];

    /// The records of the source.
    fn records(&self) -> u64;

    /// The arrays whose lengths are asked for.
    fn names(&self) -> &[String];

    /// Whether no function of the user's is among the stages: then [`lines`](Self::lines) name all that decides what the keys are.
    fn is_native(&self) -> bool;

    /// Brings records, which are evaluated next, into memory, if their files are mapped, and as little as possible of what lies around them.
    fn bring(&self, records: &[u64]) {
        let _ = records;
    }

    /// Makes the keys of some records, by evaluating them; `take` gets each with the lengths of its elements, one element behind the other.
    ///
    /// # Errors
    /// Errors that are not of the data, such as a file that cannot be read; and elements without an array that is asked for.
    fn make(&self, records: Range<u64>, take: &mut dyn FnMut(Key, &[u32])) -> Result<()>;

    /// Makes the keys of these records, which may be in any order, as [`make`](Self::make) does. For records that are evaluated many at once in less
    /// time than one after the other.
    ///
    /// # Errors
    /// As [`make`](Self::make). Keys in front of the one that failed may have been taken.
    fn make_each(&self, records: &[u64], take: &mut dyn FnMut(Key, &[u32])) -> Result<()> {
        records.iter().try_for_each(|&record| self.make(record..record + 1, take))
    }
}

/// A place where keys are kept, or where they are made.
pub trait KeySource: Debug + Send + Sync {
    /// The keys of what is `keyed`; `None` where it has none.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) where what it has is damaged.
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>>;

    /// The index of these lanes; `None` where it has none.
    ///
    /// # Errors
    /// As [`find`](Self::find), and [`ErrorKind::State`](crate::ErrorKind::State) where it is of other lanes.
    fn find_lanes(&self, lanes: &Arc<dyn MarkedLanes>) -> Result<Option<Arc<LaneFile>>> {
        let _ = lanes;
        Ok(None)
    }

    /// The recorder that is told the keys of what a pass evaluates, where there are none yet; `None` where none are recorded.
    fn recorder(&self) -> Option<Arc<KeyRecorder>> {
        None
    }
}
