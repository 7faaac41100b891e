//! Figures of a planned run.

use std::time::Duration;

use serde::Serialize;

use super::Settings;
use super::keys::KeysOfPlan;
use crate::Result;
use crate::cx::Recorder;
use crate::dataset::{SourceOfRun, Stage};
use crate::part::{BatchContents, RankLoad, RankRows, deal_rows};
use crate::report::{ComponentReport, components};

/// Bytes that a request to a store reads.
const BLOCK: f64 = 131_072.0;
/// Factor between the shares by documents and by tokens above which a source gets a warning.
const FAR: f64 = 2.0;

/// Counts of the batches planned so far.
#[derive(Default)]
pub(super) struct Counts {
    batches: u64,
    has_ended: bool,
    rows: u64,
    cells: u64,
    split: u64,
    sources: Vec<SourceCounts>,
    even: RankLoad,
    balanced: RankLoad,
    /// Batches whose rows divide among the parts.
    dealt: u64,
    run: RunOfRows,
    longest: RunOfRows,
}

#[derive(Clone, Default)]
struct SourceCounts {
    documents: u64,
    tokens: u64,
    reads: u64,
    /// The first batch with a record that was read before.
    first_repeat: Option<u64>,
    /// The last batch with a document of the source.
    last: u64,
}

/// Consecutive rows whose elements come from one source.
#[derive(Clone, Copy, Default)]
struct RunOfRows {
    source: Option<u32>,
    rows: u64,
}

impl Counts {
    pub(super) fn batches(&self) -> u64 {
        self.batches
    }

    pub(super) fn documents(&self) -> u64 {
        self.sources.iter().map(|source| source.documents).sum()
    }

    /// Notes that the pipeline has ended.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Adds a batch. `records` are the records of each source.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the rows of the first batch do not divide among the parts.
    pub(super) fn add(&mut self, batch: &BatchContents, records: &[u64], settings: &Settings) -> Result<()> {
        self.rows += batch.rows;
        self.cells += batch.cells;
        self.split += batch.split;
        let count = self.sources.len().max(batch.sources.len());
        self.sources.resize(count, SourceCounts::default());
        for (all, source) in self.sources.iter_mut().zip(&batch.sources) {
            all.documents += source.documents;
            all.tokens += source.tokens;
            if source.reads > 0 {
                all.last = self.batches;
            }
            all.reads = all.reads.max(source.reads);
        }
        for (source, records) in self.sources.iter_mut().zip(records) {
            if source.first_repeat.is_none() && source.reads > *records {
                source.first_repeat = Some(self.batches);
            }
        }
        for origin in &batch.origins {
            let is_same = origin.is_some() && *origin == self.run.source;
            self.run = RunOfRows { source: *origin, rows: if is_same { self.run.rows + 1 } else { 1 } };
            if origin.is_some() && self.run.rows > self.longest.rows {
                self.longest = self.run;
            }
        }
        if settings.parts > 1 && !batch.costs.is_empty() {
            match RankRows::even(batch.costs.len(), settings.parts, settings.balance.micro) {
                Ok(even) => {
                    self.even += even.load(&batch.costs);
                    let balanced = deal_rows(&batch.costs, settings.parts, settings.balance.micro)?;
                    self.balanced += balanced.load(&batch.costs);
                    self.dealt += 1;
                }
                Err(error) if self.batches == 0 => return Err(error),
                // The last batch may be short.
                Err(_) => {}
            }
        }
        self.batches += 1;
        Ok(())
    }
}

/// Figures of a planned run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    #[serde(flatten)]
    pub(super) amounts: Amounts,
    pub(super) sources: Vec<Source>,
    /// Components of mixes of streams, as in the report of a run.
    pub(super) components: Vec<ComponentReport>,
    /// Counted remarks of stages, as in the report of a run.
    pub(super) notes: Vec<(String, u64)>,
    pub(super) parts: usize,
    pub(super) straggler: Option<Straggler>,
    #[serde(flatten)]
    pub(super) reads: Reads,
    pub(super) longest_run: Option<Run>,
    pub(super) warnings: Vec<String>,
    /// Sources whose keys were computed, because there is no file of keys.
    pub(super) keys_computed: Vec<String>,
    /// Relative error of amounts of the whole run that 95 of 100 estimates do not exceed; `None` if keys were not sampled.
    pub(super) error: Option<f64>,
    pub(super) seconds: f64,
    pub(super) documents_per_s: f64,
}

