//! The keys of a plan: from files, computed on demand, or of a sample.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::keys::{Key, KeyFolder, KeySource, Keyed, Keys, Recompute};
use crate::sync::Locked;
use crate::{Error, Result};

/// Smallest number of records of a sample.
const LEAST: u64 = 1000;
/// Number of standard deviations of the stated error: 95 of 100 estimates are within 2.
const DEVIATIONS: f64 = 2.0;

/// Keys of a folder. Keys without a file are computed, for all records or for a sample.
#[derive(Debug, Default)]
pub(crate) struct KeysOfPlan {
    folder: Option<KeyFolder>,
    sample: Option<Share>,
    /// The sources whose keys are computed.
    made: Mutex<Vec<String>>,
    samples: Mutex<Vec<SampleOfSource>>,
}

/// Share of the records whose keys are computed, and the seed that selects them.
#[derive(Clone, Copy, Debug)]
struct Share {
    share: f64,
    seed: u64,
}

/// The sample of a source.
#[derive(Clone, Debug)]
pub(super) struct SampleOfSource {
    /// The line that names the source in a fingerprint.
    pub(super) label: String,
    records: u64,
    sampled: u64,
    /// Standard deviation of the tokens of a record, divided by their mean.
    variation: f64,
}

impl SampleOfSource {
    /// Returns the relative error of the tokens of `reads` records that 95 of 100 estimates do not exceed.
    pub(super) fn error(&self, reads: u64) -> f64 {
        let Self { records, sampled, variation, .. } = *self;
        let read = reads.min(records).max(1) as f64;
        let rest = 1.0 - sampled as f64 / records.max(1) as f64;
        // Records outside the sample have the lengths of records drawn from it.
        DEVIATIONS * variation * (rest * (1.0 / sampled.max(1) as f64 + 2.0 / read)).sqrt()
    }
}

impl KeysOfPlan {
    /// Creates a source of the keys in a folder, if the folder exists. The flag is ignored.
    pub(super) fn new(folder: Option<(PathBuf, bool)>) -> Self {
        let folder = folder.map(|(folder, _)| folder).filter(|folder| folder.is_dir()).map(KeyFolder::new);
        Self { folder, ..Self::default() }
    }

    /// Computes keys of a share of the records only, selected by `seed`. Other records get the keys of sampled records.
    pub(super) fn of_sample(self, share: f64, seed: u64) -> Self {
        Self { sample: Some(Share { share, seed }), ..self }
    }

    /// Returns the sources whose keys were computed.
    pub(super) fn made(&self) -> Vec<String> {
        self.made.locked().clone()
    }

    /// Returns the samples of all sources whose keys were sampled.
    pub(super) fn samples(&self) -> Vec<SampleOfSource> {
        self.samples.locked().clone()
    }
}

impl KeySource for KeysOfPlan {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        if let Some(folder) = &self.folder
            && let Some(keys) = folder.find(keyed)?
        {
            return Ok(Some(keys));
        }
        self.made.locked().push(keyed.lines().join(" → "));
        let Some(sample) = self.sample else { return Recompute.find(keyed) };
        let keys = Sampled::new(&**keyed, sample)?;
        self.samples.locked().extend(keys.describe(&**keyed));
        Ok(Some(Arc::new(keys)))
    }
}

/// Keys of a sample of the records.
struct Sampled {
    records: u64,
    seed: u64,
    /// The record of each stratum: a range of records with a single sampled record.
    sampled: Vec<u64>,
    keys: Vec<(Key, Range<usize>)>,
    lens: Vec<u32>,
}

impl Sampled {
    fn new(keyed: &dyn Keyed, Share { share, seed }: Share) -> Result<Self> {
        let records = keyed.records();
        let count = ((records as f64 * share).ceil() as u64).max(LEAST).min(records);
        let first = |stratum: u64| (u128::from(stratum) * u128::from(records) / u128::from(count.max(1))) as u64;
        let one = |stratum: u64| {
            let (start, end) = (first(stratum), first(stratum + 1));
            start + xxh3_64_with_seed(&stratum.to_le_bytes(), seed) % (end - start).max(1)
        };
        let sampled: Vec<u64> = (0..count).map(one).collect();
        let (mut keys, mut lens) = (Vec::with_capacity(sampled.len()), Vec::new());
        keyed.make_each(&sampled, &mut |key, own: &[u32]| {
            let start = lens.len();
            lens.extend_from_slice(own);
            keys.push((key, start..lens.len()));
        })?;
        Ok(Self { records, seed, sampled, keys, lens })
    }

    /// Returns the variation of the tokens of a record. Columns with names of their own hold lengths.
    fn describe(&self, keyed: &dyn Keyed) -> Option<SampleOfSource> {
        let columns = keyed.names().len();
        let is_length: Vec<bool> = keyed.names().iter().map(|name| !name.starts_with('\0')).collect();
        if columns == 0 {
            return None;
        }
        let tokens = |(_, own): &(Key, Range<usize>)| -> f64 {
            let rows = self.lens[own.clone()].chunks(columns);
            rows.flat_map(|row| row.iter().zip(&is_length)).filter(|(_, is)| **is).map(|(len, _)| f64::from(*len)).sum()
        };
        let all: Vec<f64> = self.keys.iter().map(tokens).collect();
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count.max(1.0);
        let variance = all.iter().map(|tokens| (tokens - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let variation = if mean > 0.0 { variance.sqrt() / mean } else { 0.0 };
        let label = keyed.lines().first().cloned().unwrap_or_default();
        Some(SampleOfSource { label, records: self.records, sampled: self.sampled.len() as u64, variation })
    }

    /// Returns the number of the sampled record that represents `record`: the record itself, if it is in the sample.
    fn number(&self, record: u64) -> usize {
        let count = self.sampled.len() as u64;
        let stratum = (u128::from(record) * u128::from(count) / u128::from(self.records.max(1))) as usize;
        let near = stratum.saturating_sub(1)..(stratum + 2).min(self.sampled.len());
        near.clone()
            .find(|at| self.sampled[*at] == record)
            .unwrap_or_else(|| (xxh3_64_with_seed(&record.to_le_bytes(), !self.seed) % count.max(1)) as usize)
    }
}

impl Keys for Sampled {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let found = self.keys.get(self.number(record));
        let (key, own) = found.ok_or_else(|| Error::state(format!("there is no record {record}")))?;
        lens.extend_from_slice(&self.lens[own.clone()]);
        Ok(*key)
    }
}

/// Reads a share: `1%` or `0.01`.
pub(super) fn share(text: &str) -> std::result::Result<f64, String> {
    let (number, factor) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    let share = number.trim().parse::<f64>().ok().map(|share| share * factor);
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "a share is above 0 and at most 100%, as in `1%` or `0.01`".to_owned())
}
