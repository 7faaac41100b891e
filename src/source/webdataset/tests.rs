//! Archives from other writers, from this writer, and damaged archives.

use proptest::prelude::*;

use super::*;
use crate::Cx;
use crate::dataset::map::RandomAccess;
use crate::dataset::{DatasetIterator, IterDataset, IterDatasetExt};
use crate::element::{Array, Buffer, Value};
use crate::exec::Runtime;
use crate::source::FileState;

fn written(elements: &[Element]) -> Vec<u8> {
    let mut writer = WebDatasetWriter::new(Vec::new());
    elements.iter().for_each(|element| writer.write(element).unwrap());
    writer.finish().unwrap()
}

fn contents(archives: &[&[u8]]) -> Contents {
    let one = |(i, bytes): (usize, &&[u8])| (format!("{i}.tar").into(), Buffer::copy_from(bytes).into());
    archives.iter().enumerate().map(one).collect()
}

fn by_number(options: WebDatasetOptions, archive: &[u8]) -> Result<Vec<Element>> {
    let source = options.open_contents(contents(&[archive]))?;
    (0..source.len()).map(|i| source.read(i)).collect()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn sample(key: &str, text: &str) -> Element {
    Element::new().with("__key__", key).with("txt", text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_written_is_read(
        parts in prop::collection::vec(("[a-zA-Zé_][a-z]{0,140}", ".{0,30}", any::<i64>(), prop::collection::vec(any::<f32>(), 0..9)), 0..12),
    ) {
        let element = |(at, (key, text, class, numbers)): (usize, &(String, String, i64, Vec<f32>))| {
            let key = format!("{key}.d/{key}/{at}");
            let long = Value::Bytes(Buffer::from_vec(vec![at as u8; 100 * at]));
            Element::new().with("__key__", key.as_str()).with("txt", text.as_str()).with("cls", Array::scalar(*class))
                .with("seg.npy", Array::from_vec(numbers.iter().map(|n| n.to_bits()).collect()))
                .with("json", Element::new().with("text", text.as_str()))
                .with("bin", long)
        };
        let elements: Vec<Element> = parts.iter().enumerate().map(element).collect();
        let archive = written(&elements);
        let options = || WebDataset::options().decode(true);
        prop_assert_eq!(by_number(options(), &archive).unwrap(), elements.clone());
        for bytes in [archive.clone(), packed(&archive)] {
            prop_assert_eq!(options().stream_contents(contents(&[&bytes])).unwrap().collect().unwrap(), elements.clone());
        }
        // Both readers detect any cut.
        let cut = &archive[..archive.len() - 1025.min(archive.len())];
        prop_assert!(by_number(options(), cut).is_err());
        prop_assert!(options().stream_contents(contents(&[cut])).unwrap().collect().is_err());
    }
}

/// Names too long for a header, in GNU's format by the `tar` crate. Folders, links and sizes in base 256 are between
/// the files.
#[test]
fn what_other_writers_write() {
    let long = format!("{}/{}", "d".repeat(200), "n".repeat(120));
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |path: &str, kind: tar::EntryType, data: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(data.len() as u64);
        if data.len() == 3 {
            let size = &mut header.as_gnu_mut().unwrap().size;
            *size = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3];
        }
        builder.append_data(&mut header, path, data).unwrap();
    };
    use tar::EntryType::{Directory, Regular, Symlink};
    add("folder/", Directory, b"");
    add("a.JPG", Regular, b"one");
    add("a.txt.link", Symlink, b"");
    add("a.seg.png", Regular, b"two bytes");
    add("README", Regular, b"passed over");
    add("__meta__/x.txt", Regular, b"too");
    add(&format!("{long}.txt"), Regular, b"");
    add("a.jpg", Regular, b"again, as another sample");
    let archive = builder.into_inner().unwrap();
    let read = by_number(WebDataset::options(), &archive).unwrap();
    let bytes = |bytes: &[u8]| Value::Bytes(Buffer::copy_from(bytes));
    let wanted = [
        Element::new().with("__key__", "a").with("jpg", bytes(b"one")).with("seg.png", bytes(b"two bytes")),
        Element::new().with("__key__", long.as_str()).with("txt", bytes(b"")),
        Element::new().with("__key__", "a").with("jpg", bytes(b"again, as another sample")),
    ];
    assert_eq!(read, wanted);
    assert_eq!(WebDataset::options().stream_contents(contents(&[&archive])).unwrap().collect().unwrap(), wanted);
    let with_url = by_number(WebDataset::options().url(true).columns(["__url__", "jpg"]), &archive);
    assert!(with_url.unwrap_err().to_string().contains("0.tar: record 1: byte "));
    let first = WebDataset::options().url(true).columns(["__url__"]).open_contents(contents(&[&archive])).unwrap();
    assert_eq!(first.read(0).unwrap().text("__url__").unwrap(), "0.tar");
}

