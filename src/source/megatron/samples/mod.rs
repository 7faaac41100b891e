//! Training samples of Megatron's indexed datasets, in the order of Megatron-Core.

mod blend;
mod cached;
mod order;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use self::blend::{Blend, normalised, sum};
use self::order::{Order, Plan, check_memory, ids_of};
use super::index::Index;
use super::{data_of, index_of};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::InPlace;
use crate::dataset::map::{BulkRead, GetStacked, MapDataset};
use crate::dataset::{Describe, Indices, Memory, Moves, Node, Reads, Role, Stage, Upcoming};
use crate::element::{Array, DType, Element, Name};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::mmap::Access;
use crate::place::Location;
use crate::source::content::{self, Content};
use crate::source::files::{FileId, Patterns, identity};
use crate::source::formats::Format;
use crate::source::token_crops::timed;
use crate::source::tokens::TokenFile;

const NAME: &str = "megatron_samples";
/// Name of the field of a sample.
const TOKENS: Name = Name::new_static("tokens");
/// Part by which a data set of a blend has more samples than its weight requires: `mid_level_dataset_surplus`.
const SURPLUS: f64 = 0.005;

/// Part of the sequences of each data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MegatronSplit {
    /// The first part, for training.
    #[default]
    Train,
    /// The second part, for validation.
    Valid,
    /// The third part, for tests.
    Test,
}

/// Options for opening [`MegatronSamples`].
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct MegatronSamplesOptions {
    seq_len: usize,
    seed: u32,
    samples: Option<u64>,
    weights: Option<Vec<f64>>,
    parts: [f64; 3],
    split: MegatronSplit,
    with_next: bool,
    cache: Option<PathBuf>,
}

impl MegatronSamplesOptions {
    setters! {
        /// Sets the seed of the order. Default: 1234, as in Megatron-LM.
        pub seed: u32;

        /// Sets the minimum number of samples: `train_iters * global_batch_size` of a run. By default, every data set
        /// is read once.
        pub samples(samples: u64) => samples = Some(samples);

        /// Sets the weight of each data set. By default, the number of its samples.
        pub weights(weights: impl Into<Vec<f64>>) => weights = Some(weights.into());

        /// Extends each sample by the next id, to `seq_len + 1` ids: `add_extra_token_to_sequence`. Default: true.
        pub with_next: bool;

        /// Sets the folder in which Megatron-Core keeps its orders, `data_cache_path`. By default, orders are computed.
        ///
        /// An order in the folder is mapped, so the first sample is read at once. The name of the data set, the number of
        /// samples, the seed and the split must be equal. Otherwise a warning is logged, and the order is computed. The
        /// samples are equal in both cases.
        pub cache(folder: impl Into<PathBuf>) => cache = Some(folder.into());
    }

    /// Sets the proportions of the parts for training, validation and tests, and the part to read. Default: all
    /// sequences are for training.
    pub fn split(mut self, parts: [f64; 3], split: MegatronSplit) -> Self {
        (self.parts, self.split) = (parts, split);
        self
    }

