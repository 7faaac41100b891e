//! What a sink leaves in its folder, whatever happens to it.

mod kills;
mod schemas;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::*;
use crate::dataset::map::{RandomAccess, Range};
use crate::source::Jsonl;
use crate::{Array, Element, ErrorKind, Load, MapDatasetExt};

fn element(i: i64) -> Element {
    let text = "x".repeat((i * 37 % 101) as usize);
    Element::new().with("i", Array::scalar(i)).with("text", text.as_str())
}

fn options() -> SinkOptions {
    Sink::options(SinkFormat::Jsonl).shard_bytes(1000).threads(2)
}

/// Every file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

fn manifest(folder: &Path) -> Manifest {
    Manifest::from_json(&fs::read_to_string(folder.join(MANIFEST)).unwrap()).unwrap()
}

fn write_all(options: SinkOptions, folder: &Path, elements: std::ops::Range<i64>) -> SinkReport {
    let mut sink = options.open(folder).unwrap();
    elements.for_each(|i| sink.write(element(i)).unwrap());
    sink.finish().unwrap()
}

#[test]
fn a_folder_says_what_is_in_it() {
    let temp = tempfile::tempdir().unwrap();
    let report = write_all(options(), temp.path(), 0..100);
    let manifest = manifest(temp.path());
    assert!(manifest.complete && manifest.records == 100 && manifest.shards.len() > 3);
    assert_eq!((report.records, report.shards), (100, manifest.shards.len() as u64));
    let mut next = 0;
    for (at, shard) in manifest.shards.iter().enumerate() {
        let file = &shard.files[0];
        assert_eq!((&*file.name, shard.first_record), (&*format!("shard-{at:05}.jsonl"), next));
        let bytes = fs::read(temp.path().join(&file.name)).unwrap();
        assert_eq!(file.bytes, bytes.len() as u64);
        assert_eq!(file.xxh3, format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes)));
        let raw: usize = (next..next + shard.records).map(|i| element(i as i64).nbytes()).sum();
        assert_eq!(shard.raw_bytes, raw as u64);
        assert!(raw >= 1000 || at + 1 == manifest.shards.len());
        next += shard.records;
    }
    assert_eq!(files(temp.path()).len(), manifest.shards.len() + 1);
    let read = Jsonl::open(temp.path()).unwrap();
    assert_eq!((0..100).map(|i| read.read(i).unwrap()).collect::<Vec<_>>(), (0..100).map(element).collect::<Vec<_>>());
}

#[test]
fn neither_threads_nor_memory_change_a_byte() {
    let temp = tempfile::tempdir().unwrap();
    let folders = [(1, 1 << 30), (4, 1 << 30), (3, 0), (2, 5000)].map(|(threads, memory)| {
        let folder = temp.path().join(format!("{threads}-{memory}"));
        let report = write_all(options().threads(threads).memory(memory), &folder, 0..600);
        assert!(report.work.threads <= threads);
        files(&folder)
    });
    assert!(folders.iter().all(|folder| *folder == folders[0]));
}

#[cfg(feature = "compress")]
#[test]
fn a_row_of_a_batch_is_an_element_and_files_are_compressed() {
    let temp = tempfile::tempdir().unwrap();
    for compression in [Compression::Zstd(3), Compression::Gzip(6), Compression::Lz4] {
        let folder = temp.path().join(compression.name());
        let mut sink = options().compression(compression).open(&folder).unwrap();
        let rows = Array::new(crate::DType::I32, &[3, 2], crate::Buffer::from_vec((0..6i32).collect())).unwrap();
        let names = crate::Value::List(vec!["a".into(), "b".into(), "c".into()]);
        sink.write_batch(&Element::new().with("n", rows).with("name", names)).unwrap();
        assert!(sink.write_batch(&Element::new().with("x", Array::scalar(1i32))).is_err());
        let report = sink.finish().unwrap();
        assert_eq!((report.records, report.bytes_in), (3, 6 * 4 + 3));
        let stream = crate::source::StreamOptions::new().jsonl(&folder).unwrap();
        let read = crate::IterDatasetExt::collect(&stream).unwrap();
        assert_eq!(read[2].text("name").unwrap(), "c");
        assert_eq!(read[2].array("n").unwrap().as_slice::<i64>().unwrap(), [4, 5]);
    }
}

