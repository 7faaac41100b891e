use proptest::prelude::*;

use super::*;
use crate::cx::Cx;
use crate::dataset::boxed::BoxIter;
use crate::dataset::iter::laws;
use crate::dataset::map::{Mix, Range};
use crate::element::{Array, Element};
use crate::exec::Runtime;
use crate::rng::PiecewiseOrder;
use crate::{Checkpoint, ErrorKind, IterDatasetExt, Load, MapDataset, MapDatasetExt};

fn tens(k: i64, len: i64) -> BoxIter<i64> {
    Range::new(10 * k, 10 * k + len).to_iter().boxed()
}

#[test]
fn in_turn_until_the_first_ends() {
    assert_eq!(laws::check(&mix([tens(0, 3), tens(1, 9)])), [0, 10, 1, 11, 2, 12]);
    let nested = mix([tens(0, 2).repeat(3).boxed(), tens(5, 9).limit(7).boxed()]).weights([2.0, 1.0]);
    assert_eq!(laws::check(&nested), [0, 1, 50, 0, 1, 51, 0, 1, 52]);
}

#[test]
fn exact_weights_are_kept() {
    let parts = || [Range::new(0, 29_000).to_iter(), Range::new(100_000, 171_000).to_iter()];
    assert_eq!(mix(parts()).exact_weights([0.29, 0.71]).collect().unwrap().len(), 100_000);
    // The weights are truncated to 100 : 244.
    assert_eq!(mix(parts()).weights([0.29, 0.71]).collect().unwrap().len(), 99_760);
}

#[test]
fn an_error_costs_its_element_only() {
    let bad = Range::new(0, 3).try_map(|x| if x == 1 { Err(Error::data("bad")) } else { Ok(x) });
    let good = Range::new(10, 13).try_map(Ok);
    let ds = mix([bad.to_iter().boxed(), good.to_iter().boxed()]);
    let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
    let all: Vec<_> = (0..6).map(|_| iter.next(&mut cx).ok().flatten()).collect();
    assert_eq!(all, [Some(0), Some(10), None, Some(11), Some(2), Some(12)]);
    assert_eq!(iter.next(&mut cx).unwrap(), None);
}

#[test]
fn impossible_mixes_are_refused() {
    for weights in [vec![1.0], vec![1.0, 0.0], vec![1.0, f64::NAN]] {
        assert_eq!(mix([tens(0, 3), tens(1, 3)]).weights(weights).collect().unwrap_err().kind(), ErrorKind::Config);
    }
    assert_eq!(mix(Vec::<crate::BoxIter<i64>>::new()).collect().unwrap_err().kind(), ErrorKind::Config);
    let ds = mix([tens(0, 3), tens(1, 3)]);
    let mut iter = ds.iter(&Runtime::inline()).unwrap();
    let state = MixState { parents: Vec::new(), ..iter.state() };
    assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
}

/// Number of tokens of document `number` of a dataset.
fn tokens(which: usize, number: u64) -> u64 {
    (number * 7 + which as u64 * 3) % 6
}

/// Documents that contain their dataset and number.
fn documents(which: usize, len: u64) -> BoxIter<Element> {
    let document = move |number: i64| {
        let tokens = vec![0u16; tokens(which, number as u64) as usize];
        Element::new().with("id", Array::scalar(1000 * which as i64 + number)).with("text_ids", Array::from_vec(tokens))
    };
    Range::new(0, len as i64).map(document).to_iter().boxed()
}

/// Whole weights, which sum to 8.
fn eighths(components: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0..components, 8).prop_map(move |owners| {
        (0..components).map(|which| owners.iter().filter(|owner| **owner == which).count() as f64).collect()
    })
}

/// A mix, and what its components have.
#[derive(Clone, Debug)]
struct Case {
    entries: Vec<(u64, Vec<f64>)>,
    lens: Vec<u64>,
    by_tokens: bool,
    at_end: AtEnd,
    budget: Vec<Option<u64>>,
}