#[test]
fn damage_says_where() {
    let archive = written(&[sample("a", "one"), sample("b", "two"), sample("c", "three")]);
    let error = |archive: &[u8]| by_number(WebDataset::options(), archive).unwrap_err().to_string();
    let mut flipped = archive.clone();
    flipped[1024] ^= 1;
    assert!(
        error(&flipped).starts_with("0.tar: record 1: byte 1024: the checksum of the header is"),
        "{}",
        error(&flipped)
    );
    assert!(
        error(&archive[..1100]).starts_with("0.tar: record 1: byte 1024: the file ends inside of a header, after 76")
    );
    assert!(error(&archive[..1537]).contains("record 1: byte 1024: a member of 3 bytes, where there are 1"));
    assert!(error(&archive[..2048]).contains("byte 2048: the archive has no end"));
    let joined = [archive.clone(), archive.clone()].concat();
    assert!(error(&joined).contains("byte 4096: there are bytes after the end of the archive"), "{}", error(&joined));
    let twice = written(&[sample("a", "one").with("cls", Array::scalar(1))]);
    let second = twice.windows(5).position(|w| w == b"a.cls").unwrap();
    let mut twice = twice;
    twice[second + 2..second + 5].copy_from_slice(b"txt");
    let sum = |block: &[u8]| block.iter().map(|&b| u32::from(b)).sum::<u32>();
    twice[second + 148..second + 156].copy_from_slice(b"        ");
    let total = sum(&twice[second..second + 512]);
    twice[second + 148..second + 156].copy_from_slice(format!("{total:06o}\0 ").as_bytes());
    assert!(error(&twice).contains("record 0: byte 1024: sample \"a\" has \"txt\" twice"), "{}", error(&twice));
    let json = written(&[Element::new().with("__key__", "a").with("json", Value::Bytes(Buffer::copy_from(b"{")))]);
    let error = by_number(WebDataset::options().decode(true), &json).unwrap_err().to_string();
    assert!(error.starts_with("0.tar: record 0: byte 0: \"json\": byte 0: EOF"), "{error}");
}

#[test]
fn a_state_continues_and_is_kept() {
    let archives = [
        packed(&written(&[sample("a", "one"), sample("b", &"x".repeat(3000)), sample("c", "")])),
        written(&[]),
        written(&[sample("c", "another"), sample("d", "last")]),
    ];
    let ds = WebDataset::options().stream_contents(contents(&[&archives[0], &archives[1], &archives[2]])).unwrap();
    let (run, mut cx) = (Runtime::inline(), Cx::default());
    let all = ds.collect().unwrap();
    assert_eq!(all.iter().map(|e| e.text("__key__").unwrap()).collect::<Vec<_>>(), ["a", "b", "c", "c", "d"]);
    let mut iter = ds.iter(&run).unwrap();
    for taken in 0..=all.len() + 1 {
        let state = iter.state();
        let mut other = ds.iter(&run).unwrap();
        other.restore(state.clone(), &mut cx).unwrap();
        assert_eq!(other.state(), state);
        let rest: Vec<_> = std::iter::from_fn(|| other.next(&mut cx).unwrap()).collect();
        assert_eq!(rest, all[taken.min(all.len())..], "after {taken}");
        iter.next(&mut cx).unwrap();
    }
    let mut restore = |file, byte| ds.iter(&run).unwrap().restore(FileState { file, byte, record: 0 }, &mut cx);
    assert!([restore(4, 0), restore(3, 1), restore(2, 1 << 20)].iter().all(Result::is_err));
}