#[test]
fn what_was_stopped_is_continued_to_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let whole = temp.path().join("whole");
    write_all(options(), &whole, 0..500);
    let folder = temp.path().join("stopped");
    for stop in [1, 0, 137, 40, 300] {
        let mut sink = options().resume(true).open(&folder).unwrap();
        let first = sink.records() as i64;
        (first..(first + stop).min(500)).for_each(|i| sink.write(element(i)).unwrap());
        // As a process that is killed would leave it.
        drop(sink);
        fs::write(folder.join(".shard-00077.jsonl.17.0.tmp"), "{").unwrap();
        fs::write(folder.join("shard-00078.jsonl"), "{}").unwrap();
    }
    let mut sink = options().resume(true).open(&folder).unwrap();
    let first = sink.records();
    assert!(first > 100 && !sink.is_complete());
    (first as i64..500).for_each(|i| sink.write(element(i)).unwrap());
    assert_eq!(sink.finish().unwrap().resumed, Some(first));
    assert_eq!(files(&folder), files(&whole));
    let mut sink = options().resume(true).open(&folder).unwrap();
    assert!(sink.is_complete() && sink.write(element(0)).is_err());
    assert_eq!(sink.finish().unwrap().records, 500);
    assert_eq!(files(&folder), files(&whole));
}

#[test]
fn a_pipeline_goes_on_where_the_folder_ends() {
    let temp = tempfile::tempdir().unwrap();
    let pipeline = || Range::new(0, 2000).seed(3).shuffle(None).map(element).to_iter().filter(|e| e.nbytes() > 20);
    let whole = temp.path().join("whole");
    pipeline().write_to(options(), &whole).unwrap();
    let folder = temp.path().join("stopped");
    for count in [30, 0, 700, 1] {
        let loader = pipeline().loader().threads(2);
        let (mut sink, mut loader) = Sink::of_pipeline(options().resume(true), &folder, loader).unwrap();
        for _ in 0..count {
            assert!(sink.write_next(&mut loader).unwrap());
        }
        sink.stop().unwrap();
    }
    let report = pipeline().write_to(options().resume(true), &folder).unwrap();
    assert!(report.resumed.is_some_and(|records| records > 600));
    assert_eq!(files(&folder), files(&whole));
    // Nothing is left to be written.
    pipeline().write_to(options().resume(true), &folder).unwrap();
    assert_eq!(files(&folder), files(&whole));
    let other = Range::new(0, 1999).map(element).to_iter();
    assert_eq!(other.write_to(options().resume(true), &folder).unwrap_err().kind(), ErrorKind::State);
}

#[test]
fn folders_that_are_not_to_be_touched_are_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let error = |options: SinkOptions, folder: &Path| options.open(folder).unwrap_err();
    let theirs = temp.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("shard-00003.jsonl"), "{}\n").unwrap();
    assert_eq!(error(options().resume(true), &theirs).kind(), ErrorKind::Config);
    assert!(options().prefix("mine").open(&theirs).is_ok());
    assert!(theirs.join("shard-00003.jsonl").exists());
    let ours = temp.path().join("ours");
    write_all(options(), &ours, 0..50);
    let before = files(&ours);
    assert!(error(options(), &ours).help_text().unwrap().contains("resume"));
    assert!(error(options().shard_bytes(7).resume(true), &ours).message().contains("shard_bytes 1000"));
    fs::write(ours.join("shard-00000.jsonl"), "{}").unwrap();
    assert_eq!(error(options().resume(true), &ours).kind(), ErrorKind::State);
    fs::write(ours.join("shard-00000.jsonl"), &before["shard-00000.jsonl"]).unwrap();
    fs::write(ours.join(MANIFEST), "{\"gristmill_manifest\": 9}").unwrap();
    assert!(error(options().resume(true), &ours).message().contains("format 9"));
    for prefix in ["", ".x", "a/b"] {
        assert_eq!(error(options().prefix(prefix), &ours).kind(), ErrorKind::Config);
    }
}

