//! Values of the arguments of every stage: see [`cases`](super::cases).

use serde_json::{Value, json};

use super::cases::{Case, range, stage};

pub(crate) fn stages() -> Vec<Case> {
    [orders(), elementwise(), streams(), packs()].into_iter().flatten().collect()
}

fn orders() -> Vec<Case> {
    let stage = |name, arguments, values| stage(name, range(40), arguments, values);
    vec![
        stage("seed", json!({}), json!({"seed": [1, 2]})),
        stage("shuffle", json!({}), json!({"seed": [1, 2]})),
        stage("window_shuffle", json!({"window_size": 4, "seed": 1}), json!({"window_size": [4, 8], "seed": [1, 2]})),
        stage(
            "block_shuffle",
            json!({"window_blocks": 2, "block_size": 4, "seed": 1}),
            json!({"window_blocks": [2, 3], "block_size": [4, 5], "seed": [1, 2]}),
        ),
        stage(
            "slice",
            json!({"start": 2, "stop": 20}),
            json!({"start": [null, 2, 3], "stop": [null, 20, 21], "step": [null, 2]}),
        ),
        stage(
            "split",
            json!({"sizes": [0.5, 0.25], "take": 0}),
            json!({
                "sizes": [[0.5, 0.25], [0.75, 0.25], [20, 10]], "take": [0, 1], "seed": [null, 1, 2],
                "shuffle": [null, false],
            }),
        ),
        stage("shard", json!({"index": 1, "count": 3}), json!({"index": [0, 1], "count": [3, 4]})),
        stage("select_indices", json!({}), json!({"indices": [[1, 2], [2, 1], [1, 2, 3]]})),
        stage(
            "select_indices",
            json!({}),
            json!({"indices": [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8, 10]]}),
        ),
        stage(
            "repeat",
            json!({"num_epochs": 2}),
            json!({"num_epochs": [null, 2, 3], "reseed_each_epoch": [null, false]}),
        ),
    ]
}

fn elementwise() -> Vec<Case> {
    let texts = json!({"memory": {"records": [{"text": "a b", "more": "c", "n": 1, "m": 2}]}});
    let columns = json!({"columns": [["text"], ["more"], ["text", "more"], ["more", "text"]]});
    let tokens = |values| {
        let base = json!({"tokenizer": "tokenizer.json", "column": "text", "max_len": 4});
        stage("tokenise", texts.clone(), base, values)
    };
    let stage = |name, arguments, values| stage(name, texts.clone(), arguments, values);
    vec![
        stage(
            "filter",
            json!({"column": "text", "min_length": 1}),
            json!({
                "column": ["text", "more"], "min_length": [1, 2], "max_length": [null, 5, 6], "equals": [null, "a", "b"],
            }),
        ),
        stage(
            "filter",
            json!({"column": "n", "min": 1}),
            json!({"column": ["n", "m"], "min": [1, 2], "max": [null, 5, 6]}),
        ),
        stage("select_columns", json!({}), columns.clone()),
        stage("drop_columns", json!({}), columns),
        stage("rename", json!({"text": "a"}), json!({"text": ["a", "b"], "more": [null, "b", "c"]})),
        tokens(json!({
            "tokenizer": ["tokenizer.json", "other_tokenizer.json"], "column": ["text", "more"], "into": [null, "ids"],
            "prepend_bos": [null, 0, 1], "append_eos": [null, 0, 1], "max_len": [null, 4, 5],
            "overflow": ["truncate", "chunk", "error"], "keep_text": [null, true], "special_in_text": [null, true],
            "engine": [null, "compat"],
        })),
        stage(
            "tokenise",
            json!({"tokenizer": "tokenizer.json"}),
            json!({"columns": [["text"], ["text", "more"], ["more", "text"]]}),
        ),
    ]
}

fn streams() -> Vec<Case> {
    let batched = |case: Case| Case { stages: vec![json!({"batch": 4})], ..case };
    let stage = |name, arguments, values| stage(name, range(40), arguments, values);
    vec![
        stage(
            "batch",
            json!({"batch_size": 3, "remainder": "pad"}),
            json!({"batch_size": [3, 7], "pad_value": [null, 7, 8], "mask": [null, "kept"]}),
        ),
        stage("batch", json!({"batch_size": 3}), json!({"batch_size": [3, 7], "remainder": ["keep", "drop", "pad"]})),
        batched(stage("rebatch", json!({"batch_size": 3}), json!({"batch_size": [3, 7], "remainder": [null, "drop"]}))),
        stage("skip_bad_records", json!({}), json!({"limit": [null, 1, 2], "consecutive": [null, 1, 2]})),
        stage(
            "to_iter",
            json!({"on_bad_record": "skip"}),
            json!({
                "on_bad_record": ["error", "skip"], "bad_record_limit": [null, 1, 2],
                "consecutive_bad_record_limit": [null, 1, 2], "warn": [null, 0.5], "raise": [null, 0.5, 0.6],
            }),
        ),
        stage("limit", json!({}), json!({"count": [1, 2]})),
        stage("take", json!({}), json!({"count": [1, 2]})),
        stage("skip", json!({}), json!({"count": [0, 1, 2]})),
        stage("enumerate", json!({"column": "n"}), json!({"column": ["n", "m"], "start": [null, 1]})),
    ]
}

