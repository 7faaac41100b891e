//! Pipelines that use every source and every stage at least once.

/// Names, and the files.
pub(crate) const PIPELINES: &[(&str, &str)] = &[
    // Sources.
    ("jsonl", "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [shuffle: {seed: 3}]"),
    (
        "jsonl_columns",
        "source: {jsonl: {paths: [jsonl/*.jsonl], columns: [label, text]}}\nstages: [shuffle: {seed: 3}]",
    ),
    ("jsonl_lanes", "source: {jsonl: {paths: [jsonl_zst/*.zst, jsonl_gz/*.gz], lanes: 3}}"),
    ("lines", "source: {lines: {paths: [lines.txt], column: words}}"),
    ("csv", "source: {csv: {paths: [table.csv], types: {id: int64}}}\nstages: [shuffle: {seed: 3}]"),
    ("parquet", "source: {parquet: {paths: [parquet/*.parquet]}}\nstages: [shuffle: {seed: 3}]"),
    (
        "parquet_groups",
        "source: {parquet: {paths: [parquet/*.parquet], columns: [label], row_groups: {column: label, min: 1}}}",
    ),
    ("arrow", "source: {arrow: {paths: [arrow/*.arrow], columns: [text, tokens]}}\nstages: [shuffle: {seed: 3}]"),
    ("hugging_face", "source: {arrow: {paths: [hugging_face]}}"),
    (
        "array_record",
        "source: {array_record: {paths: [array_record/*.array_record], field: raw}}\nstages: [shuffle: {seed: 3}]",
    ),
    (
        "array_record_examples",
        "source: {array_record: {paths: [array_record_examples/*.array_record], examples: {label: {dtype: int64, shape: []}, tokens: int64}}}",
    ),
    ("tfrecord", "source: {tfrecord: {paths: [tfrecord/*.tfrecord]}}\nstages: [shuffle: {seed: 3}]"),
    ("webdataset", "source: {webdataset: {paths: [webdataset/*.tar], decode: true}}\nstages: [shuffle: {seed: 3}]"),
    ("mds", "source: {mds: {paths: [mds]}}\nstages: [shuffle: {seed: 3}]"),
    ("npy", "source: {npy: {paths: [npy/*.npy], field: pixels}}\nstages: [shuffle: {seed: 3}]"),
    ("safetensors", "source: {safetensors: {paths: [safetensors/*.safetensors], rows: true}}"),
    ("megatron", "source: {megatron: {paths: [megatron/*.idx]}}\nstages: [shuffle: {seed: 3}]"),
    (
        "megatron_samples",
        "source: {megatron_samples: {prefixes: [megatron], seq_len: 16, samples: 150, weights: [3, 1, 2]}}\nstages: [batch: 4]",
    ),
    ("tokens", "source: {tokens: {paths: [tokens/*.bin]}}"),
    ("crops", "source: {crops: {paths: [tokens/*.bin], seq_len: 16, with_next: true}}\nstages: [shuffle: {seed: 3}]"),
    ("random_crops", "source: {random_crops: {paths: [tokens/*.bin], seq_len: 16, seed: 5}}\nstages: [batch: 4]"),
    ("memory", "source: {memory: {records: [{a: 1}, {a: 2}, {a: 3}, {a: 4}, {a: 5}, {a: 6}, {a: 7}]}}"),
    (
        "concatenate",
        "source: {concatenate: {parts: [{range: {stop: 7}}, {source: {range: {stop: 9}}, stages: [slice: {step: 2}]}]}}",
    ),
    (
        "mix",
        "source: {mix: {parts: [{range: {stop: 700}}, {range: {start: 5, stop: 400}}], weights: [1, 2.5]}}\nstages: [shuffle: {seed: 9}]",
    ),
    (
        "mix_streams",
        "source: {mix: {parts: [{source: {range: {stop: 70}}, stages: [to_iter]}, {source: {range: {stop: 90}}, stages: [to_iter]}], weights: [1, 2]}}",
    ),
    ("zip", "source: {zip: {parts: [{range: {stop: 30}}, {range: {stop: 25, column: other}}], strict: false}}"),
    (
        "interleave",
        "source: {interleave: {parts: [{range: {stop: 30}}, {range: {stop: 25}}, {range: {stop: 9}}], cycle: 2}}",
    ),
    ("lanes", "source: {lanes: {parts: [{range: {stop: 30}}, {range: {stop: 25}}, {range: {stop: 9}}], count: 2}}"),
    // Stages of random access.
    (
        "orders",
        "source: {range: {start: 3, stop: 500, step: 3, column: number}}\nstages: [seed: 17, shuffle, slice: {start: 2, stop: 150, step: 2}, repeat: {num_epochs: 3, reseed_each_epoch: true}, shard: {index: 1, count: 3}]",
    ),
    (
        "windows",
        "source: {range: {stop: 100}}\nstages: [window_shuffle: {window_size: 16, seed: 4}, select_indices: {indices: [9, 7, 7, 40, 41, 42, 43, 99]}]",
    ),
    (
        "blocks",
        "source: {range: {stop: 100}}\nstages: [block_shuffle: {window_blocks: 3, block_size: 9, seed: 4}, repeat: {num_epochs: 2}]",
    ),
    (
        "filter",
        "source: {range: {stop: 100}}\nstages: [filter: {column: index, min: 10, max: 77}, to_iter: {on_bad_record: skip}]",
    ),
    (
        "columns",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [drop_columns: {columns: [label]}, rename: {text: words}, filter: {column: words, min_length: 12}, select_columns: {columns: [words]}]",
    ),
    (
        "examples",
        "source: {array_record: {paths: [array_record_examples/*.array_record]}}\nstages: [parse_example: {features: {tokens: int64, label: {dtype: int64, shape: []}}}]",
    ),
    (
        "tokenise",
        "source: {jsonl: {paths: [jsonl/*.jsonl], columns: [text]}}\nstages: [tokenise: {tokenizer: tokenizer.json, column: text, into: ids, max_len: 7, overflow: chunk}]",
    ),
    // Streams.
    (
        "streams",
        "source: {range: {stop: 100}}\nstages: [to_iter, window_shuffle: {window_size: 8, seed: 2}, filter: {column: index, min: 4}, skip: 3, limit: 60, enumerate: {column: at, start: 2}, repeat: {num_epochs: 2}, batch: 4, rebatch: 3]",
    ),
    ("cache", "source: {range: {stop: 20}}\nstages: [to_iter, cache, repeat: {num_epochs: 3}, take: 45]"),
    (
        "batch_pad",
        "source: {range: {stop: 50}}\nstages: [shuffle: {seed: 1}, batch: {batch_size: 8, remainder: pad, pad_value: 7, mask: kept}]",
    ),
    (
        "bad_records",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [to_iter, skip_bad_records: {limit: 3}, batch: {batch_size: 1}]",
    ),
    (
        "first_fit_pack",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [shuffle: {seed: 1}, first_fit_pack: {length: {tokens: 32}, num_packing_bins: 4}, batch: 2]",
    ),
    (
        "first_fit_options",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [first_fit_pack: {length: {tokens: 24}, num_packing_bins: 3, seed: 8, shuffle_bins: true, max_sequences_per_bin: 3, over_long: split}]",
    ),
    (
        "best_fit_pack",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [best_fit_pack: {length: {tokens: 32}, num_packing_bins: 4}]",
    ),
    (
        "window_pack",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [window_pack: {length: {tokens: 32}, window: 20}, batch: 2]",
    ),
    (
        "concat_then_split_pack",
        "source: {jsonl: {paths: [jsonl/*.jsonl]}}\nstages: [concat_then_split_pack: {length: {tokens: 32}, bos_handling: replace_first_token_with_bos, bos_features: [tokens], bos_token_id: 1}]",
    ),
    (
        "length_buckets",
        "source: {jsonl: {paths: [jsonl/*.jsonl], columns: [tokens]}}\nstages: [length_buckets: {features: [tokens], boundaries: [4, 8, 13], batch: {tokens: 40}, remainder: keep}]",
    ),
];
