use proptest::prelude::*;

use super::*;
use crate::cx::Recorder;
use crate::dataset::iter::laws;
use crate::dataset::map::{RandomAccess, Source, SourceFacts};
use crate::dataset::{BoxMap, DatasetIterator, IterDataset, MapDataset, MapDatasetExt, Remainder, Stage, Upcoming};
use crate::element::{Array, Buffer, Element, Value};
use crate::exec::{Executor, Runtime};

fn written(rows: impl Iterator<Item = Element>, options: ParquetWriterOptions) -> Contents {
    contents(&file(rows, options))
}

fn file(rows: impl Iterator<Item = Element>, options: ParquetWriterOptions) -> Vec<u8> {
    let mut writer = ParquetWriter::new(Vec::new(), options).unwrap();
    rows.for_each(|row| writer.write(&row).unwrap());
    writer.finish().unwrap()
}

fn contents(file: &[u8]) -> Contents {
    vec![("x.parquet".into(), Buffer::copy_from(file).into())]
}

/// Rows `0..100`, ten per row group. Every column is sorted.
fn sorted() -> Contents {
    let row = |i: i64| {
        let meta = Element::new().with("url", format!("u{i}").as_str()).with("size", Array::scalar(i as f32));
        Element::new().with("id", Array::scalar(i)).with("name", format!("n{i:03}").as_str()).with("meta", meta)
    };
    written((0..100).map(row), ParquetWriterOptions::new().row_group_rows(10))
}

fn ids(source: &Parquet) -> Vec<i64> {
    (0..source.len()).map(|i| source.read(i).unwrap().array("id").unwrap().as_i64().unwrap()).collect()
}

#[test]
fn row_groups_that_cannot_hold_such_a_row_are_left_out() {
    let open = |condition| Parquet::options().row_groups_where(condition).open_contents(sorted());
    assert_eq!(ids(&open(Condition::column("id").min(25.0).max(31.5)).unwrap()), (20..40).collect::<Vec<_>>());
    assert_eq!(ids(&open(Condition::column("id").max(-1.0)).unwrap()), [0i64; 0]);
    assert_eq!(ids(&open(Condition::column("name").equals("n055")).unwrap()), (50..60).collect::<Vec<_>>());
    let source = open(Condition::column("id").min(95.0)).unwrap();
    assert!(source.facts().identity.ends_with("row groups where id >= 95"), "{:?}", source.facts());
    for (condition, told) in [
        (Condition::column("di").min(1.0), "no column \"di\"; there are id"),
        (Condition::column("name").min(1.0), "holds text, which is compared with a number"),
        (Condition::column("id").equals("a"), "holds array, which is compared with a text"),
        (Condition::column("meta").min(1.0), "has no order"),
    ] {
        let error = open(condition).unwrap_err();
        assert!(error.message().contains(told) && error.kind() == crate::ErrorKind::Config, "{error}");
    }
}

/// Nulls have no order. A row group of nulls only has no statistics.
#[test]
fn row_groups_without_statistics_are_read() {
    let rows = [Value::Null, Value::Null, Array::scalar(7i64).into(), Array::scalar(8i64).into()];
    let rows = rows.map(|value| Element::new().with("id", value));
    let contents = written(
        rows.into_iter(),
        ParquetWriterOptions::new().row_group_rows(2).example(Element::new().with("id", Array::scalar(0i64))),
    );
    let source = Parquet::options().row_groups_where(Condition::column("id").min(9.0)).open_contents(contents).unwrap();
    assert_eq!((source.len(), source.read(0).unwrap().get("id")), (2, Some(&Value::Null)));
}

#[test]
fn fields_of_structs_are_columns() {
    let open = |columns: &[&str]| Parquet::options().columns(columns).open_contents(sorted());
    let row = open(&["meta.url", "id"]).unwrap().read(12).unwrap();
    assert_eq!(row, Element::new().with("meta", Element::new().with("url", "u12")).with("id", Array::scalar(12i64)));
    let row = open(&["meta.size", "meta.url"]).unwrap().read(3).unwrap();
    assert_eq!(row, Element::new().with("meta", Element::new().with("url", "u3").with("size", Array::scalar(3f32))));
    for (columns, told) in [
        (&["meta.ulr"][..], "no column \"meta.ulr\""),
        (&["id.x"], "no column \"id.x\""),
        (&["id", "id"], "named twice"),
        (&["meta.url", "id", "id"], "named twice"),
    ] {
        let error = open(columns).unwrap_err();
        assert!(error.message().contains(told), "{error}");
    }
}