fn sequences() -> Value {
    json!({"memory": {"records": [{"tokens": [1, 2], "other": [3, 4]}]}})
}

fn packs() -> Vec<Case> {
    let with = |mut values: Value, more: Value| {
        values.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        values
    };
    let rows = |more| {
        let values = json!({
            "length": [{"tokens": 16}, {"tokens": 32}, {"other": 16}, {"tokens": 16, "other": 16}],
            "padding": [null, {"tokens": 7}, {"tokens": 8}], "meta_features": [null, ["other"]],
            "names": [null, "maxtext"],
        });
        with(values, more)
    };
    let most = json!({
        "align": [null, {"tokens": 4}, {"tokens": 8}], "max_sequences_per_bin": [null, 3, 4],
        "over_long": [null, "split", "drop"],
    });
    let bins = with(
        most.clone(),
        json!({
            "num_packing_bins": [3, 4], "shuffle_bins": [null, false], "seed": [null, 1, 2],
            "shuffle_bins_group_by_feature": [null, "tokens"],
        }),
    );
    let stage = |name, arguments, values| stage(name, sequences(), arguments, values);
    let bos = |features: &[&str], token: i64| {
        json!({"$all": {
            "length": {"tokens": 16, "other": 16}, "bos_features": features, "bos_token_id": token,
            "bos_handling": "replace_first_token_with_bos",
        }})
    };
    let plain = json!({"$all": {"length": {"tokens": 16, "other": 16}}});
    let packed = |arguments, values| {
        let row = |ids: [i32; 6]| json!({"tokens": [7, 8, 9, 5, 6, 0], "tokens_segment_ids": ids, "tokens_positions": [0, 1, 2, 0, 1, 0]});
        let mut record = row([1, 1, 1, 2, 2, 0]);
        for (name, value) in row([1, 1, 1, 1, 2, 2]).as_object().unwrap() {
            record[name.replace("tokens", "other")] = value.clone();
        }
        super::cases::stage("packed_columns", json!({"memory": {"records": [record]}}), arguments, values)
    };
    let buckets = json!({"features": "tokens", "boundaries": [4, 16], "batch": 4});
    vec![
        stage(
            "concatenate_columns",
            json!({"columns": ["tokens", "other"], "mask": "mask"}),
            json!({
                "columns": [["tokens", "other"], ["other", "tokens"]], "into": [null, "ids"], "mask": ["mask", "other_mask"],
                "labels": [null, "labels"], "trained": [null, ["tokens"], ["tokens", "other"]],
            }),
        ),
        stage(
            "first_fit_pack",
            json!({"length": {"tokens": 16, "other": 16}, "num_packing_bins": 3}),
            rows(bins.clone()),
        ),
        stage("best_fit_pack", json!({"length": {"tokens": 16, "other": 16}, "num_packing_bins": 3}), rows(bins)),
        stage(
            "window_pack",
            json!({"length": {"tokens": 16, "other": 16}}),
            rows(with(most, json!({"window": [null, 8, 9]}))),
        ),
        stage(
            "concat_then_split_pack",
            json!({"length": {"tokens": 16, "other": 16}}),
            rows(json!({
                "split_full_length_features": [null, false], "positions": [null, "continue"],
                "bos_handling": [plain, bos(&["tokens"], 1)],
                "bos_features": [bos(&["tokens"], 1), bos(&["other"], 1), bos(&["tokens", "other"], 1)],
                "bos_token_id": [bos(&["tokens"], 1), bos(&["tokens"], 2)],
            })),
        ),
        packed(
            json!({"labels": "shifted"}),
            json!({
                "feature": [null, "other"], "padding_positions": [null, "restart", "continue"],
                "labels": ["shifted", "unshifted"], "cu_seqlens": [null, true], "names": [null, "hf", "torchtitan", "thd"],
            }),
        ),
        packed(json!({"cu_seqlens": true}), json!({"max_segments": [null, 5, 6]})),
        stage(
            "length_buckets",
            buckets,
            json!({
                "features": ["tokens", "other", ["tokens", "other"]], "boundaries": [[4, 16], [4, 17]],
                "batch": [
                    {"fixed": 4}, {"fixed": 5}, {"per_bucket": [4, 4]}, {"per_bucket": [4, 5]}, {"tokens": 40}, {"tokens": 41},
                ],
                "padding": [null, {"tokens": 7}, {"tokens": 8}], "window": [null, 16, 17],
                "remainder": ["keep", "drop", "pad"], "drop_over_long": [null, true],
            }),
        ),
    ]
}
