//! Orders that Megatron-Core has written to files.

use std::path::Path;

use serde::Deserialize;

use super::MegatronSplit;
use super::blend::normalised;
use super::order::{Order, Plan};
use crate::element::{Array, DType};
use crate::error::{Error, Result};
use crate::mmap::Access;
use crate::place::Location;
use crate::source::content::Content;
use crate::source::npy;

/// A list of an order: computed, or in a file.
#[derive(Debug)]
pub(super) enum Numbers {
    Computed(Box<[u32]>),
    Stored(Array),
}

impl From<Vec<u32>> for Numbers {
    fn from(numbers: Vec<u32>) -> Self {
        Self::Computed(numbers.into())
    }
}

impl Numbers {
    /// Returns the number at place `at`. Returns `None` past the end, and for a stored number that is negative or too large.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<u32> {
        match self {
            Self::Computed(numbers) => numbers.get(at).copied(),
            Self::Stored(array) => stored(array, at),
        }
    }
}

fn stored(array: &Array, at: usize) -> Option<u32> {
    match array.dtype().size() {
        4 => array.bytes().as_chunks().0.get(at).map(|&stored| u32::from_le_bytes(stored)),
        _ => array.bytes().as_chunks().0.get(at).and_then(|&stored| u64::from_le_bytes(stored).try_into().ok()),
    }
}

/// The part of a description of an order that selects it.
#[derive(Deserialize)]
struct Description {
    dataset_path: String,
    num_samples: Option<u64>,
    random_seed: u64,
    sequence_length: u64,
    /// Proportions of the parts. `None` if each part has data sets of its own.
    split: Option<String>,
}

impl Description {
    /// Returns true for the order of `plan`, of the data set with this prefix and a part of it.
    fn is_of(&self, plan: &Plan, prefix: &Path, (parts, split): ([f64; 3], MegatronSplit)) -> bool {
        let path = Path::new(&self.dataset_path);
        let is_path = prefix.ends_with(path) || path.ends_with(prefix);
        let numbers = (self.num_samples, self.random_seed, self.sequence_length);
        let parts = normalised(&parts);
        let is_split = match &self.split {
            Some(text) => normalised(&proportions(text)) == parts,
            None => parts[split as usize] == 1.0,
        };
        is_path && is_split && numbers == (plan.wanted, plan.seed.into(), plan.seq_len)
    }
}

/// Parses proportions as Megatron-Core does: any other characters separate the numbers.
fn proportions(text: &str) -> [f64; 3] {
    let mut parts = [0.0; 3];
    let numbers = text.split(|c: char| c != '.' && !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
    parts.iter_mut().zip(numbers).for_each(|(part, number)| *part = number);
    parts
}

/// Returns the order that Megatron-Core has written to `folder` for the data set with this `prefix`.
///
/// An order in the folder is of the data set if the end of the path, the seed, the split and all numbers of samples and
/// sequences are equal. Returns `None` if there is no such order.
///
/// # Source
/// `GPTDataset._build_document_sample_shuffle_indices` of Megatron-Core 0.16.1: a description in JSON and three `.npy`
/// files, whose names start with the hash of the description.
///
/// # Errors
/// Errors of the folder and its files, with the path.
pub(super) fn find(
    folder: &Path,
    prefix: &Path,
    part: ([f64; 3], MegatronSplit),
    plan: &Plan,
) -> Result<Option<Order>> {
    let split = match part.1 {
        MegatronSplit::Train => "train",
        MegatronSplit::Valid => "valid",
        MegatronSplit::Test => "test",
    };
    let end = format!("-GPTDataset-{split}-description.txt");
    let failed = |error| Error::from(error).path(folder);
    let mut starts = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        starts.extend(name.to_str().and_then(|name| name.strip_suffix(&end)).map(str::to_owned));
    }
    starts.sort_unstable();
    for start in starts {
        let path = folder.join(format!("{start}{end}"));
        let content = Content::open(&Location::Local(path.clone()), Access::Normal)?;
        let text = content.description().map_err(|error| error.path(&path))?;
        // Other versions may describe other data sets.
        if !serde_json::from_slice::<Description>(text.as_bytes())
            .is_ok_and(|description| description.is_of(plan, prefix, part))
        {
            continue;
        }
        let open = |list: &str| open(&folder.join(format!("{start}-GPTDataset-{split}-{list}_index.npy")));
        let lists = [open("document")?, open("sample")?, open("shuffle")?];
        let lens = [plan.places(), 2 * (plan.samples + 1), plan.samples];
        if lists.iter().map(|list| list.shape().iter().product::<usize>() as u64).eq(lens) {
            let [sequences, starts, samples] = lists.map(Numbers::Stored);
            return Ok(Some(Order { sequences, starts, samples }));
        }
    }
    Ok(None)
}

/// Maps a list of numbers.
fn open(path: &Path) -> Result<Array> {
    let open = || {
        let array = npy::decode(Content::open(&Location::Local(path.into()), Access::Normal)?.whole()?)?;
        match array.dtype() {
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => Ok(array),
            dtype => Err(Error::data(format!("the list has numbers of type {dtype}"))),
        }
    };
    open().map_err(|error| error.path(path))
}
