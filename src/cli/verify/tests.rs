//! Whatever a pass fails on, `verify` finds.

use clap::FromArgMatches;

use super::*;
use crate::Element;
use crate::dataset::map::Range;
use crate::dataset::{DatasetIterator, IterDataset, MapDatasetExt};
use crate::element::Array;
use crate::exec::Runtime;
use crate::sink::{Compression, MANIFEST, Sink, SinkFormat, WriteTo};

/// Counts the problems that `verify` lists.
fn problems(folder: &Path) -> u64 {
    let command = <Args as clap::Args>::augment_args(clap::Command::new("verify"));
    let matches = command.get_matches_from([Path::new("verify"), folder]);
    verify(&Args::from_arg_matches(&matches).unwrap()).unwrap().problem_count
}

/// Reads everything as a pass does, to the first error.
fn pass(folder: &Path) -> Result<()> {
    let ds = Data::open(folder, None)?.stream();
    let (run, mut cx) = (Runtime::inline(), crate::cx::Cx::default());
    let mut iter = ds.iter(&run)?;
    while iter.next(&mut cx)?.is_some() {}
    Ok(())
}

/// Writes 40 records in four shards, without a manifest.
fn written(format: SinkFormat, compression: Option<Compression>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut options = Sink::options(format).shard_records(10);
    if let Some(compression) = compression {
        options = options.compression(compression);
    }
    let is_text = !["npy", "safetensors", "tokens", "megatron"].contains(&format.as_str());
    let record = move |i: i64| {
        let element = Element::new().with("tokens", Array::from_vec(vec![i as u16, 7, 8]));
        if is_text { element.with("text", format!("number {i} of some").as_str()) } else { element }
    };
    let options = if is_text { options } else { options.column("tokens") };
    Range::new(0, 40).map(record).to_iter().write_to(options, dir.path()).unwrap();
    // The data set of MDS is its index, which lies beside the shards.
    std::fs::remove_file(dir.path().join(MANIFEST)).unwrap();
    dir
}

/// Damage that is done to a file.
fn damaged(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let len = bytes.len();
    let mut all = vec![("an empty file".to_owned(), Vec::new())];
    for cut in [len / 4, len / 2, len - 1] {
        all.push((format!("cut to {cut} of {len} bytes"), bytes[..cut].to_vec()));
    }
    for at in [0, 9.min(len - 1), len / 4, len / 2, len / 4 * 3, len - 5.min(len), len - 1] {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 0x41;
        all.push((format!("byte {at} of {len} changed"), flipped));
    }
    all
}

fn compare(format: SinkFormat, compression: Option<Compression>) {
    let dir = written(format, compression);
    assert_eq!(problems(dir.path()), 0, "{format}");
    pass(dir.path()).unwrap_or_else(|error| panic!("{format}: {error}"));
    let mut shards: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    shards.sort();
    for shard in [&shards[0], &shards[1], &shards[shards.len() - 1]] {
        let bytes = std::fs::read(shard).unwrap();
        for (what, damage) in damaged(&bytes) {
            std::fs::write(shard, damage).unwrap();
            if let Err(error) = pass(dir.path()) {
                assert!(problems(dir.path()) > 0, "{format}: {}: {what}: a pass fails: {error}", shard.display());
            }
        }
        std::fs::write(shard, &bytes).unwrap();
    }
}

#[test]
fn what_a_pass_fails_on_is_found_in_every_format() {
    for format in SinkFormat::ALL {
        compare(*format, None);
    }
}

#[test]
fn what_a_pass_fails_on_is_found_in_compressed_files() {
    for format in [SinkFormat::Jsonl, SinkFormat::WebDataset] {
        for compression in [Compression::Gzip(6), Compression::Zstd(3), Compression::Lz4] {
            compare(format, Some(compression));
        }
    }
    compare(SinkFormat::TfRecord, Some(Compression::Gzip(6)));
}

#[test]
fn shards_whose_columns_differ_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Element| {
        let folder = dir.path().join(name);
        Range::new(0, 3)
            .map(move |_| value.clone())
            .to_iter()
            .write_to(Sink::options(SinkFormat::Parquet), &folder)
            .unwrap();
        std::fs::rename(folder.join("shard-00000.parquet"), dir.path().join(format!("{name}.parquet"))).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    };
    write("a", Element::new().with("x", Array::scalar(1i64)));
    write("b", Element::new().with("x", Array::scalar(1i32)));
    assert_eq!(problems(dir.path()), 0);
    write("c", Element::new().with("x", "text"));
    assert!(pass(dir.path()).is_err());
    assert_eq!(problems(dir.path()), 1);
}
