mod columns;
mod lineage;
mod planned;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;
use crate::dataset::Remainder;
use crate::dataset::iter::BadRecords;
use crate::dataset::map::{RandomAccess, Source};
use crate::element::{Array, Value};
use crate::error::{Error, ErrorKind, Result};
use crate::pack::bucket::BatchSize;
use crate::pack::feature::OverLong;
use crate::pack::stats::PackStats;
use crate::{BoxIter, Cx, DatasetIterator, IterDatasetExt, Load, MapDatasetExt, Runtime};

/// Elements of `tokens`, numbered through, and their number as `id`.
fn stream(lens: &[usize]) -> impl IterDataset<Item = Element> + use<> {
    let mut next = 1;
    let mut element = |(id, &len): (usize, &usize)| {
        let tokens: Vec<i32> = (next..next + len as i32).collect();
        next += len as i32;
        let text = format!("t{id}");
        Element::new()
            .with("tokens", Array::from_vec(tokens))
            .with("id", Array::scalar(id as i64))
            .with("text", text.as_str())
    };
    Source::new(lens.iter().enumerate().map(&mut element).collect::<Vec<_>>()).to_iter()
}

fn rows_of(length: usize) -> RowSpec {
    RowSpec::new([("tokens", length)])
}

fn i32s(row: &Element, name: &str) -> Vec<i32> {
    row.array(name).unwrap().as_slice::<i32>().unwrap().to_vec()
}

fn values(rows: &[Element], name: &str) -> Vec<Vec<i32>> {
    rows.iter().map(|row| i32s(row, name)).collect()
}

/// Every stage, by number, with options that use what it has.
fn stage(which: usize, lens: &[usize], size: usize) -> BoxIter<Element> {
    let (stream, rows) = (stream(lens), rows_of(12).meta_features(["text"]));
    let bins = BinPackOptions::new(rows.clone(), size).seed(7).over_long(OverLong::Split);
    match which {
        0 => stream.first_fit_pack(bins).boxed(),
        1 => stream.best_fit_pack(bins.max_sequences_per_bin(3)).boxed(),
        2 => stream.window_pack(WindowPackOptions::new(rows).window(size).over_long(OverLong::Split)).boxed(),
        3 => stream.concat_then_split_pack(ConcatPackOptions::new(rows_of(12))).boxed(),
        4 => {
            stream.concat_then_split_pack(ConcatPackOptions::new(rows_of(12)).split_full_length_features(false)).boxed()
        }
        _ => stream.window_pack(WindowPackOptions::new(rows).window(size).over_long(OverLong::Drop)).boxed(),
    }
}
const STAGES: usize = 6;

/// All rows; after each for which `resume` says so, a new pass goes on from the state, which went through JSON.
fn read(dataset: &BoxIter<Element>, mut resume: impl FnMut() -> bool) -> Result<Vec<Element>> {
    let (run, mut cx) = (Runtime::inline(), Cx::default());
    let mut iter = dataset.iter(&run)?;
    let mut rows = Vec::new();
    loop {
        if resume() {
            let state = serde_json::to_string(&iter.state()).unwrap();
            iter = dataset.iter(&run)?;
            iter.restore(serde_json::from_str(&state).unwrap(), &mut cx)?;
            assert_eq!(serde_json::to_string(&iter.state()).unwrap(), state);
        }
        match iter.next(&mut cx)? {
            Some(row) => rows.push(row),
            None => return Ok(rows),
        }
    }
}

