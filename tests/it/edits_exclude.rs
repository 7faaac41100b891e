//! Edits exclude records from their batch on, as a filter would, and change no batch before.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use gristmill::dataset::iter::mix;
use gristmill::dataset::map::Range;
use gristmill::dataset::{AtEnd, Remainder};
use gristmill::keys::Recompute;
use gristmill::ledger::{RunLog, audit, which};
use gristmill::pack::{BinPackOptions, ConcatPackOptions, OverLong, RowSpec, WindowPackOptions};
use gristmill::part::Part;
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, Checkpoint, Edits, Element, ErrorKind};
use proptest::prelude::*;

use crate::edits_segments::{How, all, segment};

/// Rows of a batch.
const ROWS: usize = 4;
/// Numbers of the elements that a pass has read, in order.
type Log = Arc<Mutex<Vec<i32>>>;

/// A change of a run.
#[derive(Clone, Debug)]
enum Change {
    Skip(u64),
    Exclude(BTreeSet<u64>),
    Mix(u8, u8),
}

/// Changes in the order of their batches. Other records are excluded by each change.
fn changes() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let change = prop_oneof![
        1 => (1u64..4).prop_map(Change::Skip),
        4 => prop::collection::btree_set(0u64..60, 1..30).prop_map(Change::Exclude),
        1 => (1u8..4, 1u8..4).prop_map(|(a, b)| Change::Mix(a, b)),
    ];
    prop::collection::vec((0u64..7, change), 1..5).prop_map(|changes| {
        let mut at = 0;
        let place = |(gap, change)| {
            at += gap;
            (at, change)
        };
        changes.into_iter().map(place).collect()
    })
}

/// A pipeline of documents.
#[derive(Clone, Debug)]
struct Case {
    is_mixed: bool,
    at_end: AtEnd,
    before: u8,
    later: u8,
    packs: u8,
    maps: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let ends = prop::sample::select(vec![AtEnd::Stop, AtEnd::Redistribute]);
    (any::<bool>(), ends, 0u8..4, 0u8..5, 0u8..5, any::<bool>()).prop_map(
        |(is_mixed, at_end, before, later, packs, maps)| Case { is_mixed, at_end, before, later, packs, maps },
    )
}

fn first(element: &Element) -> i32 {
    element.array("t").unwrap().as_slice::<i32>().unwrap()[0]
}

fn document(which: i64, x: i64) -> Element {
    let cells = vec![(1000 * which + x) as i32; 1 + (x * 5 + which).rem_euclid(7) as usize];
    Element::new().with("t", Array::from_vec(cells))
}

impl Case {
    /// Returns documents of a source, in three epochs. The first cell of a document is its source and record.
    fn documents(&self, which: i64) -> BoxIter<Element> {
        let all = Range::new(0, 60).shuffle(which as u32 + 1).repeat(3);
        let before = self.before;
        match before {
            0 => all.map(move |x| document(which, x)).to_iter().boxed(),
            1 => all.map(move |x| document(which, x)).filter(|e| first(e) % 4 != 1).to_iter().boxed(),
            2 => all.window_shuffle(9, 2).slice(3..).map(move |x| document(which, x)).to_iter().boxed(),
            _ => all.to_iter().flat_map(move |x| vec![document(which, x); (x % 3) as usize]).boxed(),
        }
    }

    /// Returns the documents of the run, as they are read. `log` receives them.
    fn read(&self, log: Option<&Log>) -> BoxIter<Element> {
        let log = log.cloned();
        let read = match self.is_mixed {
            false => self.documents(0),
            true => mix((0..2).map(|which| self.documents(which)))
                .weights([2.0, 1.0])
                .named(["web", "code"])
                .at_end(self.at_end)
                .boxed(),
        };
        match log {
            None => read,
            Some(log) => read
                .map(move |element| {
                    log.lock().unwrap().push(first(&element));
                    element
                })
                .boxed(),
        }
    }

