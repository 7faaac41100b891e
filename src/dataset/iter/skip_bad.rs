use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::DatasetIterator;
use super::flow::{Flow, Flowing, Start};
use crate::cx::{Cx, StageId};
use crate::dataset::entry::chain::Chain;
use crate::dataset::entry::prelude::*;
use crate::dataset::facts::Facts;
use crate::dataset::memory::Memory;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::skipping::{BadRecords, Skipping};
use crate::dataset::stage::Role;
use crate::error::{Error, ErrorKind, Result};

/// See [`IterDatasetExt::on_bad_record`](super::IterDatasetExt::on_bad_record).
pub type IterSkipBad<D> = Flowing<D, SkipBadFlow>;

const NAME: &str = "skip_bad_records";

/// [`Flow`] of [`IterSkipBad`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct SkipBadFlow {
    pub(super) policy: BadRecords,
}

impl Facts for SkipBadFlow {
    facts! { name: NAME, role: Role::MayDrop, memory: Some(Memory::NOTHING) }

    fn params(&self) -> String {
        self.policy.params()
    }
}

impl<I: DatasetIterator> Flow<I> for SkipBadFlow {
    type Pass = IterSkipBadIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        Ok(IterSkipBadIter { parent, bad: Skipping::new(self.policy), stood: None, stage })
    }
}

/// A pass over [`IterSkipBad`].
#[doc(hidden)]
pub struct IterSkipBadIter<I> {
    parent: I,
    bad: Skipping,
    /// The parent's position after the last bad record, if no good record has come since.
    stood: Option<Json>,
    stage: StageId,
}

/// Position of an [`IterSkipBadIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkipBadState<P> {
    /// The parent's position.
    pub parent: P,
    /// Bad records skipped since the start.
    pub skipped: u64,
    /// Consecutive bad records directly before this position.
    pub in_a_row: u64,
}

impl<I: DatasetIterator> IterSkipBadIter<I> {
    /// Skips a bad record, if the policy allows it and the parent continues after the record.
    #[cold]
    fn skip(&mut self, error: Error, cx: &mut Cx) -> Result<()> {
        if error.kind() == ErrorKind::Data {
            let stands = serde_json::to_value(self.parent.state()).ok();
            if stands.is_some() && stands == self.stood {
                return Err(error.and("; it cannot be skipped, because the stream does not continue after it"));
            }
            self.stood = stands;
        }
        self.bad.skip(error, cx)
    }
}

impl<I: DatasetIterator> DatasetIterator for IterSkipBadIter<I> {
    type Item = I::Item;
    type State = SkipBadState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        loop {
            match self.parent.next(cx) {
                Ok(element) => {
                    if element.is_some() {
                        self.bad.good();
                        self.stood = None;
                        cx.produced(self.stage, 1, 0);
                    }
                    return Ok(element);
                }
                Err(error) => self.skip(error, cx)?,
            }
        }
    }

    fn state(&self) -> Self::State {
        let (skipped, in_a_row) = self.bad.counts();
        SkipBadState { parent: self.parent.state(), skipped, in_a_row }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.stood = None;
        self.bad.restore(state.skipped, state.in_a_row).map_err(|e| cx.blame(self.stage, NAME, e))?;
        self.parent.restore(state.parent, cx)
    }
}

debug_name!(IterSkipBadIter<I>);