#[test]
fn an_element_that_cannot_be_written_is_named_and_the_rest_stands() {
    let temp = tempfile::tempdir().unwrap();
    let mut sink = options().threads(1).open(temp.path()).unwrap();
    let bad = Element::new().with("x", Array::scalar(f32::NAN));
    let wrote = (0..10_000).try_for_each(|i| sink.write(if i == 170 { bad.clone() } else { element(i) }));
    let error = wrote.and_then(|()| sink.finish().map(drop)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let text = error.to_string();
    assert!(text.contains("shard-0000") && text.contains("record 170") && text.contains("\"x\""), "{text}");
    let manifest = manifest(temp.path());
    assert!(!manifest.complete && manifest.records > 0 && manifest.records <= 170);
    assert!(files(temp.path()).keys().all(|name| !name.starts_with('.')));
    let mut sink = options().resume(true).open(temp.path()).unwrap();
    (sink.records() as i64..200).for_each(|i| sink.write(element(i)).unwrap());
    assert_eq!(sink.finish().unwrap().records, 200);
}

#[test]
fn a_sink_without_elements_is_an_empty_data_set() {
    let temp = tempfile::tempdir().unwrap();
    let report = write_all(options(), temp.path(), 0..0);
    assert_eq!((report.records, report.shards, report.bottleneck), (0, 0, "producer"));
    assert!(manifest(temp.path()).complete);
}

#[test]
fn token_files_hold_the_ids_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let ids = |i: i64| Array::from_vec((0..i % 9).map(|at| (i * 7 + at) as i32).collect::<Vec<_>>());
    let all: Vec<i32> = (0..400).flat_map(|i| ids(i).as_slice::<i32>().unwrap().to_vec()).collect();
    for (format, bare) in [(SinkFormat::Tokens, false), (SinkFormat::Tokens, true), (SinkFormat::Megatron, false)] {
        let folder = temp.path().join(format!("{format}-{bare}"));
        let options = Sink::options(format).column("ids").bare(bare).shard_bytes(500).threads(3);
        let mut sink = options.clone().open(&folder).unwrap();
        (0..400).for_each(|i| sink.write(Element::new().with("ids", ids(i))).unwrap());
        let report = sink.finish().unwrap();
        assert!(report.shards > 3 && report.records == 400);
        let read: Vec<i32> = if format == SinkFormat::Megatron {
            let source = crate::source::Megatron::open(&folder).unwrap();
            assert_eq!(source.len(), 400);
            let ids = |i| source.read(i).unwrap().array("tokens").unwrap().as_slice::<u16>().unwrap().to_vec();
            (0..400).flat_map(ids).map(i32::from).collect()
        } else {
            let header = if bare { 0 } else { 1024 };
            let files = files(&folder).into_iter().filter(|(name, _)| name.ends_with(".bin"));
            let ids = files.flat_map(|(_, bytes)| bytes[header..].to_vec()).collect::<Vec<u8>>();
            ids.chunks_exact(2).map(|id| i32::from(u16::from_le_bytes([id[0], id[1]]))).collect()
        };
        assert_eq!(read, all);
        let mut wide = options.open(folder.join("wide")).unwrap();
        let wrote = wide.write(Element::new().with("ids", Array::from_vec(vec![65_536i32])));
        assert!(wrote.and_then(|()| wide.finish().map(drop)).unwrap_err().to_string().contains("65536"));
    }
}

#[cfg(feature = "array_record")]
#[test]
fn records_of_bytes_are_written_as_they_are() {
    let temp = tempfile::tempdir().unwrap();
    for (at, compression) in [Compression::None, Compression::Zstd(1), Compression::Snappy].into_iter().enumerate() {
        let folder = temp.path().join(at.to_string());
        let options = Sink::options(SinkFormat::ArrayRecord).compression(compression).group(4).shard_bytes(300);
        let mut sink = options.open(&folder).unwrap();
        (0..100).for_each(|i| sink.write(Element::new().with("text", format!("record {i}").as_str())).unwrap());
        assert!(sink.finish().unwrap().shards > 2);
        let source = crate::source::ArrayRecord::open(&folder).unwrap();
        assert_eq!(source.len(), 100);
        (0..100).for_each(|i| assert_eq!(source.read(i).unwrap().as_bytes(), format!("record {i}").as_bytes()));
    }
}

