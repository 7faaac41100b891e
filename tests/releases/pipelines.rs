//! Pipelines of a release: every way in which order, rows and states come about, by sources that every build has.

use std::path::Path;

use gristmill::prelude::*;
use gristmill::spec::{Format, Pipeline};
use gristmill::{BoxIter, Element};

/// Pipelines of code, which a file cannot say.
pub(crate) const OF_CODE: [&str; 1] = ["flat_map"];

/// A pipeline of code by its name. A release depends on it: another way to build it is another name.
pub(crate) fn of_code(name: &str, data: &Path) -> Option<BoxIter<Element>> {
    let text = "source: {jsonl: {paths: corpus/*.jsonl, columns: [tokens]}}\nstages: [shuffle: {seed: 21}, to_iter]";
    let corpus = || Pipeline::from_text(text, Format::Yaml, data).unwrap().build().unwrap();
    let twice = |element: Element| {
        let tokens = element.array("tokens").unwrap().shape()[0];
        vec![element; tokens % 3]
    };
    (name == "flat_map").then(|| corpus().flat_map(twice).window_shuffle(9, 3).boxed())
}

/// Names, and the files; those of `hosts…` are read by several hosts.
pub(crate) const PIPELINES: &[(&str, &str)] = &[
    ("shuffle", "source: {jsonl: {paths: ../data/corpus/*.jsonl}}\nstages: [shuffle: {seed: 3}]"),
    (
        "orders",
        "source: {range: {start: 3, stop: 500, step: 3, column: number}}\nstages: [seed: 17, shuffle, slice: {start: 2, stop: 150, step: 2}, repeat: {num_epochs: 3, reseed_each_epoch: true}, shard: {index: 1, count: 3}]",
    ),
    (
        "blocks",
        "source: {range: {stop: 100}}\nstages: [block_shuffle: {window_blocks: 3, block_size: 9, seed: 4}, repeat: {num_epochs: 2}]",
    ),
    (
        "window_shuffle",
        "source: {range: {stop: 100}}\nstages: [window_shuffle: {window_size: 16, seed: 4}, to_iter, window_shuffle: {window_size: 8, seed: 2}]",
    ),
    (
        "mix",
        "source: {mix: {parts: [{range: {stop: 90}}, {range: {start: 100, stop: 150}}, {range: {start: 200, stop: 260}}], weights: [1, 2.5, 2]}}\nstages: [shuffle: {seed: 9}]",
    ),
    (
        "mix_streams",
        "source: {mix: {parts: [{source: {range: {stop: 70}}, stages: [to_iter]}, {source: {range: {start: 100, stop: 190}}, stages: [to_iter]}], weights: [1, 2]}}",
    ),
    (
        "interleave",
        "source: {interleave: {parts: [{range: {stop: 30}}, {range: {stop: 25}}, {range: {stop: 9}}], cycle: 2}}",
    ),
    ("zip", "source: {zip: {parts: [{range: {stop: 30}}, {range: {stop: 25, column: other}}], strict: false}}"),
    (
        "filter",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl}}\nstages: [shuffle: {seed: 1}, filter: {column: text, min_length: 40}, to_iter, filter: {column: label, max: 5}]",
    ),
    (
        "tokenise_chunks",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [text]}}\nstages: [tokenise: {tokenizer: ../data/tokenizer.json, column: text, into: ids, max_len: 7, overflow: chunk}]",
    ),
    (
        "repeat",
        "source: {range: {stop: 40}}\nstages: [shuffle: {seed: 5}, to_iter, skip: 3, limit: 30, enumerate: {column: at, start: 2}, repeat: {num_epochs: 3}, batch: 4, rebatch: 3]",
    ),
    (
        "remainder_keep",
        "source: {range: {stop: 50}}\nstages: [shuffle: {seed: 1}, batch: {batch_size: 8, remainder: keep}]",
    ),
    (
        "remainder_drop",
        "source: {range: {stop: 50}}\nstages: [shuffle: {seed: 1}, to_iter, batch: {batch_size: 8, remainder: drop}]",
    ),
    (
        "remainder_pad",
        "source: {range: {stop: 50}}\nstages: [shuffle: {seed: 1}, batch: {batch_size: 8, remainder: pad, pad_value: 7, mask: kept}]",
    ),
    (
        "first_fit_pack",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}\nstages: [shuffle: {seed: 1}, first_fit_pack: {length: {tokens: 24}, num_packing_bins: 4}, batch: 2]",
    ),
    (
        "first_fit_shuffled",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}\nstages: [first_fit_pack: {length: {tokens: 16}, num_packing_bins: 3, seed: 8, shuffle_bins: true, max_sequences_per_bin: 3, over_long: split}]",
    ),
    (
        "best_fit_pack",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}\nstages: [shuffle: {seed: 2}, best_fit_pack: {length: {tokens: 24}, num_packing_bins: 4}]",
    ),
    (
        "window_pack",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}\nstages: [shuffle: {seed: 2}, window_pack: {length: {tokens: 24}, window: 20}, batch: 2]",
    ),
    (
        "concat_then_split_pack",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}\nstages: [shuffle: {seed: 2}, concat_then_split_pack: {length: {tokens: 32}, bos_handling: replace_first_token_with_bos, bos_features: [tokens], bos_token_id: 1}]",
    ),
    (
        "length_buckets",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}\nstages: [shuffle: {seed: 2}, length_buckets: {features: [tokens], boundaries: [4, 8, 20], batch: {tokens: 40}, remainder: keep}]",
    ),
    ("tokens", "source: {tokens: {paths: ../data/tokens/*.bin}}\nstages: [shuffle: {seed: 6}]"),
    (
        "crops",
        "source: {crops: {paths: ../data/tokens/*.bin, seq_len: 16, with_next: true}}\nstages: [shuffle: {seed: 3}, batch: 3]",
    ),
    ("lanes", "source: {jsonl: {paths: ../data/gzip/*.gz, lanes: 3}}"),
    (
        "lanes_of_parts",
        "source: {lanes: {parts: [{range: {stop: 30}}, {range: {stop: 25}}, {range: {stop: 9}}], count: 2}}\nstages: [window_shuffle: {window_size: 8, seed: 2}]",
    ),
    (
        "hosts_shuffled",
        "source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [label]}}\nstages: [shuffle: {seed: 4}, repeat: {num_epochs: 2}, batch: {batch_size: 12, remainder: drop}]",
    ),
    (
        "hosts_packed",
        "source: {mix: {weights: [2, 1], parts: [{source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}, stages: [shuffle: {seed: 1}, slice: {start: 0, step: 2}]}, {source: {jsonl: {paths: ../data/corpus/*.jsonl, columns: [tokens]}}, stages: [shuffle: {seed: 1}, slice: {start: 1, step: 2}]}]}}\nstages: [filter: {column: tokens, min_length: 3}, window_pack: {length: {tokens: 24}, window: 20}, batch: {batch_size: 6, remainder: drop}]",
    ),
    (
        "hosts_lanes",
        "source: {jsonl: {paths: ../data/gzip/*.gz, lanes: 3, columns: [label]}}\nstages: [batch: {batch_size: 6, remainder: drop}]",
    ),
];
