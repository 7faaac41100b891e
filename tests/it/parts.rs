//! Several hosts: the rows of all parts together are those of one host inline, whoever evaluates them, wherever they go on, however many they
//! are by then.

mod any_order;
mod by_lanes;
mod done;
mod hosts;
mod keyed;
mod pipelines;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::{lanes, mix};
use gristmill::dataset::map::Range;
use gristmill::dataset::{Node, Role};
use gristmill::pack::{Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Balance, Cost, Deal, Part, RowDigest, deal_rows};
use gristmill::prelude::*;
use gristmill::{Array, Checkpoint, Cx, Element, Error, ErrorKind, Executor, Result, Runtime};
use proptest::prelude::*;

use hosts::{Host, alone, come_and_go, together};
use pipelines::{BATCH, Change, Dealing, Pipeline, Rows, dealing, documents, first, pipeline};

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// Chains of resumes, each by another number of hosts with another deal, with one digest.
    #[test]
    fn all_parts_are_one_host_inline(
        (pipeline, counts) in pipeline(),
        chain in prop::collection::vec((any::<prop::sample::Index>(), 0u64..5, dealing()), 5),
        threads in any::<bool>(),
    ) {
        let ds = pipeline.build();
        let (expected, batches) = alone(&ds);
        let executor = if threads { Executor::Threads(2) } else { Executor::Inline };
        let (mut digest, mut at) = (RowDigest::default(), None);
        for (count, steps, dealing) in chain {
            let count = *count.get(&counts);
            let deal = pipeline.deal(dealing, count);
            let (rows, state) = together(&ds, count, &deal, executor, at.as_ref(), steps);
            digest.add(rows);
            at = Some(state);
        }
        let (rows, state) = together(&ds, counts[1], &Deal::Even, executor, at.as_ref(), u64::MAX);
        digest.add(rows);
        prop_assert_eq!((digest, state.delivered), (expected, batches));
    }

    /// Hosts that come and go between two batches, without a restart; some steps are given back.
    #[test]
    fn hosts_come_and_go_between_batches(
        (pipeline, counts) in pipeline(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3), 6),
        dealing in dealing(),
        threads in any::<bool>(),
    ) {
        let ds = pipeline.build();
        let (expected, _) = alone(&ds);
        let executor = if threads { Executor::Threads(2) } else { Executor::Inline };
        // One loader for each place; those that are not among the hosts of a step take nothing of it.
        let counts: Vec<usize> = counts.into_iter().filter(|count| *count <= 8).collect();
        let most = counts[counts.len() - 1];
        let start = |_| Host::dealt(&ds, Part::whole(), pipeline.deal(dealing, most), executor, None);
        let changes = changes.into_iter().map(|(count, back)| (*count.get(&counts), back));
        let digest = come_and_go((0..most).map(start).collect(), changes);
        prop_assert_eq!(digest, expected);
    }
}

/// 5, 7 and 64 hosts, one after the other, of everything that makes rows behind everything that changes what comes there.
#[test]
fn every_kind_of_rows_behind_every_change_is_one_host_inline() {
    for rows in Rows::ALL {
        for change in Change::ALL {
            for (batch, chain) in [(35, [5, 7, 1]), (64, [2, 64, 1])] {
                let pipeline = Pipeline { batch, documents: 600, epochs: 2, ..Pipeline::new(&[change], rows) };
                let ds = pipeline.build();
                let (mut digest, mut at) = (RowDigest::default(), None);
                for (count, steps) in chain.into_iter().zip([2, 1, u64::MAX]) {
                    let (rows, state) = together(&ds, count, &Deal::Even, Executor::Inline, at.as_ref(), steps);
                    digest.add(rows);
                    at = Some(state);
                }
                let (all, batches) = alone(&ds);
                assert_eq!((digest, at.map(|state| state.delivered)), (all, Some(batches)), "{pipeline:?}");
                assert!(batches > 3, "{batches}: {pipeline:?}");
            }
        }
    }
}

