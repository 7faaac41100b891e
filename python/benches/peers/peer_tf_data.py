"""tf.data: `rebatch` packs what a Python function tokenises; workers are the threads of a pipeline."""

import json
import os
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from protocol import DOCUMENTS, RECORDS, ROWS, SEQ_LEN, SHAPE, Batches, Data, encoder, serve

SHUFFLED = 4096


def options(workers: int) -> Any:
    made = tf.data.Options()
    if workers:
        made.threading.private_threadpool_size = workers
    made.deterministic = True
    return made


def tokens(data: Data, workers: int) -> Batches:
    encode = encoder(data.tokenizer, workers)

    def flat(lines: Any) -> Any:
        return np.concatenate(encode([json.loads(line)["text"] for line in lines]))

    lines = tf.data.TextLineDataset(data.text).batch(DOCUMENTS)
    calls = workers or None
    ids = lines.map(lambda some: tf.ensure_shape(tf.numpy_function(flat, [some], tf.int32), [None]), num_parallel_calls=calls)
    # Rows, and the rest as a shorter one.
    rows = ids.rebatch(SEQ_LEN).padded_batch(ROWS, padded_shapes=[SEQ_LEN], padding_values=-1)
    return rows.prefetch(2 if workers else 0).with_options(options(workers)).as_numpy_iterator()


def records(data: Data, workers: int) -> Batches:
    features = {"id": tf.io.FixedLenFeature([], tf.int64), "image": tf.io.FixedLenFeature([], tf.string)}

    def parse(some: Any) -> Any:
        parsed = tf.io.parse_example(some, features)
        return {"id": parsed["id"], "image": tf.reshape(tf.io.decode_raw(parsed["image"], tf.uint8), [-1, *SHAPE])}

    files = tf.data.TFRecordDataset(data.files("tfrecord/*.tfrecord"))
    ds = files.shuffle(SHUFFLED, seed=1).batch(RECORDS).map(parse, num_parallel_calls=workers or None)
    return ds.prefetch(2 if workers else 0).with_options(options(workers)).as_numpy_iterator()


if __name__ == "__main__":
    serve("tensorflow-cpu", {"tokens": tokens, "records-tfrecord": records})
