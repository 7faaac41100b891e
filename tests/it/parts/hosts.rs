//! Hosts that take parts of the batches of one pipeline, and what they deliver together.

use gristmill::part::{Deal, Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{BoxIter, Checkpoint, Element, Executor, Loader};

/// One host: what it has delivered, and as which rows.
pub(crate) struct Host {
    pub(crate) loader: Loader<BoxIter<Element>>,
    pub(crate) digest: RowDigest,
}

impl Host {
    pub(crate) fn start(ds: &BoxIter<Element>, part: Part, executor: Executor, at: Option<&Checkpoint>) -> Self {
        Self::dealt(ds, part, Deal::Even, executor, at)
    }

    pub(crate) fn dealt(
        ds: &BoxIter<Element>,
        part: Part,
        deal: Deal,
        executor: Executor,
        at: Option<&Checkpoint>,
    ) -> Self {
        let builder = ds.clone().loader().executor(executor).deal(deal).part(part);
        let builder = match at {
            Some(checkpoint) => builder.resume(checkpoint.clone()),
            None => builder,
        };
        Self { loader: builder.build().unwrap(), digest: RowDigest::default() }
    }

    /// Takes the next batch in; `false` at the end.
    pub(crate) fn step(&mut self) -> bool {
        let Some(batch) = self.loader.next() else { return false };
        let batch = batch.unwrap();
        let rows = self.loader.rows().unwrap();
        assert_eq!(batch.num_rows().unwrap(), rows.len());
        self.digest.add_batch(self.loader.delivered() - 1, rows, &batch);
        true
    }
}

/// The digest of one host that takes all, and its batches.
pub(crate) fn alone(ds: &BoxIter<Element>) -> (RowDigest, u64) {
    let mut host = Host::start(ds, Part::whole(), Executor::Inline, None);
    while host.step() {}
    (host.digest, host.loader.delivered())
}

/// `count` hosts from `at` on, for `steps` batches or to the end: their digest, and the state that all of them have.
pub(crate) fn together(
    ds: &BoxIter<Element>,
    count: usize,
    deal: &Deal,
    executor: Executor,
    at: Option<&Checkpoint>,
    steps: u64,
) -> (RowDigest, Checkpoint) {
    run(&|part| Host::dealt(ds, part, deal.clone(), executor, at), count, steps)
}

/// The same of hosts that are started in some way.
pub(crate) fn run(start: &dyn Fn(Part) -> Host, count: usize, steps: u64) -> (RowDigest, Checkpoint) {
    let (mut digest, mut states) = (RowDigest::default(), Vec::new());
    for index in 0..count {
        let mut host = start(Part::of(index, count));
        let end = (0..steps).all(|_| host.step());
        assert!(end || host.loader.next().is_none());
        digest.add(host.digest);
        states.push(host.loader.state().unwrap());
    }
    let texts: Vec<String> = states.iter().map(Checkpoint::to_json).collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "all hosts have one state");
    (digest, states.remove(0))
}

/// Hosts, one for each place, that are others before each step: as many as is said, each of which takes 2 batches and gives some of them back. Those that
/// are not among the hosts of a step take nothing of it. Returns the digest of what counts.
pub(crate) fn come_and_go(mut hosts: Vec<Host>, changes: impl IntoIterator<Item = (usize, usize)>) -> RowDigest {
    let (mut digest, most) = (RowDigest::default(), hosts.len());
    for (count, back) in changes {
        for (index, host) in hosts.iter_mut().enumerate() {
            host.loader.repart(Part::of(index.min(count - 1), count)).unwrap();
            host.digest = RowDigest::default();
            let mut taken: Vec<RowDigest> = Vec::new();
            while taken.len() < 2 && host.step() {
                taken.push(std::mem::take(&mut host.digest));
            }
            let back = back.min(taken.len());
            host.loader.back(back).unwrap();
            taken.truncate(taken.len() - back);
            if index < count {
                taken.into_iter().for_each(|rows| digest.add(rows));
            }
        }
    }
    for (index, host) in hosts.iter_mut().enumerate() {
        host.loader.repart(Part::of(index, most)).unwrap();
        while host.step() {}
        digest.add(host.digest);
    }
    digest
}