/// Inserts a list of 2^31 items of no bytes each, which the crate would skip item by item.
#[test]
fn lists_in_headers_are_not_believed() {
    let rows = (0..10).map(|i| Element::new().with("id", Array::scalar(i64::from(i))));
    let good = file(rows, ParquetWriterOptions::new());
    let open = |file: &[u8]| Parquet::options().open_contents(contents(file));
    for (list, told) in [
        ([0xf9, 0xf1, 0xff, 0xff, 0xff, 0xff, 7], "a list of 2147483647 booleans"),
        ([0xf9, 0xf7, 0xff, 0xff, 0xff, 0xff, 7], "it ends before all is there"),
    ] {
        // The first page follows the magic.
        let mut page = good.clone();
        page[4..11].copy_from_slice(&list);
        let error = open(&page).unwrap().read(0).unwrap_err().to_string();
        assert!(error.contains("row group 0") && error.contains("page at byte 4") && error.contains(told), "{error}");
        let error = open(&with_in_footer(&good, &list)).unwrap_err().to_string();
        assert!(error.contains("footer: ") && error.contains(told), "{error}");
    }
}

/// The decoder would allocate 2 GiB for a page that claims this size. A failed allocation would abort the process.
#[test]
fn sizes_of_pages_are_no_more_than_their_bytes_can_hold() {
    let rows = (0..10).map(|i| Element::new().with("id", Array::scalar(i64::from(i))));
    let good = file(rows, ParquetWriterOptions::new());
    // Field 1 is the page type. Field 2 is the uncompressed size, with one or two bytes here.
    assert_eq!((good[4], good[6]), (0x15, 0x15));
    let end = 7 + good[7..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    for (size, told) in [
        (i64::from(i32::MAX), "compressed bytes claim to hold 2147483647"),
        (-1, "it claims to have"),
        (i64::MAX, "claim to hold 9223372036854775807"),
    ] {
        let mut number = ((size << 1) ^ (size >> 63)) as u64;
        let mut varint = Vec::new();
        while number >= 0x80 {
            varint.push(number as u8 | 0x80);
            number >>= 7;
        }
        varint.push(number as u8);
        // The page of 80 bytes is shortened or lengthened by the change in header size, so that later offsets are
        // unchanged.
        let (before, after) = (end - 7, varint.len());
        let mut lie = good.clone();
        lie.splice(7..end, varint);
        lie.splice(60..60 + after.saturating_sub(before), vec![0; before.saturating_sub(after)]);
        let error = Parquet::options().open_contents(contents(&lie)).unwrap().read(0).unwrap_err().to_string();
        assert!(error.contains("row group 0") && error.contains("page at byte 4") && error.contains(told), "{error}");
    }
}

/// Returns the file with a field inserted before the last byte of its footer.
fn with_in_footer(file: &[u8], field: &[u8]) -> Vec<u8> {
    let (mut file, at) = (file.to_vec(), file.len() - 9);
    let length = u32::from_le_bytes(*file.last_chunk::<8>().unwrap().first_chunk().unwrap()) + field.len() as u32;
    file.splice(at..at, field.iter().copied());
    let end = file.len() - 8;
    file[end..end + 4].copy_from_slice(&length.to_le_bytes());
    file
}

/// A million booleans without bytes. If this test fails, the modules `thrift` and `fields` may no longer be needed.
#[test]
fn the_crate_believes_lists_that_it_skips() {
    use parquet::file::metadata::ParquetMetaDataReader;
    let good = file([Element::new().with("id", Array::scalar(1i64))].into_iter(), ParquetWriterOptions::new());
    let bytes = bytes::Bytes::from(with_in_footer(&good, &[0xf9, 0xf1, 0xc0, 0x84, 0x3d]));
    let read = ParquetMetaDataReader::new().parse_and_finish(&bytes);
    assert_eq!(read.unwrap().file_metadata().num_rows(), 1);
}

#[test]
fn a_file_of_something_else_is_told_by_its_size_or_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    for (bytes, told) in
        [("PAR1xxxx", "8 bytes, and the smallest has 12"), ("0123456789abcdef", "16 bytes that do not begin with PAR1")]
    {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Parquet::open(&path).unwrap_err().message(), format!("not a parquet file: {told}"));
    }
}