/// Amounts of a planned run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Amounts {
    pub(super) batches: u64,
    /// Whether the pipeline ended after these batches.
    pub(super) has_ended: bool,
    pub(super) rows: u64,
    pub(super) documents: u64,
    /// Tokens in packed rows. This figure and the next two are `None` if rows are not packed.
    pub(super) tokens: Option<u64>,
    pub(super) padding: Option<u64>,
    pub(super) padding_share: Option<f64>,
    /// Documents in several parts.
    pub(super) split: u64,
    pub(super) split_share: f64,
}

/// Reads of a planned run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Reads {
    /// Stored bytes of the records that a host reads; `None` if unknown.
    pub(super) bytes_per_host: Option<u64>,
    /// Largest number of requests of a host to stores; `None` if the pipeline reads from no store.
    pub(super) requests_per_host: Option<u64>,
    /// Price of the requests of all hosts, if a price is given.
    pub(super) price: Option<f64>,
}

/// Figures of a source.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Source {
    pub(super) name: String,
    /// Id of the stage.
    pub(super) stage: usize,
    pub(super) documents: u64,
    /// Share of all documents.
    pub(super) share: f64,
    pub(super) tokens: Option<u64>,
    /// Share of all tokens.
    pub(super) token_share: Option<f64>,
    /// Relative error of documents, tokens and epochs that 95 of 100 estimates do not exceed; `None` if keys were not sampled.
    pub(super) error: Option<f64>,
    /// Records of the source.
    pub(super) records: u64,
    /// Records read, divided by the records of the source.
    pub(super) epochs: f64,
    /// First batch with a record that was read before.
    pub(super) first_repeat: Option<u64>,
    /// Last batch with a document of the source, if its component of a mix has ended.
    pub(super) end: Option<u64>,
}

/// Cost of the slowest part, divided by the mean cost of a part.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Straggler {
    pub(super) even: f64,
    pub(super) balanced: f64,
}

/// The longest run of rows whose elements come from one source.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Run {
    pub(super) rows: u64,
    pub(super) source: String,
}

