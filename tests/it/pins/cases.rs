//! Values of every argument of pipeline files that make other data, each where all other arguments stay as they are.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::stages::stages;

/// A source or a stage, and values of its arguments.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The source behind which a stage stands, and the stages between them.
    pub(crate) behind: Option<Value>,
    pub(crate) stages: Vec<Value>,
    /// The arguments of which one is changed at a time.
    pub(crate) arguments: Value,
    /// Values of each; null for none, `{"$all": …}` for other arguments altogether.
    pub(crate) values: Vec<(String, Vec<Value>)>,
}

/// Arguments that are in no text, and why they need not be.
pub(crate) const SILENT: &[(&str, &str)] = &[
    ("array_record.cache_bytes", "memory"),
    ("array_record.recover", "what is read of damaged files is in the text, and whole files are read alike"),
    ("arrow.cache_bytes", "memory"),
    ("csv.index_cache", "where positions are kept"),
    ("json.index_cache", "where positions are kept"),
    ("jsonl.index_cache", "where positions are kept"),
    ("lines.index_cache", "where positions are kept"),
    ("megatron_samples.cache", "where the order is kept"),
    ("mix.names", "names of the parts"),
    ("mds.cache_bytes", "memory"),
    ("mds.check_hashes", "a check"),
    ("npz.cache_bytes", "memory"),
    ("npz.max_bytes", "a check"),
    ("parquet.cache_bytes", "memory"),
    ("safetensors.float8_as_u8", "without it such tensors are refused"),
    ("tfrecord.index_cache", "where positions are kept"),
    ("to_iter.warn", "a warning"),
    ("tokenise.engine", "engines make the same ids"),
    ("webdataset.index_cache", "where positions are kept"),
];

/// Arguments that change data and are in no text: states of other values are taken for one's own. To say them refuses states of before.
pub(crate) const UNSAID: &[&str] = &["csv.header", "csv.quote"];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [sources(), tables(), records(), ids(), stages()].into_iter().flatten().collect();
    // All sources of files have it.
    let files = cases.iter_mut().filter(|case| case.arguments.get("paths").or(case.arguments.get("path")).is_some());
    files.for_each(|case| case.values.push(("on_bad_shard".to_owned(), vec![json!("error"), json!("skip")])));
    cases
}

pub(crate) fn source(name: &'static str, arguments: Value, values: Value) -> Case {
    let Value::Object(values) = values else { panic!("{name}: {values}") };
    let list = |(path, values): (String, Value)| match values {
        Value::Array(values) => (path, values),
        other => panic!("{name}.{path}: {other}"),
    };
    Case { name, behind: None, stages: Vec::new(), arguments, values: values.into_iter().map(list).collect() }
}

pub(crate) fn stage(name: &'static str, behind: Value, arguments: Value, values: Value) -> Case {
    Case { behind: Some(behind), ..source(name, arguments, values) }
}

pub(crate) fn range(stop: i64) -> Value {
    json!({"range": {"stop": stop}})
}