fn cases() -> impl Strategy<Value = Case> {
    let ends = prop::sample::select(vec![AtEnd::Stop, AtEnd::Repeat, AtEnd::Redistribute]);
    let of = |components: usize| {
        let entries = prop::collection::vec((1u64..40, eighths(components)), 0..4);
        let budget = prop::collection::vec(prop::option::weighted(0.3, 1u64..60), components);
        (eighths(components), entries, prop::collection::vec(1u64..30, components), budget)
    };
    ((1usize..4).prop_flat_map(of), any::<bool>(), ends).prop_map(|((first, rest, lens, budget), by_tokens, at_end)| {
        let mut entries = vec![(0, first)];
        rest.into_iter().for_each(|(gap, weights)| entries.push((entries[entries.len() - 1].0 + gap, weights)));
        Case { entries, lens, by_tokens, at_end, budget }
    })
}

const MOST: usize = 100;

impl Case {
    fn schedule(&self) -> Schedule {
        let rest = &self.entries[1..];
        rest.iter().fold(Schedule::new(self.entries[0].1.clone()), |s, (at, weights)| s.then(*at, weights.clone()))
    }

    fn mix(&self) -> IterMix<BoxIter<Element>> {
        let parts: Vec<_> = self.lens.iter().enumerate().map(|(which, len)| documents(which, *len)).collect();
        let mut ds = mix(parts).schedule(self.schedule()).at_end(self.at_end);
        if self.by_tokens {
            ds = ds.by_tokens("text_ids");
        }
        let limits = self.budget.iter().enumerate().filter_map(|(which, limit)| Some((which, (*limit)?)));
        limits.fold(ds, |ds, (which, limit)| ds.budget(which, limit))
    }

    /// The stream of the numbers of the documents.
    fn build(&self) -> BoxIter<i64> {
        numbers(self.mix())
    }

    /// The weights at a position, 0 for components that have ended.
    fn weights(&self, position: u64, has_ended: &[bool]) -> Vec<f64> {
        let entry = self.entries.iter().rev().find(|(at, _)| *at <= position).unwrap();
        let left = entry.1.iter().zip(has_ended).map(|(weight, has_ended)| if *has_ended { 0.0 } else { *weight });
        left.collect()
    }

    /// The schedule from `origin` on, up to the first entry without a component that has not ended.
    fn left(&self, has_ended: &[bool], origin: u64) -> Schedule {
        let later = self.entries.iter().filter(|(at, _)| *at > origin);
        let later = later.map(|(at, _)| (*at - origin, self.weights(*at, has_ended)));
        let later = later.take_while(|(_, weights)| weights.iter().any(|weight| *weight > 0.0));
        later.fold(Schedule::new(self.weights(origin, has_ended)), |s, (at, weights)| s.then(at, weights))
    }

    /// Adds the share of each dataset in the token at `position` to its target, in units of 2^-48 tokens.
    fn add_token(&self, position: u64, has_ended: &[bool], targets: &mut [i64]) {
        let weights = self.weights(position, has_ended);
        let sum: f64 = weights.iter().sum();
        if sum == 0.0 {
            return;
        }
        let share = |weight: &f64| ((*weight as i128) << 48) / sum as i128;
        let mut shares: Vec<i64> = weights.iter().map(|weight| share(weight) as i64).collect();
        let largest = shares.iter().copied().max().unwrap();
        let first = shares.iter().position(|share| *share == largest).unwrap();
        shares[first] += (1 << 48) - shares.iter().sum::<i64>();
        targets.iter_mut().zip(shares).for_each(|(target, share)| *target += share);
    }