#[test]
fn a_damaged_file_ends_early_and_the_next_one_is_read() {
    let mut damaged = written(&[sample("a", "one"), sample("b", "two"), sample("c", "three")]);
    damaged[2048] ^= 1;
    let good = written(&[sample("d", "last")]);
    let ds = WebDataset::options().stream_contents(contents(&[&packed(&damaged), &good])).unwrap();
    let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
    let mut next = || match iter.next(&mut cx) {
        Ok(element) => element.map(|element| element.text("__key__").unwrap().to_owned()),
        Err(error) => Some(error.to_string()),
    };
    assert_eq!(next().unwrap(), "a");
    // The damaged header hides whether `b` has more files.
    let error = next().unwrap();
    assert!(error.contains("0.tar: record 1: byte 2048: the checksum") && error.contains("decompressed"), "{error}");
    assert_eq!((next().unwrap().as_str(), next()), ("d", None));
}

#[test]
fn a_file_that_cannot_be_opened_is_behind_it_once_that_is_told() {
    use crate::dataset::iter::{BadRecords, laws};
    // A frame header that requires a window of 2 GiB.
    let damaged = b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00";
    let files = [&written(&[sample("a", "one")]), damaged.as_slice(), &written(&[sample("b", "two")])];
    let ds = WebDataset::options().stream_contents(contents(&files)).unwrap();
    assert!(ds.collect().unwrap_err().to_string().contains("1.tar"));
    let read = laws::check(&ds.on_bad_record(BadRecords::skip()));
    assert_eq!(read.iter().map(|e| e.text("__key__").unwrap()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn what_would_read_back_as_another_is_refused() {
    let mut writer = WebDatasetWriter::new(Vec::new());
    let mut error = |element: Element| writer.write(&element).unwrap_err().to_string();
    for (key, name) in
        [("a.b", "txt"), ("", "txt"), ("a/", "txt"), ("a", "TXT"), ("a", "b/c"), ("__a__", "b__/c"), ("__x__/a", "txt")]
    {
        let text = error(Element::new().with("__key__", key).with(name, "text"));
        assert!(text.starts_with("record 0: the key"), "{key} {name}: {text}");
    }
    assert!(error(Element::new().with("txt", "text")).contains("no field \"__key__\""));
    assert!(error(Element::new().with("__key__", "a").with("_x", "text")).contains("without a field"));
    assert!(
        error(sample("a", "").with("jpg", Array::scalar(1)))
            .contains("an array int32[] cannot be written as .jpg, in field")
    );
    writer.write(&sample("a", "one")).unwrap();
    assert!(writer.write(&sample("a", "two")).unwrap_err().message().contains("the key \"a\" again"));
    assert_eq!(writer.len(), 1);
    assert_eq!(by_number(WebDataset::options(), &writer.finish().unwrap()).unwrap().len(), 1);
}

/// A large archive is scanned once, and its index is not used for another archive.
#[test]
fn places_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    let bytes = |i: u8| Value::Bytes(Buffer::from_vec(vec![i; 1 << 20]));
    let large = |i: u8| Element::new().with("__key__", i.to_string().as_str()).with("bin", bytes(i));
    std::fs::write(&path, written(&(0..10).map(large).collect::<Vec<_>>())).unwrap();
    let (first, index) = (WebDataset::open(&path).unwrap(), dir.path().join(".a.tar.gmi"));
    let kept = std::fs::read(&index).unwrap();
    let second = WebDataset::open(&path).unwrap();
    assert_eq!((second.len(), second.facts().identity), (10, first.facts().identity));
    assert_eq!(second.read(9).unwrap(), large(9));
    std::fs::write(&index, &kept[..kept.len() - 4]).unwrap();
    assert_eq!(WebDataset::open(&path).unwrap().read(9).unwrap(), large(9));
    assert_eq!(std::fs::read(&index).unwrap(), kept);
    let other = WebDataset::options().cache(IndexCache::Off).columns(["bin"]).open(&path).unwrap();
    assert_ne!(other.facts().identity, first.facts().identity);
}
