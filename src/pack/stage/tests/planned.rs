//! Plans by rows: many stand-ins at a time make the rows, and the states, of a pass over the elements.

use std::sync::Arc;

use super::*;
use crate::dataset::map::Mix;
use crate::dataset::plan::{PlanOf, PlannedRows, Planning, Recipe};
use crate::keys::Recompute;

/// Elements of these lengths, some of which are dropped, bad or read again.
fn prefix(which: usize, lens: &[usize]) -> BoxIter<Element> {
    let element = |(id, &len): (usize, &usize)| {
        Element::new().with("tokens", Array::from_vec(vec![id as i32; len])).with("id", Array::scalar(id as i64))
    };
    let elements: Vec<Element> = lens.iter().enumerate().map(element).collect();
    let source = || Source::new(elements.clone());
    let id = |element: &Element| element.array("id").unwrap().as_slice::<i64>().unwrap()[0];
    let bad = move |element: Element| if id(&element) % 7 == 3 { Err(Error::data("bad")) } else { Ok(element) };
    match which {
        0 => source().to_iter().boxed(),
        1 => source().shuffle(3).repeat(2).to_iter().filter(move |element| id(element) % 3 != 0).boxed(),
        2 => source().to_iter().try_map(bad).on_bad_record(BadRecords::skip()).boxed(),
        3 => Mix::new(vec![source().shuffle(5).boxed(), source().shuffle(9).boxed()]).to_iter().boxed(),
        // Nearly all of them, so that whole chunks yield nothing.
        _ => source().repeat(9).to_iter().filter(move |element| id(element) % 40 == 1).boxed(),
    }
}
const PREFIXES: usize = 5;

pub(super) fn packed(which: usize, elements: BoxIter<Element>, size: usize) -> BoxIter<Element> {
    let rows = rows_of(12).meta_features(["id"]);
    let bins = BinPackOptions::new(rows.clone(), size).seed(7).over_long(OverLong::Split);
    match which {
        0 => elements.first_fit_pack(bins).boxed(),
        1 => elements.best_fit_pack(bins.max_sequences_per_bin(3)).boxed(),
        2 => elements.window_pack(WindowPackOptions::new(rows).window(size).over_long(OverLong::Split)).boxed(),
        3 => elements.concat_then_split_pack(ConcatPackOptions::new(rows_of(12))).boxed(),
        4 => elements
            .concat_then_split_pack(ConcatPackOptions::new(rows_of(12)).split_full_length_features(false))
            .boxed(),
        _ => elements.window_pack(WindowPackOptions::new(rows).window(size).over_long(OverLong::Drop)).boxed(),
    }
}

pub(super) fn plan(ds: &BoxIter<Element>) -> PlanOf<BoxIter<Element>> {
    let run = Runtime::inline().with_keys(Some(Arc::new(Recompute)));
    Planning::plan(ds, &[], &run).unwrap().unwrap()
}

/// The rows that a plan goes on with, so many at a time in turns, and the states behind them.
pub(super) fn rest(plan: &mut PlanOf<BoxIter<Element>>, steps: &[usize]) -> (Vec<Recipe>, Vec<(usize, Json)>) {
    let (mut recipes, mut states, mut cx) = (Vec::new(), Vec::new(), Cx::default());
    for step in steps.iter().cycle() {
        let mut rows = PlannedRows::default();
        rows.fill(*step, &mut plan.pass, &mut cx).unwrap();
        recipes.extend((0..rows.len()).map(|row| rows.recipe(row)));
        states.push((recipes.len(), serde_json::to_value(plan.pass.state()).unwrap()));
        if rows.len() < *step {
            break;
        }
    }
    (recipes, states)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Against a plan whose stand-ins come one by one, and the states of a pass over the elements; and from each state on.
    #[test]
    fn a_plan_by_rows_is_the_one_by_elements(
        lens in prop_oneof![prop::collection::vec(0usize..9, 0..60), prop::collection::vec(0usize..40, 0..1500)],
        which in 0..STAGES,
        before in 0..PREFIXES,
        size in 1usize..20,
        steps in prop::collection::vec(1usize..30, 1..5),
    ) {
        let ds = packed(which, prefix(before, &lens), size);
        let (recipes, states) = rest(&mut plan(&ds), &steps);
        // A limit hands on elements alone.
        let (one_by_one, _) = rest(&mut plan(&packed(which, prefix(before, &lens).limit(u64::MAX).boxed(), size)), &[1]);
        prop_assert!(recipes == one_by_one);

        let (mut pass, mut cx, mut row) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default(), 0);
        for (at, state) in &states {
            while row < *at {
                prop_assert!(pass.next(&mut cx).unwrap().is_some(), "row {} of {}", row, recipes.len());
                row += 1;
            }
            if row < recipes.len() {
                prop_assert_eq!(&serde_json::to_value(pass.state()).unwrap(), state, "behind row {}", row);
            }
        }
        prop_assert!(pass.next(&mut cx).unwrap().is_none());

        for (at, state) in states.iter().take(6) {
            let mut plan = plan(&ds);
            plan.pass.restore(serde_json::from_value(state.clone()).unwrap(), &mut cx).unwrap();
            let (others, again) = rest(&mut plan, &steps[..1]);
            prop_assert!(others == recipes[*at..], "from row {}", at);
            // What is dropped behind the last row is read when one row more is asked for, as it is in the end.
            let end = states.last().map(|(rows, state)| (rows - at, state.clone()));
            prop_assert_eq!(again.last(), end.as_ref());
            let is_same = |(more, state): &(usize, Json)| {
                let is_last = at + more == recipes.len();
                let mut known = states.iter().filter(|(other, _)| at + more == *other).peekable();
                is_last || known.peek().is_none() || known.any(|(_, expected)| state == expected)
            };
            prop_assert!(again.iter().all(is_same), "states from row {}", at);
        }
    }
}
