//! Batches of sequences of similar length.

use std::collections::VecDeque;

use super::held::{Held, HeldState};
use crate::error::{Error, Result};

/// Number of sequences in a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// The number of sequences, for all buckets.
    Fixed(usize),
    /// The number of sequences for each bucket.
    PerBucket(Vec<usize>),
    /// The budget in cells, padding included, but at least one sequence. All batches take about equal work.
    Tokens(usize),
}

/// Options of a [`BucketPlanner`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketOptions {
    /// Length of the longest sequence of each bucket, ascending.
    pub boundaries: Vec<usize>,
    /// Number of sequences in a batch.
    pub batch: BatchSize,
    /// Number of sequences to look ahead. The bucket of the oldest is yielded short if the window is full.
    pub window: usize,
}

impl BucketOptions {
    /// Returns the number of sequences in a full batch of each bucket.
    pub(super) fn sizes(&self) -> Result<Vec<usize>> {
        let Self { boundaries, batch, window } = self;
        if boundaries.is_empty() || boundaries[0] == 0 || boundaries.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Error::config(format!("bucket boundaries must ascend from 1 on, got {boundaries:?}")));
        }
        if *window == 0 || *window > 1 << 24 {
            return Err(Error::config(format!("a window of {window} sequences is not in 1..={}", 1 << 24)));
        }
        let sizes = match batch {
            BatchSize::Fixed(size) => vec![*size; boundaries.len()],
            BatchSize::PerBucket(sizes) => sizes.clone(),
            BatchSize::Tokens(0) => return Err(Error::config("the batch size is 0 tokens")),
            BatchSize::Tokens(tokens) => boundaries.iter().map(|boundary| (tokens / boundary).max(1)).collect(),
        };
        if sizes.len() != boundaries.len() || sizes.contains(&0) {
            let buckets = boundaries.len();
            return Err(Error::config(format!("{buckets} buckets need a batch size above 0 each, got {sizes:?}")));
        }
        Ok(sizes)
    }

    /// Returns the maximum number of waiting sequences, at most `window`.
    ///
    /// The maximum is reached when every bucket lacks one sequence and one more arrives.
    /// # Errors
    /// As [`BucketPlanner::new`].
    pub fn most_held(&self) -> Result<usize> {
        let waiting = self.sizes()?.iter().fold(1usize, |sum, size| sum.saturating_add(size - 1));
        Ok(waiting.min(self.window))
    }
}

/// Planner that sorts sequences into buckets by length. A full bucket is a batch.
///
/// Sequences are numbered as they are pushed. A batch is a list of these ordinals, oldest first.
/// The plan is a function of the lengths alone. As with a [`WindowPacker`](super::WindowPacker), the state contains
/// the oldest held ordinal, and a bitmap of the later ordinals that were already yielded.
///
/// # Cost
/// `O(log buckets)` per sequence.
/// # Source
/// Bucketing by sequence length as in `tf.data`, with a bound on the wait of each sequence.
#[derive(Debug)]
pub struct BucketPlanner {
    boundaries: Vec<usize>,
    sizes: Vec<usize>,
    /// Held ordinals of each bucket.
    queues: Vec<VecDeque<u64>>,
    /// Bucket of each slot of the window.
    bucket_of: Vec<usize>,
    held: Held,
    window: usize,
    /// Bucket of the last pushed sequence.
    last: usize,
    batch: Vec<u64>,
}

/// Batch of a [`BucketPlanner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket<'a> {
    /// Number of the bucket. Its boundary is the length to pad to.
    pub bucket: usize,
    /// Ordinals of the sequences, oldest first.
    pub ordinals: &'a [u64],
    /// Number of sequences in a full batch.
    pub full: usize,
}

impl BucketPlanner {
    /// Creates a planner with empty buckets.
    ///
    /// # Errors
    /// `Config` if the boundaries do not ascend from 1 on, or a batch or the window is 0.
    /// `Config` if the number of batch sizes differs from the number of buckets, or the window is above 2^24.
    pub fn new(options: &BucketOptions) -> Result<Self> {
        let sizes = options.sizes()?;
        let BucketOptions { boundaries, window, .. } = options;
        let held = Held::new(*window);
        Ok(Self {
            queues: vec![VecDeque::new(); sizes.len()],
            sizes,
            boundaries: boundaries.clone(),
            bucket_of: vec![0; held.slots()],
            held,
            window: *window,
            last: 0,
            batch: Vec::new(),
        })
    }
    /// Returns the longest length that the last bucket accepts.
    pub fn longest(&self) -> usize {
        self.boundaries[self.boundaries.len() - 1]
    }

    /// Returns true if a batch must be taken before the next push.
    pub fn is_ready(&self) -> bool {
        self.held.is_full() || self.queues[self.last].len() >= self.sizes[self.last]
    }

    /// Adds the next sequence and returns its ordinal; `None` if a restored state has already yielded the sequence.
    ///
    /// # Errors
    /// `Data` if the sequence is longer than the last boundary. `Config` if a batch must be taken first.
    pub fn push(&mut self, len: usize) -> Result<Option<u64>> {
        let bucket = self.boundaries.partition_point(|&boundary| boundary < len);
        if bucket == self.boundaries.len() {
            let longest = self.longest();
            return Err(Error::data(format!("a sequence has {len} cells, but the last bucket takes {longest}")));
        }
        if self.is_ready() {
            return Err(Error::config("a batch must be taken first"));
        }
        let slot = self.held.next_slot();
        let ordinal = self.held.push();
        if let Some(ordinal) = ordinal {
            self.bucket_of[slot] = bucket;
            self.queues[bucket].push_back(ordinal);
            self.last = bucket;
        }
        Ok(ordinal)
    }