arguments! {
    struct SkipBadRecordsArgs(limit) {
        /// Maximum number of skipped records. By default, no limit.
        limit: Option<u64>,
        /// Maximum number of consecutive skipped records. By default, no limit.
        consecutive: Option<u64>,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::chain(
    NAME,
    "Skips records that the stages before it cannot use. Directly after random access, it begins the stream.\n\n\
     Skipped records are counted in the report and in the state. The first few are logged. Use the stage directly \
     after a stream of files, or after the last elementwise stage, and before stages that join elements.\n\n\
     DataError: More records than a limit were skipped. The error is raised during the pass.",
    &Behind(|chain: Chain, SkipBadRecordsArgs { limit, consecutive }: SkipBadRecordsArgs, _| {
        Ok(chain.on_bad_record(BadRecords::Skip { limit, consecutive }))
    }),
)
.with_policy(|fields| {
    let SkipBadRecordsArgs { limit, consecutive } = SkipBadRecordsArgs::read(fields)?;
    Ok(BadRecords::Skip { limit, consecutive })
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, lanes, laws};
    use crate::dataset::map::Range;
    use crate::dataset::{Node, Stage};
    use crate::exec::Runtime;

    /// Returns a stream with bad records, after a stateful stage, so that the border does not handle them.
    fn bad(len: i64, bad: fn(i64) -> bool) -> impl IterDataset<Item = i64> {
        let judge = move |x: i64| if bad(x) { Err(Error::data(format!("{x} is bad"))) } else { Ok(x) };
        Range::new(0, len).to_iter().try_map(judge).limit(u64::MAX)
    }

    fn skip(limit: Option<u64>, consecutive: Option<u64>) -> BadRecords {
        BadRecords::Skip { limit, consecutive }
    }

    #[test]
    fn bad_records_are_left_out_wherever_it_resumes() {
        let ds = bad(40, |x| x % 10 < 3).on_bad_record(skip(None, Some(3)));
        assert_eq!(laws::check(&ds), (0..40).filter(|x| x % 10 >= 3).collect::<Vec<_>>());
        assert_eq!(crate::dataset::label(&ds), "skip_bad_records(bad_records=skip up to 3 in a row)");
    }

    #[test]
    fn limits_end_the_run_and_count_over_a_resume() {
        let run = Runtime::inline();
        let cases = [
            (skip(Some(2), None), 20, "20 is bad; 2 bad records were skipped before it, which is the limit"),
            (skip(None, Some(1)), 31, "31 is bad; 1 bad records in a row were skipped before it, which is the limit"),
            (BadRecords::Error, 0, "0 is bad"),
        ];
        for (policy, at, text) in cases {
            let ds = bad(40, |x| x % 10 == 0 || x == 31).on_bad_record(policy);
            let (mut iter, mut cx) = (ds.iter(&run).unwrap(), run.cx());
            let mut good = 0;
            let error = loop {
                let state = serde_json::to_string(&iter.state()).unwrap();
                iter = ds.iter(&run).unwrap();
                iter.restore(serde_json::from_str(&state).unwrap(), &mut cx).unwrap();
                match iter.next(&mut cx) {
                    Ok(element) => good = element.unwrap(),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.message(), text);
            assert_eq!(good, (at - 1_i64).max(0) - i64::from(at == 31));
            // The stream continues after the record that ended the run.
            assert_eq!(iter.next(&mut cx).unwrap(), Some(at + 1));
        }
    }

    #[test]
    fn other_errors_are_not_skipped() {
        let fails = |x| if x == 1 { Err(Error::config("no")) } else { Ok(x) };
        let ds = Range::new(0, 3).to_iter().try_map(fails).limit(3).on_bad_record(BadRecords::skip());
        assert_eq!(ds.collect().unwrap_err().kind(), ErrorKind::Config);
    }

    #[test]
    fn lanes_go_on_behind_a_bad_record() {
        let parts: Vec<_> = (0..3).map(|lane| bad(10 + lane, |x| x == 4).boxed()).collect();
        let ds = lanes(parts, 3).on_bad_record(skip(Some(3), None));
        assert_eq!(laws::check(&ds).len(), 30);
    }

    /// Yields the same error forever.
    struct Stuck;

    impl Stage for Stuck {
        fn node(&self) -> Node<'_> {
            Node::new("stuck", Role::Source)
        }
        fn parents(&self) -> Vec<&dyn Stage> {
            Vec::new()
        }
    }

    impl IterDataset for Stuck {
        type Item = i64;
        type Iter = Self;
        fn iter(&self, _: &Runtime) -> Result<Self> {
            Ok(Self)
        }
    }

    impl DatasetIterator for Stuck {
        type Item = i64;
        type State = u64;
        fn next(&mut self, _: &mut Cx) -> Result<Option<i64>> {
            Err(Error::data("no way through"))
        }
        fn state(&self) -> u64 {
            7
        }
        fn restore(&mut self, _: u64, _: &mut Cx) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stream_that_stands_still_ends() {
        let error = Stuck.on_bad_record(BadRecords::skip()).collect().unwrap_err();
        assert_eq!(
            error.message(),
            "no way through; it cannot be skipped, because the stream does not continue after it"
        );
    }
}
