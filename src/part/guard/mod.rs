//! Detection of hosts that disagree, by a comparison of statements about their batches.
//!
//! All hosts run the same pipeline and take rows of the same stream of global batches. A different file, a different pipeline, or a
//! function with unseeded randomness gives a host another stream. Its rows then do not belong to the others' batches. A [`Guard`]
//! takes in each batch. An [`Exchange`] sends a [`Statement`] of these batches to the other hosts, with the stages and sources of the
//! pipeline. [`compare`] returns an error, equal on all hosts, if statements differ. A loader does all of this with
//! [`LoaderBuilder::guard`](crate::LoaderBuilder::guard).
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::part::{InMemory, Part};
//! use gristmill::prelude::*;
//!
//! let hosts = InMemory::new();
//! let host = |index, len| {
//!     let exchange = hosts.clone();
//!     std::thread::spawn(move || {
//!         let batches = Range::new(0, len).to_iter().batch(8);
//!         batches.loader().part(Part::of(index, 2)).guard(exchange).build()?.next().transpose().map(drop)
//!     })
//! };
//! let errors = [host(0, 64), host(1, 72)].map(|host| host.join().unwrap().unwrap_err().to_string());
//! assert_eq!(errors[0], errors[1]);
//! assert!(errors[0].contains("`range(0, 64, 1)` on host 0 and `range(0, 72, 1)` on host 1"));
//! ```

mod compare;
mod exchange;
mod folder;
mod sample;
mod statement;
mod words;

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_128;

pub use compare::compare;
pub(crate) use compare::{last_words, meeting, wants_details};
pub use exchange::{Exchange, InMemory};
pub use folder::SharedFolder;
pub use sample::DigestBatch;
use sample::digest_of;
pub use statement::Statement;
pub(crate) use words::silent;

use statement::{Kind, Mark, Trail};

/// Number of batches between two statements. The comparison lags by a round, so a difference is found within twice this number.
pub const EVERY: u64 = 128;

/// Number of batches whose marks are kept: the batches in which a newly found difference can be.
const KEPT: usize = 2 * EVERY as usize;

/// Aspect of a global batch that must be equal on all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// Number of rows of a batch that is identified by indices alone: hosts have evaluated only their own rows.
    Index(usize),
    /// [Digest](DigestBatch) of the content of a batch whose rows have all been evaluated on each host.
    Content(u128),
    /// Digest of the plan of a batch that was planned from keys.
    Plan(u128),
}

impl Fed {
    /// Returns the content digest of a batch whose rows have all been evaluated.
    pub fn content(batch: &impl DigestBatch) -> Self {
        Self::Content(digest_of(batch))
    }

    fn split(self) -> (Kind, u128) {
        match self {
            Self::Index(rows) => (Kind::Index, xxh3_128(&(rows as u64).to_le_bytes())),
            Self::Content(digest) => (Kind::Content, digest),
            Self::Plan(digest) => (Kind::Plan, digest),
        }
    }
}

/// Running digest of the batches of a host. The marks of the last batches locate the first batch that differs.
///
/// The digest is a chain of XXH3 (128 bit) over the previous digest, the batch number and the [fed](Fed) aspect.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Number of the first batch that was taken in.
    from: u64,
    /// Marks of the last batches, each with the digest after it.
    kept: VecDeque<(Mark, u128)>,
    /// Number of the first kept batch, and the digest before it.
    first: u64,
    before: u128,
}

impl Guard {
    /// Creates a guard whose first batch has this number.
    pub fn new(from: u64) -> Self {
        Self { from, kept: VecDeque::new(), first: from, before: 0 }
    }

    /// Takes in batch `number`. Normally this is the next batch; an earlier batch replaces later batches, which were given back.
    pub fn feed(&mut self, number: u64, what: Fed) {
        match number.checked_sub(self.first) {
            Some(place) if place <= self.kept.len() as u64 => self.kept.truncate(place as usize),
            _ => *self = Self::new(number),
        }
        let (kind, digest) = what.split();
        let running = chain(self.digest(), number, digest);
        if self.kept.len() == KEPT
            && let Some((_, behind)) = self.kept.pop_front()
        {
            (self.first, self.before) = (self.first + 1, behind);
        }
        self.kept.push_back((Mark::new(kind, digest), running));
    }

    /// Returns the number of the next batch.
    pub fn batches(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Returns the digest of all batches so far.
    pub fn digest(&self) -> u128 {
        self.kept.back().map_or(self.before, |&(_, running)| running)
    }

    /// Returns the marks of the last batches.
    fn trail(&self) -> Trail {
        Trail { first: self.first, marks: self.kept.iter().map(|&(mark, _)| mark).collect() }
    }
}

fn chain(before: u128, number: u64, digest: u128) -> u128 {
    let mut bytes = [0; 40];
    bytes[..16].copy_from_slice(&before.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    bytes[24..].copy_from_slice(&digest.to_le_bytes());
    xxh3_128(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(batches: impl IntoIterator<Item = u64>) -> Guard {
        let mut guard = Guard::new(0);
        batches.into_iter().for_each(|number| guard.feed(number, Fed::Content(u128::from(number) << 64)));
        guard
    }

    #[test]
    fn batches_that_were_given_back_count_once() {
        let straight = fed(0..1000);
        assert_eq!((straight.batches(), straight.kept.len()), (1000, KEPT));
        let back = fed((0..500).chain(498..500).chain(499..1000));
        assert_eq!((back.digest(), back.trail()), (straight.digest(), straight.trail()));
        assert_ne!(fed(0..999).digest(), straight.digest());
        let mut other = fed(0..300);
        other.feed(300, Fed::Content(1));
        (301..1000).for_each(|number| other.feed(number, Fed::Content(u128::from(number) << 64)));
        assert_ne!(other.digest(), straight.digest());
        assert_eq!(other.trail(), straight.trail(), "the marks of the last batches are those");
    }

    #[test]
    fn what_is_fed_is_told_apart() {
        let digest = |what| {
            let mut guard = Guard::new(3);
            guard.feed(3, what);
            (guard.digest(), guard.trail())
        };
        assert_eq!(digest(Fed::Index(8)), digest(Fed::Index(8)));
        assert_ne!(digest(Fed::Index(8)).0, digest(Fed::Index(9)).0);
        assert_ne!(digest(Fed::Plan(8)).1, digest(Fed::Content(8)).1);
    }
}