    /// Returns the next batch: the full bucket, if there is one.
    ///
    /// Otherwise returns the bucket of the oldest sequence if the window is full or `ended` is true, else `None`.
    pub fn next_batch(&mut self, ended: bool) -> Option<Bucket<'_>> {
        let full = self.queues[self.last].len() >= self.sizes[self.last];
        let bucket = match full {
            true => self.last,
            false if self.held.is_empty() || !(ended || self.held.is_full()) => return None,
            false => self.bucket_of[self.held.oldest_slot()],
        };
        self.batch.clear();
        self.batch.extend(self.queues[bucket].drain(..));
        for &ordinal in &self.batch {
            self.held.take(self.held.slot(ordinal));
        }
        self.held.advance();
        Some(Bucket { bucket, ordinals: &self.batch, full: self.sizes[bucket] })
    }

    /// Returns the ordinal of the oldest sequence that was not yielded. Earlier sequences can be dropped.
    pub fn oldest(&self) -> u64 {
        self.held.oldest()
    }

    /// Returns the position for a later restore.
    pub fn state(&self) -> HeldState {
        self.held.state()
    }

    /// Restores `state`. The caller pushes the sequences from its oldest ordinal on again.
    ///
    /// # Errors
    /// `State` if the state does not fit a window of this size.
    pub fn restore(&mut self, state: &HeldState) -> Result<()> {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.last = 0;
        self.held = Held::new(self.window);
        self.held.restore(state)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn options(batch: BatchSize, window: usize) -> BucketOptions {
        BucketOptions { boundaries: vec![4, 8, 16], batch, window }
    }

    fn batches(options: &BucketOptions, lens: &[usize], mut resume: impl FnMut() -> bool) -> Vec<(usize, Vec<u64>)> {
        let mut planner = BucketPlanner::new(options).unwrap();
        let (mut out, mut at) = (Vec::new(), 0);
        loop {
            while at < lens.len() && !planner.is_ready() {
                planner.push(lens[at]).unwrap();
                at += 1;
            }
            let Some(batch) = planner.next_batch(at == lens.len()) else { return out };
            out.push((batch.bucket, batch.ordinals.to_vec()));
            if resume() {
                let state = planner.state();
                planner = BucketPlanner::new(options).unwrap();
                planner.restore(&state).unwrap();
                assert_eq!(planner.state(), state);
                at = state.oldest as usize;
            }
        }
    }

    #[test]
    fn a_full_bucket_comes_out_and_the_rest_at_the_end() {
        let lens = [1, 9, 5, 4, 16, 8];
        let of = |batch, window| batches(&options(batch, window), &lens, || false);
        let two = [(0, vec![0, 3]), (2, vec![1, 4]), (1, vec![2, 5])];
        assert_eq!(of(BatchSize::Fixed(2), 100), two);
        let by_tokens = [(2, vec![1]), (2, vec![4]), (1, vec![2, 5]), (0, vec![0, 3])];
        assert_eq!(of(BatchSize::Tokens(16), 100), by_tokens);
        // Sequences 0 and 2 cannot wait for a third sequence of their bucket.
        let options = options(BatchSize::PerBucket(vec![2, 2, 2]), 3);
        let short = [(0, vec![0]), (2, vec![1, 3]), (1, vec![2]), (0, vec![4]), (1, vec![5])];
        assert_eq!(batches(&options, &[1, 9, 5, 16, 4, 8], || false), short);
    }

    proptest! {
        #[test]
        fn every_sequence_comes_out_once_in_its_bucket_and_in_time(
            window in 1usize..40,
            size in 1usize..6,
            lens in prop::collection::vec(0usize..17, 0..120),
            resume in prop::collection::vec(any::<bool>(), 1..20),
        ) {
            let options = options(BatchSize::Fixed(size), window);
            let straight = batches(&options, &lens, || false);
            let mut all = Vec::new();
            for (bucket, ordinals) in &straight {
                let last = ordinals[ordinals.len() - 1];
                prop_assert!(ordinals.len() <= size && last - ordinals[0] < window as u64);
                for &ordinal in ordinals {
                    let len = lens[ordinal as usize];
                    prop_assert!(len <= options.boundaries[*bucket] && (*bucket == 0 || len > options.boundaries[bucket - 1]));
                    all.push(ordinal);
                }
            }
            all.sort();
            prop_assert_eq!(all, (0..lens.len() as u64).collect::<Vec<_>>());
            let mut resume = resume.into_iter().cycle();
            prop_assert_eq!(batches(&options, &lens, || resume.next().unwrap()), straight);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |boundaries: &[usize], batch| {
            let options = BucketOptions { boundaries: boundaries.to_vec(), batch, window: 4 };
            BucketPlanner::new(&options).unwrap_err().message().to_owned()
        };
        assert!(refused(&[], BatchSize::Fixed(1)).contains("ascend"));
        assert!(refused(&[4, 4], BatchSize::Fixed(1)).contains("ascend"));
        assert!(refused(&[0, 4], BatchSize::Fixed(1)).contains("ascend"));
        assert!(refused(&[4], BatchSize::Fixed(0)).contains("a batch size above 0 each"));
        assert!(refused(&[4], BatchSize::PerBucket(vec![1, 2])).contains("a batch size above 0 each"));
        assert!(refused(&[4], BatchSize::Tokens(0)).contains("0 tokens"));
        let mut planner = BucketPlanner::new(&options(BatchSize::Fixed(1), 4)).unwrap();
        assert!(planner.push(17).unwrap_err().message().contains("17 cells, but the last bucket takes 16"));
        planner.push(3).unwrap();
        assert!(planner.push(3).is_err());
    }
}
