//! Elements that fail after rows were planned of them: they are padding where they would be, on every executor and any number of hosts, or an
//! error, as was chosen; the plan stays what it is.

use std::collections::HashSet;
use std::sync::Arc;

use gristmill::dataset::Remainder;
use gristmill::dataset::iter::{MakeBatch, Padding};
use gristmill::dataset::map::Range;
use gristmill::keys::{Key, KeySource, Keyed, Keys};
use gristmill::pack::{
    BatchSize, BinPackOptions, ConcatPackOptions, LengthBucketOptions, OutputNames, OverLong, Packing, RowSpec,
    WindowPackOptions,
};
use gristmill::part::{InMemory, Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, Element, Error, ErrorKind, Executor, FailedElements, Loader, Result, Value};

const RECORDS: i64 = 600;
const BATCH: usize = 12;
const EXECUTORS: [Executor; 2] = [Executor::Inline, Executor::Threads(2)];
/// The padding of tokens.
const PAD: i32 = -7;

fn len(x: i64) -> usize {
    1 + (x * 5 % 11) as usize
}

fn id(element: &Element) -> i64 {
    element.array("id").unwrap().as_i64().unwrap()
}

/// The elements that fail.
type Bad = fn(i64) -> bool;

fn none(_: i64) -> bool {
    false
}

fn some(x: i64) -> bool {
    x % 17 == 5
}

/// Sequences of 1 to 11 tokens, each of the number of its element and one more, of which some fail.
fn documents(bad: Bad) -> impl MapDataset<Item = Element> + Clone {
    Range::new(0, RECORDS).shuffle(3).try_map(move |x: i64| {
        if bad(x) {
            return Err(Error::data(format!("{x} is damaged")));
        }
        let tokens = Array::from_vec(vec![x as i32 + 1; len(x)]);
        Ok(Element::new().with("t", tokens).with("id", Array::scalar(x)))
    })
}

/// Keys that were made when nothing was damaged.
#[derive(Debug)]
struct Known;

impl KeySource for Known {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        Ok(Some(Arc::new(Lens(keyed.names().len()))))
    }
}

struct Lens(usize);

impl Keys for Lens {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        lens.extend(std::iter::repeat_n(len(record as i64) as u32, self.0));
        Ok(Key::Elements(1))
    }
}

#[derive(Clone, Copy, Debug)]
enum Rows {
    FirstFit,
    Window,
    Concat,
    Targets,
}

const ROWS: [Rows; 4] = [Rows::FirstFit, Rows::Window, Rows::Concat, Rows::Targets];

fn packed(rows: Rows, bad: Bad) -> BoxIter<Element> {
    let ds = documents(bad).to_iter().window_shuffle(40, 2);
    let spec = RowSpec::new([("t", 8)]).padding("t", PAD.into());
    let listed = || spec.clone().meta_features(["id"]);
    match rows {
        Rows::FirstFit => ds.first_fit_pack(BinPackOptions::new(listed(), 9).over_long(OverLong::Split)).boxed(),
        Rows::Window => ds.window_pack(WindowPackOptions::new(listed()).window(40).over_long(OverLong::Split)).boxed(),
        Rows::Concat => ds.concat_then_split_pack(ConcatPackOptions::new(spec)).boxed(),
        Rows::Targets => {
            let spec = spec.names(OutputNames::MaxText);
            ds.window_pack(WindowPackOptions::new(spec).window(40).over_long(OverLong::Split)).boxed()
        }
    }
}

fn host(ds: &BoxIter<Element>, part: Part, executor: Executor) -> Loader<BoxIter<Element>> {
    let builder = ds.clone().loader().part(part).keys(Known).executor(executor);
    builder.on_failed_element(FailedElements::pad()).build().unwrap()
}

/// All that a host delivers, and the digest of its rows.
fn deliver(loader: &mut Loader<BoxIter<Element>>) -> (Vec<Element>, RowDigest) {
    let (mut batches, mut digest) = (Vec::new(), RowDigest::default());
    while let Some(batch) = loader.next() {
        let batch = batch.unwrap();
        digest.add_batch(loader.delivered() - 1, loader.rows().unwrap(), &batch);
        batches.push(batch);
    }
    (batches, digest)
}