/// Behind the last batch, steps are given back as before it, and another part is that of what comes again.
#[test]
fn behind_the_end_hosts_change_and_give_steps_back() {
    for rows in [Rows::Index, Rows::Window] {
        let ds = Pipeline::new(&[Change::Filter], rows).build();
        let whole: Vec<Element> = ds.clone().loader().build().unwrap().map(Result::unwrap).collect();
        let last = &whole[whole.len() - 2..];
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let mut loader = Host::start(&ds, Part::of(0, 2), executor, None).loader;
            let mut again = |part: Part, count: usize| {
                assert_eq!((loader.by_ref().map(Result::unwrap).count(), loader.next().is_none()), (count, true));
                loader.repart(part.clone()).unwrap();
                assert!(loader.next().is_none(), "the end stays the end");
                loader.back(2).unwrap();
                for (number, whole) in last.iter().enumerate() {
                    let rows: Vec<usize> = part.rows(BATCH).unwrap().iter().collect();
                    assert_eq!(loader.next().unwrap().unwrap(), whole.rows_at(&rows).unwrap(), "batch {number}");
                }
                assert_eq!(loader.delivered(), whole.len() as u64);
            };
            again(Part::of(2, 3), whole.len());
            again(Part::of(1, 4), 0);
            loader.repart(Part::of(3, 4)).unwrap();
            loader.back(1).unwrap();
            assert_eq!(loader.next().unwrap().unwrap(), last[1].rows_at(&(36..48).collect::<Vec<_>>()).unwrap());
            assert!(loader.next().is_none());
        }
    }
}

/// Batches that 5, 7 and 64 hosts divide, with hosts of these numbers one behind the other.
#[test]
fn five_seven_and_sixty_four_hosts_share_one_run() {
    let changes = [Change::Filter, Change::Mix];
    let pipeline = Pipeline { batch: 64 * 5 * 7, documents: 16_000, ..Pipeline::new(&changes, Rows::Window) };
    let ds = pipeline.build();
    let (mut digest, mut at) = (RowDigest::default(), None);
    for (count, steps) in [(7, 1), (64, 1), (5, u64::MAX)] {
        let (rows, state) = together(&ds, count, &Deal::Even, Executor::Inline, at.as_ref(), steps);
        digest.add(rows);
        at = Some(state);
    }
    let (all, batches) = alone(&ds);
    assert!(digest == all && batches > 2, "{batches}");
}

#[test]
fn a_batch_that_does_not_divide_is_named() {
    let ds = documents(1, 100).map(|e| Element::new().with("t", Array::scalar(first(&e)))).batch(BATCH);
    let mut loader = ds.loader().part(Part::of(1, 24)).build().unwrap();
    assert!(loader.by_ref().take(2).all(|batch| batch.is_ok_and(|batch| batch.num_rows().unwrap() == 2)));
    let error = loader.next().unwrap().unwrap_err();
    assert_eq!(error.message(), "batch 2, part 1/24: a global batch of 4 rows does not divide among 24 parts");
    assert!(error.help_text().unwrap().contains("drop it or pad it"));
    assert_eq!(loader.state().unwrap().delivered, 2);
}

#[test]
fn what_is_no_part_and_what_is_no_batch_are_refused() {
    let error = documents(1, 9).batch(3).loader().part(Part::of(3, 3)).build().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Config, "there is no part 3/3"));
    let scalars = documents(1, 9).map(|_| Element::new().with("x", Array::scalar(1)));
    let error = scalars.loader().part(Part::of(0, 2)).build().unwrap().next().unwrap().unwrap_err();
    assert!(error.message().contains("has no leading dimension"), "{error}");
    let mut loader = documents(1, 9).batch(3).loader().build().unwrap();
    assert!(loader.back(1).unwrap_err().message().contains("only 0 are kept"));
    assert!(loader.repart(Part::of(5, 2)).is_err());
}

/// Also where the pass is asked for by itself, before anything was checked.
#[test]
fn a_batch_of_no_rows_has_no_part() {
    let ds = Range::new(0, 9).to_iter().batch(0);
    assert!(ds.iter_part(&Runtime::inline(), &Part::of(0, 2)).unwrap().is_none());
}