proptest! {
    #[test]
    fn any_batch_of_a_bucket_can_be_resumed_at(
        remainder in prop_oneof![Just(Some(Remainder::Keep)), Just(Some(Remainder::Drop)), Just(None)],
        lens in prop::collection::vec(0usize..7, 0..70),
        resume in prop::collection::vec(any::<bool>(), 1..9),
    ) {
        let dataset = buckets(&lens, remainder);
        let straight = read(&dataset, || false).unwrap();
        let mut resume = resume.into_iter().cycle();
        prop_assert_eq!(read(&dataset, || resume.next().unwrap()).unwrap(), straight);
    }

    #[test]
    fn any_row_can_be_resumed_at(
        which in 0..STAGES,
        size in 1usize..9,
        lens in prop::collection::vec(prop_oneof![4 => 0usize..13, 1 => 12usize..40], 0..70),
        resume in prop::collection::vec(any::<bool>(), 1..9),
    ) {
        let dataset = stage(which, &lens, size);
        let straight = read(&dataset, || false).unwrap();
        let mut resume = resume.into_iter().cycle();
        prop_assert_eq!(read(&dataset, || resume.next().unwrap()).unwrap(), straight);
    }

    /// Batches that are written in place are what stacking the rows gives, wherever a pass goes on.
    #[test]
    fn batches_in_place_are_the_rows_stacked(
        which in 0..STAGES,
        size in 1usize..9,
        batch in 1usize..6,
        drop in any::<bool>(),
        lens in prop::collection::vec(prop_oneof![4 => 0usize..13, 1 => 12usize..40], 0..70),
        resume in prop::collection::vec(any::<bool>(), 1..9),
    ) {
        let remainder = if drop { Remainder::Drop } else { Remainder::Keep };
        let stacked = stage(which, &lens, size).map(|e| e).batch_with(batch, remainder).boxed();
        let in_place = stage(which, &lens, size).batch_with(batch, remainder).boxed();
        let mut resume = resume.into_iter().cycle();
        prop_assert_eq!(read(&in_place, || resume.next().unwrap()).unwrap(), read(&stacked, || false).unwrap());
    }

    /// Every token comes out once, under its own sequence, and positions count.
    #[test]
    fn tokens_are_neither_lost_nor_repeated(which in 0..STAGES - 1, size in 1usize..9, lens in prop::collection::vec(0usize..40, 0..50)) {
        let rows = read(&stage(which, &lens, size), || false).unwrap();
        let mut tokens = Vec::new();
        for row in &rows {
            let (t, s, p) = (i32s(row, "tokens"), i32s(row, "tokens_segment_ids"), i32s(row, "tokens_positions"));
            for at in 0..12 {
                let follows = at > 0 && s[at] == s[at - 1] && s[at] > 0;
                prop_assert_eq!(p[at], if follows { p[at - 1] + 1 } else { 0 });
                prop_assert!(!follows || t[at] == t[at - 1] + 1);
                if s[at] > 0 { tokens.push(t[at]) } else { prop_assert_eq!(t[at], 0) }
            }
        }
        tokens.sort();
        prop_assert_eq!(tokens, (1..=lens.iter().sum::<usize>() as i32).collect::<Vec<_>>());
    }
}

#[test]
fn one_feature_comes_out_as_inputs_and_shifted_targets() {
    let rows = rows_of(6).names(OutputNames::MaxText).padding("tokens", -1.0);
    let rows = stream(&[3, 1]).first_fit_pack(BinPackOptions::new(rows, 1)).collect().unwrap();
    let names: Vec<_> = rows[0].iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["inputs", "inputs_segmentation", "inputs_position", "targets", "targets_segmentation", "targets_position"]
    );
    assert_eq!(i32s(&rows[0], "inputs"), [1, 2, 3, 4, -1, -1]);
    assert_eq!(i32s(&rows[0], "inputs_segmentation"), [1, 1, 1, 2, 0, 0]);
    assert_eq!(i32s(&rows[0], "targets"), [2, 3, -1, -1, -1, -1]);
    assert_eq!(i32s(&rows[0], "targets_segmentation"), [1, 1, 0, 0, 0, 0]);
    assert_eq!(i32s(&rows[0], "targets_position"), [0, 1, 0, 0, 0, 0]);
}

/// Without a remainder, it is filled up.
fn buckets(lens: &[usize], remainder: Option<Remainder>) -> BoxIter<Element> {
    let options = LengthBucketOptions::new(["tokens"], [2, 5], BatchSize::Fixed(2)).padding("tokens", -1.0);
    let options = match remainder {
        Some(remainder) => options.remainder(remainder),
        None => options.pad_remainder(),
    };
    stream(lens).length_buckets(options.window(6).drop_over_long(true)).boxed()
}