#[cfg(all(feature = "parquet", feature = "arrow"))]
#[test]
fn columns_come_back_as_they_were() {
    let temp = tempfile::tempdir().unwrap();
    let rows =
        Array::new(crate::DType::F32, &[2, 3], crate::Buffer::from_vec((0..6).map(|x| x as f32).collect())).unwrap();
    let element =
        |i| element(i).with("x", rows.clone()).with("raw", crate::Value::Bytes(crate::Buffer::copy_from(b"\0\x01")));
    for format in [SinkFormat::Parquet, SinkFormat::Arrow, SinkFormat::HuggingFace] {
        let folder = temp.path().join(format.as_str());
        let mut sink =
            Sink::options(format).byte_stream_split(true).shard_bytes(2000).threads(3).open(&folder).unwrap();
        (0..200).for_each(|i| sink.write(element(i)).unwrap());
        let report = sink.finish().unwrap();
        assert!(report.shards > 3);
        let read: Vec<Element> = if format == SinkFormat::Parquet {
            let source = crate::source::Parquet::open(&folder).unwrap();
            (0..source.len()).map(|i| source.read(i).unwrap()).collect()
        } else {
            let source = crate::source::Arrow::open(&folder).unwrap();
            (0..source.len()).map(|i| source.read(i).unwrap()).collect()
        };
        assert_eq!(read, (0..200).map(element).collect::<Vec<_>>(), "{format}");
        let manifest = manifest(&folder);
        assert_eq!(manifest.files.len(), if format == SinkFormat::HuggingFace { 2 } else { 0 });
        assert!(manifest.check_files(&folder).is_empty());
        fs::write(folder.join(&manifest.shards[1].files[0].name), "other").unwrap();
        assert_eq!(manifest.check_files(&folder).len(), 1);
    }
}

#[cfg(all(feature = "compress", feature = "tf_record"))]
#[test]
fn elements_of_several_fields_are_examples() {
    let temp = tempfile::tempdir().unwrap();
    let element = |i: i64| {
        let ids = Array::from_vec((0..i % 4).collect::<Vec<i64>>());
        Element::new()
            .with("ids", ids)
            .with("name", crate::Value::Bytes(crate::Buffer::copy_from(i.to_string().as_bytes())))
    };
    for compression in [Compression::None, Compression::Gzip(6)] {
        let folder = temp.path().join(compression.name());
        let mut sink =
            Sink::options(SinkFormat::TfRecord).compression(compression).shard_bytes(500).open(&folder).unwrap();
        (0..100).for_each(|i| sink.write(element(i)).unwrap());
        assert!(sink.finish().unwrap().shards > 2);
        let encoded: Vec<Vec<u8>> = (0..100).map(|i| crate::source::encode_example(&element(i)).unwrap()).collect();
        let read: Vec<Vec<u8>> = if compression == Compression::None {
            let source = crate::source::TfRecord::open(&folder).unwrap();
            (0..source.len()).map(|i| source.read(i).unwrap().as_bytes().to_vec()).collect()
        } else {
            let stream = crate::source::TfRecordStream::open(&folder).unwrap();
            let records = crate::IterDatasetExt::collect(&stream).unwrap();
            records.iter().map(|record| record.as_bytes().to_vec()).collect()
        };
        assert_eq!(read, encoded);
    }
}