/// Where streams can be read in order alone, the report says so, whatever stands behind them.
#[test]
fn streams_that_every_host_reads_are_named() {
    let streams = || (0..4).map(|seed| documents(seed, 50));
    let packed = WindowPackOptions::new(RowSpec::new([("tokens", 8)])).window(40);
    for (ds, named) in [
        (lanes(streams(), 2).batch(4).boxed(), "lanes (stage 16)"),
        (
            mix([documents(9, 9), lanes(streams(), 2).boxed()]).window_pack(packed.clone()).batch(4).boxed(),
            "lanes (stage 20)",
        ),
        (documents(1, 50).window_pack(packed).batch(4).boxed(), "window_pack (stage 4)"),
    ] {
        let told = ds.loader().part(Part::of(0, 2)).build().unwrap().report().to_string().replace("\n      ", " ");
        let in_order = format!("takes its rows: {named} is read in order");
        assert_eq!(told.contains(&in_order), named.starts_with("lanes"), "{told}");
        assert!(
            told.contains(named) && (named.starts_with("window") || told.contains("`gristmill convert`")),
            "{told}"
        );
    }
}

/// Rows that a sharding holds may be any.
#[test]
fn listed_rows_add_up_too() {
    let ds = Pipeline::new(&[Change::Filter], Rows::Window).build();
    let (expected, _) = alone(&ds);
    let parts = [0, 1, 2].map(|start| Part::listed((start..BATCH).step_by(3).rev(), BATCH).unwrap());
    let mut digest = RowDigest::default();
    for part in parts {
        let mut host = Host::start(&ds, part, Executor::Threads(1), None);
        while host.step() {}
        digest.add(host.digest);
    }
    assert_eq!(digest, expected);
}

/// A balanced deal delivers what it says, also where indices alone would say which rows are a part's if it were even.
#[test]
fn rows_are_delivered_as_they_are_dealt() {
    for rows in [Rows::Index, Rows::BestFit] {
        let pipeline = Pipeline { padded: true, ..Pipeline::new(&[], rows) };
        let (ds, cost) = (pipeline.build(), pipeline.cost());
        for executor in [Executor::Inline, Executor::Threads(2)] {
            let mut hosts = [Dealing::Balanced, Dealing::Shadow]
                .map(|dealing| Host::dealt(&ds, Part::of(1, 4), pipeline.deal(dealing, 4), executor, None).loader);
            for whole in ds.clone().loader().build().unwrap().map(Result::unwrap) {
                let (costs, _) = cost.of_rows(&whole).unwrap();
                let balanced = deal_rows(&costs, 4, 2).unwrap().rank(1).to_vec();
                for (host, expected) in hosts.iter_mut().zip([balanced, (12..24).collect()]) {
                    assert_eq!(host.next().unwrap().unwrap(), whole.rows_at(&expected).unwrap());
                    assert!(host.rows().unwrap().iter().eq(expected));
                }
            }
            let text = hosts.map(|mut host| host.report().to_string().replace("\n      ", " "));
            assert!(
                text[0].contains("note: a balanced deal saves") && text[1].contains("deal would save"),
                "{}",
                text[1]
            );
        }
    }
}

#[test]
fn balance_is_refused_where_it_cannot_be() {
    let balanced = |cost| Deal::Balanced(Balance::new(cost));
    let ds = || documents(1, 96).map(|e| Element::new().with("t", Array::scalar(first(&e)))).batch(BATCH);
    let error = ds().loader().deal(balanced(Cost::new(1, 1))).build().unwrap_err();
    assert!(error.message().contains("rows cannot be dealt among ranks without a part"), "{error}");
    let listed = || Part::listed([0, 1], BATCH).unwrap();
    assert!(ds().loader().part(listed()).deal(balanced(Cost::new(1, 1))).build().is_err());
    let mut host = ds().loader().part(Part::of(1, 2)).deal(balanced(Cost::column("t"))).build().unwrap();
    assert!(host.repart(listed()).unwrap_err().message().contains("lists its rows"));
    assert_eq!((host.next().unwrap().unwrap().num_rows().unwrap(), host.part()), (24, Some(&Part::of(1, 2))));
    let mut host = ds().loader().part(Part::of(1, 2)).deal(balanced(Cost::new(1, 1))).build().unwrap();
    let error = host.next().unwrap().unwrap_err();
    assert!(error.message().starts_with("batch 0, part 1/2: no column of a batch ends in segment_ids"), "{error}");
}