fn cells(batch: &Element, name: &str) -> Vec<i32> {
    batch.array(name).unwrap().as_slice::<i32>().unwrap().to_vec()
}

/// Checks a batch against the one without failures: cells of elements that fail are padding, and all others the same.
fn check(padded: &Element, whole: &Element, bad: Bad) {
    let names = |batch: &Element| batch.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(padded), names(whole));
    let [tokens, ids, ..] = &names(whole)[..] else { panic!("rows have ids") };
    let fails: Vec<bool> = std::iter::zip(cells(whole, tokens), cells(whole, ids))
        .map(|(token, id)| id > 0 && bad(i64::from(token) - 1))
        .collect();
    for (name, value) in whole.iter() {
        match value {
            Value::Array(_) => {
                let padding = if name == tokens || name == "targets" { PAD } else { 0 };
                let expected = std::iter::zip(cells(whole, name), &fails);
                let expected: Vec<i32> = expected.map(|(cell, fails)| if *fails { padding } else { cell }).collect();
                assert_eq!(cells(padded, name), expected, "{name}");
            }
            Value::List(rows) => {
                let Some(Value::List(padded)) = padded.get(name) else { panic!("{name} is no list") };
                let of = |row: &Value| {
                    let Value::List(values) = row else { panic!("{row:?}") };
                    values.clone()
                };
                for (value, padded) in std::iter::zip(rows, padded).flat_map(|(a, b)| std::iter::zip(of(a), of(b))) {
                    let Value::Array(id) = &value else { panic!("{value:?}") };
                    let expected = if bad(id.as_i64().unwrap()) { Value::Null } else { value };
                    assert_eq!(padded, expected);
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn cells_of_an_element_that_fails_are_padding_and_all_others_what_they_are() {
    for rows in ROWS {
        let batches = |bad| packed(rows, bad).batch_with(BATCH, Remainder::Keep).boxed();
        let mut whole = host(&batches(none), Part::whole(), Executor::Inline);
        let (expected, clean) = deliver(&mut whole);
        let mut alone = host(&batches(some), Part::whole(), Executor::Inline);
        let (padded, digest) = deliver(&mut alone);
        assert!(expected.len() == padded.len() && digest != clean, "{rows:?}");
        std::iter::zip(&padded, &expected).for_each(|(padded, whole)| check(padded, whole, some));
        let states = [&alone, &whole].map(|loader| loader.state().unwrap().to_json());
        assert_eq!(states[0], states[1], "{rows:?}");
        for (executor, count) in [(EXECUTORS[0], 3), (EXECUTORS[1], 1), (EXECUTORS[1], 4)] {
            let ds = packed(rows, some).batch_with(BATCH, Remainder::Drop).boxed();
            let dropped = deliver(&mut host(&ds, Part::whole(), Executor::Inline)).1;
            let mut sum = RowDigest::default();
            for index in 0..count {
                sum.add(deliver(&mut host(&ds, Part::of(index, count), executor)).1);
            }
            assert_eq!(sum, dropped, "{rows:?}, {count} hosts, {executor}");
        }
    }
}

#[test]
fn those_that_fail_are_counted_and_named() {
    let ds = packed(Rows::Concat, some).batch_with(BATCH, Remainder::Drop).boxed();
    for executor in EXECUTORS {
        let mut loader = host(&ds, Part::whole(), executor);
        loader.by_ref().for_each(|batch| drop(batch.unwrap()));
        let report = loader.report();
        let remark = report.remarks.iter().find(|remark| remark.contains("became padding")).unwrap();
        // Each once, also where it is cut over two rows.
        assert!(remark.starts_with("35 elements failed and became padding: stage 2 map: element "), "{remark}");
        assert!(remark.matches(" is damaged").count() == 5 && remark.ends_with("; …"), "{remark}");
        assert!(report.to_string().contains("35 elements failed"), "{report}");
    }
}

/// A row of a batch that is one element: its mask is 0.
#[test]
fn a_row_that_fails_has_a_mask_of_0() {
    let numbers = |bad| documents(bad).to_iter().try_map(|e| Ok(Element::new().with("n", e.array("id")?.clone())));
    let padding = || Padding { value: -1.0, ..Padding::default() };
    let by_index = |bad| numbers(bad).batch_masked_with(BATCH + 1, padding()).boxed();
    let by_keys = |bad| numbers(bad).window_shuffle(30, 1).batch_masked_with(BATCH + 1, padding()).boxed();
    let makes: [&dyn Fn(Bad) -> BoxIter<Element>; 2] = [&by_index, &by_keys];
    for make in makes {
        for executor in EXECUTORS {
            let (expected, _) = deliver(&mut host(&make(none), Part::whole(), executor));
            let (padded, digest) = deliver(&mut host(&make(some), Part::whole(), executor));
            let numbers = |batch: &Element| batch.array("n").unwrap().as_slice::<i64>().unwrap().to_vec();
            let (mut failed, mut real) = (0, 0);
            for (padded, whole) in std::iter::zip(&padded, &expected) {
                let fails: Vec<bool> = numbers(whole).into_iter().map(some).collect();
                let masks = [padded, whole].map(|batch| batch.array("batch_mask").unwrap().bytes().to_vec());
                for (row, fails) in fails.into_iter().enumerate() {
                    let expected = if fails { (-1, 0) } else { (numbers(whole)[row], masks[1][row]) };
                    assert_eq!((numbers(padded)[row], masks[0][row]), expected);
                    (failed, real) = (failed + u64::from(fails), real + u64::from(masks[0][row]));
                }
            }
            assert_eq!((failed, failed + real), (35, RECORDS as u64));
            let parts = (0..13).map(|index| deliver(&mut host(&make(some), Part::of(index, 13), executor)).1);
            let mut sum = RowDigest::default();
            parts.for_each(|part| sum.add(part));
            assert_eq!(sum, digest);
        }
    }
}

/// Of a record that fails all elements do; what is put behind the border and fails, fails one element.
#[test]
fn pieces_and_functions_behind_the_border_fail_too() {
    let pieces = |bad: Bad| {
        let ds = documents(bad).to_iter().flat_map(|e: Element| vec![e.clone(), e]).window_shuffle(20, 1);
        let judged = IterDatasetExt::try_map(ds, |e: Element| {
            let x = id(&e);
            if x % 50 == 1 {
                Err(Error::data(format!("{x} is refused")))
            } else {
                Ok(Element::new().with("n", Array::scalar(x)))
            }
        });
        judged.batch_masked(BATCH).boxed()
    };
    #[derive(Debug)]
    struct Two;
    impl KeySource for Two {
        fn find(&self, _: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
            Ok(Some(Arc::new(Two)))
        }
    }
    impl Keys for Two {
        fn key(&self, _: u64, _: &mut Vec<u32>) -> Result<Key> {
            Ok(Key::Elements(2))
        }
    }
    for executor in EXECUTORS {
        let builder = pieces(some).loader().part(Part::whole()).keys(Two).executor(executor);
        let mut loader = builder.on_failed_element(FailedElements::pad()).build().unwrap();
        let (batches, _) = deliver(&mut loader);
        let masks = batches.iter().flat_map(|batch| batch.array("batch_mask").unwrap().bytes().to_vec());
        let refused = (0..RECORDS).filter(|x| x % 50 == 1 && !some(*x)).count() as u64;
        assert_eq!(masks.map(u64::from).sum::<u64>(), 2 * (RECORDS as u64 - 35 - refused));
        let remark = loader.report().remarks.join("\n");
        let (least, most) = (35 + 2 * refused, 70 + 2 * refused);
        let told: u64 = remark.split(' ').next().unwrap().parse().unwrap();
        assert!((least..=most).contains(&told), "{remark}");
    }
}

/// Failures of other kinds, elements that are not as their keys say, those beyond the limit, and all of them where nothing was chosen.
#[test]
fn what_may_not_become_padding_is_an_error() {
    fn late(x: i64) -> bool {
        x > 500
    }
    let error = |ds: BoxIter<Element>, policy: Option<FailedElements>| {
        let builder = ds.loader().part(Part::whole()).keys(Known);
        let builder = policy.into_iter().fold(builder, |builder, policy| builder.on_failed_element(policy));
        builder.build().unwrap().find_map(Result::err).expect("something fails")
    };
    let limited = Some(FailedElements::Pad { limit: Some(3) });
    for rows in ROWS {
        let ds = |bad| packed(rows, bad).batch_with(BATCH, Remainder::Drop).boxed();
        assert!(error(ds(some), None).to_string().contains(" is damaged"));
        let text = error(ds(some), limited).to_string();
        assert!(text.contains(" is damaged; 3 failed elements became padding before it, which is the limit"), "{text}");
        assert!(error(ds(late), Some(FailedElements::Error)).to_string().ends_with(" is damaged"));
    }
    let changed = |change: fn(Element) -> Result<Element>| {
        let ds = documents(none).to_iter().try_map(change);
        ds.window_pack(WindowPackOptions::new(RowSpec::new([("t", 12)])).window(20)).batch(4).boxed()
    };
    let gone = changed(|e| match id(&e) {
        77 => Err(Error::new(ErrorKind::Io, "the disk is gone")),
        _ => Ok(e),
    });
    assert_eq!(error(gone, Some(FailedElements::pad())).kind(), ErrorKind::Io);
    let grown = changed(|e| Ok(e.with("t", Array::from_vec(vec![1i32; 3]))));
    let text = error(grown, Some(FailedElements::pad())).to_string();
    assert!(text.contains("the keys are stale: \"t\" has 3 cells, but "), "{text}");
}

/// Batches of buckets: the row of an element that fails is padding of length 0, in the bucket that its key says, and null in the lists beside it.
#[test]
fn rows_of_buckets_that_fail_are_padding_of_length_0() {
    fn most(x: i64) -> bool {
        x % 100 != 99
    }
    let batches = |bad, size| {
        let options = LengthBucketOptions::new(["t"], [4, 8, 11], BatchSize::Fixed(size)).padding("t", PAD.into());
        documents(bad).to_iter().window_shuffle(40, 2).length_buckets(options.pad_remainder()).boxed()
    };
    for (bad, size, part) in [
        (some as Bad, BATCH, Part::whole()),
        (some, BATCH, Part::of(1, 3)),
        // Most batches have no element that could show what padding is like.
        (most, BATCH, Part::of(5, 12)),
    ] {
        for executor in EXECUTORS {
            let start = |bad| host(&batches(bad, size), part.clone(), executor);
            let ((whole, _), (padded, _)) = (deliver(&mut start(none)), deliver(&mut start(bad)));
            assert_eq!(padded.len(), whole.len());
            let mut failed = 0;
            for (padded, whole) in std::iter::zip(&padded, &whole) {
                assert_eq!(padded.array("t").unwrap().shape(), whole.array("t").unwrap().shape());
                let width = whole.array("t").unwrap().shape()[1];
                let [Some(Value::List(ids)), Some(Value::List(expected))] =
                    [padded, whole].map(|batch| batch.get("id"))
                else {
                    panic!("rows have ids")
                };
                let lens = std::iter::zip(cells(padded, "t_lengths"), cells(whole, "t_lengths"));
                let rows =
                    std::iter::zip(cells(padded, "t").chunks(width).map(<[_]>::to_vec).collect::<Vec<_>>(), lens);
                for (row, (tokens, (len, expected_len))) in rows.enumerate() {
                    let Value::Array(id) = &expected[row] else {
                        let nothing = (0, &Value::Null, vec![PAD; width]);
                        assert_eq!((len, &ids[row], tokens), nothing, "nothing was there");
                        continue;
                    };
                    let x = id.as_i64().unwrap();
                    if bad(x) {
                        failed += 1;
                        assert_eq!((len, &ids[row], tokens), (0, &Value::Null, vec![PAD; width]));
                    } else {
                        assert_eq!((len, &ids[row]), (expected_len, &expected[row]));
                        let filled =
                            (0..width).map(|cell| if cell < expected_len as usize { x as i32 + 1 } else { PAD });
                        assert_eq!(tokens, filled.collect::<Vec<_>>());
                    }
                }
            }
            assert!(failed > 5, "{failed}");
        }
    }
}

/// Where no batch can say that a row is padding, nobody starts; without a plan nothing is changed.
#[test]
fn padding_that_nobody_could_tell_is_refused() {
    let numbers = || documents(some).to_iter();
    let start = |ds: BoxIter<Element>| {
        ds.loader().part(Part::of(0, 2)).keys(Known).on_failed_element(FailedElements::pad()).build()
    };
    for ds in [numbers().batch(BATCH).boxed(), numbers().window_shuffle(9, 1).batch(BATCH).boxed()] {
        let error = start(ds).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains("`batch` does not mark its rows of padding"), "{error}");
        assert!(error.help_text().unwrap().contains("batch_masked"));
    }
    assert!(!MakeBatch::<i64>::says_padding(&gristmill::dataset::iter::StackedPadded));
    let unplanned = packed(Rows::Window, some).batch(BATCH).boxed().loader().part(Part::of(0, 2));
    let error = unplanned.on_failed_element(FailedElements::pad()).build().unwrap().find_map(Result::err).unwrap();
    assert!(error.to_string().contains(" is damaged"));
}

/// A host all of whose rows fail, from its first one on: it learns from others what padding is like.
#[test]
fn a_host_whose_rows_all_fail_delivers_padding() {
    fn most(x: i64) -> bool {
        x % 100 != 99
    }
    for rows in ROWS {
        let batches = |bad| packed(rows, bad).batch_with(BATCH, Remainder::Drop).boxed();
        let (whole, _) = deliver(&mut host(&batches(none), Part::of(5, 12), Executor::Inline));
        let (padded, _) = deliver(&mut host(&batches(most), Part::of(5, 12), Executor::Inline));
        std::iter::zip(&padded, &whole).for_each(|(padded, whole)| check(padded, whole, most));
    }
    let masked = documents(most).to_iter().map(|e| Element::new().with("n", e.array("id").unwrap().clone()));
    let (batches, _) = deliver(&mut host(&masked.batch_masked(BATCH).boxed(), Part::of(2, 12), Executor::Inline));
    let masks: Vec<u8> = batches.iter().flat_map(|batch| batch.array("batch_mask").unwrap().bytes().to_vec()).collect();
    assert!(masks.len() == 50 && masks.iter().filter(|&&real| real == 1).count() <= 6, "{masks:?}");
    let ds = documents(|_| true).to_iter().map(|e| e).batch_masked(BATCH).boxed();
    let error = host(&ds, Part::whole(), Executor::Inline).find_map(Result::err).unwrap();
    assert!(error.to_string().contains("all rows of the part failed"), "{error}");
}

/// One host has a damaged copy: all go on with one plan, also in a last batch that is not whole, which each makes alone.
#[test]
fn hosts_of_which_one_fails_agree() {
    for rows in ROWS {
        let exchange = InMemory::new();
        let host = |index: usize| {
            let bad = if index == 1 { some } else { none };
            let ds = packed(rows, bad).batch_masked(BATCH).boxed();
            let builder = ds.loader().part(Part::of(index, 3)).keys(Known).guard(exchange.clone().host(index, 3));
            let mut loader = builder.on_failed_element(FailedElements::pad()).build().unwrap();
            let error = loader.by_ref().find_map(Result::err);
            assert!(error.is_none(), "{error:?}");
            (loader.delivered(), loader.state().unwrap().to_json())
        };
        let told: HashSet<(u64, String)> = std::thread::scope(|scope| {
            let host = &host;
            let hosts: Vec<_> = (0..3).map(|index| scope.spawn(move || host(index))).collect();
            hosts.into_iter().map(|host| host.join().unwrap()).collect()
        });
        assert_eq!(told.len(), 1, "{told:?}");
    }
}