    /// Opens data sets of Megatron-Core, each by its `.idx` file, its `.bin` file, or their common prefix.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the options contradict each other or the number of data sets;
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a file is missing or damaged, or has no ids;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a legacy index, and for orders that exceed the free
    /// memory.
    ///
    /// # Cost
    /// Reads the lengths of all sequences, 4 bytes each. The order of a data set is computed before its first sample
    /// is read, in 20 to 40 ns for each sequence of all epochs, and is not written to a file. An order in the
    /// [`cache`](Self::cache) costs nothing.
    pub fn open(self, prefixes: impl Patterns) -> Result<MegatronSamples> {
        self.check()?;
        // Each separately, because a data set may be named twice.
        let mut indices = Vec::new();
        for prefix in prefixes.patterns() {
            indices.extend(content::open_all(index_of(&prefix), Format::Megatron.endings(), Access::Normal)?);
        }
        let weights = self.weights.as_deref().map(normalised);
        if let Some(weights) = weights.as_ref().filter(|weights| weights.len() != indices.len()) {
            return Err(Error::config(format!("{} weights for {} data sets", weights.len(), indices.len())));
        }
        if indices.len() > i16::MAX as usize {
            return Err(Error::unsupported(format!(
                "{} data sets, and Megatron-Core blends at most 32767",
                indices.len()
            )));
        }
        // Numbers of samples that the blend takes of each data set.
        let shares: Option<Vec<f64>> = weights
            .as_ref()
            .zip(self.samples)
            .map(|(weights, samples)| weights.iter().map(|weight| (samples as f64 * weight).ceil()).collect());
        let is_single = indices.len() == 1 && weights.is_none();
        let mut data_sets = Vec::with_capacity(indices.len());
        for (at, (file, content)) in indices.into_iter().enumerate() {
            let wanted = match &shares {
                Some(shares) => Some((shares[at] * (1.0 + SURPLUS)).ceil() as u64),
                None => self.samples.filter(|_| is_single),
            };
            data_sets.push(DataSet::open(&file, &content, &self, wanted).map_err(|e| e.path(file.as_ref()))?);
        }
        let counts: Vec<u64> = data_sets.iter().map(|data_set| data_set.plan.samples).collect();
        let most = counts.iter().sum();
        let blend = match (weights, shares, self.samples) {
            _ if is_single => None,
            (Some(weights), Some(shares), _) => Some(Blend::weighted(&weights, shares.iter().sum::<f64>() as u64)),
            (_, _, Some(samples)) => {
                let lengths: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
                Some(Blend::weighted(&lengths, samples.min(most)))
            }
            _ => Some(Blend::exhaustive(&counts)),
        };
        let files: Vec<FileId> = data_sets.iter_mut().flat_map(|data_set| std::mem::take(&mut data_set.ids)).collect();
        let far = content::any_far(data_sets.iter().map(|data_set| &data_set.tokens.content));
        let len = blend.as_ref().map_or(most, |blend| blend.len);
        let memory = data_sets.iter().map(DataSet::memory).sum::<u64>() + 8 * len;
        check_memory(memory, Machine::here().available_bytes())?;
        let samples = Samples { data_sets, blend, len, files: identity(&files), far, memory, options: self };
        Ok(MegatronSamples(Arc::new(samples)))
    }

    fn check(&self) -> Result<()> {
        if self.seq_len == 0 {
            return Err(Error::config("seq_len is 0").help("a sample has 1 id or more"));
        }
        if self.weights.is_some() && self.samples.is_none() {
            return Err(Error::config("weights need a number of samples")
                .help("name `samples`: iterations times the global batch size of the run"));
        }
        if let Some(weight) = self.weights.iter().flatten().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return Err(Error::config(format!("weight {weight} is not a finite number above 0")));
        }
        let is_proportion = |part: &f64| part.is_finite() && *part >= 0.0;
        if !self.parts.iter().all(is_proportion) || sum(&self.parts) == 0.0 {
            return Err(Error::config(format!("{:?} are not proportions of the parts of a data set", self.parts)));
        }
        Ok(())
    }

    /// Returns the sequences of the split, of all `sequences` of a data set.
    fn sequences(&self, sequences: u64) -> Range<u64> {
        let [train, valid, test] = self.parts.map(|part| part / sum(&self.parts));
        let ends = [0.0, train, train + valid, train + valid + test];
        let at = self.split as usize;
        let place = |end: f64| ((end * sequences as f64).round_ties_even() as u64).min(sequences);
        place(ends[at])..place(ends[at + 1])
    }
}

/// Samples of Megatron's indexed datasets in the order of Megatron-Core: a [`MapDataset`] of elements
/// `{tokens: i32[seq_len + 1]}`.
///
/// Element `i` has the ids of sample `i` of `GPTDataset`, or of `BlendedDataset` if there are several data sets or
/// weights. Its first `seq_len` ids are Megatron's `tokens`, and its last `seq_len` ids are Megatron's `labels`. A run
/// that has consumed `n` samples continues at element `n`.
///
/// ```no_run
/// use gristmill::{prelude::*, source::MegatronSamples};
/// let samples = MegatronSamples::options(4096).seed(1234).samples(1_000_000).weights([0.3, 0.7]);
/// let batches = samples.open(["web_text_document", "code_text_document"])?.to_iter().batch(64);
/// # Ok::<(), gristmill::Error>(())
/// ```
/// # Source
/// Megatron-Core 0.16.1: `gpt_dataset.py`, `blended_dataset.py`, `helpers.cpp`.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct MegatronSamples(Arc<Samples>);

struct Samples {
    data_sets: Vec<DataSet>,
    /// `None` for a single data set without a weight.
    blend: Option<Blend>,
    len: u64,
    files: String,
    /// Whether any file is in an object store.
    far: bool,
    memory: u64,
    options: MegatronSamplesOptions,
}

