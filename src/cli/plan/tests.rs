//! The figures of a plan are those of the run.

use proptest::prelude::*;

use super::*;
use crate::dataset::iter::mix;
use crate::dataset::map::{Mix, Source};
use crate::dataset::{AtEnd, BoxIter, Remainder};
use crate::pack::{BinPackOptions, ConcatPackOptions, OverLong, Packing, RowSpec, WindowPackOptions};
use crate::report::TokenCount;
use crate::{Array, IterDatasetExt, Load, MapDatasetExt};

/// Cells of a row.
const LENGTH: usize = 12;
/// Value of the first token of a document of component 0. Further tokens are smaller.
const FIRST: i32 = 100;

/// Documents of these lengths of component `which`. The values of tokens contain the component.
fn source(which: usize, lens: &[usize]) -> Source<Vec<Element>> {
    let tokens = |len: &usize| {
        let mut tokens = vec![which as i32 + 1; *len];
        tokens[0] += FIRST;
        Element::new().with("tokens", Array::from_vec(tokens))
    };
    Source::new(lens.iter().map(tokens).collect())
}

fn component(which: usize, lens: &[usize], order: usize) -> BoxIter<Element> {
    let keep = |element: &Element| !element.array("tokens").unwrap().size().is_multiple_of(5);
    match order {
        0 => source(which, lens).to_iter().boxed(),
        1 => source(which, lens).shuffle(7).repeat(2).to_iter().boxed(),
        2 => source(which, lens).filter(keep).shuffle(3).to_iter().boxed(),
        _ => source(which, lens).to_iter().filter(keep).boxed(),
    }
}

/// A random pipeline.
#[derive(Clone, Debug)]
struct Case {
    lens: Vec<Vec<usize>>,
    orders: Vec<usize>,
    how: usize,
    at_end: usize,
    pack: usize,
    batch: usize,
    drop: bool,
    skip: u64,
    most: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    // A short document is never dropped, so that every component yields an element.
    let lens = prop::collection::vec(1usize..20, 0..40).prop_map(|lens| [lens, vec![1]].concat());
    let lens = prop::collection::vec(lens, 1..4);
    let orders = prop::collection::vec(0usize..4, 3);
    (lens, orders, 0usize..4, 0usize..3, 0usize..6, 1usize..5, any::<bool>(), 0u64..3, 1u64..30).prop_map(
        |(lens, orders, how, at_end, pack, batch, drop, skip, most)| Case {
            lens,
            orders,
            how,
            at_end,
            pack,
            batch,
            drop,
            skip,
            most,
        },
    )
}

impl Case {
    fn elements(&self) -> BoxIter<Element> {
        let streams = || {
            let parts = self.lens.iter().zip(&self.orders).enumerate();
            let parts: Vec<_> = parts.map(|(which, (lens, order))| component(which, lens, *order)).collect();
            mix(parts).at_end([AtEnd::Stop, AtEnd::Repeat, AtEnd::Redistribute][self.at_end])
        };
        match self.how {
            0 => streams().boxed(),
            1 => streams().by_tokens("tokens").boxed(),
            2 => {
                let parts = self.lens.iter().enumerate().map(|(which, lens)| source(which, lens).shuffle(which as u32));
                Mix::new(parts.map(MapDatasetExt::boxed).collect()).to_iter().boxed()
            }
            _ => component(0, &self.lens[0], self.orders[0]),
        }
    }

    fn build(&self) -> BoxIter<Element> {
        let (rows, elements) = (RowSpec::new([("tokens", LENGTH)]), self.elements());
        let bins = BinPackOptions::new(rows.clone(), 3).over_long(OverLong::Split);
        let window = |policy| WindowPackOptions::new(rows.clone()).window(9).over_long(policy);
        let packed = match self.pack {
            0 => elements.first_fit_pack(bins).boxed(),
            1 => elements.best_fit_pack(bins.over_long(OverLong::Drop)).boxed(),
            2 => elements.window_pack(window(OverLong::Split)).boxed(),
            3 => elements.window_pack(window(OverLong::Drop)).map(|row| row).boxed(),
            4 => elements.concat_then_split_pack(ConcatPackOptions::new(rows)).boxed(),
            _ => {
                elements.concat_then_split_pack(ConcatPackOptions::new(rows).split_full_length_features(false)).boxed()
            }
        };
        let remainder = if self.drop { Remainder::Drop } else { Remainder::Keep };
        packed.batch_with(self.batch, remainder).skip(self.skip).limit(self.most).boxed()
    }
}

fn settings(parts: usize) -> Settings {
    let balance = Balance::new(Cost::new(1, 1));
    Settings { batches: None, parts, balance, price: None, edits: Edits::default() }
}

fn planned(dataset: &BoxIter<Element>) -> Figures {
    plan(dataset, &settings(1), KeysOfPlan::default(), |_| {}).unwrap()
}