impl Figures {
    pub(super) fn new(
        counts: Counts,
        sources: &[(Option<usize>, SourceOfRun)],
        pipeline: &dyn Stage,
        recorder: &Recorder,
        settings: &Settings,
        keys: &KeysOfPlan,
        time: Duration,
    ) -> Self {
        let samples = keys.samples();
        let documents = counts.documents();
        let is_packed = counts.cells > 0;
        let tokens: u64 = counts.sources.iter().map(|source| source.tokens).sum();
        let tokens = is_packed.then_some(tokens);
        // Elements of mixes with random access are counted as they are made, and a plan makes none.
        let components = components::of(pipeline, &recorder.totals(), recorder);
        let components: Vec<_> = components.into_iter().filter(|component| component.epochs.is_some()).collect();
        let names = names(sources);
        let of =
            |number: Option<usize>| number.and_then(|number| counts.sources.get(number)).cloned().unwrap_or_default();
        let errors: Vec<f64> = sources
            .iter()
            .map(|(number, source)| {
                let of_source = samples.iter().filter(|sample| sample.label == source.label);
                of_source.map(|sample| sample.error(of(*number).reads)).fold(0.0, f64::max)
            })
            .collect();
        // Lengths of the sources deviate independently of each other.
        let squared = sources
            .iter()
            .zip(&errors)
            .map(|((number, _), error)| (error * share(of(*number).tokens, tokens.unwrap_or(0))).powi(2));
        let whole = squared.sum::<f64>().sqrt();
        let error = (!samples.is_empty()).then_some(whole);
        let mut all = Vec::new();
        let (mut bytes, mut requests, mut is_far) = (Some(0.0), 0.0, false);
        for (((number, source), name), own_error) in sources.iter().zip(&names).zip(&errors) {
            let SourceCounts { documents: own, tokens: own_tokens, reads, first_repeat, last } = of(*number);
            let has_ended = source.component.as_ref().is_some_and(|(mix, name)| {
                components.iter().any(|part| part.mix == *mix && part.name == *name && part.has_ended)
            });
            bytes = bytes.zip(source.record_bytes).map(|(bytes, each)| bytes + each * reads as f64);
            if source.is_far {
                is_far = true;
                requests += reads as f64 * (source.record_bytes.unwrap_or(BLOCK) / BLOCK).ceil().max(1.0);
            }
            all.push(Source {
                name: name.clone(),
                stage: source.stage,
                documents: own,
                share: share(own, documents),
                tokens: tokens.map(|_| own_tokens),
                token_share: tokens.map(|tokens| share(own_tokens, tokens)),
                error: error.map(|whole| whole.hypot(*own_error)),
                records: source.records,
                epochs: share(reads, source.records),
                first_repeat,
                end: has_ended.then_some(last),
            });
        }
        let longest = counts.longest;
        let of_run = |source: u32| {
            let at = sources.iter().position(|(number, _)| *number == Some(source as usize))?;
            Some(Run { rows: longest.rows, source: names.get(at)?.clone() })
        };
        let parts = settings.parts as f64;
        let requests_per_host = is_far.then_some((requests / parts).ceil() as u64);
        let padding = tokens.map(|tokens| counts.cells.saturating_sub(tokens));
        let seconds = time.as_secs_f64();
        Self {
            amounts: Amounts {
                batches: counts.batches,
                has_ended: counts.has_ended,
                rows: counts.rows,
                documents,
                tokens,
                padding,
                padding_share: padding.map(|padding| share(padding, counts.cells)),
                split: counts.split,
                split_share: share(counts.split, documents),
            },
            warnings: all.iter().filter_map(|source| warning(source, all.len())).collect(),
            sources: all,
            components,
            notes: recorder.notes(),
            parts: settings.parts,
            straggler: (counts.dealt > 0)
                .then(|| Straggler { even: counts.even.straggle(), balanced: counts.balanced.straggle() }),
            reads: Reads {
                bytes_per_host: bytes.map(|bytes| (bytes / parts).ceil() as u64),
                requests_per_host,
                price: settings.price.filter(|_| is_far).map(|price| requests / 1000.0 * price),
            },
            longest_run: longest.source.and_then(of_run),
            keys_computed: keys.made(),
            error,
            seconds,
            documents_per_s: if seconds > 0.0 { documents as f64 / seconds } else { 0.0 },
        }
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of > 0 { part as f64 / of as f64 } else { 0.0 }
}

/// Names each source by its component, or by its stage. Equal names get the id of the stage.
fn names(sources: &[(Option<usize>, SourceOfRun)]) -> Vec<String> {
    let name = |source: &SourceOfRun| match &source.component {
        Some((_, name)) => name.clone(),
        None => source.name.to_owned(),
    };
    let all: Vec<String> = sources.iter().map(|(_, source)| name(source)).collect();
    let is_single = |name: &String| all.iter().filter(|other| *other == name).count() == 1;
    let numbered = |(name, (_, source)): (&String, &(Option<usize>, SourceOfRun))| match is_single(name) {
        true => name.clone(),
        false => format!("{name}_{}", source.stage),
    };
    all.iter().zip(sources).map(numbered).collect()
}

/// Returns a warning if the shares of a source by documents and by tokens are far apart.
fn warning(source: &Source, sources: usize) -> Option<String> {
    let Source { name, share, token_share: Some(tokens), .. } = source else { return None };
    let is_far = sources > 1 && *share > 0.0 && !(share / FAR..=share * FAR).contains(tokens);
    let percent = crate::cli::format::percent;
    is_far.then(|| {
        format!(
            "{name} is {} of the documents and {} of the tokens; a mix of streams counts tokens with `by: tokens`",
            percent(*share),
            percent(*tokens)
        )
    })
}