fn sources() -> Vec<Case> {
    let parts = json!([[range(4)], [range(4), range(5)], [range(5), range(4)]]);
    let two = json!([range(40), range(50)]);
    let streams = json!([{"source": range(40), "stages": ["to_iter"]}, range(50)]);
    let scheduled = |at: u64| json!({"entries": [{"at": 0, "weights": [1, 2]}, {"at": at, "weights": [3, 1]}]});
    let changes = json!({
        "schedule": [scheduled(5), scheduled(6), scheduled(5)["entries"].as_array().map(|all| &all[..1])],
        "schedule.over": [null, 7, 8],
        "schedule.batch_size": [null, 2],
        "schedule.entries": [
            [{"at": 0, "weights": [1, 2]}, {"at": 9, "weights": [3, 1]}],
            [{"at": 0, "weights": [1, 2]}, {"at": 9, "weights": [3, 1], "over": 4}],
            [{"at": 0, "weights": [1, 2]}, {"at": 9, "weights": [4, 1]}],
        ],
    });
    let word = |len: usize| json!({"a": vec![1; len], "b": vec![1; 9 - len]});
    let memory = |lens: [usize; 5]| json!({"source": {"memory": {"records": lens.map(word)}}, "stages": ["to_iter"]});
    let words = json!([memory([1, 5, 3, 2, 6]), memory([8, 1, 1, 4, 2])]);
    let other = |name: &str| json!([range(4), {"range": {"stop": 4, "column": name}}]);
    vec![
        source(
            "range",
            json!({"stop": 40}),
            json!({"start": [null, 3], "stop": [40, 50], "step": [null, 2], "column": [null, "n"]}),
        ),
        source("memory", json!({}), json!({"records": [[{"a": 1}], [{"a": 2}], [{"b": 1}], [{"a": 1}, {"a": 1}]]})),
        source("concatenate", json!({}), json!({"parts": parts})),
        source(
            "mix",
            json!({"parts": two, "weights": [1, 2]}),
            json!({"parts": [two, [range(50), range(40)]], "weights": [null, [1, 2], [1, 3]], "exact": [null, true]}),
        ),
        source(
            "mix",
            json!({"parts": streams, "weights": [1, 2]}),
            json!({
                "weights": [null, [1, 2], [1, 3]], "exact": [null, true], "at_end": ["stop", "repeat", "redistribute"],
                "budget": [null, {"0": 7}, {"1": 7}],
            }),
        ),
        source(
            "mix",
            json!({"parts": words, "by": "tokens", "column": "a"}),
            json!({"by": [null, "tokens"], "column": ["a", "b"], "budget": [null, {"0": 7}]}),
        ),
        // In both worlds.
        source("mix", json!({"parts": two, "schedule": scheduled(5)}), changes.clone()),
        source("mix", json!({"parts": streams, "schedule": scheduled(5)}), changes),
        source(
            "mix",
            json!({"parts": two, "schedule": scheduled(5), "names": ["a", "b"]}),
            json!({"names": [null, ["a", "b"]], "at_end": [null, "repeat"]}),
        ),
        source("interleave", json!({"parts": two, "cycle": 1}), json!({"parts": parts, "cycle": [1, 2]})),
        source("lanes", json!({"parts": two, "count": 1}), json!({"parts": parts, "count": [1, 2]})),
        source(
            "zip",
            json!({"parts": other("a")}),
            json!({"parts": [other("a"), other("b")], "strict": [null, false]}),
        ),
    ]
}

/// Files of text and of columns.
fn tables() -> Vec<Case> {
    let files = |folder: &str, ending: &str| json!([folder, format!("{folder}/shard-00000.{ending}")]);
    let columns = json!([null, ["label"], ["label", "text"], ["text", "label"]]);
    vec![
        source(
            "jsonl",
            json!({"paths": "jsonl"}),
            json!({
                "paths": files("jsonl", "jsonl"), "columns": columns, "repeated_names": [null, "error"],
                "index_cache": [null, "off"],
            }),
        ),
        source(
            "jsonl",
            json!({"paths": "jsonl_gz/*.gz"}),
            json!({"columns": columns, "repeated_names": [null, "error"], "lanes": [null, 2, 3]}),
        ),
        source(
            "json",
            json!({"paths": "json"}),
            json!({
                "paths": ["json", "json/a.json"], "columns": columns, "repeated_names": [null, "error"],
                "index_cache": [null, "off"],
            }),
        ),
        source(
            "lines",
            json!({"paths": "lines.txt", "column": "a"}),
            json!({
                "paths": ["lines.txt", "table.csv"], "column": ["a", "b"], "blank_lines": [null, true],
                "index_cache": [null, "off"],
            }),
        ),
        source(
            "lines",
            json!({"paths": "packed/*.txt.gz", "column": "a"}),
            json!({"column": ["a", "b"], "lanes": [null, 2, 3]}),
        ),
        source(
            "csv",
            json!({"paths": "table.csv"}),
            json!({
                "paths": ["table.csv", "quoted.csv"], "delimiter": [",", ";"], "columns": [null, ["id"], ["words", "id"]],
                "nulls": [null, ["1"], ["2"]], "infer_rows": [null, 1], "types": [null, {"id": "float64"}, {"id": "str"}],
                "index_cache": [null, "off"],
            }),
        ),
        source(
            "csv",
            json!({"paths": "quoted.csv", "names": ["a", "b"], "types": {"a": "str"}}),
            json!({"quote": [null, "'", ""], "header": [null, true], "names": [["a", "b"], ["a", "c"]]}),
        ),
        source("csv", json!({"paths": "packed/*.csv.gz"}), json!({"delimiter": [",", ";"], "lanes": [null, 2, 3]})),
        source(
            "parquet",
            json!({"paths": "parquet"}),
            json!({
                "paths": files("parquet", "parquet"), "columns": columns, "cache_bytes": [null, "1MiB"],
                "row_groups": [
                    null, {"column": "label", "min": 1}, {"column": "label", "min": 2}, {"column": "label", "max": 1},
                    {"column": "label", "max": 2}, {"column": "text", "equals": "a"}, {"column": "text", "equals": "b"},
                ],
            }),
        ),
        source(
            "arrow",
            json!({"paths": "arrow"}),
            json!({"paths": files("arrow", "arrow"), "columns": columns, "cache_bytes": [null, "1MiB"]}),
        ),
        source("parquet", json!({"paths": "lake"}), json!({"hive_partitioning": [false, true]})),
        source("arrow", json!({"paths": "lake"}), json!({"hive_partitioning": [false, true]})),
        source(
            "mds",
            json!({"paths": "mds"}),
            json!({
                "paths": ["mds", "mds_of_one"], "columns": columns, "images": [null, false], "check_hashes": [null, true],
                "cache_bytes": [null, "1MiB"],
            }),
        ),
        source(
            "webdataset",
            json!({"paths": "webdataset"}),
            json!({
                "paths": files("webdataset", "tar"), "decode": [null, true], "url": [null, true],
                "columns": [null, ["text"], ["label"]], "index_cache": [null, "off"],
            }),
        ),
        source(
            "webdataset",
            json!({"paths": "packed/*.tar.gz"}),
            json!({"decode": [null, true], "url": [null, true], "lanes": [null, 2, 3]}),
        ),
        source(
            "npy",
            json!({"paths": "npy"}),
            json!({
                "paths": files("npy", "npy"), "field": [null, "x"],
                "path": [{"$all": {"path": "npy/shard-00000.npy"}}, {"$all": {"path": "npy/shard-00002.npy"}}],
            }),
        ),
        source(
            "npz",
            json!({"paths": "npz"}),
            json!({"paths": ["npz", "npz/a.npz"], "rows": [null, true], "max_bytes": [null, "1MiB"]}),
        ),
        source(
            "npz",
            json!({"paths": "npz", "rows": true}),
            json!({"cache_bytes": [null, "1MiB"], "max_bytes": [null, "1MiB"]}),
        ),
        source(
            "safetensors",
            json!({"paths": "safetensors"}),
            json!({
                "paths": files("safetensors", "safetensors"), "rows": [null, true], "float8_as_u8": [null, true],
                "columns": [null, ["label"], ["image"]],
            }),
        ),
    ]
}