/// The crate reads the format version as a number, whatever its declared type. Bytes of a text there are then parsed as
/// fields.
#[test]
fn fields_of_footers_are_what_they_are_read_as() {
    let rows = (0..10).map(|i| Element::new().with("id", Array::scalar(i64::from(i))));
    let mut footer = file(rows, ParquetWriterOptions::new());
    let length = u32::from_le_bytes(*footer.last_chunk::<8>().unwrap().first_chunk().unwrap());
    let (begin, version) = (footer.len() - 8 - length as usize, [0x15, 2]);
    assert_eq!(footer[begin..begin + 2], version);
    let (list, end) = ([0xe9, 0xf1, 0xff, 0xff, 0xff, 0xff, 7], footer.len() + 7);
    footer.splice(begin..begin + 2, [0x18, list.len() as u8].into_iter().chain(list));
    footer[end - 8..end - 4].copy_from_slice(&(length + 7).to_le_bytes());
    let error = Parquet::options().open_contents(contents(&footer)).unwrap_err().to_string();
    assert!(error.contains("footer: field 1 is of type 8, which it cannot be"), "{error}");
}

/// The rows of a source, read individually.
struct Apart(Parquet);

impl RandomAccess for Apart {
    type Record = Element;
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn read(&self, index: u64) -> Result<Element> {
        self.0.read(index)
    }
    fn facts(&self) -> SourceFacts {
        SourceFacts::new("parquet", "")
    }
    fn record_bytes(&self, record: &Element) -> u64 {
        self.0.record_bytes(record)
    }
}

/// A stage that changes the order.
#[derive(Clone, Debug)]
enum Order {
    Shuffle(u32),
    Windows(u64, u32),
    Slice(i64, i64),
    Repeat(u64, bool),
    Pick(Vec<prop::sample::Index>),
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        any::<u32>().prop_map(Order::Shuffle),
        (1u64..40, any::<u32>()).prop_map(|(window, seed)| Order::Windows(window, seed)),
        (0i64..60, 1i64..4).prop_map(|(start, step)| Order::Slice(start, step)),
        (1u64..4, any::<bool>()).prop_map(|(epochs, reseed)| Order::Repeat(epochs, reseed)),
        prop::collection::vec(any::<prop::sample::Index>(), 1..80).prop_map(Order::Pick),
    ]
}

fn ordered(ds: BoxMap<Element>, order: &Order) -> BoxMap<Element> {
    if ds.is_empty() {
        return ds;
    }
    match order {
        Order::Shuffle(seed) => ds.shuffle(*seed).boxed(),
        Order::Windows(window, seed) => ds.window_shuffle(*window, *seed).boxed(),
        Order::Slice(start, step) => ds.slice_step(*start.., *step).boxed(),
        Order::Repeat(epochs, reseed) => ds.repeat(*epochs).reseed_each_epoch(*reseed).boxed(),
        Order::Pick(picks) => {
            let indices: Vec<u64> = picks.iter().map(|pick| pick.index(ds.len() as usize) as u64).collect();
            ds.select_indices(indices).boxed()
        }
    }
}