    /// The numbers of the documents, token by token.
    fn naive(&self) -> Vec<i64> {
        let count = self.lens.len();
        let (mut out, mut read, mut taken) = (Vec::new(), vec![0; count], vec![0; count]);
        let (mut has_ended, mut origin, mut deficits) = (vec![false; count], 0, vec![0; count]);
        let mut position = 0;
        while out.len() < MOST {
            let weights = self.weights(position, &has_ended);
            let present: Vec<usize> = (0..count).filter(|&which| weights[which] > 0.0).collect();
            if present.is_empty() {
                break;
            }
            let which = if self.by_tokens {
                let most = present.iter().map(|&which| deficits[which]).max().unwrap();
                *present.iter().find(|&&which| deficits[which] == most).unwrap()
            } else {
                let order = PiecewiseOrder::new(&self.left(&has_ended, origin), count).unwrap();
                order.at(position - origin).0
            };
            let is_spent = self.budget[which].is_some_and(|limit| taken[which] >= limit);
            if read[which] == self.lens[which] && self.at_end == AtEnd::Repeat {
                read[which] = 0;
            }
            if is_spent || read[which] == self.lens[which] {
                if self.at_end == AtEnd::Stop {
                    break;
                }
                has_ended[which] = true;
                (origin, deficits) = (position, vec![0; count]);
                continue;
            }
            out.push(1000 * which as i64 + read[which] as i64);
            let unit = if self.by_tokens { tokens(which, read[which]) } else { 1 };
            (position..position + unit).for_each(|token| self.add_token(token, &has_ended, &mut deficits));
            deficits[which] -= (unit as i64) << 48;
            (read[which], taken[which], position) = (read[which] + 1, taken[which] + unit, position + unit);
        }
        out
    }
}

fn numbers(ds: impl IterDataset<Item = Element> + 'static) -> BoxIter<i64> {
    let number = |e: Element| Ok(e.array("id")?.as_slice::<i64>()?[0]);
    ds.limit(MOST as u64).try_map(number).boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Inline and on threads, from every position.
    #[test]
    fn a_mix_is_the_naive_mix(case in cases()) {
        prop_assert_eq!(laws::check(&case.build()), case.naive());
    }

    /// A state restores under every schedule that has equal entries before its position, and under no other.
    ///
    /// A document without tokens does not advance the position, so the entry at the position has picked it.
    #[test]
    fn a_state_restores_under_a_longer_schedule(
        case in cases(), steps in 0usize..60, weights in eighths(3), gap in 0u64..9, change in any::<bool>(),
    ) {
        let mut loader = case.build().loader().build().unwrap();
        let before: Vec<i64> = loader.by_ref().take(steps).map(Result::unwrap).collect();
        let checkpoint = loader.state().unwrap();
        let position = mix_index(&checkpoint);
        let effective = case.entries.iter().filter(|(at, _)| *at < position).count();
        let has_no_tokens = |number: &i64| case.by_tokens && tokens(*number as usize / 1000, *number as u64 % 1000) == 0;
        let next = position + u64::from(before.last().is_some_and(has_no_tokens));
        let mut longer = case.clone();
        longer.entries.retain(|(at, _)| *at == 0 || *at < next);
        let last = longer.entries[longer.entries.len() - 1].0;
        let mut weights = weights[..case.lens.len()].to_vec();
        weights[0] += 1.0;
        longer.entries.push((next.max(last + 1) + gap, weights));
        let all = longer.naive();
        let restored = longer.build().loader().resume(checkpoint.clone()).build();
        prop_assert_eq!(&all[..before.len()], &before);
        let rest: Vec<i64> = restored.unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(&all[before.len()..], &rest);
        if change && effective > 0 {
            let mut other = case.clone();
            other.entries[effective - 1].1[0] += 8.0;
            let error = other.build().loader().resume(checkpoint).build().unwrap_err();
            prop_assert_eq!(error.kind(), ErrorKind::State);
            let entry = format!("entry {} of the schedule was `", effective - 1);
            prop_assert!(error.message().contains(&entry), "{}", error);
        }
    }
}