/// A data set, and the order of its samples.
struct DataSet {
    index: Index,
    tokens: TokenFile,
    ids: Vec<FileId>,
    plan: Plan,
    order: OnceLock<Order>,
}

impl DataSet {
    fn open(file: &Location, index: &Content, options: &MegatronSamplesOptions, wanted: Option<u64>) -> Result<Self> {
        let place = file.beside(data_of);
        let data = Content::open(&place, Access::Normal)?;
        let ids = [index.id(file.as_ref()), data.id(&place)];
        let index = Index::open(index)?;
        let tokens = TokenFile::of_type(place.into_path(), data, index.dtype)?;
        let lengths = index.lengths().ok_or_else(|| {
            Error::unsupported("a legacy index has no lengths").help("convert it: Megatron-Core reads no such index")
        })?;
        let sequences = options.sequences(lengths.len() as u64);
        let all = ids_of(lengths)?;
        if all > tokens.len() {
            return Err(Error::data(format!("the sequences have {all} ids, but the .bin file has {}", tokens.len()))
                .help("one of the two files is cut, damaged, or belongs to another dataset"));
        }
        let Ok(numbers) = u32::try_from(sequences.end).map(|end| sequences.start as u32..end) else {
            return Err(Error::unsupported("more than 2^32 sequences"));
        };
        let ids_in = ids_of(&lengths[numbers.start as usize..numbers.end as usize])?;
        let shape = (options.seq_len as u64, u64::from(options.with_next));
        let plan = Plan::new(numbers, ids_in, shape, options.seed, wanted)?;
        let order = OnceLock::new();
        if let Some(folder) = &options.cache {
            let prefix = file.as_ref().with_extension("");
            match cached::find(folder, &prefix, (options.parts, options.split), &plan)? {
                Some(found) => _ = order.set(found),
                None => tracing::warn!(
                    "{} has no order of {} for these samples, so it is computed",
                    folder.display(),
                    prefix.display()
                ),
            }
        }
        Ok(Self { index, tokens, ids: ids.into(), plan, order })
    }

    /// Returns the memory of the order in bytes, 0 if the order is in a file.
    fn memory(&self) -> u64 {
        if self.order.get().is_some() { 0 } else { self.plan.memory() }
    }

    /// Passes the places of the ids of a sample to `each`: the number of the first id in the file, and a count.
    fn places(&self, sample: u64, width: usize, mut each: impl FnMut(u64, usize) -> Result<()>) -> Result<()> {
        let order = self.order.get_or_init(|| Order::new(&self.plan, self.index.lengths().unwrap_or_default()));
        let missing = || Error::data(format!("no sample {sample}: the data set has {}", self.plan.samples));
        let (sequences, mut skipped) = order.after_start_of(sample).ok_or_else(missing)?;
        let (mut rest, size) = (width, self.index.dtype.size() as u64);
        for sequence in sequences {
            let foreign = || {
                let text = format!("sample {sample} has id {skipped} of sequence {sequence}, which does not exist");
                Error::data(text).help("the order in the cache belongs to another data set")
            };
            if !self.plan.has(sequence) {
                return Err(foreign());
            }
            let bytes = self.index.sequence(sequence.into())?;
            if bytes.start % size != 0 {
                return Err(Error::data(format!("sequence {sequence} starts at byte {}, inside an id", bytes.start)));
            }
            let ids = bytes.start / size + skipped..bytes.end / size;
            if ids.start > ids.end {
                return Err(foreign());
            }
            let count = rest.min(usize::try_from(ids.end - ids.start).unwrap_or(usize::MAX));
            if count > 0 {
                each(ids.start, count)?;
            }
            (rest, skipped) = (rest - count, 0);
            if rest == 0 {
                return Ok(());
            }
        }
        Err(missing())
    }
}

impl MegatronSamples {
    /// Returns the options of samples of `seq_len` ids each.
    pub fn options(seq_len: usize) -> MegatronSamplesOptions {
        let parts = [1.0, 0.0, 0.0];
        let (samples, weights, split, cache) = (None, None, MegatronSplit::Train, None);
        MegatronSamplesOptions { seq_len, seed: 1234, samples, weights, parts, split, with_next: true, cache }
    }
}

impl Samples {
    fn width(&self) -> usize {
        self.options.seq_len.saturating_add(usize::from(self.options.with_next))
    }