/// What a run has counted: batches, tokens, cells, and the documents and tokens of each component.
type Run = (u64, u64, u64, Vec<(u64, u64)>);

fn run(dataset: &BoxIter<Element>, components: usize, edits: Edits) -> (Run, crate::Report) {
    let mut loader = dataset.clone().loader().edits(edits).build().unwrap();
    let (mut count, mut of) = (TokenCount::default(), vec![(0, 0); components]);
    for batch in loader.by_ref() {
        let batch = batch.unwrap();
        count.add(&batch);
        let cells = batch.array("tokens").unwrap().as_slice::<i32>().unwrap().to_vec();
        for token in cells.into_iter().filter(|token| *token > 0) {
            let (documents, tokens) = &mut of[((token - 1) % FIRST) as usize];
            *documents += u64::from(token > FIRST);
            *tokens += 1;
        }
    }
    ((loader.delivered(), count.real, count.cells, of), loader.report())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// To the token, in total and for each source; and the counts of mixes and of packing if the data ends.
    #[test]
    fn a_plan_counts_what_the_run_counts(case in cases(), skipped in prop::option::of((0..9_u64, 1..4_u64))) {
        let dataset = case.build();
        let edits = skipped.map_or_else(Edits::default, |(at, count)| Edits::default().skip(at, count));
        let settings = Settings { edits: edits.clone(), ..settings(1) };
        let figures = plan(&dataset, &settings, KeysOfPlan::default(), |_| {}).unwrap();
        let ((batches, tokens, cells, of), report) = run(&dataset, case.lens.len(), edits);
        prop_assert_eq!(figures.amounts.batches, batches);
        prop_assert_eq!((figures.amounts.tokens.unwrap_or(0), figures.amounts.padding.unwrap_or(0)), (tokens, cells - tokens));
        let sources = figures.sources.iter().map(|source| (source.documents, source.tokens.unwrap_or(0)));
        let sources: Vec<_> = sources.collect();
        prop_assert_eq!(&sources[..], &of[..sources.len()]);
        // A limit ends the run before packing has read and counted everything.
        if skipped.is_none() && batches < case.most && case.skip == 0 {
            let components = report.components.iter().filter(|component| component.epochs.is_some());
            prop_assert_eq!(&figures.components, &components.cloned().collect::<Vec<_>>());
            prop_assert_eq!(&figures.notes, &report.notes);
        }
    }
}

/// 400 documents each of two components: `a` of 1 token, and `b` of 10.
fn one_to_ten() -> BoxIter<Element> {
    let parts = [component(0, &[1; 400], 0), component(1, &[10; 100], 1)];
    let mixed = mix(parts).at_end(AtEnd::Repeat).named(["a", "b"]);
    mixed.concat_then_split_pack(ConcatPackOptions::new(RowSpec::new([("tokens", 11)]))).batch(8).limit(50).boxed()
}

#[test]
fn documents_in_equal_numbers_are_tokens_in_unequal_numbers() {
    let figures = plan(&one_to_ten(), &settings(4), KeysOfPlan::default(), |_| {}).unwrap();
    assert_eq!(
        (figures.amounts.batches, figures.amounts.rows, figures.amounts.tokens, figures.amounts.padding),
        (50, 400, Some(4400), Some(0))
    );
    let [a, b] = figures.sources.as_slice() else { panic!("{figures:?}") };
    assert_eq!((&*a.name, a.documents, a.tokens, a.records), ("a", 400, Some(400), 400));
    assert_eq!((&*b.name, b.documents, b.tokens, b.records), ("b", 400, Some(4000), 100));
    assert!((a.share - 0.5).abs() < 1e-9 && (b.token_share.unwrap() - 10.0 / 11.0).abs() < 1e-9);
    assert_eq!((a.epochs, b.epochs), (1.0, 4.0));
    // 100 documents of `b` are in the first 100 rows.
    assert_eq!((a.first_repeat, b.first_repeat), (None, Some(12)));
    let warning =
        "a is 50.0 % of the documents and 9.1 % of the tokens; a mix of streams counts tokens with `by: tokens`";
    assert_eq!(figures.warnings, [warning]);
    let text = figures.text();
    assert!(text.contains(&format!("! {warning}")) || text.contains("! a is 50.0 %"), "{text}");
    let straggler = figures.straggler.unwrap();
    assert!(straggler.even >= straggler.balanced && straggler.balanced >= 1.0, "{straggler:?}");
    assert_eq!(figures.components[1].epochs, Some(1));
}

