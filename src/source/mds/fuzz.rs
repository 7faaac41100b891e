//! The fuzz target.

use super::Mds;
use crate::source::fuzzing::{Target, some};

pub(in crate::source) const TARGETS: &[Target] = &[("mds", mds)];

/// Reads the input as an index. Then reads it as a shard with every encoding; the first byte selects the compression.
fn mds(data: &[u8]) {
    let open = |index: &[u8], shard: &[u8]| Mds::options().cache_bytes(0).open_bytes(index, shard).ok();
    open(data, &[]);
    let Some((&codec, shard)) = data.split_first() else { return };
    let samples = shard.first_chunk().map_or(0, |count| u32::from_le_bytes(*count));
    let codec = ["zstd", "gz", "bz2", "br", "snappy"].get(usize::from(codec));
    let raw = if codec.is_some() { 4096 } else { shard.len() };
    let samples = if codec.is_some() { 2 } else { samples };
    let names: Vec<String> = ENCODINGS.iter().map(|name| format!("{name:?}")).collect();
    let sizes = vec!["null"; names.len()].join(",");
    let names = names.join(",");
    let zip = codec.map_or("null".to_owned(), |_| format!(r#"{{"basename": "z", "bytes": {}}}"#, shard.len()));
    let codec = codec.map_or("null".to_owned(), |codec| format!("{codec:?}"));
    let index = format!(
        r#"{{"version": 2, "shards": [{{"version": 2, "format": "mds", "column_names": [{names}],
        "column_encodings": [{names}], "column_sizes": [{sizes}], "compression": {codec}, "samples": {samples},
        "raw_data": {{"basename": "r", "bytes": {raw}}}, "zip_data": {zip}}}]}}"#
    );
    let Some(source) = open(index.as_bytes(), shard) else { return };
    some(&source);
}

const ENCODINGS: [&str; 14] = [
    "str",
    "int",
    "str_int",
    "str_float",
    "json",
    "ndarray",
    "ndarray:int16",
    "ndarray:float32:2",
    "pil",
    "list[pil]",
    "jpeg",
    "list[png]",
    "jpeg_array",
    "bytes",
];