    /// Returns the data set of element `index`, and the number of its sample.
    fn find(&self, index: u64) -> Option<(usize, u64)> {
        let index = index.checked_rem(self.len)?;
        self.blend.as_ref().map_or(Some((0, index)), |blend| blend.find(index))
    }

    fn read_into(&self, index: u64, out: &mut [i32]) -> Result<()> {
        let (at, sample) = self.find(index).ok_or_else(|| Error::data("no such sample"))?;
        let data_set = &self.data_sets[at];
        let mut rest = out;
        let read = |first, count| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut(count);
            rest = later;
            data_set.tokens.read_into(first, now)
        };
        data_set.places(sample, self.width(), read)
    }

    fn element(&self, index: u64) -> Result<Element> {
        let mut tokens = Array::builder(DType::I32, &[self.width()])?;
        self.read_into(index, tokens.as_mut_slice())?;
        Ok(Element::from_unique(vec![(TOKENS, tokens.freeze().into())]))
    }

    fn stack(&self, indices: &[u64]) -> GetStacked<Element> {
        if self.far {
            content::fetch_all(self.ranges(indices).into_iter(), |at| &self.data_sets[at].tokens.content);
        }
        let mut batch = Array::of_rows(DType::I32, &[indices.len(), self.width()]).ok()?;
        for &index in indices {
            self.read_into(index, batch.next_row()?).ok()?;
        }
        let batch = Element::from_unique(vec![(TOKENS, batch.freeze().into())]);
        Some(InPlace { len: indices.len(), bytes: batch.nbytes(), batch })
    }

    /// Returns the data sets and byte ranges of the elements at `indices`.
    fn ranges(&self, indices: &[u64]) -> Vec<(usize, Range<u64>)> {
        let mut ranges = Vec::new();
        for (at, sample) in indices.iter().filter_map(|&index| self.find(index)) {
            let data_set = &self.data_sets[at];
            let add = |first, count| data_set.tokens.place(first, count).map(|range| ranges.push((at, range)));
            // A bad place is reported when it is read.
            let _ = data_set.places(sample, self.width(), add);
        }
        ranges
    }
}

impl Stage for MegatronSamples {
    fn node(&self) -> Node<'_> {
        let reads = Reads { far: self.0.far, together: false };
        let memory = Some(Memory::bytes(self.0.memory));
        let indices = Indices::Moved(self);
        let node = Node::new(NAME, Role::Source);
        Node { describe: self, indices, is_native: true, has_columns: true, reads, memory, ..node }
    }
    facts! { parents: Vec::new() }
}

impl Describe for MegatronSamples {
    fn params(&self) -> String {
        let Samples { files, options, .. } = &*self.0;
        let MegatronSamplesOptions { seq_len, seed, samples, weights, parts, split, with_next, cache: _ } = options;
        let samples = samples.map_or_else(|| "all".to_owned(), |samples| samples.to_string());
        let weights = weights.as_ref().map_or_else(|| "none".to_owned(), |weights| format!("{weights:?}"));
        let [train, valid, test] = parts;
        format!(
            "{files}, seq_len={seq_len}, seed={seed}, samples={samples}, weights={weights}, \
             split={train} {valid} {test} {split:?}, with_next={with_next}"
        )
    }
}

impl Moves for MegatronSamples {
    fn will_read(&self, next: Upcoming<'_>) {
        let data_sets = &self.0.data_sets;
        if next.is_apart() {
            let ranges = self.0.ranges(next.indices());
            return ranges.into_iter().for_each(|(at, range)| data_sets[at].tokens.content.bring(range));
        }
        if self.0.far {
            let ranges = self.0.ranges(next.indices());
            content::will_read(ranges.into_iter(), next, |at| &data_sets[at].tokens.content);
        }
    }
}

impl MapDataset for MegatronSamples {
    type Item = Element;

    fn len(&self) -> u64 {
        self.0.len
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Element>> {
        if self.0.len == 0 { Ok(None) } else { timed(cx, NAME, || self.0.element(index)).map(Some) }
    }

    reads_in_bulk!();
}

impl BulkRead<Element> for MegatronSamples {
    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<Element> {
        let batch = cx.timed_many(StageId(0), indices.len(), || self.0.stack(indices))?;
        if cx.is_timing() {
            cx.sampled_bytes(StageId(0), batch.bytes as u64);
        }
        Some(batch)
    }
}

debug_as!(MegatronSamples, |self, f| {
    write!(f, "MegatronSamples({} of {} data sets)", self.0.len, self.0.data_sets.len())
});

#[cfg(test)]
mod tests;
