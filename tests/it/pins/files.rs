//! Files of every format that is written, of the same records.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use gristmill::dataset::map::Range;
use gristmill::sink::WriteTo;
use gristmill::sink::{Compression, Sink, SinkFormat, SinkOptions};
use gristmill::{Array, Buffer, DType, Element, MapDatasetExt};
use sha2::{Digest, Sha256};

const RECORDS: i64 = 60;

/// What sinks are told, by the folder that they write.
fn sinks() -> Vec<(&'static str, SinkOptions, &'static [&'static str])> {
    let all: &[&str] = &["text", "tokens", "label", "image"];
    let plain: &[&str] = &["text", "tokens", "label"];
    let sink = |format| Sink::options(format).shard_records(25);
    vec![
        ("jsonl", sink(SinkFormat::Jsonl), plain),
        ("jsonl_zst", sink(SinkFormat::Jsonl).compression(Compression::Zstd(3)), plain),
        ("jsonl_gz", sink(SinkFormat::Jsonl).compression(Compression::Gzip(6)), plain),
        ("parquet", sink(SinkFormat::Parquet).group(10), all),
        ("arrow", sink(SinkFormat::Arrow).group(10), all),
        ("hugging_face", sink(SinkFormat::HuggingFace), all),
        ("array_record", sink(SinkFormat::ArrayRecord).group(4), &["text"]),
        ("array_record_examples", sink(SinkFormat::ArrayRecord), plain),
        ("tfrecord", sink(SinkFormat::TfRecord), &["text"]),
        ("webdataset", sink(SinkFormat::WebDataset), all),
        ("mds", sink(SinkFormat::Mds), all),
        ("npy", sink(SinkFormat::Npy).column("image"), &["image"]),
        ("safetensors", sink(SinkFormat::Safetensors), &["label", "image"]),
        ("tokens", sink(SinkFormat::Tokens), &["tokens"]),
        ("megatron", sink(SinkFormat::Megatron), &["tokens"]),
    ]
}

/// Writes them, and what no sink writes: a folder each.
pub(crate) fn write_all(folder: &Path) {
    for (name, options, columns) in sinks() {
        let stream = Range::new(0, RECORDS).map(move |i| record(i, columns)).to_iter();
        stream.write_to(options.threads(1), folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let rows = (0..RECORDS).map(|i| format!("{i},{},{}\n", text(i), i as f64 / 4.0)).collect::<String>();
    std::fs::write(folder.join("table.csv"), format!("id,words,share\n{rows}")).unwrap();
    std::fs::write(folder.join("lines.txt"), (0..RECORDS).map(|i| text(i) + "\n").collect::<String>()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), gristmill::demo::TOKENIZER_JSON).unwrap();
}

/// The files of each folder with their sizes and hashes.
pub(crate) fn hashes(folder: &Path) -> String {
    let mut out = String::new();
    for (name, ..) in sinks() {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder.join(name)).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        for path in files.iter().filter(|path| path.is_file()) {
            let mut bytes = std::fs::read(path).unwrap();
            if path.ends_with("manifest.json") {
                let version = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");
                bytes = String::from_utf8(bytes).unwrap().replace(version, "\"VERSION\"").into_bytes();
            }
            let hash: String = Sha256::digest(&bytes)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            let file = path.strip_prefix(folder).unwrap().display();
            writeln!(out, "{file}: {} bytes, {hash}", bytes.len()).unwrap();
        }
    }
    out
}

fn text(i: i64) -> String {
    let words = ["plain", "words", "of", "no", "meaning", "that", "make", "texts", "of", "many", "lengths"];
    (0..1 + i * 7 % 11).map(|k| words[((i + k * k) % 11) as usize]).collect::<Vec<_>>().join(" ")
}

fn record(i: i64, columns: &[&str]) -> Element {
    let mut element = Element::new();
    for &column in columns {
        element = match column {
            "text" => element.with(column, &*text(i)),
            "tokens" => {
                element.with(column, Array::from_vec((0..1 + i * 5 % 13).map(|k| (i * 31 + k) as i32 % 997).collect()))
            }
            "label" => element.with(column, Array::scalar(i % 4)),
            "image" => {
                let pixels = (0..6).map(|k| (i * 6 + k) as u8).collect();
                element.with(column, Array::new(DType::U8, &[2, 3], Buffer::from_vec(pixels)).unwrap())
            }
            other => unreachable!("{other}"),
        };
    }
    element
}