/// What examples may be declared to be.
fn declared() -> Vec<Value> {
    let of = |spec: Value| json!({"label": spec});
    vec![
        Value::Null,
        of(json!("int64")),
        of(json!("float32")),
        of(json!({"dtype": "int64", "shape": []})),
        of(json!({"dtype": "int64", "shape": [2]})),
        of(json!({"dtype": "int64", "shape": [], "default": 0})),
        of(json!({"dtype": "int64", "shape": [], "default": 1})),
        json!({"other": "int64"}),
    ]
}

fn declared_sequences() -> Vec<Value> {
    let has_default = |features: &Value| features.pointer("/label/default").is_some();
    let mut all: Vec<_> = declared().into_iter().skip(1).filter(|features| !has_default(features)).collect();
    all.push(json!({"label": {"dtype": "int64", "shape": [2], "allow_missing": true}}));
    all
}

/// Files of records of bytes, and the stages that parse them.
fn records() -> Vec<Case> {
    let mut examples: Vec<Value> = declared();
    examples.push(json!(true));
    let mut sequences = vec![Value::Null, json!(true)];
    sequences.extend(declared().into_iter().skip(1).map(|features| json!({"context": features})));
    sequences.extend(declared_sequences().into_iter().map(|features| json!({"sequences": features})));
    let parsed = |paths: Value, more: Value| {
        let mut values = json!({
            "paths": paths, "field": [null, "raw"], "examples": examples, "sequence_examples": sequences,
        });
        values.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        values
    };
    let bytes = json!({"memory": {"records": [{"record": "a", "other": "b"}]}});
    vec![
        source(
            "array_record",
            json!({"paths": "array_record"}),
            parsed(
                json!(["array_record", "array_record/shard-00000.array_record"]),
                json!({"cache_bytes": [null, "1MiB"], "recover": [null, true]}),
            ),
        ),
        source(
            "tfrecord",
            json!({"paths": "tfrecord"}),
            parsed(json!(["tfrecord", "tfrecord/shard-00000.tfrecord"]), json!({"index_cache": [null, "off"]})),
        ),
        source(
            "tfrecord",
            json!({"paths": "packed/*.tfrecord.gz"}),
            json!({"field": [null, "raw"], "lanes": [null, 2, 3]}),
        ),
        source(
            "bagz",
            json!({"paths": "bagz"}),
            parsed(
                json!(["bagz", "bagz/a.bag"]),
                json!({"interleaved": [null, true], "compressed": [null, true, false]}),
            ),
        ),
        stage("parse_example", bytes.clone(), json!({}), json!({"features": declared(), "column": [null, "other"]})),
        stage(
            "parse_sequence_example",
            bytes,
            json!({}),
            json!({"context": declared(), "sequences": declared_sequences(), "column": [null, "other"]}),
        ),
    ]
}