/// Of the elements of other hosts none is evaluated, where indices alone say whose they are; of a last batch that is not whole all are.
#[test]
fn one_of_many_hosts_evaluates_its_own_rows_alone() {
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let calls = Arc::new(AtomicU64::new(0));
        let ds = || {
            let calls = calls.clone();
            let counted = Range::new(0, 64 * 100 + 10).shuffle(5).map(move |x| {
                calls.fetch_add(1, Ordering::Relaxed);
                Element::new().with("t", Array::scalar(x))
            });
            counted.to_iter().batch_with(64, Remainder::Drop).boxed()
        };
        let mut host = Host::start(&ds(), Part::of(17, 64), executor, None);
        while host.step() {}
        assert_eq!(host.loader.delivered(), 100);
        // The ten that are left over make no batch.
        let evaluated = calls.swap(0, Ordering::Relaxed);
        assert!((100..=110).contains(&evaluated), "{evaluated}");
        let mut sum = RowDigest::default();
        for index in 0..64 {
            let mut host = Host::start(&ds(), Part::of(index, 64), executor, None);
            while host.step() {}
            sum.add(host.digest);
        }
        assert_eq!(sum, alone(&ds()).0);
    }
}

#[test]
fn an_error_names_the_element_of_the_pipeline() {
    let bad = |x: i64| if x == 77 { Err(Error::data("bad")) } else { Ok(x) };
    for executor in [Executor::Inline, Executor::Threads(2)] {
        let of_part = |index| {
            Range::new(0, 1000)
                .try_map(bad)
                .to_iter()
                .batch(10)
                .loader()
                .executor(executor)
                .part(Part::of(index, 5))
                .build()
                .unwrap()
        };
        let mut loader = of_part(3);
        assert_eq!(loader.by_ref().take(7).filter_map(Result::ok).count(), 7);
        let error = loader.next().unwrap().unwrap_err();
        assert_eq!((error.element_index(), loader.state().unwrap().delivered), (Some(77), 7));
        assert_eq!(of_part(0).filter_map(Result::ok).count(), 100);
    }
}

/// A run of the index plan of which every epoch is longer than any machine lives.
#[test]
fn a_trillion_elements_are_dealt_in_no_time() {
    let ds = || Range::new(0, 1_000_000_000_000).shuffle(9).to_iter().batch(512);
    let checkpoint = |delivered: u64| {
        let mut state = ds().loader().build().unwrap().state().unwrap();
        state.state["next_index"] = (delivered * 512).into();
        Checkpoint { delivered, ..state }
    };
    let at = checkpoint(1_900_000_000);
    let whole = ds().loader().resume(at.clone()).build().unwrap().next().unwrap().unwrap();
    let part = ds().loader().resume(at).part(Part::of(63, 64)).build().unwrap().next().unwrap().unwrap();
    assert_eq!(part, whole[504..]);
}

/// A stage that says that it drops nothing, and does.
struct Liar<D>(D, Vec<u64>);

impl<D: MapDataset> Stage for Liar<D> {
    fn node(&self) -> Node<'_> {
        Node::new("liar", Role::Elementwise)
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.0]
    }
}

impl<D: MapDataset> MapDataset for Liar<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.0.len()
    }
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        if self.1.contains(&index) { Ok(None) } else { self.0.get(index, cx) }
    }
}

/// Where indices alone say whose an element is, one that is left out is an error to whoever has it, and never other rows. Row 3 of the second
/// batch of ten, and one of the last.
#[test]
fn an_element_that_is_left_out_is_an_error_and_no_other_row() {
    for executor in [Executor::Inline, Executor::Threads(2)] {
        for (missing, batches) in [(13, 1), (99, 9)] {
            for index in 0..5 {
                let ds = Liar(Range::new(0, 100), vec![missing]).to_iter().batch(10);
                let mut loader = ds.loader().executor(executor).part(Part::of(index, 5)).build().unwrap();
                let seen: Vec<_> = loader.by_ref().map_while(Result::ok).collect();
                let own = missing as usize % 10 / 2 == index;
                assert_eq!(seen.len(), if own { batches } else { 10 }, "part {index}");
                for (number, batch) in seen.iter().enumerate() {
                    let first = 10 * number as i64 + 2 * index as i64;
                    assert_eq!(*batch, [first, first + 1]);
                }
            }
        }
    }
}
