//! The law of hosts that plan: everything that makes rows, behind everything that changes what comes there, by keys of every origin, among any number of hosts.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use gristmill::dataset::map::Source;
use gristmill::keys::{KeyFolder, KeySource, Keyed, Keys, Recompute};
use gristmill::source::{Megatron, MegatronWriter};
use gristmill::{BoxIter, BoxMap, LoaderBuilder};
use proptest::sample::{Index, select};

use super::hosts::run;
use super::pipelines::{by_tokens, is_kept, pieces, sequence};
use super::*;

/// Where keys come from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    Metadata,
    File,
    Recomputed,
}

const ORIGINS: [Origin; 3] = [Origin::Metadata, Origin::File, Origin::Recomputed];

/// What makes rows. One kind more joins the law by its name here.
const ROWS: [Rows; 6] = [Rows::Plain, Rows::FirstFit, Rows::BestFit, Rows::Concat, Rows::Window, Rows::Buckets];

/// Whether hosts plan; where they do not, they evaluate everything, and the law holds all the same.
fn is_planned(origin: Origin, change: Change, rows: Rows) -> bool {
    let decides = [
        // Metadata says how long records are, and not what a function makes of them.
        origin == Origin::Metadata && [Change::Filter, Change::Fan].contains(&change),
        rows == Rows::Buckets,
    ];
    !decides.contains(&true)
}

/// A pipeline, and the folder in which its records and keys lie.
struct Case<'a> {
    folder: &'a Path,
    origin: Origin,
    change: Change,
    pipeline: Pipeline,
}

impl<'a> Case<'a> {
    fn new(folder: &'a Path, (origin, change, rows): (Origin, Change, Rows), batch: usize) -> Self {
        let documents = 20 * batch as i64;
        Self { folder, origin, change, pipeline: Pipeline { batch, documents, ..Pipeline::new(&[], rows) } }
    }

    /// Documents, in an order of their own.
    fn documents(&self, seed: u32, len: i64) -> BoxMap<Element> {
        match self.origin {
            Origin::Metadata => Source::new(Megatron::open(written(self.folder, len)).unwrap()).shuffle(seed).boxed(),
            _ => Range::new(0, len).shuffle(seed).map(sequence).boxed(),
        }
    }

    fn build(&self) -> BoxIter<Element> {
        let len = self.pipeline.documents;
        let ds = self.documents(7, len).to_iter();
        self.pipeline.batches(match self.change {
            Change::Filter => ds.filter(is_kept).boxed(),
            Change::Fan => ds.flat_map(pieces).boxed(),
            Change::Mix => mix([ds.boxed(), self.documents(3, len / 2).to_iter().boxed()]).weights([2.0, 1.0]).boxed(),
            Change::Tokens => by_tokens([ds.boxed(), self.documents(3, len / 2).to_iter().boxed()], len as u64),
            Change::Shuffle => ds.window_shuffle(50, 5).boxed(),
            Change::Limit => ds.limit(len as u64 * 3 / 4).boxed(),
            Change::Repeat => ds.repeat(2).boxed(),
        })
    }

    fn start(&self, ds: &BoxIter<Element>, part: Part, executor: Executor, at: Option<&Checkpoint>) -> Host {
        let builder = self.keys(ds.clone().loader().executor(executor).part(part));
        let builder = match at {
            Some(checkpoint) => builder.resume(checkpoint.clone()),
            None => builder,
        };
        Host { loader: builder.build().unwrap(), digest: RowDigest::default() }
    }

    fn keys(&self, builder: LoaderBuilder<BoxIter<Element>>) -> LoaderBuilder<BoxIter<Element>> {
        match self.origin {
            // Nobody has to ask for it.
            Origin::Metadata => builder,
            Origin::File => builder.keys(Recorder(KeyFolder::new(self.folder.join("keys")))),
            Origin::Recomputed => builder.keys(Recompute),
        }
    }
}

/// So many records of Megatron's, which are views of a mapped file.
fn written(folder: &Path, len: i64) -> std::path::PathBuf {
    let at = folder.join(format!("{len}.idx"));
    if !at.exists() {
        let create = |ending| File::create(at.with_extension(ending)).unwrap();
        let mut writer = MegatronWriter::options().write_to(create("bin"), create("idx")).unwrap();
        (0..len).for_each(|x| writer.write(&sequence(x)).unwrap());
        writer.finish().unwrap();
    }
    at
}