/// Files of token ids.
fn ids() -> Vec<Case> {
    let paths = json!(["ids.bin", "tokens", "tokens/shard-00000.bin"]);
    let layout = json!(["u16", "u32"]);
    vec![
        source(
            "megatron",
            json!({"paths": "megatron"}),
            json!({
                "paths": ["megatron", "megatron/shard-00000.idx"], "by": [null, "document"],
            }),
        ),
        source(
            "megatron_samples",
            json!({"prefixes": "megatron/shard-00000", "seq_len": 4, "samples": 20}),
            json!({
                "prefixes": ["megatron/shard-00000", "megatron", ["megatron/shard-00000", "megatron/shard-00000"]],
                "seq_len": [4, 5], "seed": [null, 7], "samples": [20, 30, null], "weights": [null, [1]],
                "split": [null, [1, 1], [2, 1]], "with_next": [null, false], "cache": [null, "megatron"],
            }),
        ),
        source(
            "megatron_samples",
            json!({"prefixes": "megatron/shard-00000", "seq_len": 4, "split": [1, 1, 1]}),
            json!({"part": [null, "valid", "test"]}),
        ),
        source("tokens", json!({"paths": "ids.bin", "layout": "u16"}), json!({"paths": paths, "layout": layout})),
        source(
            "crops",
            json!({"paths": "ids.bin", "layout": "u16", "seq_len": 8}),
            json!({"paths": paths, "layout": layout, "seq_len": [8, 9], "with_next": [null, true]}),
        ),
        source(
            "random_crops",
            json!({"paths": "ids.bin", "layout": "u16", "seq_len": 8, "seed": 1}),
            json!({
                "paths": paths, "layout": layout, "seq_len": [8, 9], "with_next": [null, true], "seed": [1, 2],
                "epoch": [null, 5, 6],
            }),
        ),
    ]
}

/// Writes files that no sink writes.
pub(crate) fn write_more(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    for (file, copy) in [
        ("lines.txt", "txt"),
        ("table.csv", "csv"),
        ("webdataset/shard-00000.tar", "tar"),
        ("tfrecord/shard-00000.tfrecord", "tfrecord"),
    ] {
        (0..3).for_each(|k| write(&format!("packed/{k}.{copy}.gz"), &gzip(&read(file))));
    }
    for ending in ["parquet", "arrow"] {
        write(&format!("lake/part=1/0.{ending}"), &read(&format!("{ending}/shard-00000.{ending}")));
    }
    write("ids.bin", &[1; 80]);
    write("quoted.csv", b"'a',\"b\"\n'c',\"d\"\n");
    write("other_tokenizer.json", &[read("tokenizer.json"), b"\n".to_vec()].concat());
    for name in ["a", "b"] {
        let records = json!([{"label": 1, "text": "one"}, {"label": 2, "text": name}]);
        write(&format!("json/{name}.json"), records.to_string().as_bytes());
        write(&format!("bagz/{name}.bag"), &bag(&[b"one", b"two", name.as_bytes()]));
        write(&format!("npz/{name}.npz"), &archive("x.npy", &read("npy/shard-00000.npy")));
    }
    let mut index: Value = serde_json::from_slice(&read("mds/index.json")).unwrap();
    index["shards"].as_array_mut().unwrap().truncate(1);
    write("mds_of_one/index.json", index.to_string().as_bytes());
    write("mds_of_one/shard-00000.mds", &read("mds/shard-00000.mds"));
}

/// Records, and behind them where each of them ends.
fn bag(records: &[&[u8]]) -> Vec<u8> {
    let mut bytes = records.concat();
    let ends = records.iter().scan(0, |end, record| {
        *end += record.len() as u64;
        Some(*end)
    });
    ends.for_each(|end: u64| bytes.extend(end.to_le_bytes()));
    bytes
}

/// An archive of one file that is stored as it is.
fn archive(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    let (size, name_len) = ((bytes.len() as u32).to_le_bytes(), (name.len() as u16).to_le_bytes());
    let about =
        [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &crc.sum().to_le_bytes(), &size, &size, &name_len, &[0, 0]].concat();
    let file = [b"PK\x03\x04", &about[..], name.as_bytes(), bytes].concat();
    let entry = [b"PK\x01\x02", &[20, 0][..], &about, &[0; 14], name.as_bytes()].concat();
    let (entry_len, at) = ((entry.len() as u32).to_le_bytes(), (file.len() as u32).to_le_bytes());
    let end = [b"PK\x05\x06", &[0, 0, 0, 0, 1, 0, 1, 0][..], &entry_len, &at, &[0, 0]].concat();
    [file, entry, end].concat()
}