#[test]
fn one_source_at_a_time_is_the_longest_run() {
    let parts = [component(0, &[10; 30], 0), component(1, &[10; 7], 0)];
    let chained = mix(parts).weights([30.0, 7.0]).at_end(AtEnd::Redistribute);
    let ends = chained.first_fit_pack(BinPackOptions::new(RowSpec::new([("tokens", 10)]), 1)).batch(1).boxed();
    let figures = planned(&ends);
    assert_eq!((figures.amounts.batches, figures.amounts.has_ended, figures.amounts.split), (37, true, 0));
    let run = figures.longest_run.unwrap();
    assert!(run.rows >= 4 && run.source == "0", "{run:?}");
    assert_eq!(figures.sources.iter().map(|source| source.end).collect::<Vec<_>>(), [Some(35), Some(36)]);
}

#[test]
fn a_pipeline_whose_rows_depend_on_data_is_refused_with_the_stage() {
    let lens = [3; 20];
    let elements = || component(0, &lens, 0);
    let whole = |ds: BoxIter<Element>| plan(&ds, &settings(1), KeysOfPlan::default(), |_| {}).unwrap_err();
    let error = whole(elements());
    assert!(error.message().contains("it does not end in `batch`"), "{error}");
    let late = elements().concat_then_split_pack(ConcatPackOptions::new(RowSpec::new([("tokens", 4)])));
    let error = whole(late.filter(|_| true).batch(2).boxed());
    assert!(error.message().contains("filter (stage 3)") && error.help_text().is_some(), "{error}");
    let parts = plan(&one_to_ten(), &settings(3), KeysOfPlan::default(), |_| {}).unwrap_err();
    assert!(parts.message().contains("does not divide among 3 ranks"), "{parts}");
}

#[test]
fn an_estimate_is_within_its_error() {
    let lens = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1 + ((state >> 40) % 9) as usize * (1 + ((state >> 33) % 5) as usize)
        };
        (0..6000).map(|_| next()).collect::<Vec<_>>()
    };
    let (mut within, mut cases) = (0, 0);
    for seed in 0..25 {
        let parts = [component(0, &lens(2 * seed), 0), component(1, &lens(2 * seed + 1), 0)];
        let packed = mix(parts).concat_then_split_pack(ConcatPackOptions::new(RowSpec::new([("tokens", 64)])));
        let dataset = packed.batch(8).limit(200).boxed();
        let exact = planned(&dataset);
        let keys = KeysOfPlan::default().of_sample(0.17, seed);
        let estimate = plan(&dataset, &settings(1), keys, |_| {}).unwrap();
        assert_eq!((exact.error, exact.amounts.batches), (None, estimate.amounts.batches));
        for (exact, estimate) in exact.sources.iter().zip(&estimate.sources) {
            let error = estimate.error.unwrap();
            assert!(error > 0.0 && error < 0.2, "{error}");
            let is_within = |exact: u64, estimate: u64| estimate.abs_diff(exact) as f64 <= error * exact as f64;
            within += u32::from(is_within(exact.documents, estimate.documents));
            within += u32::from(is_within(exact.tokens.unwrap(), estimate.tokens.unwrap()));
            cases += 2;
        }
    }
    assert!(20 * within >= 19 * cases, "{within} of {cases}");
}

#[test]
fn conditions_name_figures_of_the_run_and_of_sources() {
    let figures = plan(&one_to_ten(), &settings(4), KeysOfPlan::default(), |_| {}).unwrap();
    let met = |text: &str| text.parse::<Condition>().unwrap().met_by(&figures);
    assert_eq!(met("epochs.b > 3.5").unwrap(), [("epochs.b".to_owned(), 4.0)]);
    assert_eq!(met("epochs >= 100%").unwrap().len(), 2);
    assert_eq!(met("tokens == 4400").unwrap(), [("tokens".to_owned(), 4400.0)]);
    for never in ["padding > 0%", "epochs.b > 4", "first_repeat.a < 99", "price > 0", "batches != 50", "split.x"] {
        assert!(never.parse::<Condition>().map_or(true, |one| one.met_by(&figures).unwrap().is_empty()), "{never}");
    }
    assert!(met("epochs.c > 1").unwrap_err().help_text().unwrap().contains("a, b"));
    for (wrong, words) in [
        ("epoch > 4", "did you mean `epochs`?"),
        ("padding.a > 4", "of the whole run"),
        ("epochs > x", "is not a number"),
        ("epochs", "a condition is"),
        ("epochs = 4", "a condition is"),
    ] {
        let error = wrong.parse::<Condition>().unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_page_and_a_comparison_have_every_source() {
    let planned = |name: &str| Planned {
        pipeline: name.into(),
        figures: plan(&one_to_ten(), &settings(4), KeysOfPlan::default(), |_| {}).unwrap(),
        failed: Vec::new(),
    };
    let plans = [planned("old.yaml"), planned("new.yaml")];
    let page = page::page(&plans);
    for words in ["Shares of the sources: new.yaml", "share by tokens", "b: first repeat", "old.yaml", "Warnings"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let table = page::table(&plans[0], &plans[1]);
    assert!(table.contains("a: of tokens") && table.contains("! new.yaml: a is 50.0 %"), "{table}");
}