    fn build(&self, log: Option<&Log>) -> BoxIter<Element> {
        let read = self.read(log);
        // Elements that take a while are evaluated ahead, in chunks.
        let slow = |element: Element| {
            (0..1000).for_each(|_| std::hint::spin_loop());
            element
        };
        let later = match self.later {
            0 => read,
            1 => read.map(slow).boxed(),
            2 => read.window_shuffle(7, 3).boxed(),
            3 => read.flat_map(|element| vec![element.clone(), element]).boxed(),
            _ => read.filter(|element| element.array("t").unwrap().shape()[0] != 3).boxed(),
        };
        let rows = RowSpec::new([("t", 8)]);
        let packed = match self.packs {
            0 => later.window_pack(WindowPackOptions::new(rows).window(11)).boxed(),
            1 => later.first_fit_pack(BinPackOptions::new(rows, 5).over_long(OverLong::Split)).boxed(),
            2 => later.concat_then_split_pack(ConcatPackOptions::new(rows)).boxed(),
            _ => later.map(|element| Element::new().with("t", Array::scalar(first(&element)))).boxed(),
        };
        let batches = packed.batch_with(ROWS, Remainder::Drop);
        if self.maps { batches.map(|batch| batch).boxed() } else { batches.boxed() }
    }

    fn edits(&self, changes: &[(u64, Change)]) -> Edits {
        changes.iter().fold(Edits::default(), |log, (at, change)| match change {
            Change::Skip(batches) => log.skip(*at, *batches),
            Change::Exclude(records) => log.exclude(*at, records.iter().map(|record| ("range", *record))),
            Change::Mix(web, code) if self.is_mixed => {
                log.mix(*at, [("web", f64::from(*web)), ("code", f64::from(*code))])
            }
            Change::Mix(..) => log.skip(*at, 1),
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(12), ..ProptestConfig::default() })]

    /// Runs with any threads, parts, keys and resumes equal one run on one thread. An edit changes no batch before it.
    #[test]
    fn an_exclusion_changes_no_batch_before_it(
        case in cases(),
        changes in changes(),
        segments in prop::collection::vec((0u64..9, 1..3usize, 0..3usize, any::<bool>()), 1..5)
    ) {
        let expected = all(case.build(None).loader().edits(case.edits(&changes)));
        if let Some((last, earlier)) = changes.split_last() {
            let before = all(case.build(None).loader().edits(case.edits(earlier)));
            let count = (last.0 as usize).min(before.len()).min(expected.len());
            prop_assert_eq!(&before[..count], &expected[..count]);
        }
        let mut state = None::<Checkpoint>;
        for (count, parts, threads, is_planned) in segments {
            let (build, how) = (|| case.build(None).loader().edits(case.edits(&changes)), How { parts, threads, is_planned });
            let rows = |number| expected.get(number as usize).cloned();
            state = Some(segment(build, how, state.as_ref(), count, rows, &changes)?);
        }
    }

    /// Each source yields its documents without the records that are excluded at the position up to which it was read.
    #[test]
    fn excluded_records_are_filtered_from_the_position_of_the_edit_on(case in cases(), changes in changes()) {
        let (log, mut read_before) = (Log::default(), Vec::new());
        let mut loader = case.build(Some(&log)).loader().edits(case.edits(&changes)).build()?;
        loop {
            read_before.push(log.lock().unwrap().clone());
            if loader.next().transpose()?.is_none() {
                break;
            }
        }
        let read = log.lock().unwrap().clone();
        for which in 0..if case.is_mixed { 2 } else { 1 } {
            let of = |ids: &[i32]| ids.iter().filter(|id| **id / 1000 == which).copied().collect::<Vec<_>>();
            let (mut excluded, mut from) = (BTreeSet::new(), Vec::new());
            for (at, change) in &changes {
                // Edits after the end change nothing.
                if let (Change::Exclude(records), Some(before)) = (change, read_before.get(*at as usize)) {
                    from.push((of(before).len(), records.clone()));
                }
            }
            let mut expected = Vec::new();
            for element in case.documents(i64::from(which)).loader().build()? {
                let id = first(&element?);
                from.retain(|(count, records)| {
                    let begins = *count <= expected.len();
                    if begins {
                        excluded.extend(records.iter().copied());
                    }
                    !begins
                });
                // Later pieces of a document that was read before the edit stay.
                let is_begun = case.before == 3 && expected.last() == Some(&id) && id % 3 == 2;
                let is_later = is_begun && expected.iter().rev().take_while(|last| **last == id).count() % 2 == 1;
                if is_later || !excluded.contains(&((id % 1000) as u64)) {
                    expected.push(id);
                }
            }
            let read = of(&read);
            prop_assert_eq!(&read[..], &expected[..read.len().min(expected.len())]);
        }
    }

