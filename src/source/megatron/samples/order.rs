//! The order of the samples of one data set: its sequences in shuffled order, cut into samples, which are shuffled.

use super::cached::Numbers;
use crate::error::{Error, Result};
use crate::rng::Mt19937;
use crate::units::Bytes;

/// Part of an epoch's samples below which the last epoch is shuffled separately.
const SEPARATE_BELOW: f64 = 0.8;
/// Maximum number of samples, and of sequences in all epochs.
const MOST: u64 = u32::MAX as u64 - 2;

/// Numbers of a data set that determine its order, and are known without the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Number of the first sequence, and of sequences in an epoch.
    pub(super) first: u32,
    pub(super) sequences: u32,
    pub(super) epochs: u32,
    /// Minimum number of samples, if given.
    pub(super) wanted: Option<u64>,
    /// Number of samples in all epochs.
    pub(super) samples: u64,
    /// Number of samples before the last epoch, if the last epoch is shuffled separately.
    separate_at: Option<u64>,
    pub(super) seq_len: u64,
    pub(super) seed: u32,
}

/// The length of a sequence: an `i32`, as stored.
pub(super) type Length = [u8; 4];

fn length(stored: Length) -> u64 {
    u32::from_le_bytes(stored).into()
}

/// Returns the number of ids in sequences of these lengths.
///
/// # Errors
/// If a length is negative.
pub(super) fn ids_of(lengths: &[Length]) -> Result<u64> {
    match lengths.iter().position(|&stored| i32::from_le_bytes(stored) < 0) {
        Some(at) => Err(Error::data(format!("sequence {at} has the length {}", i32::from_le_bytes(lengths[at])))),
        None => Ok(lengths.iter().map(|&stored| length(stored)).sum()),
    }
}

impl Plan {
    /// Plans the order of at least `wanted` samples, or of the samples of one epoch, of sequences with `ids` ids.
    /// `next` is 1 if samples extend to the first id of the next sample.
    pub(super) fn new(
        sequences: std::ops::Range<u32>,
        ids: u64,
        (seq_len, next): (u64, u64),
        seed: u32,
        wanted: Option<u64>,
    ) -> Result<Self> {
        let (first, sequences) = (sequences.start, sequences.end - sequences.start);
        let too_many = || Error::unsupported("the data set has more than 2^32 samples, or sequences in all epochs");
        if ids == 0 {
            return Err(Error::data("the sequences have no ids"));
        }
        let wanted_ids = wanted.map_or(Some(0), |wanted| wanted.checked_mul(seq_len)?.checked_add(next));
        let epochs = wanted_ids.ok_or_else(too_many)?.div_ceil(ids).max(1);
        let samples_of = |epochs: u64| Some((epochs.checked_mul(ids)? - next) / seq_len);
        let samples = samples_of(epochs).filter(|&samples| samples <= MOST).ok_or_else(too_many)?;
        epochs.checked_mul(sequences.into()).filter(|&places| places <= MOST).ok_or_else(too_many)?;
        let before_last = if epochs == 1 { None } else { samples_of(epochs - 1) };
        let separate_at = before_last.filter(|&before| {
            let threshold = SEPARATE_BELOW * ((ids - next) / seq_len) as f64;
            wanted.unwrap_or(0).saturating_sub(before) < threshold as u64
        });
        Ok(Self { first, sequences, epochs: epochs as u32, wanted, samples, separate_at, seq_len, seed })
    }

    /// Returns the number of sequences in all epochs.
    pub(super) fn places(&self) -> u64 {
        u64::from(self.epochs) * u64::from(self.sequences)
    }

    /// Returns the memory of the order in bytes.
    pub(super) fn memory(&self) -> u64 {
        4 * self.places() + 12 * self.samples
    }

    /// Returns true for sequences that are part of the order.
    pub(super) fn has(&self, sequence: u32) -> bool {
        sequence.checked_sub(self.first).is_some_and(|number| number < self.sequences)
    }
}

/// The order of the samples of a data set.
///
/// # Source
/// `GPTDataset._build_document_sample_shuffle_indices` of Megatron-Core 0.16.1. The lists are Megatron's document,
/// sample and shuffle index.
#[derive(Debug)]
pub(super) struct Order {
    /// Sequences of all epochs.
    pub(super) sequences: Numbers,
    /// Two numbers for the start of each sample: a place in `sequences`, and a number of ids of that sequence.
    pub(super) starts: Numbers,
    pub(super) samples: Numbers,
}

impl Order {
    /// Computes the order. `lengths` are those of all sequences of the data set.
    ///
    /// # Cost
    /// In proportion to the sequences of all epochs, 20 to 40 ns each, and to the samples.
    pub(super) fn new(plan: &Plan, lengths: &[Length]) -> Self {
        let mut rng = Mt19937::from_seed(plan.seed);
        let epoch = plan.first..plan.first + plan.sequences;
        let mut sequences: Vec<u32> = (0..plan.epochs).flat_map(|_| epoch.clone()).collect();
        let together = match plan.separate_at {
            Some(_) => sequences.len() - plan.sequences as usize,
            None => sequences.len(),
        };
        let (first, last) = sequences.split_at_mut(together);
        rng.shuffle(first);
        rng.shuffle(last);
        let starts = starts(plan, &sequences, lengths);
        let mut samples: Vec<u32> = (0..plan.samples as u32).collect();
        let (first, last) = samples.split_at_mut(plan.separate_at.unwrap_or(plan.samples) as usize);
        rng.shuffle(first);
        rng.shuffle(last);
        Self { sequences: sequences.into(), starts: starts.into_flattened().into(), samples: samples.into() }
    }

    /// Returns the sequences from the start of a sample on, and the number of ids to skip in the first.
    pub(super) fn after_start_of(&self, sample: u64) -> Option<(impl Iterator<Item = u32>, u64)> {
        let number = self.samples.get(usize::try_from(sample).ok()?)? as usize;
        let start = number.checked_mul(2)?;
        let (place, skipped) = (self.starts.get(start)?, self.starts.get(start + 1)?);
        Some(((place as usize..).map_while(|place| self.sequences.get(place)), skipped.into()))
    }
}

/// Checks that orders of `needed` bytes fit the `available` memory.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if they do not fit.
pub(super) fn check_memory(needed: u64, available: Option<u64>) -> Result<()> {
    match available {
        Some(available) if needed > available => {
            let text = format!("the order of the samples needs {}, and {} are free", Bytes(needed), Bytes(available));
            Err(Error::unsupported(text)
                .help("read fewer samples, or set `cache` to the folder in which Megatron-Core keeps the order"))
        }
        _ => Ok(()),
    }
}

/// Returns the start of each sample. Sample `i` starts at id `i * seq_len` of all sequences in their order.
fn starts(plan: &Plan, sequences: &[u32], lengths: &[Length]) -> Vec<[u32; 2]> {
    let mut starts = Vec::with_capacity(plan.samples as usize);
    let (mut start, mut before) = (0, 0);
    for (place, &sequence) in sequences.iter().enumerate() {
        let end = before + length(lengths[sequence as usize]);
        while start < end && starts.len() < plan.samples as usize {
            starts.push([place as u32, (start - before) as u32]);
            start += plan.seq_len;
        }
        before = end;
    }
    starts
}