#[cfg(all(feature = "array_record", feature = "tf_record"))]
#[test]
fn declared_sequences_are_sequence_examples() {
    use crate::source::{ArrayRecord, ExampleParser, Examples, TfRecord};
    let temp = tempfile::tempdir().unwrap();
    let element = |i: i64| {
        let frames = (0..i % 5).map(|step| Array::from_vec(vec![step as f32; (i % 3) as usize]).into()).collect();
        Element::new().with("id", Array::from_vec(vec![i])).with("frames", crate::Value::List(frames))
    };
    let all: Vec<Element> = (0..100).map(element).collect();
    for format in [SinkFormat::TfRecord, SinkFormat::ArrayRecord] {
        let folder = temp.path().join(format.as_str());
        let options = || Sink::options(format).shard_bytes(500).sequences(["frames"]);
        let mut sink = options().open(&folder).unwrap();
        all.iter().for_each(|element| sink.write(element.clone()).unwrap());
        assert!(sink.finish().unwrap().shards > 1);
        let parser = ExampleParser::inferred_sequences();
        let read: Vec<Element> = if format == SinkFormat::TfRecord {
            let source = Examples::new(TfRecord::open(&folder).unwrap(), parser);
            (0..source.len()).map(|i| source.read(i).unwrap()).collect()
        } else {
            let source = Examples::new(ArrayRecord::open(&folder).unwrap(), parser);
            (0..source.len()).map(|i| source.read(i).unwrap()).collect()
        };
        assert_eq!(read, all, "{format}");
        let other = options().sequences(["id"]).resume(true).open(&folder).unwrap_err();
        assert!(other.message().contains("sequences"), "{other}");
    }
    let refused = options().sequences(["frames"]).open(temp.path().join("jsonl")).unwrap_err();
    assert_eq!(refused.message(), "jsonl has no sequences");
}

#[cfg(feature = "webdataset")]
#[test]
fn samples_have_keys() {
    let temp = tempfile::tempdir().unwrap();
    let mut sink = Sink::options(SinkFormat::WebDataset).shard_bytes(1000).threads(3).open(temp.path()).unwrap();
    let text = |i: i64| Element::new().with("txt", format!("number {i}").as_str());
    (0..100).for_each(|i| sink.write(if i == 7 { text(i).with("__key__", "seven") } else { text(i) }).unwrap());
    assert!(sink.finish().unwrap().shards > 0);
    let source = crate::source::WebDataset::open(temp.path()).unwrap();
    assert_eq!(source.len(), 100);
    let keys = [6, 7, 99].map(|i| source.read(i).unwrap().text("__key__").unwrap().to_owned());
    assert_eq!(keys, ["000000006", "seven", "000000099"]);
    assert!(
        matches!(source.read(99).unwrap().get("txt"), Some(crate::Value::Bytes(text)) if text.as_bytes() == b"number 99")
    );
}

#[cfg(feature = "mds")]
#[test]
fn folders_of_mds_have_an_index() {
    let temp = tempfile::tempdir().unwrap();
    for compression in [Compression::None, Compression::Zstd(1), Compression::Gzip(6), Compression::Snappy] {
        let folder = temp.path().join(compression.name());
        let options = Sink::options(SinkFormat::Mds).compression(compression).shard_bytes(2000).threads(3);
        let report = write_all(options, &folder, 0..200);
        assert!(report.shards > 3);
        let source = crate::source::Mds::open(&folder).unwrap();
        assert_eq!(
            (0..source.len()).map(|i| source.read(i).unwrap()).collect::<Vec<_>>(),
            (0..200).map(element).collect::<Vec<_>>()
        );
        assert_eq!(manifest(&folder).files[0].name, "index.json");
    }
}

#[cfg(feature = "safetensors")]
#[test]
fn arrays_are_rows() {
    let temp = tempfile::tempdir().unwrap();
    let element = |i: i64| Element::new().with("x", Array::from_vec(vec![i as f32, -i as f32]));
    for format in [SinkFormat::Npy, SinkFormat::Safetensors] {
        let folder = temp.path().join(format.as_str());
        let mut sink = Sink::options(format).column("x").shard_bytes(300).threads(3).open(&folder).unwrap();
        (0..100).for_each(|i| sink.write(element(i)).unwrap());
        assert!(sink.finish().unwrap().shards > 2);
        let read: Vec<Element> = if format == SinkFormat::Npy {
            let source = crate::source::Npy::open(&folder).unwrap().field("x");
            (0..source.len()).map(|i| source.read(i).unwrap()).collect()
        } else {
            let source = crate::source::Safetensors::options().rows(true).open(&folder).unwrap();
            (0..source.len()).map(|i| source.read(i).unwrap()).collect()
        };
        assert_eq!(read, (0..100).map(element).collect::<Vec<_>>(), "{format}");
    }
}