#[test]
fn buckets_are_padded_to_their_boundary() {
    let batches = buckets(&[1, 4, 9, 5, 2, 3], Some(Remainder::Keep)).collect().unwrap();
    let shapes: Vec<_> = batches.iter().map(|batch| batch.array("tokens").unwrap().shape().to_vec()).collect();
    assert_eq!(shapes, [[2, 5], [2, 2], [1, 5]]);
    assert_eq!(i32s(&batches[0], "tokens"), [2, 3, 4, 5, -1, 15, 16, 17, 18, 19]);
    assert_eq!(i32s(&batches[0], "tokens_lengths"), [4, 5]);
    let padded = buckets(&[1, 4, 9, 5, 2, 3], None).collect().unwrap();
    assert_eq!(i32s(&padded[2], "tokens"), [22, 23, 24, -1, -1, -1, -1, -1, -1, -1]);
    assert_eq!(i32s(&padded[2], "tokens_lengths"), [3, 0]);
    assert_eq!(buckets(&[1, 4, 9, 5, 2, 3], Some(Remainder::Drop)).collect().unwrap().len(), 2);
    let none = LengthBucketOptions::new(["tokens"], [2], BatchSize::Fixed(1));
    let error = stream(&[1, 3]).length_buckets(none).collect().unwrap_err();
    assert!(error.to_string().contains("element 1: a sequence has 3 cells, but the last bucket takes 2"), "{error}");
}

#[test]
fn meta_features_without_a_length_are_listed_by_row() {
    let texts = |row: &Element| match row.get("text") {
        Some(Value::List(list)) => list.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let rows = rows_of(4).meta_features(["text"]);
    let packed = stream(&[3, 2, 1, 4]).first_fit_pack(BinPackOptions::new(rows.clone(), 2).shuffle_bins(false));
    let packed = packed.collect().unwrap();
    assert_eq!(packed.iter().map(|row| texts(row).len()).collect::<Vec<_>>(), [2, 1, 1]);
    let window = stream(&[3, 2, 1, 4]).window_pack(WindowPackOptions::new(rows)).collect().unwrap();
    assert_eq!(window.iter().map(|row| texts(row).len()).collect::<Vec<_>>(), [2, 1, 1]);
}

#[test]
fn cells_may_have_inner_dimensions_and_scalars_are_sequences_of_one() {
    let element = |n: i64, first: f32| {
        let wide = Array::from_vec(vec![first, first, first + 0.5, first + 0.5]);
        let wide = Array::new(wide.dtype(), &[2, 2], wide.buffer().clone()).unwrap();
        Element::new().with("wide", wide).with("n", Array::scalar(n))
    };
    let elements = Source::new(vec![element(7, 1.0), element(8, 2.0)]).to_iter();
    let rows = RowSpec::new([("wide", 4), ("n", 3)]).padding("n", -1.0);
    let rows = elements.best_fit_pack(BinPackOptions::new(rows, 1)).collect().unwrap();
    assert_eq!(rows[0].array("wide").unwrap().shape(), [4, 2]);
    assert_eq!(rows[0].array("wide").unwrap().as_slice::<f32>().unwrap(), [1.0, 1.0, 1.5, 1.5, 2.0, 2.0, 2.5, 2.5]);
    assert_eq!(rows[0].array("n").unwrap().as_slice::<i64>().unwrap(), [7, 8, -1]);
    assert_eq!(i32s(&rows[0], "n_segment_ids"), [1, 2, 0]);
}

#[test]
fn rows_are_shuffled_by_group() {
    let lens = [4, 4, 4, 4];
    let rows = RowSpec::new([("tokens", 4), ("id", 1)]);
    let options = BinPackOptions::new(rows, 4).seed(3);
    let plain = stream(&lens).first_fit_pack(options.clone()).collect().unwrap();
    let order = crate::rng::permuted(3, 4);
    let ids: Vec<_> = plain.iter().map(|row| row.array("id").unwrap().as_slice::<i64>().unwrap()[0] as usize).collect();
    assert_eq!(ids, order);
    let grouped = stream(&lens).first_fit_pack(options.shuffle_bins_group_by_feature("id")).collect().unwrap();
    assert_eq!(values(&grouped, "tokens"), [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]);
}

#[test]
fn an_error_names_stage_element_and_feature() {
    for which in 0..3 {
        let (bins, stream) = (BinPackOptions::new(rows_of(4), 2), stream(&[3, 2, 5]));
        let error = match which {
            0 => stream.first_fit_pack(bins).collect().unwrap_err(),
            1 => stream.best_fit_pack(bins).collect().unwrap_err(),
            _ => stream.window_pack(WindowPackOptions::new(rows_of(4))).collect().unwrap_err(),
        };
        let name = ["first_fit_pack", "best_fit_pack", "window_pack"][which];
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().ends_with("element 2: feature \"tokens\" has 5 cells, a row takes 4"), "{error}");
        assert!(error.stage_name().unwrap().ends_with(name), "{error}");
    }
    let mixed = vec![
        Element::new().with("tokens", Array::from_vec(vec![1i32])),
        Element::new().with("tokens", Array::from_vec(vec![1i64])),
    ];
    let error = Source::new(mixed).to_iter().window_pack(WindowPackOptions::new(rows_of(4))).collect().unwrap_err();
    assert_eq!(error.message(), "feature \"tokens\" is int64[1], in the first element it was int32[len]");
    let error = stream(&[1]).first_fit_pack(BinPackOptions::new(RowSpec::new([("text", 4)]), 1)).collect().unwrap_err();
    assert!(error.message().contains("field \"text\" is text, expected an array"), "{error}");
    let error =
        stream(&[1]).first_fit_pack(BinPackOptions::new(RowSpec::new([("tokes", 4)]), 1)).collect().unwrap_err();
    assert!(error.message().contains("no field \"tokes\"; the element has tokens, id, text"), "{error}");
}