/// Has the keys of what it is asked for written into a folder.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(pub(crate) KeyFolder);

impl KeySource for Recorder {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        self.0.record(&**keyed, |_| ())?;
        self.0.find(keyed)
    }
}

/// The digest of one that evaluates everything, and plans nothing, and its batches.
fn evaluated(ds: &BoxIter<Element>) -> (RowDigest, u64) {
    let (mut digest, mut batches) = (RowDigest::default(), 0);
    for batch in ds.clone().loader().build().unwrap().map(Result::unwrap) {
        let rows = Part::whole().rows(batch.num_rows().unwrap()).unwrap();
        digest.add_batch(batches, &rows, &batch);
        batches += 1;
    }
    (digest, batches)
}

fn cases() -> impl Iterator<Item = (Origin, Change, Rows)> {
    let of = |rows| Change::ALL.into_iter().map(move |change| (change, rows));
    ROWS.into_iter().flat_map(of).flat_map(|(change, rows)| ORIGINS.map(|origin| (origin, change, rows)))
}

/// Chains of five, each by another number of hosts: all that makes rows behind all changes by two of the origins each. States are small: positions, and what is in open
/// bins.
#[test]
fn hosts_that_plan_are_one_host_inline() {
    let temp = tempfile::tempdir().unwrap();
    for (number, what) in cases().enumerate() {
        let few: (usize, &[_]) = (35, &[(5, 1), (7, 1), (1, 2), (5, 1), (1, u64::MAX)]);
        let many: (usize, &[_]) = (192, &[(24, 1), (64, 1), (3, 1), (2, 1), (1, u64::MAX)]);
        // Hosts take long to start, and many of them longer: of the latter some cases, all rows, changes and origins among them.
        let chains = [(few, !(number / 18 + number).is_multiple_of(3)), (many, number.is_multiple_of(13))];
        let chains = chains.into_iter().filter(|(_, is_taken)| *is_taken).map(|(chain, _)| chain);
        for (batch, chain) in chains {
            let case = Case::new(temp.path(), what, batch);
            let ds = case.build();
            let (mut digest, mut at) = (RowDigest::default(), None);
            for &(count, steps) in chain {
                let start = |part| case.start(&ds, part, Executor::Inline, at.as_ref());
                let (rows, state) = run(&start, count, steps);
                // A mix whose weights change has its entries, counts and ends besides.
                let most = if what.1 == Change::Tokens { 2000 } else { 1400 };
                assert!(state.to_json().len() < most, "{what:?}: {}", state.to_json());
                digest.add(rows);
                at = Some(state);
            }
            let (expected, batches) = evaluated(&ds);
            assert_eq!((digest, at.map(|at| at.delivered)), (expected, Some(batches)), "{what:?}");
            assert!(batches > 5, "{batches}: {what:?}");
            let host = case.start(&ds, Part::of(0, chain[0].0), Executor::Inline, None).loader.report().to_string();
            let (origin, change, rows) = what;
            let planned = host.replace("\n      ", " ").contains("plans all rows from keys");
            assert_eq!(planned, is_planned(origin, change, rows), "{what:?}: {host}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5, max_shrink_iters: 100, ..ProptestConfig::default() })]

    /// Hosts that plan come and go between two batches; some steps are given back.
    #[test]
    fn hosts_that_plan_come_and_go(
        what in select(cases().collect::<Vec<_>>()),
        (batch, counts) in select(vec![(35, vec![1, 5, 7]), (24, vec![1, 2, 3, 8])]),
        changes in prop::collection::vec((any::<Index>(), 0usize..3), 5),
        threads in any::<bool>(),
    ) {
        let temp = tempfile::tempdir().unwrap();
        let case = Case::new(temp.path(), what, batch);
        let (ds, executor) = (case.build(), if threads { Executor::Threads(2) } else { Executor::Inline });
        let hosts = (0..counts[counts.len() - 1]).map(|_| case.start(&ds, Part::whole(), executor, None)).collect();
        let changes = changes.into_iter().map(|(count, back)| (*count.get(&counts), back));
        prop_assert_eq!(come_and_go(hosts, changes), evaluated(&ds).0);
    }
}