/// The position of the mix in a checkpoint.
fn mix_index(checkpoint: &Checkpoint) -> u64 {
    fn find(json: &serde_json::Value) -> Option<u64> {
        let fields = json.as_object()?;
        fields
            .get("index")
            .filter(|_| fields.contains_key("stop"))
            .and_then(serde_json::Value::as_u64)
            .or_else(|| fields.values().find_map(find))
    }
    find(&checkpoint.state).unwrap()
}

#[test]
fn map_and_stream_have_one_order() {
    let schedule = || Schedule::new([3.0, 1.0, 0.0]).then(20, [1.0, 1.0, 2.0]).over(30).then(60, [0.0, 1.0, 1.0]);
    let parts = || (0..3).map(|k| Range::new(1000 * k, 1000 * k + 60)).collect::<Vec<_>>();
    let map = Mix::new(parts()).schedule(schedule());
    let stream = mix(parts().into_iter().map(MapDatasetExt::to_iter)).schedule(schedule());
    assert_eq!(laws::check(&stream), map.collect().unwrap());
    assert!(map.len() > 70, "{}", map.len());
}

#[test]
fn a_budget_of_elements_is_a_limit() {
    for at_end in [AtEnd::Stop, AtEnd::Redistribute] {
        let limited = mix([tens(0, 9).limit(4).boxed(), tens(1, 9).boxed()]).weights([2.0, 1.0]).at_end(at_end);
        let budget = mix([tens(0, 9).boxed(), tens(1, 9).boxed()]).weights([2.0, 1.0]).at_end(at_end).budget(0, 4);
        assert_eq!(laws::check(&budget), laws::check(&limited));
    }
    // The element that crosses the budget is delivered.
    let case = Case {
        entries: vec![(0, vec![1.0, 1.0])],
        lens: vec![30, 30],
        by_tokens: true,
        at_end: AtEnd::Redistribute,
        budget: vec![Some(6), None],
    };
    let first: Vec<i64> = case.build().collect().unwrap().into_iter().filter(|number| *number < 1000).collect();
    assert_eq!(first, [0, 1, 2, 3]);
    let sums: Vec<u64> = (0..4).map(|number| tokens(0, number)).collect();
    assert_eq!(sums, [0, 1, 2, 3]);
}

#[test]
fn epochs_are_counted_in_the_state() {
    let ds = mix([tens(0, 2), tens(1, 5)]).at_end(AtEnd::Repeat);
    let mut iter = ds.iter(&Runtime::inline()).unwrap();
    let all: Vec<_> = (0..12).map(|_| iter.next(&mut Cx::default()).unwrap().unwrap()).collect();
    assert_eq!(all, [0, 10, 1, 11, 0, 12, 1, 13, 0, 14, 1, 10]);
    assert_eq!(iter.state().progress.unwrap().epochs, [2, 1]);
    let ds = mix([tens(0, 2).filter(|_| false).boxed(), tens(1, 5).boxed()]).at_end(AtEnd::Repeat);
    let error = laws::check_to_error(&ds).1.unwrap();
    assert!(error.contains("dataset 0 yields no element"), "{error}");
}