#[test]
fn an_error_in_the_middle_of_a_batch_costs_no_row() {
    let pack = || stream(&[3, 2, 4, 5, 1, 3, 9, 2]).window_pack(WindowPackOptions::new(rows_of(4)).window(2));
    let read = |dataset: BoxIter<Element>| {
        let (mut iter, mut cx) = (dataset.iter(&Runtime::inline()).unwrap(), Cx::default());
        let mut came = Vec::new();
        loop {
            let before = serde_json::to_string(&iter.state()).unwrap();
            match iter.next(&mut cx) {
                Ok(Some(batch)) => came.push(Ok(batch)),
                Ok(None) => return came,
                Err(error) => {
                    assert_eq!(serde_json::to_string(&iter.state()).unwrap(), before);
                    came.push(Err(error.to_string()));
                }
            }
        }
    };
    let in_place = read(pack().batch(3).boxed());
    assert_eq!(in_place, read(pack().map(|e| e).batch(3).boxed()));
    assert_eq!(in_place.iter().filter(|batch| batch.is_err()).count(), 2);
    assert!(in_place.len() > 3);
}

#[test]
fn the_memory_of_batches_is_used_again() {
    let dataset = stage(2, &[12; 200], 4).batch(2).boxed();
    let mut places = std::collections::BTreeSet::new();
    for batch in dataset.loader().build().unwrap() {
        let batch = batch.unwrap();
        let tokens = batch.array("tokens").unwrap();
        assert_eq!((tokens.shape(), tokens.bytes().as_ptr().align_offset(64)), ([2, 12].as_slice(), 0));
        places.insert(tokens.bytes().as_ptr() as usize);
    }
    assert!(places.len() <= 4, "{} batches of memory", places.len());
}