    /// Records may be excluded in a run whose states were written without edits.
    #[test]
    fn a_run_without_edits_continues_with_exclusions(case in cases(), changes in changes(), after in 1u64..12, threads in 0..3usize) {
        let changes: Vec<_> = changes.into_iter().map(|(at, change)| (at + after + 1, change)).collect();
        let expected = all(case.build(None).loader().edits(case.edits(&changes)));
        let mut loader = case.build(None).loader().build()?;
        loader.by_ref().take(after as usize).for_each(|batch| drop(batch.unwrap()));
        let state = loader.state()?;
        prop_assert!(state.edited_mix.is_none());
        let loader = case.build(None).loader().edits(case.edits(&changes)).resume(state.clone());
        let loader = if threads > 0 { loader.threads(threads) } else { loader };
        prop_assert_eq!(&all(loader)[..], &expected[(state.delivered as usize).min(expected.len())..]);
    }
}

#[test]
fn records_are_left_out_and_others_take_their_places() {
    let batches = || Range::new(0, 20).shuffle(1).to_iter().batch(4).boxed();
    let plain: Vec<Vec<i64>> = batches().loader().build().unwrap().map(Result::unwrap).collect();
    let out = [plain[0][1], plain[1][2], plain[3][0]];
    let edits = Edits::default().exclude(1, out.map(|record| ("range", record as u64)));
    let edited: Vec<Vec<i64>> = batches().loader().edits(edits.clone()).build().unwrap().map(Result::unwrap).collect();
    assert_eq!(edited[0], plain[0]);
    let left: Vec<i64> = plain[1..].concat().into_iter().filter(|x| !out.contains(x)).collect();
    assert_eq!(edited[1..].concat(), left);
    // The part of a host, and a state, which lists the edit.
    for index in 0..2 {
        let mut loader = batches().loader().edits(edits.clone()).part(Part::of(index, 2)).threads(2).build().unwrap();
        let rows: Vec<Vec<i64>> = loader.by_ref().take(3).map(Result::unwrap).collect();
        assert_eq!(rows, edited[..3].iter().map(|rows| rows[2 * index..2 * index + 2].to_vec()).collect::<Vec<_>>());
        let state = loader.state().unwrap();
        assert!(state.edits[0].starts_with("at 1: exclude range "), "{:?}", state.edits);
        let progress = state.edited_mix.unwrap();
        assert_eq!((progress.excluded, progress.borders), (vec![vec![4]], vec![14]));
    }
}

#[test]
fn an_exclusion_that_fits_no_record_names_the_sources() {
    let refused = |ds: BoxIter<Vec<i64>>, file: &str, record: u64| {
        let error = ds.loader().edits(Edits::default().exclude(3, [(file, record)])).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        format!("{}: {}", error.message(), error.help_text().unwrap_or_default())
    };
    let text = refused(Range::new(0, 9).to_iter().batch(2).boxed(), "range", 9);
    assert_eq!(text, "`exclude`: no source of the pipeline has record 9 of range: the sources are range (stage 0)");
    let again = refused(Range::new(0, 9).to_iter().repeat(2).batch(2).boxed(), "range", 1);
    assert!(again.contains("repeat (stage 2), which reads its parents again"), "{again}");
    let batched = refused(Range::new(0, 9).batch(2).to_iter().boxed(), "range", 1);
    assert!(batched.contains("elements before stage 2 have several records"), "{batched}");
    let error = Range::new(0, 9).to_iter().batch(2).loader().edits(Edits::default().exclude(3, [("", 0); 0])).build();
    assert_eq!(error.unwrap_err().message(), "edit 0: `exclude` names no record");
}

#[test]
fn a_run_log_contains_the_excluded_records() {
    let folder = tempfile::tempdir().unwrap();
    for packs in [0, 3] {
        let case = Case { is_mixed: packs == 0, at_end: AtEnd::Stop, before: 0, later: 2, packs, maps: false };
        let path = folder.path().join(format!("{packs}.ledger"));
        let edits = Edits::default().exclude(3, (0..40).step_by(3).map(|record| ("range", record)));
        let build = || case.build(None);
        let mut loader = build().loader().edits(edits).keys(Recompute).ledger(&path).build().unwrap();
        let mut lineages = Vec::new();
        while loader.next().transpose().unwrap().is_some() {
            lineages.push(loader.lineage().unwrap());
        }
        let text = &loader.state().unwrap().edits[0];
        assert!(text.starts_with("at 3: exclude 14 records (xxh3 "), "{text}");
        drop(loader);
        let log = RunLog::open(&path).unwrap();
        for (step, lineage) in (0..).zip(&lineages) {
            assert_eq!(&which(&build(), &log, step, None).unwrap().rows, lineage, "batch {step}");
        }
        audit(&build(), &log, None).unwrap();
    }
}
