//! Every format, killed at any record: the same bytes in the end.

use proptest::prelude::*;

use super::*;
use crate::Value;

/// What the format holds, nulls and columns that come late among it.
fn record(format: SinkFormat, i: i64) -> Element {
    let ids = Array::from_vec((0..1 + i % 9).collect::<Vec<i64>>());
    let point = Array::from_vec(vec![i as f32, -i as f32]);
    match format {
        SinkFormat::Tokens | SinkFormat::Megatron => Element::new().with("tokens", ids),
        SinkFormat::Npy | SinkFormat::Safetensors => Element::new().with("point", point),
        SinkFormat::WebDataset => {
            Element::new().with("txt", format!("number {i}").as_str()).with("cls", Array::scalar(i))
        }
        SinkFormat::ArrayRecord | SinkFormat::TfRecord => element(i).with("ids", ids),
        SinkFormat::Mds => element(i).with("ids", ids).with("point", point),
        _ => {
            let note = if i % 5 == 3 { "late".into() } else { Value::Null };
            let record = element(i).with("ids", ids).with("note", note);
            if i > 30 { record.with("last", Array::scalar(0.5f64)) } else { record }
        }
    }
}

/// Everything that this build writes.
fn all() -> Vec<(SinkFormat, Compression)> {
    let all = SinkFormat::ALL.iter().flat_map(|&format| {
        let names = ["none", "zstd:1", "gzip:1", "lz4", "snappy", "brotli:1"];
        names.map(|name| (format, name.parse::<Compression>().unwrap()))
    });
    all.filter(|(format, compression)| format.check(*compression).is_ok()).collect()
}

const RECORDS: i64 = 120;

fn open(format: SinkFormat, compression: Compression, threads: usize, folder: &Path) -> Sink {
    let options = Sink::options(format).compression(compression).shard_records(17).group(4).threads(threads);
    options.resume(true).open(folder).unwrap()
}

fn write_from(mut sink: Sink, format: SinkFormat, until: i64) -> Sink {
    (sink.records() as i64..until).for_each(|i| sink.write(record(format, i)).unwrap());
    sink
}

#[test]
fn what_is_there_is_all_there_is() {
    let formats = all();
    assert!(formats.contains(&(SinkFormat::Jsonl, Compression::None)) && formats.len() >= 4);
    #[cfg(all(feature = "parquet", feature = "arrow", feature = "mds", feature = "tf_record"))]
    assert!(formats.len() > 20, "{formats:?}");
}

#[test]
fn a_kill_at_any_record_leaves_the_same_folder() {
    let cases = ProptestConfig { cases: 1, ..ProptestConfig::default() };
    for (format, compression) in all() {
        let temp = tempfile::tempdir().unwrap();
        let whole = temp.path().join("whole");
        write_from(open(format, compression, 3, &whole), format, RECORDS).finish().unwrap();
        let whole = files(&whole);
        let stops = prop::collection::vec((0..RECORDS, 1..4usize, any::<bool>()), 2..4);
        proptest!(cases.clone(), |(stops in stops)| {
            let temp = tempfile::tempdir().unwrap();
            for (stop, threads, falls_back) in stops {
                let sink = open(format, compression, threads, temp.path());
                let before = fs::read(temp.path().join(MANIFEST)).unwrap();
                drop(write_from(sink, format, stop));
                if falls_back {
                    // As if it had been killed before it listed the shards that are there.
                    fs::write(temp.path().join(MANIFEST), before).unwrap();
                }
                fs::write(temp.path().join(".shard-00003.x.17.0.tmp"), "half").unwrap();
            }
            write_from(open(format, compression, 2, temp.path()), format, RECORDS).finish().unwrap();
            prop_assert!(files(temp.path()) == whole, "{} ({})", format, compression);
        });
    }
}

#[test]
fn a_kill_before_the_last_word_leaves_the_same_folder() {
    for (format, compression) in all() {
        let temp = tempfile::tempdir().unwrap();
        write_from(open(format, compression, 2, temp.path()), format, RECORDS).finish().unwrap();
        let whole = files(temp.path());
        // What lies beside the shards is there, and nothing says so.
        let mut manifest = manifest(temp.path());
        (manifest.complete, manifest.files) = (false, Vec::new());
        fs::write(temp.path().join(MANIFEST), manifest.to_json()).unwrap();
        let sink = open(format, compression, 2, temp.path());
        assert_eq!(sink.records(), RECORDS as u64);
        sink.finish().unwrap();
        assert!(files(temp.path()) == whole, "{format} ({compression})");
    }
}