#[test]
fn datasets_join_at_a_later_entry() {
    let two = mix([tens(0, 9), tens(1, 9)]).schedule(Schedule::new([1.0, 1.0]));
    let later = Schedule::new([1.0, 1.0, 0.0]).then(6, [0.0, 1.0, 1.0]);
    let three = mix([tens(0, 9), tens(1, 9), tens(2, 9)]).schedule(later);
    let mut loader = two.clone().loader().build().unwrap();
    assert_eq!(loader.by_ref().take(5).map(Result::unwrap).collect::<Vec<_>>(), [0, 10, 1, 11, 2]);
    let checkpoint = loader.state().unwrap();
    assert_eq!(three.clone().loader().resume(checkpoint.clone()).build().unwrap_err().kind(), ErrorKind::State);
    let resumed = three.clone().loader().accept_changes(true).resume(checkpoint.clone()).build().unwrap();
    assert_eq!(resumed.take(5).map(Result::unwrap).collect::<Vec<_>>(), [12, 13, 20, 14, 21]);
    // With a weight from the start, it would have been part of the past.
    let early = mix([tens(0, 9), tens(1, 9), tens(2, 9)]).schedule(Schedule::new([1.0, 1.0, 1.0]));
    let error = early.loader().accept_changes(true).resume(checkpoint).build().unwrap_err();
    assert!(error.message().contains("was `0: [1.0, 1.0]` and is `0: [1.0, 1.0, 1.0]`"), "{error}");
}

#[test]
fn a_constant_mix_may_change_to_a_schedule() {
    let parts = || [tens(0, 9), tens(1, 9)];
    let mut loader = mix(parts()).weights([2.0, 1.0]).loader().build().unwrap();
    let before: Vec<_> = loader.by_ref().take(3).map(Result::unwrap).collect();
    let scheduled = mix(parts()).schedule(Schedule::new([2.0, 1.0]).then(6, [0.0, 1.0]));
    let resumed = scheduled.clone().loader().accept_changes(true).resume(loader.state().unwrap()).build().unwrap();
    let rest: Vec<_> = resumed.map(Result::unwrap).collect();
    assert_eq!([before, rest].concat(), scheduled.collect().unwrap());
    let by_tokens = scheduled.by_tokens("tokens").loader().accept_changes(true);
    let error = by_tokens.resume(loader.state().unwrap()).build().unwrap_err();
    assert!(error.message().contains("no counts of tokens"), "{error}");
}

#[test]
fn mixes_and_states_without_a_meaning_are_refused() {
    let two = || mix([tens(0, 3), tens(1, 3)]);
    for (ds, words) in [
        (two().schedule(Schedule::new([1.0])), "entry 0 of the schedule has 1 weights for 2 components"),
        (two().budget(2, 5), "mix has 2 datasets and a budget for dataset 2"),
        (two().budget(usize::MAX, 5), "a budget for dataset"),
        (two().budget(1, 0), "the budget of dataset 1 is 0"),
        (two().weights([1.0, 0.0]).by_tokens("x"), "mix weight 0 of component 1"),
        (two().by_tokens("x"), "lengths are requested of elements that have no arrays"),
    ] {
        let error = ds.collect().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.message().contains(words), "{error}: {words}");
    }
    let case = |at_end| Case {
        entries: vec![(0, vec![1.0, 1.0])],
        lens: vec![3, 9],
        by_tokens: true,
        at_end,
        budget: vec![None, None],
    };
    let ds = case(AtEnd::Redistribute).mix();
    let mut iter = ds.iter(&Runtime::inline()).unwrap();
    while iter.state().progress.unwrap().origin.is_none() {
        iter.next(&mut Cx::default()).unwrap().unwrap();
    }
    let good = iter.state();
    let with = |progress: MixProgress| MixState { progress: Some(Box::new(progress)), ..good.clone() };
    let progress = *good.progress.clone().unwrap();
    let origin = progress.origin.clone().unwrap();
    for state in [
        MixState { index: good.index + 1, ..good.clone() },
        MixState { parents: Vec::new(), ..good.clone() },
        with(MixProgress { taken: vec![1; 3], ..progress.clone() }),
        with(MixProgress { ended: vec![2], ..progress.clone() }),
        with(MixProgress { origin: Some(MixOrigin { index: good.index + 1, ..origin }), ..progress }),
    ] {
        assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
    }
    iter.restore(good, &mut Cx::default()).unwrap();
    let missing = mix([documents(0, 3)]).by_tokens("label").collect().unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Data);
    assert!(missing.to_string().contains("mix: "), "{missing}");
}