#[test]
fn first_tokens_cannot_be_ignored_silently() {
    let check = |options: ConcatPackOptions| stream(&[1]).concat_then_split_pack(options).collect().map(|_| ());
    let plain = ConcatPackOptions::new(rows_of(4));
    let replace = plain.clone().bos_handling(BosHandling::ReplaceFirstTokenWithBos);
    for (options, message) in [
        (replace.clone(), "replacing the first token needs bos_features"),
        (replace.clone().bos_token_id(1), "replacing the first token needs bos_features"),
        (replace.clone().bos_features(["tokens"]), "replacing the first token needs bos_token_id"),
        (plain.clone().bos_token_id(1), "bos_token_id without bos_handling has no effect"),
        (plain.clone().bos_features(["tokens"]), "bos_features without bos_handling has no effect"),
        (replace.clone().bos_features(["id"]).bos_token_id(1), "bos_features names \"id\""),
    ] {
        let error = check(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().starts_with(message), "{error}");
    }
    let error = check(replace.clone().bos_features(["tokens"]).bos_token_id(1 << 40)).unwrap_err();
    assert_eq!(error.message(), "feature \"tokens\": 1099511627776 is no value of int32");
    check(replace.bos_features(["tokens"]).bos_token_id(1)).unwrap();
}

#[test]
fn a_foreign_state_is_refused() {
    let dataset = stage(2, &[3; 40], 8);
    let (run, mut cx) = (Runtime::inline(), Cx::default());
    let mut iter = dataset.iter(&run).unwrap();
    for _ in 0..3 {
        iter.next(&mut cx).unwrap();
    }
    let state = serde_json::to_value(iter.state()).unwrap();
    let mut broken = |change: &dyn Fn(&mut Json)| {
        let mut state = state.clone();
        change(&mut state);
        let state = serde_json::from_value(state).unwrap();
        dataset.iter(&run).unwrap().restore(state, &mut cx).unwrap_err()
    };
    assert_eq!(broken(&|state| state["window"]["gone"] = "1".into()).kind(), ErrorKind::State);
    assert_eq!(broken(&|state| state["window"]["gone"] = "00000000000001".into()).kind(), ErrorKind::State);
    assert_eq!(broken(&|state| state["parent"]["skip"] = 17.into()).kind(), ErrorKind::State);
    assert_eq!(broken(&|state| state["piece"] = "x".into()).kind(), ErrorKind::State);
    assert_eq!(broken(&|state| state["more"] = 1.into()).kind(), ErrorKind::State);
    // How many pieces the element has shows when it is read again.
    for piece in [2, 3, u64::MAX] {
        let mut changed = state.clone();
        changed["piece"] = piece.into();
        let mut iter = dataset.iter(&run).unwrap();
        iter.restore(serde_json::from_value(changed).unwrap(), &mut cx).unwrap();
        let error = iter.next(&mut cx).unwrap_err();
        let said = format!("the state is after piece {piece}, but the element has 1");
        assert!(error.kind() == ErrorKind::State && error.to_string().ends_with(&said), "{error}");
    }
}

#[test]
fn the_memory_of_a_group_is_used_again_and_rows_that_are_held_stay() {
    let dataset = stage(0, &[12; 200], 4);
    let (run, mut cx) = (Runtime::inline(), Cx::default());
    let mut iter = dataset.iter(&run).unwrap();
    let held = iter.next(&mut cx).unwrap().unwrap();
    let before = i32s(&held, "tokens");
    let mut places = std::collections::BTreeSet::new();
    while let Some(row) = iter.next(&mut cx).unwrap() {
        places.insert(row.array("tokens").unwrap().bytes().as_ptr() as usize);
    }
    assert_eq!(i32s(&held, "tokens"), before);
    assert!(places.len() <= 12, "{} rows of memory", places.len());
}

#[test]
fn the_report_counts_padding_and_splits() {
    let mut loader = stream(&[5, 30, 2])
        .first_fit_pack(BinPackOptions::new(rows_of(12), 2).over_long(OverLong::Split))
        .loader()
        .build()
        .unwrap();
    let rows = loader.by_ref().collect::<Result<Vec<_>>>().unwrap();
    let notes = loader.report().notes;
    let of = |what: &str| notes.iter().find(|(name, _)| name == what).map_or(0, |(_, count)| *count);
    assert_eq!((of("real tokens"), of("sequences split")), (37, 1));
    let stats = PackStats { tokens: of("real tokens"), padding: of("padding cells"), ..PackStats::default() };
    assert_eq!(stats.tokens + stats.padding, 12 * rows.len() as u64);
}