/// Runs a pass. Returns all elements and errors, and the element counts of the stages.
fn pass<D: IterDataset<Item = Element>>(ds: &D, executor: Executor) -> (Vec<Result<Element, String>>, Vec<u64>) {
    let recorder = Recorder::new((ds as &dyn Stage).count());
    let run = Runtime::new(executor, Some(recorder.clone())).unwrap();
    let (mut iter, mut cx, mut all) = (ds.iter(&run).unwrap(), run.cx(), Vec::new());
    while let Some(next) = iter.next(&mut cx).transpose() {
        all.push(next.map_err(|e| e.to_string()));
    }
    drop((iter, cx));
    (all, recorder.totals().iter().map(|tally| tally.counts.elements).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Batches from columns equal batches from elements, errors included, also after a resume.
    #[test]
    fn batches_out_of_columns_are_those_of_elements(
        rows in 1usize..150,
        group in 1usize..60,
        odd in prop::option::of((0usize..150, 0usize..3)),
        orders in prop::collection::vec(order(), 0..3),
        size in 1usize..40,
        drop_rest: bool,
    ) {
        let row = |i: usize| {
            let is_odd = |how| odd == Some((i, how));
            let numbers = Array::from_vec(vec![i as i32; if is_odd(0) { 2 } else { 3 }]);
            let number = if is_odd(1) { Value::Null } else { Array::scalar(i as f64).into() };
            let text = if is_odd(2) { Value::Null } else { i.to_string().as_str().into() };
            let inner = Element::new().with("numbers", numbers).with("number", number);
            Element::new().with("id", Array::scalar(i as i64)).with("in", inner).with("text", text)
        };
        let options = ParquetWriterOptions::new().row_group_rows(group).example(row(usize::MAX));
        let file = written((0..rows).map(row), options);
        let open = || Parquet::options().cache_bytes(0).open_contents(file.clone()).unwrap();
        let remainder = if drop_rest { Remainder::Drop } else { Remainder::Keep };
        let order = |ds: BoxMap<Element>| orders.iter().fold(ds, ordered);
        let (columns, apart) = (order(Source::new(open()).boxed()), order(Source::new(Apart(open())).boxed()));
        prop_assert!((&columns as &dyn Stage).stacks() && !(&apart as &dyn Stage).stacks());
        let expected = pass(&apart.clone().to_iter().batch_with(size, remainder), Executor::Inline);
        let ours = columns.clone().to_iter().batch_with(size, remainder);
        prop_assert_eq!(&pass(&ours, Executor::Inline), &expected);
        prop_assert_eq!(&pass(&ours, Executor::Threads(2)).0, &expected.0);
        laws::check_to_error(&ours);
        let masked = |ds: &BoxMap<Element>| pass(&ds.clone().to_iter().batch_masked(size), Executor::Inline);
        prop_assert_eq!(masked(&columns), masked(&apart));
        let fixed = |ds: &BoxMap<Element>| pass(&ds.clone().batch_with(size, remainder).to_iter(), Executor::Inline);
        prop_assert_eq!(fixed(&columns), fixed(&apart));
    }
}

#[test]
fn decoding_a_row_group_is_a_cause_of_start_up() {
    let row = |i: i64| Element::new().with("name", format!("n{i:06}").as_str());
    let files = written((0..200_000).map(row), ParquetWriterOptions::new().row_group_rows(200_000));
    let source = Parquet::options().open_contents(files).unwrap();
    let from = std::time::Instant::now();
    source.read(7).unwrap();
    let made = crate::startup::made_between(from, std::time::Instant::now());
    assert!(made.iter().any(|(what, _)| *what == "a row group decoded"), "{made:?}");
}

#[test]
fn rows_that_were_stacked_are_told_of_no_more() {
    // No number repeats. Otherwise, a dictionary would make the file smaller than its decoded values.
    let row = |id: i64| Element::new().with("id", Array::from_vec((0..32).map(|x| 32 * id + x).collect::<Vec<i64>>()));
    let file = written((0..2048).map(row), ParquetWriterOptions::new().row_group_rows(128));
    let source = Parquet::options().cache_bytes(1 << 18).open_contents(file).unwrap();
    let mut order: Vec<u64> = (0..2048).collect();
    crate::rng::EpochShuffle::new(2048, 1).get_many(&mut order);
    let (told, wanted) = (&order[..512], std::sync::Arc::new(()));
    source.will_read(Upcoming::new(told, &std::sync::Arc::downgrade(&wanted)));
    assert!(source.0.units.told() > 500);
    for batch in told.chunks(64) {
        assert!(source.read_stacked(batch).is_some());
    }
    assert_eq!((source.0.units.told(), source.0.units.take_decoded().unwrap().read), (0, 512));
}
